//! Azure and `PowerVS`, on infrastructure that files describe.

use serde_json::json;

use super::*;

const CREDS: &str = "--azure-creds=azure-creds.json";
const INFRA: &str = "--infra-json=azure-infra.yaml";
const IDENTITIES: &str = "--workload-identities-file=azure-identities.json";
const SUBNET: &str = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/a/subnets/nat";
const KEY: &str = "--encryption-key-id=https://vault.vault.azure.net/keys/key/1";
const NAT: &str = "--endpoint-access-private-nat-subnet-id=/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/a/subnets/nat";
const MANAGED: [&str; 2] = [
    "--managed-identities-file=azure-managed.json",
    "--data-plane-identities-file=azure-data-plane.json",
];

/// Platform, a name, flags beside the usual ones.
pub(super) const ROWS: [(&str, &str, &[&str]); 4] = [
    ("azure", "azure", &[CREDS, INFRA, IDENTITIES]),
    (
        "azure",
        "azure, everything",
        &[
            CREDS,
            INFRA,
            IDENTITIES,
            KEY,
            NAT,
            "--endpoint-access=Private",
            "--endpoint-access-private-additional-allowed-subscriptions=00000000-0000-0000-0000-000000000003",
            "--oauth-publishing-strategy=LoadBalancer",
            "--external-dns-domain=hosts.example.org",
            "--availability-zones=1,3",
            "--node-pool-replicas=2",
            "--oidc-issuer-url=https://issuer.example.com/a",
            "--sa-token-issuer-private-key-path=bundle.txt",
            "--location=northeurope",
            "--marketplace-publisher=pub",
            "--marketplace-offer=offer",
            "--marketplace-sku=sku",
            "--marketplace-version=1.2.3",
            "--enable-ephemeral-disk",
            "--encryption-at-host=Enabled",
            "--diagnostics-storage-account-type=Managed",
            "--arch=arm64",
        ],
    ),
    (
        "azure",
        "azure, managed identities",
        &[
            CREDS,
            INFRA,
            MANAGED[0],
            MANAGED[1],
            KEY,
            "--kms-credentials-secret-name=kms",
        ],
    ),
    ("powervs", "powervs", &["--infra-json=powervs-infra.json"]),
];

fn objects_of(name: &str) -> Vec<Value> {
    let mut rows = ROWS.into_iter();
    let (platform, _, flags) = rows.find(|(_, row, _)| *row == name).unwrap();
    rendered(&parse(platform, flags).unwrap()).unwrap()
}

fn find<'o>(objects: &'o [Value], kind: &str, name: &str) -> &'o Value {
    let mut found = objects.iter();
    let is = |it: &&Value| it["kind"] == kind && it["metadata"]["name"] == name;
    found.find(is).unwrap_or(&Value::Null)
}

#[test]
fn a_cluster_on_azure_is_on_the_infrastructure_that_is_described() {
    let objects = objects_of("azure");
    let spec = &find(&objects, "HostedCluster", "a")["spec"];
    assert_eq!(spec["infraID"], "a-12345");
    assert_eq!(spec["dns"]["baseDomain"], "example.com");
    assert!(spec["dns"]["publicZoneID"].is_string());
    assert_eq!(spec["secretEncryption"]["type"], "aescbc");
    let azure = &spec["platform"]["azure"];
    for (field, expected) in [
        ("location", json!("westeurope")),
        ("resourceGroup", json!("a-group")),
        (
            "subscriptionID",
            json!("00000000-0000-0000-0000-000000000001"),
        ),
        ("tenantID", json!("00000000-0000-0000-0000-000000000002")),
        ("topology", json!("Public")),
        ("private", Value::Null),
    ] {
        assert_eq!(azure[field], expected, "{field}");
    }
    let identities = &azure["azureAuthenticationConfig"]["workloadIdentities"];
    assert!(identities["file"]["clientID"].is_string());
    assert_eq!(identities.get("kmsClientID"), None);
    // Secrets of the file are not passed on.
    assert!(!format!("{objects:?}").contains("not-a-secret"));
    let pool = &find(&objects, "NodePool", "a")["spec"]["platform"]["azure"];
    assert_eq!(pool["vmSize"], "Standard_D4s_v5");
    assert_eq!(pool["image"], json!({ "type": "AzureMarketplace" }));
    assert_eq!(pool["subnetID"], azure["subnetID"]);
}

