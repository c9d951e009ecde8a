//! Which release may follow which, and how far node pools may lag behind their control plane.

use api::hypershift::v1beta1::hosted_cluster::status::PayloadArch;
use api::hypershift::v1beta1::networking::NetworkType;
use api::hypershift::v1beta1::node_pool::Arch;
use api::hypershift::v1beta1::platform::PlatformType;

use crate::version::{Minor, Version};

/// How many minor versions nodes may be behind their control plane.
const MOST_BEHIND: u64 = 3;
/// The first release with OVN-Kubernetes, and the last that new clusters with OpenShift SDN may have had is the one before.
const FIRST_WITH_OVN: Minor = Minor::of_4(11);

/// Whether the oldest and the newest supported release are limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limits {
    /// They do.
    Kept,
    /// They do not: the cluster has the annotation `skip-release-image-validation`.
    Skipped,
}

/// The properties of a cluster that decide which release it may have.
#[derive(Debug, Clone, Copy)]
pub struct Cluster {
    /// The network.
    pub network: NetworkType,
    /// The platform.
    pub platform: PlatformType,
    /// Whether there are limits.
    pub limits: Limits,
}

/// Why a cluster or a pool may not have a release.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Too old.
    #[error("{desired} is older than the oldest supported release: choose one from {oldest} on", oldest = Minor::OLDEST)]
    TooOld {
        /// The desired version.
        desired: Version,
    },
    /// Too new.
    #[error("{desired} is newer than this operator supports: choose one up to {newest}, or update the operator", newest = Minor::NEWEST)]
    TooNew {
        /// The desired version.
        desired: Version,
    },
    /// Back to an older minor version.
    #[error("going back from {current} to {desired} is not possible: choose {minor} or newer", minor = current.minor())]
    Downgrade {
        /// The current version.
        current: Version,
        /// The desired version.
        desired: Version,
    },
    /// A cluster with OpenShift SDN stays where it is.
    #[error("a cluster with OpenShiftSDN cannot go from {current} to {desired}: it stays at {minor}", minor = current.minor())]
    UpgradeWithSdn {
        /// The current version.
        current: Version,
        /// The desired version.
        desired: Version,
    },
    /// OpenShift SDN is not in new clusters any more.
    #[error("a new cluster of {desired} cannot have OpenShiftSDN: choose OVNKubernetes")]
    Sdn {
        /// The desired version.
        desired: Version,
    },
    /// OVN-Kubernetes is not there yet.
    #[error("a cluster of {desired} cannot have OVNKubernetes: choose a release from 4.11 on")]
    Ovn {
        /// The desired version.
        desired: Version,
    },
    /// Nodes ahead of their control plane.
    #[error(
        "nodes of {desired} cannot join a control plane of {control_plane}: upgrade the control plane first"
    )]
    AheadOfControlPlane {
        /// The pool's.
        desired: Version,
        /// The control plane's.
        control_plane: Version,
    },
    /// Nodes too far behind.
    #[error(
        "nodes of {desired} are more than {MOST_BEHIND} minor versions behind the control plane's {control_plane}: upgrade the pool to {oldest} or newer"
    )]
    TooFarBehind {
        /// The pool's.
        desired: Version,
        /// The control plane's.
        control_plane: Version,
        /// The oldest compatible version.
        oldest: Minor,
    },
    /// The release has no images for the pool's machines.
    #[error(
        "the release is for {payload:?} only, and the pool's machines are {pool:?}: choose a multi-architecture release"
    )]
    Architecture {
        /// The release's.
        payload: PayloadArch,
        /// The pool's.
        pool: Arch,
    },
}

/// Whether a hosted cluster may have a release; `current` is the one it has rolled out, if any.
pub fn cluster_may_have(
    desired: &Version,
    current: Option<&Version>,
    cluster: &Cluster,
) -> Result<(), Refused> {
    within_limits(desired, cluster.limits)?;
    match current {
        Some(current) => {
            upward(desired, current)?;
            upgrade_with(desired, current, cluster.network)
        }
        None => begin_with(desired, *cluster),
    }
}

/// Whether a node pool may have a release: `current` is the one its nodes have, if any, and `control_plane` the one that the
/// hosted cluster has rolled out.
pub fn pool_may_have(
    desired: &Version,
    current: Option<&Version>,
    control_plane: &Version,
    cluster: &Cluster,
) -> Result<(), Refused> {
    cluster_may_have(desired, current, cluster)?;
    not_ahead(desired, control_plane)
}

