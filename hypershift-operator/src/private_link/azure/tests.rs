//! Against a fake of Azure: a process that ends at any call, and another tenant beside.

mod tables;

use fake_clouds::azure_private_link::AzureNetworks;
use fake_clouds::{Cloud as _, Fake, Fault};
use serde_json::{Value, json};
use support::azure_resources::Group;

use super::plan::{Desired, Target};
use super::provider::recorded;
use super::service::{Azure, Made, Progress, Removal, Seen};
use crate::private_link::inputs::Balancer;
use crate::private_link::problem::Problem;

const HOST: &str = "management.azure.com";
const PROVIDER: &str = "/subscriptions/mgmt/resourceGroups/rg/providers/Microsoft.Network";
/// The Services of two tenants: their addresses, and the names of their frontends.
const ONE: (&str, &str) = ("10.0.0.10", "a0000000000000000000000000000001");
const TWO: (&str, &str) = ("10.0.0.11", "a0000000000000000000000000000002");

fn group() -> Group {
    Group {
        endpoint: "https://management.azure.com",
        subscription: "mgmt".to_owned(),
        name: "rg".to_owned(),
    }
}

fn network() -> String {
    format!("{PROVIDER}/virtualNetworks/n")
}

fn frontend_id(name: &str) -> String {
    format!("{PROVIDER}/loadBalancers/internal/frontendIPConfigurations/{name}")
}

fn frontend((address, name): (&str, &str)) -> Value {
    let subnet = format!("{}/subnets/nodes", network());
    json!({
        "name": name,
        "id": frontend_id(name),
        "properties": { "privateIPAddress": address, "subnet": { "id": subnet } },
    })
}

/// A network with a load balancer that has these frontends.
fn cloud(frontends: &[(&str, &str)]) -> Fake<AzureNetworks> {
    let mut cloud = AzureNetworks::default();
    let space = json!({ "addressPrefixes": ["10.0.0.0/16"] });
    cloud.add(
        &network(),
        json!({ "properties": { "addressSpace": space } }),
    );
    let nodes = json!({ "properties": { "addressPrefix": "10.0.0.0/24" } });
    cloud.add(&format!("{}/subnets/nodes", network()), nodes);
    let frontends: Vec<_> = frontends.iter().map(|it| frontend(*it)).collect();
    let balancer = json!({
        "location": "eastus",
        "properties": { "frontendIPConfigurations": frontends },
    });
    cloud.add(&format!("{PROVIDER}/loadBalancers/internal"), balancer);
    Fake::new(cloud)
}

fn target(uid: &str, (address, name): (&str, &str)) -> Target {
    Target {
        uid: uid.to_owned(),
        balancer: Some(Balancer {
            address: address.to_owned(),
            name: name.to_owned(),
        }),
        subnet: None,
    }
}

fn desired(uid: &str, service: (&str, &str), id: &str) -> Desired {
    Desired {
        target: target(uid, service),
        name: format!("pls-{id}"),
        cluster: "one".to_owned(),
        infra_id: format!("infra-{id}"),
        subscriptions: ["guest".to_owned()].into(),
        given_subnet: None,
    }
}

/// Passes until it is done; what is to be recorded is, after each of them.
async fn settle(fake: &Fake<AzureNetworks>, desired: &mut Desired) -> Result<Made, Problem> {
    let group = group();
    for _ in 0..5 {
        let mut made = Made::default();
        match Azure::new(&group, fake).ensure(desired, &mut made).await? {
            Progress::Record(id) => desired.target.subnet = Some(id),
            Progress::Done => return Ok(made),
        }
    }
    panic!("it does not end");
}

async fn clean_up(fake: &Fake<AzureNetworks>, target: &Target) -> Result<(), Problem> {
    let group = group();
    for _ in 0..5 {
        if Azure::new(&group, fake).remove(target).await? == Removal::Done {
            return Ok(());
        }
    }
    panic!("it does not end");
}

fn connect(fake: &Fake<AzureNetworks>, service: &str) {
    let state = json!({ "privateLinkServiceConnectionState": { "status": "Approved" } });
    let id = format!("{PROVIDER}/privateLinkServices/{service}/privateEndpointConnections/pe.1");
    fake.state().cloud.add(&id, json!({ "properties": state }));
}

