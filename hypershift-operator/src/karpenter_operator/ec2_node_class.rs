//! The EC2NodeClass of a class, as Karpenter reads it. Pure.

use std::collections::BTreeMap;

use api::karpenter::v1::kubelet::KubeletSettings;
use api::karpenter::v1::selectors::{
    CapacityReservationSelectorTerm, InstanceMatchCriteria, SecurityGroupSelectorTerm,
    SubnetSelectorTerm,
};
use api::karpenter::v1::{
    BlockDevice, BlockDeviceMapping, DeleteOnTermination, DetailedMonitoring, Encrypted,
    InstanceStorePolicy, IpAddressAssociation, MetadataAccess, MetadataIpProtocol, MetadataOptions,
    MetadataTokens, OpenshiftEc2NodeClass, OpenshiftEc2NodeClassSpec, RootVolume, VolumeType,
};
use kube::ResourceExt as _;
use serde_json::{Map, Value, json};

use super::kinds;

/// The disk of machines whose class has none: device and size in GiB.
const ROOT_DEVICE: &str = "/dev/xvda";
const ROOT_SIZE: i64 = 120;

/// What machines of a class get besides its own settings.
#[derive(Debug, Clone)]
pub(super) struct Inputs<'a> {
    pub(super) infra_id: &'a str,
    /// Where new machines find their configuration.
    pub(super) user_data: &'a str,
    /// Images, one for each architecture.
    pub(super) amis: &'a [String],
    pub(super) tags: &'a BTreeMap<String, String>,
    pub(super) instance_profile: &'a str,
}

/// The terms that find the subnets of a cluster, if a class has none.
pub(super) fn default_subnets(infra_id: &str) -> Vec<SubnetSelectorTerm> {
    let tags = [
        ("kubernetes.io/role/internal-elb".to_owned(), "1".to_owned()),
        (format!("kubernetes.io/cluster/{infra_id}"), "*".to_owned()),
    ];
    vec![SubnetSelectorTerm {
        tags: tags.into(),
        id: None,
    }]
}

/// The same for security groups.
pub(super) fn default_security_groups(infra_id: &str) -> Vec<SecurityGroupSelectorTerm> {
    let tags = [("karpenter.sh/discovery".to_owned(), infra_id.to_owned())];
    vec![SecurityGroupSelectorTerm {
        tags: tags.into(),
        id: None,
        name: None,
    }]
}

/// The EC2NodeClass of a class, which goes with it.
pub(super) fn object(class: &OpenshiftEc2NodeClass, inputs: &Inputs<'_>) -> Value {
    json!({
        "apiVersion": kinds::ec2_node_class().api_version,
        "kind": kinds::ec2_node_class().kind,
        "metadata": {
            "name": class.name_any(),
            "ownerReferences": [support::apply::owner(class)],
        },
        "spec": spec(&class.spec, inputs),
    })
}

fn spec(class: &OpenshiftEc2NodeClassSpec, inputs: &Inputs<'_>) -> Value {
    // Without `..`, so that new fields are not forgotten.
    let OpenshiftEc2NodeClassSpec {
        subnet_selector_terms,
        security_group_selector_terms,
        capacity_reservation_selector_terms,
        ip_address_association,
        // Merged with those of the cluster.
        tags: _,
        block_device_mappings,
        instance_store_policy,
        monitoring,
        metadata_options,
        // It decides the images and the user data.
        version: _,
        kubelet,
    } = class;
    let Inputs {
        infra_id,
        user_data,
        amis,
        tags,
        instance_profile,
    } = inputs;
    let subnets = if subnet_selector_terms.is_empty() {
        default_subnets(infra_id)
    } else {
        subnet_selector_terms.clone()
    };
    let groups = if security_group_selector_terms.is_empty() {
        default_security_groups(infra_id)
    } else {
        security_group_selector_terms.clone()
    };
    let reservations = capacity_reservation_selector_terms.iter();
    let images = amis.iter().map(|id| json!({ "id": id }));
    let mut fields = json!({
        "amiFamily": "Custom",
        "amiSelectorTerms": images.collect::<Value>(),
        "userData": user_data,
        "instanceProfile": instance_profile,
        "subnetSelectorTerms": subnets,
        "securityGroupSelectorTerms": groups,
        "blockDeviceMappings": disks(block_device_mappings),
        "tags": tags,
    });
    let optional = [
        (
            "capacityReservationSelectorTerms",
            (!capacity_reservation_selector_terms.is_empty())
                .then(|| reservations.map(reservation).collect()),
        ),
        (
            "associatePublicIPAddress",
            ip_address_association.and_then(public_address),
        ),
        (
            "instanceStorePolicy",
            instance_store_policy.map(|InstanceStorePolicy::Raid0| json!("RAID0")),
        ),
        (
            "detailedMonitoring",
            monitoring.map(|it| json!(it == DetailedMonitoring::Detailed)),
        ),
        ("metadataOptions", metadata_options.as_ref().map(metadata)),
        ("kubelet", kubelet.as_ref().map(self::kubelet)),
    ];
    set(&mut fields, optional);
    fields
}

