//! A VPC of another account than the cluster.

use std::collections::BTreeSet;

use super::super::fake::Account;
use super::*;

const PLACES: [PrivateZones; 2] = [PrivateZones::OfVpc, PrivateZones::OfCluster];

/// Calls that only the owner of the VPC makes, if private zones are in its account.
const OF_OWNER: [&str; 19] = [
    "AllocateAddress",
    "AssociateDhcpOptions",
    "AssociateRouteTable",
    "AttachInternetGateway",
    "ChangeResourceRecordSets",
    "ChangeTagsForResource",
    "CreateDhcpOptions",
    "CreateHostedZone",
    "CreateInternetGateway",
    "CreateNatGateway",
    "CreateResourceShare",
    "CreateRole",
    "CreateRoute",
    "CreateRouteTable",
    "CreateSubnet",
    "CreateVpc",
    "CreateVpcEndpoint",
    "ModifyVpcAttribute",
    "PutRolePolicy",
];
/// Calls of the account of the cluster.
const OF_CLUSTER: [&str; 11] = [
    "AddRoleToInstanceProfile",
    "CreateBucket",
    "CreateInstanceProfile",
    "CreateOpenIDConnectProvider",
    "CreateRole",
    "CreateTags",
    "DeletePublicAccessBlock",
    "PutBucketPolicy",
    "PutBucketTagging",
    "PutObject",
    "PutRolePolicy",
];

/// Creates all, as `create cluster aws` does.
async fn create(
    fake: &Fake,
    zones: PrivateZones,
) -> anyhow::Result<(NetworkOutput, IdentityOutput)> {
    create_in(fake, zones, &["1a"]).await
}

async fn create_in(
    fake: &Fake,
    private_zones: PrivateZones,
    zones: &[&str],
) -> anyhow::Result<(NetworkOutput, IdentityOutput)> {
    let (scope, other) = (scope(), fake.owner());
    let (cluster, owner) = (executor(fake, &scope), executor(&other, &scope));
    let accounts = Accounts::new(&cluster, Some(&owner), private_zones);
    let made = accounts.create_network(&network(zones, false)).await?;
    let identity = accounts.create_identity(&identity(&made)).await?;
    Ok((made, identity))
}

/// Destroys all, as `destroy cluster aws` does.
async fn destroy(fake: &Fake, zones: PrivateZones) -> anyhow::Result<()> {
    let (scope, other) = (scope(), fake.owner());
    let (cluster, owner) = (executor(fake, &scope), executor(&other, &scope));
    let accounts = Accounts::new(&cluster, Some(&owner), zones);
    let limit = Duration::from_mins(1);
    let request = DestroyRequest::new(Some(domain()), limit);
    accounts.destroy_network(&request).await?;
    accounts.destroy_identity(Some(limit)).await
}

/// The actions of the calls that an account made, without those that only read.
fn actions(fake: &Fake, account: Account) -> Vec<&'static str> {
    let state = fake.state();
    let calls = state.calls.iter().zip(&state.callers);
    let own = calls.filter(|(_, caller)| **caller == account);
    let reads = ["Describe", "List", "Get", "Head"];
    let is_read = |action: &str| reads.iter().any(|verb| action.starts_with(verb));
    let actions = own.map(|(call, _)| call.action);
    let actions: BTreeSet<_> = actions.filter(|action| !is_read(action)).collect();
    actions.into_iter().collect()
}

/// Whose credentials sign which call.
#[tokio::test]
async fn each_call_has_the_credentials_of_its_account() {
    let fake = Fake::with_zone(BASE);
    let (made, _) = create(&fake, PrivateZones::OfVpc).await.unwrap();
    let mut of_owner = actions(&fake, Account::Owner);
    of_owner.retain(|action| *action != "ReplaceRouteTableAssociation");
    assert_eq!(of_owner, OF_OWNER);
    assert_eq!(actions(&fake, Account::Cluster), OF_CLUSTER);
    assert_eq!(made.vpc_creator_account_id, Account::Owner.id());
    assert_eq!(made.cluster_account_id, Account::Cluster.id());
    let state = fake.state();
    for item in state.items.values() {
        assert_eq!(item.account, Account::Owner, "{item:?}");
        let tags = (item.kind == Kind::Subnet).then_some(&item.tags);
        assert_eq!(item.other_tags, tags.cloned().unwrap_or_default());
    }
    let zones = state.zones.values().filter(|it| it.vpc.is_some());
    let accounts: Vec<_> = zones.map(|it| it.account).collect();
    assert_eq!(accounts, [Account::Owner; 2]);
}

