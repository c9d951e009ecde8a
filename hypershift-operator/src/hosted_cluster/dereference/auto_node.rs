//! Karpenter in the control plane of a cluster that has it, or had it.

use std::collections::BTreeMap;

use api::hypershift::v1beta1::ControlPlaneComponent;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use support::error::chain;

use crate::context::Context;
use crate::error::Error;
use crate::facts::Facts;
use crate::facts::auto_node::{AutoNode, COMPONENTS, karpenter, may_remain};
use crate::names;

/// Adds it to the facts. Nothing is read for clusters that have nothing to do with it.
pub(super) async fn read(facts: &mut Facts, ctx: &Context) -> Result<(), Error> {
    if karpenter(&facts.cluster).is_none() && !remains(facts) {
        return Ok(());
    }
    for name in COMPONENTS {
        let found = ctx.get::<Deployment>(&facts.namespace, name).await?;
        facts
            .deployments
            .extend(found.map(|it| (name.to_owned(), it)));
    }
    let kubeconfig = ctx
        .get::<Secret>(&facts.namespace, names::OPERATOR_KUBECONFIG)
        .await?;
    let mut known = AutoNode {
        components: BTreeMap::new(),
        has_kubeconfig: kubeconfig.is_some(),
        problem: None,
    };
    for name in COMPONENTS {
        let found = ctx.get::<ControlPlaneComponent>(&facts.namespace, name);
        match found.await {
            Ok(found) => {
                let status = found.map(|it| it.status.unwrap_or_default());
                known.components.extend(status.map(|it| (name, it)));
            }
            // Its condition is unknown then; the rest of the cluster has nothing to do with it.
            Err(error) => known.problem = Some(chain(&error)),
        }
    }
    facts.auto_node = Some(known);
    Ok(())
}

/// Whether the control plane may have something of it. The condition is written after the objects.
fn remains(facts: &Facts) -> bool {
    let control_plane = facts.control_plane.as_ref();
    let status = control_plane.and_then(|it| it.status.as_ref());
    may_remain(&facts.cluster)
        || control_plane.is_some_and(|it| it.spec.auto_node.is_some())
        || status.is_some_and(|it| it.auto_node.is_some())
}
