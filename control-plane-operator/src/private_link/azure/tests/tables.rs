//! What follows from what: tables.

use api::hypershift::v1beta1::{
    AzurePrivateLinkService, AzurePrivateLinkServiceStatus, HostedControlPlane,
};
use control_plane_component::Objects;
use http::StatusCode;
use jiff::Timestamp;
use serde_json::{Value, json};
use support::rest::{Request, refused};

use super::{NETWORK, cluster, link};
use crate::private_link::azure::dns::Zones;
use crate::private_link::azure::endpoint::Made;
use crate::private_link::azure::plan::{self, Cluster, Endpoint, OAUTH, Owner, ROUTER, Record};
use crate::private_link::azure::provider::{Provider, externals};
use crate::private_link::azure::status::{ERROR, NOT_APPROVED, Outcome, patch, status};
use crate::private_link::control::Provider as _;
use crate::private_link::problem::{Problem, failed};

fn hcp(edit: impl FnOnce(&mut Value)) -> HostedControlPlane {
    let text = include_str!(
        "../../../../../control-plane-component/tests/data/base/hosted-control-plane.yaml"
    );
    let mut hcp: Value = serde_saphyr::from_str(text).unwrap();
    hcp["metadata"]["uid"] = json!("u");
    hcp["spec"]["infraID"] = json!("infra-1");
    hcp["spec"]["dns"]["baseDomain"] = json!("example.com");
    hcp["spec"]["platform"]["type"] = json!("Azure");
    let azure = &mut hcp["spec"]["platform"]["azure"];
    azure["location"] = json!("East US");
    azure["topology"] = json!("Private");
    azure["private"] = json!({ "type": "PrivateLink", "privateLink": {
        "additionalAllowedSubscriptions": ["bbbbbbbb-2222-3333-4444-555555555555"],
    } });
    edit(&mut hcp);
    serde_json::from_value(hcp).unwrap()
}

fn service(internal: &Value, address: &Value) -> Objects {
    let mut objects = Objects::default();
    objects.insert(json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": ROUTER, "annotations": {
            "service.beta.kubernetes.io/azure-load-balancer-internal": internal,
        } },
        "status": { "loadBalancer": { "ingress": [{ "ip": address }] } },
    }));
    objects
}

#[test]
fn links_follow_the_load_balancers_of_services() {
    let hcp = hcp(|_| {});
    assert!(Provider::is_private(&hcp));
    for (internal, address) in [
        (json!(null), json!("10.0.0.4")),
        (json!("false"), json!("10.0.0.4")),
        (json!("true"), json!(null)),
    ] {
        let objects = service(&internal, &address);
        assert_eq!(Provider::link(&hcp, &objects, ROUTER), None);
    }
    let objects = service(&json!("true"), &json!("10.0.0.4"));
    assert_eq!(Provider::link(&hcp, &objects, OAUTH), None);
    let desired = Provider::link(&hcp, &objects, ROUTER).unwrap();
    let azure = hcp.spec.platform.azure.as_ref().unwrap();
    let spec = &desired["spec"];
    assert_eq!(spec["loadBalancerIP"], "10.0.0.4");
    assert_eq!(spec["location"], "eastus");
    assert_eq!(spec["subscriptionID"], json!(azure.subscription_id));
    assert_eq!(spec["guestVNetID"], json!(azure.vnet_id));
    assert_eq!(spec["baseDomain"], json!(hcp.spec.dns.base_domain));

    let read = |value: &Value| -> AzurePrivateLinkService {
        let mut value = value.clone();
        value["apiVersion"] = json!("hypershift.openshift.io/v1beta1");
        value["kind"] = json!("AzurePrivateLinkService");
        serde_json::from_value(value).unwrap()
    };
    assert!(Provider::has(&read(&desired), &desired));
    for (pointer, value) in [
        ("/metadata/finalizers", json!([])),
        ("/metadata/ownerReferences", json!([])),
        ("/spec/loadBalancerIP", json!("10.0.0.5")),
        ("/spec/additionalAllowedSubscriptions", json!([])),
    ] {
        let mut changed = desired.clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        assert!(!Provider::has(&read(&changed), &desired), "{pointer}");
    }
    assert!(!Provider::is_offered(&read(&desired)));
}

#[test]
fn only_private_clusters_with_private_link_have_links() {
    for (topology, type_, expected) in [
        ("Private", "PrivateLink", true),
        ("PublicAndPrivate", "PrivateLink", true),
        ("Public", "PrivateLink", false),
        ("Private", "Swift", false),
    ] {
        let hcp = hcp(|it| {
            let azure = &mut it["spec"]["platform"]["azure"];
            azure["topology"] = json!(topology);
            azure["private"]["type"] = json!(type_);
        });
        assert_eq!(Provider::is_private(&hcp), expected, "{topology} {type_}");
    }
}

