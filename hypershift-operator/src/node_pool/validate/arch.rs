//! Whether machines of the pool's architecture exist: on the platform, and in the release.

use api::conditions::{PoolCondition, Status};
use api::hypershift::v1beta1::node_pool::Arch;
use api::hypershift::v1beta1::platform::PlatformType;
use payload::skew;

use super::{Blocked, Evaluation, kept};
use crate::node_pool::conditions::Conditions;
use crate::node_pool::facts::Facts;

pub(super) fn arch(
    facts: &Facts,
    found: &mut Evaluation,
    conditions: &mut Conditions,
) -> Result<(), Blocked> {
    let about = PoolCondition::ValidArchPlatform;
    let release = found.release.as_ref().ok_or(Blocked::Waiting)?;
    let spec = &facts.pool.spec;
    // A multi-architecture release does not help where the platform has no such machines.
    let refused = refusal(spec.platform.type_, spec.arch).or_else(|| {
        let refused = skew::architecture(release.architectures, spec.arch);
        refused.err().map(|it| it.to_string())
    });
    if let Some(message) = refused {
        let message = kept(facts, &message);
        conditions.set(about, Status::False, "InvalidArchPlatform", message);
        return Err(Blocked::Waiting);
    }
    conditions.good(about, "");
    Ok(())
}

/// Why a platform has no machines of this architecture.
fn refusal(platform: PlatformType, arch: Arch) -> Option<String> {
    let (platform, supported) = supported(platform)?;
    if supported.contains(&arch) {
        return None;
    }
    let supported: Vec<_> = supported.iter().copied().map(name).collect();
    let (arch, supported) = (name(arch), supported.join(", "));
    Some(format!(
        "spec.arch is {arch}, and machines of platform {platform} are {supported}: the architecture of a NodePool cannot \
         change, so create another NodePool with a supported one"
    ))
}

/// The name of a platform and the architectures of its machines. Nothing where they are not known.
fn supported(platform: PlatformType) -> Option<(&'static str, &'static [Arch])> {
    const COMMON: &[Arch] = &[Arch::Amd64, Arch::Arm64];
    match platform {
        PlatformType::Aws => Some(("AWS", COMMON)),
        PlatformType::Azure => Some(("Azure", COMMON)),
        PlatformType::Gcp => Some(("GCP", COMMON)),
        PlatformType::None => Some(("None", COMMON)),
        PlatformType::KubeVirt => Some(("KubeVirt", &[Arch::Amd64, Arch::S390x])),
        PlatformType::Agent => Some(("Agent", &[Arch::Amd64, Arch::Arm64, Arch::Ppc64le])),
        PlatformType::OpenStack => Some(("OpenStack", &[Arch::Amd64])),
        PlatformType::PowerVs => Some(("PowerVS", &[Arch::Ppc64le])),
        PlatformType::IbmCloud => None,
    }
}

/// As it is in the API.
fn name(arch: Arch) -> &'static str {
    match arch {
        Arch::Amd64 => "amd64",
        Arch::Arm64 => "arm64",
        Arch::Ppc64le => "ppc64le",
        Arch::S390x => "s390x",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use api::conditions::find;
    use api::hypershift::v1beta1::hosted_cluster::status::PayloadArch;

    use super::*;
    use crate::node_pool::fixtures;

    const ALL: [Arch; 4] = [Arch::Amd64, Arch::Arm64, Arch::Ppc64le, Arch::S390x];

    #[test]
    fn machines_have_the_architectures_of_their_platform() {
        let two = "amd64, arm64";
        for (platform, expected, supported) in [
            (PlatformType::Aws, [true, true, false, false], two),
            (PlatformType::Azure, [true, true, false, false], two),
            (PlatformType::None, [true, true, false, false], two),
            (PlatformType::Gcp, [true, true, false, false], two),
            (
                PlatformType::OpenStack,
                [true, false, false, false],
                "amd64",
            ),
            (
                PlatformType::KubeVirt,
                [true, false, false, true],
                "amd64, s390x",
            ),
            (
                PlatformType::Agent,
                [true, true, true, false],
                "amd64, arm64, ppc64le",
            ),
            (
                PlatformType::PowerVs,
                [false, false, true, false],
                "ppc64le",
            ),
            (PlatformType::IbmCloud, [true; 4], ""),
        ] {
            for (arch, expected) in ALL.into_iter().zip(expected) {
                let refused = refusal(platform, arch);
                assert_eq!(refused.is_none(), expected, "{platform:?} {arch:?}");
                let Some(message) = refused else { continue };
                let beginning = format!("spec.arch is {}, and machines of", name(arch));
                assert!(message.starts_with(&beginning), "{message}");
                assert!(message.contains(&format!("are {supported}:")), "{message}");
                let (platform, _) = super::supported(platform).unwrap();
                assert!(message.contains(&format!(" {platform} ")), "{message}");
            }
        }
    }

    #[test]
    fn the_platform_is_checked_before_the_release() {
        for (arch, payload, expected) in [
            (Arch::Amd64, PayloadArch::Amd64, None),
            (Arch::Arm64, PayloadArch::Multi, None),
            (
                Arch::Arm64,
                PayloadArch::Amd64,
                Some("multi-architecture release"),
            ),
            (Arch::S390x, PayloadArch::Multi, Some("platform AWS")),
            (Arch::S390x, PayloadArch::Amd64, Some("platform AWS")),
        ] {
            let mut facts = fixtures::facts();
            facts.pool.spec.arch = arch;
            let mut release = fixtures::release("4.22.0");
            release.architectures = payload;
            let mut found = Evaluation {
                release: Some(Arc::new(release)),
                ..Evaluation::default()
            };
            let mut conditions = Conditions::new(Vec::new(), Some(3), facts.now);
            let outcome = super::arch(&facts, &mut found, &mut conditions);
            let name = format!("{arch:?} {payload:?}");
            let blocked = expected.map(|_| Blocked::Waiting);
            assert_eq!(outcome.err(), blocked, "{name}");
            let condition = find(conditions.list(), PoolCondition::ValidArchPlatform).unwrap();
            let message = condition.message.as_deref().unwrap_or_default();
            assert!(message.contains(expected.unwrap_or_default()), "{message}");
            let reason = expected.map_or("AsExpected", |_| "InvalidArchPlatform");
            assert_eq!(condition.reason.as_deref(), Some(reason), "{name}");
        }
    }
}
