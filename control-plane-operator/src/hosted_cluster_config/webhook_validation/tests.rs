use serde_json::{Value, json};

use super::*;

fn service(value: Value) -> Arc<DynamicObject> {
    Arc::new(serde_json::from_value(value).unwrap())
}

/// What is forbidden in namespace `clusters-a`.
fn forbidden() -> Forbidden {
    let services = [
        json!({ "metadata": { "name": "etcd-client" }, "spec": { "clusterIPs": ["10.0.0.9", "fd00::9"] } }),
        json!({ "metadata": { "name": "etcd-discovery" }, "spec": { "clusterIPs": ["None"] } }),
        json!({ "metadata": { "name": "kube-apiserver" }, "spec": {} }),
        json!({
            "metadata": { "name": "allowed", "labels": { "hypershift.openshift.io/allow-guest-webhooks": "" } },
            "spec": { "clusterIPs": ["10.0.0.8"] },
        }),
    ];
    Forbidden::new(&services.map(service), "clusters-a")
}

#[test]
fn urls_of_the_control_plane_are_forbidden() {
    let forbidden = forbidden();
    let long = format!("https://etcd-client.clusters-a.svc/{}", "a".repeat(65_534));
    for url in [
        "https://etcd-client",
        "https://ETCD-client:2379/health",
        "HTTPS://etcd-client:",
        "https://etcd-client.clusters-a/a",
        "https://etcd-client.clusters-a.svc:443/a",
        "https://kube-apiserver.clusters-a.svc.cluster.local/a",
        "https://kube-apiserver.clusters-a.svc.cluster.local./a",
        "https://kube-apiserver.clusters-a.svc.example.com/a",
        "https://user@etcd-client/a",
        "https://a:b@etcd-client:2379?x",
        // Not valid for all parsers.
        "https://etcd-client.clusters-a.svc/a b",
        "https://etcd-client.clusters-a.svc/<a>",
        "https://etcd-client.clusters-a.svc#a b",
        &long,
        // Cluster IPs.
        "https://10.0.0.9:2379/",
        "https://[fd00::9]:2379/",
        "https://[FD00:0::9]/",
        "https://[::ffff:10.0.0.9]/",
        // Pods, of headless Services and by their addresses.
        "https://etcd-0.etcd-discovery.clusters-a.svc:2379/",
        "https://etcd-0.etcd-discovery.clusters-a.svc.cluster.local/",
        "https://etcd-0.etcd-discovery.clusters-a/",
        "https://etcd-0.etcd-discovery/",
        "https://10-1-2-3.clusters-a.pod/",
        "https://10-1-2-3.clusters-a.pod.cluster.local/",
    ] {
        assert!(forbidden.has(url), "{url}");
    }
}

/// The API server may find a host where none can be read here.
#[test]
fn urls_without_a_readable_host_are_forbidden() {
    let forbidden = forbidden();
    for url in [
        "",
        "https:etcd-client",
        "https:///a",
        "https://:443/a",
        "https://etcd client/",
        "https://[fd00::9/",
        "https://[fe80::1%25eth0]/",
        "https://fd00::9/",
        "https://a:443x/",
        "https://a..b/",
        // Mapped to ASCII before they are resolved.
        "https://\u{ff45}tcd-client/",
        "https://etcd-client\u{3002}clusters-a\u{3002}svc/",
        "https://%65tcd-client/",
        // Other forms of 10.0.0.9.
        "https://167772169/",
        "https://0xa000009/",
        "https://10.9/",
        "https://10.0.0.011/",
        "https://10.0.0.0x9/",
    ] {
        assert!(forbidden.has(url), "{url:?}");
    }
}

#[test]
fn other_urls_are_allowed() {
    let forbidden = forbidden();
    for url in [
        "https://etcd-client.example.com/a",
        "https://etcd-client.clusters-b.svc/a",
        "https://example.com/https://etcd-client",
        "https://example.com?etcd-client",
        "https://example.com#@etcd-client",
        "https://my-etcd-client/",
        "https://clusters-a.example.com/",
        "https://127.0.0.1:4443/mutate",
        "https://10.0.0.7/",
        "https://[fd00::8]:443/",
        "https://a-1.example.com./",
        // The label allows it.
        "https://allowed.clusters-a.svc/a",
        "https://10.0.0.8/",
    ] {
        assert!(!forbidden.has(url), "{url}");
    }
}

fn configuration(clients: &[Value]) -> Value {
    let webhooks = clients.iter().map(|client| {
        json!({
            "name": "a.example.com", "clientConfig": client, "admissionReviewVersions": ["v1"],
            "sideEffects": "None", "matchConditions": [{ "name": "x", "expression": "large" }],
        })
    });
    json!({
        "metadata": {
            "name": "a", "uid": "u", "resourceVersion": "7", "deletionTimestamp": "2030-01-01T00:00:00Z",
            "annotations": { "a": "large" }, "labels": { "l": "large" }, "managedFields": [{ "manager": "large" }],
        },
        "webhooks": webhooks.collect::<Vec<_>>(),
    })
}

fn assert_leads<K: Configuration>(value: &Value, expected: bool) {
    let mut found: K = serde_json::from_value(value.clone()).unwrap();
    assert_eq!(leads_to(&found, &forbidden()), expected, "{value}");
    found.reduce();
    assert_eq!(leads_to(&found, &forbidden()), expected, "{value}");
}

#[test]
fn one_forbidden_webhook_is_enough() {
    let url = |url: &str| json!({ "url": url });
    let service = json!({ "service": { "name": "etcd-client", "namespace": "clusters-a" } });
    for (clients, expected) in [
        (
            vec![url("https://example.com/a"), url("https://etcd-client/a")],
            true,
        ),
        (
            vec![url("https://example.com/a"), url("https://example.com/b")],
            false,
        ),
        // Services in the hosted cluster.
        (vec![service], false),
        (vec![], false),
    ] {
        let value = configuration(&clients);
        assert_leads::<ValidatingWebhookConfiguration>(&value, expected);
        assert_leads::<MutatingWebhookConfiguration>(&value, expected);
    }
}

fn reduced_text<K: Configuration + serde::Serialize>(value: &Value) -> String {
    let mut found: K = serde_json::from_value(value.clone()).unwrap();
    let metadata = found.meta().clone();
    found.reduce();
    assert_eq!(found.meta().uid, metadata.uid);
    assert_eq!(found.meta().resource_version, metadata.resource_version);
    assert_eq!(found.meta().deletion_timestamp, metadata.deletion_timestamp);
    assert_eq!(found.urls(), ["https://a"]);
    serde_json::to_string(&found).unwrap()
}

#[test]
fn only_urls_of_configurations_are_cached() {
    let clients = [
        json!({ "url": "https://a", "caBundle": "bGFyZ2U=" }),
        json!({ "service": { "name": "large", "namespace": "large" } }),
    ];
    let value = configuration(&clients);
    for text in [
        reduced_text::<ValidatingWebhookConfiguration>(&value),
        reduced_text::<MutatingWebhookConfiguration>(&value),
    ] {
        assert!(
            !text.contains("large") && !text.contains("bGFyZ2U"),
            "{text}"
        );
    }
}
