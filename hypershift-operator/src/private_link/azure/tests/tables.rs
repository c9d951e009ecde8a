//! What follows from what: tables.

use api::hypershift::v1beta1::{AzurePrivateLinkService, AzurePrivateLinkServiceStatus};
use http::StatusCode;
use jiff::Timestamp;
use serde_json::{Value, json};
use support::rest::{Request, refused};

use super::{ONE, TWO, frontend, frontend_id, target};
use crate::facts::fixture::hosted_cluster;
use crate::private_link::azure::plan::{self, Desired};
use crate::private_link::azure::provider::{SUBNET, desired, patch, recorded, status};
use crate::private_link::azure::service::{CREATION, LOOKUP, Made, Seen};
use crate::private_link::inputs::Balancer;
use crate::private_link::problem::{Problem, failed};

/// A change of a field.
type Change = fn(&mut Value);

#[test]
fn frontends_are_those_of_the_service() {
    let own = Balancer {
        address: ONE.0.to_owned(),
        name: ONE.1.to_owned(),
    };
    let with_subnet = format!("{}-nodes", ONE.1);
    let balancer = |frontends: &[(&str, &str)]| {
        let all: Vec<_> = frontends.iter().map(|it| frontend(*it)).collect();
        json!({ "name": "b", "properties": { "frontendIPConfigurations": all } })
    };
    let named = (ONE.0, "custom");
    for (balancers, expected) in [
        (vec![], Err("waiting for an internal load balancer")),
        (
            vec![balancer(&[TWO])],
            Err("waiting for an internal load balancer"),
        ),
        (vec![balancer(&[TWO, ONE])], Ok(ONE.1)),
        (
            vec![balancer(&[(ONE.0, with_subnet.as_str())])],
            Ok(with_subnet.as_str()),
        ),
        (vec![balancer(&[named])], Ok("custom")),
        (vec![balancer(&[named]), balancer(&[ONE])], Ok(ONE.1)),
        (
            vec![balancer(&[named]), balancer(&[named])],
            Err("2 load balancers"),
        ),
        (
            vec![balancer(&[(ONE.0, TWO.1)])],
            Err("was made for another Service"),
        ),
    ] {
        match (plan::frontend(&balancers, &own), expected) {
            (Ok(found), Ok(name)) => assert_eq!(found.id, frontend_id(name)),
            (Err(message), Err(part)) => assert!(message.contains(part), "{message}"),
            (found, expected) => panic!("{found:?}, not {expected:?}"),
        }
    }
}

#[test]
fn ranges_are_free() {
    let network = |space: &[&str], taken: &[&str]| {
        let subnets = taken.iter();
        let subnets: Vec<_> = subnets
            .map(|it| json!({ "properties": { "addressPrefix": it } }))
            .collect();
        json!({ "properties": { "addressSpace": { "addressPrefixes": space }, "subnets": subnets } })
    };
    for (network, expected) in [
        (
            network(&["10.0.0.0/16"], &["10.0.0.0/24"]),
            Some("10.0.1.0/24"),
        ),
        (
            network(&["10.0.0.0/16"], &["10.0.0.0/22"]),
            Some("10.0.4.0/24"),
        ),
        (
            network(&["10.0.0.0/16"], &["10.0.1.128/25"]),
            Some("10.0.2.0/24"),
        ),
        (
            network(&["fd00::/48", "10.8.0.0/16"], &[]),
            Some("10.8.1.0/24"),
        ),
        (network(&["10.0.5.0/24"], &[]), Some("10.0.5.0/24")),
        (network(&["10.0.5.0/24"], &["10.0.5.0/26"]), None),
        (network(&["10.0.0.0/25"], &[]), None),
        (
            network(&["10.0.0.0/24", "10.0.7.0/24"], &["10.0.0.0/24"]),
            Some("10.0.7.0/24"),
        ),
        (json!({}), None),
    ] {
        let found = plan::free_range(&network).map(|it| it.to_string());
        assert_eq!(found.as_deref(), expected, "{network}");
    }
}