/// Whether the nodes of a pool go with the control plane: not ahead of it, and not more than three minor versions behind.
pub fn skew(pool: &Version, control_plane: &Version) -> Result<(), Refused> {
    not_ahead(pool, control_plane)?;
    let newest = control_plane.minor();
    match newest.behind(pool.minor()) {
        Some(behind) if behind > MOST_BEHIND => Err(Refused::TooFarBehind {
            desired: pool.clone(),
            control_plane: control_plane.clone(),
            oldest: newest.back(MOST_BEHIND),
        }),
        _ => Ok(()),
    }
}

/// Whether a release has images for a pool's machines.
pub fn architecture(payload: PayloadArch, pool: Arch) -> Result<(), Refused> {
    let matches = match payload {
        PayloadArch::Multi => true,
        PayloadArch::Amd64 => pool == Arch::Amd64,
        PayloadArch::Arm64 => pool == Arch::Arm64,
        PayloadArch::Ppc64le => pool == Arch::Ppc64le,
        PayloadArch::S390x => pool == Arch::S390x,
    };
    matches
        .then_some(())
        .ok_or(Refused::Architecture { payload, pool })
}

fn within_limits(desired: &Version, limits: Limits) -> Result<(), Refused> {
    let (minor, desired) = (desired.minor(), desired.clone());
    match limits {
        Limits::Skipped => Ok(()),
        Limits::Kept if minor < Minor::OLDEST => Err(Refused::TooOld { desired }),
        Limits::Kept if minor > Minor::NEWEST => Err(Refused::TooNew { desired }),
        Limits::Kept => Ok(()),
    }
}

/// Patch versions go both ways; minor versions only up.
fn upward(desired: &Version, current: &Version) -> Result<(), Refused> {
    if desired.minor() >= current.minor() {
        return Ok(());
    }
    Err(Refused::Downgrade {
        current: current.clone(),
        desired: desired.clone(),
    })
}

fn upgrade_with(desired: &Version, current: &Version, network: NetworkType) -> Result<(), Refused> {
    if network != NetworkType::OpenShiftSdn || desired.minor() == current.minor() {
        return Ok(());
    }
    Err(Refused::UpgradeWithSdn {
        current: current.clone(),
        desired: desired.clone(),
    })
}

fn begin_with(desired: &Version, cluster: Cluster) -> Result<(), Refused> {
    let (ovn, desired) = (desired.minor() >= FIRST_WITH_OVN, desired.clone());
    match cluster.network {
        NetworkType::OpenShiftSdn if ovn && cluster.platform != PlatformType::PowerVs => {
            Err(Refused::Sdn { desired })
        }
        NetworkType::OvnKubernetes if !ovn => Err(Refused::Ovn { desired }),
        NetworkType::OpenShiftSdn
        | NetworkType::OvnKubernetes
        | NetworkType::Calico
        | NetworkType::Other => Ok(()),
    }
}

