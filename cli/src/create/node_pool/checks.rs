//! Whether a hosted cluster may have a node pool: pure.

use anyhow::bail;
use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use payload::{Version, skew};

use super::platform::Machines;
use crate::create::cluster::{Arch, name_of};

/// What follows from looking at the hosted cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Architecture {
    /// The release has images for the machines.
    Checked,
    /// The cluster does not report yet what its release has images for.
    Unknown,
}

/// Refuses machines of another platform.
pub(super) fn platform<P: Machines>(cluster: &HostedCluster, named: &str) -> anyhow::Result<()> {
    let there = serde_json::to_value(cluster.spec.platform.type_)?;
    if there == P::KIND {
        return Ok(());
    }
    bail!(
        "{named} is on platform {}: its node pools cannot be on {}. Nothing was created",
        there.as_str().unwrap_or_default(),
        P::KIND
    )
}

/// Refuses machines that the release of the cluster has no images for.
pub(super) fn architecture(
    cluster: &HostedCluster,
    arch: Arch,
    named: &str,
) -> anyhow::Result<Architecture> {
    let status = cluster.status.as_ref();
    let Some(payload) = status.and_then(|status| status.payload_arch) else {
        return Ok(Architecture::Unknown);
    };
    match skew::architecture(payload, arch.into()) {
        Ok(()) => Ok(Architecture::Checked),
        Err(error) => bail!("--arch {} for {named}: {error}", name_of(arch)),
    }
}

/// The newest release that the cluster has rolled out.
pub(super) fn rolled_out(cluster: &HostedCluster) -> Option<Version> {
    let version = cluster.status.as_ref()?.version.as_ref()?;
    let mut history = version.history.iter();
    let completed = history.find(|update| update.state == "Completed")?;
    completed.version.as_deref()?.parse().ok()
}