#[test]
fn flags_of_azure_change_the_fields_that_they_name() {
    let objects = objects_of("azure, everything");
    let spec = &find(&objects, "HostedCluster", "a")["spec"];
    let kms = &spec["secretEncryption"]["kms"]["azure"];
    assert_eq!(
        kms["activeKey"],
        json!({ "keyVaultName": "vault", "keyName": "key", "keyVersion": "1" })
    );
    assert_eq!(
        kms["workloadIdentity"]["clientID"],
        "00000000-0000-0000-0000-000000000019"
    );
    let azure = &spec["platform"]["azure"];
    assert_eq!(azure["location"], "northeurope");
    assert_eq!(azure["topology"], "Private");
    assert_eq!(azure["private"]["privateLink"]["natSubnetID"], SUBNET);
    let published = spec["services"].as_array().unwrap().iter();
    let published: Vec<_> = published
        .map(|it| &it["servicePublishingStrategy"])
        .collect();
    let host = |name: &str| json!({ "hostname": format!("{name}-a.hosts.example.org") });
    assert_eq!(published[0]["route"], host("api"));
    assert_eq!(published[1], &json!({ "type": "Route" }));
    assert_eq!(published[3]["loadBalancer"], host("oauth"));
    assert_eq!(spec["serviceAccountSigningKey"]["name"], "a-sa-signing-key");
    assert!(find(&objects, "Secret", "a-sa-signing-key")["stringData"]["key"].is_string());
    for zone in ["1", "3"] {
        let pool = &find(&objects, "NodePool", &format!("a-{zone}"))["spec"];
        let machines = &pool["platform"]["azure"];
        assert_eq!(pool["replicas"], 2);
        assert_eq!(machines["availabilityZone"], zone);
        assert_eq!(machines["vmSize"], "Standard_D4ps_v5");
        assert_eq!(machines["osDisk"]["persistence"], "Ephemeral");
        assert_eq!(machines["image"]["azureMarketplace"]["version"], "1.2.3");
        assert_eq!(machines["diagnostics"]["storageAccountType"], "Managed");
    }
}

#[test]
fn managed_identities_are_in_a_key_vault() {
    let objects = objects_of("azure, managed identities");
    let spec = &find(&objects, "HostedCluster", "a")["spec"];
    assert_eq!(
        spec["secretEncryption"]["kms"]["azure"]["kms"]["credentialsSecretName"],
        "kms"
    );
    let azure = &spec["platform"]["azure"];
    assert_eq!(azure.get("topology"), None);
    let managed = &azure["azureAuthenticationConfig"]["managedIdentities"];
    assert_eq!(managed["controlPlane"]["disk"]["objectEncoding"], "utf-8");
    assert_eq!(managed["dataPlane"]["diskMSIClientID"], "d");
}

#[test]
fn a_cluster_on_power_vs_has_the_credentials_that_were_made_for_it() {
    let objects = objects_of("powervs");
    let spec = &find(&objects, "HostedCluster", "a")["spec"];
    let fields = &spec["platform"]["powervs"];
    assert_eq!(fields["zone"], "us-south");
    assert_eq!(
        fields["kubeCloudControllerCreds"]["name"],
        "a-cloud-controller-creds"
    );
    assert_eq!(spec["dns"]["privateZoneID"], "dom");
    assert_eq!(
        spec["networking"]["machineNetwork"],
        json!([{ "cidr": "10.0.0.0/16" }])
    );
    for suffix in [
        "cloud-controller-creds",
        "ingress-creds",
        "image-registry-creds",
    ] {
        let secret = find(&objects, "Secret", &format!("a-{suffix}"));
        assert!(secret["data"]["ibmcloud_api_key"].is_string(), "{suffix}");
        assert_eq!(secret["metadata"]["namespace"], "clusters");
    }
    assert_eq!(find(&objects, "NodePool", "a")["spec"]["arch"], "ppc64le");
}

#[test]
fn objects_on_azure_are_checked_before_anything_is_created() {
    let flags = [
        CREDS,
        KEY,
        "--base-domain=example.com",
        "--oidc-issuer-url=https://issuer.example.com/a",
        "--sa-token-issuer-private-key-path=bundle.txt",
    ];
    let objects = rendered(&parse("azure", &flags).unwrap()).unwrap();
    let spec = &find(&objects, "HostedCluster", "a")["spec"];
    let azure = &spec["platform"]["azure"];
    assert_eq!(azure["resourceGroup"], "not-created-yet");
    assert_eq!(azure["location"], "eastus");
    let identities = &azure["azureAuthenticationConfig"]["workloadIdentities"];
    assert_eq!(identities.as_object().unwrap().len(), 8);
    assert!(spec["secretEncryption"]["kms"]["azure"]["workloadIdentity"]["clientID"].is_string());
}

