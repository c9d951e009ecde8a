//! Whether the release can be had and is supported, and whether it may follow the one that runs.

use api::annotations::cluster::{FORCE_UPGRADE_TO, SKIP_RELEASE_IMAGE_VALIDATION};
use api::conditions::{ClusterCondition, ReadCondition as _, Status, find};
use api::hypershift::v1beta1::HostedControlPlane;
use payload::skew::{self, Cluster, Limits};
use payload::{Release, Version};

use super::Verdict;
use crate::hosted_cluster::facts::{Facts, ReleaseIs};

/// Components without which there is no control plane.
const NEEDED: [&str; 3] = ["cluster-capi-controllers", "etcd", "hyperkube"];

/// Whether an upgrade may begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Gate {
    Open,
    Shut(String),
}

/// `ValidReleaseImage`.
pub(super) fn verdict(facts: &Facts) -> Verdict {
    let releases = [Some(&facts.release), facts.control_plane_release.as_ref()];
    for release in releases.into_iter().flatten() {
        let release = match release {
            ReleaseIs::Read(release) => release,
            ReleaseIs::Unreadable(error) => return unreadable(error),
            ReleaseIs::NoPullSecret => return no_pull_secret(facts),
        };
        if let Err(missing) = release.require(&NEEDED) {
            let message =
                format!("{missing}: it is not a release that a control plane can be made of");
            return Verdict::bad("InvalidImage", message);
        }
    }
    match facts
        .release
        .read()
        .map(|release| supported(facts, release))
    {
        Some(Err(refused)) => Verdict::bad("InvalidImage", format!("the release {refused}")),
        Some(Ok(())) | None => Verdict::Good,
    }
}

fn unreadable(error: &payload::Error) -> Verdict {
    Verdict::bad(error.condition_reason(), support::error::chain(error))
}

fn no_pull_secret(facts: &Facts) -> Verdict {
    let (namespace, name) = (&facts.id.namespace, &facts.cluster.spec.pull_secret.name);
    let message = format!(
        "the release cannot be read: spec.pullSecret names the Secret {namespace}/{name}, which is not there or has \
         no usable {}: create it",
        payload::pull_secret::KEY
    );
    Verdict::bad("SecretNotFound", message)
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

/// Whether the wanted release may take the place of the one that runs: the guest may have said that it may not.
pub(crate) fn gate(facts: &Facts) -> Gate {
    let (Some(control_plane), Some(wanted)) = (&facts.control_plane, facts.release.read()) else {
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
    if current.is_some_and(|current| current.minor() == wanted.version.minor()) {
        return Gate::Open;
    }
    Gate::Shut(format!(
        "the cluster says that it cannot be upgraded to {}: {}: mend that, or set the annotation {} to {image}",
        wanted.version,
        refusal.message,
        FORCE_UPGRADE_TO.key()
    ))
}
