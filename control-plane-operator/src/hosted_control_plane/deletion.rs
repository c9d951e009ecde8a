//! Deletion: waits until the guest has cleaned up its cloud resources.

use std::time::Duration;

use api::annotations::cluster::CLEANUP_CLOUD_RESOURCES;
use api::conditions::ClusterCondition as Type;
use api::hypershift::v1beta1::HostedControlPlane;
use control_plane_component::status::is_true;
use jiff::Timestamp;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::error::Error;

/// Finalizer that blocks the deletion until cloud resources are cleaned up.
const FINALIZER: &str = "hypershift.openshift.io/finalizer";
/// Time after which the deletion continues without cleanup.
const CLEANUP_TIMEOUT: Duration = Duration::from_mins(10);

/// The next step of the deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeletionStep {
    /// Add the finalizer, because cleanup is enabled.
    AddFinalizer,
    /// The control plane is being deleted; wait for the cleanup.
    Wait,
    /// Remove the finalizer.
    RemoveFinalizer,
    /// It is being deleted, and the finalizer is removed.
    Done,
    /// It is not being deleted; reconcile it.
    Reconcile,
}

/// Decides the next step. Pure.
pub(super) fn next_step(hcp: &HostedControlPlane, now: Timestamp) -> DeletionStep {
    let none = std::collections::BTreeMap::new();
    let annotations = hcp.metadata.annotations.as_ref().unwrap_or(&none);
    let is_cleanup_enabled = CLEANUP_CLOUD_RESOURCES.is_true(annotations);
    let has_finalizer = hcp
        .metadata
        .finalizers
        .iter()
        .flatten()
        .any(|finalizer| finalizer == FINALIZER);
    let Some(since) = &hcp.metadata.deletion_timestamp else {
        return if is_cleanup_enabled && !has_finalizer {
            DeletionStep::AddFinalizer
        } else {
            DeletionStep::Reconcile
        };
    };
    if !has_finalizer {
        return DeletionStep::Done;
    }
    let conditions = hcp
        .status
        .as_ref()
        .map_or(&[][..], |status| &status.conditions);
    let is_cleaned_up = is_true(conditions, Type::CloudResourcesDestroyed.as_str());
    let waited = Duration::try_from(now.duration_since(since.0)).unwrap_or_default();
    if is_cleaned_up || !is_cleanup_enabled || waited > CLEANUP_TIMEOUT {
        DeletionStep::RemoveFinalizer
    } else {
        DeletionStep::Wait
    }
}

/// Adds or removes the finalizer, with a resource version precondition.
pub(super) async fn set_finalizer(
    client: &kube::Client,
    hcp: &HostedControlPlane,
    has_finalizer: bool,
) -> Result<(), Error> {
    let namespace = hcp.metadata.namespace.as_deref().unwrap_or_default();
    let name = hcp.metadata.name.as_deref().unwrap_or_default();
    let mut finalizers = hcp.metadata.finalizers.clone().unwrap_or_default();
    finalizers.retain(|finalizer| finalizer != FINALIZER);
    if has_finalizer {
        finalizers.push(FINALIZER.to_owned());
    }
    let patch = json!({ "metadata": {
        "resourceVersion": hcp.metadata.resource_version,
        "finalizers": finalizers,
    } });
    let api: Api<HostedControlPlane> = Api::namespaced(client.clone(), namespace);
    let patched = api
        .patch(name, &PatchParams::default(), &Patch::Merge(&patch))
        .await;
    patched.map(drop).map_err(|source| Error::Write {
        object: format!("{namespace}/{name}"),
        source,
    })
}
