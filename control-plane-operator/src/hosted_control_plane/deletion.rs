//! Deletion: stops the cluster version operator, and waits until the hosted cluster has cleaned up its cloud resources.
//!
//! The operator would bring back what is cleaned up. The cleanup begins with condition `CVOScaledDown`.

use std::time::Duration;

use api::annotations::cluster::CLEANUP_CLOUD_RESOURCES;
use api::conditions::ClusterCondition as Type;
use api::hypershift::v1beta1::HostedControlPlane;
use control_plane_component::Context;
use jiff::Timestamp;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::error::Error;
use super::status::{Evaluation, existing_condition};
use crate::components::cluster_version_operator::{NAME as OPERATOR, is_stopped};

/// Reasons with which the cleanup ends without success.
const TERMINAL: [&str; 2] = [
    "CloudResourcesCleanupSkipped",
    "CloudResourcesDeletionTimedOut",
];
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
    let destroyed = existing_condition(hcp, Type::CloudResourcesDestroyed);
    let is_cleaned_up = has_cleanup_ended(hcp) && !awaits_security_group(hcp);
    // The time begins again when the cleanup gets further.
    let progress = destroyed.or_else(|| existing_condition(hcp, Type::CvoScaledDown));
    let since = progress.map_or(since.0, |it| it.last_transition_time.0.max(since.0));
    let waited = Duration::try_from(now.duration_since(since)).unwrap_or_default();
    if is_cleaned_up || !is_cleanup_enabled || waited > CLEANUP_TIMEOUT {
        DeletionStep::RemoveFinalizer
    } else {
        DeletionStep::Wait
    }
}

/// Whether the hosted cluster has cleaned up its cloud resources, or has given up.
pub(super) fn has_cleanup_ended(hcp: &HostedControlPlane) -> bool {
    let destroyed = existing_condition(hcp, Type::CloudResourcesDestroyed);
    destroyed.is_some_and(|it| it.status == "True" || TERMINAL.contains(&it.reason.as_str()))
}

/// Whether there is a security group of nodes that can be deleted: AWS has to accept the cluster's tokens.
fn awaits_security_group(hcp: &HostedControlPlane) -> bool {
    let is = |type_: Type| existing_condition(hcp, type_).is_some_and(|it| it.status == "True");
    security_group(hcp).is_some()
        && is(Type::ValidAwsIdentityProvider)
        && !is(Type::AwsDefaultSecurityGroupDeleted)
}

/// The ID of the security group of nodes, if there is one.
pub(super) fn security_group(hcp: &HostedControlPlane) -> Option<&str> {
    let platform = hcp.status.as_ref()?.platform.as_ref()?;
    platform
        .aws
        .as_ref()?
        .default_worker_security_group_id
        .as_deref()
}

/// Whether the cluster version operator is stopped, if it should be.
pub(super) fn operator(context: &Context<'_>) -> Option<Evaluation> {
    if !is_stopped(context) {
        return None;
    }
    let type_ = Type::CvoScaledDown;
    let deployment = context.objects.get("apps", "Deployment", OPERATOR);
    let is_done = deployment.is_none_or(|it| {
        it["spec"]["replicas"] == 0
            && it["status"]["observedGeneration"] == it["metadata"]["generation"]
            && it["status"]["replicas"].as_i64().unwrap_or(0) == 0
    });
    if is_done {
        return Some(Evaluation {
            reason: "CVOScaledDown".to_owned(),
            message: format!("Deployment {OPERATOR} has no pods"),
            ..Evaluation::yes(type_)
        });
    }
    let message = format!("Waiting for the pods of Deployment {OPERATOR} to stop");
    Some(Evaluation::no(type_, "CVOScalingDown", message))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn control_plane(conditions: &[(Type, &str, &str, &str)]) -> HostedControlPlane {
        let conditions: Vec<_> = conditions
            .iter()
            .map(|(type_, status, reason, time)| {
                json!({
                    "type": type_.as_str(), "status": status, "reason": reason, "message": "",
                    "lastTransitionTime": time,
                })
            })
            .collect();
        let text = include_str!(
            "../../../control-plane-component/tests/data/base/hosted-control-plane.yaml"
        );
        let mut hcp: serde_json::Value = serde_saphyr::from_str(text).unwrap();
        hcp["metadata"]["annotations"] = json!({ CLEANUP_CLOUD_RESOURCES.key(): "true" });
        hcp["metadata"]["finalizers"] = json!([FINALIZER]);
        hcp["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z");
        hcp["status"] = json!({
            "ready": true,
            "initialized": true,
            "externalManagedControlPlane": true,
            "conditions": conditions,
        });
        serde_json::from_value(hcp).unwrap()
    }

    #[test]
    fn deletion_waits_for_the_end_of_the_cleanup() {
        let destroyed = Type::CloudResourcesDestroyed;
        let stopped = (
            Type::CvoScaledDown,
            "True",
            "CVOScaledDown",
            "2030-01-01T00:05:00Z",
        );
        let remaining = (
            destroyed,
            "False",
            "RemainingCloudResources",
            "2030-01-01T00:06:00Z",
        );
        let (wait, end) = (DeletionStep::Wait, DeletionStep::RemoveFinalizer);
        for (conditions, time, expected) in [
            (vec![], "2030-01-01T00:09:00Z", wait),
            (vec![], "2030-01-01T00:11:00Z", end),
            (vec![stopped], "2030-01-01T00:14:00Z", wait),
            (vec![stopped], "2030-01-01T00:16:00Z", end),
            (vec![stopped, remaining], "2030-01-01T00:15:30Z", wait),
            (vec![stopped, remaining], "2030-01-01T00:17:00Z", end),
            (
                vec![(
                    destroyed,
                    "True",
                    "CloudResourcesDestroyed",
                    "2030-01-01T00:00:00Z",
                )],
                "2030-01-01T00:00:01Z",
                end,
            ),
            (
                vec![(destroyed, "False", TERMINAL[0], "2030-01-01T00:00:00Z")],
                "2030-01-01T00:00:01Z",
                end,
            ),
            (
                vec![(destroyed, "False", "ErrorOccurred", "2030-01-01T00:00:00Z")],
                "2030-01-01T00:00:01Z",
                wait,
            ),
        ] {
            let step = next_step(&control_plane(&conditions), time.parse().unwrap());
            assert_eq!(step, expected, "{time} {conditions:?}");
        }
    }
}
