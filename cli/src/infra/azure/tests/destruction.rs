//! What is destroyed, what stays, and what is left when a destruction is killed at any call.

use super::*;

/// Destroys all, as `destroy cluster azure` does.
async fn destroy(fake: &Fake<fake::Azure>) -> anyhow::Result<()> {
    let scope = scope();
    destroy_of(fake, &scope, None).await
}

async fn destroy_of(
    fake: &Fake<fake::Azure>,
    scope: &Scope,
    group: Option<&str>,
) -> anyhow::Result<()> {
    let executor = executor(fake, scope);
    let dns = Some("zones");
    let mut groups = vec![Groups::created(scope, dns)];
    groups.extend(group.map(|group| Groups::given(scope, group, dns)));
    executor.destroy_roles(&groups).await?;
    let request = DestroyRequest::new(scope, group, false)?;
    executor.destroy_groups(&request).await
}

#[tokio::test]
async fn destruction_leaves_what_existed_before() {
    let fake = fake();
    let before = fake.snapshot();
    create(&fake).await.unwrap();
    fake.set_fault(None);
    destroy(&fake).await.unwrap();
    assert_eq!(fake.snapshot(), before);
    let groups: Vec<_> = writes(&fake)
        .into_iter()
        .filter(|it| !it.contains("/providers/"))
        .collect();
    let expected = ["DELETE a-a-x1", "DELETE a-vnet-a-x1", "DELETE a-nsg-a-x1"];
    assert_eq!(groups, expected);
    // There is nothing to do any more.
    fake.set_fault(None);
    destroy(&fake).await.unwrap();
    assert_eq!(writes(&fake), [""; 0]);
}

/// Killed before or after any call, or with a lost response, and run again; also one that follows an interrupted creation.
#[tokio::test]
async fn destruction_leaves_nothing_however_it_was_interrupted() {
    let reference = fake();
    let before = reference.snapshot();
    create(&reference).await.unwrap();
    let creation = reference.count();
    reference.set_fault(None);
    destroy(&reference).await.unwrap();
    let destruction = reference.count();
    for at in 0..destruction {
        for fault in [
            Fault::KilledBefore(at),
            Fault::KilledAfter(at),
            Fault::Lost(at),
        ] {
            let fake = fake();
            create(&fake).await.unwrap();
            fake.set_fault(Some(fault));
            drop(destroy(&fake).await);
            fake.set_fault(None);
            destroy(&fake).await.unwrap();
            assert_eq!(fake.snapshot(), before, "{fault:?}");
        }
    }
    for at in 0..creation {
        let fake = fake();
        fake.set_fault(Some(Fault::KilledAfter(at)));
        drop(create(&fake).await);
        fake.set_fault(None);
        destroy(&fake).await.unwrap();
        assert_eq!(fake.snapshot(), before, "killed after {at}");
    }
}

/// A group that exists is never deleted, and neither is the network in it.
#[tokio::test]
async fn a_group_that_was_given_is_kept_with_all_that_is_not_of_the_cluster() {
    let scope = scope();
    let request = || described(&given(), Some(RoleSet::Usual), Registry::Enabled);
    let reference = fake();
    let before = reference.snapshot();
    executor(&reference, &scope)
        .create(&request())
        .await
        .unwrap();
    reference.set_fault(None);
    destroy_of(&reference, &scope, Some(GIVEN)).await.unwrap();
    assert_eq!(reference.snapshot(), before);
    for at in 0..reference.count() {
        for fault in [Fault::KilledBefore(at), Fault::KilledAfter(at)] {
            let fake = fake();
            executor(&fake, &scope).create(&request()).await.unwrap();
            fake.set_fault(Some(fault));
            drop(destroy_of(&fake, &scope, Some(GIVEN)).await);
            fake.set_fault(None);
            destroy_of(&fake, &scope, Some(GIVEN)).await.unwrap();
            assert_eq!(fake.snapshot(), before, "{fault:?}");
        }
    }
}

#[tokio::test]
async fn the_group_of_the_cluster_is_kept_if_that_is_asked_for() {
    let fake = fake();
    create(&fake).await.unwrap();
    let scope = scope();
    let request = DestroyRequest::new(&scope, None, true).unwrap();
    executor(&fake, &scope)
        .destroy_groups(&request)
        .await
        .unwrap();
    let state = fake.state();
    assert!(state.cloud.get(&group("a-a-x1")).is_some());
    assert!(state.cloud.get(&group("a-vnet-a-x1")).is_none());
    let balancer = in_network("a-a-x1", "loadBalancers/a-x1");
    assert!(state.cloud.get(&balancer).is_none());
}

/// The name of one infrastructure begins with that of the other, and they share a group and a network.
#[tokio::test]
async fn clusters_in_one_subscription_do_not_touch_each_other() {
    let [one, two] = [scope_of("a-x1", "a"), scope_of("a-x1-b", "b")];
    let request = |scope: &Scope, args: &AzureNetworkArgs| {
        let network = network(args, &scope.name);
        let group = network.main_group(scope);
        let identities = Identities::Created(IdentityRequest::new(&group, ISSUER).unwrap());
        let roles = Some(RoleSet::Usual);
        CreateRequest::new(network, identities, roles, Registry::Enabled).unwrap()
    };
    for (args, group_name) in [(AzureNetworkArgs::default(), None), (given(), Some(GIVEN))] {
        let expected = {
            let alone = fake();
            let executor = executor(&alone, &two);
            executor.create(&request(&two, &args)).await.unwrap();
            alone.snapshot()
        };
        let fake = fake();
        for scope in [&one, &two] {
            let executor = executor(&fake, scope);
            executor.create(&request(scope, &args)).await.unwrap();
        }
        destroy_of(&fake, &one, group_name).await.unwrap();
        assert_eq!(fake.snapshot(), expected, "{group_name:?}");
    }
}

