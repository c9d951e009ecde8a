//! Bastions.

use super::super::bastion::{BastionRequest, PublicKey};
use super::super::instance::Instance;
use super::*;

const KEY: &str = "ssh-ed25519 AAAA me@host";
const HERE: &str = "192.0.2.7/32";

fn request(key: &str) -> BastionRequest {
    BastionRequest {
        key: PublicKey::parse(key).unwrap(),
        from: vec![HERE.to_owned()],
        wait: true,
    }
}

/// An account that has the network of a cluster.
async fn account() -> Fake {
    let fake = Fake::with_zone(BASE);
    let scope = scope();
    let executor = executor(&fake, &scope);
    let network = network(&["1a", "1b"], false);
    executor.create_network(&network).await.unwrap();
    fake.set_fault(None);
    fake
}

async fn make(fake: &Fake, request: &BastionRequest) -> anyhow::Result<Instance> {
    let scope = scope();
    executor(fake, &scope).create_bastion(request).await
}

async fn unmake(fake: &Fake) -> anyhow::Result<()> {
    let scope = scope();
    executor(fake, &scope).destroy_bastion().await
}

async fn destroy_network(fake: &Fake) -> anyhow::Result<()> {
    let scope = scope();
    let request = DestroyRequest::new(Some(domain()), Duration::from_mins(1));
    executor(fake, &scope).destroy_network(&request).await
}

/// How many calls a creation makes.
async fn calls_of_creation() -> usize {
    let fake = account().await;
    make(&fake, &request(KEY)).await.unwrap();
    fake.count()
}

/// The identifiers of the bastions that are not terminated.
fn instances(fake: &Fake) -> Vec<String> {
    let state = fake.state();
    let there = state.instances.iter();
    let there = there.filter(|(_, it)| it.state != "terminated");
    there.map(|(id, _)| id.clone()).collect()
}

#[tokio::test]
async fn a_bastion_is_created_by_these_calls() {
    let fake = account().await;
    let made = make(&fake, &request(KEY)).await.unwrap();
    assert_eq!(made.address, "192.0.2.1");
    let state = fake.state();
    let id_of = |kind: Kind, name: &str| {
        let mut items = state.items.iter();
        let found = items.find(|(_, it)| it.kind == kind && it.tags["Name"] == name);
        found.unwrap().0.clone()
    };
    let vpc = id_of(Kind::Vpc, "a-x1-vpc");
    let subnet = id_of(Kind::Subnet, "a-x1-public-1a");
    let key = id_of(Kind::KeyPair, "a-x1-bastion");
    let group = id_of(Kind::SecurityGroup, "a-x1-bastion-sg");
    let instance = &state.instances[&made.id];
    assert_eq!(instance.image, "ami-1");
    assert_eq!(instance.key, "a-x1-bastion");
    let scope = scope();
    assert!(scope.owns(&instance.tags));
    assert_eq!(instance.tags["Name"], "a-x1-bastion");
    drop(state);
    let material = "c3NoLWVkMjU1MTkgQUFBQQ==";
    let expected = [
        format!("ImportKeyPair KeyName=a-x1-bastion PublicKeyMaterial={material}"),
        format!(
            "CreateSecurityGroup GroupName=a-x1-bastion-sg GroupDescription=SSH to the bastion VpcId={vpc}"
        ),
        format!(
            "AuthorizeSecurityGroupIngress GroupId={group} IpPermissions.1.IpProtocol=tcp IpPermissions.1.FromPort=22 \
             IpPermissions.1.ToPort=22 IpPermissions.1.IpRanges.1.CidrIp={HERE}"
        ),
        format!(
            "RunInstances ImageId=ami-1 InstanceType=t3.micro MinCount=1 MaxCount=1 KeyName=a-x1-bastion ClientToken={key}-0 \
             MetadataOptions.HttpTokens=required NetworkInterface.1.DeviceIndex=0 \
             NetworkInterface.1.AssociatePublicIpAddress=true NetworkInterface.1.SubnetId={subnet} \
             NetworkInterface.1.SecurityGroupId.1={group}"
        ),
    ];
    assert_eq!(writes(&fake), expected);
}

#[tokio::test]
async fn a_bastion_is_created_once_and_its_destruction_leaves_the_network() {
    let fake = account().await;
    let before = fake.state().snapshot();
    let made = make(&fake, &request(KEY)).await.unwrap();
    let snapshot = fake.state().snapshot();
    fake.set_fault(None);
    assert_eq!(make(&fake, &request(KEY)).await.unwrap(), made);
    assert_eq!(writes(&fake), [""; 0]);
    assert_eq!(fake.state().snapshot(), snapshot);
    unmake(&fake).await.unwrap();
    assert_eq!(fake.state().snapshot(), before);
    // Again, and after a destruction there can be another one.
    unmake(&fake).await.unwrap();
    let next = make(&fake, &request(KEY)).await.unwrap();
    assert_ne!(next.id, made.id);
    assert_eq!(fake.state().snapshot(), snapshot);
}

/// Killed before or after any call, or with a lost response, and run again: the same state, and nothing twice.
#[tokio::test]
async fn the_creation_of_a_bastion_continues_where_it_was_interrupted() {
    let make = async |fake: &Fake| make(fake, &request(KEY)).await;
    interruptions::is_continued("a bastion", account, make, |fake, fault| {
        assert_eq!(fake.state().instances.len(), 1, "{fault:?}");
    })
    .await;
}

