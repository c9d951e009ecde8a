//! The plural of every kind that this system meets, and of words that each rule is for; all checked against the library.

use super::plural;

/// Kinds of Cluster API core, kubeadm, clusterctl and the Dev, AWS and GCP providers whose plural is not just an `s`.
const IRREGULAR_KINDS: [(&str, &str); 6] = [
    (
        "AWSClusterControllerIdentity",
        "awsclustercontrolleridentities",
    ),
    ("AWSClusterRoleIdentity", "awsclusterroleidentities"),
    ("AWSClusterStaticIdentity", "awsclusterstaticidentities"),
    ("ClusterClass", "clusterclasses"),
    ("IPAddress", "ipaddresses"),
    ("Metadata", "metadata"),
];

/// The others.
const REGULAR_KINDS: [&str; 62] = [
    "AWSCluster",
    "AWSClusterTemplate",
    "AWSFargateProfile",
    "AWSMachine",
    "AWSMachinePool",
    "AWSMachineTemplate",
    "AWSManagedCluster",
    "AWSManagedClusterTemplate",
    "AWSManagedControlPlane",
    "AWSManagedControlPlaneTemplate",
    "AWSManagedMachinePool",
    "Cluster",
    "ClusterResourceSet",
    "ClusterResourceSetBinding",
    "DevCluster",
    "DevClusterTemplate",
    "DevMachine",
    "DevMachinePool",
    "DevMachinePoolTemplate",
    "DevMachineTemplate",
    "DockerCluster",
    "DockerClusterTemplate",
    "DockerMachine",
    "DockerMachinePool",
    "DockerMachinePoolTemplate",
    "DockerMachineTemplate",
    "EKSConfig",
    "EKSConfigTemplate",
    "ExtensionConfig",
    "GCPCluster",
    "GCPClusterTemplate",
    "GCPMachine",
    "GCPMachinePool",
    "GCPMachineTemplate",
    "GCPManagedCluster",
    "GCPManagedClusterTemplate",
    "GCPManagedControlPlane",
    "GCPManagedControlPlaneTemplate",
    "GCPManagedMachinePool",
    "GCPManagedMachinePoolTemplate",
    "GKEConfig",
    "GKEConfigTemplate",
    "IPAddressClaim",
    "KubeadmConfig",
    "KubeadmConfigTemplate",
    "KubeadmControlPlane",
    "KubeadmControlPlaneTemplate",
    "Machine",
    "MachineDeployment",
    "MachineDrainRule",
    "MachineHealthCheck",
    "MachinePool",
    "MachineSet",
    "NodeadmConfig",
    "NodeadmConfigTemplate",
    "Provider",
    "ROSACluster",
    "ROSAControlPlane",
    "ROSAMachinePool",
    "ROSANetwork",
    "ROSAOCMRoleConfig",
    "ROSARoleConfig",
];

#[test]
fn computes_what_controllers_look_for() {
    for (kind, expected) in IRREGULAR_KINDS {
        assert_eq!(plural(kind), expected);
    }
    for kind in REGULAR_KINDS {
        assert_eq!(plural(kind), format!("{}s", kind.to_lowercase()));
    }
}

#[test]
fn follows_the_library_where_english_would_not() {
    let table = [
        ("Person", "people"),
        ("MachinePerson", "machinepeople"),
        ("Human", "humans"),
        ("NodeImage", "nodeimages"),
        ("Proxy", "proxies"),
        ("Gateway", "gateways"),
        ("Status", "statuses"),
        ("Alias", "aliases"),
        ("NodeAlias", "nodealias"),
        ("Axis", "axes"),
        ("NodeAxis", "nodeaxis"),
        ("Index", "indices"),
        ("NodeIndex", "nodeindices"),
        ("Basis", "bases"),
        ("Bus", "buses"),
        ("Batch", "batches"),
        ("Shelf", "shelves"),
        ("Life", "lives"),
        ("Radio", "radios"),
        ("Hero", "heroes"),
        ("Photo", "photos"),
        ("Quiz", "quizzes"),
        ("Datum", "data"),
        ("Medium", "media"),
        ("Criterion", "criteria"),
        ("Series", "series"),
        ("Machines", "machines"),
        ("News", "news"),
        ("Chassis", "chassis"),
        ("Directive", "directives"),
        ("Quota", "quotas"),
    ];
    for (kind, expected) in table {
        assert_eq!(plural(kind), expected, "{kind}");
    }
}
