//! What a cluster on OpenStack has, field by field.

use api::features::FeatureSet;
use api::group::{self, CapiTypes};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use serde_json::json;

use super::*;
use crate::facts::{Found, fixture};
use crate::platform::tests::built;

/// Facts of a cluster with these settings in addition to those that are required.
fn facts(types: CapiTypes, settings: &Value) -> Facts {
    let mut cluster = fixture::hosted_cluster("openstack");
    let openstack = fixture::with(json!(cluster.spec.platform.openstack), settings);
    cluster.spec.platform.openstack = serde_json::from_value(openstack).unwrap();
    let machines = json!([{ "cidr": "10.0.0.0/16" }, { "cidr": "10.1.0.0/16" }]);
    cluster.spec.networking.machine_network = serde_json::from_value(machines).unwrap();
    let mut facts = fixture::facts(cluster, types);
    facts.cloud.features = FeatureSet::TechPreviewNoUpgrade;
    facts
}

/// Sets a key of the user's Secret.
fn put(facts: &mut Facts, key: &str, value: &str) {
    let mut found = facts.referenced.iter_mut().map(|(_, found)| found);
    let secret = found.find_map(|found| match found {
        Found::Secret(secret) if secret.metadata.name.as_deref() == Some("one-cloud") => {
            Some(secret)
        }
        _ => None,
    });
    let data = secret.unwrap().data.get_or_insert_default();
    data.insert(key.to_owned(), ByteString(value.as_bytes().to_vec()));
}

#[test]
fn the_cluster_object_has_networks_to_create() {
    for types in [CapiTypes::Private, CapiTypes::Standard] {
        let subnet = json!({
            "dnsNameservers": ["10.0.0.2"],
            "allocationPools": [{ "start": "10.0.0.10", "end": "10.0.0.20" }],
        });
        let settings =
            json!({ "managedSubnets": [subnet], "networkMTU": 1500, "tags": ["team=red"] });
        let facts = facts(types, &settings);
        let mut cluster = built(&facts, "OpenStackCluster").remove("one").unwrap();
        assert_eq!(cluster.resource.group, group::infrastructure(types));
        assert_eq!(cluster.resource.version, "v1beta1");
        let groups = cluster.body["spec"]["managedSecurityGroups"].take();
        assert!(groups["allNodesSecurityGroupRules"].is_array(), "{groups}");
        assert_eq!(
            cluster.body["spec"],
            json!({
                "disableAPIServerFloatingIP": true,
                "identityRef": { "name": "one-cloud", "cloudName": "openstack" },
                "managedSecurityGroups": null,
                "managedSubnets": [{
                    "cidr": "10.0.0.0/16",
                    "dnsNameservers": ["10.0.0.2"],
                    "allocationPools": [{ "start": "10.0.0.10", "end": "10.0.0.20" }],
                }],
                "networkMTU": 1500,
                "tags": ["openshiftClusterID=one-x7k2p", "team=red"],
            })
        );
        assert_eq!(cluster.status, None);
    }
}

#[test]
fn networks_of_the_user_are_found() {
    let id = "6f2b2c44-5d3b-4d3c-9b7f-0d2f6e1a7c11";
    let settings = json!({
        "network": { "filter": { "name": "nodes", "tags": ["a"], "notTagsAny": ["b"] } },
        "subnets": [{ "id": id }, { "filter": { "ipVersion": 6, "projectID": "p" } }],
        "router": { "id": id },
        "externalNetwork": { "id": id },
        "disableExternalNetwork": false,
    });
    let facts = facts(CapiTypes::Private, &settings);
    let spec = &built(&facts, "OpenStackCluster")["one"].body["spec"];
    for field in settings.as_object().unwrap().keys() {
        assert_eq!(spec[field], settings[field], "{field}");
    }
    assert_eq!(spec.get("managedSubnets"), None);
}

#[test]
fn a_cluster_without_a_machine_network_is_reported() {
    let mut facts = facts(CapiTypes::Private, &json!({}));
    assert_eq!(problems(&facts), [""; 0]);
    facts.cluster.spec.networking.machine_network.clear();
    let problems = problems(&facts);
    assert!(
        problems[0].contains("machineNetwork is empty"),
        "{problems:?}"
    );
    assert!(matches!(OpenStack.cluster(&facts), ClusterIs::Later));
}

