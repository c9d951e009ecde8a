//! What follows from what: tables.

use std::path::Path;

use api::hypershift::v1beta1::{
    GcpPrivateServiceConnect, GcpPrivateServiceConnectStatus, HostedControlPlane,
};
use control_plane_component::Objects;
use http::StatusCode;
use jiff::Timestamp;
use serde_json::{Value, json};
use support::rest::{Request, refused};

use super::{attachment, cluster};
use crate::private_link::control::Provider as _;
use crate::private_link::gcp::client::credentials;
use crate::private_link::gcp::dns::Zones;
use crate::private_link::gcp::plan::{self, Attachment, Cluster, Endpoint, Owner, ROUTER};
use crate::private_link::gcp::provider::{Provider, delegation, externals};
use crate::private_link::gcp::status::{ADDRESS, ERROR, Outcome, patch, status};
use crate::private_link::problem::{Problem, failed};

fn hcp(edit: impl FnOnce(&mut Value)) -> HostedControlPlane {
    let text = include_str!(
        "../../../../../control-plane-component/tests/data/base/hosted-control-plane.yaml"
    );
    let mut hcp: Value = serde_saphyr::from_str(text).unwrap();
    let email = |account: &str| format!("{account}@guest-1.iam.gserviceaccount.com");
    hcp["metadata"]["uid"] = json!("u");
    hcp["spec"]["dns"]["baseDomain"] = json!("in.example.com");
    hcp["spec"]["platform"] = json!({ "type": "GCP", "gcp": {
        "project": "guest-1",
        "region": "us-central1",
        "networkConfig": { "network": { "name": "n" }, "privateServiceConnectSubnet": { "name": "psc" } },
        "workloadIdentity": {
            "projectNumber": "1", "poolID": "pool", "providerID": "provider",
            "serviceAccountsEmails": {
                "nodePool": email("a"), "controlPlane": email("cpo"), "cloudController": email("b"),
                "storage": email("c"), "imageRegistry": email("d"), "network": email("e"),
            },
        },
    } });
    edit(&mut hcp);
    serde_json::from_value(hcp).unwrap()
}

#[test]
fn links_follow_the_load_balancer_of_the_router() {
    let hcp = hcp(|_| {});
    let service = |type_: &str| {
        let mut objects = Objects::default();
        objects.insert(json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": { "name": ROUTER, "annotations": { "networking.gke.io/load-balancer-type": type_ } },
            "status": { "loadBalancer": { "ingress": [{ "ip": "10.0.0.4" }] } },
        }));
        objects
    };
    assert_eq!(Provider::link(&hcp, &service("External"), ROUTER), None);
    assert_eq!(Provider::link(&hcp, &Objects::default(), ROUTER), None);
    let desired = Provider::link(&hcp, &service("Internal"), ROUTER).unwrap();
    let expected = json!({ "loadBalancerIP": "10.0.0.4", "consumerAcceptList": ["guest-1"] });
    assert_eq!(desired["spec"], expected);
    assert_eq!(
        desired["metadata"]["finalizers"],
        json!([]),
        "it gets one later"
    );
    let mut live = desired.clone();
    live["apiVersion"] = json!("hypershift.openshift.io/v1beta1");
    live["kind"] = json!("GCPPrivateServiceConnect");
    // The hypershift-operator fills it in.
    live["spec"]["forwardingRuleName"] = json!("rule");
    let read = |value: &Value| -> GcpPrivateServiceConnect {
        serde_json::from_value(value.clone()).unwrap()
    };
    assert!(Provider::has(&read(&live), &desired));
    assert!(!Provider::is_offered(&read(&live)));
    live["status"] = json!({
        "serviceAttachmentName": "psc-1",
        "serviceAttachmentURI": "projects/p/regions/r/serviceAttachments/psc-1",
    });
    assert!(Provider::is_offered(&read(&live)));
    live["spec"]["loadBalancerIP"] = json!("10.0.0.5");
    assert!(!Provider::has(&read(&live), &desired));
}

#[test]
fn the_token_is_exchanged_for_the_account_of_the_operator() {
    let hcp = hcp(|_| {});
    let gcp = hcp.spec.platform.gcp.unwrap();
    let made = credentials(&gcp.workload_identity, Path::new("/tmp/token"));
    assert_eq!(made["type"], "external_account");
    assert_eq!(made["credential_source"]["file"], "/tmp/token");
    let audience = "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/pool/providers/provider";
    assert_eq!(made["audience"], audience);
    let url = made["service_account_impersonation_url"].as_str().unwrap();
    assert!(
        url.ends_with("/cpo@guest-1.iam.gserviceaccount.com:generateAccessToken"),
        "{url}"
    );
}

