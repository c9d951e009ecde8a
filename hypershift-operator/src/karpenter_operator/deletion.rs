//! The end of a control plane: Karpenter ends its machines while it still runs, then the finalizer is removed.

use std::collections::BTreeMap;
use std::time::Duration;

use api::hypershift::v1beta1::HostedControlPlane;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{ApiResource, DynamicObject};
use kube::{Api, ResourceExt as _};
use serde_json::json;
use support::apply::{Part, annotate, delete, merge};
use support::controller::Action;
use support::reconcile::{is_conflict, is_missing};

use super::claims::TERMINATION;
use super::context::{Context, MANAGER};
use super::error::Error;
use super::kinds;
use crate::names;

/// When it is evaluated again: machines end slowly.
const AGAIN: Duration = Duration::from_secs(15);

/// A write in the hosted cluster.
#[derive(Debug, Clone, PartialEq)]
enum Step {
    /// Delete a pool: Karpenter makes no more machines of it.
    Pool(ObjectMeta),
    /// Delete a machine, and do not wait for what runs there: this time has come already.
    Claim(ObjectMeta),
    /// Do not wait for what runs on a machine that is being deleted.
    Force(ObjectMeta),
}

/// What is to be done.
#[derive(Debug, PartialEq)]
struct Plan {
    steps: Vec<Step>,
    /// Whether nothing is left that Karpenter has made.
    is_done: bool,
}

/// Deletes what Karpenter has made, or removes the finalizer.
pub(super) async fn pass(ctx: &Context, hcp: &HostedControlPlane) -> Result<Action, Error> {
    if !hcp
        .finalizers()
        .iter()
        .any(|it| it == names::KARPENTER_FINALIZER)
    {
        return Ok(Action::await_change());
    }
    // The pools first: a machine that one of them makes after this is found by the next pass.
    let pools = ctx.list_there(&kinds::node_pool()).await?;
    let claims = ctx.list_there(&kinds::node_claim()).await?;
    let Plan { steps, is_done } = plan(&pools, &claims);
    if is_done {
        set_finalizer(ctx, hcp, false).await?;
        return Ok(Action::await_change());
    }
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let mut failed = Vec::new();
    for step in &steps {
        failed.extend(write(ctx, step, &now).await.err());
    }
    Error::all(failed)?;
    Ok(Action::requeue(AGAIN))
}

/// Adds the finalizer to the control plane, or removes it.
pub(super) async fn set_finalizer(
    ctx: &Context,
    hcp: &HostedControlPlane,
    is_wanted: bool,
) -> Result<(), Error> {
    let Some(finalizers) = finalizers(hcp, is_wanted) else {
        return Ok(());
    };
    let namespace = ctx.owned(hcp).await?;
    let api: Api<HostedControlPlane> = Api::namespaced(ctx.management.clone(), &namespace);
    let change = json!({ "metadata": { "finalizers": finalizers } });
    let merged = merge(&api, &hcp.metadata, Part::Main, change, MANAGER).await;
    let what = format!("the finalizers of HostedControlPlane {}", ctx.name);
    merged.map_err(Error::write(what))
}

/// The finalizers after a change, if there is one.
fn finalizers(hcp: &HostedControlPlane, is_wanted: bool) -> Option<Vec<String>> {
    let mut finalizers = hcp.finalizers().to_vec();
    let has = finalizers.iter().any(|it| it == names::KARPENTER_FINALIZER);
    if has == is_wanted {
        return None;
    }
    if is_wanted {
        finalizers.push(names::KARPENTER_FINALIZER.to_owned());
    } else {
        finalizers.retain(|it| it != names::KARPENTER_FINALIZER);
    }
    Some(finalizers)
}