#[test]
fn the_base_domain_is_that_of_published_names() {
    for (host, expected) in [
        (None, "example.com"),
        (Some("oauth-one.apps.example.org"), "apps.example.org"),
        (Some("login.example.org"), "example.com"),
    ] {
        let hcp = hcp(|it| {
            it["metadata"]["name"] = json!("one");
            let route = host.map(|host| json!({ "hostname": host }));
            it["spec"]["services"] = json!([{
                "service": "OAuthServer",
                "servicePublishingStrategy": { "type": "Route", "route": route },
            }]);
        });
        let objects = service(&json!("true"), &json!("10.0.0.4"));
        let desired = Provider::link(&hcp, &objects, ROUTER).unwrap();
        assert_eq!(desired["spec"]["baseDomain"], expected, "{host:?}");
        let names = externals(&hcp, "10.1.0.4");
        assert_eq!(names.len(), usize::from(host.is_some()));
        if let Some(first) = names.first() {
            assert_eq!(first["spec"]["externalName"], "10.1.0.4");
            assert_eq!(first["metadata"]["name"], "oauth-external-private");
            let label = "hypershift.openshift.io/azure-pls-external-private-svc";
            assert_eq!(first["metadata"]["labels"][label], "true");
        }
    }
}

#[test]
fn tags_say_whose_something_is() {
    let own = cluster("one", "1", "n");
    let (name, id) = (
        "kubernetes.io_cluster_one",
        "hypershift.openshift.io_cluster-id",
    );
    for (tags, expected) in [
        (json!({}), Owner::Unclaimed),
        (json!({ "team": "red" }), Owner::Unclaimed),
        (json!({ name: "owned" }), Owner::Cluster),
        (json!({ name: "shared" }), Owner::Unclaimed),
        (json!({ name: "owned", id: "1" }), Owner::Cluster),
        (json!({ name: "owned", id: "2" }), Owner::Another),
        (
            json!({ "kubernetes.io_cluster_two": "owned" }),
            Owner::Unclaimed,
        ),
    ] {
        assert_eq!(own.owner_of(&json!({ "tags": tags })), expected, "{tags}");
    }
    assert_eq!(own.owner_of(&own.own_zone()), Owner::Cluster);
    assert_eq!(own.owner_of(&Cluster::shared_zone()), Owner::Unclaimed);
    let other = cluster("one", "2", "n");
    assert_eq!(other.owner_of(&own.own_zone()), Owner::Another);
}

#[test]
fn records_of_others_are_not_replaced() {
    let (own, other) = (cluster("one", "1", "n"), cluster("one", "2", "n"));
    let by_hand = json!({ "properties": { "aRecords": [{ "ipv4Address": "10.0.0.1" }] } });
    for (live, is_own_zone, expected) in [
        (own.record("10.0.0.1"), false, Record::Same),
        (own.record("10.0.0.2"), false, Record::Write),
        (other.record("10.0.0.1"), false, Record::Foreign),
        (other.record("10.0.0.1"), true, Record::Foreign),
        (by_hand.clone(), false, Record::Write),
        (by_hand, true, Record::Write),
        (json!({}), false, Record::Foreign),
        (json!({}), true, Record::Write),
    ] {
        assert_eq!(
            own.change(&live, "10.0.0.1", is_own_zone),
            expected,
            "{live}"
        );
    }
}

#[test]
fn connections_of_endpoints_are_understood() {
    let endpoint = |state: &str, connection: &str| {
        let state_of = json!({ "status": connection });
        json!({ "properties": {
            "provisioningState": state,
            "manualPrivateLinkServiceConnections": [{
                "properties": { "privateLinkServiceConnectionState": state_of },
            }],
        } })
    };
    for (state, connection, expected) in [
        ("Succeeded", "Approved", Endpoint::Connected),
        ("Succeeded", "Pending", Endpoint::Waiting),
        ("Updating", "Approved", Endpoint::Waiting),
        ("Succeeded", "", Endpoint::Waiting),
        ("Succeeded", "Rejected", Endpoint::Useless),
        ("Succeeded", "Disconnected", Endpoint::Useless),
        ("Failed", "Approved", Endpoint::Useless),
    ] {
        let found = endpoint(state, connection);
        assert_eq!(plan::endpoint(&found), expected, "{state} {connection}");
    }
    assert_eq!(plan::interface(&json!({})), None);
}

