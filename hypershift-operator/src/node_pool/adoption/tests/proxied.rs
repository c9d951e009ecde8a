//! Nodes that reach the API server through an HTTP proxy.

use super::written::{configuration_with, way_to_the_api_server};
use super::*;

/// The forwarder to a proxy in the words of another operator.
fn forwarder(image: &str, proxy: &str) -> String {
    let pod = format!(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  creationTimestamp: null\n  name: kube-apiserver-proxy\nspec:\n  \
         containers:\n  - command:\n    - control-plane-operator\n    - kubernetes-default-proxy\n    \
         - --listen-addr=172.20.0.1:6443\n    - --proxy-addr={proxy}\n    - --apiserver-addr=api.dev.example.com:6443\n    \
         image: {image}\n    name: kubernetes-default-proxy\nstatus: {{}}\n"
    );
    way_to_the_api_server(&[("/etc/kubernetes/manifests/kube-apiserver-proxy.yaml", &*pod)])
}

/// A pool of a cluster with a proxy whose nodes have such a way to the API server.
fn behind_a_proxy(way_to_the_api_server: String, no_proxy: &str) -> Facts {
    let mut facts = facts();
    let proxy = json!({ "httpsProxy": "http://proxy.example.net:3128", "noProxy": no_proxy });
    let configuration = json!({ "proxy": proxy });
    facts.cluster.spec.configuration = serde_json::from_value(configuration).unwrap();
    facts.tokens = vec![token(HASH, &configuration_with(way_to_the_api_server))];
    facts
}

/// Check O07.
#[test]
fn nodes_behind_a_proxy_are_kept_while_their_way_is_the_same() {
    let own = "images.example.com/operator@sha256:c";
    let other = "registry.example.com/hypershift@sha256:d";
    let proxy = "proxy.example.net:3128";
    for (name, way, no_proxy, expected) in [
        ("the same", forwarder(own, proxy), "", true),
        // An upgrade of the control-plane-operator, or another one, replaces no nodes.
        ("another operator", forwarder(other, proxy), "", true),
        (
            "another proxy",
            forwarder(own, "proxy.example.net:3129"),
            "",
            false,
        ),
        ("a load balancer", load_balancer(), "", false),
        ("exempt", load_balancer(), ".example.com", true),
        (
            "exempt now",
            forwarder(own, proxy),
            "api.dev.example.com",
            false,
        ),
    ] {
        let facts = behind_a_proxy(way, no_proxy);
        assert_eq!(kept(&facts), (expected, true), "{name}");
    }
}
