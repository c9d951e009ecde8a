//! Whether the release can be read and is supported, and whether the upgrade to it is allowed.

use api::annotations::cluster::{FORCE_UPGRADE_TO, SKIP_RELEASE_IMAGE_VALIDATION};
use api::conditions::{ClusterCondition, ReadCondition as _, Status, find};
use api::hypershift::v1beta1::HostedControlPlane;
use payload::skew::{self, Cluster, Limits};
use payload::{Release, Version};

use super::Finding;
use crate::facts::{Facts, ReleaseIs};

/// Components that every control plane has.
const NEEDED: [&str; 3] = ["cluster-capi-controllers", "etcd", "hyperkube"];

/// Whether an upgrade may begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Gate {
    Open,
    Shut(String),
}

/// `ValidReleaseImage`.
pub(super) fn finding(facts: &Facts) -> Finding {
    let releases = [Some(&facts.release), facts.control_plane_release.as_ref()];
    for release in releases.into_iter().flatten() {
        let release = match release {
            ReleaseIs::Read(release) => release,
            ReleaseIs::Unreadable(error) => return unreadable(error),
            ReleaseIs::NoPullSecret => return no_pull_secret(facts),
        };
        if let Err(missing) = release.require(&NEEDED) {
            let message = format!("{missing}: the image is not a usable release");
            return Finding::bad("InvalidImage", message);
        }
    }
    match facts
        .release
        .read()
        .map(|release| supported(facts, release))
    {
        Some(Err(refused)) => Finding::bad("InvalidImage", format!("the release {refused}")),
        Some(Ok(())) | None => Finding::Good,
    }
}

fn unreadable(error: &payload::Error) -> Finding {
    Finding::bad(error.condition_reason(), support::error::chain(error))
}

fn no_pull_secret(facts: &Facts) -> Finding {
    let (namespace, name) = (&facts.id.namespace, &facts.cluster.spec.pull_secret.name);
    let message = format!(
        "failed to read the release: spec.pullSecret names Secret {namespace}/{name}, which does not exist or has no valid {}: create it",
        payload::pull_secret::KEY
    );
    Finding::bad("SecretNotFound", message)
}

fn supported(facts: &Facts, release: &Release) -> Result<(), skew::Refused> {
    let spec = &facts.cluster.spec;
    let skipped = SKIP_RELEASE_IMAGE_VALIDATION.is_set(facts.annotations());
    let cluster = Cluster {
        network: spec.networking.network_type,
        platform: spec.platform.type_,
        limits: if skipped {
            Limits::Skipped
        } else {
            Limits::Kept
        },
    };
    let current = facts.control_plane.as_ref().and_then(running);
    skew::cluster_may_have(&release.version, current.as_ref(), &cluster)
}

/// The version that the control plane runs, or ran last.
fn running(control_plane: &HostedControlPlane) -> Option<Version> {
    let status = control_plane.status.as_ref()?;
    let history = status
        .version_status
        .as_ref()
        .map(|it| it.history.as_slice());
    let completed = history
        .unwrap_or_default()
        .iter()
        .find(|it| it.state == "Completed");
    let version = completed.and_then(|it| it.version.as_deref());
    version.or(status.version.as_deref())?.parse().ok()
}

/// Whether an upgrade to the desired release is allowed: the guest may report that it is not upgradeable.
pub(crate) fn gate(facts: &Facts) -> Gate {
    let (Some(control_plane), Some(desired)) = (&facts.control_plane, facts.release.read()) else {
        return Gate::Open;
    };
    let image = &facts.cluster.spec.release.image;
    let unchanged = control_plane.spec.release_image == *image;
    let forced = FORCE_UPGRADE_TO
        .get(facts.annotations())
        .ok()
        .flatten()
        .as_ref()
        == Some(image);
    if unchanged || forced || facts.cluster.spec.control_plane_release.is_some() {
        return Gate::Open;
    }
    let conditions = control_plane
        .status
        .as_ref()
        .map(|it| it.conditions.as_slice());
    let upgradeable = find(
        conditions.unwrap_or_default(),
        ClusterCondition::ClusterVersionUpgradeable,
    );
    let Some(refusal) = upgradeable.filter(|it| it.status() == Status::False) else {
        return Gate::Open;
    };
    let current = running(control_plane);
    if current.is_some_and(|current| current.minor() == desired.version.minor()) {
        return Gate::Open;
    }
    Gate::Shut(format!(
        "the cluster reports that it cannot be upgraded to {}: {}: resolve that, or set annotation {} to {image}",
        desired.version,
        refusal.message,
        FORCE_UPGRADE_TO.key()
    ))
}
