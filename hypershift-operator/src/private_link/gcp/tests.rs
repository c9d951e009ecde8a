//! Against a fake of Google Cloud: a process that ends at any call, and another tenant beside.

mod tables;

use fake_clouds::google_private_connect::GoogleNetworks;
use fake_clouds::{Cloud as _, Fake, Fault};
use serde_json::{Value, json};
use support::google_resources::Region;

use super::attachment::{Google, Progress, Removal};
use super::plan::{Desired, Target};
use crate::private_link::inputs::Balancer;
use crate::private_link::problem::Problem;

const PREFIX: &str = "projects/mgmt-1/regions/us-central1";
const CALL: &str = "compute.googleapis.com/compute/v1/projects/mgmt-1/regions/us-central1";
/// The Services of two tenants: their namespaces, addresses, and the names of their forwarding rules.
const ONE: [&str; 3] = ["one", "10.0.0.10", "a0000000000000000000000000000001"];
const TWO: [&str; 3] = ["two", "10.0.0.11", "a0000000000000000000000000000002"];

fn region() -> Region {
    Region {
        project: "mgmt-1".to_owned(),
        name: "us-central1".to_owned(),
    }
}

fn rule_name(name: &str) -> String {
    format!("{PREFIX}/forwardingRules/{name}")
}

fn attachment(name: &str) -> String {
    format!("{PREFIX}/serviceAttachments/{name}")
}

fn network() -> String {
    "https://www.googleapis.com/compute/v1/projects/mgmt-1/global/networks/n".to_owned()
}

fn rule([namespace, address, _]: [&str; 3]) -> Value {
    let service = format!("{namespace}/private-router");
    let description = json!({ "kubernetes.io/service-name": service }).to_string();
    json!({ "IPAddress": address, "network": network(), "description": description })
}

/// A network with these forwarding rules, and with two subnets for service attachments.
fn cloud(services: &[[&str; 3]]) -> Fake<GoogleNetworks> {
    let mut cloud = GoogleNetworks::default();
    for service in services {
        cloud.add(&rule_name(service[2]), rule(*service));
    }
    for (name, purpose) in [
        ("nodes", "PRIVATE"),
        ("psc-1", "PRIVATE_SERVICE_CONNECT"),
        ("psc-2", "PRIVATE_SERVICE_CONNECT"),
    ] {
        let subnet = json!({ "network": network(), "purpose": purpose });
        cloud.add(&format!("{PREFIX}/subnetworks/{name}"), subnet);
    }
    Fake::new(cloud)
}

fn target(uid: &str, [namespace, address, name]: [&str; 3]) -> Target {
    Target {
        uid: uid.to_owned(),
        service: format!("{namespace}/private-router"),
        balancer: Some(Balancer {
            address: address.to_owned(),
            name: name.to_owned(),
        }),
    }
}

fn desired(uid: &str, service: [&str; 3], id: &str) -> Desired {
    Desired {
        target: target(uid, service),
        name: format!("psc-{id}"),
        projects: ["guest-1".to_owned()].into(),
        subnet: None,
        recorded_rule: None,
    }
}

/// Passes until it is done; what is to be recorded is, after each of them.
async fn settle(fake: &Fake<GoogleNetworks>, desired: &mut Desired) -> Result<String, Problem> {
    let region = region();
    for _ in 0..5 {
        match Google::new(&region, fake).ensure(desired).await? {
            Progress::Record(rule) => desired.recorded_rule = Some(rule),
            Progress::Done(name) => return Ok(name),
        }
    }
    panic!("it does not end");
}

async fn clean_up(fake: &Fake<GoogleNetworks>, target: &Target) -> Result<(), Problem> {
    let region = region();
    for _ in 0..5 {
        if Google::new(&region, fake).remove(target).await? == Removal::Done {
            return Ok(());
        }
    }
    panic!("it does not end");
}

fn faults() -> impl Iterator<Item = Fault> {
    (0..12).flat_map(|at| {
        [
            Fault::KilledBefore(at),
            Fault::KilledAfter(at),
            Fault::Lost(at),
        ]
    })
}

/// Another process goes on some time later.
fn restart(fake: &Fake<GoogleNetworks>) {
    fake.set_fault(None);
    fake.state().cloud.pass_time();
}

#[tokio::test]
async fn the_calls_are_these() {
    let fake = cloud(&[ONE]);
    let mut desired = desired("uid-one", ONE, "1");
    assert_eq!(settle(&fake, &mut desired).await.unwrap(), "psc-1");
    assert_eq!(desired.recorded_rule.as_deref(), Some(ONE[2]));
    assert_eq!(fake.writes(), [format!("POST {CALL}/serviceAttachments")]);
    let made = fake.state().cloud.get(&attachment("psc-1")).unwrap();
    assert_eq!(made["connectionPreference"], "ACCEPT_MANUAL");
    assert_eq!(made["enableProxyProtocol"], false);
    let accepted = json!([{ "projectIdOrNum": "guest-1", "connectionLimit": 10 }]);
    assert_eq!(made["consumerAcceptLists"], accepted);
    let subnet = made["natSubnets"][0].as_str().unwrap();
    assert!(subnet.ends_with("/subnetworks/psc-1"), "{subnet}");
    fake.set_fault(None);
    clean_up(&fake, &desired.target).await.unwrap();
    let expected = [format!("DELETE {CALL}/serviceAttachments/psc-1")];
    assert_eq!(fake.writes(), expected);
}