fn plan(pools: &[DynamicObject], claims: &[DynamicObject]) -> Plan {
    let metadata = |object: &DynamicObject| object.metadata.clone();
    let is_live = |object: &&DynamicObject| object.metadata.deletion_timestamp.is_none();
    let live: Vec<_> = pools.iter().filter(is_live).map(metadata).collect();
    if !live.is_empty() {
        return Plan {
            steps: live.into_iter().map(Step::Pool).collect(),
            is_done: false,
        };
    }
    let steps = claims.iter().filter_map(|claim| {
        let is_live = claim.metadata.deletion_timestamp.is_none();
        let is_forced = claim.annotations().contains_key(TERMINATION);
        match (is_live, is_forced) {
            (true, _) => Some(Step::Claim(metadata(claim))),
            (false, false) => Some(Step::Force(metadata(claim))),
            (false, true) => None,
        }
    });
    Plan {
        steps: steps.collect(),
        is_done: pools.is_empty() && claims.is_empty(),
    }
}

async fn write(ctx: &Context, step: &Step, now: &str) -> Result<(), Error> {
    match step {
        Step::Pool(pool) => remove(ctx, &kinds::node_pool(), pool).await,
        Step::Claim(claim) => {
            force(ctx, claim, now).await?;
            remove(ctx, &kinds::node_claim(), claim).await
        }
        Step::Force(claim) => force(ctx, claim, now).await,
    }
}

/// Sets when a machine ends even if pods still run there.
async fn force(ctx: &Context, claim: &ObjectMeta, now: &str) -> Result<(), Error> {
    let api: Api<DynamicObject> = Api::all_with(ctx.guest.clone(), &kinds::node_claim());
    let annotations = BTreeMap::from([(TERMINATION, now)]);
    match annotate(&api, claim, &annotations, MANAGER).await {
        // The next pass does it: Karpenter has written something meanwhile.
        Err(error) if is_conflict(&error) || is_missing(&error) => Ok(()),
        done => done
            .map(drop)
            .map_err(Error::write(what("NodeClaim", claim))),
    }
}

async fn remove(ctx: &Context, kind: &ApiResource, object: &ObjectMeta) -> Result<(), Error> {
    let api: Api<DynamicObject> = Api::all_with(ctx.guest.clone(), kind);
    match delete(&api, object).await {
        Err(error) if is_conflict(&error) || is_missing(&error) => Ok(()),
        done => done.map_err(Error::write(what(&kind.kind, object))),
    }
}

