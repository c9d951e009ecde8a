//! Services and Routes of sixteen publishing configurations, and addresses from statuses.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use api::annotations::cluster::SWIFT_POD_NETWORK_INSTANCE;
use control_plane_component::facts::{Access, Infra};
use control_plane_component::settings::Settings;
use control_plane_component::{Objects, Predicates, Release};
use serde_json::json;

use super::*;
use crate::components;

struct Case {
    name: &'static str,
    platform: Value,
    services: Value,
    annotations: Value,
    managed_service: Option<&'static str>,
}

fn route(service: &str, host: Option<&str>) -> Value {
    let mut strategy = json!({ "type": "Route" });
    if let Some(host) = host {
        strategy["route"] = json!({ "hostname": host });
    }
    json!({ "service": service, "servicePublishingStrategy": strategy })
}

fn balanced(service: &str) -> Value {
    json!({ "service": service, "servicePublishingStrategy": { "type": "LoadBalancer" } })
}

/// All services published by Routes, with an optional exception.
fn publishing(instead: Option<Value>) -> Value {
    let mut all = vec![
        route("APIServer", Some("api.test.example.com")),
        route("Konnectivity", Some("konnectivity.test.example.com")),
        route("OAuthServer", Some("oauth.test.example.com")),
        route("Ignition", None),
    ];
    if let Some(instead) = instead {
        all.retain(|service| service["service"] != instead["service"]);
        all.push(instead);
    }
    json!(all)
}

fn aws(access: &str) -> Value {
    let roles = [
        "ingressARN",
        "imageRegistryARN",
        "storageARN",
        "networkARN",
        "kubeCloudControllerARN",
        "controlPlaneOperatorARN",
        "nodePoolManagementARN",
    ];
    let roles: BTreeMap<_, _> = roles.map(|role| (role, "")).into();
    json!({ "type": "AWS", "aws": { "region": "us-east-1", "endpointAccess": access, "rolesRef": roles } })
}

fn azure(more: &Value) -> Value {
    let mut azure = json!({
        "location": "eastus",
        "resourceGroup": "test-rg",
        "vnetID": "/subscriptions/s/resourceGroups/test-rg/providers/Microsoft.Network/virtualNetworks/test-vnet",
        "subnetID": "", "subscriptionID": "", "securityGroupID": "", "tenantID": "",
        "azureAuthenticationConfig": { "azureAuthenticationConfigType": "ManagedIdentities" },
    });
    for (key, value) in more.as_object().unwrap() {
        azure[key] = value.clone();
    }
    json!({ "type": "Azure", "azure": azure })
}

fn case(name: &'static str, platform: Value, instead: Option<Value>) -> Case {
    Case {
        name,
        platform,
        services: publishing(instead),
        annotations: json!({}),
        managed_service: None,
    }
}

fn cases() -> Vec<Case> {
    let api = || Some(balanced("APIServer"));
    let private = || azure(&json!({ "topology": "Private" }));
    let both = || azure(&json!({ "topology": "PublicAndPrivate" }));
    let swift = |topology: &str| {
        let private =
            json!({ "type": "Swift", "swift": { "podNetworkInstance": "swift-network-instance" } });
        azure(&json!({ "topology": topology, "private": private }))
    };
    let instance = json!({ SWIFT_POD_NETWORK_INSTANCE.key(): "swift-network-instance" });
    vec![
        case("aws-public-cluster-uses-route", aws("Public"), None),
        case("aws-private-cluster-uses-route", aws("Private"), None),
        case(
            "aws-public-and-private-cluster-uses-route",
            aws("PublicAndPrivate"),
            None,
        ),
        case(
            "aws-public-cluster-uses-kas-loadbalancer",
            aws("Public"),
            api(),
        ),
        case(
            "aws-private-cluster-uses-kas-loadbalancer",
            aws("Private"),
            api(),
        ),
        case(
            "aws-public-and-private-cluster-uses-kas-loadbalancer",
            aws("PublicAndPrivate"),
            api(),
        ),
        case(
            "azure-private-cluster-has-route-strategy-without-hostname",
            private(),
            Some(route("APIServer", None)),
        ),
        case(
            "azure-self-managed-cluster-has-kas-route-with-hostname",
            azure(&json!({})),
            None,
        ),
        case(
            "azure-private-cluster-uses-kas-loadbalancer",
            private(),
            api(),
        ),
        case(
            "azure-public-and-private-cluster-uses-kas-loadbalancer",
            both(),
            api(),
        ),
        case(
            "azure-private-cluster-uses-oauth-loadbalancer",
            private(),
            Some(balanced("OAuthServer")),
        ),
        case(
            "azure-public-and-private-cluster-uses-oauth-loadbalancer",
            both(),
            Some(balanced("OAuthServer")),
        ),
        case(
            "azure-public-cluster-uses-oauth-loadbalancer",
            azure(&json!({})),
            Some(balanced("OAuthServer")),
        ),
        Case {
            annotations: instance.clone(),
            managed_service: Some(ARO),
            ..case(
                "aro-cluster-uses-shared-ingress-with-annotation-fallback",
                azure(&json!({})),
                None,
            )
        },
        case(
            "aro-cluster-uses-swift-with-public-and-private-topology",
            swift("PublicAndPrivate"),
            None,
        ),
        Case {
            annotations: instance,
            ..case(
                "aro-cluster-uses-swift-with-private-topology",
                swift("Private"),
                None,
            )
        },
    ]
}