/// The same of a destruction, and of one that follows an interrupted creation.
#[tokio::test]
async fn the_destruction_of_a_bastion_leaves_nothing_however_it_was_interrupted() {
    let before = account().await.state().snapshot();
    let make = async |fake: &Fake| make(fake, &request(KEY)).await;
    let rest = |fake: &Fake| fake.state().snapshot();
    interruptions::is_destroyed("a bastion", account, make, unmake, rest, &before).await;
}

/// Also what an interrupted creation or destruction of a bastion leaves.
#[tokio::test]
async fn the_destruction_of_a_network_finds_what_a_bastion_leaves() {
    for at in 0..calls_of_creation().await {
        let fake = account().await;
        fake.set_fault(Some(Fault::KilledAfter(at)));
        drop(make(&fake, &request(KEY)).await);
        fake.set_fault(None);
        destroy_network(&fake).await.unwrap();
        assert_eq!(left(&fake), [""; 0], "killed after {at}");
    }
    let reference = account().await;
    make(&reference, &request(KEY)).await.unwrap();
    reference.set_fault(None);
    unmake(&reference).await.unwrap();
    for at in 0..reference.count() {
        let fake = account().await;
        make(&fake, &request(KEY)).await.unwrap();
        fake.set_fault(Some(Fault::KilledAfter(at)));
        drop(unmake(&fake).await);
        fake.set_fault(None);
        destroy_network(&fake).await.unwrap();
        assert_eq!(left(&fake), [""; 0], "killed after {at}");
    }
}

#[tokio::test]
async fn what_prevents_a_bastion_is_found_before_anything_is_made() {
    let without_network = Fake::with_zone(BASE);
    let without_route = account().await;
    {
        let mut state = without_route.state();
        for item in state.items.values_mut() {
            let name = item.tags.get("Name");
            let is_public = name.is_some_and(|name| name == "a-x1-public");
            if item.kind == Kind::RouteTable && is_public {
                item.clear_routes();
            }
        }
    }
    for (fake, expected) in [
        (without_network, "there is no VPC a-x1-vpc"),
        (without_route, "has no public subnet a-x1-public-*"),
    ] {
        let error = make(&fake, &request(KEY)).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(writes(&fake), [""; 0]);
    }
}

#[tokio::test]
async fn another_public_key_is_refused_and_another_address_is_added() {
    let fake = account().await;
    make(&fake, &request(KEY)).await.unwrap();
    fake.set_fault(None);
    let error = make(&fake, &request("ssh-rsa BBBB")).await.unwrap_err();
    let error = error.to_string();
    assert!(error.contains("has another public key"), "{error}");
    assert_eq!(writes(&fake), [""; 0]);
    let there = BastionRequest {
        from: vec!["198.51.100.0/24".to_owned()],
        ..request(KEY)
    };
    make(&fake, &there).await.unwrap();
    let found = writes(&fake);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("CidrIp=198.51.100.0/24"), "{found:?}");
}

/// A user has stopped it, or terminated it, or does not wait for it.
#[tokio::test]
async fn a_bastion_that_does_not_run_is_started_or_replaced() {
    let fake = account().await;
    let made = make(&fake, &request(KEY)).await.unwrap();
    let set = |state: &'static str| {
        for instance in fake.state().instances.values_mut() {
            instance.state = state;
        }
    };
    set("stopped");
    assert_eq!(make(&fake, &request(KEY)).await.unwrap(), made);
    set("terminated");
    let replaced = make(&fake, &request(KEY)).await.unwrap();
    assert_ne!(replaced.id, made.id);
    assert_eq!(instances(&fake), [replaced.id.as_str()]);
    unmake(&fake).await.unwrap();
    let without_waiting = BastionRequest {
        wait: false,
        ..request(KEY)
    };
    let made = make(&fake, &without_waiting).await.unwrap();
    assert_eq!(made.address, "");
    let found = make(&fake, &request(KEY)).await.unwrap();
    assert_eq!(found.id, made.id);
    assert_eq!(found.address, "192.0.2.1");
}

#[tokio::test]
async fn bastions_of_other_clusters_stay() {
    let fake = account().await;
    let other = Scope::new("b-x2", "b", "us-east-1", Tags::new()).unwrap();
    let executor = executor(&fake, &other);
    executor
        .create_network(&network(&["1a"], false))
        .await
        .unwrap();
    let theirs = executor.create_bastion(&request(KEY)).await.unwrap();
    let before = fake.state().snapshot();
    make(&fake, &request(KEY)).await.unwrap();
    unmake(&fake).await.unwrap();
    assert_eq!(fake.state().snapshot(), before);
    destroy_network(&fake).await.unwrap();
    assert_eq!(instances(&fake), [theirs.id.as_str()]);
}

#[tokio::test]
async fn a_dry_run_for_a_bastion_writes_nothing() {
    let fake = account().await;
    let scope = scope();
    let executor = executor(&fake, &scope);
    executor.report_bastion().await.unwrap();
    make(&fake, &request(KEY)).await.unwrap();
    fake.set_fault(None);
    executor.report_bastion().await.unwrap();
    executor.report_bastion_destruction().await.unwrap();
    executor.report_destruction().await.unwrap();
    assert_eq!(writes(&fake), [""; 0]);
}
