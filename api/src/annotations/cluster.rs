//! Annotations by which a HostedCluster, and with it its HostedControlPlane, is run differently.
//!
//! They are for exceptions: what many clusters need has a field.

use std::collections::BTreeMap;

use kube_core::Duration;

use super::typed::{Annotation, AnnotationError, read_pairs};

type Presence = Annotation<()>;
type Flag = Annotation<bool>;
type Text = Annotation<String>;
type Number = Annotation<u64>;
type Span = Annotation<Duration>;
type List = Annotation<Vec<String>>;
type Pairs = Annotation<BTreeMap<String, String>>;

/// No certificates are generated: a user provides them.
pub const DISABLE_PKI_RECONCILIATION: Presence =
    Annotation::presence("hypershift.openshift.io/disable-pki-reconciliation");
/// Any release is taken, however old or new.
pub const SKIP_RELEASE_IMAGE_VALIDATION: Presence =
    Annotation::presence("hypershift.openshift.io/skip-release-image-validation");
/// The cluster is upgraded to this image although it says that it is not upgradeable.
pub const FORCE_UPGRADE_TO: Text = Annotation::text("hypershift.openshift.io/force-upgrade-to");
/// The image of the control plane operator, instead of the release's.
pub const CONTROL_PLANE_OPERATOR_IMAGE: Text =
    Annotation::text("hypershift.openshift.io/control-plane-operator-image");
/// Labels that this image is taken to have.
pub const CONTROL_PLANE_OPERATOR_IMAGE_LABELS: Pairs =
    Annotation::pairs("hypershift.openshift.io/control-plane-operator-image-labels");
/// Images of the release that are replaced, by name.
pub const IMAGE_OVERRIDES: Pairs = Annotation::pairs("hypershift.openshift.io/image-overrides");
/// A new value restarts every component of the control plane.
pub const RESTART_DATE: Text = Annotation::text("hypershift.openshift.io/restart-date");
/// How long the object stays after all else is gone.
pub const DESTROY_GRACE_PERIOD: Span =
    Annotation::duration("hypershift.openshift.io/destroy-grace-period");
/// What the guest made in the cloud is removed with the cluster.
pub const CLEANUP_CLOUD_RESOURCES: Flag =
    Annotation::flag("hypershift.openshift.io/cleanup-cloud-resources");
/// The control plane's namespace outlives the cluster.
pub const KEEP_NAMESPACE: Flag =
    Annotation::flag("hypershift.openshift.io/skip-delete-hosted-controlplane-namespace");
/// The priority class of what does not serve requests and keeps no state.
pub const CONTROL_PLANE_PRIORITY_CLASS: Text =
    Annotation::text("hypershift.openshift.io/control-plane-priority-class");
/// The priority class of what serves the API.
pub const API_CRITICAL_PRIORITY_CLASS: Text =
    Annotation::text("hypershift.openshift.io/api-critical-priority-class");
/// The priority class of etcd.
pub const ETCD_PRIORITY_CLASS: Text =
    Annotation::text("hypershift.openshift.io/etcd-priority-class");
/// Components that offer no profiling.
pub const DISABLE_PROFILING: List = Annotation::list("hypershift.openshift.io/disable-profiling");
/// How eagerly the API server collects garbage, in percent.
pub const KUBE_API_SERVER_GOGC: Number =
    Annotation::number("hypershift.openshift.io/kube-apiserver-gogc");
/// At how much memory the API server collects garbage harder.
pub const KUBE_API_SERVER_GOMEMLIMIT: Text =
    Annotation::text("hypershift.openshift.io/kube-apiserver-gomemlimit");
/// How much the API server logs.
pub const KUBE_API_SERVER_VERBOSITY: Number =
    Annotation::number("hypershift.openshift.io/kube-apiserver-verbosity-level");
/// How many reading requests the API server works on at a time.
pub const KUBE_API_SERVER_MAX_REQUESTS_INFLIGHT: Number =
    Annotation::number("hypershift.openshift.io/kube-apiserver-max-requests-inflight");