#[tokio::test]
async fn private_zones_can_be_in_the_account_of_the_cluster() {
    let fake = Fake::with_zone(BASE);
    let (made, _) = create(&fake, PrivateZones::OfCluster).await.unwrap();
    let of_owner = actions(&fake, Account::Owner);
    assert!(of_owner.contains(&"AssociateVPCWithHostedZone"));
    for action in ["CreateHostedZone", "ChangeTagsForResource"] {
        assert!(!of_owner.contains(&action), "{action}");
    }
    let of_cluster = actions(&fake, Account::Cluster);
    for action in [
        "CreateHostedZone",
        "CreateVPCAssociationAuthorization",
        "CreateVpc",
        "DeleteVpc",
        "DisassociateVPCFromHostedZone",
    ] {
        assert!(of_cluster.contains(&action), "{action}");
    }
    let state = fake.state();
    for id in [&made.private_zone_id, &made.local_zone_id] {
        let zone = &state.zones[id];
        assert_eq!((zone.account, &zone.vpc), (Account::Cluster, &None));
        assert_eq!(zone.others.get(&made.vpc_id), Some(&true));
    }
    let vpcs = state.items.values().filter(|it| it.kind == Kind::Vpc);
    assert_eq!(vpcs.count(), 1);
}

#[tokio::test]
async fn roles_of_the_owner_are_for_roles_of_the_cluster() {
    for (zones, account) in [
        (PrivateZones::OfVpc, Account::Owner),
        (PrivateZones::OfCluster, Account::Cluster),
    ] {
        let fake = Fake::with_zone(BASE);
        let (_, identity) = create(&fake, zones).await.unwrap();
        let [route53, endpoint] = ["a-x1-shared-vpc-route53", "a-x1-shared-vpc-endpoint"];
        let arn = |name: &str| format!("arn:role/{name}");
        assert_eq!(identity.shared_ingress_role_arn, arn(route53));
        assert_eq!(identity.shared_control_plane_role_arn, arn(endpoint));
        let state = fake.state();
        assert_eq!(state.roles[route53].account, account, "{zones:?}");
        assert_eq!(state.roles[endpoint].account, Account::Owner);
        let [ingress, control_plane] = ["a-x1-openshift-ingress", "a-x1-control-plane-operator"];
        let trusts = |role: &str, name: &str| state.roles[role].trust.contains(&arn(name));
        assert!(trusts(route53, ingress) && trusts(route53, control_plane));
        assert!(trusts(endpoint, control_plane) && !trusts(endpoint, ingress));
        let assumes = |role: &str, name: &str| {
            let policy = &state.roles[role].policies[&format!("{role}-assume")];
            policy.contains(&arn(name))
        };
        assert!(assumes(ingress, route53) && !assumes(ingress, endpoint));
        assert!(assumes(control_plane, route53) && assumes(control_plane, endpoint));
        let own = &state.roles[control_plane].policies[control_plane];
        assert!(!own.contains("CreateVpcEndpoint"), "{own}");
    }
}

#[tokio::test]
async fn second_run_changes_nothing_and_destruction_leaves_nothing_in_two_accounts() {
    for zones in PLACES {
        let fake = Fake::with_zone(BASE);
        let first = create(&fake, zones).await.unwrap();
        let snapshot = fake.state().snapshot();
        fake.set_fault(None);
        assert_eq!(create(&fake, zones).await.unwrap(), first);
        assert_eq!(fake.state().snapshot(), snapshot, "{zones:?}");
        let created = writes(&fake).into_iter();
        let created: Vec<_> = created.filter(|it| it.starts_with("Create")).collect();
        assert!(created.is_empty(), "{created:?}");
        destroy(&fake, zones).await.unwrap();
        assert_eq!(left(&fake), [""; 0], "{zones:?}");
        destroy(&fake, zones).await.unwrap();
    }
}