#[test]
fn what_cannot_be_a_part_of_an_id_is_refused() {
    let read = |edit: &dyn Fn(&mut Value)| -> AzurePrivateLinkService {
        let mut value = json!({
            "apiVersion": "hypershift.openshift.io/v1beta1",
            "kind": "AzurePrivateLinkService",
            "metadata": { "name": ROUTER },
            "spec": {
                "subscriptionID": "s", "resourceGroupName": "g", "location": "eastus",
                "guestSubnetID": format!("{NETWORK}/n/subnets/a"), "guestVNetID": format!("{NETWORK}/n"),
            },
        });
        edit(&mut value["spec"]);
        serde_json::from_value(value).unwrap()
    };
    let hcp = hcp(|_| {});
    let endpoint = "https://management.azure.com";
    assert!(Cluster::of(&hcp, &read(&|_| {}), endpoint).is_ok());
    for (field, value) in [
        ("resourceGroupName", "g?x=y"),
        ("subscriptionID", "a/b"),
        ("guestSubnetID", "/a/b#c"),
        ("guestVNetID", "n"),
    ] {
        let live = read(&|it| it[field] = json!(value));
        let problem = Cluster::of(&hcp, &live, endpoint).unwrap_err();
        assert!(problem.message("", "").starts_with(field), "{field}");
    }
}

#[test]
fn names_of_records_follow_the_links() {
    let cluster = cluster("one", "1", "n");
    for (name, has_oauth, records, shared) in [
        (
            ROUTER,
            false,
            vec!["api", "*.apps"],
            vec!["api-one", "oauth-one"],
        ),
        (ROUTER, true, vec!["api", "*.apps"], vec!["api-one"]),
        (OAUTH, false, vec![], vec!["oauth-one"]),
        ("other", false, vec![], vec![]),
    ] {
        let link = link(name, "pls-1", has_oauth);
        assert_eq!(link.records(), records, "{name}");
        assert_eq!(link.shared_records(&cluster), shared, "{name}");
    }
}

#[test]
fn the_conditions_say_what_has_become_of_it() {
    let now: Timestamp = "2030-01-01T00:00:00Z".parse().unwrap();
    let denied = || {
        let request = Request::get("https://management.azure.com/x");
        let body = json!({ "error": { "code": "AuthorizationFailed", "message": "number 4711" } });
        failed(ERROR)(refused(&request, StatusCode::FORBIDDEN, &body))
    };
    let good = |type_: &str| {
        json!({
            "type": type_, "status": "True", "reason": "AzureSuccess", "message": "",
            "lastTransitionTime": "2030-01-01T00:00:00Z",
        })
    };
    let of_operator = ["AzureInternalLoadBalancerAvailable", "AzurePLSCreated"].map(good);
    let before = AzurePrivateLinkServiceStatus {
        conditions: serde_json::from_value(json!(of_operator)).unwrap(),
        private_link_service_alias: Some("alias".to_owned()),
        ..AzurePrivateLinkServiceStatus::default()
    };
    let made = || Made {
        id: "/endpoint".to_owned(),
        address: "10.1.0.4".to_owned(),
    };
    let zones = Zones {
        own: Some(("/zone".to_owned(), "one.hypershift.local".to_owned())),
        shared: Some("/shared".to_owned()),
        is_linked_elsewhere: true,
    };
    let (endpoint, dns, all) = (
        "AzurePrivateEndpointAvailable",
        "AzurePrivateDNSAvailable",
        "AzurePrivateLinkServiceAvailable",
    );
    for (outcome, expected) in [
        (
            Outcome {
                endpoint: Ok(made()),
                zones: Some(Ok(zones)),
            },
            vec![
                (endpoint, "True", "AzureSuccess", "10.1.0.4"),
                (
                    dns,
                    "True",
                    "AzureSuccess",
                    "linked to another private DNS zone",
                ),
                (all, "True", "AzureSuccess", "is available"),
            ],
        ),
        (
            Outcome::failed(Problem::input(NOT_APPROVED, "waiting")),
            vec![
                (endpoint, "False", NOT_APPROVED, "waiting"),
                (all, "False", NOT_APPROVED, "waiting"),
            ],
        ),
        (
            Outcome {
                endpoint: Ok(made()),
                zones: Some(Err(denied())),
            },
            vec![
                (endpoint, "True", "AzureSuccess", "10.1.0.4"),
                (
                    dns,
                    "False",
                    ERROR,
                    "(AuthorizationFailed). Check the permissions of",
                ),
                (all, "False", ERROR, "(AuthorizationFailed)"),
            ],
        ),
    ] {
        let after = status(&before, &outcome, Some(3), now);
        assert_eq!(
            after.private_link_service_alias,
            before.private_link_service_alias
        );
        let found = &after.conditions[of_operator.len()..];
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, (type_, status, reason, message)) in found.iter().zip(expected) {
            assert_eq!(
                (found.type_.as_str(), found.status.as_str()),
                (type_, status)
            );
            assert_eq!(found.reason, reason);
            assert!(found.message.contains(message), "{}", found.message);
            assert!(!found.message.contains("4711"), "{}", found.message);
        }
        let later = status(&after, &outcome, Some(3), Timestamp::now());
        assert_eq!(patch(&after, &later), None, "nothing has changed");
        let written = patch(&before, &after).unwrap();
        assert_eq!(written["status"].get("privateLinkServiceAlias"), None);
    }
}