#[test]
fn descriptions_say_whose_something_is() {
    let own = cluster("one", "1", "");
    let id = "hypershift.openshift.io/cluster-id=";
    for (description, expected) in [
        (json!(null), Owner::Unclaimed),
        (json!("by hand"), Owner::Unclaimed),
        (json!(format!("{id}1")), Owner::Cluster),
        (json!(format!("{id}2")), Owner::Another),
    ] {
        let resource = json!({ "description": description });
        assert_eq!(own.owner_of(&resource), expected, "{resource}");
    }
    let without_id = Cluster {
        id: None,
        ..own.clone()
    };
    let made = without_id.address(&attachment("psc-1"));
    assert_eq!(made["description"], format!("{id}infra-1"));
}

#[test]
fn zones_have_names_of_limited_length() {
    let long = format!("{}.example.com", "a".repeat(60));
    for (name, domain, expected) in [
        ("one", "", vec!["one-hypershift-local".to_owned()]),
        (
            "one",
            "in.example.com",
            [
                "one-hypershift-local",
                "in-example-com-public",
                "in-example-com-private",
            ]
            .map(str::to_owned)
            .into(),
        ),
        (
            "one",
            long.as_str(),
            vec![
                "one-hypershift-local".to_owned(),
                format!("{}-public", "a".repeat(55)),
                format!("{}-private", "a".repeat(55)),
            ],
        ),
    ] {
        let zones = cluster(name, "1", domain).zones("10.9.0.1");
        let names: Vec<_> = zones.iter().map(|it| it.name.clone()).collect();
        assert_eq!(names, expected);
        assert!(names.iter().all(|it| it.len() <= 63));
    }
    let name = "b".repeat(60);
    let zones = cluster(&name, "1", "").zones("10.9.0.1");
    assert_eq!(zones[0].name.len(), 63);
}

#[test]
fn records_of_others_are_not_replaced() {
    let zones = cluster("one", "1", "").zones("10.9.0.1");
    let zone = &zones[0];
    let api = |address: &str| {
        json!({
            "kind": "dns#resourceRecordSet", "name": "api.one.hypershift.local.", "type": "A", "ttl": 60,
            "rrdatas": [address],
        })
    };
    let soa = json!({ "name": "one.hypershift.local.", "type": "SOA", "ttl": 1, "rrdatas": ["x"] });
    for (live, is_own, additions, deletions) in [
        (vec![], true, 2, 0),
        (vec![soa.clone()], true, 2, 0),
        (vec![api("10.9.0.1")], true, 1, 0),
        (vec![api("10.9.0.2")], true, 2, 1),
        (vec![api("10.9.0.1")], false, 1, 0),
    ] {
        let change = zone.change(&live, is_own).unwrap().unwrap();
        let found = (change.additions.len(), change.deletions.len());
        assert_eq!(found, (additions, deletions), "{live:?}");
    }
    let refused = zone.change(&[api("10.9.0.2")], false).unwrap_err();
    assert_eq!(refused, "api.one.hypershift.local.");
    assert_eq!(zone.change(&zone.records, false), Ok(None));
    // Of a zone of the cluster's own all records go, and of another one those that lead to the endpoint.
    let live = [soa, api("10.9.0.1"), api("10.9.0.2")];
    assert_eq!(zone.removal(&live, true).len(), 2);
    assert_eq!(zone.removal(&live, false), [zone.records[0].clone()]);
}

#[test]
fn connections_of_endpoints_are_understood() {
    let own = attachment("psc-1");
    let url = format!("https://www.googleapis.com/compute/v1/{}", own.uri);
    for (target, state, expected) in [
        (url.as_str(), "ACCEPTED", Endpoint::Connected),
        (own.uri.as_str(), "ACCEPTED", Endpoint::Connected),
        (url.as_str(), "PENDING", Endpoint::Waiting),
        (url.as_str(), "REJECTED", Endpoint::Useless),
        (url.as_str(), "CLOSED", Endpoint::Useless),
        (
            "projects/p/regions/r/serviceAttachments/other",
            "ACCEPTED",
            Endpoint::Useless,
        ),
    ] {
        let rule = json!({ "target": target, "pscConnectionStatus": state });
        assert_eq!(plan::endpoint(&rule, &own), expected, "{target} {state}");
    }
}

