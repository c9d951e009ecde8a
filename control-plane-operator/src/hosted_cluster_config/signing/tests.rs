//! Tables of requests, and one approval against a mock API server.

use std::sync::Arc;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Node;
use rcgen::{CertificateParams, DnType, KeyPair, SanType};
use serde_json::json;
use support::kubelet_request::{BOOTSTRAPPER, CLIENT, SERVING};
use support::testing::{Answer, Expect, Scenario};

use super::super::machines::Machine;
use super::*;

fn node(name: &str, addresses: &[&str]) -> Arc<Node> {
    let entry = |address: &&str| json!({ "type": "InternalIP", "address": address });
    let addresses: Vec<_> = addresses.iter().map(entry).collect();
    let node = json!({ "metadata": { "name": name }, "status": { "addresses": addresses } });
    Arc::new(serde_json::from_value(node).unwrap())
}

fn machine(name: &str, node: Option<&str>, addresses: &[&str]) -> Machine {
    let entry = |address: &&str| ("InternalIP".to_owned(), (*address).to_owned());
    Machine {
        name: name.to_owned(),
        node: node.map(str::to_owned),
        addresses: addresses.iter().map(entry).collect(),
        ..Machine::default()
    }
}

fn strings(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| (*text).to_owned()).collect()
}

fn serving() -> Request {
    Request {
        signer: SERVING.to_owned(),
        username: "system:node:n-1".to_owned(),
        groups: strings(&["system:nodes", "system:authenticated"]),
        usages: strings(&["digital signature", "server auth"]),
        common_name: "system:node:n-1".to_owned(),
        organizations: strings(&["system:nodes"]),
        names: strings(&["n-1"]),
        addresses: vec!["10.0.0.1".parse().unwrap()],
        has_unsupported: false,
    }
}

fn client() -> Request {
    Request {
        signer: CLIENT.to_owned(),
        username: BOOTSTRAPPER.to_owned(),
        groups: strings(&["system:serviceaccounts"]),
        usages: strings(&["digital signature", "client auth"]),
        common_name: "system:node:n-9".to_owned(),
        names: Vec::new(),
        addresses: Vec::new(),
        ..serving()
    }
}

fn is_approved(request: &Request, nodes: &[Arc<Node>], machines: &[Machine]) -> bool {
    let inventory = Inventory {
        nodes,
        machines,
        approves_clients: true,
    };
    matches!(inventory.evaluate(request), Decision::Approve(_))
}

#[test]
fn serving_certificates_are_limited_to_own_names() {
    let nodes = [
        node("n-1", &["10.0.0.1", "10.0.0.9"]),
        node("n-2", &["10.0.0.2"]),
    ];
    let machines = [
        machine("m-1", Some("n-1"), &[]),
        machine("m-2", Some("n-2"), &["10.0.0.9"]),
    ];
    let with = |change: fn(&mut Request)| {
        let mut request = serving();
        change(&mut request);
        request
    };
    for (name, request, expected) in [
        ("its own", serving(), true),
        (
            "with a key that enciphers",
            with(|it| it.usages.push("key encipherment".into())),
            true,
        ),
        ("only an address", with(|it| it.names.clear()), true),
        (
            "nothing",
            with(|it| {
                it.names.clear();
                it.addresses.clear();
            }),
            false,
        ),
        (
            "another node asks",
            with(|it| it.username = "system:node:n-2".into()),
            false,
        ),
        ("not as a node", with(|it| it.groups.clear()), false),
        (
            "no node",
            with(|it| {
                it.common_name = "n-1".into();
                it.username = "n-1".into();
            }),
            false,
        ),
        (
            "a node that is not there",
            with(|it| {
                it.common_name = "system:node:n-3".into();
                it.username = it.common_name.clone();
            }),
            false,
        ),
        (
            "administrators",
            with(|it| it.organizations.push("system:masters".into())),
            false,
        ),
        (
            "a client's usage",
            with(|it| it.usages.push("client auth".into())),
            false,
        ),
        (
            "no server's usage",
            with(|it| it.usages = strings(&["digital signature"])),
            false,
        ),
        (
            "the name of another",
            with(|it| it.names.push("n-2".into())),
            false,
        ),
        (
            "a name of the control plane",
            with(|it| it.names.push("kubernetes.default.svc".into())),
            false,
        ),
        (
            "the address of another",
            with(|it| it.addresses.push("10.0.0.2".parse().unwrap())),
            false,
        ),
        (
            "an address that it reports and a Machine has",
            with(|it| it.addresses.push("10.0.0.9".parse().unwrap())),
            false,
        ),
        (
            "an unknown address",
            with(|it| it.addresses.push("10.0.0.7".parse().unwrap())),
            false,
        ),
        ("an URI", with(|it| it.has_unsupported = true), false),
        (
            "another signer",
            with(|it| it.signer = "kubernetes.io/kube-apiserver-client".into()),
            false,
        ),
    ] {
        assert_eq!(is_approved(&request, &nodes, &machines), expected, "{name}");
    }
    assert!(
        !is_approved(&serving(), &nodes, &machines[1..]),
        "no Machine is the Node"
    );
    assert!(
        is_approved(&serving(), &nodes, &[]),
        "a cluster without Machines"
    );
}

