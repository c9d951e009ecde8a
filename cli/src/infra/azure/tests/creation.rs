//! What is created, call by call, and what there is when a creation is killed at any of them.

use super::*;

#[tokio::test]
async fn a_network_is_created_by_these_calls() {
    let fake = fake();
    let scope = scope();
    let args = AzureNetworkArgs::default();
    let request = described(&args, None, Registry::Enabled);
    let output = executor(&fake, &scope).create(&request).await.unwrap();
    let expected = [
        "PUT a-a-x1",
        "PUT a-nsg-a-x1",
        "PUT a-nsg-a-x1/providers/Microsoft.Network/networkSecurityGroups/a-a-x1-nsg",
        "PUT a-vnet-a-x1",
        "PUT a-vnet-a-x1/providers/Microsoft.Network/virtualNetworks/a-a-x1",
        "PUT a-a-x1/providers/Microsoft.Network/privateDnsZones/a.example.com",
        "PUT a-a-x1/providers/Microsoft.Network/privateDnsZones/a.example.com/virtualNetworkLinks/a-a-x1",
        "PUT a-a-x1/providers/Microsoft.Network/publicIPAddresses/a-x1",
        "PUT a-a-x1/providers/Microsoft.Network/loadBalancers/a-x1",
    ];
    assert_eq!(writes(&fake), expected);
    for put in puts(&fake) {
        let tag = &put.body["tags"]["kubernetes.io_cluster.a-x1"];
        assert_eq!(tag, "owned", "{}", put.url);
    }
    let balancer = in_network("a-a-x1", "loadBalancers/a-x1");
    for (end, pointer, expected) in [
        ("/a-a-x1-nsg", "/properties", json!({})),
        (
            "/virtualNetworks/a-a-x1",
            "/properties/addressSpace/addressPrefixes",
            json!(["10.0.0.0/16"]),
        ),
        (
            "/virtualNetworks/a-a-x1",
            "/properties/subnets",
            json!([{
                "name": "default",
                "properties": {
                    "addressPrefix": "10.0.0.0/24",
                    "networkSecurityGroup": {
                        "id": in_network("a-nsg-a-x1", "networkSecurityGroups/a-a-x1-nsg"),
                    },
                },
            }]),
        ),
        ("/a.example.com", "/location", json!("global")),
        (
            "/virtualNetworkLinks/a-a-x1",
            "/properties",
            json!({
                "virtualNetwork": { "id": in_network("a-vnet-a-x1", "virtualNetworks/a-a-x1") },
                "registrationEnabled": false,
            }),
        ),
        (
            "/publicIPAddresses/a-x1",
            "/properties",
            json!({
                "publicIPAddressVersion": "IPv4",
                "publicIPAllocationMethod": "Static",
                "idleTimeoutInMinutes": 4,
            }),
        ),
        ("/publicIPAddresses/a-x1", "/sku/name", json!("Standard")),
        ("/loadBalancers/a-x1", "/sku/name", json!("Standard")),
        (
            "/loadBalancers/a-x1",
            "/properties/probes/0/properties",
            json!({
                "protocol": "Http",
                "port": 30595,
                "requestPath": "/healthz",
                "intervalInSeconds": 5,
                "probeThreshold": 2,
            }),
        ),
        (
            "/loadBalancers/a-x1",
            "/properties/frontendIPConfigurations/0/properties",
            json!({
                "privateIPAllocationMethod": "Dynamic",
                "publicIPAddress": { "id": in_network("a-a-x1", "publicIPAddresses/a-x1") },
            }),
        ),
        (
            "/loadBalancers/a-x1",
            "/properties/outboundRules/0/properties",
            json!({
                "backendAddressPool": { "id": format!("{balancer}/backendAddressPools/a-x1") },
                "frontendIPConfigurations": [
                    { "id": format!("{balancer}/frontendIPConfigurations/a-x1") },
                ],
                "protocol": "All",
                "allocatedOutboundPorts": 1024,
                "enableTcpReset": true,
                "idleTimeoutInMinutes": 4,
            }),
        ),
    ] {
        let body = body_of(&fake, end);
        assert_eq!(body.pointer(pointer), Some(&expected), "{end}{pointer}");
    }
    let network = in_network("a-vnet-a-x1", "virtualNetworks/a-a-x1");
    let output = serde_json::to_value(output).unwrap();
    for (field, expected) in [
        ("baseDomain", BASE),
        ("publicZoneID", &in_network("zones", "dnszones/example.com")),
        (
            "privateZoneID",
            &in_network("a-a-x1", "privateDnsZones/a.example.com"),
        ),
        ("region", "westeurope"),
        ("resourceGroupName", "a-a-x1"),
        ("vnetID", &network),
        ("subnetID", &format!("{network}/subnets/default")),
        ("bootImageID", ""),
        ("infraID", "a-x1"),
        (
            "securityGroupID",
            &in_network("a-nsg-a-x1", "networkSecurityGroups/a-a-x1-nsg"),
        ),
        ("natSubnetID", ""),
        ("kmsClientID", &id_of_client(19)),
    ] {
        assert_eq!(output[field], *expected, "{field}");
    }
    assert_eq!(
        output["workloadIdentities"]["disk"]["clientID"],
        id_of_client(17)
    );
}