#[test]
fn published_names_of_private_clusters_lead_to_the_endpoint() {
    for (access, expected) in [("Private", 1), ("PublicAndPrivate", 0)] {
        let hcp = hcp(|it| {
            it["spec"]["platform"]["gcp"]["endpointAccess"] = json!(access);
            it["spec"]["services"] = json!([{
                "service": "APIServer",
                "servicePublishingStrategy": { "type": "Route", "route": { "hostname": "api.example.com" } },
            }]);
        });
        let all = externals(&hcp, "10.9.0.1");
        assert_eq!(all.len(), expected, "{access}");
        for service in all {
            assert_eq!(service["spec"]["externalName"], "10.9.0.1");
            assert_eq!(service["spec"]["ports"][0]["port"], 443);
        }
    }
}

#[test]
fn the_public_zone_is_delegated() {
    let hcp = hcp(|_| {});
    assert_eq!(delegation(&hcp, &[]).len(), 0);
    let servers = ["ns-1.example.".to_owned(), "ns-2.example.".to_owned()];
    let all = delegation(&hcp, &servers);
    let (kind, object) = &all[0];
    assert_eq!(
        (kind.kind.as_str(), kind.plural.as_str()),
        ("DNSEndpoint", "dnsendpoints")
    );
    assert_eq!(object["metadata"]["name"], "hcp-ingress-delegation");
    let expected = json!([{
        "dnsName": "in.example.com", "recordType": "NS", "recordTTL": 300,
        "targets": ["ns-1.example", "ns-2.example"],
    }]);
    assert_eq!(object["spec"]["endpoints"], expected);
}

#[test]
fn attachments_are_those_of_the_status() {
    let read = |status: Value| -> Option<Attachment> {
        let live: GcpPrivateServiceConnect = serde_json::from_value(json!({
            "apiVersion": "hypershift.openshift.io/v1beta1",
            "kind": "GCPPrivateServiceConnect",
            "metadata": { "name": ROUTER },
            "spec": { "loadBalancerIP": "10.0.0.4", "consumerAcceptList": ["guest-1"] },
            "status": status,
        }))
        .unwrap();
        Attachment::of(&live)
    };
    assert_eq!(read(json!({})), None);
    let found = read(json!({ "serviceAttachmentName": "a/b", "serviceAttachmentURI": "u" }));
    assert_eq!(found, None, "it is a part of URLs");
    let found = read(json!({ "serviceAttachmentName": "psc-1", "serviceAttachmentURI": "u" }));
    assert_eq!(found.map(|it| it.rule()).as_deref(), Some("psc-1-endpoint"));
}

#[test]
fn the_conditions_say_what_has_become_of_it() {
    let now: Timestamp = "2030-01-01T00:00:00Z".parse().unwrap();
    let denied = || {
        let request = Request::get("https://dns.googleapis.com/x");
        let body = json!({ "error": { "status": "PERMISSION_DENIED", "message": "number 4711" } });
        failed(ERROR)(refused(&request, StatusCode::FORBIDDEN, &body))
    };
    let before = GcpPrivateServiceConnectStatus {
        service_attachment_name: Some("psc-1".to_owned()),
        ..GcpPrivateServiceConnectStatus::default()
    };
    let (endpoint, dns) = ("GCPEndpointAvailable", "GCPDNSAvailable");
    for (outcome, expected) in [
        (
            Outcome {
                endpoint: Ok("10.9.0.1".to_owned()),
                zones: Some(Ok(Zones::default())),
            },
            vec![
                (endpoint, "True", "GCPSuccess", "10.9.0.1"),
                (dns, "True", "GCPSuccess", "lead to the endpoint"),
            ],
        ),
        (
            Outcome::failed(Problem::input(ADDRESS, "waiting")),
            vec![(endpoint, "False", ADDRESS, "waiting")],
        ),
        (
            Outcome {
                endpoint: Ok("10.9.0.1".to_owned()),
                zones: Some(Err(denied())),
            },
            vec![
                (endpoint, "True", "GCPSuccess", "10.9.0.1"),
                (
                    dns,
                    "False",
                    ERROR,
                    "(PERMISSION_DENIED). Check the permissions of",
                ),
            ],
        ),
    ] {
        let after = status(&before, &outcome, Some(3), now);
        assert_eq!(after.service_attachment_name.as_deref(), Some("psc-1"));
        assert_eq!(
            after.conditions.len(),
            expected.len(),
            "{:?}",
            after.conditions
        );
        for (found, (type_, status, reason, message)) in after.conditions.iter().zip(expected) {
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
    }
}