/// Calls a function with the context of a case.
fn with_context<R>(case: &Case, objects: &Objects, work: impl FnOnce(&Context<'_>) -> R) -> R {
    let hcp = json!({
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "HostedControlPlane",
        "metadata": { "name": "test-cluster", "namespace": "test-namespace", "annotations": case.annotations },
        "spec": {
            "releaseImage": "registry.example.com/release:1",
            "issuerURL": "",
            "infraID": "infra",
            "pullSecret": {}, "sshKey": {}, "dns": { "baseDomain": "" },
            "etcd": { "managementType": "Managed" },
            "services": case.services,
            "platform": case.platform,
        },
    });
    let hcp = serde_json::from_value(hcp).unwrap();
    let release = Release::default();
    let settings = Settings {
        default_ingress_domain: "apps.example.com".to_owned(),
        managed_service: case.managed_service.map(str::to_owned),
        served_groups: vec!["route.openshift.io".to_owned()],
        ..Settings::new("own")
    };
    let context = Context {
        hcp: &hcp,
        release: &release,
        user_release: &release,
        infra: &Infra::default(),
        objects,
        settings: &settings,
        predicates: Predicates::Evaluated,
    };
    work(&context)
}

/// Formats objects, one per line.
fn summary(objects: &[Value]) -> String {
    let mut text = String::new();
    for object in objects {
        let (kind, name) = (&object["kind"], &object["metadata"]["name"]);
        let spec = &object["spec"];
        let _ = write!(
            text,
            "{} {}",
            kind.as_str().unwrap(),
            name.as_str().unwrap()
        );
        if kind == "Service" {
            let port = &spec["ports"][0];
            let _ = write!(
                text,
                " {} {} -> {}",
                spec["type"].as_str().unwrap(),
                port["port"],
                port["targetPort"]
            );
        } else {
            let _ = write!(
                text,
                " {} -> {}",
                spec["host"].as_str().unwrap_or("-"),
                spec["to"]["name"].as_str().unwrap()
            );
        }
        for (of, skipped) in [
            ("labels", "app"),
            ("annotations", "hypershift.openshift.io/desired-state-hash"),
        ] {
            for (key, value) in object["metadata"][of].as_object().into_iter().flatten() {
                if key != skipped {
                    let _ = write!(text, " {key}={}", value.as_str().unwrap());
                }
            }
        }
        text.push('\n');
    }
    text
}

#[test]
fn publishing_strategies_render_services_and_routes() {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/infra");
    for case in cases() {
        let found = with_context(&case, &Objects::default(), |context| {
            summary(&desired(components::declared(), context).objects)
        });
        let path = directory.join(format!("{}.txt", case.name));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::create_dir_all(&directory).unwrap();
            std::fs::write(&path, &found).unwrap();
        }
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        // The order does not matter.
        let sorted = |text: &str| {
            let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
            lines.sort_unstable();
            lines
        };
        assert_eq!(
            sorted(&found),
            sorted(&expected),
            "{} (UPDATE_GOLDEN=1 rewrites it)",
            case.name
        );
    }
}

