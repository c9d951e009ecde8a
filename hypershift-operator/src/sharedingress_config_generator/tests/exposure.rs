//! Which clusters the shared ingress serves, and the permissions that it needs for that.

use serde_json::json;

use super::{ID, Management, objects, spec};

/// Which cluster is served, and to whom. Each has a Route, a DNS name and an ID.
#[test]
fn only_what_is_public_is_published() {
    let managed = json!({ "azureAuthenticationConfigType": "ManagedIdentities" });
    let other = json!({ "azureAuthenticationConfigType": "WorkloadIdentities" });
    for (name, platform, annotation, clients, nodes) in [
        ("no topology", json!({ "type": "Azure" }), None, true, true),
        (
            "public",
            json!({ "type": "Azure", "azure": { "topology": "Public" } }),
            // Only a cluster without a topology is attached by its annotation.
            Some("instance"),
            true,
            true,
        ),
        (
            "public and private",
            json!({ "type": "Azure", "azure": { "topology": "PublicAndPrivate" } }),
            None,
            true,
            false,
        ),
        (
            "private: nothing, not even its DNS name",
            json!({ "type": "Azure", "azure": { "topology": "Private" } }),
            None,
            false,
            false,
        ),
        (
            "attached by its platform",
            json!({ "type": "Azure", "azure": { "private": { "type": "Swift" } } }),
            None,
            true,
            false,
        ),
        (
            "attached by its annotation",
            json!({ "type": "Azure" }),
            Some("instance"),
            true,
            false,
        ),
        (
            "an empty annotation",
            json!({ "type": "Azure" }),
            Some(""),
            true,
            true,
        ),
        (
            "managed identities",
            json!({ "type": "Azure", "azure": { "azureAuthenticationConfig": managed } }),
            None,
            true,
            true,
        ),
        (
            "Azure without ARO",
            json!({ "type": "Azure", "azure": { "azureAuthenticationConfig": other } }),
            None,
            false,
            false,
        ),
        (
            "another platform",
            json!({ "type": "AWS" }),
            None,
            false,
            false,
        ),
    ] {
        let spec = json!({
            "clusterID": ID, "platform": platform, "kubeAPIServerDNSName": "api.custom.example.com",
        });
        let management = Management::default().cluster("a", 1, spec).route(
            "clusters-a",
            "oauth-openshift",
            "oauth.example.com",
            &json!({}),
        );
        let management = management.annotated(annotation);
        let (text, skipped) = management.rendered();
        assert_eq!(skipped, Vec::<String>::new(), "{name}");
        for (what, expected) in [
            ("api.custom.example.com", clients),
            ("oauth.example.com", clients),
            (ID, nodes),
            ("clusters-a", clients),
        ] {
            assert_eq!(text.contains(what), expected, "{name}: {what}\n{text}");
        }
    }
}

/// What a cluster that is not served claims stays free for others.
#[test]
fn a_private_cluster_claims_no_host_and_no_id() {
    let mut private = spec(ID);
    private["platform"]["azure"] = json!({ "topology": "Private" });
    private["kubeAPIServerDNSName"] = json!("api.example.com");
    let mut public = spec(ID);
    public["kubeAPIServerDNSName"] = json!("api.example.com");
    let management = Management::default().cluster("old", 1, private);
    let (text, skipped) = management.cluster("new", 2, public).rendered();
    assert_eq!(skipped, Vec::<String>::new());
    assert!(text.contains("use_backend clusters-new_apiserver-custom"));
    assert!(text.contains("use_backend clusters-new_kube-apiserver"));
    assert!(!text.contains("clusters-old"), "{text}");
}

#[test]
fn a_missing_permission_is_named() {
    use kube::core::Status;
    use kube::runtime::watcher;

    let status = |code: u16| Box::new(Status::failure("no", "Reason").with_code(code));
    let needed = "get, list, watch namespaces in all namespaces";
    for (error, expected) in [
        (
            watcher::Error::InitialListFailed(kube::Error::Api(status(403))),
            Some(needed),
        ),
        (
            watcher::Error::WatchStartFailed(kube::Error::Api(status(403))),
            Some(needed),
        ),
        (watcher::Error::WatchError(status(403)), Some(needed)),
        (watcher::Error::WatchError(status(410)), None),
        (
            watcher::Error::InitialListFailed(kube::Error::Api(status(500))),
            None,
        ),
    ] {
        let found = objects::NAMESPACES.missing_permission(&error);
        assert_eq!(found.as_deref(), expected, "{error:?}");
    }
}