/// Killed before or after any call, or with a lost response, and run again: the same state, and nothing twice.
#[tokio::test]
async fn creation_in_two_accounts_continues_where_it_was_interrupted() {
    for zones in PLACES {
        let account = async || Fake::with_zone(BASE);
        let create = async |fake: &Fake| create(fake, zones).await;
        let what = format!("{zones:?}");
        interruptions::is_continued(&what, account, create, |_, _| {}).await;
    }
}

/// The same of a destruction, and of one that follows an interrupted creation.
#[tokio::test]
async fn destruction_in_two_accounts_leaves_nothing_however_it_was_interrupted() {
    for zones in PLACES {
        let account = async || Fake::with_zone(BASE);
        let create = async |fake: &Fake| create(fake, zones).await;
        let destroy = async |fake: &Fake| destroy(fake, zones).await;
        let what = format!("{zones:?}");
        interruptions::is_destroyed(&what, account, create, destroy, left, &[]).await;
    }
}

#[tokio::test]
async fn credentials_of_one_account_twice_are_refused() {
    let fake = Fake::with_zone(BASE);
    let scope = scope();
    let (cluster, same) = (executor(&fake, &scope), executor(&fake, &scope));
    let accounts = Accounts::new(&cluster, Some(&same), PrivateZones::OfVpc);
    let request = network(&["1a"], false);
    let error = accounts.create_network(&request).await.unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("which is also the account of the cluster"),
        "{error}"
    );
    let request = DestroyRequest::new(None, Duration::from_mins(1));
    accounts.destroy_network(&request).await.unwrap_err();
    accounts.destroy_identity(None).await.unwrap_err();
    assert_eq!(writes(&fake), [""; 0]);
}

/// What the cluster has made in the shared VPC goes, and another cluster of the same accounts stays.
#[tokio::test]
async fn destruction_in_two_accounts_is_limited_to_the_cluster() {
    let fake = Fake::with_zone(BASE);
    let other_scope = Scope::new("b-x2", "b", "us-east-1", Tags::new()).unwrap();
    let other_fake = fake.owner();
    let (cluster, owner) = (
        executor(&fake, &other_scope),
        executor(&other_fake, &other_scope),
    );
    let accounts = Accounts::new(&cluster, Some(&owner), PrivateZones::OfVpc);
    let theirs = network(&["1a"], false);
    let domain = Domain::new(BASE, None, "b").unwrap();
    let theirs = NetworkRequest { domain, ..theirs };
    accounts.create_network(&theirs).await.unwrap();
    let before = fake.state().snapshot();
    let (made, _) = create(&fake, PrivateZones::OfVpc).await.unwrap();
    let group = [
        ("GroupName", "a-x1-default-sg".to_owned()),
        ("VpcId", made.vpc_id),
    ];
    let group = Kind::SecurityGroup.create(&group, &Tags::new());
    fake.call(&group).await.unwrap();
    destroy(&fake, PrivateZones::OfVpc).await.unwrap();
    let mut after = fake.state().snapshot();
    // AWS shows them for an hour.
    after.retain(|line| !line.contains("\"deleted\""));
    assert_eq!(after, before);
}

#[tokio::test]
async fn subnets_of_further_zones_are_shared_too() {
    let fake = Fake::with_zone(BASE);
    create(&fake, PrivateZones::OfVpc).await.unwrap();
    create_in(&fake, PrivateZones::OfVpc, &["1a", "1b"])
        .await
        .unwrap();
    let state = fake.state();
    let shares: Vec<_> = state.shares.values().collect();
    assert_eq!(shares.len(), 1);
    assert_eq!(shares[0].subnets.len(), 4);
    let mut subnets = state.items.values().filter(|it| it.kind == Kind::Subnet);
    assert!(subnets.all(|it| !it.other_tags.is_empty()));
}
