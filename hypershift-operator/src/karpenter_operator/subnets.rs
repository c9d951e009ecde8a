//! ConfigMap `karpenter-subnets`: the subnets in which Karpenter makes machines. They need the endpoint of a private control
//! plane, too.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::context::Context;
use super::error::Error;
use super::kinds;
use crate::control_plane_namespace::ControlPlaneNamespace;
use crate::names;

/// Label: the infrastructure that they are of.
const INFRA_ID: &str = "hypershift.openshift.io/infra-id";
/// The most subnets.
const MOST: usize = 100;

/// Writes the subnets that EC2NodeClasses have.
pub(super) async fn write(
    ctx: &Context,
    namespace: &ControlPlaneNamespace,
    infra_id: &str,
    subnets: &BTreeSet<String>,
) -> Result<(), Error> {
    let name = names::KARPENTER_SUBNETS;
    let found = ctx.get::<ConfigMap>(name).await?;
    if found.is_some_and(|it| !is_ours(&it)) {
        return Err(Error::Unreadable {
            object: format!("ConfigMap {}/{name}", &**namespace),
            problem: "it is not that of Karpenter: delete it, or rename what has its name"
                .to_owned(),
        });
    }
    let map = json!({
        "metadata": {
            "namespace": &**namespace,
            "name": name,
            "labels": { names::MANAGED_BY: names::KARPENTER_MANAGER, INFRA_ID: infra_id },
        },
        "data": { names::KARPENTER_SUBNETS_KEY: json!(subnets).to_string() },
    });
    ctx.here.ensure_value(&kinds::config_map(), map).await?;
    Ok(())
}

fn is_ours(map: &ConfigMap) -> bool {
    let manager = map.labels().get(names::MANAGED_BY);
    manager.is_some_and(|it| it == names::KARPENTER_MANAGER)
}

/// The subnets in statuses of EC2NodeClasses. What is no ID does not reach the control plane: users of the hosted cluster may
/// write these statuses.
pub(super) fn of<'a>(statuses: impl Iterator<Item = &'a Value>) -> BTreeSet<String> {
    let subnets = statuses.flat_map(|it| it["subnets"].as_array().into_iter().flatten());
    let ids = subnets.filter_map(|it| it["id"].as_str().filter(|id| is_id(id)));
    ids.map(str::to_owned).take(MOST).collect()
}

fn is_id(text: &str) -> bool {
    let digits = text.strip_prefix("subnet-").unwrap_or_default();
    (1..=32).contains(&digits.len()) && digits.bytes().all(|it| it.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use support::testing::{Answer, Expect, Scenario};

    use super::*;
    use crate::karpenter_operator::fixtures;

    const MAP: &str = "/api/v1/namespaces/clusters-one/configmaps/karpenter-subnets";

    fn namespace() -> ControlPlaneNamespace {
        crate::control_plane_namespace::for_tests(fixtures::NAMESPACE)
    }

    #[test]
    fn subnets_of_all_classes_are_sorted_and_checked() {
        let statuses = [
            json!({ "subnets": [{ "id": "subnet-02" }, { "id": "subnet-01" }] }),
            json!({ "subnets": [{ "id": "subnet-02" }, { "id": "vpc-1" }, { "id": "subnet-" }, { "id": 1 }, 2] }),
            json!({ "subnets": [{ "id": "subnet-0&x" }] }),
            json!({ "subnets": {} }),
            json!(null),
        ];
        let found: Vec<_> = of(statuses.iter()).into_iter().collect();
        assert_eq!(found, ["subnet-01", "subnet-02"]);
        let many = (0..200).map(|it| json!({ "id": format!("subnet-{it:08x}") }));
        let many = json!({ "subnets": many.collect::<Vec<_>>() });
        assert_eq!(of([many].iter()).len(), MOST);
    }

    #[tokio::test]
    async fn only_the_own_config_map_is_written() {
        let labels = json!({ names::MANAGED_BY: "karpenter" });
        let ours = json!({ "metadata": { "name": "karpenter-subnets", "labels": labels } });
        let others = json!({ "metadata": { "name": "karpenter-subnets" } });
        let written = json!({
            "metadata": { "labels": { names::MANAGED_BY: "karpenter", INFRA_ID: "one-x7k2p" } },
            "data": { "subnetIDs": "[\"subnet-01\"]" },
        });
        let subnets = BTreeSet::from(["subnet-01".to_owned()]);
        for (found, is_written) in [(&ours, true), (&others, false)] {
            let get = || Expect::get(MAP).answer(Answer::ok(found));
            let patch = Expect::patch(MAP)
                .body(written.clone())
                .answer(Answer::ok(&ours));
            let calls = if is_written {
                vec![get(), get(), patch]
            } else {
                vec![get()]
            };
            let scenario = Scenario::new(calls);
            let ctx = fixtures::context(&scenario);
            let done = write(&ctx, &namespace(), "one-x7k2p", &subnets).await;
            assert_eq!(done.is_ok(), is_written, "{done:?}");
            scenario.finish();
        }
    }
}
