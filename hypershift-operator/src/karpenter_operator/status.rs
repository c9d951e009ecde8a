//! What Karpenter has made, in the status of the control plane.

use std::collections::BTreeSet;

use api::hypershift::v1beta1::HostedControlPlane;
use api::hypershift::v1beta1::auto_node::AutoNodeStatus;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::ApiResource;
use serde_json::json;
use support::controller::Action;

use super::claims::{Claim, is_of_karpenter};
use super::context::Context;
use super::control_plane::is_enabled;
use super::error::Error;
use super::kinds;

/// The most processors that the status can have.
const MOST: i64 = 1_000_000;

/// Writes the counts if they have changed. It does so during a deletion, too, until Karpenter is switched off.
pub(super) async fn pass(ctx: &Context) -> Result<Action, Error> {
    let Some(hcp) = ctx.control_plane().await?.filter(is_enabled) else {
        return Ok(Action::await_change());
    };
    let nodes = ctx.nodes().await?;
    let claims = Claim::read_all(&ctx.list_there(&kinds::node_claim()).await?);
    let counts = counts(&nodes, &claims);
    let before = hcp.status.as_ref().and_then(|it| it.auto_node.as_ref());
    if before == Some(&counts) {
        return Ok(Action::await_change());
    }
    let wanted = json!({
        "metadata": { "namespace": ctx.namespace, "name": ctx.name },
        "status": { "autoNode": counts },
    });
    let resource = ApiResource::erase::<HostedControlPlane>(&());
    ctx.here.ensure_status(&resource, wanted).await?;
    Ok(Action::await_change())
}

fn counts(nodes: &[Node], claims: &[Claim]) -> AutoNodeStatus {
    let made = nodes.iter().filter(|it| is_of_karpenter(it)).count();
    let live: BTreeSet<_> = nodes.iter().map(ResourceExt::name_any).collect();
    let joined = claims
        .iter()
        .filter(|it| it.node.as_ref().is_some_and(|node| live.contains(node)));
    let processors = joined.filter_map(|it| processors(it.cpu.as_deref()?));
    let processors = processors.fold(0_i64, |sum, one| sum.saturating_add(one).min(MOST));
    let count = |number: usize| Some(i32::try_from(number).unwrap_or(i32::MAX));
    AutoNodeStatus {
        node_count: count(made),
        node_claim_count: count(claims.len()),
        vcpus: i32::try_from(processors).ok(),
    }
}

/// Whole processors of a quantity, rounded up.
fn processors(quantity: &str) -> Option<i64> {
    let (number, unit) = match quantity.strip_suffix('m') {
        Some(thousandths) => (thousandths, 1000),
        None => (quantity, 1),
    };
    let number: i64 = number.parse().ok()?;
    Some(number)
        .filter(|it| *it >= 0)
        .map(|it| it / unit + i64::from(it % unit > 0))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use support::testing::{Answer, Expect, Scenario};

    use super::*;
    use crate::karpenter_operator::fixtures;

    fn node(name: &str, is_made: bool) -> Value {
        let labels = if is_made {
            json!({ "karpenter.sh/nodepool": "default" })
        } else {
            json!({})
        };
        json!({ "metadata": { "name": name, "labels": labels } })
    }

    fn claim(node: Option<&str>, cpu: &str) -> Claim {
        Claim {
            node: node.map(str::to_owned),
            cpu: Some(cpu.to_owned()),
            ..Claim::default()
        }
    }

    #[test]
    fn nodes_claims_and_processors_are_counted() {
        let of = |nodes: &[Value], claims: &[Claim]| {
            let nodes: Vec<Node> = serde_json::from_value(json!(nodes)).unwrap();
            let counts = counts(&nodes, claims);
            (counts.node_count, counts.node_claim_count, counts.vcpus)
        };
        for (name, nodes, claims, expected) in [
            ("nothing", vec![], vec![], (0, 0, 0)),
            ("others", vec![node("a", false)], vec![], (0, 0, 0)),
            (
                "one that has not joined",
                vec![node("a", true)],
                vec![claim(Some("a"), "4"), claim(None, "8")],
                (1, 2, 4),
            ),
            (
                "one whose node is gone",
                vec![node("a", true)],
                vec![claim(Some("a"), "3920m"), claim(Some("b"), "8")],
                (1, 2, 4),
            ),
            (
                "what is no quantity",
                vec![node("a", true), node("b", true), node("c", true)],
                vec![
                    claim(Some("a"), "many"),
                    claim(Some("b"), "-4"),
                    claim(Some("c"), "9223372036854775807"),
                ],
                (3, 3, 1_000_000),
            ),
        ] {
            let expected = (Some(expected.0), Some(expected.1), Some(expected.2));
            assert_eq!(of(&nodes, &claims), expected, "{name}");
        }
    }

    #[tokio::test]
    async fn the_status_is_written_when_it_changes() {
        const HCP: &str =
            "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters-one/hostedcontrolplanes/one";
        let before = fixtures::control_plane();
        let mut after = before.clone();
        let counts = AutoNodeStatus {
            node_count: Some(1),
            node_claim_count: Some(0),
            vcpus: Some(0),
        };
        let written = json!({ "status": { "autoNode": counts } });
        if let Some(status) = &mut after.status {
            status.auto_node = Some(counts);
        }
        let read = |hcp: &HostedControlPlane| Expect::get(HCP).answer(Answer::ok(&json!(hcp)));
        let nodes = || Expect::get("/api/v1/nodes").answer(Answer::list(&[node("a", true)]));
        let claims = || Expect::get("/apis/karpenter.sh/v1/nodeclaims").answer(Answer::list(&[]));
        let scenario = Scenario::new([
            read(&before),
            nodes(),
            claims(),
            read(&before),
            Expect::patch(&format!("{HCP}/status"))
                .body(written)
                .answer(Answer::ok(&json!(after))),
            read(&after),
            nodes(),
            claims(),
        ]);
        let ctx = fixtures::context(&scenario);
        for _ in 0..2 {
            pass(&ctx).await.unwrap();
        }
        scenario.finish();
    }
}