fn what(kind: &str, object: &ObjectMeta) -> String {
    let name = object.name.as_deref().unwrap_or_default();
    format!("{kind} {name} of the hosted cluster")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use support::testing::{Answer, Expect, Scenario};

    use super::*;
    use crate::karpenter_operator::fixtures;

    const HCP: &str =
        "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters-one/hostedcontrolplanes/one";
    const POOLS: &str = "/apis/karpenter.sh/v1/nodepools";
    const CLAIMS: &str = "/apis/karpenter.sh/v1/nodeclaims";

    fn object(kind: &str, name: &str, is_deleted: bool, is_forced: bool) -> Value {
        let mut metadata =
            json!({ "name": name, "uid": format!("uid-{name}"), "resourceVersion": "7" });
        if is_deleted {
            metadata["deletionTimestamp"] = json!("2030-01-31T12:00:00Z");
        }
        if is_forced {
            metadata["annotations"] = json!({ TERMINATION: "2030-01-31T12:00:00Z" });
        }
        json!({ "apiVersion": "karpenter.sh/v1", "kind": kind, "metadata": metadata })
    }

    fn pool(name: &str, is_deleted: bool) -> Value {
        object("NodePool", name, is_deleted, false)
    }

    fn claim(name: &str, is_deleted: bool, is_forced: bool) -> Value {
        object("NodeClaim", name, is_deleted, is_forced)
    }

    fn ending() -> HostedControlPlane {
        let mut hcp = fixtures::control_plane();
        fixtures::delete(&mut hcp.metadata);
        hcp.metadata.finalizers = Some(vec!["a".to_owned(), names::KARPENTER_FINALIZER.to_owned()]);
        hcp
    }

    #[test]
    fn machines_end_after_the_pools_and_the_finalizer_is_the_last() {
        let found = |pools: Vec<Value>, claims: Vec<Value>| {
            let read = |all: Vec<Value>| serde_json::from_value::<Vec<_>>(json!(all)).unwrap();
            let Plan { steps, is_done } = plan(&read(pools), &read(claims));
            let name = |it: &ObjectMeta| it.name.clone().unwrap();
            let steps = steps.iter().map(|step| match step {
                Step::Pool(it) => format!("delete pool {}", name(it)),
                Step::Claim(it) => format!("end {}", name(it)),
                Step::Force(it) => format!("force {}", name(it)),
            });
            (steps.collect::<Vec<_>>(), is_done)
        };
        for (name, pools, claims, steps, is_done) in [
            ("nothing", vec![], vec![], vec![], true),
            (
                "pools first",
                vec![pool("a", false), pool("b", true)],
                vec![claim("c", false, false)],
                vec!["delete pool a"],
                false,
            ),
            (
                "a pool that remains",
                vec![pool("a", true)],
                vec![],
                vec![],
                false,
            ),
            (
                "machines",
                vec![pool("a", true)],
                vec![
                    claim("c", false, false),
                    claim("d", true, false),
                    claim("e", true, true),
                    claim("f", false, true),
                ],
                vec!["end c", "force d", "end f"],
                false,
            ),
            (
                "a machine that ends",
                vec![],
                vec![claim("e", true, true)],
                vec![],
                false,
            ),
        ] {
            let expected: Vec<String> = steps.into_iter().map(str::to_owned).collect();
            assert_eq!(found(pools, claims), (expected, is_done), "{name}");
        }
    }

    #[test]
    fn the_finalizer_is_added_once_and_others_are_kept() {
        let (plain, ending) = (fixtures::control_plane(), ending());
        let both = ["a".to_owned(), names::KARPENTER_FINALIZER.to_owned()];
        for (hcp, is_wanted, expected) in [
            (&plain, true, Some(both[1..].to_vec())),
            (&plain, false, None),
            (&ending, true, None),
            (&ending, false, Some(both[..1].to_vec())),
        ] {
            assert_eq!(finalizers(hcp, is_wanted), expected);
        }
    }

    /// Each pass begins with what is there, so that one that was killed is continued.
    #[tokio::test]
    async fn passes_lead_to_the_end_of_the_finalizer() {
        let list = |path: &str, items: &[Value]| Expect::get(path).answer(Answer::list(items));
        let ok = || Answer::ok(&json!({ "metadata": { "name": "c" } }));
        let (live, dying) = ([claim("c", false, false)], [claim("c", true, true)]);
        let forced = json!({ "metadata": { "uid": "uid-c", "resourceVersion": "7" } });
        let rest = json!({ "metadata": { "resourceVersion": "7", "finalizers": ["a"] } });
        let scenario = Scenario::new([
            list(POOLS, &[pool("a", false)]),
            list(CLAIMS, &live),
            Expect::delete(&format!("{POOLS}/a"))
                .body(json!({ "preconditions": { "uid": "uid-a" } }))
                .answer(ok()),
            list(POOLS, &[]),
            list(CLAIMS, &live),
            Expect::patch(&format!("{CLAIMS}/c"))
                .body(forced)
                .answer(ok()),
            Expect::delete(&format!("{CLAIMS}/c")).answer(Answer::error(404, "NotFound")),
            list(POOLS, &[]),
            list(CLAIMS, &dying),
            list(POOLS, &[]),
            list(CLAIMS, &[]),
            fixtures::namespace(),
            Expect::patch(HCP)
                .body(rest)
                .answer(Answer::ok(&json!(fixtures::control_plane()))),
        ]);
        let ctx = fixtures::context(&scenario);
        for expected in [Some(AGAIN), Some(AGAIN), Some(AGAIN), None] {
            let action = pass(&ctx, &ending()).await.unwrap();
            assert_eq!(action.requeue_after(), expected);
        }
        // Without the finalizer, nothing is read.
        pass(&ctx, &fixtures::control_plane()).await.unwrap();
        scenario.finish();
    }
}
