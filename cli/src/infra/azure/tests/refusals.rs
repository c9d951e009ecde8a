//! What is refused before anything is written, and whose resources are not taken over.

use super::*;

fn request(args: &AzureNetworkArgs) -> Result<NetworkRequest, String> {
    let domain = Domain::new(BASE, None, "a").unwrap();
    NetworkRequest::new(domain, args).map_err(|error| error.to_string())
}

#[test]
fn contradictory_flags_are_refused() {
    let some = |text: &str| Some(text.to_owned());
    let subnet = format!("{}/subnets/nodes", in_network(GIVEN, "virtualNetworks/n"));
    for (args, words) in [
        (
            AzureNetworkArgs {
                resource_group_name: None,
                vnet_id: None,
                ..given()
            },
            "--network-security-group-id needs --resource-group-name",
        ),
        (
            AzureNetworkArgs {
                vnet_id: None,
                subnet_id: Some(subnet.clone()),
                ..given()
            },
            "--subnet-id needs --vnet-id",
        ),
        (
            AzureNetworkArgs {
                vnet_id: Some(in_network(GIVEN, "virtualNetworks/other")),
                subnet_id: Some(subnet.clone()),
                ..given()
            },
            "use a subnet of this network",
        ),
        (
            AzureNetworkArgs {
                vnet_id: some("n"),
                ..given()
            },
            "virtualNetworks/NAME",
        ),
        (
            AzureNetworkArgs {
                vnet_id: Some(in_network(GIVEN, "networkSecurityGroups/n")),
                ..given()
            },
            "virtualNetworks/NAME",
        ),
        (
            AzureNetworkArgs {
                resource_group_tags: vec!["a=b".to_owned()],
                ..given()
            },
            "--resource-group-tags is for groups that are created",
        ),
        (
            AzureNetworkArgs {
                resource_group_name: some("a/b"),
                ..AzureNetworkArgs::default()
            },
            "--resource-group-name \"a/b\"",
        ),
        (
            AzureNetworkArgs {
                dns_zone_rg_name: some("../a"),
                ..AzureNetworkArgs::default()
            },
            "--dns-zone-rg-name \"../a\"",
        ),
    ] {
        let error = request(&args).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
    let complete = AzureNetworkArgs {
        subnet_id: Some(subnet.to_uppercase()),
        ..given()
    };
    // Spelling in capitals is no contradiction.
    request(&complete).unwrap();
}

#[test]
fn client_ids_that_get_roles_are_uuids() {
    let (control_plane, nodes) = (data("azure-managed.json"), data("azure-data-plane.json"));
    let managed = IdentityFiles::read(None, Some((control_plane.as_path(), nodes.as_path())));
    let managed = || Identities::Existing(managed.as_ref().unwrap().clone().unwrap());
    let network = || network(&given(), "a");
    let enabled = Registry::Enabled;
    let error = CreateRequest::new(network(), managed(), Some(RoleSet::Usual), enabled);
    let error = error.unwrap_err().to_string();
    let expected =
        "--data-plane-identities-file: the client ID of imageRegistryMSIClientID is \"r\"";
    assert!(error.contains(expected), "{error}");
    // Without roles, they are not used.
    CreateRequest::new(network(), managed(), None, enabled).unwrap();
}

#[test]
fn identities_of_nodes_have_roles_in_the_group_of_the_cluster() {
    let control_plane = std::fs::read_to_string(data("azure-managed.json")).unwrap();
    let id = id_of_client;
    let identities = IdentityFiles::Managed {
        control_plane: serde_json::from_str(&control_plane).unwrap(),
        data_plane: json!({
            "imageRegistryMSIClientID": id(31),
            "diskMSIClientID": id(32),
            "fileMSIClientID": id(33),
        }),
    };
    for (registry, expected) in [
        (
            Registry::Enabled,
            vec![22, 21, 25, 23, 28, 27, 26, 24, 31, 32, 33],
        ),
        (Registry::Disabled, vec![22, 21, 25, 23, 28, 27, 26, 32, 33]),
    ] {
        let clients = identities.clients(registry).unwrap();
        let found: Vec<_> = clients.iter().map(|it| it.client_id.clone()).collect();
        let expected: Vec<_> = expected.into_iter().map(id).collect();
        assert_eq!(found, expected, "{registry:?}");
    }
}

/// A part of the error, changes of the subscription and of flags, and roles.
type Row = (
    &'static str,
    fn(&mut fake::Azure),
    fn(&mut AzureNetworkArgs),
    RoleSet,
);

const ROWS: [Row; 9] = [
    (
        "there is no public DNS zone example.com in resource group given",
        |_| {},
        |args| args.dns_zone_rg_name = Some(GIVEN.to_owned()),
        RoleSet::Usual,
    ),
    (
        "there are several public DNS zones example.com in the subscription: give --dns-zone-rg-name",
        |azure| azure.insert(&in_network(GIVEN, "dnszones/example.com"), json!({})),
        |_| {},
        RoleSet::Usual,
    ),
    (
        "there is no resource group none",
        |_| {},
        |args| args.resource_group_name = Some("none".to_owned()),
        RoleSet::Usual,
    ),
    (
        "virtualNetworks/none does not exist",
        |_| {},
        |args| args.vnet_id = Some(in_network(GIVEN, "virtualNetworks/none")),
        RoleSet::Usual,
    ),
    (
        "subnets/none does not exist",
        |_| {},
        |args| {
            let network = in_network(GIVEN, "virtualNetworks/n");
            args.subnet_id = Some(format!("{network}/subnets/none"));
            args.vnet_id = Some(network);
        },
        RoleSet::Usual,
    ),
    (
        "give --subnet-id",
        |azure| {
            let subnets = json!([{ "name": "a" }, { "name": "b" }]);
            let properties = json!({ "subnets": subnets });
            let body = json!({ "location": "westeurope", "properties": properties });
            azure.insert(&in_network(GIVEN, "virtualNetworks/n"), body);
        },
        |args| args.vnet_id = Some(in_network(GIVEN, "virtualNetworks/n")),
        RoleSet::Usual,
    ),
    (
        "give --location northeurope",
        |azure| {
            let id = in_network(GIVEN, "virtualNetworks/n");
            azure.insert(&id, json!({ "location": "northeurope" }));
        },
        |args| args.vnet_id = Some(in_network(GIVEN, "virtualNetworks/n")),
        RoleSet::Usual,
    ),
    (
        "00000000-0000-0000-0000-000000000012 has no service principal in the tenant",
        |azure| {
            *azure = fake::Azure::default()
                .with(&group("zones"), json!({}))
                .with(&in_network("zones", "dnszones/example.com"), json!({}))
        },
        |_| {},
        RoleSet::Usual,
    ),
    (
        "there is no role \"Azure Red Hat OpenShift NodePool Management Role\"",
        |azure| {
            *azure = fake::Azure::default()
                .with(&group("zones"), json!({}))
                .with(&in_network("zones", "dnszones/example.com"), json!({}))
        },
        |_| {},
        RoleSet::Custom,
    ),
];

#[tokio::test]
async fn what_is_missing_is_refused_before_anything_is_written() {
    for (words, change, flags, set) in ROWS {
        let mut azure = azure();
        change(&mut azure);
        let fake = Fake::new(azure);
        let mut args = AzureNetworkArgs::default();
        flags(&mut args);
        let scope = scope();
        let request = described(&args, Some(set), Registry::Enabled);
        let error = executor(&fake, &scope).create(&request).await.unwrap_err();
        let error = format!("{error:#}");
        assert!(error.contains(words), "{words}: {error}");
        assert_eq!(writes(&fake), [""; 0], "{words}");
    }
}

#[tokio::test]
async fn resources_of_others_are_not_taken_over() {
    let other = scope_of("b-x2", "b");
    let identity = "providers/Microsoft.ManagedIdentity/userAssignedIdentities/a-disk-a-x1";
    for (id, tags, words) in [
        (
            group("a-a-x1"),
            json!(other.tags()),
            "resource group a-a-x1 belongs to infrastructure b-x2",
        ),
        (
            group("a-nsg-a-x1"),
            json!({}),
            "resource group a-nsg-a-x1 exists, and has no tag kubernetes.io_cluster.a-x1",
        ),
        (
            format!("{}/{identity}", group("a-a-x1")),
            json!(other.tags()),
            "identity a-disk-a-x1 belongs to infrastructure b-x2",
        ),
        (
            in_network("a-vnet-a-x1", "virtualNetworks/a-a-x1"),
            json!({}),
            "virtual network a-a-x1 exists, and has no tag",
        ),
    ] {
        let fake = fake();
        fake.state().cloud.insert(&id, json!({ "tags": tags }));
        let before = fake.state().cloud.get(&id).cloned();
        let error = format!("{:#}", create(&fake).await.unwrap_err());
        assert!(error.contains(words), "{error}");
        assert_eq!(fake.state().cloud.get(&id).cloned(), before, "{id}");
    }
}

#[tokio::test]
async fn an_interrupted_creation_with_another_name_is_found() {
    let fake = fake();
    let scope = scope();
    executor(&fake, &scope).refuse_other().await.unwrap();
    create(&fake).await.unwrap();
    let next = scope_of("a-y2", "a");
    let error = executor(&fake, &next).refuse_other().await.unwrap_err();
    assert!(error.to_string().contains("--infra-id a-x1"), "{error}");
    let other = scope_of("b-x2", "b");
    executor(&fake, &other).refuse_other().await.unwrap();
}

#[test]
fn issuers_have_tls() {
    for (url, expected) in [
        (ISSUER, true),
        ("http://issuer.example.com", false),
        ("", false),
    ] {
        assert_eq!(IdentityRequest::new("ids", url).is_ok(), expected, "{url}");
    }
    let error = IdentityRequest::new("a/b", ISSUER).unwrap_err().to_string();
    assert!(error.contains("--resource-group-name"), "{error}");
}
