//! The stock managers that convert: what each is called, what it converts, and how it is run.

use api::group::{CapiTypes, GroupTable};

/// What makes a stock manager convert and do nothing else.
///
/// A manager serves its webhooks whether it leads or not, and its controllers only when it leads. So leader
/// election is enabled without permission to use the lease: it never leads, and tries three times an hour. It does not
/// write CRDs either, which only the installer writes.
pub const FLAGS: &[&str] = &[
    "--leader-elect",
    "--leader-elect-lease-duration=60m",
    "--leader-elect-renew-deadline=40m",
    "--leader-elect-retry-period=20m",
    "--skip-crd-migration-phases=StorageVersionMigration,CleanupManagedFields",
    "--insecure-diagnostics",
];

/// A stock manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Backend {
    Core,
    KubeadmBootstrap,
    KubeadmControlPlane,
}

// === impl Backend ===

impl Backend {
    pub(crate) const ALL: [Self; 3] = [
        Self::Core,
        Self::KubeadmBootstrap,
        Self::KubeadmControlPlane,
    ];

    /// Its name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::KubeadmBootstrap => "kubeadm-bootstrap",
            Self::KubeadmControlPlane => "kubeadm-control-plane",
        }
    }

    /// The groups whose kinds it converts, by their names in these types.
    pub(super) fn groups(self, table: &GroupTable, types: CapiTypes) -> Vec<String> {
        let prefixes: &[&str] = match self {
            // The group that all others are named after has no prefix of its own.
            Self::Core => &["cluster.", "addons.", "ipam.", "runtime."],
            Self::KubeadmBootstrap => &["bootstrap."],
            Self::KubeadmControlPlane => &["controlplane."],
        };
        let pairs = table.pairs().iter();
        let names = pairs.map(|pair| pair.name(types));
        names
            .filter(|name| prefixes.iter().any(|prefix| name.starts_with(prefix)))
            .map(str::to_owned)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_group_is_converted_by_one_backend_but_for_the_providers_own() {
        let table = GroupTable::default();
        let all = Backend::ALL.map(|backend| backend.groups(&table, CapiTypes::Private));
        let all = all.concat();
        let distinct: BTreeSet<&String> = all.iter().collect();
        assert_eq!(all.len(), distinct.len(), "{all:?}");
        let rest: Vec<&str> = table
            .pairs()
            .iter()
            .map(|pair| pair.name(CapiTypes::Private))
            .filter(|name| !all.iter().any(|one| one == name))
            .collect();
        assert_eq!(rest.len(), 1, "{rest:?}");
        assert!(rest[0].starts_with("infrastructure."), "{rest:?}");
    }
}
