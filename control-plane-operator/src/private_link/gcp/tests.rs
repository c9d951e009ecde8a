//! Against a fake of Google Cloud: a process that ends at any call, and other clusters beside.

mod tables;

use fake_clouds::google_private_connect::GoogleNetworks;
use fake_clouds::{Cloud as _, Fake, Fault};
use serde_json::json;
use support::google_resources::Region;

use super::dns::Zones;
use super::endpoint::{Google, Removal};
use super::plan::{Attachment, Cluster};
use crate::private_link::problem::Problem;

const PREFIX: &str = "projects/guest-1/regions/us-central1";
const ATTACHMENTS: &str = "projects/mgmt-1/regions/us-central1/serviceAttachments";

/// A cluster of this name and ID, with a base domain.
fn cluster(name: &str, id: &str, domain: &str) -> Cluster {
    Cluster {
        name: name.to_owned(),
        infra_id: format!("infra-{id}"),
        id: Some(id.to_owned()),
        region: Region {
            project: "guest-1".to_owned(),
            name: "us-central1".to_owned(),
        },
        network: "projects/guest-1/global/networks/n".to_owned(),
        subnet: format!("{PREFIX}/subnetworks/psc"),
        base_domain: domain.to_owned(),
    }
}

fn attachment(name: &str) -> Attachment {
    Attachment {
        name: name.to_owned(),
        uri: format!("{ATTACHMENTS}/{name}"),
    }
}

/// Google Cloud with service attachments that accept the project of the clusters.
fn cloud(attachments: &[&str]) -> Fake<GoogleNetworks> {
    let mut cloud = GoogleNetworks::default();
    for name in attachments {
        let accepted = json!([{ "projectIdOrNum": "guest-1", "connectionLimit": 10 }]);
        let attachment = json!({ "consumerAcceptLists": accepted });
        cloud.add(&format!("{ATTACHMENTS}/{name}"), attachment);
    }
    Fake::new(cloud)
}

async fn make(
    fake: &Fake<GoogleNetworks>,
    cluster: &Cluster,
    attachment: &Attachment,
) -> Result<(String, Zones), Problem> {
    let google = Google::new(cluster, fake);
    let address = google.connect(attachment).await?;
    let zones = google.publish(&address).await?;
    Ok((address, zones))
}

async fn clean_up(
    fake: &Fake<GoogleNetworks>,
    cluster: &Cluster,
    attachment: &Attachment,
    address: &str,
) -> Result<(), Problem> {
    let google = Google::new(cluster, fake);
    for _ in 0..5 {
        let withdrawn = google.withdraw(address).await;
        let removal = google.disconnect(attachment).await?;
        withdrawn?;
        if removal == Removal::Done {
            return Ok(());
        }
    }
    panic!("it does not end");
}

fn faults() -> impl Iterator<Item = Fault> {
    (0..24).flat_map(|at| {
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
    let fake = cloud(&["psc-1"]);
    let (cluster, attachment) = (cluster("one", "1", "in.example.com"), attachment("psc-1"));
    let (address, zones) = make(&fake, &cluster, &attachment).await.unwrap();
    let compute = |method: &str, rest: &str| {
        format!("{method} compute.googleapis.com/compute/v1/{PREFIX}/{rest}")
    };
    let dns = |method: &str, rest: &str| {
        format!("{method} dns.googleapis.com/dns/v1/projects/guest-1/managedZones{rest}")
    };
    let expected = [
        compute("POST", "addresses"),
        compute("POST", "forwardingRules"),
        dns("POST", ""),
        dns("POST", "/one-hypershift-local/changes"),
        dns("POST", ""),
        dns("POST", "/in-example-com-public/changes"),
        dns("POST", ""),
    ];
    assert_eq!(fake.writes(), expected);
    let records = fake.state().cloud.records();
    let expected = [
        "in-example-com-public _acme-challenge.apps.in.example.com. CNAME _acme-challenge.in.example.com.".to_owned(),
        format!("one-hypershift-local *.apps.one.hypershift.local. A {address}"),
        format!("one-hypershift-local api.one.hypershift.local. A {address}"),
    ];
    assert_eq!(records, expected);
    let names: Vec<_> = zones.zones.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "one-hypershift-local",
            "in-example-com-public",
            "in-example-com-private"
        ]
    );
    assert_eq!(zones.name_servers.len(), 2);
    let rule = format!("{PREFIX}/forwardingRules/psc-1-endpoint");
    let rule = fake.state().cloud.get(&rule).unwrap();
    assert_eq!(rule.get("loadBalancingScheme"), None);

    fake.set_fault(None);
    clean_up(&fake, &cluster, &attachment, &address)
        .await
        .unwrap();
    let expected = [
        dns("POST", "/one-hypershift-local/changes"),
        dns("DELETE", "/one-hypershift-local"),
        dns("POST", "/in-example-com-public/changes"),
        dns("DELETE", "/in-example-com-public"),
        dns("DELETE", "/in-example-com-private"),
        compute("DELETE", "forwardingRules/psc-1-endpoint"),
        compute("DELETE", "addresses/psc-1-ip"),
    ];
    assert_eq!(fake.writes(), expected);
}

