//! OpenStack: credentials of one cloud, and what is refused before anything is created.

use serde_json::json;

use super::*;

const CLOUDS: &str = "--openstack-credentials-file=openstack-clouds.yaml";
const FLAVOR: &str = "--openstack-node-flavor=m1.xlarge";
const DOMAIN: &str = "--base-domain=example.com";
/// The environment may name another one.
const CLOUD: &str = "--openstack-cloud=openstack";
const LAB: [&str; 2] = [
    "--openstack-cloud=lab",
    "--openstack-ca-cert-file=openstack-ca.txt",
];

/// Platform, name of the golden file, flags beside the usual ones.
pub(super) const ROWS: [(&str, &str, &[&str]); 2] = [
    (
        "openstack",
        "openstack",
        &[CLOUDS, CLOUD, FLAVOR, DOMAIN, "--node-pool-replicas=2"],
    ),
    (
        "openstack",
        "openstack-everything",
        &[
            CLOUDS,
            LAB[0],
            LAB[1],
            FLAVOR,
            DOMAIN,
            "--openstack-external-network-id=00000000-0000-0000-0000-000000000001",
            "--openstack-ingress-floating-ip=192.0.2.7",
            "--openstack-dns-nameservers=192.0.2.53,2001:db8::53",
            "--openstack-node-image-name=rhcos",
            "--openstack-node-availability-zone=az1",
            "--openstack-node-additional-port=network-id:00000000-0000-0000-0000-000000000002,vnic-type:direct,disable-port-security:true",
            "--openstack-node-additional-port=network-id:00000000-0000-0000-0000-000000000003,address-pairs:192.0.2.1-192.0.2.128/25",
            "--machine-cidr=192.0.2.0/24",
        ],
    ),
];

#[test]
fn the_secret_has_the_chosen_cloud_only() {
    let flags = [CLOUDS, LAB[0], LAB[1], FLAVOR, DOMAIN];
    let objects = rendered(&parse("openstack", &flags).unwrap()).unwrap();
    let mut secrets = objects.iter().filter(|it| it["kind"] == "Secret");
    let secret = secrets.find(|it| it["metadata"]["name"] == "a-cloud-credentials");
    let data = &secret.unwrap()["stringData"];
    let clouds = data["clouds.yaml"].as_str().unwrap();
    assert!(clouds.starts_with("clouds:\n  openstack:\n"), "{clouds}");
    assert!(clouds.contains("not-a-secret-of-the-lab"), "{clouds}");
    assert!(!clouds.contains("v3applicationcredential"), "{clouds}");
    assert!(!clouds.contains("cacert"), "{clouds}");
    assert!(data["cacert"].as_str().unwrap().contains("an authority"));
    let cluster = objects.iter().find(|it| it["kind"] == "HostedCluster");
    let spec = &cluster.unwrap()["spec"];
    assert_eq!(
        spec["platform"]["openstack"]["identityRef"],
        json!({ "name": "a-cloud-credentials", "cloudName": "openstack" })
    );
    assert_eq!(
        spec["networking"]["machineNetwork"],
        json!([{ "cidr": "10.0.0.0/16" }])
    );
}

#[test]
fn invalid_flags_of_openstack_are_refused_with_the_reason() {
    let usual = [CLOUDS, CLOUD, FLAVOR, DOMAIN];
    let many = format!(
        "--openstack-dns-nameservers={}",
        ["192.0.2.1"; 11].join(",")
    );
    for (flags, words) in [
        (
            vec!["--external-dns-domain=e.com"],
            "not supported on OpenStack",
        ),
        (vec!["--arch=arm64"], "amd64 only"),
        (vec![&*many], "at most 10 name servers, not 11"),
        (
            vec!["--openstack-ca-cert-file=no-such-file"],
            "cannot read no-such-file, named by --openstack-ca-cert-file",
        ),
        (
            vec!["--openstack-ca-cert-file=bundle.txt"],
            "has no certificate (PEM)",
        ),
        (
            vec!["--openstack-node-additional-port=vnic-type:direct"],
            "network-id is missing",
        ),
    ] {
        let flags: Vec<_> = usual.into_iter().chain(flags).collect();
        let error = rendered(&parse("openstack", &flags).unwrap()).unwrap_err();
        assert!(format!("{error:#}").contains(words), "{flags:?}: {error:#}");
    }
    for (flags, words) in [
        (vec![CLOUDS, CLOUD, FLAVOR], "--base-domain is needed"),
        (
            vec![CLOUDS, FLAVOR, DOMAIN, "--openstack-cloud=other"],
            "has no cloud \"other\"",
        ),
        (
            vec![CLOUDS, FLAVOR, DOMAIN, LAB[0]],
            "cannot read /no/such/file, named by cacert of cloud lab",
        ),
        (
            vec![
                CLOUD,
                FLAVOR,
                DOMAIN,
                "--openstack-credentials-file=no-such-file",
            ],
            "cannot read no-such-file, named by --openstack-credentials-file",
        ),
        (
            vec![
                CLOUD,
                FLAVOR,
                DOMAIN,
                "--openstack-credentials-file=pull-secret.json",
            ],
            "\"clouds\" is missing",
        ),
    ] {
        let error = rendered(&parse("openstack", &flags).unwrap()).unwrap_err();
        assert!(format!("{error:#}").contains(words), "{flags:?}: {error:#}");
    }
    for flag in [
        "--openstack-external-network-id=external",
        "--openstack-ingress-floating-ip=ingress.example.com",
        "--openstack-dns-nameservers=192.0.2.1,dns",
        "--openstack-node-availability-zone=nova:host",
    ] {
        parse("openstack", &[CLOUDS, CLOUD, FLAVOR, DOMAIN, flag]).unwrap_err();
    }
    parse("openstack", &[CLOUDS, CLOUD, DOMAIN]).unwrap_err();
}
