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
use crate::karpenter_operator::version::{Cluster, Outcome, Wanted, refusal, updates, wanted};

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
    let wanted = match wanted(given(class), &shared.versions) {
        Ok(wanted) => wanted,
        Err(problem) => return none(&Outcome::Failed(problem), None),
    };
    let found = match &wanted {
        Wanted::OfCluster => Ok(Arc::clone(&shared.release)),
        Wanted::Version(version) => find(ctx, version, shared).await,
    };
    resolved(class, &wanted, found, &shared.versions)
}

/// The version that a class names.
fn given(class: &OpenshiftEc2NodeClass) -> Option<&str> {
    class.spec.version.as_deref().filter(|it| !it.is_empty())
}

/// What becomes of a release that was found: nodes cannot have each one. Pure.
fn resolved(
    class: &OpenshiftEc2NodeClass,
    wanted: &Wanted,
    found: Result<Arc<Release>, String>,
    versions: &Cluster,
) -> Resolved {
    let status = class.status.as_ref();
    let current: Option<Version> = status.and_then(|it| it.version.as_ref()?.parse().ok());
    let refusal = refusal(wanted, current.as_ref(), versions);
    let release = match found {
        Ok(release) => release,
        Err(problem) => return none(&Outcome::Failed(problem), refusal.as_deref()),
    };
    let outcome = match given(class) {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::karpenter_operator::fixtures;
    use crate::karpenter_operator::ignition::fixtures::shared;

    /// A class that names a version, and whose nodes have another one.
    fn class(version: Option<&str>, current: Option<&str>) -> OpenshiftEc2NodeClass {
        let mut class = fixtures::class("a", &json!({ "version": version }));
        class.status = serde_json::from_value(json!({ "version": current })).unwrap();
        class
    }

    /// The control plane has rolled out 4.20.3. Nodes get no release that is refused, although there is one.
    #[test]
    fn a_release_that_nodes_cannot_have_is_not_used() {
        let versions = shared("us-east-1").versions;
        for (name, version, current, expected) in [
            ("an older patch version", "4.20.1", None, true),
            ("back by a patch version", "4.20.1", Some("4.20.2"), true),
            ("up to the control plane", "4.20.2", Some("4.19.1"), true),
            ("three minor versions older", "4.17.1", None, true),
            ("four minor versions older", "4.16.1", None, false),
            ("newer by a patch version", "4.20.4", None, false),
            ("newer by a minor version", "4.21.0", None, false),
            ("back by a minor version", "4.19.1", Some("4.20.2"), false),
        ] {
            let class = class(Some(version), current);
            let wanted = wanted(Some(version), &versions).unwrap();
            let found = Ok(fixtures::release(version));
            let Resolved { release, updates } = resolved(&class, &wanted, found, &versions);
            let used = release.map(|it| it.version.to_string());
            assert_eq!(used.as_deref(), expected.then_some(version), "{name}");
            let [resolution, skew] = updates;
            assert!(resolution.is_met, "{name}: there is a release");
            assert_eq!(skew.is_met, expected, "{name}");
        }
    }

    /// The release of the control plane is never refused, whatever the nodes had before.
    #[test]
    fn a_class_without_a_version_follows_the_control_plane() {
        let shared = shared("us-east-1");
        for version in [None, Some(""), Some("4.20.3")] {
            for current in [None, Some("4.19.1"), Some("4.21.0")] {
                let class = class(version, current);
                let wanted = wanted(version, &shared.versions).unwrap();
                assert_eq!(wanted, Wanted::OfCluster);
                let found = Ok(Arc::clone(&shared.release));
                let resolved = resolved(&class, &wanted, found, &shared.versions);
                let used = resolved.release.map(|it| it.version.to_string());
                assert_eq!(used.as_deref(), Some("4.20.3"), "{version:?} {current:?}");
                assert!(resolved.updates.iter().all(|it| it.is_met));
            }
        }
    }

    #[test]
    fn a_release_that_is_not_found_is_reported_with_its_skew() {
        let versions = shared("us-east-1").versions;
        for (version, is_supported) in [("4.20.1", true), ("4.21.0", false)] {
            let class = class(Some(version), None);
            let wanted = wanted(Some(version), &versions).unwrap();
            let found = Err("the channel has no such release".to_owned());
            let Resolved { release, updates } = resolved(&class, &wanted, found, &versions);
            assert!(release.is_none(), "{version}");
            let [resolution, skew] = updates;
            assert_eq!(resolution.reason, "ResolutionFailed");
            assert_eq!(resolution.message, "the channel has no such release");
            assert_eq!(skew.is_met, is_supported, "{version}");
        }
    }
}