#[test]
fn infrastructure_addresses_take_precedence() {
    let nodes = [node("n-1", &["10.0.0.1", "10.0.0.5"])];
    let mut request = serving();
    request.addresses.push("10.0.0.5".parse().unwrap());
    let knows_one = [machine("m-1", Some("n-1"), &["10.0.0.1"])];
    assert!(is_approved(&serving(), &nodes, &knows_one));
    assert!(!is_approved(&request, &nodes, &knows_one));
    let knows_both = [machine("m-1", Some("n-1"), &["10.0.0.1", "10.0.0.5"])];
    assert!(is_approved(&request, &nodes, &knows_both));
    // An infrastructure that reports only other networks is not authoritative.
    let knows_others = [machine("m-1", Some("n-1"), &["192.168.0.1"])];
    assert!(is_approved(&request, &nodes, &knows_others));
}

#[test]
fn client_certificates_need_a_machine_without_node() {
    let with = |change: fn(&mut Request)| {
        let mut request = client();
        change(&mut request);
        request
    };
    let waiting = [machine("m-9", None, &["10.0.0.9", "n-9"])];
    for (name, request, machines, expected) in [
        (
            "by an address of the Machine",
            client(),
            waiting.to_vec(),
            true,
        ),
        (
            "by the Machine's name",
            client(),
            vec![machine("n-9", None, &[])],
            true,
        ),
        ("no Machine", client(), Vec::new(), false),
        (
            "a Machine that has its Node",
            client(),
            vec![machine("n-9", Some("n-1"), &[])],
            false,
        ),
        (
            "a node that is there",
            with(|it| it.common_name = "system:node:n-1".into()),
            vec![machine("n-1", None, &[])],
            false,
        ),
        (
            "another requestor",
            with(|it| it.username = "system:anonymous".into()),
            waiting.to_vec(),
            false,
        ),
        (
            "with names",
            with(|it| it.names.push("n-9".into())),
            waiting.to_vec(),
            false,
        ),
        (
            "a server's usage",
            with(|it| it.usages.push("server auth".into())),
            waiting.to_vec(),
            false,
        ),
        (
            "administrators",
            with(|it| it.organizations = strings(&["system:masters"])),
            waiting.to_vec(),
            false,
        ),
    ] {
        let nodes = [node("n-1", &["10.0.0.1"])];
        assert_eq!(is_approved(&request, &nodes, &machines), expected, "{name}");
    }
}

/// A request as a kubelet makes it.
fn object(common_name: &str, names: &[&str], addresses: &[&str]) -> CertificateSigningRequest {
    let mut params = CertificateParams::new(strings(names)).unwrap();
    for address in addresses {
        params
            .subject_alt_names
            .push(SanType::IpAddress(address.parse().unwrap()));
    }
    params.distinguished_name = rcgen::DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::OrganizationName, "system:nodes");
    params
        .distinguished_name
        .push(DnType::CommonName, common_name);
    let key = KeyPair::generate().unwrap();
    let pem = params.serialize_request(&key).unwrap().pem().unwrap();
    let mut object: CertificateSigningRequest = serde_json::from_value(json!({
        "metadata": { "name": "csr-1", "resourceVersion": "9" },
        "spec": {
            "request": "", "signerName": SERVING, "username": common_name,
            "groups": ["system:nodes"], "usages": ["digital signature", "server auth"],
        },
    }))
    .unwrap();
    object.spec.request = ByteString(pem.into_bytes());
    object
}

#[test]
fn certificate_requests_are_parsed() {
    let read = Request::read(&object(
        "system:node:n-1",
        &["n-1"],
        &["10.0.0.1", "fd00::1"],
    ))
    .unwrap();
    assert_eq!(read.common_name, "system:node:n-1");
    assert_eq!(read.organizations, ["system:nodes"]);
    assert_eq!(read.names, ["n-1"]);
    assert_eq!(read.addresses.len(), 2);
    assert!(!read.has_unsupported);
    for request in [
        b"".as_slice(),
        b"-----BEGIN CERTIFICATE REQUEST-----\nAA==\n-----END CERTIFICATE REQUEST-----\n",
    ] {
        let mut broken = object("system:node:n-1", &["n-1"], &[]);
        broken.spec.request = ByteString(request.to_vec());
        assert!(Request::read(&broken).is_err());
    }
}

#[tokio::test]
async fn approval_has_a_resource_version_precondition() {
    let object = object("system:node:n-1", &["n-1"], &["10.0.0.1"]);
    assert!(is_pending(&object));
    let request = Request::read(&object).unwrap();
    assert!(is_approved(&request, &[node("n-1", &["10.0.0.1"])], &[]));
    let one = "/apis/certificates.k8s.io/v1/certificatesigningrequests/csr-1/approval";
    let answer = serde_json::to_value(&object).unwrap();
    let scenario = Scenario::new([
        Expect::patch(one)
            .body(json!({ "metadata": { "resourceVersion": "9" }, "status": { "conditions": [{ "type": "Approved" }] } }))
            .answer(Answer::ok(&answer)),
        Expect::patch(one).answer(Answer::error(409, "Conflict")),
    ]);
    let api: Api<CertificateSigningRequest> = Api::all(scenario.client());
    for _ in 0..2 {
        apply_decision(&api, &object, Decision::Approve("x"))
            .await
            .unwrap();
    }
    apply_decision(&api, &object, Decision::Ignore("x"))
        .await
        .unwrap();
    scenario.finish();
}