/// How many writing requests the API server works on at a time.
pub const KUBE_API_SERVER_MAX_MUTATING_REQUESTS_INFLIGHT: Number =
    Annotation::number("hypershift.openshift.io/kube-apiserver-max-mutating-requests-inflight");
/// How often the API server asks a client to reconnect.
pub const KUBE_API_SERVER_GOAWAY_CHANCE: Annotation<f64> =
    Annotation::fraction("hypershift.openshift.io/kube-apiserver-goaway-chance");
/// The longest life of a service account's token.
pub const KUBE_API_SERVER_TOKEN_MAX_EXPIRATION: Text =
    Annotation::text("hypershift.openshift.io/kube-apiserver-service-account-token-max-expiration");
/// The default ingress controller is reached from within the network only.
pub const PRIVATE_INGRESS_CONTROLLER: Flag =
    Annotation::flag("hypershift.openshift.io/private-ingress-controller");
/// Whether the default ingress controller's load balancer is internal or external.
pub const INGRESS_CONTROLLER_LOAD_BALANCER_SCOPE: Text =
    Annotation::text("hypershift.openshift.io/ingress-controller-load-balancer-scope");
/// Where the components run: on nodes of their own, or with others.
pub const TOPOLOGY: Text = Annotation::text("hypershift.openshift.io/topology");
/// The cluster has its nodes for what serves requests.
pub const CLUSTER_SCHEDULED: Flag = Annotation::flag("hypershift.openshift.io/cluster-scheduled");
/// Further labels of the nodes for what serves requests.
pub const REQUEST_SERVING_NODE_ADDITIONAL_SELECTOR: Pairs =
    Annotation::pairs("hypershift.openshift.io/request-serving-node-additional-selector");
/// There is no Cluster API, no autoscaler and no approver: a user provides the nodes.
pub const DISABLE_MACHINE_MANAGEMENT: Presence =
    Annotation::presence("hypershift.openshift.io/disable-machine-management");
/// Machines on AWS get public addresses.
pub const AWS_MACHINE_PUBLIC_IPS: Flag =
    Annotation::flag("hypershift.openshift.io/aws-machine-public-ips");
/// There is no ignition server.
pub const DISABLE_IGNITION_SERVER: Presence =
    Annotation::presence("hypershift.openshift.io/disable-ignition-server");
/// There are no objects for monitoring.
pub const DISABLE_MONITORING_SERVICES: Presence =
    Annotation::presence("hypershift.openshift.io/disable-monitoring-services");
/// The pod security level of the control plane's namespace.
pub const POD_SECURITY_LEVEL: Text =
    Annotation::text("hypershift.openshift.io/pod-security-admission-label-override");
/// The guest's pull secret is made once and then left to the guest.
pub const ENSURE_EXISTS_PULL_SECRET: Presence =
    Annotation::presence("hypershift.openshift.io/ensureexists-pullsecret-reconcile");
/// How long a node may be unhealthy before its machine is replaced.
pub const MACHINE_HEALTH_CHECK_TIMEOUT: Span =
    Annotation::duration("hypershift.openshift.io/machine-health-check-timeout");
/// How long a machine may take to become a node.
pub const MACHINE_HEALTH_CHECK_NODE_STARTUP_TIMEOUT: Span =
    Annotation::duration("hypershift.openshift.io/machine-health-check-node-startup-timeout");
/// With how many unhealthy machines none is replaced: a number or a percentage.
pub const MACHINE_HEALTH_CHECK_MAX_UNHEALTHY: Text =
    Annotation::text("hypershift.openshift.io/machine-health-check-max-unhealthy");
/// The cluster's size, whatever its number of nodes.
pub const CLUSTER_SIZE_OVERRIDE: Text =
    Annotation::text("hypershift.openshift.io/cluster-size-override");
/// The cluster's size follows from what its API server uses.
pub const RESOURCE_BASED_AUTOSCALING: Flag =
    Annotation::flag("hypershift.openshift.io/resource-based-cp-auto-scaling");
