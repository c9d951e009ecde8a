//! What has to happen before the control plane goes: the guest gives back what it made in the cloud.

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

/// Holds the control plane until the guest has given back what it made.
const FINALIZER: &str = "hypershift.openshift.io/finalizer";
/// How long that may take.
const PATIENCE: Duration = Duration::from_mins(10);

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// The control plane is to be held when it is deleted.
    Hold,
    /// The control plane is being deleted and waits for the guest.
    Wait,
    /// The control plane may go.
    Release,
    /// It is being deleted, and nothing of ours holds it.
    Nothing,
    /// It is not being deleted.
    Reconcile,
}

/// What is due: pure.
pub(super) fn due(hcp: &HostedControlPlane, now: Timestamp) -> Due {
    let none = std::collections::BTreeMap::new();
    let annotations = hcp.metadata.annotations.as_ref().unwrap_or(&none);
    let cleans = CLEANUP_CLOUD_RESOURCES.is_true(annotations);
    let held = hcp
        .metadata
        .finalizers
        .iter()
        .flatten()
        .any(|finalizer| finalizer == FINALIZER);
    let Some(since) = &hcp.metadata.deletion_timestamp else {
        return if cleans && !held {
            Due::Hold
        } else {
            Due::Reconcile
        };
    };
    if !held {
        return Due::Nothing;
    }
    let conditions = hcp
        .status
        .as_ref()
        .map_or(&[][..], |status| &status.conditions);
    let clean = is_true(conditions, Type::CloudResourcesDestroyed.as_str());
    let waited = Duration::try_from(now.duration_since(since.0)).unwrap_or_default();
    if clean || !cleans || waited > PATIENCE {
        Due::Release
    } else {
        Due::Wait
    }
}

/// Sets or removes the finalizer, if the object is still as it was read.
pub(super) async fn hold(
    client: &kube::Client,
    hcp: &HostedControlPlane,
    held: bool,
) -> Result<(), Error> {
    let namespace = hcp.metadata.namespace.as_deref().unwrap_or_default();
    let name = hcp.metadata.name.as_deref().unwrap_or_default();
    let mut finalizers = hcp.metadata.finalizers.clone().unwrap_or_default();
    finalizers.retain(|finalizer| finalizer != FINALIZER);
    if held {
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
