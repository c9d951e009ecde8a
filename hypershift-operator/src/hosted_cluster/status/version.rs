//! Which release the cluster runs, and which it ran.

use api::hypershift::v1beta1::HostedControlPlaneStatus;
use api::hypershift::v1beta1::versions::{ClusterVersionStatus, ReleaseInfo, UpdateHistory};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::facts::Facts;

/// The condition of the control plane; before it has one, a rollout in progress.
pub(super) fn version(
    facts: &Facts,
    control_plane: Option<&HostedControlPlaneStatus>,
    now: Timestamp,
) -> Option<ClusterVersionStatus> {
    if let Some(reported) = control_plane.and_then(|it| it.version_status.clone()) {
        return Some(reported);
    }
    let old = facts
        .cluster
        .status
        .as_ref()
        .and_then(|it| it.version.clone());
    let Some(release) = facts.release.read() else {
        return old;
    };
    let desired = ReleaseInfo {
        version: release.version.to_string(),
        image: facts.cluster.spec.release.image.clone(),
        ..ReleaseInfo::default()
    };
    if let Some(old) = old.filter(|old| old.desired == desired) {
        return Some(old);
    }
    Some(ClusterVersionStatus {
        history: vec![UpdateHistory {
            state: "Partial".to_owned(),
            started_time: Time(whole_second(now)),
            completion_time: None,
            version: Some(desired.version.clone()),
            image: desired.image.clone(),
            verified: false,
            accepted_risks: None,
        }],
        desired,
        observed_generation: facts.cluster.metadata.generation.unwrap_or_default(),
        available_updates: None,
        conditional_updates: Vec::new(),
    })
}

/// The API has no parts of seconds.
pub(super) fn whole_second(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}