#[tokio::test]
async fn what_is_given_is_used_as_it_is() {
    let fake = fake();
    let before = fake.snapshot();
    let scope = scope();
    let request = described(&given(), None, Registry::Enabled);
    let output = executor(&fake, &scope).create(&request).await.unwrap();
    let expected = [
        "PUT given/providers/Microsoft.Network/privateDnsZones/a.example.com",
        "PUT given/providers/Microsoft.Network/privateDnsZones/a.example.com/virtualNetworkLinks/a-a-x1",
        "PUT given/providers/Microsoft.Network/publicIPAddresses/a-x1",
        "PUT given/providers/Microsoft.Network/loadBalancers/a-x1",
    ];
    assert_eq!(writes(&fake), expected);
    let network = in_network(GIVEN, "virtualNetworks/n");
    assert_eq!(output.subnet_id, format!("{network}/subnets/nodes"));
    assert_eq!(output.resource_group_name, GIVEN);
    let after = fake.snapshot();
    assert!(before.iter().all(|line| after.contains(line)));
    // A link of another name is used.
    let link = in_network(
        GIVEN,
        "privateDnsZones/b.example.com/virtualNetworkLinks/other",
    );
    let zone = in_network(GIVEN, "privateDnsZones/b.example.com");
    let other = scope_of("b-x2", "b");
    let properties = json!({ "virtualNetwork": { "id": network.to_uppercase() } });
    {
        let cloud = &mut fake.state().cloud;
        cloud.insert(&zone, json!({ "tags": other.tags() }));
        cloud.insert(&link, json!({ "properties": properties }));
    }
    fake.set_fault(None);
    let identities = Identities::Existing(files());
    let network = super::network(&given(), "b");
    let request = CreateRequest::new(network, identities, None, Registry::Enabled).unwrap();
    executor(&fake, &other).create(&request).await.unwrap();
    let expected = [
        "PUT given/providers/Microsoft.Network/publicIPAddresses/b-x2",
        "PUT given/providers/Microsoft.Network/loadBalancers/b-x2",
    ];
    assert_eq!(writes(&fake), expected);
}

/// Field, part of the name, and the ends of credentials' names with their service accounts.
type Trusted = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

const TRUSTED: [Trusted; 9] = [
    (
        "disk",
        "disk",
        &[
            (
                "disk-fed-id-node",
                "openshift-cluster-csi-drivers:azure-disk-csi-driver-node-sa",
            ),
            (
                "disk-fed-id-operator",
                "openshift-cluster-csi-drivers:azure-disk-csi-driver-operator",
            ),
            (
                "disk-fed-id-controller",
                "openshift-cluster-csi-drivers:azure-disk-csi-driver-controller-sa",
            ),
        ],
    ),
    (
        "file",
        "file",
        &[
            (
                "file-fed-id-node",
                "openshift-cluster-csi-drivers:azure-file-csi-driver-node-sa",
            ),
            (
                "file-fed-id-operator",
                "openshift-cluster-csi-drivers:azure-file-csi-driver-operator",
            ),
            (
                "file-fed-id-controller",
                "openshift-cluster-csi-drivers:azure-file-csi-driver-controller-sa",
            ),
        ],
    ),
    (
        "imageRegistry",
        "image-registry",
        &[
            (
                "image-registry-fed-id-registry",
                "openshift-image-registry:registry",
            ),
            (
                "image-registry-fed-id-operator",
                "openshift-image-registry:cluster-image-registry-operator",
            ),
        ],
    ),
    (
        "ingress",
        "ingress",
        &[(
            "ingress-fed-id",
            "openshift-ingress-operator:ingress-operator",
        )],
    ),
    (
        "cloudProvider",
        "cloud-provider",
        &[("cloud-provider-fed-id", "kube-system:azure-cloud-provider")],
    ),
    (
        "nodePoolManagement",
        "node-pool-mgmt",
        &[("node-pool-mgmt-fed-id", "kube-system:capi-provider")],
    ),
    (
        "network",
        "network",
        &[(
            "network-fed-id",
            "openshift-cloud-network-config-controller:cloud-network-config-controller",
        )],
    ),
    (
        "controlPlaneOperator",
        "control-plane-operator",
        &[("cpo-fed-id", "kube-system:control-plane-operator")],
    ),
    ("kms", "kms", &[("kms-fed-id", "kube-system:kms-provider")]),
];

