//! Which resources a backup includes, as Velero names them: `<plural>.<group>`. Pure.
//!
//! Cluster API's kinds are named in both of their groups. Only one of them holds the objects of a hosted cluster, but a
//! schedule outlives a migration, and a manifest may be rendered without a look at the cluster. Velero ignores resources that
//! the API server does not have.

use api::group::{CapiTypes, core, infrastructure};
use api::hypershift::v1beta1::platform::PlatformType;

/// What becomes of the data of etcd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Data {
    /// It is in volumes, which are backed up.
    Volumes,
    /// The plugin has etcd make a snapshot.
    EtcdSnapshot,
}

const ALWAYS: [&str; 14] = [
    "serviceaccounts",
    "roles.rbac.authorization.k8s.io",
    "rolebindings.rbac.authorization.k8s.io",
    "pods",
    "configmaps",
    "secrets",
    "services",
    "routes.route.openshift.io",
    "priorityclasses.scheduling.k8s.io",
    "poddisruptionbudgets.policy",
    "hostedclusters.hypershift.openshift.io",
    "nodepools.hypershift.openshift.io",
    "hostedcontrolplanes.hypershift.openshift.io",
    "clusterdeployments.hive.openshift.io",
];
/// Volumes, and what uses them.
const WITH_VOLUMES: [&str; 4] = [
    "persistentvolumeclaims",
    "persistentvolumes",
    "deployments.apps",
    "statefulsets.apps",
];
const WITH_SNAPSHOT: [&str; 1] = ["namespaces"];
/// Cluster API's own kinds.
const CORE: [&str; 4] = ["clusters", "machinedeployments", "machinesets", "machines"];

/// The resources of a platform.
pub(super) fn included(platform: PlatformType, data: Data) -> Vec<String> {
    let owned = |names: &[&str]| {
        let names = names.iter().map(|&name| name.to_owned());
        names.collect::<Vec<_>>()
    };
    let mut resources = owned(&ALWAYS);
    match data {
        Data::Volumes => resources.extend(owned(&WITH_VOLUMES)),
        Data::EtcdSnapshot => resources.extend(owned(&WITH_SNAPSHOT)),
    }
    let (machines, others) = of_platform(platform);
    for types in [CapiTypes::Standard, CapiTypes::Private] {
        let (core, infrastructure) = (core(types), infrastructure(types));
        resources.extend(CORE.iter().map(|plural| format!("{plural}.{core}")));
        resources.extend(
            machines
                .iter()
                .map(|plural| format!("{plural}.{infrastructure}")),
        );
    }
    resources.extend(owned(others));
    resources
}

/// The plurals of a provider's kinds in Cluster API's group of infrastructure, and further resources.
fn of_platform(platform: PlatformType) -> (&'static [&'static str], &'static [&'static str]) {
    match platform {
        PlatformType::Aws => (&["awsclusters", "awsmachinetemplates", "awsmachines"], &[]),
        PlatformType::Azure => (
            &["azureclusters", "azuremachinetemplates", "azuremachines"],
            &[],
        ),
        PlatformType::OpenStack => (
            &[
                "openstackclusters",
                "openstackmachinetemplates",
                "openstackmachines",
            ],
            &[],
        ),
        PlatformType::Gcp => (&["gcpclusters", "gcpmachinetemplates", "gcpmachines"], &[]),
        PlatformType::PowerVs => (
            &[
                "ibmpowervsclusters",
                "ibmpowervsmachinetemplates",
                "ibmpowervsmachines",
            ],
            &[],
        ),
        PlatformType::KubeVirt => (
            &["kubevirtclusters", "kubevirtmachinetemplates"],
            &["datavolumes.cdi.kubevirt.io"],
        ),
        // Its group has no private name.
        PlatformType::Agent => (
            &[],
            &[
                "agentclusters.capi-provider.agent-install.openshift.io",
                "agentmachinetemplates.capi-provider.agent-install.openshift.io",
                "agentmachines.capi-provider.agent-install.openshift.io",
                "agents.agent-install.openshift.io",
                "infraenvs.agent-install.openshift.io",
                "nmstateconfigs.agent-install.openshift.io",
                "baremetalhosts.metal3.io",
            ],
        ),
        PlatformType::IbmCloud | PlatformType::None => (&[], &[]),
    }
}