/// Names of the API server may be those of other services.
pub const SKIP_KAS_CONFLICT_SAN_VALIDATION: Presence =
    Annotation::presence("hypershift.openshift.io/skip-kas-conflict-san-validation");
/// The cluster was restored from a backup.
pub const RESTORED_FROM_BACKUP: Presence =
    Annotation::presence("hypershift.openshift.io/restored-from-backup");
/// The image of Karpenter for AWS, instead of the release's.
pub const KARPENTER_PROVIDER_AWS_IMAGE: Text =
    Annotation::text("hypershift.openshift.io/karpenter-provider-aws-image");
/// The instance profile of machines that Karpenter makes on AWS. Without it, they have the one of node pools.
pub const AWS_KARPENTER_DEFAULT_INSTANCE_PROFILE: Text =
    Annotation::text("hypershift.openshift.io/aws-karpenter-default-instance-profile");
/// On Azure, the pod network instance that gives the control plane addresses in the nodes' network. It is for clusters of ARO
/// that were created before `spec.platform.azure.private`.
pub const SWIFT_POD_NETWORK_INSTANCE: Text =
    Annotation::text("hypershift.openshift.io/swift-pod-network-instance");
/// Components that are scaled to nothing, so that a developer's own takes their place.
pub const DEBUG_DEPLOYMENTS: List = Annotation::list("hypershift.openshift.io/debug-deployments");

/// Prefix of annotations that change the resource requests of a container.
const RESOURCE_REQUEST_OVERRIDE: &str = "resource-request-override.hypershift.openshift.io/";

/// Annotations that the HostedControlPlane has because its HostedCluster has them.
const MIRRORED: [&str; 46] = [
    "hypershift.openshift.io/api-critical-priority-class",
    "hypershift.openshift.io/aws-karpenter-default-instance-profile",
    "hypershift.openshift.io/aws-kms-provider-image",
    "hypershift.openshift.io/aws-load-balancer-health-probe-mode",
    "hypershift.openshift.io/aws-load-balancer-subnets",
    "hypershift.openshift.io/aws-load-balancer-target-node-labels",
    "hypershift.openshift.io/azure-load-balancer-health-probe-mode",
    "hypershift.openshift.io/certified-operators-catalog-image",
    "hypershift.openshift.io/cleanup-cloud-resources",
    "hypershift.openshift.io/cluster-autoscaler-image",
    "hypershift.openshift.io/community-operators-catalog-image",
    "hypershift.openshift.io/control-plane-priority-class",
    "hypershift.openshift.io/debug-deployments",
    "hypershift.openshift.io/disable-ignition-server",
    "hypershift.openshift.io/disable-machine-management",
    "hypershift.openshift.io/disable-pki-reconciliation",
    "hypershift.openshift.io/disable-profiling",
    "hypershift.openshift.io/enable-metrics-forwarding",
    "hypershift.openshift.io/ensureexists-pullsecret-reconcile",
    "hypershift.openshift.io/etcd-priority-class",
    "hypershift.openshift.io/ibmcloud-kms-provider-image",
    "hypershift.openshift.io/ingress-controller-load-balancer-scope",
    "hypershift.openshift.io/karpenter-provider-aws-image",
    "hypershift.openshift.io/konnectivity-agent-image",
    "hypershift.openshift.io/konnectivity-server-image",
    "hypershift.openshift.io/kube-apiserver-goaway-chance",
    "hypershift.openshift.io/kube-apiserver-gogc",
    "hypershift.openshift.io/kube-apiserver-gomemlimit",
    "hypershift.openshift.io/kube-apiserver-max-mutating-requests-inflight",
    "hypershift.openshift.io/kube-apiserver-max-requests-inflight",
    "hypershift.openshift.io/kube-apiserver-service-account-token-max-expiration",
    "hypershift.openshift.io/kube-apiserver-verbosity-level",
    "hypershift.openshift.io/management-platform",
    "hypershift.openshift.io/olm-catalogs-is-registry-overrides",
    "hypershift.openshift.io/portieris-image",
    "hypershift.openshift.io/private-ingress-controller",
    "hypershift.openshift.io/redhat-marketplace-catalog-image",
    "hypershift.openshift.io/redhat-operators-catalog-image",
    "hypershift.openshift.io/request-serving-node-additional-selector",
    "hypershift.openshift.io/restart-date",
    "hypershift.openshift.io/restored-from-backup",
    "hypershift.openshift.io/shared-load-balancer-health-probe-path",
    "hypershift.openshift.io/shared-load-balancer-health-probe-port",
    "hypershift.openshift.io/swift-pod-network-instance",
    "hypershift.openshift.io/topology",
    "oauth.hypershift.openshift.io/login-url-override",
];

