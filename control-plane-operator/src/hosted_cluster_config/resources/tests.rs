//! Tables of objects, and API calls against a mock API server.

use std::net::IpAddr;

use serde_json::json;
use support::testing::{Answer, Expect, Scenario};

use super::super::NodeClients;
use super::*;

fn addresses(list: &[&str]) -> Vec<IpAddr> {
    list.iter().map(|text| text.parse().unwrap()).collect()
}

#[test]
fn endpoint_slices_have_one_address_family() {
    for (found, prefers_ipv6, expected) in [
        (
            vec!["10.0.0.2", "10.0.0.1", "10.0.0.2"],
            false,
            vec!["10.0.0.1", "10.0.0.2"],
        ),
        (vec!["10.0.0.1", "fd00::1"], false, vec!["10.0.0.1"]),
        (vec!["10.0.0.1", "fd00::1"], true, vec!["fd00::1"]),
        (vec!["fd00::1"], false, vec!["fd00::1"]),
        (vec!["10.0.0.1"], true, vec!["10.0.0.1"]),
    ] {
        let endpoint = endpoints::ApiEndpoint::new(addresses(&found), 6443, prefers_ipv6).unwrap();
        assert_eq!(endpoint.addresses, addresses(&expected), "{found:?}");
        let slice = endpoint.slice();
        assert_eq!(slice.endpoints.len(), expected.len());
        assert_eq!(
            slice.address_type,
            if expected[0].contains(':') {
                "IPv6"
            } else {
                "IPv4"
            }
        );
    }
    assert_eq!(endpoints::ApiEndpoint::new(Vec::new(), 6443, false), None);
}

#[test]
fn csr_approver_binding_depends_on_node_clients() {
    let names = |clients| {
        let bindings = rbac::bindings(clients).into_iter();
        bindings
            .filter_map(|binding| binding.metadata.name)
            .collect::<Vec<_>>()
    };
    assert!(names(NodeClients::Everybody).contains(&"csr-approver".to_owned()));
    assert!(!names(NodeClients::Machines).contains(&"csr-approver".to_owned()));
    assert!(names(NodeClients::Machines).contains(&"create-csrs-for-bootstrapping".to_owned()));
}

/// Finding F02: kubelets authorize the user of the API server's client certificate, which is the one that PKI issues.
#[test]
fn api_server_may_use_the_kubelet_api() {
    for clients in [NodeClients::Everybody, NodeClients::Machines] {
        let granted = rbac::bindings(clients).into_iter().any(|binding| {
            let subjects = binding.subjects.unwrap_or_default();
            binding.role_ref.name == "system:kubelet-api-admin"
                && subjects
                    .iter()
                    .any(|it| it.kind == "User" && it.name == "system:kube-apiserver")
        });
        assert!(granted, "{clients:?}");
    }
}

#[test]
fn failures_are_reported_with_their_cause() {
    let good = condition(&Ok(()));
    assert_eq!((good.status, good.reason), (Status::True, "AsExpected"));
    let bad = condition(&Err(Error::waiting("the address of the API server")));
    assert_eq!((bad.status, bad.reason), (Status::False, "ReconcileError"));
    assert_eq!(bad.message, "waiting for the address of the API server");
    let both = vec![Error::waiting("one"), Error::waiting("another")];
    let bad = condition(&Err(Error::Several(both)));
    assert_eq!(bad.message, "waiting for one; waiting for another");
}

#[tokio::test]
async fn custom_pull_secret_is_kept_if_annotated() {
    let hcp: api::hypershift::v1beta1::HostedControlPlane = serde_json::from_value(json!({
        "apiVersion": "hypershift.openshift.io/v1beta1", "kind": "HostedControlPlane",
        "metadata": { "name": "b", "annotations": { "hypershift.openshift.io/ensureexists-pullsecret-reconcile": "true" } },
        "spec": {
            "releaseImage": "images.example.com/release:4.22.0",
            "infraID": "x", "issuerURL": "https://kubernetes.default.svc",
            "platform": { "type": "None" }, "dns": { "baseDomain": "example.com" },
            "services": [], "etcd": { "managementType": "Managed" },
            "pullSecret": { "name": "pull-secret" }, "sshKey": { "name": "" },
        },
    }))
    .unwrap();
    let one = "/api/v1/namespaces/openshift/secrets/pull-secret";
    let scenario = Scenario::new([Expect::get(one).answer(Answer::ok(
        &json!({ "metadata": { "name": "pull-secret" } }),
    ))]);
    let applier = Applier::new(scenario.client(), "test");
    let copy = copies::pull_secrets(&Secret::default()).next().unwrap();
    copies::apply_pull_secret(&applier, &hcp, copy)
        .await
        .unwrap();
    scenario.finish();
}