/// Whether a list has resources of Cluster API in the groups of one type and none in those of the other.
pub(super) fn lacks(list: &[String], types: CapiTypes) -> bool {
    let has = |types: CapiTypes| {
        let suffix = format!(".{}", core(types));
        list.iter().any(|resource| resource.ends_with(&suffix))
    };
    has(types.other()) && !has(types)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(resources: &[String], resource: &str) -> bool {
        resources.iter().any(|it| it == resource)
    }

    #[test]
    fn kinds_of_cluster_api_are_included_in_both_groups() {
        let resources = included(PlatformType::Aws, Data::Volumes);
        for resource in [
            "clusters.cluster.x-k8s.io",
            "clusters.cluster.hypershift.openshift.io",
            "machines.cluster.hypershift.openshift.io",
            "awsmachines.infrastructure.cluster.x-k8s.io",
            "awsmachines.infrastructure.cluster.hypershift.openshift.io",
        ] {
            assert!(has(&resources, resource), "{resource}: {resources:?}");
        }
    }

    #[test]
    fn snapshots_of_etcd_leave_out_volumes() {
        let (volumes, snapshot) = (
            included(PlatformType::Azure, Data::Volumes),
            included(PlatformType::Azure, Data::EtcdSnapshot),
        );
        for resource in WITH_VOLUMES {
            assert!(has(&volumes, resource) && !has(&snapshot, resource));
        }
        assert!(has(&snapshot, "namespaces") && !has(&volumes, "namespaces"));
    }

    #[test]
    fn each_platform_has_its_own_kinds_and_no_resource_twice() {
        for (platform, own) in [
            (
                PlatformType::Aws,
                "awsclusters.infrastructure.cluster.x-k8s.io",
            ),
            (
                PlatformType::Azure,
                "azuremachines.infrastructure.cluster.x-k8s.io",
            ),
            (
                PlatformType::Gcp,
                "gcpmachines.infrastructure.cluster.x-k8s.io",
            ),
            (
                PlatformType::PowerVs,
                "ibmpowervsmachines.infrastructure.cluster.x-k8s.io",
            ),
            (
                PlatformType::OpenStack,
                "openstackmachines.infrastructure.cluster.x-k8s.io",
            ),
            (PlatformType::KubeVirt, "datavolumes.cdi.kubevirt.io"),
            (
                PlatformType::Agent,
                "agentmachines.capi-provider.agent-install.openshift.io",
            ),
            (PlatformType::None, "hostedclusters.hypershift.openshift.io"),
        ] {
            let resources = included(platform, Data::Volumes);
            assert!(has(&resources, own), "{platform:?}: {resources:?}");
            let mut once = resources.clone();
            once.sort();
            once.dedup();
            assert_eq!(once.len(), resources.len(), "{platform:?}");
            let is_of_aws = resources.iter().any(|it| it.starts_with("aws"));
            assert_eq!(is_of_aws, platform == PlatformType::Aws, "{platform:?}");
        }
    }

    #[test]
    fn lists_with_the_other_group_only_are_found() {
        let [standard, private] = [CapiTypes::Standard, CapiTypes::Private]
            .map(|types| format!("machines.{}", core(types)));
        for (list, expected) in [
            (vec![standard.clone()], true),
            (vec![standard, private.clone()], false),
            (vec![private], false),
            (vec!["secrets".to_owned()], false),
            (vec![], false),
        ] {
            assert_eq!(lacks(&list, CapiTypes::Private), expected, "{list:?}");
        }
    }
}