#[tokio::test]
async fn identities_are_created_by_these_calls() {
    let fake = fake();
    let scope = scope();
    let request = IdentityRequest::new("ids", ISSUER).unwrap().with_kms();
    let made = executor(&fake, &scope)
        .create_identity(&request)
        .await
        .unwrap();
    let mut expected = vec!["PUT ids".to_owned()];
    for (_, part, credentials) in TRUSTED {
        let identity = format!(
            "PUT ids/providers/Microsoft.ManagedIdentity/userAssignedIdentities/a-{part}-a-x1"
        );
        expected.push(identity.clone());
        for (name, _) in credentials {
            expected.push(format!("{identity}/federatedIdentityCredentials/a-{name}"));
        }
    }
    assert_eq!(writes(&fake), expected);
    let mut document = made.document();
    let fields = document.as_object_mut().unwrap();
    assert!(fields.shift_remove("kmsClientID").unwrap().is_string());
    let fields: Vec<_> = fields.keys().cloned().collect();
    let expected = TRUSTED.map(|(field, ..)| field);
    assert_eq!(fields, expected[..8]);
    for (_, _, credentials) in TRUSTED {
        for (name, account) in credentials {
            let expected = json!({
                "issuer": ISSUER,
                "subject": format!("system:serviceaccount:{account}"),
                "audiences": ["openshift"],
            });
            let body = body_of(&fake, &format!("/a-{name}"));
            assert_eq!(body["properties"], expected, "{name}");
        }
    }
}

/// Component, number of the client in the file, definitions of both sets, groups.
type Assigned = (
    &'static str,
    u32,
    [&'static str; 2],
    &'static [&'static str],
);

const CONTRIBUTOR: &str = "b24988ac-6180-42a0-ab88-20f7382dd24c";
const CPO: [&str; 2] = [CONTRIBUTOR, "7d8bb4e4-6fa7-4545-96cf-20fce11b705d"];
const MAIN: &str = "a-a-x1";
const NSG: &str = "a-nsg-a-x1";
const VNET: &str = "a-vnet-a-x1";

const ASSIGNED: [Assigned; 8] = [
    ("capz", 12, [CONTRIBUTOR, "/the/narrow/role"], &[MAIN, VNET]),
    (
        "cloud-provider",
        11,
        ["a1f96423-95ce-4224-ab27-4e3dc72facd4"; 2],
        &[MAIN, NSG, VNET],
    ),
    (
        "ingress",
        15,
        ["0336e1d3-7a87-462b-b6db-342b63f7802c"; 2],
        &[MAIN, VNET, "zones"],
    ),
    ("cpo", 13, CPO, &[MAIN, NSG, VNET]),
    (
        "azure-file",
        18,
        ["0d7aedc0-15fd-4a67-a412-efad370c947e"; 2],
        &[MAIN, NSG, VNET],
    ),
    (
        "azure-disk",
        17,
        ["5b7237c5-45e1-49d6-bc18-a1f62f400748"; 2],
        &[MAIN],
    ),
    (
        "cncc",
        16,
        ["be7a6435-15ae-4171-8f30-4a343eff9e8f"; 2],
        &[MAIN, VNET],
    ),
    (
        "ciro",
        14,
        ["8b32b316-c2f5-4ddf-b05b-83dacd2d08b5"; 2],
        &[MAIN],
    ),
];