#[tokio::test]
async fn a_pass_that_ends_at_any_call_is_completed_by_the_next() {
    let (cluster, attachment) = (cluster("one", "1", "in.example.com"), attachment("psc-1"));
    let mut completed = 0;
    for fault in faults() {
        let fake = cloud(&["psc-1"]);
        let before = fake.snapshot();
        fake.set_fault(Some(fault));
        completed += usize::from(make(&fake, &cluster, &attachment).await.is_ok());
        restart(&fake);
        let (address, _) = make(&fake, &cluster, &attachment).await.unwrap();
        // An address, a forwarding rule, three zones and three records.
        let made = fake.snapshot();
        assert_eq!(made.len(), before.len() + 8, "{fault:?}: {made:#?}");
        fake.set_fault(None);
        make(&fake, &cluster, &attachment).await.unwrap();
        assert_eq!(fake.writes(), [""; 0], "at rest");

        fake.set_fault(Some(fault));
        let _ = clean_up(&fake, &cluster, &attachment, &address).await;
        restart(&fake);
        clean_up(&fake, &cluster, &attachment, &address)
            .await
            .unwrap();
        assert_eq!(fake.snapshot(), before, "{fault:?}");
    }
    assert!(completed > 0, "a pass has fewer calls than are tried");
}

/// Clusters of two tenants in one project.
#[tokio::test]
async fn things_of_another_cluster_are_not_changed() {
    let fake = cloud(&["psc-1", "psc-2"]);
    let theirs = (cluster("one", "1", "in.example.com"), attachment("psc-1"));
    let (address, _) = make(&fake, &theirs.0, &theirs.1).await.unwrap();
    let before = fake.snapshot();
    for (name, id, domain, of, expected) in [
        (
            "one",
            "2",
            "two.example.com",
            "psc-2",
            "zone one-hypershift-local of Cloud DNS is not",
        ),
        (
            "two",
            "2",
            "in.example.com",
            "psc-2",
            "zone in-example-com-public of Cloud DNS is not",
        ),
        // It claims the service attachment of the other one.
        (
            "two",
            "2",
            "two.example.com",
            "psc-1",
            "psc-1-ip is another cluster's",
        ),
    ] {
        let (liar, attachment) = (cluster(name, id, domain), attachment(of));
        let problem = make(&fake, &liar, &attachment).await.unwrap_err();
        let message = problem.message("", "");
        assert!(message.contains(expected), "{message}");
        clean_up(&fake, &liar, &attachment, &address).await.unwrap();
        assert_eq!(fake.snapshot(), before, "{expected}");
    }
    let other = (cluster("two", "2", "two.example.com"), attachment("psc-2"));
    let (own, _) = make(&fake, &other.0, &other.1).await.unwrap();
    assert_ne!(own, address);
    clean_up(&fake, &other.0, &other.1, &own).await.unwrap();
    assert_eq!(fake.snapshot(), before);
}

#[tokio::test]
async fn zones_that_someone_else_has_made_are_kept() {
    let fake = cloud(&["psc-1"]);
    let zone =
        json!({ "dnsName": "in.example.com.", "visibility": "public", "description": "by hand" });
    let name = "projects/guest-1/managedZones/in-example-com-public";
    fake.state().cloud.add(name, zone);
    let before = fake.snapshot();
    let (cluster, attachment) = (cluster("one", "1", "in.example.com"), attachment("psc-1"));
    let (address, _) = make(&fake, &cluster, &attachment).await.unwrap();
    assert_eq!(fake.state().cloud.records().len(), 3);
    clean_up(&fake, &cluster, &attachment, &address)
        .await
        .unwrap();
    assert_eq!(fake.snapshot(), before);
}

#[tokio::test]
async fn what_differs_is_corrected() {
    let fake = cloud(&["psc-1"]);
    let (cluster, attachment) = (cluster("one", "1", ""), attachment("psc-1"));
    make(&fake, &cluster, &attachment).await.unwrap();
    let rule = format!("{PREFIX}/forwardingRules/psc-1-endpoint");
    for (field, value) in [
        ("pscConnectionStatus", json!("CLOSED")),
        ("pscConnectionStatus", json!("REJECTED")),
        ("target", json!(format!("{ATTACHMENTS}/other"))),
    ] {
        fake.state().cloud.edit(&rule, field, value);
        let problem = make(&fake, &cluster, &attachment).await.unwrap_err();
        assert_eq!(problem.reason, "PSCEndpointCreationFailed");
        make(&fake, &cluster, &attachment).await.unwrap();
    }
    fake.state()
        .cloud
        .edit(&rule, "pscConnectionStatus", json!("PENDING"));
    let problem = make(&fake, &cluster, &attachment).await.unwrap_err();
    assert!(problem.message("", "").contains("to be accepted"));
    fake.state()
        .cloud
        .edit(&rule, "pscConnectionStatus", json!("ACCEPTED"));

    // The address was reserved again.
    let name = format!("{PREFIX}/addresses/psc-1-ip");
    fake.state()
        .cloud
        .edit(&name, "address", json!("10.9.0.99"));
    make(&fake, &cluster, &attachment).await.unwrap();
    let records = fake.state().cloud.records();
    assert!(
        records.iter().all(|it| it.ends_with(" A 10.9.0.99")),
        "{records:?}"
    );
}
