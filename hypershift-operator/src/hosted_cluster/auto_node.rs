//! What a control plane reports about Karpenter, after Karpenter was switched off.

use api::hypershift::v1beta1::HostedControlPlane;
use kube::Api;
use serde_json::json;
use support::apply::{Part, merge};

use crate::context::Context;
use crate::control_plane_namespace::Namespace;
use crate::error::Error;
use crate::facts::Facts;
use crate::facts::auto_node::{COMPONENTS, karpenter};
use crate::names::FIELD_MANAGER;

/// Clears it: the program that wrote it is gone.
pub(super) async fn clear(
    facts: &Facts,
    namespace: &Namespace,
    ctx: &Context,
) -> Result<(), Error> {
    let Some(live) = stale(facts) else {
        return Ok(());
    };
    let Some(owned) = namespace.owned().filter(|it| it.has(&live.metadata)) else {
        return Ok(());
    };
    let api: Api<HostedControlPlane> = Api::namespaced(ctx.client.clone(), owned);
    let patch = json!({ "status": { "autoNode": null } });
    let cleared = merge(&api, &live.metadata, Part::Status, patch, FIELD_MANAGER).await;
    cleared.map_err(|source| Error::Write {
        object: format!("HostedControlPlane {owned}/{}", facts.id.name),
        source,
    })
}

/// The HostedControlPlane, if it reports what is not there any more. Pure.
fn stale(facts: &Facts) -> Option<&HostedControlPlane> {
    if karpenter(&facts.cluster).is_some() {
        return None;
    }
    let live = facts.control_plane.as_ref()?;
    let is_gone = facts.auto_node.is_some()
        && COMPONENTS
            .iter()
            .all(|name| !facts.deployments.contains_key(*name));
    let reports = live
        .status
        .as_ref()
        .is_some_and(|it| it.auto_node.is_some());
    Some(live).filter(|_| is_gone && reports)
}

#[cfg(test)]
mod tests {
    use api::group::CapiTypes;
    use k8s_openapi::api::apps::v1::Deployment;

    use super::*;
    use crate::facts::auto_node::AutoNode;
    use crate::facts::fixture;
    use crate::hosted_cluster::build::control_plane_spec;
    use crate::names;

    #[test]
    fn counts_are_cleared_after_the_program_that_writes_them() {
        for (name, is_on, runs, reports, expected) in [
            ("on", true, true, true, false),
            ("being removed", false, true, true, false),
            ("removed", false, false, true, true),
            ("cleared", false, false, false, false),
        ] {
            let mut cluster = fixture::hosted_cluster("aws");
            if is_on {
                fixture::with_auto_node(&mut cluster);
            }
            let mut facts = fixture::facts(cluster, CapiTypes::Private);
            facts.auto_node = Some(AutoNode::default());
            if runs {
                let name = names::KARPENTER_OPERATOR.to_owned();
                facts.deployments.insert(name, Deployment::default());
            }
            let mut live = HostedControlPlane::new("one", control_plane_spec(&facts));
            let counts = reports.then(|| json!({ "nodeCount": 1 }));
            let status = json!({ "ready": true, "initialized": true, "autoNode": counts });
            live.status = serde_json::from_value(status).unwrap();
            facts.control_plane = Some(live);
            assert_eq!(stale(&facts).is_some(), expected, "{name}");
        }
    }
}
