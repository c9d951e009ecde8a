//! AutoNode, shared VPCs, proxies and instance types on AWS.

use serde_json::json;

use super::*;
use crate::infra::aws::SecretValues;

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

/// A command line with `--secret-creds`.
fn with_secret(flags: &[&str]) -> Result<Cluster, clap::Error> {
    let words = [
        "create",
        "aws",
        "--name=a",
        "--release-image=registry.example.com/release:1",
        "--secret-creds=creds",
    ];
    let words = words.iter().chain(flags).map(|flag| with_paths(flag));
    Ok(Line::try_parse_from(words)?.cluster)
}

#[test]
fn what_flags_do_not_give_is_in_the_secret() {
    let pull_secret = r#"{"auths":{"secret.example.com":{}}}"#;
    let secret = [
        ("baseDomain", "secret.example.com"),
        ("pullSecret", pull_secret),
        ("ssh-publickey", "ssh-rsa AAAA"),
        ("ssh-privatekey", "private"),
    ];
    let options = |flags: &[&str], secret: &[(&str, &str)]| {
        let files = ["--role-arn=arn", "--iam-json=aws-iam.json"];
        let flags: Vec<_> = files.iter().chain(flags).copied().collect();
        let Cluster::Aws(of) = with_secret(&flags).unwrap() else {
            panic!("this is another platform");
        };
        let secret = SecretValues::new("Secret clusters/creds", secret);
        let given = of.platform.given_by(&of.common, secret)?;
        let common = of.common.clone().with(given);
        let (options, _) = resolve(&common, &of.platform, Program::Hcp)?;
        anyhow::Ok(options)
    };
    let found = options(&[], &secret).unwrap();
    assert_eq!(found.pull_secret, pull_secret);
    assert_eq!(found.base_domain, "secret.example.com");
    assert_eq!(found.ssh_key.as_deref(), Some("ssh-rsa AAAA"));
    assert_eq!(found.ssh_private_key.as_deref(), Some("private"));
    assert!(!format!("{:?}", found.args).contains("private"));
    let flags = [
        "--pull-secret=pull-secret.json",
        "--base-domain=flag.example.com",
        "--ssh-key=ssh-key.pub",
    ];
    for secret in [&secret[..], &[]] {
        let found = options(&flags, secret).unwrap();
        assert_ne!(found.pull_secret, pull_secret);
        assert_eq!(found.base_domain, "flag.example.com");
        assert_ne!(found.ssh_key.as_deref(), Some("ssh-rsa AAAA"));
        assert_eq!(found.ssh_private_key, None);
    }
    for (left_out, flag) in [(0, "--base-domain"), (1, "--pull-secret")] {
        let mut rest = secret.to_vec();
        let (key, _) = rest.remove(left_out);
        let error = options(&[], &rest).err().unwrap().to_string();
        let expected = format!("Secret clusters/creds has no key {key}: add it, or give {flag}");
        assert_eq!(error, expected);
    }
}

#[test]
fn secret_with_credentials_needs_a_role_and_replaces_flags() {
    with_secret(&["--role-arn=arn"]).unwrap();
    with_secret(&[]).unwrap_err();
    let without = ["create", "aws", "--name=a", "--release-image=a"];
    let error = Line::try_parse_from(without).unwrap_err().to_string();
    assert!(error.contains("--pull-secret"), "{error}");
    let other = ["create", "none", "--name=a", "--release-image=a"];
    let error = Line::try_parse_from(other).unwrap_err().to_string();
    assert!(error.contains("--pull-secret"), "{error}");
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