#[test]
fn a_network_on_azure_that_exists_can_be_named_by_flags() {
    let network = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/g/providers/Microsoft.Network";
    let flags = [
        CREDS.to_owned(),
        IDENTITIES.to_owned(),
        "--resource-group-name=g".to_owned(),
        format!("--vnet-id={network}/virtualNetworks/ab"),
        format!("--subnet-id={network}/virtualNetworks/ab/subnets/c"),
        format!("--network-security-group-id={network}/networkSecurityGroups/d"),
    ];
    let flags = flags.each_ref().map(String::as_str);
    let objects = rendered(&parse("azure", &flags).unwrap()).unwrap();
    let azure = &find(&objects, "HostedCluster", "a")["spec"]["platform"]["azure"];
    assert_eq!(azure["resourceGroup"], "g");
    assert_eq!(azure["vnetID"], format!("{network}/virtualNetworks/ab"));
}

#[test]
fn what_makes_no_sense_on_azure_is_refused_with_the_way_out() {
    for (flags, words) in [
        (
            vec![CREDS, IDENTITIES],
            "--base-domain is needed for the infrastructure that is created",
        ),
        (
            vec![CREDS, "--base-domain=example.com"],
            "identities are created for --oidc-issuer-url",
        ),
        (
            vec![CREDS, INFRA, IDENTITIES, "--dns-zone-rg-name=a"],
            "--dns-zone-rg-name is for infrastructure that is created",
        ),
        (
            vec![CREDS, INFRA, IDENTITIES, "--auto-assign-roles"],
            "--assign-service-principal-roles is for infrastructure that is created",
        ),
        (
            vec![CREDS, INFRA, IDENTITIES, "-ta=b"],
            "--resource-group-tags is for infrastructure that is created",
        ),
        (
            vec![
                CREDS,
                IDENTITIES,
                "--base-domain=example.com",
                "--network-security-group-id=/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/networkSecurityGroups/n",
            ],
            "--network-security-group-id needs --resource-group-name",
        ),
        (vec![CREDS, INFRA], "--workload-identities-file is needed"),
        (
            vec!["--azure-creds=pull-secret.json", INFRA, IDENTITIES],
            "with subscriptionId and tenantId",
        ),
        (
            vec![CREDS, INFRA, IDENTITIES, "--endpoint-access=Private"],
            "needs --endpoint-access-private-nat-subnet-id",
        ),
        (
            vec![CREDS, INFRA, IDENTITIES, NAT],
            "need --endpoint-access=PublicAndPrivate or Private",
        ),
        (
            vec![
                CREDS,
                INFRA,
                IDENTITIES,
                "--external-dns-domain=example.com",
            ],
            "contains the domain of the cluster",
        ),
        (
            vec![CREDS, INFRA, IDENTITIES, "--subnet-id=default"],
            "write the resource ID of a subnet",
        ),
        (
            vec![CREDS, INFRA, IDENTITIES, "--encryption-key-id=key"],
            "write https://VAULT.vault.azure.net",
        ),
        (
            vec![
                CREDS,
                INFRA,
                IDENTITIES,
                KEY,
                "--kms-credentials-secret-name=kms",
            ],
            "is for managed identities",
        ),
        (
            vec![
                CREDS,
                INFRA,
                MANAGED[0],
                MANAGED[1],
                "--oauth-publishing-strategy=LoadBalancer",
            ],
            "not possible with managed identities",
        ),
        (
            vec![CREDS, INFRA, "--workload-identities-file=azure-creds.json"],
            "an identity is missing",
        ),
    ] {
        let error = rendered(&parse("azure", &flags).unwrap()).unwrap_err();
        assert!(format!("{error:#}").contains(words), "{flags:?}: {error:#}");
    }
    for flags in [
        vec![CREDS, INFRA, MANAGED[0]],
        vec![CREDS, INFRA, IDENTITIES, MANAGED[0], MANAGED[1]],
        vec![CREDS, INFRA, IDENTITIES, "--oidc-issuer-url=https://a"],
        vec![CREDS, INFRA, IDENTITIES, "--availability-zones=4"],
        vec![CREDS, INFRA, IDENTITIES, "--marketplace-offer=o"],
    ] {
        parse("azure", &flags).unwrap_err();
    }
}
