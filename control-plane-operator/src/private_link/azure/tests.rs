//! Against a fake of Azure: a process that ends at any call, and other clusters beside.

mod tables;

use fake_clouds::azure_private_link::AzureNetworks;
use fake_clouds::{Cloud as _, Fake, Fault};
use serde_json::{Value, json};
use support::azure_resources::Group;

use super::dns::Zones;
use super::endpoint::{Azure, Made, Removal};
use super::plan::{Cluster, Link, OAUTH, ROUTER};
use crate::private_link::problem::Problem;

const HOST: &str = "management.azure.com";
const NETWORK: &str =
    "/subscriptions/guest/resourceGroups/net/providers/Microsoft.Network/virtualNetworks";
const PROVIDER: &str = "/subscriptions/guest/resourceGroups/g/providers/Microsoft.Network";
const SERVICES: &str =
    "/subscriptions/mgmt/resourceGroups/rg/providers/Microsoft.Network/privateLinkServices";

/// A cluster of this name and ID, in the network of this name.
fn cluster(name: &str, id: &str, network: &str) -> Cluster {
    Cluster {
        name: name.to_owned(),
        infra_id: format!("infra-{id}"),
        id: Some(id.to_owned()),
        group: Group {
            endpoint: "https://management.azure.com",
            subscription: "guest".to_owned(),
            name: "g".to_owned(),
        },
        location: "eastus".to_owned(),
        subnet: format!("{NETWORK}/{network}/subnets/nodes"),
        network: format!("{NETWORK}/{network}"),
    }
}

fn alias(service: &str) -> String {
    format!("{service}.0.eastus.azure.privatelinkservice")
}

fn link(name: &str, service: &str, has_oauth: bool) -> Link {
    Link {
        name: name.to_owned(),
        alias: alias(service),
        base_domain: Some("example.com".to_owned()),
        has_oauth,
    }
}

/// Azure with these private link services, to which the subscription of the clusters may connect.
fn cloud(services: &[&str]) -> Fake<AzureNetworks> {
    let mut cloud = AzureNetworks::default();
    for service in services {
        let properties = json!({
            "alias": alias(service), "autoApproval": { "subscriptions": ["guest"] },
        });
        cloud.add(
            &format!("{SERVICES}/{service}"),
            json!({ "properties": properties }),
        );
    }
    Fake::new(cloud)
}

async fn make(
    fake: &Fake<AzureNetworks>,
    cluster: &Cluster,
    link: &Link,
) -> Result<(Made, Zones), Problem> {
    let azure = Azure::new(cluster, fake);
    let made = azure.connect(link).await?;
    let zones = azure.publish(link, &made.address).await?;
    Ok((made, zones))
}

async fn clean_up(
    fake: &Fake<AzureNetworks>,
    cluster: &Cluster,
    link: &Link,
) -> Result<(), Problem> {
    let azure = Azure::new(cluster, fake);
    for _ in 0..5 {
        let withdrawn = azure.withdraw(link).await;
        let removal = azure.disconnect(link).await?;
        withdrawn?;
        if removal == Removal::Done {
            return Ok(());
        }
    }
    panic!("it does not end");
}

fn faults() -> impl Iterator<Item = Fault> {
    (0..40).flat_map(|at| {
        [
            Fault::KilledBefore(at),
            Fault::KilledAfter(at),
            Fault::Lost(at),
        ]
    })
}

/// Another process goes on some time later.
fn restart(fake: &Fake<AzureNetworks>) {
    fake.set_fault(None);
    fake.state().cloud.pass_time();
}

fn records(zones: &[(&str, &[&str])]) -> Vec<String> {
    let all = zones.iter().flat_map(|(zone, names)| {
        let id = move |name: &&str| format!("{PROVIDER}/privateDnsZones/{zone}/A/{name}");
        names.iter().map(id).collect::<Vec<_>>()
    });
    all.collect()
}

fn address_of(fake: &Fake<AzureNetworks>, record: &str) -> Option<Value> {
    let found = fake.state().cloud.get(record)?;
    Some(found["properties"]["aRecords"][0]["ipv4Address"].clone())
}