fn reservation(term: &CapacityReservationSelectorTerm) -> Value {
    let CapacityReservationSelectorTerm {
        tags,
        id,
        owner_id,
        instance_match_criteria,
    } = term;
    let criteria = instance_match_criteria.map(|it| match it {
        InstanceMatchCriteria::Open => json!("open"),
        InstanceMatchCriteria::Targeted => json!("targeted"),
    });
    let mut fields = json!({});
    let optional = [
        ("tags", (!tags.is_empty()).then(|| json!(tags))),
        ("id", id.as_ref().map(|it| json!(it))),
        ("ownerID", owner_id.as_ref().map(|it| json!(it))),
        ("instanceMatchCriteria", criteria),
    ];
    set(&mut fields, optional);
    fields
}

/// Nothing where it is as the subnet says.
fn public_address(association: IpAddressAssociation) -> Option<Value> {
    match association {
        IpAddressAssociation::Public => Some(json!(true)),
        IpAddressAssociation::SubnetDefault => None,
    }
}

fn disks(mappings: &[BlockDeviceMapping]) -> Value {
    if mappings.is_empty() {
        return json!([{
            "deviceName": ROOT_DEVICE,
            "ebs": { "volumeSize": size(ROOT_SIZE), "volumeType": "gp3", "encrypted": true },
        }]);
    }
    mappings.iter().map(disk).collect()
}

fn disk(mapping: &BlockDeviceMapping) -> Value {
    let BlockDeviceMapping {
        device_name,
        ebs,
        root_volume,
    } = mapping;
    let mut fields = json!({});
    let optional = [
        ("deviceName", device_name.as_ref().map(|it| json!(it))),
        ("ebs", ebs.as_ref().map(volume)),
        (
            "rootVolume",
            root_volume.map(|it| json!(it == RootVolume::RootVolume)),
        ),
    ];
    set(&mut fields, optional);
    fields
}

fn volume(device: &BlockDevice) -> Value {
    let BlockDevice {
        delete_on_termination,
        encrypted,
        iops,
        kms_key_id,
        snapshot_id,
        throughput,
        volume_size_gib,
        volume_type,
    } = device;
    let mut fields = json!({});
    let optional = [
        (
            "deleteOnTermination",
            delete_on_termination.map(|it| json!(it == DeleteOnTermination::Delete)),
        ),
        (
            "encrypted",
            encrypted.map(|it| json!(it == Encrypted::Encrypted)),
        ),
        ("iops", iops.map(|it| json!(it))),
        ("kmsKeyID", kms_key_id.as_ref().map(|it| json!(it))),
        ("snapshotID", snapshot_id.as_ref().map(|it| json!(it))),
        ("throughput", throughput.map(|it| json!(it))),
        ("volumeSize", volume_size_gib.map(size)),
        ("volumeType", volume_type.map(|it| json!(type_name(it)))),
    ];
    set(&mut fields, optional);
    fields
}

fn size(gib: i64) -> Value {
    json!(format!("{gib}Gi"))
}

fn type_name(volume: VolumeType) -> &'static str {
    match volume {
        VolumeType::Standard => "standard",
        VolumeType::Io1 => "io1",
        VolumeType::Io2 => "io2",
        VolumeType::Gp2 => "gp2",
        VolumeType::Sc1 => "sc1",
        VolumeType::St1 => "st1",
        VolumeType::Gp3 => "gp3",
    }
}