/// Nodes of clusters without a topology use the pods that are attached to their network, as those of HyperShift do.
#[test]
fn swift_without_a_topology_is_public_and_private() {
    let instance = |value: &str| json!({ SWIFT_POD_NETWORK_INSTANCE.key(): value });
    let private =
        json!({ "type": "Swift", "swift": { "podNetworkInstance": "swift-network-instance" } });
    let none = azure(&json!({}));
    let public = azure(&json!({ "topology": "Public" }));
    let link = azure(&json!({ "private": { "type": "PrivateLink", "privateLink": {} } }));
    let swift = azure(&json!({ "private": private }));
    for (name, platform, annotations, managed_service, expected) in [
        ("public", &none, json!({}), Some(ARO), Access::Public),
        (
            "annotation",
            &none,
            instance("one"),
            Some(ARO),
            Access::PublicAndPrivate,
        ),
        ("field", &swift, json!({}), None, Access::PublicAndPrivate),
        ("private link", &link, json!({}), Some(ARO), Access::Public),
        (
            "empty annotation",
            &none,
            instance(""),
            Some(ARO),
            Access::Public,
        ),
        (
            "annotation outside of ARO",
            &none,
            instance("one"),
            None,
            Access::Public,
        ),
        (
            "annotation with a topology",
            &public,
            instance("one"),
            Some(ARO),
            Access::Public,
        ),
        (
            "another platform",
            &aws("Public"),
            instance("one"),
            Some(ARO),
            Access::Public,
        ),
    ] {
        let case = Case {
            annotations,
            managed_service,
            ..case("", platform.clone(), None)
        };
        with_context(&case, &Objects::default(), |context| {
            assert_eq!(context.access(), expected, "{name}");
        });
    }
}

#[test]
fn addresses_are_read_from_statuses() {
    let case = case("", aws("Public"), Some(balanced("APIServer")));
    let mut objects = Objects::default();
    let (before, missing_addresses) = with_context(&case, &objects, |context| {
        let infra = facts(components::declared(), context);
        let missing_addresses = missing(components::declared(), context, &infra);
        (infra, missing_addresses)
    });
    assert!(
        !before.api.is_known() && missing_addresses.contains(&"the address of the API server"),
        "{before:?}"
    );
    objects.insert(json!({
        "kind": "Service",
        "metadata": { "name": "kube-apiserver" },
        "spec": { "ports": [{ "port": 6443 }] },
        "status": { "loadBalancer": { "ingress": [{ "ip": "192.0.2.7" }] } },
    }));
    let after = with_context(&case, &objects, |context| {
        facts(components::declared(), context)
    });
    assert_eq!(after.api.url(), "https://192.0.2.7:6443");
    assert_eq!(
        after.konnectivity.url(),
        "https://konnectivity.test.example.com:443"
    );
}

/// Without a host name, a private cluster has no Route of its OAuth server but the internal one.
#[test]
fn private_oauth_servers_without_a_host_name_have_an_address() {
    let without = Some(route("OAuthServer", None));
    let case = case("", azure(&json!({ "topology": "Private" })), without);
    let rendered = with_context(&case, &Objects::default(), |context| {
        desired(components::declared(), context).objects
    });
    let objects = Objects::from_iter(rendered);
    let found = with_context(&case, &objects, |context| {
        facts(components::declared(), context)
    });
    assert_eq!(
        found.oauth.url(),
        "https://oauth.apps.test-cluster.hypershift.local:443"
    );
}

#[test]
fn objects_of_other_strategies_are_deleted() {
    let case = case("", aws("Public"), Some(balanced("APIServer")));
    let left = json!({ "apiVersion": "route.openshift.io/v1", "kind": "Route", "metadata": { "name": "kube-apiserver" } });
    let objects = Objects::from_iter([left]);
    let deletions = with_context(&case, &objects, |context| {
        desired(components::declared(), context).deletions
    });
    let names: Vec<_> = deletions
        .iter()
        .map(|identity| identity.name.as_str())
        .collect();
    assert_eq!(names, ["kube-apiserver"]);
}