/// Controllers do not tag all that they make.
#[tokio::test]
async fn resources_without_tags_are_known_by_their_names() {
    let fake = fake();
    let scope = scope();
    let request = described(&given(), None, Registry::Enabled);
    executor(&fake, &scope).create(&request).await.unwrap();
    let tagged = |id: &str| {
        let tag = (format!("kubernetes.io_cluster.{id}"), "owned");
        json!({ "tags": BTreeMap::from([tag]) })
    };
    let names = [
        ("loadBalancers/a-x1-internal", json!({}), false),
        ("publicIPAddresses/a-x1-abc", json!({}), false),
        ("publicIPAddresses/b", tagged("a-x1"), false),
        ("publicIPAddresses/a-x1-c", tagged("a-x1-b"), true),
        ("loadBalancers/a-x1-b-internal", json!({}), true),
        ("loadBalancers/a-x10", json!({}), true),
        ("loadBalancers/mine", json!({}), true),
        ("privateDnsZones/a.internal.example.com", json!({}), true),
    ];
    for (name, body, _) in &names {
        let id = in_network(GIVEN, name);
        fake.state().cloud.insert(&id, body.clone());
    }
    destroy_of(&fake, &scope, Some(GIVEN)).await.unwrap();
    for (name, _, stays) in &names {
        let id = in_network(GIVEN, name);
        let there = fake.state().cloud.get(&id).is_some();
        assert_eq!(there, *stays, "{name}");
    }
}

#[tokio::test]
async fn a_group_with_resources_of_another_cluster_is_kept() {
    let fake = fake();
    create(&fake).await.unwrap();
    let other = scope_of("b-x2", "b");
    let id = in_network("a-a-x1", "publicIPAddresses/b-x2");
    fake.state()
        .cloud
        .insert(&id, json!({ "tags": other.tags() }));
    destroy(&fake).await.unwrap();
    let state = fake.state();
    assert!(state.cloud.get(&id).is_some());
    assert!(state.cloud.get(&group("a-a-x1")).is_some());
    let balancer = in_network("a-a-x1", "loadBalancers/a-x1");
    assert!(state.cloud.get(&balancer).is_none());
}

#[tokio::test]
async fn a_group_without_a_tag_of_the_cluster_is_not_deleted() {
    let fake = fake();
    // Of a user, with the name that the command would choose.
    fake.state()
        .cloud
        .insert(&group("a-a-x1"), json!({ "location": "westeurope" }));
    let before = fake.snapshot();
    destroy(&fake).await.unwrap();
    assert_eq!(fake.snapshot(), before);
}

async fn destroy_identity(
    fake: &Fake<fake::Azure>,
    group: &str,
    clients: &[String],
) -> anyhow::Result<()> {
    let scope = scope();
    let groups = [Groups::created(&scope, None)];
    let executor = executor(fake, &scope);
    executor.destroy_identity(group, clients, &groups).await
}

#[tokio::test]
async fn identities_are_destroyed_with_their_roles_however_it_was_interrupted() {
    let scope = scope();
    let create = async |fake: &Fake<fake::Azure>| {
        let executor = executor(fake, &scope);
        let request = IdentityRequest::new("ids", ISSUER).unwrap().with_kms();
        let made = executor.create_identity(&request).await?;
        let files = IdentityFiles::workload(made.document())?;
        let network = network(&given(), "a");
        let identities = Identities::Existing(files);
        let roles = Some(RoleSet::Usual);
        let request = CreateRequest::new(network, identities, roles, Registry::Enabled)?;
        executor.create(&request).await
    };
    let reference = fake();
    create(&reference).await.unwrap();
    let ours = |line: &String| line.contains("/roleassignments/") || line.contains("/ids");
    let mut expected = reference.snapshot();
    assert!(expected.iter().any(ours));
    expected.retain(|line| !ours(line) && !line.contains("-4000-8000-"));
    reference.set_fault(None);
    destroy_identity(&reference, "ids", &[]).await.unwrap();
    assert_eq!(reference.snapshot(), expected);
    for at in 0..reference.count() {
        for fault in [
            Fault::KilledBefore(at),
            Fault::KilledAfter(at),
            Fault::Lost(at),
        ] {
            let fake = fake();
            create(&fake).await.unwrap();
            fake.set_fault(Some(fault));
            drop(destroy_identity(&fake, "ids", &[]).await);
            fake.set_fault(None);
            destroy_identity(&fake, "ids", &[]).await.unwrap();
            assert_eq!(fake.snapshot(), expected, "{fault:?}");
        }
    }
}

#[tokio::test]
async fn identities_of_other_tools_are_destroyed_only_if_a_file_names_them() {
    let provider = "providers/Microsoft.ManagedIdentity/userAssignedIdentities";
    let id = |part: &str| format!("{}/{provider}/a-{part}-a-x1", group(GIVEN));
    let fake = fake();
    let other = scope_of("b-x2", "b");
    for (part, client, tags) in [
        ("disk", id_of_client(17), json!({})),
        ("file", id_of_client(18), json!({})),
        ("ingress", id_of_client(15), json!(other.tags())),
    ] {
        let properties = json!({ "clientId": client, "principalId": "p" });
        let body = json!({ "tags": tags, "properties": properties });
        fake.state().cloud.insert(&id(part), body);
    }
    let clients = [id_of_client(17), id_of_client(15)];
    destroy_identity(&fake, GIVEN, &clients).await.unwrap();
    let state = fake.state();
    let there = ["disk", "file", "ingress"].map(|part| state.cloud.get(&id(part)).is_some());
    assert_eq!(there, [false, true, true]);
    assert!(state.cloud.get(&group(GIVEN)).is_some());
}
