//! The token and the user data of one class.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::annotations::node_pool::NODE_POOL;
use api::hypershift::v1beta1::node_pool::{Arch, NodePool};
use api::karpenter::v1::OpenshiftEc2NodeClass;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use payload::Release;
use serde_json::json;
use support::apply::delete;
use support::reconcile::is_missing;

use super::shared::Shared;
use super::{Nodes, kubelet_maps, problem};
use crate::control_plane_namespace::ControlPlaneNamespace;
use crate::karpenter_operator::classes::{AMIS, MANAGED, of_pool, pool_name};
use crate::karpenter_operator::context::Context;
use crate::karpenter_operator::error::Error;
use crate::node_pool::detached::{self, Detached, Input};

/// Writes the configuration of nodes with a release.
pub(super) async fn write(
    ctx: &Context,
    class: &OpenshiftEc2NodeClass,
    shared: &Shared,
    release: Arc<Release>,
    fresh: &str,
) -> Result<Nodes, Error> {
    let own = kubelet_maps::write(ctx, class, &shared.namespace).await?;
    let made = plan(class, shared, release, own, fresh);
    let made = made.map_err(|text| problem(class, text))?;
    made.write(ctx.management.clone()).await?;
    Ok(Nodes {
        hash: made.hash().to_owned(),
        image: made.release.image.clone(),
        version: made.release.version.to_string(),
    })
}

/// Decides what is written. `own` is the name and the text of the settings of kubelets.
fn plan(
    class: &OpenshiftEc2NodeClass,
    shared: &Shared,
    release: Arc<Release>,
    own: (String, String),
    fresh: &str,
) -> Result<Detached, String> {
    let input = Input {
        pool: pool(class, shared, &release.image, &own.0),
        cluster: shared.cluster.clone(),
        types: shared.types,
        namespace: shared.namespace.clone(),
        release,
        cluster_version: shared.versions.completed.clone(),
        capabilities: shared.capabilities.clone(),
        operator_image: shared.operator_image.clone(),
        pull_secret: shared.pull_secret_bytes.clone(),
        trust_bundle: shared.trust_bundle.clone(),
        ssh_key: shared.ssh_key.clone(),
        ignition_ca: shared.ignition_ca.clone(),
        own: vec![own],
        core: shared.core.clone(),
        secrets: shared.secrets.clone(),
        now: shared.now,
    };
    let mut made = detached::plan(input, fresh)?;
    let labels = labels(&made.release, &shared.region)?;
    made.label(&labels);
    Ok(made)
}

/// The pool of a class. Its machines may have any architecture that there are images for.
fn pool(class: &OpenshiftEc2NodeClass, shared: &Shared, image: &str, config: &str) -> NodePool {
    let pool = json!({
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "NodePool",
        "metadata": { "namespace": &*shared.namespace, "name": pool_name(&class.name_any()) },
        "spec": {
            "clusterName": shared.cluster.name_any(),
            "release": { "image": image },
            "platform": { "type": "AWS" },
            "management": { "upgradeType": "Replace" },
            "arch": "amd64",
            "config": [{ "name": config }],
        },
    });
    serde_json::from_value(pool).expect("invariant: the pool has the form of a NodePool")
}

/// The labels of both Secrets: the images that machines boot.
fn labels(release: &Release, region: &str) -> Result<BTreeMap<String, String>, String> {
    let stream = release.boot_images.as_ref();
    let images = AMIS.into_iter().zip([Arch::Amd64, Arch::Arm64]);
    let images = images.filter_map(|(label, arch)| {
        let image = stream?.ami(arch, region)?;
        payload::skew::architecture(release.architectures, arch).ok()?;
        Some((label.to_owned(), image.to_owned()))
    });
    let mut labels: BTreeMap<_, _> = images.collect();
    if labels.is_empty() {
        return Err(format!(
            "release {} has no image for machines in region {region}: choose another release",
            release.version
        ));
    }
    let (label, value) = MANAGED;
    labels.insert(label.to_owned(), value.to_owned());
    Ok(labels)
}

/// Deletes the Secrets of classes that are gone.
pub(super) async fn sweep(
    ctx: &Context,
    namespace: &ControlPlaneNamespace,
    classes: &[OpenshiftEc2NodeClass],
) -> Result<(), Error> {
    let (label, value) = MANAGED;
    let params = ListParams::default().labels(&format!("{label}={value}"));
    let api: Api<Secret> = Api::namespaced(ctx.management.clone(), namespace);
    let listed = api.list_metadata(&params).await;
    let listed = listed.map_err(Error::read("Secrets of classes"))?;
    for secret in &listed.items {
        if !is_left(
            secret.annotations().get(NODE_POOL.key()),
            namespace,
            classes,
        ) {
            continue;
        }
        match delete(&api, &secret.metadata).await {
            Err(error) if is_missing(&error) => {}
            deleted => deleted.map_err(Error::write(format!("Secret {}", secret.name_any())))?,
        }
    }
    Ok(())
}

/// Whether a Secret is of a class that is gone.
fn is_left(reference: Option<&String>, namespace: &str, classes: &[OpenshiftEc2NodeClass]) -> bool {
    let class = reference.and_then(|it| of_pool(it, namespace));
    class.is_some_and(|class| classes.iter().all(|it| it.name_any() != class))
}

#[cfg(test)]
mod tests;
