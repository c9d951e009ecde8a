//! Settings of the machines that Karpenter makes on AWS.

pub mod kubelet;
pub mod selectors;
pub mod status;

use std::collections::BTreeMap;

use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crds::Kind;
use crate::schema::{atomic_list, rule, with};
use kubelet::KubeletSettings;
use selectors::{
    CapacityReservationSelectorTerm, SecurityGroupSelectorTerm, SubnetSelectorTerm,
    capacity_reservations, security_groups, subnets,
};
use status::OpenshiftEc2NodeClassStatus;

/// What the machines should be.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "karpenter.hypershift.openshift.io",
    version = "v1",
    kind = "OpenshiftEC2NodeClass",
    root = "OpenshiftEc2NodeClass",
    plural = "openshiftec2nodeclasses",
    doc = "Settings of the machines that Karpenter makes on AWS.",
    status = "OpenshiftEc2NodeClassStatus",
    derive = "PartialEq",
    shortname = "oec2nc",
    shortname = "oec2ncs",
    schema = "disabled",
    crates(kube_core = "::kube_core", kube = "::kube_core"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    )
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = with("minProperties", 1))]
pub struct OpenshiftEc2NodeClassSpec {
    /// What finds the subnets of machines. A subnet that one term fits is used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 30), transform = atomic_list, transform = subnets)]
    pub subnet_selector_terms: Vec<SubnetSelectorTerm>,
    /// What finds the security groups of machines. They get all groups that one term fits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 30), transform = atomic_list, transform = security_groups)]
    pub security_group_selector_terms: Vec<SecurityGroupSelectorTerm>,
    /// What finds the reservations of capacity that machines may take. Unset: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 30),
        transform = atomic_list,
        transform = capacity_reservations,
    )]
    pub capacity_reservation_selector_terms: Vec<CapacityReservationSelectorTerm>,
    /// Whether machines get a public address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_address_association: Option<IpAddressAssociation>,
    /// Tags of the machines, in addition to those of the hosted cluster.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(
        transform = with("minProperties", 1),
        transform = rule("self.all(key, key != '')", "a tag needs a key: fill it in"),
        transform = rule(
            "!('eks:eks-cluster-name' in self)",
            "the tag eks:eks-cluster-name is reserved: remove it"
        ),
        transform = rule(
            "!self.exists(key, key.startsWith('kubernetes.io/cluster'))",
            "tags that begin with kubernetes.io/cluster are reserved: remove them"
        ),
        transform = rule(
            "!('karpenter.sh/nodepool' in self)",
            "the tag karpenter.sh/nodepool is reserved: remove it"
        ),
        transform = rule(
            "!('karpenter.sh/nodeclaim' in self)",
            "the tag karpenter.sh/nodeclaim is reserved: remove it"
        ),
        transform = rule(
            "!('karpenter.k8s.aws/ec2nodeclass' in self)",
            "the tag karpenter.k8s.aws/ec2nodeclass is reserved: remove it"
        ),
    )]
    pub tags: BTreeMap<String, String>,
    /// The disks of machines. Unset: one encrypted disk of 120 GiB.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 50),
        transform = atomic_list,
        transform = rule(
            "self.filter(it, has(it.rootVolume) && it.rootVolume == 'RootVolume').size() < 2",
            "a machine has one root volume: set rootVolume to NotRootVolume for the others"
        ),
    )]
    pub block_device_mappings: Vec<BlockDeviceMapping>,
    /// How disks that belong to the host are used. Unset: they are left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_store_policy: Option<InstanceStorePolicy>,
    /// How often AWS measures machines. Unset: as AWS does by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monitoring: Option<DetailedMonitoring>,
    /// How processes on machines reach the metadata service of AWS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata_options: Option<MetadataOptions>,
    /// The OpenShift version of the nodes, such as 4.20.1. Unset: that of the hosted cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 5, max = 64),
        transform = rule(
            "self.matches('^(0|[1-9][0-9]*)([.](0|[1-9][0-9]*)){2}(-(0|[1-9][0-9]*|[0-9]*[-A-Za-z][-0-9A-Za-z]*)([.](0|[1-9][0-9]*|[0-9]*[-A-Za-z][-0-9A-Za-z]*))*)?([+][-0-9A-Za-z]+([.][-0-9A-Za-z]+)*)?$')",
            "version must be a semantic version, such as 4.20.1"
        ),
    )]
    pub version: Option<String>,
    /// Settings of the kubelet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubelet: Option<KubeletSettings>,
}