#[tokio::test]
async fn roles_are_assigned_by_these_calls() {
    for (set, registry) in [
        (RoleSet::Usual, Registry::Enabled),
        (RoleSet::Custom, Registry::Enabled),
        (RoleSet::Usual, Registry::Disabled),
    ] {
        let fake = fake();
        let scope = scope();
        let request = described(&AzureNetworkArgs::default(), Some(set), registry);
        executor(&fake, &scope).create(&request).await.unwrap();
        let mut found = puts(&fake);
        found.retain(|it| it.path().contains("/roleAssignments/"));
        let found: Vec<_> = found.iter().map(|it| (it.path(), &it.body)).collect();
        let mut expected = Vec::new();
        for (component, client, definitions, groups) in ASSIGNED {
            if component == "ciro" && registry == Registry::Disabled {
                continue;
            }
            let definition = definitions[usize::from(set == RoleSet::Custom)];
            let provider = "providers/Microsoft.Authorization/roleDefinitions";
            let definition = if definition.starts_with('/') {
                definition.to_owned()
            } else {
                format!("/subscriptions/{SUBSCRIPTION}/{provider}/{definition}")
            };
            for name in groups {
                let scope = group(name);
                let text = format!("a-x1-{component}-{scope}");
                let name = Uuid::new_v5(&Uuid::NAMESPACE_DNS, text.as_bytes());
                let path =
                    format!("{scope}/providers/Microsoft.Authorization/roleAssignments/{name}");
                let properties = json!({
                    "roleDefinitionId": definition,
                    "principalId": format!("object-{client}"),
                    "principalType": "ServicePrincipal",
                });
                expected.push((path, json!({ "properties": properties })));
            }
        }
        let expected: Vec<_> = expected
            .iter()
            .map(|(path, body)| (path.as_str(), body))
            .collect();
        assert_eq!(found, expected, "{set:?} {registry:?}");
    }
}

#[tokio::test]
async fn a_second_run_writes_nothing() {
    let fake = fake();
    let first = create(&fake).await.unwrap();
    let snapshot = fake.snapshot();
    let assignments = snapshot
        .iter()
        .filter(|it| it.contains("/roleassignments/"));
    let expected: usize = ASSIGNED.iter().map(|(.., groups)| groups.len()).sum();
    assert_eq!(assignments.count(), expected);
    fake.set_fault(None);
    assert_eq!(create(&fake).await.unwrap(), first);
    assert_eq!(writes(&fake), [""; 0]);
    assert_eq!(fake.snapshot(), snapshot);
}

/// Killed before or after any call, or with a lost response, and run again: the same state, and nothing twice.
#[tokio::test]
async fn creation_continues_where_it_was_interrupted() {
    let reference = fake();
    create(&reference).await.unwrap();
    let expected = reference.snapshot();
    for at in 0..reference.count() {
        for fault in [
            Fault::KilledBefore(at),
            Fault::KilledAfter(at),
            Fault::Lost(at),
        ] {
            let fake = fake();
            fake.set_fault(Some(fault));
            let killed = create(&fake).await;
            assert!(
                killed.is_err() || matches!(fault, Fault::Lost(_)),
                "{fault:?}"
            );
            fake.set_fault(None);
            create(&fake).await.unwrap();
            assert_eq!(fake.snapshot(), expected, "{fault:?}");
        }
    }
}

#[tokio::test]
async fn a_change_that_conflicts_is_repeated_five_times() {
    for (conflicts, succeeds) in [(5, true), (6, false)] {
        let fake = fake();
        let kind = "microsoft.network/publicipaddresses";
        fake.state().cloud.refuse(kind, conflicts);
        let created = create(&fake).await;
        assert_eq!(created.is_ok(), succeeds, "{conflicts}");
    }
}

#[tokio::test]
async fn a_role_of_an_identity_that_is_gone_is_assigned_again() {
    let fake = fake();
    create(&fake).await.unwrap();
    let expected = fake.snapshot();
    let id = {
        let state = fake.state();
        let calls = state.calls.iter();
        let mut puts = calls.filter(|it| it.method == Method::PUT);
        puts.find(|it| it.path().contains("/roleAssignments/"))
            .unwrap()
            .path()
            .to_owned()
    };
    let old = json!({ "properties": { "principalId": "gone", "roleDefinitionId": "r" } });
    fake.state().cloud.insert(&id, old);
    fake.set_fault(None);
    create(&fake).await.unwrap();
    let path = id.replace(&group(""), "");
    assert_eq!(
        writes(&fake),
        [format!("DELETE {path}"), format!("PUT {path}")]
    );
    assert_eq!(fake.snapshot(), expected);
}