/// Prefixes of annotations that the HostedControlPlane has because its HostedCluster has them.
const MIRRORED_PREFIXES: [&str; 2] = [
    "idpoverrides.hypershift.openshift.io/",
    RESOURCE_REQUEST_OVERRIDE,
];

/// The resource requests of a container instead of the default ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceRequestOverride {
    /// The Deployment or `StatefulSet`.
    pub workload: String,
    /// The container.
    pub container: String,
    /// Amounts, by resource.
    pub requests: BTreeMap<String, String>,
}

/// Whether a HostedControlPlane gets this annotation from its HostedCluster.
pub fn is_mirrored(key: &str) -> bool {
    MIRRORED.contains(&key)
        || MIRRORED_PREFIXES.iter().any(|prefix| {
            key.strip_prefix(prefix)
                .is_some_and(|name| !name.is_empty())
        })
}

/// The resource requests of containers instead of the default ones, in the order of the keys
/// `resource-request-override.hypershift.openshift.io/<workload>.<container>`.
pub fn resource_request_overrides(
    annotations: &BTreeMap<String, String>,
) -> Result<Vec<ResourceRequestOverride>, AnnotationError> {
    let mut overrides = Vec::new();
    for (key, value) in annotations {
        let Some(name) = key.strip_prefix(RESOURCE_REQUEST_OVERRIDE) else {
            continue;
        };
        let (workload, container) = name.split_once('.').ok_or_else(|| AnnotationError {
            key: key.clone(),
            value: value.clone(),
            expected: "a workload, a dot and a container behind the slash of its key",
        })?;
        overrides.push(ResourceRequestOverride {
            workload: workload.to_owned(),
            container: container.to_owned(),
            requests: read_pairs(key, value)?,
        });
    }
    Ok(overrides)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cluster_annotations_needed_by_the_control_plane_are_copied() {
        for (key, expected) in [
            (RESTART_DATE.key(), true),
            (DISABLE_PROFILING.key(), true),
            ("idpoverrides.hypershift.openshift.io/google", true),
            ("idpoverrides.hypershift.openshift.io/", false),
            (FORCE_UPGRADE_TO.key(), false),
            (crate::annotations::SCOPE, false),
            ("example.com/owner", false),
        ] {
            assert_eq!(is_mirrored(key), expected, "{key}");
        }
    }

    #[test]
    fn requests_are_read_by_workload_and_container() {
        let annotations = |key: &str, value: &str| {
            BTreeMap::from([
                (
                    format!("{RESOURCE_REQUEST_OVERRIDE}{key}"),
                    value.to_owned(),
                ),
                ("example.com/owner".to_owned(), "team-a".to_owned()),
            ])
        };
        let read = resource_request_overrides(&annotations(
            "kube-apiserver.kube-apiserver",
            "cpu=2,memory=4Gi",
        ));
        let expected = ResourceRequestOverride {
            workload: "kube-apiserver".to_owned(),
            container: "kube-apiserver".to_owned(),
            requests: BTreeMap::from([
                ("cpu".to_owned(), "2".to_owned()),
                ("memory".to_owned(), "4Gi".to_owned()),
            ]),
        };
        assert_eq!(read, Ok(vec![expected]));
        for (key, value) in [("etcd", "cpu=1"), ("etcd.etcd", "much")] {
            let error = resource_request_overrides(&annotations(key, value)).unwrap_err();
            assert!(error.key.ends_with(key), "{error}");
        }
    }
}
