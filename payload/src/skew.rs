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

/// Whether the oldest and the newest supported release bound what is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limits {
    /// They do.
    Kept,
    /// They do not: somebody annotated the cluster with `skip-release-image-validation`.
    Skipped,
}

/// What of a cluster decides which release it may have.
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
    #[error("{wanted} is older than the oldest supported release: choose one from {oldest} on", oldest = Minor::OLDEST)]
    TooOld {
        /// What was asked for.
        wanted: Version,
    },
    /// Too new.
    #[error("{wanted} is newer than this operator supports: choose one up to {newest}, or update the operator", newest = Minor::NEWEST)]
    TooNew {
        /// What was asked for.
        wanted: Version,
    },
    /// Back to an older minor version.
    #[error("going back from {current} to {wanted} is not possible: choose {minor} or newer", minor = current.minor())]
    Downgrade {
        /// What there is.
        current: Version,
        /// What was asked for.
        wanted: Version,
    },
    /// A cluster with OpenShift SDN stays where it is.
    #[error("a cluster with OpenShiftSDN cannot go from {current} to {wanted}: it stays at {minor}", minor = current.minor())]
    UpgradeWithSdn {
        /// What there is.
        current: Version,
        /// What was asked for.
        wanted: Version,
    },
    /// OpenShift SDN is not in new clusters any more.
    #[error("a new cluster of {wanted} cannot have OpenShiftSDN: choose OVNKubernetes")]
    Sdn {
        /// What was asked for.
        wanted: Version,
    },
    /// OVN-Kubernetes is not there yet.
    #[error("a cluster of {wanted} cannot have OVNKubernetes: choose a release from 4.11 on")]
    Ovn {
        /// What was asked for.
        wanted: Version,
    },
    /// Nodes ahead of their control plane.
    #[error(
        "nodes of {wanted} cannot join a control plane of {control_plane}: upgrade the control plane first"
    )]
    AheadOfControlPlane {
        /// The pool's.
        wanted: Version,
        /// The control plane's.
        control_plane: Version,
    },
    /// Nodes too far behind.
    #[error(
        "nodes of {wanted} are more than {MOST_BEHIND} minor versions behind the control plane's {control_plane}: upgrade the pool to {oldest} or newer"
    )]
    TooFarBehind {
        /// The pool's.
        wanted: Version,
        /// The control plane's.
        control_plane: Version,
        /// The oldest that goes with it.
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
    wanted: &Version,
    current: Option<&Version>,
    cluster: &Cluster,
) -> Result<(), Refused> {
    within_limits(wanted, cluster.limits)?;
    match current {
        Some(current) => {
            upward(wanted, current)?;
            upgrade_with(wanted, current, cluster.network)
        }
        None => begin_with(wanted, cluster),
    }
}

/// Whether a node pool may have a release: `current` is the one its nodes have, if any, and `control_plane` the one that the
/// hosted cluster has rolled out.
pub fn pool_may_have(
    wanted: &Version,
    current: Option<&Version>,
    control_plane: &Version,
    cluster: &Cluster,
) -> Result<(), Refused> {
    cluster_may_have(wanted, current, cluster)?;
    not_ahead(wanted, control_plane)
}

/// Whether the nodes of a pool go with the control plane: not ahead of it, and not more than three minor versions behind.
pub fn skew(pool: &Version, control_plane: &Version) -> Result<(), Refused> {
    not_ahead(pool, control_plane)?;
    let newest = control_plane.minor();
    match newest.behind(pool.minor()) {
        Some(behind) if behind > MOST_BEHIND => Err(Refused::TooFarBehind {
            wanted: pool.clone(),
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

fn within_limits(wanted: &Version, limits: Limits) -> Result<(), Refused> {
    let (minor, wanted) = (wanted.minor(), wanted.clone());
    match limits {
        Limits::Skipped => Ok(()),
        Limits::Kept if minor < Minor::OLDEST => Err(Refused::TooOld { wanted }),
        Limits::Kept if minor > Minor::NEWEST => Err(Refused::TooNew { wanted }),
        Limits::Kept => Ok(()),
    }
}

/// Patch versions go both ways; minor versions only up.
fn upward(wanted: &Version, current: &Version) -> Result<(), Refused> {
    if wanted.minor() >= current.minor() {
        return Ok(());
    }
    Err(Refused::Downgrade {
        current: current.clone(),
        wanted: wanted.clone(),
    })
}

fn upgrade_with(wanted: &Version, current: &Version, network: NetworkType) -> Result<(), Refused> {
    if network != NetworkType::OpenShiftSdn || wanted.minor() == current.minor() {
        return Ok(());
    }
    Err(Refused::UpgradeWithSdn {
        current: current.clone(),
        wanted: wanted.clone(),
    })
}

fn begin_with(wanted: &Version, cluster: &Cluster) -> Result<(), Refused> {
    let (ovn, wanted) = (wanted.minor() >= FIRST_WITH_OVN, wanted.clone());
    match cluster.network {
        NetworkType::OpenShiftSdn if ovn && cluster.platform != PlatformType::PowerVs => {
            Err(Refused::Sdn { wanted })
        }
        NetworkType::OvnKubernetes if !ovn => Err(Refused::Ovn { wanted }),
        NetworkType::OpenShiftSdn
        | NetworkType::OvnKubernetes
        | NetworkType::Calico
        | NetworkType::Other => Ok(()),
    }
}

/// Neither by a minor nor by a patch version.
fn not_ahead(pool: &Version, control_plane: &Version) -> Result<(), Refused> {
    let (pool_minor, newest) = (pool.minor(), control_plane.minor());
    let ahead = match pool_minor == newest {
        true => pool.patch() > control_plane.patch(),
        false => pool_minor > newest,
    };
    if !ahead {
        return Ok(());
    }
    Err(Refused::AheadOfControlPlane {
        wanted: pool.clone(),
        control_plane: control_plane.clone(),
    })
}