fn metadata(options: &MetadataOptions) -> Value {
    let MetadataOptions {
        access,
        http_ip_protocol,
        http_put_response_hop_limit,
        http_tokens,
    } = options;
    let is_enabled = |it: bool| json!(if it { "enabled" } else { "disabled" });
    let tokens = http_tokens.map(|it| match it {
        MetadataTokens::Required => json!("required"),
        MetadataTokens::Optional => json!("optional"),
    });
    let mut fields = json!({});
    let optional = [
        (
            "httpEndpoint",
            access.map(|it| is_enabled(it == MetadataAccess::HttpEndpoint)),
        ),
        (
            "httpProtocolIPv6",
            http_ip_protocol.map(|it| is_enabled(it == MetadataIpProtocol::V6)),
        ),
        (
            "httpPutResponseHopLimit",
            http_put_response_hop_limit.map(|it| json!(it)),
        ),
        ("httpTokens", tokens),
    ];
    set(&mut fields, optional);
    fields
}

/// The settings by which Karpenter computes what fits on a machine. All settings reach the kubelet by its configuration.
fn kubelet(settings: &KubeletSettings) -> Value {
    let known = KubeletSettings {
        other: BTreeMap::new(),
        ..settings.clone()
    };
    json!(known)
}

fn set<const N: usize>(object: &mut Value, fields: [(&str, Option<Value>); N]) {
    let given = fields
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let given: Map<_, _> = given.collect();
    if let Some(object) = object.as_object_mut() {
        object.extend(given);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::karpenter_operator::fixtures;

    fn made(spec: &Value) -> Value {
        let class = fixtures::class("a", spec);
        let tags = BTreeMap::from([("team".to_owned(), "red".to_owned())]);
        let amis = ["ami-1".to_owned(), "ami-2".to_owned()];
        let inputs = Inputs {
            infra_id: "one-x7k2p",
            user_data: "{}",
            amis: &amis,
            tags: &tags,
            instance_profile: "profile",
        };
        object(&class, &inputs)
    }

    #[test]
    fn a_class_without_settings_gets_those_of_the_cluster() {
        let class = made(&json!({}));
        assert_eq!(class["metadata"]["name"], "a");
        let owner = &class["metadata"]["ownerReferences"][0];
        assert_eq!(
            (&owner["kind"], &owner["uid"]),
            (&json!("OpenshiftEC2NodeClass"), &json!("uid-a"))
        );
        assert_eq!(
            class["spec"],
            json!({
                "amiFamily": "Custom",
                "amiSelectorTerms": [{ "id": "ami-1" }, { "id": "ami-2" }],
                "userData": "{}",
                "instanceProfile": "profile",
                "tags": { "team": "red" },
                "subnetSelectorTerms": [{ "tags": {
                    "kubernetes.io/role/internal-elb": "1", "kubernetes.io/cluster/one-x7k2p": "*",
                } }],
                "securityGroupSelectorTerms": [{ "tags": { "karpenter.sh/discovery": "one-x7k2p" } }],
                "blockDeviceMappings": [{
                    "deviceName": "/dev/xvda",
                    "ebs": { "volumeSize": "120Gi", "volumeType": "gp3", "encrypted": true },
                }],
            })
        );
    }

    #[test]
    fn each_field_is_converted() {
        let volume = json!({ "ebs": {
            "volumeSizeGiB": 200, "volumeType": "IO2", "iops": 4000, "throughput": 125, "encrypted": "Unencrypted",
            "deleteOnTermination": "Retain", "kmsKeyID": "key", "snapshotID": "snap-1",
        }, "deviceName": "/dev/sdb", "rootVolume": "RootVolume" });
        let converted = json!({ "ebs": {
            "volumeSize": "200Gi", "volumeType": "io2", "iops": 4000, "throughput": 125, "encrypted": false,
            "deleteOnTermination": false, "kmsKeyID": "key", "snapshotID": "snap-1",
        }, "deviceName": "/dev/sdb", "rootVolume": true });
        for (field, given, made_of_it, expected) in [
            (
                "subnetSelectorTerms",
                json!([{ "id": "subnet-1" }, { "tags": { "a": "b" } }]),
                "subnetSelectorTerms",
                json!([{ "id": "subnet-1" }, { "tags": { "a": "b" } }]),
            ),
            (
                "securityGroupSelectorTerms",
                json!([{ "id": "sg-1" }, { "name": "workers" }]),
                "securityGroupSelectorTerms",
                json!([{ "id": "sg-1" }, { "name": "workers" }]),
            ),
            (
                "capacityReservationSelectorTerms",
                json!([
                    { "id": "cr-1" },
                    { "ownerID": "123456789012", "instanceMatchCriteria": "Targeted" },
                    { "tags": { "a": "b" }, "instanceMatchCriteria": "Open" },
                ]),
                "capacityReservationSelectorTerms",
                json!([
                    { "id": "cr-1" },
                    { "ownerID": "123456789012", "instanceMatchCriteria": "targeted" },
                    { "tags": { "a": "b" }, "instanceMatchCriteria": "open" },
                ]),
            ),
            (
                "ipAddressAssociation",
                json!("Public"),
                "associatePublicIPAddress",
                json!(true),
            ),
            (
                "ipAddressAssociation",
                json!("SubnetDefault"),
                "associatePublicIPAddress",
                Value::Null,
            ),
            (
                "instanceStorePolicy",
                json!("RAID0"),
                "instanceStorePolicy",
                json!("RAID0"),
            ),
            (
                "monitoring",
                json!("Detailed"),
                "detailedMonitoring",
                json!(true),
            ),
            (
                "monitoring",
                json!("Basic"),
                "detailedMonitoring",
                json!(false),
            ),
            (
                "blockDeviceMappings",
                json!([volume]),
                "blockDeviceMappings",
                json!([converted]),
            ),
            (
                "blockDeviceMappings",
                json!([{ "ebs": {
                    "volumeSizeGiB": 1, "encrypted": "Encrypted", "deleteOnTermination": "Delete", "volumeType": "Standard",
                }, "rootVolume": "NotRootVolume" }]),
                "blockDeviceMappings",
                json!([{ "ebs": {
                    "volumeSize": "1Gi", "encrypted": true, "deleteOnTermination": true, "volumeType": "standard",
                }, "rootVolume": false }]),
            ),
            (
                "metadataOptions",
                json!({
                    "access": "HTTPEndpoint", "httpIPProtocol": "IPv6", "httpPutResponseHopLimit": 2,
                    "httpTokens": "Required",
                }),
                "metadataOptions",
                json!({
                    "httpEndpoint": "enabled", "httpProtocolIPv6": "enabled", "httpPutResponseHopLimit": 2,
                    "httpTokens": "required",
                }),
            ),
            (
                "metadataOptions",
                json!({ "access": "None", "httpIPProtocol": "IPv4", "httpTokens": "Optional" }),
                "metadataOptions",
                json!({ "httpEndpoint": "disabled", "httpProtocolIPv6": "disabled", "httpTokens": "optional" }),
            ),
            (
                "kubelet",
                json!({ "maxPods": 100, "kubeReserved": { "cpu": "1" }, "topologyManagerPolicy": "restricted" }),
                "kubelet",
                json!({ "maxPods": 100, "kubeReserved": { "cpu": "1" } }),
            ),
        ] {
            let class = made(&json!({ field: given }));
            assert_eq!(class["spec"][made_of_it], expected, "{field}");
        }
    }

    #[test]
    fn each_type_of_volume_has_its_name() {
        for (given, expected) in [
            ("Standard", "standard"),
            ("IO1", "io1"),
            ("IO2", "io2"),
            ("GP2", "gp2"),
            ("SC1", "sc1"),
            ("ST1", "st1"),
            ("GP3", "gp3"),
        ] {
            let disk = json!([{ "ebs": { "volumeType": given, "volumeSizeGiB": 1 } }]);
            let class = made(&json!({ "blockDeviceMappings": disk }));
            let found = &class["spec"]["blockDeviceMappings"][0]["ebs"]["volumeType"];
            assert_eq!(found, expected, "{given}");
        }
    }

    /// What a class says of a version or of tags decides other inputs.
    #[test]
    fn fields_of_the_class_only_do_not_reach_karpenter() {
        let class = made(&json!({ "version": "4.20.1", "tags": { "karpenter.sh/nodepool": "x" } }));
        assert_eq!(class["spec"]["version"], Value::Null);
        assert_eq!(class["spec"]["tags"], json!({ "team": "red" }));
    }
}
