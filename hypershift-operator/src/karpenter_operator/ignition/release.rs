//! The release of a class: that of the hosted cluster, or the one that the update service has for its version.

use std::sync::Arc;

use api::hypershift::v1beta1::hosted_cluster::status::PayloadArch;
use api::karpenter::v1::OpenshiftEc2NodeClass;
use payload::{Release, Version};
use support::error::chain;

use super::shared::Shared;
use crate::karpenter_operator::classes::Update;
use crate::karpenter_operator::context::Context;
use crate::karpenter_operator::updates::{Question, default_channel};
use crate::karpenter_operator::version::{Outcome, Wanted, refusal, updates, wanted};

/// The release of new nodes, if there is one, and the conditions about it.
pub(super) struct Resolved {
    pub(super) release: Option<Arc<Release>>,
    pub(super) updates: [Update; 2],
}

/// Finds the release.
pub(super) async fn resolve(
    ctx: &Context,
    class: &OpenshiftEc2NodeClass,
    shared: &Shared,
) -> Resolved {
    let given = class.spec.version.as_deref().filter(|it| !it.is_empty());
    let wanted = match wanted(given, &shared.versions) {
        Ok(wanted) => wanted,
        Err(problem) => return none(&Outcome::Failed(problem), None),
    };
    let found = match &wanted {
        Wanted::OfCluster => Ok(Arc::clone(&shared.release)),
        Wanted::Version(version) => find(ctx, version, shared).await,
    };
    let status = class.status.as_ref();
    let current: Option<Version> = status.and_then(|it| it.version.as_ref()?.parse().ok());
    let refusal = refusal(&wanted, current.as_ref(), &shared.versions);
    let release = match found {
        Ok(release) => release,
        Err(problem) => return none(&Outcome::Failed(problem), refusal.as_deref()),
    };
    let outcome = match given {
        None => Outcome::NotSpecified,
        Some(_) => Outcome::Resolved(release.image.clone()),
    };
    Resolved {
        updates: updates(&outcome, refusal.as_deref()),
        release: Some(release).filter(|_| refusal.is_none()),
    }
}

fn none(outcome: &Outcome, refusal: Option<&str>) -> Resolved {
    Resolved {
        release: None,
        updates: updates(outcome, refusal),
    }
}

/// The release of a version. The error says why there is none.
async fn find(ctx: &Context, version: &Version, shared: &Shared) -> Result<Arc<Release>, String> {
    let question = Question {
        service: shared.update_service.clone(),
        channel: shared
            .channel
            .clone()
            .unwrap_or_else(|| default_channel(version)),
        arch: architecture(shared.release.architectures),
        version: version.clone(),
    };
    let image = ctx.updates.image(&question).await?;
    let release = shared.releases.get(&image, &shared.pull_secret).await;
    let release = release.map_err(|error| chain(&error))?;
    if release.version != *version {
        return Err(format!(
            "the update service has image {image} for {version}, and it is release {}",
            release.version
        ));
    }
    Ok(release)
}

/// What the update service calls the architectures of a release.
fn architecture(payload: PayloadArch) -> &'static str {
    match payload {
        PayloadArch::Multi => "multi",
        PayloadArch::Amd64 => "amd64",
        PayloadArch::Arm64 => "arm64",
        PayloadArch::Ppc64le => "ppc64le",
        PayloadArch::S390x => "s390x",
    }
}
