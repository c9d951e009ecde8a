//! What follows from what: tables.

use api::hypershift::v1beta1::{GcpPrivateServiceConnect, GcpPrivateServiceConnectStatus};
use http::StatusCode;
use jiff::Timestamp;
use serde_json::{Value, json};
use support::rest::{Request, refused};

use super::{ONE, TWO, network, region, rule, rule_name, target};
use crate::facts::fixture::hosted_cluster;
use crate::private_link::gcp::attachment::{CREATION, ERROR};
use crate::private_link::gcp::plan::{self, Attachment, Rule};
use crate::private_link::gcp::provider::{desired, patch, status};
use crate::private_link::problem::{Problem, failed};

/// A forwarding rule as it is returned, with this description.
fn found(name: &str, address: &str, description: &str) -> Value {
    json!({
        "name": name,
        "selfLink": rule_name(name),
        "IPAddress": address,
        "network": network(),
        "description": description,
    })
}

#[test]
fn forwarding_rules_are_those_of_the_service() {
    let target = target("u", ONE);
    let own = target.balancer.clone().unwrap();
    let described = |service: &str| {
        let rule = rule([service, ONE[1], ""]);
        rule["description"].as_str().unwrap().to_owned()
    };
    let of_gke = json!({ "networking.gke.io/service-name": "two/private-router" }).to_string();
    let (mine, theirs) = (described("one"), described("two"));
    let address = ONE[1];
    for (rules, expected) in [
        (vec![], Err("waiting for a forwarding rule")),
        (
            vec![found("r", TWO[1], &mine)],
            Err("waiting for a forwarding rule"),
        ),
        (vec![found("r", address, &mine)], Ok("r")),
        (
            vec![found("s", address, ""), found("r", address, &mine)],
            Ok("r"),
        ),
        (vec![found("r", address, "by hand")], Ok("r")),
        (
            vec![found(ONE[2], address, ""), found("r", address, "")],
            Ok(ONE[2]),
        ),
        (
            vec![found("r", address, ""), found("s", address, "")],
            Err("2 forwarding rules"),
        ),
        (
            vec![found("r", address, &theirs)],
            Err("was made for another Service"),
        ),
        (
            vec![found("r", address, &of_gke)],
            Err("was made for another Service"),
        ),
        (
            vec![found(TWO[2], address, "")],
            Err("was made for another Service"),
        ),
    ] {
        match (plan::rule(&rules, &target, &own), expected) {
            (Ok(found), Ok(name)) => assert_eq!(found.name, name),
            (Err(message), Err(part)) => assert!(message.contains(part), "{message}"),
            (found, expected) => panic!("{found:?}, not {expected:?}"),
        }
    }
}

#[test]
fn subnets_are_free_and_in_the_network() {
    let subnet = |name: &str, purpose: &str, network: &str| json!({ "selfLink": format!("projects/p/regions/r/subnetworks/{name}"), "purpose": purpose, "network": network });
    let subnets = [
        subnet("nodes", "PRIVATE", "projects/p/global/networks/n"),
        subnet(
            "far",
            "PRIVATE_SERVICE_CONNECT",
            "projects/p/global/networks/m",
        ),
        subnet(
            "a",
            "PRIVATE_SERVICE_CONNECT",
            "projects/p/global/networks/n",
        ),
        subnet(
            "b",
            "PRIVATE_SERVICE_CONNECT",
            "projects/p/global/networks/n",
        ),
    ];
    let used = |names: &[&str]| -> Vec<Attachment> {
        let urls = names.iter();
        let urls = urls.map(|it| format!("https://x/projects/p/regions/r/subnetworks/{it}"));
        urls.map(|it| Attachment::of(&json!({ "natSubnets": [it] })))
            .collect()
    };
    let rule = Rule {
        name: "r".to_owned(),
        url: "projects/p/regions/r/forwardingRules/r".to_owned(),
        network: "https://x/projects/p/global/networks/n".to_owned(),
    };
    for (named, taken, expected) in [
        (None, vec![], Ok("a")),
        (None, vec!["a"], Ok("b")),
        (None, vec!["a", "b"], Err("has no free subnet")),
        (Some("b"), vec![], Ok("b")),
        (
            Some("b"),
            vec!["b"],
            Err("which another service attachment has"),
        ),
        (Some("nodes"), vec![], Err("which is no subnet of purpose")),
        (Some("far"), vec![], Err("which is no subnet of purpose")),
    ] {
        let mut desired = super::desired("u", ONE, "1");
        desired.subnet = named.map(str::to_owned);
        match (
            plan::subnet(&subnets, &used(&taken), &desired, &rule),
            expected,
        ) {
            (Ok(url), Ok(name)) => assert!(url.ends_with(&format!("/{name}")), "{url}"),
            (Err(message), Err(part)) => assert!(message.contains(part), "{message}"),
            (found, expected) => panic!("{found:?}, not {expected:?}"),
        }
    }
}