#[test]
fn only_subnets_of_this_operator_are_disposable() {
    let subnet = |edit: &dyn Fn(&mut Value)| {
        let mut subnet = plan::new_subnet("10.0.1.0/24".parse().unwrap());
        subnet["name"] = json!("infra-1-pls-nat");
        subnet["id"] = json!("/n/subnets/infra-1-pls-nat");
        edit(&mut subnet);
        subnet
    };
    let group = json!({ "id": "/g" });
    let many = json!([{ "id": "/x" }]);
    let edits: [(&str, Value); 7] = [
        ("/name", json!("nodes")),
        ("/properties/addressPrefix", json!("10.0.0.0/16")),
        (
            "/properties/privateLinkServiceNetworkPolicies",
            json!("Enabled"),
        ),
        ("/properties/networkSecurityGroup", group.clone()),
        ("/properties/routeTable", group),
        ("/properties/ipConfigurations", many.clone()),
        ("/properties/delegations", many),
    ];
    assert!(plan::is_disposable(&subnet(&|_| {}), &[]));
    for (pointer, value) in edits {
        let changed = subnet(&|it| {
            let (object, field) = pointer.rsplit_once('/').unwrap();
            let object = if object.is_empty() {
                it
            } else {
                &mut it["properties"]
            };
            object[field] = value.clone();
        });
        assert!(!plan::is_disposable(&changed, &[]), "{pointer}");
    }
    let used = plan::Link::of(
        &json!({ "properties": { "ipConfigurations": [{ "properties": {
        "subnet": { "id": "/N/subnets/INFRA-1-pls-nat" },
    } }] } }),
    );
    assert!(!plan::is_disposable(&subnet(&|_| {}), &[used]));
}

pub(super) fn link(annotation: Option<&str>) -> AzurePrivateLinkService {
    let id = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/n";
    serde_json::from_value(json!({
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "AzurePrivateLinkService",
        "metadata": { "name": "private-router", "annotations": { SUBNET: annotation.unwrap_or("") } },
        "spec": {
            "loadBalancerIP": ONE.0, "subscriptionID": "s", "resourceGroupName": "g", "location": "eastus",
            "guestSubnetID": format!("{id}/subnets/a"), "guestVNetID": id,
        },
    }))
    .unwrap()
}

/// The control plane can write the annotation. Without the HostedCluster, it is all that is known of the subnet.
#[test]
fn recorded_subnets_are_those_of_the_cluster() {
    let with = |infra_id: Option<&str>| {
        let mut cluster = hosted_cluster("azure");
        cluster.spec.infra_id = infra_id.map(str::to_owned);
        cluster
    };
    let (cluster, without_id) = (with(Some("infra-1")), with(None));
    for (annotation, of_cluster, of_none) in [
        (None, false, false),
        (Some("/a/subnets/infra-1-pls-nat"), true, true),
        (Some("/a/subnets/infra-2-pls-nat"), false, true),
        (Some("/a/subnets/-pls-nat"), false, false),
        (Some("/a/subnets/nodes"), false, false),
        (Some("/a?b/subnets/infra-1-pls-nat"), false, false),
        (Some("infra-1-pls-nat"), false, false),
    ] {
        let link = link(annotation);
        for (cluster, expected) in [
            (Some(&cluster), of_cluster),
            (Some(&without_id), false),
            (None, of_none),
        ] {
            let found = recorded(&link, cluster);
            assert_eq!(found.as_deref(), annotation.filter(|_| expected));
        }
    }
}

fn of_cluster(edit: impl FnOnce(&mut Value)) -> Result<Desired, Problem> {
    let mut cluster = json!(hosted_cluster("azure"));
    cluster["spec"]["clusterID"] = json!("11111111-2222-3333-4444-555555555555");
    cluster["spec"]["infraID"] = json!("infra-1");
    let azure = &mut cluster["spec"]["platform"]["azure"];
    azure["subscriptionID"] = json!("AAAAAAAA-2222-3333-4444-555555555555");
    azure["private"] = json!({ "type": "PrivateLink", "privateLink": {
        "additionalAllowedSubscriptions": ["bbbbbbbb-2222-3333-4444-555555555555"],
    } });
    edit(&mut cluster["spec"]);
    let cluster: api::hypershift::v1beta1::HostedCluster = serde_json::from_value(cluster).unwrap();
    let azure = cluster.spec.platform.azure.clone().unwrap();
    desired(
        &cluster,
        &azure,
        "private-router",
        Some(ONE.0),
        target("u", ONE),
    )
}

