//! Nodes come for pods that do not fit, go when no pod needs them, and are replaced when their class changes.

use anyhow::{Result, bail, ensure};
use serde_json::json;
use testbed::client::{Resource, status_code};
use testbed::cloud::EC2;
use testbed::conditions;

use super::auto_node::{AutoNode, Machine};
use crate::hosted_cluster::{autoscaled, cloud_controller};

const REQUESTS: Resource<'_> =
    Resource::new("certificates.k8s.io/v1", "certificatesigningrequests");
/// Signer of kubelets' serving certificates.
const SERVING: &str = "kubernetes.io/kubelet-serving";
/// The reason of an approval.
const APPROVED: &str = "KarpenterCSRApprove";
/// A tag of the class, and its disk in GiB.
const TAG: (&str, &str) = ("team", "red");
const DISK: u32 = 200;

/// A pod that has no room on the worker of the NodePool gets a node, which goes when the pod has gone.
pub(super) async fn come_and_go(auto_node: &AutoNode<'_>) -> Result<()> {
    let AutoNode { fixture, guest, .. } = auto_node;
    auto_node.makes_pool().await?;
    auto_node.class_is_ready().await?;
    autoscaled::two_pods_are_hungry(fixture, guest).await?;
    let what = "Karpenter makes a node for a pod that does not fit";
    let machine = auto_node.has_a_node(what, None).await?;
    auto_node.runs_pods(2).await?;
    guest.has_nodes(fixture, 2).await?;
    cloud_controller::initializes_nodes(fixture, guest).await?;
    auto_node.counts(1).await?;
    was_approved(auto_node, &machine).await?;
    auto_node.scales_pods(0).await?;
    let what = "consolidation removes the node, and its instance";
    auto_node.has_no_node(what).await?;
    guest.has_nodes(fixture, 1).await?;
    auto_node.counts(0).await
}

/// A node whose class gets a tag and another disk is replaced by one that has them, while the pod needs one. Gives the new
/// one.
pub(super) async fn are_replaced_when_their_class_changes(
    auto_node: &AutoNode<'_>,
) -> Result<Machine> {
    let AutoNode { fixture, guest, .. } = auto_node;
    auto_node.scales_pods(2).await?;
    let what = "Karpenter makes a node again";
    let before = auto_node.has_a_node(what, None).await?;
    auto_node.runs_pods(2).await?;
    is_changed_by_its_class_only(auto_node).await?;
    let (key, value) = TAG;
    let disk = json!({ "volumeSizeGiB": DISK, "volumeType": "GP3" });
    let change = json!({ "spec": {
        "tags": { key: value },
        "blockDeviceMappings": [{ "deviceName": "/dev/xvda", "ebs": disk }],
    } });
    auto_node.changes_class(&change).await?;
    let what = "a node whose class has changed is replaced";
    let machine = auto_node.has_a_node(what, Some(&before)).await?;
    auto_node.runs_pods(2).await?;
    guest.has_nodes(fixture, 2).await?;
    let cloud = &fixture.cloud.client;
    let tags = cloud.tags(&machine.instance).await?;
    let found = tags.get(key).map(String::as_str);
    ensure!(
        found == Some(value),
        "the tags of its instance are {tags:?}"
    );
    let only = [
        ("Filter.1.Name", "attachment.instance-id"),
        ("Filter.1.Value.1", machine.instance.as_str()),
    ];
    let volumes = cloud.ask(EC2, "DescribeVolumes", &only).await?;
    let size = format!("<size>{DISK}</size>");
    ensure!(volumes.contains(&size), "its disks are {volumes}");
    Ok(machine)
}

/// The serving certificate of its kubelet was approved by the controller for nodes of Karpenter. The first one of a kubelet is
/// approved by Kubernetes for every node with the bootstrap kubeconfig, which is faster.
async fn was_approved(auto_node: &AutoNode<'_>, machine: &Machine) -> Result<()> {
    let AutoNode { fixture, guest, .. } = auto_node;
    let kubelet = format!("system:node:{}", machine.node);
    fixture
        .stage(
            "the kubelet's serving certificate was approved",
            async || {
                let mut requests = guest.client.list(&REQUESTS.all()).await?;
                requests.retain(|request| {
                    let spec = &request["spec"];
                    spec["signerName"] == SERVING && spec["username"] == kubelet.as_str()
                });
                let mut approvals = requests
                    .iter()
                    .map(|request| conditions::find(request, "Approved"));
                let is_approved = approvals.any(|it| it.is_some_and(|it| it["reason"] == APPROVED));
                let statuses: Vec<_> = requests.iter().map(|request| &request["status"]).collect();
                ensure!(is_approved, "the requests are {statuses:?}");
                Ok(())
            },
        )
        .await
}

/// An administrator of the hosted cluster cannot change what Karpenter reads.
async fn is_changed_by_its_class_only(auto_node: &AutoNode<'_>) -> Result<()> {
    let change = json!({ "spec": { "detailedMonitoring": true } });
    let Err(refused) = auto_node.tries_ec2_class(&change).await else {
        bail!("a change of the EC2NodeClass is admitted");
    };
    let code = status_code(&refused);
    let is_refusal = code.is_some_and(|code| (400..500).contains(&code));
    ensure!(is_refusal, "{code:?}");
    let found = auto_node.ec2_class().await?;
    let user_data = &found["spec"]["userData"];
    ensure!(user_data.is_string(), "the EC2NodeClass has no user data");
    Ok(())
}
