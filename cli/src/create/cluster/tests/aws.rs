//! AutoNode, shared VPCs, proxies and instance types on AWS.

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

fn cluster_of(infra: &str, iam: &str) -> (Value, Vec<Value>) {
    let flags = [format!("--infra-json={infra}"), format!("--iam-json={iam}")];
    let flags: Vec<_> = flags.iter().map(String::as_str).collect();
    let objects = rendered(&parse("aws", &flags).unwrap()).unwrap();
    let mut found = objects.iter();
    let cluster = found.find(|it| it["kind"] == "HostedCluster").unwrap();
    (cluster.clone(), objects)
}

#[test]
fn cluster_in_shared_vpc_has_roles_of_its_owner() {
    let (cluster, _) = cluster_of("aws-infra.json", "aws-iam-shared.json");
    let aws = &cluster["spec"]["platform"]["aws"];
    let control_plane = "arn:aws:iam::111111111111:role/shared-vpc-endpoint";
    assert_eq!(
        aws["sharedVPC"],
        json!({
            "rolesRef": {
                "ingressARN": "arn:aws:iam::111111111111:role/shared-vpc-route53",
                "controlPlaneARN": control_plane,
            },
            "localZoneID": "Z3",
        })
    );
    assert_eq!(aws["additionalAllowedPrincipals"], json!([control_plane]));
    assert!(problems::<api::hypershift::v1beta1::HostedCluster>(&cluster).is_empty());
    let (cluster, _) = cluster_of("aws-infra.json", "aws-iam.json");
    assert_eq!(cluster["spec"]["platform"]["aws"].get("sharedVPC"), None);
}

#[test]
fn proxy_of_infrastructure_is_configured() {
    let (cluster, objects) = cluster_of("aws-infra-proxy.json", "aws-iam.json");
    assert_eq!(
        cluster["spec"]["configuration"]["proxy"],
        json!({
            "httpProxy": "http://10.0.0.9:3128",
            "httpsProxy": "https://10.0.0.9:3129",
            "trustedCA": { "name": "a-proxy-ca" },
        })
    );
    assert!(problems::<api::hypershift::v1beta1::HostedCluster>(&cluster).is_empty());
    let mut found = objects.iter();
    let authorities = found.find(|it| it["metadata"]["name"] == "a-proxy-ca");
    assert_eq!(authorities.unwrap()["data"]["ca-bundle.crt"], "PEM");
}

/// A proxy that decrypts TLS is reached without TLS: it is for HTTP, too. The key is as `create infra aws` writes it.
#[test]
fn key_of_proxy_is_in_a_secret() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("infra.json");
    let mut infra: Value =
        serde_json::from_str(&std::fs::read_to_string(data().join("aws-infra.json")).unwrap())
            .unwrap();
    infra["proxyAddr"] = json!("");
    infra["secureProxyAddr"] = json!("http://10.0.0.9:3128");
    infra["proxyPrivateSSHKey"] = json!("UFJJVkFURQ==");
    std::fs::write(&path, infra.to_string()).unwrap();
    let (cluster, objects) = cluster_of(path.to_str().unwrap(), "aws-iam.json");
    let proxy = &cluster["spec"]["configuration"]["proxy"];
    let url = "http://10.0.0.9:3128";
    assert_eq!(*proxy, json!({ "httpProxy": url, "httpsProxy": url }));
    let mut found = objects.iter();
    let secret = found.find(|it| it["metadata"]["name"] == "a-proxy-ssh-key");
    let secret = secret.unwrap();
    assert_eq!(secret["kind"], "Secret");
    assert_eq!(secret["data"]["privatekey"], "UFJJVkFURQ==");
    let (_, objects) = cluster_of("aws-infra-proxy.json", "aws-iam.json");
    let mut names = objects.iter().map(|it| &it["metadata"]["name"]);
    assert!(names.all(|name| *name != "a-proxy-ssh-key"));
}

#[test]
fn instance_type_fits_architecture() {
    let flags = ["--infra-json=aws-infra.json", "--iam-json=aws-iam.json"];
    for (more, expected) in [
        (&[][..], "m5.large"),
        (&["--arch=arm64"][..], "m6g.large"),
        (
            &["--arch=arm64", "--instance-type=c7g.large"][..],
            "c7g.large",
        ),
    ] {
        let flags: Vec<_> = flags.iter().chain(more).copied().collect();
        let objects = rendered(&parse("aws", &flags).unwrap()).unwrap();
        let mut found = objects.iter();
        let pool = found.find(|it| it["kind"] == "NodePool").unwrap();
        assert_eq!(pool["spec"]["platform"]["aws"]["instanceType"], expected);
    }
}
