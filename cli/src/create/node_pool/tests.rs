//! Node pools of each platform, and what a hosted cluster refuses.

use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use api::hypershift::v1beta1::node_pool::NodePool as Kind;
use clap::Parser;
use serde_json::{Value, json};

use super::checks::{self, Architecture};
use super::*;
use crate::hosted::bare_cluster;

const SUBNET: &str = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/net/subnets/s";

const FLAVOR: &str = "--openstack-node-flavor=m1.large";
const PORT: &str = "--openstack-node-additional-port=network-id:00000000-0000-0000-0000-000000000001,vnic-type:direct";

#[derive(Debug, Parser)]
struct Line {
    #[command(subcommand)]
    pool: NodePool,
}

fn parse(platform: &str, flags: &[&str]) -> Result<NodePool, clap::Error> {
    let words = ["nodepool", platform, "--name=p", "--cluster-name=a"];
    Ok(Line::try_parse_from(words.iter().chain(flags))?.pool)
}

fn object(pool: &NodePool, cluster: Option<&HostedCluster>) -> anyhow::Result<Value> {
    let release = "registry.example.com/release:1";
    match pool {
        NodePool::Agent(of) => of.common.object(&of.platform, release, cluster),
        NodePool::Aws(of) => of.common.object(&of.platform, release, cluster),
        NodePool::Azure(of) => of.common.object(&of.platform, release, cluster),
        NodePool::Kubevirt(of) => of.common.object(&of.platform, release, cluster),
        NodePool::OpenStack(of) => of.common.object(&of.platform, release, cluster),
        NodePool::PowerVs(of) => of.common.object(&of.platform, release, cluster),
    }
}

/// A HostedCluster with these fields beside those that each has.
fn cluster(platform: &Value, status: &Value) -> HostedCluster {
    let mut object = bare_cluster("a");
    object["spec"]["infraID"] = json!("a-12345");
    object["spec"]["platform"] = platform.clone();
    object["spec"]["dns"] = json!({ "baseDomain": "example.com" });
    if !status.is_null() {
        object["status"] = status.clone();
    }
    serde_json::from_value(object).unwrap()
}

fn none() -> Value {
    json!({ "type": "None" })
}

#[test]
fn each_platform_has_its_fields() {
    let subnet = format!("--nodepool-subnet-id={SUBNET}");
    for (platform, flags, pointer, expected) in [
        (
            "agent",
            vec!["--agentLabelSelector=size in (s,m)"],
            "/spec/platform/agent/agentLabelSelector/matchExpressions/0/key",
            json!("size"),
        ),
        (
            "agent",
            vec![],
            "/spec/management/upgradeType",
            json!("InPlace"),
        ),
        (
            "aws",
            vec!["--subnet-id=subnet-1"],
            "/spec/platform/aws/subnet/id",
            json!("subnet-1"),
        ),
        (
            "azure",
            vec![&*subnet, "--arch=arm64"],
            "/spec/platform/azure/vmSize",
            json!("Standard_D4ps_v5"),
        ),
        (
            "azure",
            vec![&*subnet, "--availability-zone=2", "--image-generation=Gen1"],
            "/spec/platform/azure",
            json!({
                "vmSize": "Standard_D4s_v5",
                "image": {
                    "type": "AzureMarketplace",
                    "azureMarketplace": { "imageGeneration": "Gen1" },
                },
                "osDisk": { "sizeGiB": 120, "diskStorageAccountType": "Premium_LRS" },
                "subnetID": SUBNET,
                "availabilityZone": "2",
            }),
        ),
        (
            "kubevirt",
            vec!["--root-volume-size=64"],
            "/spec/platform/kubevirt/rootVolume/persistent/size",
            json!("64Gi"),
        ),
        (
            "kubevirt",
            vec![
                "--additional-network=name:ns/net",
                "--attach-default-network=false",
            ],
            "/spec/platform/kubevirt/additionalNetworks",
            json!([{ "name": "ns/net" }]),
        ),
        (
            "openstack",
            vec![
                FLAVOR,
                PORT,
                "--openstack-node-image-name=rhcos",
                "--openstack-node-availability-zone=az1",
            ],
            "/spec/platform/openstack",
            json!({
                "flavor": "m1.large",
                "imageName": "rhcos",
                "availabilityZone": "az1",
                "additionalPorts": [
                    { "network": { "id": "00000000-0000-0000-0000-000000000001" }, "vnicType": "direct" },
                ],
            }),
        ),
        (
            "powervs",
            vec!["--processors=2", "--proc-type=dedicated"],
            "/spec/platform/powervs",
            json!({
                "systemType": "s922", "processorType": "dedicated", "processors": 2, "memoryGiB": 32,
            }),
        ),
        ("powervs", vec![], "/spec/arch", json!("ppc64le")),
    ] {
        let object = object(&parse(platform, &flags).unwrap(), None).unwrap();
        assert_eq!(
            object.pointer(pointer),
            Some(&expected),
            "{platform} {flags:?}"
        );
        serde_json::from_value::<Kind>(object).unwrap();
    }
}