fn faults() -> impl Iterator<Item = Fault> {
    (0..16).flat_map(|at| {
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

#[tokio::test]
async fn the_calls_are_these() {
    let fake = cloud(&[ONE]);
    let mut desired = desired("uid-one", ONE, "1");
    let made = settle(&fake, &mut desired).await.unwrap();
    let (subnet, service) = (
        format!("{}/subnets/infra-1-pls-nat", network()),
        format!("{PROVIDER}/privateLinkServices/pls-1"),
    );
    let call = |method: &str, id: &str| format!("{method} {HOST}{id}");
    assert_eq!(fake.writes(), [call("PUT", &subnet), call("PUT", &service)]);
    let balancer = format!("{PROVIDER}/loadBalancers/internal");
    assert_eq!(made.balancer, Seen::There(balancer));
    assert_eq!(made.service, Seen::There(service.clone()));
    assert!(made.alias.starts_with("pls-1."), "{}", made.alias);
    let written = fake.state().cloud.get(&subnet).unwrap();
    assert_eq!(written["properties"]["addressPrefix"], "10.0.1.0/24");

    connect(&fake, "pls-1");
    fake.set_fault(None);
    clean_up(&fake, &desired.target).await.unwrap();
    let connection = format!("{service}/privateEndpointConnections/pe.1");
    let expected = [
        call("PUT", &connection),
        call("DELETE", &service),
        call("DELETE", &subnet),
    ];
    assert_eq!(fake.writes(), expected);
}

#[tokio::test]
async fn a_pass_that_ends_at_any_call_is_completed_by_the_next() {
    let mut completed = 0;
    for fault in faults() {
        for keeps_rejected in [false, true] {
            let fake = cloud(&[ONE, TWO]);
            fake.state().cloud.keeps_rejected = keeps_rejected;
            let before = fake.snapshot();
            let mut desired = desired("uid-one", ONE, "1");
            fake.set_fault(Some(fault));
            completed += usize::from(settle(&fake, &mut desired).await.is_ok());
            restart(&fake);
            settle(&fake, &mut desired).await.unwrap();
            let made: Vec<_> = fake.snapshot();
            assert_eq!(made.len(), before.len() + 2, "{fault:?}: {made:#?}");
            fake.set_fault(None);
            settle(&fake, &mut desired).await.unwrap();
            assert_eq!(fake.writes(), [""; 0], "at rest");

            connect(&fake, "pls-1");
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
    }
    assert!(completed > 0, "a pass has fewer calls than are tried");
}

/// Its Service is gone, too: what was written down is the UID of the link, as a tag, and the ID of the subnet.
#[tokio::test]
async fn nothing_is_left_of_a_cluster_that_is_gone() {
    let fake = cloud(&[ONE, TWO]);
    let mut theirs = desired("uid-two", TWO, "2");
    settle(&fake, &mut theirs).await.unwrap();
    let before = fake.snapshot();
    let mut own = desired("uid-one", ONE, "1");
    settle(&fake, &mut own).await.unwrap();
    let gone = |annotation: Option<&str>| Target {
        balancer: None,
        subnet: recorded(&tables::link(annotation), None),
        ..own.target.clone()
    };
    // Whatever the control plane has written there.
    clean_up(&fake, &gone(theirs.target.subnet.as_deref()))
        .await
        .unwrap();
    assert_eq!(fake.snapshot().len(), before.len() + 1, "its own subnet");
    clean_up(&fake, &gone(own.target.subnet.as_deref()))
        .await
        .unwrap();
    assert_eq!(fake.snapshot(), before);
}

/// The author of a cluster chooses the program that writes its AzurePrivateLinkServices, and the IDs of the cluster.
#[tokio::test]
async fn things_of_another_tenant_are_not_changed() {
    let fake = cloud(&[ONE, TWO]);
    let mut theirs = desired("uid-two", TWO, "1");
    settle(&fake, &mut theirs).await.unwrap();
    connect(&fake, "pls-1");
    let before = fake.snapshot();

    // The same IDs, with a load balancer of one's own.
    let mut liar = desired("uid-one", ONE, "1");
    let problem = settle(&fake, &mut liar).await.unwrap_err();
    let message = problem.message("", "");
    assert!(
        message.contains("is not the one of this cluster"),
        "{message}"
    );
    clean_up(&fake, &liar.target).await.unwrap();
    assert_eq!(fake.snapshot(), before);

    // A Service that has the address of the other one.
    let shared = (TWO.0, ONE.1);
    let mut liar = desired("uid-one", shared, "2");
    let problem = settle(&fake, &mut liar).await.unwrap_err();
    let message = problem.message("", "");
    assert!(
        message.contains("was made for another Service"),
        "{message}"
    );
    clean_up(&fake, &liar.target).await.unwrap();
    assert_eq!(fake.snapshot(), before);

    // The subnet of the other one: recorded, and named by the HostedCluster.
    let subnet = theirs.target.subnet.clone();
    let mut own = desired("uid-one", ONE, "2");
    own.given_subnet.clone_from(&subnet);
    let problem = settle(&fake, &mut own).await.unwrap_err();
    let message = problem.message("", "");
    assert!(
        message.contains("was created for another hosted cluster"),
        "{message}"
    );
    own.target.subnet = subnet;
    clean_up(&fake, &own.target).await.unwrap();
    assert_eq!(fake.snapshot(), before);

    // Everything of its own.
    let mut own = desired("uid-one", ONE, "2");
    settle(&fake, &mut own).await.unwrap();
    clean_up(&fake, &own.target).await.unwrap();
    assert_eq!(fake.snapshot(), before);
}

#[tokio::test]
async fn what_differs_is_corrected() {
    let fake = cloud(&[ONE, TWO]);
    let mut desired = desired("uid-one", ONE, "1");
    settle(&fake, &mut desired).await.unwrap();
    let service = format!("{PROVIDER}/privateLinkServices/pls-1");
    let tags = json!({ "team": "red" });
    for (pointer, value) in [
        ("/properties/visibility/subscriptions", json!(["other"])),
        ("/properties/autoApproval/subscriptions", json!([])),
        ("/properties/provisioningState", json!("Failed")),
        // One that another operator has made.
        ("/tags", tags),
    ] {
        fake.state().cloud.edit(&service, pointer, value);
        fake.set_fault(None);
        settle(&fake, &mut desired).await.unwrap();
        assert_eq!(fake.writes(), [format!("PUT {HOST}{service}")], "{pointer}");
        fake.set_fault(None);
        settle(&fake, &mut desired).await.unwrap();
        assert_eq!(fake.writes(), [""; 0], "{pointer}");
    }
    let found = fake.state().cloud.get(&service).unwrap();
    assert_eq!(found["tags"]["team"], "red", "tags of others stay");
    assert_eq!(
        found["properties"]["visibility"]["subscriptions"],
        json!(["guest"])
    );

    // The Service has got another load balancer.
    desired.target = Target {
        subnet: desired.target.subnet.clone(),
        ..target("uid-one", TWO)
    };
    settle(&fake, &mut desired).await.unwrap();
    let found = fake.state().cloud.get(&service).unwrap();
    let frontends = &found["properties"]["loadBalancerFrontendIpConfigurations"];
    assert_eq!(*frontends, json!([{ "id": frontend_id(TWO.1) }]));

    // It is gone.
    fake.state().cloud.remove(&service);
    settle(&fake, &mut desired).await.unwrap();
    assert!(fake.state().cloud.get(&service).is_some());
}

#[tokio::test]
async fn a_subnet_that_is_given_is_used_and_kept() {
    let fake = cloud(&[ONE]);
    let subnet = format!("{}/subnets/nat", network());
    let enabled = json!({ "properties": { "addressPrefix": "10.0.9.0/24" } });
    fake.state().cloud.add(&subnet, enabled);
    let mut desired = desired("uid-one", ONE, "1");
    desired.given_subnet = Some(subnet.clone());
    let problem = settle(&fake, &mut desired).await.unwrap_err();
    let message = problem.message("", "");
    assert!(
        message.contains("privateLinkServiceNetworkPolicies"),
        "{message}"
    );
    let disabled = json!({ "properties": {
        "addressPrefix": "10.0.9.0/24", "privateLinkServiceNetworkPolicies": "Disabled",
    }});
    fake.state().cloud.add(&subnet, disabled);
    let before = fake.snapshot();
    settle(&fake, &mut desired).await.unwrap();
    assert_eq!(desired.target.subnet, None, "none is created");
    clean_up(&fake, &desired.target).await.unwrap();
    assert_eq!(fake.snapshot(), before);
}
