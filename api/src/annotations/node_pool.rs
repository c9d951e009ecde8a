//! Annotations of a NodePool, and of what is made for it.

use super::typed::Annotation;

/// The NodePool that something belongs to, as `<namespace>/<name>`.
pub const NODE_POOL: Annotation<String> = Annotation::text("hypershift.openshift.io/nodePool");
/// The hash of the configuration that the nodes have.
pub const CURRENT_CONFIG: Annotation<String> =
    Annotation::text("hypershift.openshift.io/nodePoolCurrentConfig");
/// The hash of the configuration and the release that the nodes have.
pub const CURRENT_CONFIG_VERSION: Annotation<String> =
    Annotation::text("hypershift.openshift.io/nodePoolCurrentConfigVersion");
/// The hash of the configuration and the release that the nodes are to have.
pub const TARGET_CONFIG_VERSION: Annotation<String> =
    Annotation::text("hypershift.openshift.io/nodePoolTargetConfigVersion");
/// How many nodes are upgraded at a time where they are.
pub const MAX_UNAVAILABLE: Annotation<u64> =
    Annotation::number("hypershift.openshift.io/nodePoolMaxUnavailable");
/// The platform's template that the machines are made from.
pub const PLATFORM_MACHINE_TEMPLATE: Annotation<String> =
    Annotation::text("hypershift.openshift.io/nodePoolPlatformMachineTemplate");
/// The taints that the nodes are to have, as JSON.
pub const TAINTS: Annotation<String> = Annotation::text("hypershift.openshift.io/nodePoolTaints");
/// Whether a Secret holds the token of a configuration.
pub const IGNITION_CONFIG: Annotation<bool> =
    Annotation::flag("hypershift.openshift.io/ignition-config");
/// Whether a machine has fetched its configuration.
pub const IGNITION_REACHED: Annotation<bool> =
    Annotation::flag("hypershift.openshift.io/ignition-reached");
/// On the token's Secret: identifies the settings outside of the configuration that its hash covers.
pub const CONFIG_INPUTS: Annotation<String> =
    Annotation::text("hypershift.openshift.io/node-pool-config-inputs");
/// On a platform's template: identifies the machine that it stands for, whatever the template is called.
pub const TEMPLATE_HASH: Annotation<String> =
    Annotation::text("hypershift.openshift.io/node-pool-template-hash");
/// How the nodes are upgraded, on the token's Secret.
pub const UPGRADE_TYPE: Annotation<String> =
    Annotation::text("hypershift.openshift.io/node-pool-upgrade-type");
/// When the token was made.
pub const LAST_TOKEN_GENERATION_TIME: Annotation<String> =
    Annotation::text("hypershift.openshift.io/last-token-generation-time");
/// When the token's Secret may go.
pub const TOKEN_EXPIRATION: Annotation<String> =
    Annotation::text("hypershift.openshift.io/ignition-token-expiration-timestamp");
/// The release's version, on what is made of it.
pub const RELEASE_VERSION: Annotation<String> =
    Annotation::text("hypershift.openshift.io/release-version");
/// A patch of the virtual machines' template, as JSON.
pub const KUBEVIRT_VM_JSONPATCH: Annotation<String> =
    Annotation::text("hypershift.openshift.io/kubevirt-vm-jsonpatch");
/// Virtual machines are spread evenly over hosts. The operator records it for pools whose machines are made so.
pub const KUBEVIRT_TOPOLOGY_SPREAD_CONSTRAINTS: Annotation<()> = Annotation::presence(
    "hypershift.openshift.io/nodepool-supports-kubevirt-topology-spread-constraints",
);
/// Virtual machines may start from a disk for other clouds if the release has none for KubeVirt.
pub const ALLOW_UNSUPPORTED_KUBEVIRT_RHCOS_VARIANTS: Annotation<()> =
    Annotation::presence("hypershift.openshift.io/allow-unsupported-kubevirt-rhcos-variants");
/// `required`: the metadata service of machines requires a session token.
pub const EC2_METADATA_TOKENS: Annotation<String> =
    Annotation::text("hypershift.openshift.io/ec2-instance-metadata-http-tokens");
/// Machines are spare capacity, which AWS may take back at any time; `spec.platform.aws.placement` is the newer way.
pub const ENABLE_SPOT: Annotation<()> = Annotation::presence("hypershift.openshift.io/enable-spot");
/// The image of the load balancer in front of the API server, on nodes.
pub const HAPROXY_IMAGE: Annotation<String> =
    Annotation::text("hypershift.openshift.io/haproxy-image");