#[tokio::test]
async fn the_calls_are_these() {
    let fake = cloud(&["pls-1"]);
    let (cluster, link) = (cluster("one", "1", "n"), link(ROUTER, "pls-1", false));
    let (made, zones) = make(&fake, &cluster, &link).await.unwrap();
    let call = |method: &str, id: &str| format!("{method} {HOST}{PROVIDER}/{id}");
    let (own, shared) = (
        "privateDnsZones/one.hypershift.local",
        "privateDnsZones/example.com",
    );
    let expected = [
        call("PUT", "privateEndpoints/private-router-pe"),
        call("PUT", own),
        call(
            "PUT",
            &format!("{own}/virtualNetworkLinks/private-router-vnet-link"),
        ),
        call("PUT", &format!("{own}/A/api")),
        call("PUT", &format!("{own}/A/*.apps")),
        call("PUT", shared),
        call(
            "PUT",
            &format!("{shared}/virtualNetworkLinks/private-router-basedomain-vnet-link"),
        ),
        call("PUT", &format!("{shared}/A/api-one")),
        call("PUT", &format!("{shared}/A/oauth-one")),
    ];
    assert_eq!(fake.writes(), expected);
    assert_eq!(
        made.id,
        format!("{PROVIDER}/privateEndpoints/private-router-pe")
    );
    assert_eq!(zones.shared, Some(format!("{PROVIDER}/{shared}")));
    assert!(!zones.is_linked_elsewhere);
    let (id, name) = zones.own.unwrap();
    assert_eq!(
        (id, name.as_str()),
        (format!("{PROVIDER}/{own}"), "one.hypershift.local")
    );
    let names = [
        ("one.hypershift.local", &["api", "*.apps"][..]),
        ("example.com", &["api-one", "oauth-one"][..]),
    ];
    for record in records(&names) {
        assert_eq!(
            address_of(&fake, &record),
            Some(json!(made.address)),
            "{record}"
        );
    }

    fake.set_fault(None);
    clean_up(&fake, &cluster, &link).await.unwrap();
    let expected = [
        call("DELETE", &format!("{own}/A/api")),
        call("DELETE", &format!("{own}/A/*.apps")),
        call(
            "DELETE",
            &format!("{own}/virtualNetworkLinks/private-router-vnet-link"),
        ),
        call("DELETE", own),
        call("DELETE", &format!("{shared}/A/api-one")),
        call("DELETE", &format!("{shared}/A/oauth-one")),
        call(
            "DELETE",
            &format!("{shared}/virtualNetworkLinks/private-router-basedomain-vnet-link"),
        ),
        call("DELETE", shared),
        call("DELETE", "privateEndpoints/private-router-pe"),
    ];
    assert_eq!(fake.writes(), expected);
}

#[tokio::test]
async fn a_pass_that_ends_at_any_call_is_completed_by_the_next() {
    let (cluster, link) = (cluster("one", "1", "n"), link(ROUTER, "pls-1", false));
    let mut completed = 0;
    for fault in faults() {
        let fake = cloud(&["pls-1"]);
        let before = fake.snapshot();
        fake.set_fault(Some(fault));
        completed += usize::from(make(&fake, &cluster, &link).await.is_ok());
        restart(&fake);
        make(&fake, &cluster, &link).await.unwrap();
        // The endpoint, its interface and its connection; two zones, each with a link and two records.
        let made = fake.snapshot();
        assert_eq!(made.len(), before.len() + 3 + 8, "{fault:?}: {made:#?}");
        fake.set_fault(None);
        make(&fake, &cluster, &link).await.unwrap();
        assert_eq!(fake.writes(), [""; 0], "at rest");

        fake.set_fault(Some(fault));
        let _ = clean_up(&fake, &cluster, &link).await;
        restart(&fake);
        clean_up(&fake, &cluster, &link).await.unwrap();
        assert_eq!(fake.snapshot(), before, "{fault:?}");
    }
    assert!(completed > 0, "a pass has fewer calls than are tried");
}

/// Clusters of two tenants in one resource group.
#[tokio::test]
async fn things_of_another_cluster_are_not_changed() {
    let fake = cloud(&["pls-1", "pls-2"]);
    let theirs = (cluster("one", "1", "n"), link(ROUTER, "pls-1", false));
    make(&fake, &theirs.0, &theirs.1).await.unwrap();
    let before = fake.snapshot();

    // One of the same name gets an endpoint of its own, and no names.
    let namesake = (cluster("one", "2", "m"), link(ROUTER, "pls-2", false));
    let problem = make(&fake, &namesake.0, &namesake.1).await.unwrap_err();
    let message = problem.message("", "");
    assert!(
        message.contains("is another cluster's, by its tags"),
        "{message}"
    );
    let second = format!("{PROVIDER}/privateEndpoints/infra-2-private-router-pe");
    assert!(fake.state().cloud.get(&second).is_some());
    clean_up(&fake, &namesake.0, &namesake.1).await.unwrap();
    assert_eq!(fake.snapshot(), before);

    // One of another name shares the zone of the base domain.
    for network in ["m", "n"] {
        let other = (cluster("two", "3", network), link(ROUTER, "pls-2", false));
        make(&fake, &other.0, &other.1).await.unwrap();
        fake.set_fault(None);
        make(&fake, &theirs.0, &theirs.1).await.unwrap();
        assert_eq!(fake.writes(), [""; 0], "they do not change each other");
        clean_up(&fake, &other.0, &other.1).await.unwrap();
        let left = fake.snapshot();
        let is_theirs =
            |line: &&String| !line.contains("infra-3-private-router-basedomain-vnet-link");
        let left: Vec<_> = left.iter().filter(is_theirs).cloned().collect();
        assert_eq!(left, before, "{network}");
    }
    // The last one deletes what they have shared.
    clean_up(&fake, &theirs.0, &theirs.1).await.unwrap();
    let left = fake.snapshot();
    assert!(
        left.iter().all(|line| line.contains("privatelinkservices")),
        "{left:#?}"
    );
}