#[test]
fn what_is_desired_is_that_of_the_hosted_cluster() {
    let made = of_cluster(|_| {}).unwrap();
    assert_eq!(made.name, "pls-11111111-2222-3333-4444-555555555555");
    let expected = [
        "aaaaaaaa-2222-3333-4444-555555555555",
        "bbbbbbbb-2222-3333-4444-555555555555",
    ];
    assert!(made.subscriptions.iter().eq(expected));
    assert_eq!(
        plan::link_name("oauth-openshift", "1"),
        "pls-oauth-openshift-1"
    );
    let refused: [(&str, Change); 3] = [
        ("spec.clusterID", |it| it["clusterID"] = json!(null)),
        ("spec.infraID has characters", |it| {
            it["infraID"] = json!("a/b")
        }),
        ("natSubnetID is not the ID of a subnet", |it| {
            it["platform"]["azure"]["private"]["privateLink"]["natSubnetID"] = json!("/a?b");
        }),
    ];
    for (expected, edit) in refused {
        let message = of_cluster(edit).unwrap_err().message("", "");
        assert!(message.contains(expected), "{message}");
    }
    let mut cluster = hosted_cluster("azure");
    cluster.spec.cluster_id = Some("1".to_owned());
    cluster.spec.infra_id = Some("infra-1".to_owned());
    let azure = cluster.spec.platform.azure.clone().unwrap();
    let liar = desired(
        &cluster,
        &azure,
        "private-router",
        Some(TWO.0),
        target("u", ONE),
    );
    let problem = liar.unwrap_err();
    assert_eq!(problem.reason, LOOKUP);
    assert!(
        problem
            .message("", "")
            .contains("is not the address of Service")
    );
}

/// The message of a condition has no text of Azure: it may name resources of the management cluster.
#[test]
fn the_conditions_say_what_has_become_of_it() {
    let now: Timestamp = "2030-01-01T00:00:00Z".parse().unwrap();
    let secret = || {
        let request = Request::get("https://management.azure.com/secret");
        let body = json!({ "error": { "code": "AuthorizationFailed", "message": "secret" } });
        refused(&request, StatusCode::FORBIDDEN, &body)
    };
    let before = AzurePrivateLinkServiceStatus {
        private_link_service_alias: Some("former".to_owned()),
        private_endpoint_ip: Some("10.1.0.4".to_owned()),
        ..AzurePrivateLinkServiceStatus::default()
    };
    let there = Made {
        balancer: Seen::There("/balancer".to_owned()),
        service: Seen::There("/service".to_owned()),
        alias: "alias".to_owned(),
    };
    let absent = Made {
        balancer: Seen::Absent,
        ..Made::default()
    };
    let (balancer, service, all) = (
        "AzureInternalLoadBalancerAvailable",
        "AzurePLSCreated",
        "AzurePrivateLinkServiceAvailable",
    );
    let denied = "the cloud refuses it (AuthorizationFailed)";
    for (made, result, alias, expected) in [
        (
            there.clone(),
            Ok(()),
            "alias",
            vec![
                (balancer, "True", "AzureSuccess", ""),
                (service, "True", "AzureSuccess", ""),
            ],
        ),
        (
            absent,
            Err(Problem::input(LOOKUP, "waiting for it")),
            "former",
            vec![
                (balancer, "False", LOOKUP, "waiting for it"),
                (all, "False", LOOKUP, "waiting for it"),
            ],
        ),
        (
            Made {
                service: Seen::Absent,
                ..there.clone()
            },
            Err(failed(CREATION)(secret())),
            "",
            vec![
                (balancer, "True", "AzureSuccess", ""),
                (service, "False", CREATION, denied),
                (all, "False", CREATION, denied),
            ],
        ),
        (
            Made::default(),
            Err(failed("AzureError")(secret())),
            "former",
            vec![
                (balancer, "False", "AzureError", denied),
                (all, "False", "AzureError", denied),
            ],
        ),
    ] {
        let after = status(&before, &made, &result, Some(3), now);
        assert_eq!(
            after
                .private_link_service_alias
                .as_deref()
                .unwrap_or_default(),
            alias
        );
        assert_eq!(after.private_endpoint_ip, before.private_endpoint_ip);
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
            assert!(!found.message.contains("secret"), "{}", found.message);
        }
        let later = status(&after, &made, &result, Some(3), Timestamp::now());
        assert_eq!(patch(&after, &later), None, "nothing has changed");
    }
}