#[test]
fn the_cluster_completes_what_flags_do_not_say() {
    let aws = json!({
        "type": "AWS",
        "aws": {
            "region": "us-east-1",
            "cloudProviderConfig": { "vpc": "vpc-1", "subnet": { "id": "subnet-9" } },
            "rolesRef": {
                "ingressARN": "", "imageRegistryARN": "", "storageARN": "", "networkARN": "",
                "kubeCloudControllerARN": "", "nodePoolManagementARN": "", "controlPlaneOperatorARN": "",
            },
        },
    });
    let on_aws = cluster(&aws, &Value::Null);
    let pool = parse("aws", &[]).unwrap();
    let found = object(&pool, Some(&on_aws)).unwrap();
    let fields = &found["spec"]["platform"]["aws"];
    assert_eq!(fields["subnet"]["id"], "subnet-9");
    assert_eq!(fields["instanceProfile"], "a-12345-worker");
    for (platform, flag) in [("aws", "--subnet-id"), ("azure", "--nodepool-subnet-id")] {
        let error = object(&parse(platform, &[]).unwrap(), None).unwrap_err();
        assert!(error.to_string().contains(flag), "{error}");
    }
}

#[test]
fn additional_ports_are_refused_in_subnets_of_the_user() {
    let identity = json!({ "name": "a", "cloudName": "openstack" });
    let filter = json!([{ "filter": { "name": "nodes" } }]);
    for (subnets, is_refused) in [(json!([]), false), (filter, true)] {
        let openstack = json!({ "identityRef": identity, "subnets": subnets });
        let platform = json!({ "type": "OpenStack", "openstack": openstack });
        let found = cluster(&platform, &Value::Null);
        let pool = parse("openstack", &[FLAVOR, PORT]).unwrap();
        assert_eq!(object(&pool, Some(&found)).is_err(), is_refused);
        let pool = parse("openstack", &[FLAVOR]).unwrap();
        object(&pool, Some(&found)).unwrap();
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let subnet = format!("--nodepool-subnet-id={SUBNET}");
    for (platform, flags) in [
        ("azure", vec!["--root-disk-size=8"]),
        ("azure", vec!["--marketplace-publisher=p"]),
        ("azure", vec!["--availability-zone=4"]),
        ("kubevirt", vec!["--root-volume-size=8"]),
        ("kubevirt", vec!["--root-volume-access-modes=Never"]),
        ("kubevirt", vec!["--network-multiqueue=Perhaps"]),
        ("openstack", vec![]),
        ("openstack", vec!["--openstack-node-flavor="]),
        (
            "openstack",
            vec![FLAVOR, "--openstack-node-availability-zone=nova:host"],
        ),
        ("powervs", vec!["--processors=0"]),
        ("agent", vec!["--replicas=-1"]),
        ("agent", vec!["--memory=1Gi"]),
    ] {
        parse(platform, &flags).unwrap_err();
    }
    for (platform, flags, words) in [
        (
            "azure",
            vec![&*subnet, "--diagnostics-storage-account-type=UserManaged"],
            "needs --diagnostics-storage-account-uri",
        ),
        (
            "azure",
            vec![&*subnet, "--diagnostics-storage-account-uri=https://a"],
            "needs --diagnostics-storage-account-type=UserManaged",
        ),
        (
            "kubevirt",
            vec!["--attach-default-network=false"],
            "add one with --additional-network",
        ),
        (
            "kubevirt",
            vec!["--additional-network=net"],
            "write NAMESPACE/NAME",
        ),
        (
            "openstack",
            vec![FLAVOR, "--openstack-node-additional-port=vnic-type:direct"],
            "network-id is missing",
        ),
        (
            "openstack",
            vec![FLAVOR, "--arch=arm64"],
            "--arch arm64: node pools on OpenStack are amd64 only",
        ),
        ("agent", vec!["--agentLabelSelector=a b"], "write KEY=VALUE"),
    ] {
        let error = object(&parse(platform, &flags).unwrap(), None).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn a_cluster_takes_machines_of_its_platform_and_of_its_release() {
    let known = cluster(
        &none(),
        &json!({
            "payloadArch": "ARM64",
            "version": {
                "desired": { "version": "4.21.0", "image": "registry.example.com/release:2" },
                "observedGeneration": 1,
                "availableUpdates": null,
                "history": [
                    {
                        "state": "Partial", "startedTime": "2030-01-01T00:00:00Z", "completionTime": null,
                        "version": "4.21.0", "image": "registry.example.com/release:2", "verified": false,
                    },
                    {
                        "state": "Completed", "startedTime": "2030-01-01T00:00:00Z",
                        "completionTime": "2030-01-01T01:00:00Z",
                        "version": "4.20.3", "image": "registry.example.com/release:1", "verified": false,
                    },
                ],
            },
        }),
    );
    let named = "HostedCluster clusters/a";
    let error = checks::platform::<AwsPoolArgs>(&known, named).unwrap_err();
    assert!(error.to_string().contains("on platform None"), "{error}");
    let arm64 = checks::architecture(&known, Arch::Arm64, named).unwrap();
    assert_eq!(arm64, Architecture::Checked);
    let error = checks::architecture(&known, Arch::Amd64, named).unwrap_err();
    assert!(error.to_string().contains("--arch amd64"), "{error}");
    let version = checks::rolled_out(&known).unwrap();
    assert_eq!(version.to_string(), "4.20.3");

    let young = cluster(&none(), &Value::Null);
    let unknown = checks::architecture(&young, Arch::Amd64, named).unwrap();
    assert_eq!(unknown, Architecture::Unknown);
    assert_eq!(checks::rolled_out(&young), None);
}