/// Whether machines get a public address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum IpAddressAssociation {
    /// They do.
    Public,
    /// As it is set for their subnet.
    SubnetDefault,
}

/// How disks that belong to the host are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum InstanceStorePolicy {
    /// They are one volume, for containers and the kubelet.
    #[serde(rename = "RAID0")]
    Raid0,
}

/// How often AWS measures machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum DetailedMonitoring {
    /// Every minute.
    Detailed,
    /// Every five minutes.
    Basic,
}

/// A disk of machines.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = with("minProperties", 1))]
pub struct BlockDeviceMapping {
    /// The name of the device, such as `/dev/xvda`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub device_name: Option<String>,
    /// The volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ebs: Option<BlockDevice>,
    /// Whether it is the disk with the operating system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_volume: Option<RootVolume>,
}

/// Whether a disk is the one with the operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum RootVolume {
    /// It is.
    RootVolume,
    /// It is not.
    NotRootVolume,
}

/// A volume of the Elastic Block Store.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    transform = with("minProperties", 1),
    transform = rule(
        "[has(self.snapshotID), has(self.volumeSizeGiB)].exists(given, given)",
        "a volume needs snapshotID or volumeSizeGiB: set one of them"
    ),
)]
pub struct BlockDevice {
    /// What happens to the volume when its machine is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_on_termination: Option<DeleteOnTermination>,
    /// Whether the volume is encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encrypted: Option<Encrypted>,
    /// Operations a second that the volume is provisioned for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<i64>,
    /// The key that encrypts the volume. Unset: the default of the account.
    #[serde(rename = "kmsKeyID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2048))]
    pub kms_key_id: Option<String>,
    /// The snapshot that the volume is made from.
    #[serde(
        rename = "snapshotID",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(length(min = 1, max = 256))]
    pub snapshot_id: Option<String>,
    /// MiB a second that the volume is provisioned for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<i64>,
    /// The size of the volume in GiB.
    #[serde(
        rename = "volumeSizeGiB",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 1, max = 65536))]
    pub volume_size_gib: Option<i64>,
    /// The kind of volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_type: Option<VolumeType>,
}

/// What happens to a volume when its machine is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum DeleteOnTermination {
    /// It is deleted.
    Delete,
    /// It is kept.
    Retain,
}

/// Whether a volume is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Encrypted {
    /// It is.
    Encrypted,
    /// It is not.
    Unencrypted,
}

/// A kind of volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum VolumeType {
    /// Magnetic disks of an earlier generation.
    Standard,
    /// Solid-state disks with provisioned operations, of an earlier generation.
    #[serde(rename = "IO1")]
    Io1,
    /// Solid-state disks with provisioned operations.
    #[serde(rename = "IO2")]
    Io2,
    /// Solid-state disks for general purposes, of an earlier generation.
    #[serde(rename = "GP2")]
    Gp2,
    /// Hard disks for data that is rarely read.
    #[serde(rename = "SC1")]
    Sc1,
    /// Hard disks with a high throughput.
    #[serde(rename = "ST1")]
    St1,
    /// Solid-state disks for general purposes.
    #[serde(rename = "GP3")]
    Gp3,
}

/// How processes on machines reach the metadata service of AWS.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = with("minProperties", 1))]
pub struct MetadataOptions {
    /// Whether the service can be reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<MetadataAccess>,
    /// The IP family of the service.
    #[serde(
        rename = "httpIPProtocol",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub http_ip_protocol: Option<MetadataIpProtocol>,
    /// How many hops an answer may take: 1 reaches processes of the machine, 2 pods as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub http_put_response_hop_limit: Option<i64>,
    /// Whether requests need a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_tokens: Option<MetadataTokens>,
}

/// Whether the metadata service can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum MetadataAccess {
    /// By HTTP.
    #[serde(rename = "HTTPEndpoint")]
    HttpEndpoint,
    /// It cannot.
    None,
}

/// The IP family of the metadata service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum MetadataIpProtocol {
    /// Version 4.
    #[serde(rename = "IPv4")]
    V4,
    /// Version 6.
    #[serde(rename = "IPv6")]
    V6,
}

/// Whether requests to the metadata service need a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum MetadataTokens {
    /// They do.
    Required,
    /// They do not.
    Optional,
}

impl Kind for OpenshiftEc2NodeClass {
    const DESCRIPTION: &'static str =
        "Settings of the machines that Karpenter makes on AWS. It is served by the hosted cluster.";
    const REQUIRED: &'static [&'static str] = &["spec"];
}
