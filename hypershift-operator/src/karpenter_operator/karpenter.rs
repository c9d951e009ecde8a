//! Karpenter itself: the kinds that it has in the hosted cluster, the first class of machines, and its Deployment; at the end
//! of the control plane, the machines that it has made.

use std::time::Duration;

use api::crds;
use api::features::FeatureSet;
use api::hypershift::v1beta1::HostedControlPlane;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DynamicObject, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use support::controller::Action;
use support::reconcile::{is_conflict, is_missing};

use super::context::Context;
use super::control_plane::{is_active, is_enabled};
use super::ec2_node_class::{default_security_groups, default_subnets};
use super::error::Error;
use super::{component, deletion, kinds, kubelet};
use crate::{karpenter_crds, names};

/// The class that each cluster has at first.
const DEFAULT: &str = "default";
/// When it is evaluated again while something is missing that another program writes.
const AGAIN: Duration = Duration::from_secs(15);

/// Writes what differs.
pub(super) async fn pass(ctx: &Context) -> Result<Action, Error> {
    let Some(hcp) = ctx.control_plane().await?.filter(is_enabled) else {
        return Ok(Action::await_change());
    };
    if is_ending(ctx, &hcp).await? {
        return deletion::pass(ctx, &hcp).await;
    }
    if !is_active(&hcp, Timestamp::now()) {
        return Ok(Action::await_change());
    }
    // Before anything can make machines.
    deletion::set_finalizer(ctx, &hcp, true).await?;
    let mut failed = Vec::new();
    failed.extend(write_taint(ctx, &hcp).await.err());
    // The hosted cluster may not respond yet.
    failed.extend(write_guest(ctx, &hcp).await.err());
    let is_waiting = match component::pass(ctx, &hcp).await {
        Ok(is_waiting) => is_waiting,
        Err(error) => {
            failed.push(error);
            false
        }
    };
    Error::all(failed)?;
    Ok(if is_waiting {
        Action::requeue(AGAIN)
    } else {
        Action::await_change()
    })
}

/// Whether the machines have to end: Cluster API deletes its own ones at the same time.
async fn is_ending(ctx: &Context, hcp: &HostedControlPlane) -> Result<bool, Error> {
    if hcp.metadata.deletion_timestamp.is_some() {
        return Ok(true);
    }
    let resource = ctx.capi.cluster();
    let name = &hcp.spec.infra_id;
    let api: Api<DynamicObject> =
        Api::namespaced_with(ctx.management.clone(), &ctx.namespace, &resource);
    match api.get_metadata_opt(name).await {
        Ok(found) => Ok(found.is_some_and(|it| it.metadata.deletion_timestamp.is_some())),
        // The kind is not served.
        Err(error) if is_missing(&error) => Ok(false),
        Err(source) => Err(Error::Read {
            what: format!("Cluster {}/{name}", ctx.namespace),
            source,
        }),
    }
}

/// Writes the configuration that all nodes of Karpenter join with.
async fn write_taint(ctx: &Context, hcp: &HostedControlPlane) -> Result<(), Error> {
    let namespace = ctx.owned(hcp).await?;
    let map = taint(&namespace, hcp)?;
    let found = ctx.get::<ConfigMap>(names::KARPENTER_TAINT).await?;
    if found.is_some_and(|it| !is_ours(&it, hcp)) {
        return Err(Error::Unreadable {
            object: format!("ConfigMap {}/{}", ctx.namespace, names::KARPENTER_TAINT),
            problem: "it is not that of Karpenter: delete it, or rename what has its name"
                .to_owned(),
        });
    }
    ctx.here.ensure_value(&kinds::config_map(), map).await?;
    Ok(())
}

/// The ConfigMap, as it is written.
fn taint(namespace: &str, hcp: &HostedControlPlane) -> Result<Value, Error> {
    let manifest = kubelet::manifest(None).map_err(|problem| Error::Unreadable {
        object: format!("ConfigMap {}", names::KARPENTER_TAINT),
        problem,
    })?;
    Ok(json!({
        "metadata": {
            "namespace": namespace,
            "name": names::KARPENTER_TAINT,
            "annotations": { names::CLUSTER: hcp.annotations().get(names::CLUSTER) },
        },
        "data": { "config": manifest },
    }))
}

fn is_ours(map: &ConfigMap, hcp: &HostedControlPlane) -> bool {
    map.annotations().get(names::CLUSTER) == hcp.annotations().get(names::CLUSTER)
}

/// Writes the kinds of Karpenter to the hosted cluster, and the first class.
async fn write_guest(ctx: &Context, hcp: &HostedControlPlane) -> Result<(), Error> {
    write_kinds(ctx, karpenter_crds::read()?).await?;
    write_first_class(ctx, &hcp.spec.infra_id).await
}

/// Writes our own kind, and then those of Karpenter.
async fn write_kinds(ctx: &Context, of_karpenter: Vec<Value>) -> Result<(), Error> {
    let own = crds::GUEST
        .iter()
        .map(|crd| (crd.render)(FeatureSet::Default));
    for definition in own.chain(of_karpenter) {
        ctx.there.ensure_value(&kinds::crd(), definition).await?;
    }
    Ok(())
}

/// Creates the first class. It is the user's from then on.
async fn write_first_class(ctx: &Context, infra_id: &str) -> Result<(), Error> {
    let api: Api<DynamicObject> = Api::all_with(ctx.guest.clone(), &kinds::node_class());
    let what = format!("OpenshiftEC2NodeClass {DEFAULT} of the hosted cluster");
    let found = api
        .get_opt(DEFAULT)
        .await
        .map_err(Error::read(what.as_str()))?;
    if found.is_some() {
        return Ok(());
    }
    let class = first_class(infra_id).map_err(|error| Error::Unreadable {
        object: what.clone(),
        problem: error.to_string(),
    })?;
    match api.create(&PostParams::default(), &class).await {
        Err(error) if is_conflict(&error) => Ok(()),
        created => created.map(drop).map_err(Error::write(what)),
    }
}

/// A class whose machines are in the subnets of the cluster.
fn first_class(infra_id: &str) -> Result<DynamicObject, serde_json::Error> {
    let resource = kinds::node_class();
    serde_json::from_value(json!({
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": { "name": DEFAULT },
        "spec": {
            "subnetSelectorTerms": default_subnets(infra_id),
            "securityGroupSelectorTerms": default_security_groups(infra_id),
        },
    }))
}

#[cfg(test)]
mod tests;
