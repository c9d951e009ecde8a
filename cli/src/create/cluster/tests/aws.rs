//! AutoNode on AWS.

use serde_json::json;

use super::*;

#[test]
fn a_cluster_with_auto_node_has_the_role_and_the_profile_of_karpenter() {
    let flags = [
        "--infra-json=aws-infra.json",
        "--iam-json=aws-iam-karpenter.json",
        "--auto-node",
    ];
    let objects = rendered(&parse("aws", &flags).unwrap()).unwrap();
    let mut found = objects.iter();
    let cluster = found.find(|it| it["kind"] == "HostedCluster").unwrap();
    let provisioner = &cluster["spec"]["autoNode"]["provisionerConfig"];
    assert_eq!(
        *provisioner,
        json!({
            "name": "Karpenter",
            "karpenter": {
                "platform": "AWS",
                "aws": { "roleARN": "arn:aws:iam::000000000000:role/karpenter" },
            },
        })
    );
    let key = "hypershift.openshift.io/aws-karpenter-default-instance-profile";
    assert_eq!(cluster["metadata"]["annotations"][key], "a-worker");
    let without = rendered(&parse("aws", &flags[..2]).unwrap()).unwrap();
    let mut found = without.iter();
    let cluster = found.find(|it| it["kind"] == "HostedCluster").unwrap();
    assert!(cluster["spec"].get("autoNode").is_none());
    assert!(cluster["metadata"]["annotations"].get(key).is_none());
}