#[tokio::test]
async fn a_pass_that_ends_at_any_call_is_completed_by_the_next() {
    let mut completed = 0;
    for fault in faults() {
        let fake = cloud(&[ONE, TWO]);
        let before = fake.snapshot();
        let mut desired = desired("uid-one", ONE, "1");
        fake.set_fault(Some(fault));
        completed += usize::from(settle(&fake, &mut desired).await.is_ok());
        restart(&fake);
        settle(&fake, &mut desired).await.unwrap();
        assert_eq!(fake.snapshot().len(), before.len() + 1, "{fault:?}");
        fake.set_fault(None);
        settle(&fake, &mut desired).await.unwrap();
        assert_eq!(fake.writes(), [""; 0], "at rest");

        // The Service may be gone.
        let gone = Target {
            balancer: None,
            ..desired.target.clone()
        };
        fake.set_fault(Some(fault));
        let _ = clean_up(&fake, &gone).await;
        restart(&fake);
        clean_up(&fake, &gone).await.unwrap();
        assert_eq!(fake.snapshot(), before, "{fault:?}");
    }
    assert!(completed > 0, "a pass has fewer calls than are tried");
}

/// The author of a cluster chooses the program that writes its GCPPrivateServiceConnects, and the ID of the cluster.
#[tokio::test]
async fn things_of_another_tenant_are_not_changed() {
    let fake = cloud(&[ONE, TWO]);
    let mut theirs = desired("uid-two", TWO, "1");
    settle(&fake, &mut theirs).await.unwrap();
    let before = fake.snapshot();
    let shared = [ONE[0], TWO[1], ONE[2]];
    for (service, id, expected) in [
        // The same ID, with a load balancer of one's own.
        (ONE, "1", "is not the one of this cluster"),
        // A Service that has the address of the other one.
        (shared, "2", "was made for another Service"),
    ] {
        let mut liar = desired("uid-one", service, id);
        let problem = settle(&fake, &mut liar).await.unwrap_err();
        let message = problem.message("", "");
        assert!(message.contains(expected), "{message}");
        clean_up(&fake, &liar.target).await.unwrap();
        assert_eq!(fake.snapshot(), before);
    }
    // The subnet of the other one.
    let mut liar = desired("uid-one", ONE, "2");
    liar.subnet = Some("psc-1".to_owned());
    let problem = settle(&fake, &mut liar).await.unwrap_err();
    let message = problem.message("", "");
    assert!(
        message.contains("which another service attachment has"),
        "{message}"
    );
    // A free one.
    liar.subnet = None;
    settle(&fake, &mut liar).await.unwrap();
    let made = fake.state().cloud.get(&attachment("psc-2")).unwrap();
    let subnet = made["natSubnets"][0].as_str().unwrap();
    assert!(subnet.ends_with("/subnetworks/psc-2"), "{subnet}");
    clean_up(&fake, &liar.target).await.unwrap();
    assert_eq!(fake.snapshot(), before);
}

#[tokio::test]
async fn what_differs_is_corrected() {
    let fake = cloud(&[ONE, TWO]);
    let mut desired = desired("uid-one", ONE, "1");
    settle(&fake, &mut desired).await.unwrap();
    let other = json!([{ "projectIdOrNum": "other", "connectionLimit": 10 }]);
    let limit = json!([{ "projectIdOrNum": "guest-1", "connectionLimit": 1 }]);
    for (field, value) in [
        ("consumerAcceptLists", other),
        ("consumerAcceptLists", limit),
        // One that another operator has made.
        ("description", json!("by hand")),
    ] {
        fake.state().cloud.edit(&attachment("psc-1"), field, value);
        fake.set_fault(None);
        settle(&fake, &mut desired).await.unwrap();
        let expected = [format!("PATCH {CALL}/serviceAttachments/psc-1")];
        assert_eq!(fake.writes(), expected, "{field}");
        fake.set_fault(None);
        settle(&fake, &mut desired).await.unwrap();
        assert_eq!(fake.writes(), [""; 0], "{field}");
    }
    // The Service has got another load balancer.
    desired.target = Target {
        service: "two/private-router".to_owned(),
        ..target("uid-one", TWO)
    };
    settle(&fake, &mut desired).await.unwrap();
    let found = fake.state().cloud.get(&attachment("psc-1")).unwrap();
    let rule = found["targetService"].as_str().unwrap();
    assert!(rule.ends_with(TWO[2]), "{rule}");
}