#[test]
fn components_have_the_credentials_and_a_configuration() {
    let id = "6f2b2c44-5d3b-4d3c-9b7f-0d2f6e1a7c11";
    let mut facts = facts(
        CapiTypes::Private,
        &json!({ "externalNetwork": { "id": id } }),
    );
    put(&mut facts, "clouds.yaml", "clouds: {}");
    put(&mut facts, "cacert", "certificates");
    put(&mut facts, "cloud.conf", "[BlockStorage]\nbs-version = v3");
    let secrets = built(&facts, "Secret");
    for name in [
        "cloud-network-config-controller-creds",
        "manila-cloud-credentials",
        "openstack-cloud-credentials",
    ] {
        let secret: Secret = serde_json::from_value(secrets[name].body.clone()).unwrap();
        let data = secret.data.unwrap();
        let text = |key: &str| String::from_utf8(data[key].0.clone()).unwrap();
        assert_eq!(text("clouds.yaml"), "clouds: {}", "{name}");
        assert_eq!(text("cacert"), "certificates", "{name}");
        assert_eq!(text("ca-bundle.pem"), "certificates", "{name}");
        assert_eq!(
            text("cloud.conf"),
            format!(
                "[BlockStorage]\nbs-version = v3\n\
                 [Global]\nuse-clouds = true\nclouds-file = /etc/openstack/secret/clouds.yaml\ncloud = openstack\n\
                 ca-file = /etc/pki/ca-trust/extracted/pem/ca-bundle.pem\n\n\
                 [LoadBalancer]\nmax-shared-lb = 1\nmanage-security-groups = true\nfloating-network-id = {id}\n\n\
                 [Networking]\naddress-sort-order = 10.0.0.0/16,10.1.0.0/16"
            ),
            "{name}"
        );
    }
    let copy = &secrets["one-cloud"];
    assert_eq!(copy.namespace(), Some("clusters-one"));
}

/// Check T16.
#[test]
fn configurations_reject_injected_settings() {
    let mut facts = facts(CapiTypes::Private, &json!({}));
    let openstack = facts.cluster.spec.platform.openstack.as_mut().unwrap();
    openstack.identity_ref.cloud_name = "a\nca-file = /etc/passwd".to_owned();
    let problems = problems(&facts);
    assert!(
        problems[0].contains("identityRef.cloudName"),
        "{problems:?}"
    );
    assert!(OpenStack.secrets(&facts).is_empty());
}

#[test]
fn the_provider_has_the_controllers_of_images() {
    let facts = facts(CapiTypes::Private, &json!({}));
    let deployment = &built(&facts, "Deployment")["capi-provider"];
    let containers = deployment.body["spec"]["template"]["spec"]["containers"].as_array();
    for (name, expected) in [
        ("manager", "openstack-cluster-api-controllers"),
        ("orc-manager", "openstack-resource-controller"),
    ] {
        let container = containers.unwrap().iter().find(|it| it["name"] == name);
        let image = container.unwrap()["image"].as_str().unwrap();
        assert!(image.contains(expected), "{name}: {image}");
    }
    let roles = built(&facts, "Role");
    let granted = roles["capi-provider"].body["rules"].as_array().unwrap();
    let is_of_images = |rule: &&Value| rule["apiGroups"] == json!([image::GROUP]);
    assert!(
        granted.iter().any(|rule| is_of_images(&rule)),
        "{granted:?}"
    );
}

#[test]
fn the_controllers_of_images_may_have_another_image() {
    let mut facts = facts(CapiTypes::Private, &json!({}));
    let other = "images.example.com/resource-controller:v2";
    facts.images.resource_controller = Some(other.to_owned());
    let deployment = &built(&facts, "Deployment")["capi-provider"];
    let containers = deployment.body["spec"]["template"]["spec"]["containers"].as_array();
    let mut containers = containers.unwrap().iter();
    let container = containers.find(|it| it["name"] == "orc-manager");
    assert_eq!(container.unwrap()["image"], other);
}

#[test]
fn a_deletion_waits_for_images_and_servers() {
    let kinds = OpenStack.cleaned_up(Capi::new(CapiTypes::Private));
    let kinds: Vec<_> = kinds.iter().map(|it| it.kind.as_str()).collect();
    assert_eq!(kinds, ["Image", "OpenStackServer"]);
}
