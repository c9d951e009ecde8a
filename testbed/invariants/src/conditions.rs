//! Conditions in the status of HostedClusters and NodePools.

use serde_json::Value;

use crate::exceptions::UNCONFIRMED;
use crate::{Finding, Invariant, Observed, items, text};

/// Type and status of a condition.
type Expected = (&'static str, &'static str);

/// True for every healthy cluster.
const TRUE: [&str; 16] = [
    "Available",
    "ConfigOperatorReconciliationSucceeded",
    "ClusterVersionReleaseAccepted",
    "EtcdAvailable",
    "IgnitionEndpointAvailable",
    "InfrastructureReady",
    "KubeAPIServerAvailable",
    "PlatformCredentialsFound",
    "ReconciliationActive",
    "ReconciliationSucceeded",
    "SupportedHostedCluster",
    "ValidConfiguration",
    "ValidHostedControlPlaneConfiguration",
    "ValidReleaseImage",
    "ValidReleaseInfo",
    "ExternalDNSReachable",
];
/// True for every healthy pool.
const POOL_TRUE: [&str; 8] = [
    "Ready",
    "ReconciliationActive",
    "SupportedVersionSkew",
    "UpdateManagementEnabled",
    "ValidArchPlatform",
    "ValidGeneratedPayload",
    "ValidMachineConfig",
    "ValidReleaseImage",
];
/// True for a pool with machines.
const POOL_WITH_MACHINES: [&str; 3] = [
    "AllMachinesReady",
    "AllNodesHealthy",
    "ReachedIgnitionEndpoint",
];
const POOL_FALSE: [&str; 3] = [
    "UpdatingConfig",
    "UpdatingPlatformMachineTemplate",
    "UpdatingVersion",
];

/// Values of the field for access or topology with which nodes reach the control plane by a private link.
const PRIVATE: [&str; 2] = ["Private", "PublicAndPrivate"];
/// True for a healthy private link on Azure.
const AZURE_PRIVATE_LINK: [&str; 5] = [
    "AzureInternalLoadBalancerAvailable",
    "AzurePLSCreated",
    "AzurePrivateDNSAvailable",
    "AzurePrivateEndpointAvailable",
    "AzurePrivateLinkServiceAvailable",
];

/// With workers, and without. Operators of the release run on workers, and the tunnel ends there.
const WITH_WORKERS: [(&str, &str, &str); 5] = [
    ("ClusterVersionAvailable", "True", "False"),
    ("ClusterVersionSucceeding", "True", "False"),
    ("ClusterVersionProgressing", "False", "True"),
    ("ControlPlaneConnectionAvailable", "True", "Unknown"),
    ("DataPlaneConnectionAvailable", "True", "Unknown"),
];
/// The reason of conditions about the version where the cluster has no ClusterVersion.
const OF_COMPONENTS: &str = "FromControlPlaneComponents";

pub(crate) fn of_cluster(observed: &Observed) -> Vec<Finding> {
    let Some(cluster) = &observed.hosted_cluster else {
        return Vec::new();
    };
    let mut expected = expected_of_cluster(cluster, has_workers(observed));
    if !observed.has_settled {
        expected.retain(|(kind, _)| WITH_WORKERS.iter().all(|(other, ..)| other != kind));
    }
    compare(
        Invariant::ClusterConditions,
        "HostedCluster",
        cluster,
        &expected,
    )
}

/// Whether the pools request nodes.
fn has_workers(observed: &Observed) -> bool {
    observed.node_pools.iter().any(|pool| replicas(pool) > 0)
}

fn expected_of_cluster(cluster: &Value, has_workers: bool) -> Vec<Expected> {
    let spec = &cluster["spec"];
    let mut expected: Vec<Expected> = TRUE.map(|kind| (kind, "True")).to_vec();
    // Without an external host name there is nothing to reach.
    if !has_external_name(spec) {
        expected.retain(|(kind, _)| *kind != "ExternalDNSReachable");
        expected.push(("ExternalDNSReachable", "Unknown"));
    }
    expected.extend(["Degraded", "Progressing"].map(|kind| (kind, "False")));
    expected.extend(WITH_WORKERS.map(|(kind, with, without)| {
        let is_met = has_workers || is_of_components(cluster, kind);
        (kind, if is_met { with } else { without })
    }));
    if spec["etcd"]["managementType"] == "Unmanaged" {
        expected.push(("UnmanagedEtcdAvailable", "True"));
    }
    if !spec["autoNode"].is_null() {
        expected.push(("AutoNodeEnabled", "True"));
    }
    expected.extend(of_platform(spec));
    expected
}

/// Whether a condition follows the components of the control plane, which do not need workers.
fn is_of_components(cluster: &Value, kind: &str) -> bool {
    let conditions = items(&cluster["status"]["conditions"]);
    let found = conditions.iter().find(|it| it["type"] == kind);
    found.is_some_and(|it| it["reason"] == OF_COMPONENTS)
}

fn has_external_name(spec: &Value) -> bool {
    items(&spec["services"]).iter().any(|service| {
        let strategy = &service["servicePublishingStrategy"];
        service["service"] == "APIServer"
            && ["loadBalancer", "route"]
                .iter()
                .any(|kind| !text(&strategy[kind]["hostname"]).is_empty())
    })
}