#[test]
fn what_is_desired_is_checked() {
    let link: GcpPrivateServiceConnect = serde_json::from_value(json!({
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "GCPPrivateServiceConnect",
        "metadata": { "name": "private-router" },
        "spec": { "loadBalancerIP": ONE[1], "consumerAcceptList": ["further-1"] },
    }))
    .unwrap();
    let cluster = hosted_cluster("gcp");
    let gcp = cluster.spec.platform.gcp.unwrap();
    let made = desired(&link, &gcp, Some("id-1"), target("u", ONE)).unwrap();
    assert_eq!(made.name, "psc-id-1");
    assert!(made.projects.iter().eq(["further-1", "my-project"]));
    for (id, service, reason, expected) in [
        (None, ONE, CREATION, "waiting for spec.clusterID"),
        (Some("a/b"), ONE, CREATION, "spec.clusterID has characters"),
        (Some("id-1"), TWO, ERROR, "is not the address of Service"),
    ] {
        let problem = desired(&link, &gcp, id, target("u", service)).unwrap_err();
        assert_eq!(problem.reason, reason);
        let message = problem.message("", "");
        assert!(message.contains(expected), "{message}");
    }
}

/// The message of a condition has no text of Google Cloud: it may name resources of the management cluster.
#[test]
fn the_condition_says_what_has_become_of_it() {
    let now: Timestamp = "2030-01-01T00:00:00Z".parse().unwrap();
    let request = Request::get("https://compute.googleapis.com/secret");
    let body = json!({ "error": { "status": "PERMISSION_DENIED", "message": "secret" } });
    let denied = failed(CREATION)(refused(&request, StatusCode::FORBIDDEN, &body));
    let waiting = Problem::input(ERROR, "waiting for it");
    let before = GcpPrivateServiceConnectStatus {
        service_attachment_name: Some("former".to_owned()),
        endpoint_ip: Some("10.1.0.4".to_owned()),
        ..GcpPrivateServiceConnectStatus::default()
    };
    let region = region();
    for (made, name, expected) in [
        (
            Ok(("psc-1", &region)),
            "psc-1",
            (
                "True",
                "GCPSuccess",
                "service attachment psc-1 is available",
            ),
        ),
        (Err(&waiting), "former", ("False", ERROR, "waiting for it")),
        (
            Err(&denied),
            "former",
            (
                "False",
                CREATION,
                "the cloud refuses it (PERMISSION_DENIED)",
            ),
        ),
    ] {
        let after = status(&before, made, Some(3), now);
        assert_eq!(after.service_attachment_name.as_deref(), Some(name));
        assert_eq!(after.endpoint_ip, before.endpoint_ip);
        let condition = &after.conditions[0];
        assert_eq!(condition.type_, "GCPServiceAttachmentAvailable");
        let found = (condition.status.as_str(), condition.reason.as_str());
        assert_eq!(found, (expected.0, expected.1));
        assert!(
            condition.message.contains(expected.2),
            "{}",
            condition.message
        );
        assert!(
            !condition.message.contains("secret"),
            "{}",
            condition.message
        );
        let later = status(&after, made, Some(3), Timestamp::now());
        assert_eq!(patch(&after, &later), None, "nothing has changed");
    }
    let after = status(&before, Ok(("psc-1", &region)), None, now);
    let uri = "projects/mgmt-1/regions/us-central1/serviceAttachments/psc-1";
    assert_eq!(after.service_attachment_uri.as_deref(), Some(uri));
}