#[tokio::test]
async fn the_last_link_deletes_the_zone_of_the_base_domain() {
    let fake = cloud(&["pls-1", "pls-oauth"]);
    let before = fake.snapshot();
    let cluster = cluster("one", "1", "n");
    let (router, oauth) = (link(ROUTER, "pls-1", true), link(OAUTH, "pls-oauth", false));
    let (of_router, _) = make(&fake, &cluster, &router).await.unwrap();
    let (of_oauth, zones) = make(&fake, &cluster, &oauth).await.unwrap();
    assert_eq!(zones.own, None);
    for (name, made) in [("api-one", &of_router), ("oauth-one", &of_oauth)] {
        let record = format!("{PROVIDER}/privateDnsZones/example.com/A/{name}");
        assert_eq!(address_of(&fake, &record), Some(json!(made.address)));
    }
    clean_up(&fake, &cluster, &router).await.unwrap();
    let record = format!("{PROVIDER}/privateDnsZones/example.com/A/oauth-one");
    assert_eq!(address_of(&fake, &record), Some(json!(of_oauth.address)));
    clean_up(&fake, &cluster, &oauth).await.unwrap();
    assert_eq!(fake.snapshot(), before);
}

#[tokio::test]
async fn what_someone_else_has_made_is_kept() {
    let fake = cloud(&["pls-1"]);
    let (cluster, link) = (cluster("one", "1", "n"), link(ROUTER, "pls-1", false));
    let zone = format!("{PROVIDER}/privateDnsZones/example.com");
    let record =
        json!({ "properties": { "ttl": 60, "aRecords": [{ "ipv4Address": "10.7.7.7" }] } });
    fake.state()
        .cloud
        .add(&zone, json!({ "location": "global" }));
    fake.state()
        .cloud
        .add(&format!("{zone}/A/www"), record.clone());
    let before = fake.snapshot();
    make(&fake, &cluster, &link).await.unwrap();
    clean_up(&fake, &cluster, &link).await.unwrap();
    assert_eq!(fake.snapshot(), before, "the zone and its record stay");

    fake.state().cloud.add(&format!("{zone}/A/api-one"), record);
    let problem = make(&fake, &cluster, &link).await.unwrap_err();
    let message = problem.message("", "");
    assert!(
        message.contains("record api-one of private DNS zone example.com"),
        "{message}"
    );
}

#[tokio::test]
async fn endpoints_that_never_connect_are_created_again() {
    let fake = cloud(&["pls-1"]);
    let (cluster, link) = (cluster("one", "1", "n"), link(ROUTER, "pls-1", false));
    make(&fake, &cluster, &link).await.unwrap();
    let connection = format!("{SERVICES}/pls-1/privateEndpointConnections/private-router-pe.1");
    let state = "/properties/privateLinkServiceConnectionState/status";
    fake.state()
        .cloud
        .edit(&connection, state, json!("Pending"));
    let problem = make(&fake, &cluster, &link).await.unwrap_err();
    assert_eq!(problem.reason, "PrivateEndpointConnectionNotApproved");
    for gone in [false, true] {
        if gone {
            // The private link service was created again.
            let connection =
                format!("{SERVICES}/pls-1/privateEndpointConnections/private-router-pe.2");
            fake.state().cloud.remove(&connection);
        } else {
            fake.state()
                .cloud
                .edit(&connection, state, json!("Rejected"));
        }
        let problem = make(&fake, &cluster, &link).await.unwrap_err();
        let message = problem.message("", "");
        assert!(message.contains("never connects any more"), "{message}");
        let (made, _) = make(&fake, &cluster, &link).await.unwrap();
        let record = format!("{PROVIDER}/privateDnsZones/one.hypershift.local/A/api");
        assert_eq!(address_of(&fake, &record), Some(json!(made.address)));
    }
}

/// A network can be linked to one zone of a name only.
#[tokio::test]
async fn a_network_with_another_zone_of_the_base_domain_is_reported() {
    let fake = cloud(&["pls-1"]);
    let zone = "/subscriptions/guest/resourceGroups/other/providers/Microsoft.Network/privateDnsZones/example.com";
    let linked = json!({ "properties": { "virtualNetwork": { "id": format!("{NETWORK}/n") } } });
    fake.state()
        .cloud
        .add(zone, json!({ "location": "global" }));
    fake.state()
        .cloud
        .add(&format!("{zone}/virtualNetworkLinks/theirs"), linked);
    let before = fake.snapshot();
    let (cluster, link) = (cluster("one", "1", "n"), link(ROUTER, "pls-1", false));
    let (_, zones) = make(&fake, &cluster, &link).await.unwrap();
    assert!(zones.is_linked_elsewhere);
    clean_up(&fake, &cluster, &link).await.unwrap();
    assert_eq!(fake.snapshot(), before);
}