fn of_platform(spec: &Value) -> Vec<Expected> {
    let platform = &spec["platform"];
    let uses = |kind: &str| !spec["secretEncryption"]["kms"][kind].is_null();
    let kms = |kind: &str| if uses(kind) { "True" } else { "Unknown" };
    match text(&platform["type"]) {
        "AWS" => {
            let mut expected = vec![
                ("AWSDefaultSecurityGroupCreated", "True"),
                ("ValidAWSIdentityProvider", "True"),
                ("ValidAWSKMSConfig", kms("aws")),
                ("ValidOIDCConfiguration", "True"),
            ];
            let access = text(&platform["aws"]["endpointAccess"]);
            if PRIVATE.contains(&access) {
                expected.push(("AWSEndpointAvailable", "True"));
                expected.push(("AWSEndpointServiceAvailable", "True"));
            }
            expected
        }
        "Azure" => {
            let mut expected = vec![("ValidAzureKMSConfig", kms("azure"))];
            let azure = &platform["azure"];
            let is_private = PRIVATE.contains(&text(&azure["topology"]));
            // Other private connections are made outside of the operators.
            if is_private && azure["private"]["type"] == "PrivateLink" {
                expected.extend(AZURE_PRIVATE_LINK.map(|kind| (kind, "True")));
            }
            expected
        }
        "GCP" => [
            "GCPEndpointAvailable",
            "GCPServiceAttachmentAvailable",
            "ValidGCPCredentials",
            "ValidGCPWorkloadIdentity",
        ]
        .map(|kind| (kind, "True"))
        .to_vec(),
        "KubeVirt" if !platform["kubevirt"]["credentials"].is_null() => {
            vec![("ValidKubeVirtInfraNetworkPolicyRBAC", "True")]
        }
        _ => Vec::new(),
    }
}

pub(crate) fn of_pools(observed: &Observed) -> Vec<Finding> {
    if !observed.has_settled {
        return Vec::new();
    }
    let platform = observed.hosted_cluster.as_ref();
    let platform = platform.map_or("", |cluster| text(&cluster["spec"]["platform"]["type"]));
    let found = observed.node_pools.iter().flat_map(|pool| {
        let expected = expected_of_pool(pool, platform);
        compare(Invariant::PoolConditions, "NodePool", pool, &expected)
    });
    found.collect()
}

fn expected_of_pool(pool: &Value, platform: &str) -> Vec<Expected> {
    let spec = &pool["spec"];
    let by_spec = |enabled: bool| if enabled { "True" } else { "False" };
    let mut expected: Vec<Expected> = POOL_TRUE.map(|kind| (kind, "True")).to_vec();
    expected.extend(POOL_FALSE.map(|kind| (kind, "False")));
    if replicas(pool) > 0 {
        expected.extend(POOL_WITH_MACHINES.map(|kind| (kind, "True")));
    }
    if !items(&spec["tuningConfig"]).is_empty() {
        expected.push(("ValidTuningConfig", "True"));
    }
    if platform == "AWS" {
        expected.push(("AWSSecurityGroupAvailable", "True"));
    }
    if ["AWS", "KubeVirt", "PowerVS"].contains(&platform) {
        expected.push(("ValidPlatformImage", "True"));
    }
    let repairs = spec["management"]["autoRepair"] == true;
    expected.push((
        "AutoscalingEnabled",
        by_spec(!spec["autoScaling"].is_null()),
    ));
    // Repair begins when the first machine has its configuration, so a pool that never had one has none.
    if !repairs || replicas(pool) > 0 {
        expected.push(("AutorepairEnabled", by_spec(repairs)));
    }
    expected
}

/// The nodes that a pool requests at least.
fn replicas(pool: &Value) -> u64 {
    let spec = &pool["spec"];
    let least = spec["autoScaling"]["min"].as_u64();
    spec["replicas"].as_u64().or(least).unwrap_or(0)
}

pub(crate) fn architecture(observed: &Observed) -> Vec<Finding> {
    let Some(cluster) = &observed.hosted_cluster else {
        return Vec::new();
    };
    let found = text(&cluster["status"]["payloadArch"]);
    if ["AMD64", "ARM64", "Multi", "PPC64LE", "S390X"].contains(&found) {
        return Vec::new();
    }
    let problem = format!("status.payloadArch is {found:?}");
    vec![Finding::new(
        Invariant::PayloadArchitecture,
        name("HostedCluster", cluster),
        problem,
    )]
}

fn name(kind: &str, object: &Value) -> String {
    format!("{kind} {}", text(&object["metadata"]["name"]))
}

fn compare(
    invariant: Invariant,
    kind: &str,
    object: &Value,
    expected: &[Expected],
) -> Vec<Finding> {
    let conditions = items(&object["status"]["conditions"]);
    let differing = expected.iter().filter_map(|(kind, status)| {
        let is_unconfirmed = UNCONFIRMED.iter().any(|(other, _)| other == kind);
        let Some(found) = conditions.iter().find(|it| it["type"] == *kind) else {
            // What is missing is as unknown as what says so.
            if *status == "Unknown" || is_unconfirmed {
                return None;
            }
            return Some(format!("{kind} is missing, not {status}"));
        };
        let is_right = found["status"] == *status || is_unconfirmed && found["status"] == "Unknown";
        (!is_right).then(|| {
            let (reason, message) = (text(&found["reason"]), text(&found["message"]));
            let found = text(&found["status"]);
            format!("{kind} is {found}, not {status} ({reason}: {message})")
        })
    });
    differing
        .map(|problem| Finding::new(invariant, name(kind, object), problem))
        .collect()
}