/// Neither by a minor nor by a patch version.
fn not_ahead(pool: &Version, control_plane: &Version) -> Result<(), Refused> {
    let (pool_minor, newest) = (pool.minor(), control_plane.minor());
    if (pool_minor, pool.patch()) <= (newest, control_plane.patch()) {
        return Ok(());
    }
    Err(Refused::AheadOfControlPlane {
        desired: pool.clone(),
        control_plane: control_plane.clone(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn version(text: &str) -> Version {
        text.parse().unwrap()
    }

    fn cluster(network: NetworkType) -> Cluster {
        Cluster {
            network,
            platform: PlatformType::Aws,
            limits: Limits::Kept,
        }
    }

    /// The beginning of the message; nothing if it is allowed.
    fn said(result: Result<(), Refused>) -> String {
        result
            .err()
            .map_or_else(String::new, |refused| refused.to_string())
    }

    #[test]
    fn clusters_upgrade_within_supported_versions() {
        let (ovn, sdn) = (NetworkType::OvnKubernetes, NetworkType::OpenShiftSdn);
        for (desired, current, network, expected) in [
            ("4.14.0", None, ovn, ""),
            ("5.1.0", None, ovn, ""),
            ("5.0.0", Some("4.22.3"), ovn, ""),
            ("4.23.1", Some("5.0.2"), ovn, ""),
            ("4.22.1", Some("4.22.9"), ovn, ""),
            (
                "4.13.9",
                None,
                ovn,
                "4.13.9 is older than the oldest supported release",
            ),
            (
                "5.2.0",
                None,
                ovn,
                "5.2.0 is newer than this operator supports",
            ),
            (
                "4.21.9",
                Some("4.22.0"),
                ovn,
                "going back from 4.22.0 to 4.21.9",
            ),
            (
                "4.22.0",
                Some("5.0.0"),
                ovn,
                "going back from 5.0.0 to 4.22.0",
            ),
            (
                "4.15.0",
                Some("4.14.1"),
                sdn,
                "a cluster with OpenShiftSDN cannot go from 4.14.1",
            ),
            ("4.14.2", Some("4.14.1"), sdn, ""),
            (
                "4.14.2",
                None,
                sdn,
                "a new cluster of 4.14.2 cannot have OpenShiftSDN",
            ),
            ("4.14.2", None, NetworkType::Calico, ""),
        ] {
            let current = current.map(version);
            let may = cluster_may_have(&version(desired), current.as_ref(), &cluster(network));
            let said = said(may);
            let fits = said.starts_with(expected) && said.is_empty() == expected.is_empty();
            assert!(fits, "{current:?} to {desired} with {network:?}: {said}");
        }
    }

    #[test]
    fn only_limits_can_be_skipped() {
        let skipped = |network| Cluster {
            limits: Limits::Skipped,
            ..cluster(network)
        };
        let (ovn, sdn) = (
            skipped(NetworkType::OvnKubernetes),
            skipped(NetworkType::OpenShiftSdn),
        );
        let power = Cluster {
            platform: PlatformType::PowerVs,
            ..sdn
        };
        let current = version("4.22.0");
        for (desired, current, cluster, allowed) in [
            ("5.9.0", None, &ovn, true),
            ("4.12.0", None, &ovn, true),
            ("4.10.0", None, &ovn, false),
            ("4.10.0", None, &sdn, true),
            ("4.12.0", None, &sdn, false),
            ("4.12.0", None, &power, true),
            ("4.21.0", Some(&current), &ovn, false),
        ] {
            let may = cluster_may_have(&version(desired), current, cluster);
            assert_eq!(may.is_ok(), allowed, "{desired}: {may:?}");
        }
    }

    #[test]
    fn nodes_are_up_to_three_minor_versions_behind() {
        for (pool, control_plane, expected) in [
            ("4.22.1", "4.22.1", ""),
            ("4.19.0", "4.22.1", ""),
            ("4.21.0", "5.1.0", ""),
            ("5.0.0", "4.23.0", ""),
            (
                "4.18.30",
                "4.22.1",
                "nodes of 4.18.30 are more than 3 minor versions behind",
            ),
            (
                "4.20.9",
                "5.1.0",
                "nodes of 4.20.9 are more than 3 minor versions behind",
            ),
            ("4.22.2", "4.22.1", "nodes of 4.22.2 cannot join"),
            ("5.0.0", "4.22.9", "nodes of 5.0.0 cannot join"),
            ("4.22.1", "4.22.1-rc.2", "nodes of 4.22.1 cannot join"),
        ] {
            let said = said(skew(&version(pool), &version(control_plane)));
            let fits = said.starts_with(expected) && said.is_empty() == expected.is_empty();
            assert!(fits, "{pool} with {control_plane}: {said}");
        }
        let far = said(skew(&version("4.15.0"), &version("5.1.0")));
        assert!(far.ends_with("upgrade the pool to 4.21 or newer"), "{far}");
    }

    #[test]
    fn a_pool_follows_its_cluster() {
        let cluster = cluster(NetworkType::OvnKubernetes);
        let control_plane = version("4.22.5");
        for (desired, current, allowed) in [
            ("4.22.5", None, true),
            ("4.22.6", None, false),
            ("4.21.0", Some("4.22.0"), false),
            ("4.22.3", Some("4.22.4"), true),
            ("4.13.0", None, false),
        ] {
            let current = current.map(version);
            let may = pool_may_have(
                &version(desired),
                current.as_ref(),
                &control_plane,
                &cluster,
            );
            assert_eq!(may.is_ok(), allowed, "{desired}: {may:?}");
        }
    }

    #[test]
    fn a_release_is_for_its_architectures() {
        for (payload, pool, allowed) in [
            (PayloadArch::Multi, Arch::S390x, true),
            (PayloadArch::Amd64, Arch::Amd64, true),
            (PayloadArch::Amd64, Arch::Arm64, false),
            (PayloadArch::Ppc64le, Arch::Ppc64le, true),
        ] {
            assert_eq!(
                architecture(payload, pool).is_ok(),
                allowed,
                "{payload:?} {pool:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_version_is_ahead_and_behind_at_once(a in 14_u64..24, x in 0_u64..4, b in 14_u64..24, y in 0_u64..4) {
            let (pool, control_plane) = (version(&format!("4.{a}.{x}")), version(&format!("4.{b}.{y}")));
            let both = [skew(&pool, &control_plane), skew(&control_plane, &pool)];
            // At most one of the two is ahead, and only equal versions are compatible in both directions.
            prop_assert_eq!(both.iter().all(Result::is_ok), (a, x) == (b, y));
            prop_assert!(a.abs_diff(b) > 3 || both.iter().any(Result::is_ok));
        }
    }
}
