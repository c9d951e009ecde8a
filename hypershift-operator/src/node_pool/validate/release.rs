//! Whether the release can be read, and is compatible with the cluster and the machines.

use std::sync::Arc;

use api::annotations::cluster::SKIP_RELEASE_IMAGE_VALIDATION;
use api::conditions::{PoolCondition, Status};
use payload::Reason;
use payload::skew::{self, Limits};

use super::{Blocked, Evaluation, kept};
use crate::node_pool::conditions::Conditions;
use crate::node_pool::facts::Facts;

pub(super) fn image(
    facts: &Facts,
    found: &mut Evaluation,
    conditions: &mut Conditions,
) -> Result<(), Blocked> {
    let about = PoolCondition::ValidReleaseImage;
    let release = match &facts.release {
        Ok(release) => release,
        Err(unread) => {
            let in_progress = unread.reason == Reason::InProgress.as_str();
            if !in_progress {
                let message = kept(facts, &unread.message);
                conditions.set(about, Status::False, unread.reason.as_str(), message);
            } else if !conditions.has(about) {
                let message = "Waiting for the release image to be read";
                conditions.set(about, Status::Unknown, unread.reason.as_str(), message);
            }
            return Err(Blocked::Soon);
        }
    };
    let current = facts
        .pool
        .status
        .as_ref()
        .and_then(|it| it.version.as_deref());
    let current = current.and_then(|it| it.parse().ok());
    let annotations = facts
        .cluster
        .metadata
        .annotations
        .clone()
        .unwrap_or_default();
    let limits = if SKIP_RELEASE_IMAGE_VALIDATION.is_set(&annotations) {
        Limits::Skipped
    } else {
        Limits::Kept
    };
    let spec = &facts.cluster.spec;
    let cluster = skew::Cluster {
        network: spec.networking.network_type,
        platform: spec.platform.type_,
        limits,
    };
    // Without a known cluster version there is no constraint.
    let control_plane = facts.cluster_version.as_ref().unwrap_or(&release.version);
    let allowed = skew::pool_may_have(&release.version, current.as_ref(), control_plane, &cluster);
    if let Err(refused) = allowed {
        let message = kept(facts, &refused.to_string());
        conditions.set(about, Status::False, "InvalidImage", message);
        return Err(Blocked::Waiting);
    }
    found.release = Some(Arc::clone(release));
    conditions.good(
        about,
        format!(
            "using release {} ({})",
            release.version, facts.pool.spec.release.image
        ),
    );
    Ok(())
}

/// A version skew is reported; existing nodes keep running.
pub(super) fn skew(
    facts: &Facts,
    found: &mut Evaluation,
    conditions: &mut Conditions,
) -> Result<(), Blocked> {
    let about = PoolCondition::SupportedVersionSkew;
    let release = found.release.as_ref().ok_or(Blocked::Waiting)?;
    let Some(cluster) = &facts.cluster_version else {
        let message = "Waiting for the release of the HostedCluster to be known";
        conditions.set(about, Status::Unknown, "ValidationFailed", message);
        return Ok(());
    };
    match skew::skew(&release.version, cluster) {
        Ok(()) => conditions.good(about, "the release is compatible with the control plane"),
        Err(refused) => {
            conditions.set(about, Status::False, "UnsupportedSkew", refused.to_string())
        }
    }
    Ok(())
}
