//! What a cluster on Azure has in the namespace of its control plane, field by field.

use api::group::{self, CapiTypes};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};

use super::*;
use crate::facts::fixture;
use crate::hosted_cluster::build::{Planned, Step, build};
use crate::platform::tests::{built, serve};

/// A cluster with workload identities, or with managed ones.
fn facts(is_managed: bool) -> Facts {
    let mut facts = fixture::facts(fixture::hosted_cluster("azure"), CapiTypes::Private);
    if is_managed {
        fixture::manage_identities(&mut facts);
    }
    facts
}

fn edit(facts: &mut Facts, change: impl FnOnce(&mut AzurePlatformSpec)) {
    change(facts.cluster.spec.platform.azure.as_mut().unwrap());
}

/// The object of a kind and name, if there is one.
fn find(facts: &Facts, kind: &str, name: &str) -> Option<Value> {
    let objects = Azure.secrets(facts).into_iter();
    let mut found = objects.filter(|it| it.resource.kind == kind && it.name() == name);
    found.next().map(|it| it.body)
}

/// The keys of a Secret, as text.
fn secret(facts: &Facts, name: &str) -> Option<Value> {
    let body = find(facts, "Secret", name)?;
    let secret: Secret = serde_json::from_value(body).unwrap();
    let text = |ByteString(bytes)| String::from_utf8(bytes).unwrap();
    let data = secret.data.unwrap_or_default().into_iter();
    Some(data.map(|(key, value)| (key, json!(text(value)))).collect())
}

fn infrastructure_cluster(facts: &Facts) -> Option<Desired> {
    match Azure.cluster(facts) {
        ClusterIs::Desired(cluster) => Some(*cluster),
        ClusterIs::Later | ClusterIs::Absent => None,
    }
}

#[test]
fn azure_clusters_have_the_network_of_the_user() {
    for types in [CapiTypes::Private, CapiTypes::Standard] {
        let mut facts = fixture::facts(fixture::hosted_cluster("azure"), types);
        let cluster = infrastructure_cluster(&facts).unwrap();
        assert_eq!(cluster.name(), "one");
        assert_eq!(cluster.namespace(), Some("clusters-one"));
        assert_eq!(cluster.resource.kind, "AzureCluster");
        assert_eq!(cluster.resource.version, "v1beta1");
        assert_eq!(cluster.resource.group, group::infrastructure(types));
        let vnet = "/subscriptions/subscription/resourceGroups/network/providers/Microsoft.Network/virtualNetworks/vnet";
        let mut expected = json!({
            "location": "eastus",
            "resourceGroup": "machines",
            "subscriptionID": "subscription",
            "identityRef": { "name": "one", "namespace": "clusters-one" },
            "networkSpec": {
                "vnet": { "id": vnet, "name": "vnet", "resourceGroup": "network" },
                "nodeOutboundLB": { "name": "one-x7k2p", "backendPool": { "name": "one-x7k2p" } },
            },
        });
        assert_eq!(cluster.body["spec"], expected);

        let endpoint = json!({ "host": "api.example.com", "port": 443 });
        serve(&mut facts, &endpoint);
        expected["controlPlaneEndpoint"] = endpoint;
        edit(&mut facts, |azure| {
            azure.cloud = AzureCloud::UsGovernmentCloud;
        });
        expected["azureEnvironment"] = json!("AzureUSGovernmentCloud");
        let cluster = infrastructure_cluster(&facts).unwrap();
        assert_eq!(cluster.body["spec"], expected);
    }
}

#[test]
fn azure_clusters_wait_for_a_valid_specification() {
    type Change = fn(&mut AzurePlatformSpec);
    let table: [(&str, bool, Change); 4] = [
        ("no network", false, |it| it.vnet_id = "vnet".to_owned()),
        ("no workload identities", false, |it| {
            it.azure_authentication_config.workload_identities = None;
        }),
        ("no managed identities", true, |it| {
            it.azure_authentication_config.managed_identities = None;
        }),
        ("a cloud without managed identities", true, |it| {
            it.cloud = AzureCloud::StackCloud;
        }),
    ];
    for (name, is_managed, change) in table {
        let mut facts = facts(is_managed);
        assert!(infrastructure_cluster(&facts).is_some(), "{name}");
        edit(&mut facts, change);
        assert!(infrastructure_cluster(&facts).is_none(), "{name}");
    }
    let mut none = facts(false);
    none.cluster.spec.platform.azure = None;
    assert!(infrastructure_cluster(&none).is_none());
    assert!(Azure.secrets(&none).is_empty());
}

#[test]
fn the_identity_of_machines_is_limited_to_the_namespace() {
    let found = |facts: &Facts| find(facts, "AzureClusterIdentity", "one");
    let identity = found(&facts(false)).unwrap();
    assert_eq!(identity["metadata"]["namespace"], "clusters-one");
    let expected = json!({
        "type": "WorkloadIdentity",
        "clientID": "00000000-0000-0000-0000-000000000002",
        "tenantID": "tenant",
        "allowedNamespaces": { "list": ["clusters-one"] },
    });
    assert_eq!(identity["spec"], expected);
    for (cloud, expected) in [
        (AzureCloud::PublicCloud, "public"),
        (AzureCloud::UsGovernmentCloud, "usgovernment"),
        (AzureCloud::ChinaCloud, "china"),
    ] {
        let mut facts = facts(true);
        edit(&mut facts, |azure| azure.cloud = cloud);
        let expected = json!({
            "type": "UserAssignedIdentityCredential",
            "tenantID": "tenant",
            "userAssignedIdentityCredentialsCloudType": expected,
            "userAssignedIdentityCredentialsPath": "/mnt/certs/node-pool",
            "clientID": "",
            "allowedNamespaces": { "list": ["clusters-one"] },
        });
        assert_eq!(found(&facts).unwrap()["spec"], expected);
    }
    let mut disabled = facts(false);
    let annotations = disabled
        .cluster
        .metadata
        .annotations
        .get_or_insert_default();
    let key = api::annotations::cluster::DISABLE_MACHINE_MANAGEMENT.key();
    annotations.insert(key.to_owned(), "true".to_owned());
    assert_eq!(found(&disabled), None, "there are no machines");
}

#[test]
fn operators_get_the_place_of_the_cluster_and_their_identity() {
    const INGRESS: &str = "azure-ingress-credentials";
    const REGISTRY: &str = "azure-image-registry-credentials";
    const NETWORK: &str = "cloud-network-config-controller-creds";
    let expected = |client: Option<&str>| {
        let mut data = json!({
            "azure_region": "eastus",
            "azure_resource_prefix": "one-one-x7k2p",
            "azure_resourcegroup": "machines",
            "azure_subscription_id": "subscription",
            "azure_tenant_id": "tenant",
        });
        if let Some(client) = client {
            data["azure_client_id"] = json!(format!("00000000-0000-0000-0000-00000000000{client}"));
            let token = "/var/run/secrets/openshift/serviceaccount/token";
            data["azure_federated_token_file"] = json!(token);
        }
        Some(data)
    };
    for (disabled, ingress, registry) in [
        (json!([]), expected(Some("4")), expected(Some("3"))),
        (json!(["Ingress"]), None, expected(Some("3"))),
        (json!(["ImageRegistry"]), expected(Some("4")), None),
    ] {
        let mut facts = facts(false);
        let capabilities = json!({ "disabled": disabled });
        facts.cluster.spec.capabilities = serde_json::from_value(capabilities).unwrap();
        assert_eq!(secret(&facts, INGRESS), ingress, "{disabled}");
        assert_eq!(secret(&facts, REGISTRY), registry, "{disabled}");
        assert_eq!(secret(&facts, NETWORK), expected(Some("5")), "{disabled}");
    }
    let managed = facts(true);
    assert_eq!(secret(&managed, INGRESS), None);
    assert_eq!(secret(&managed, REGISTRY), None);
    assert_eq!(secret(&managed, NETWORK), expected(None));
}

#[test]
fn certificates_of_managed_identities_are_mounted_from_the_key_vault() {
    const KIND: &str = "SecretProviderClass";
    let class = |facts: &Facts, name: &str| find(facts, KIND, name).map(|it| it["spec"].clone());
    let expected = |certificate: &str| {
        Some(json!({ "provider": "azure", "parameters": {
            "usePodIdentity": "false",
            "useVMManagedIdentity": "true",
            "userAssignedIdentityID": "key-vault-client",
            "keyvaultName": "vault",
            "tenantId": "vault-tenant",
            "objects": format!(
                "\narray:\n  - |\n    objectName: {certificate}\n    objectEncoding: utf-8\n    objectType: secret\n"
            ),
        } }))
    };
    let mut managed = facts(true);
    assert_eq!(class(&managed, "managed-azure-cpo"), expected("operator"));
    let machines = "managed-azure-nodepool-management";
    assert_eq!(class(&managed, machines), expected("node-pool"));
    assert_eq!(class(&managed, "managed-azure-kms"), None, "no encryption");
    encrypt(&mut managed, true);
    assert_eq!(class(&managed, "managed-azure-kms"), expected("kms"));
    let mut workload = facts(false);
    encrypt(&mut workload, false);
    let all = Azure.secrets(&workload);
    assert!(all.iter().all(|it| it.resource.kind != KIND));
}

/// Has Secrets encrypted with a key in Azure.
fn encrypt(facts: &mut Facts, is_managed: bool) {
    let mut azure = json!({
        "activeKey": { "keyVaultName": "vault", "keyName": "key", "keyVersion": "1" },
    });
    if is_managed {
        azure["kms"] = json!({ "credentialsSecretName": "kms", "objectEncoding": "utf-8" });
    } else {
        azure["workloadIdentity"] = json!({ "clientID": "00000000-0000-0000-0000-000000000009" });
    }
    let encryption = json!({ "type": "kms", "kms": { "provider": "Azure", "azure": azure } });
    facts.cluster.spec.secret_encryption = serde_json::from_value(encryption).unwrap();
}

#[test]
fn certificates_of_the_operator_are_mounted_with_managed_identities() {
    let mounted = |facts: &Facts| {
        let all = operator_certificates(facts).into_iter();
        let all = all.map(|(volume, mount)| {
            let class = &volume["csi"]["volumeAttributes"]["secretProviderClass"];
            assert_eq!(volume["name"], mount["name"]);
            [class, &mount["mountPath"]].map(|it| it.as_str().unwrap_or_default().to_owned())
        });
        all.collect::<Vec<_>>()
    };
    let own = ["managed-azure-cpo", "/mnt/certs"].map(str::to_owned);
    let key = ["managed-azure-kms", "/mnt/kms"].map(str::to_owned);
    for is_managed in [true, false] {
        let mut facts = facts(is_managed);
        let mut expected = vec![own.clone(), key.clone()];
        expected.retain(|_| is_managed);
        encrypt(&mut facts, is_managed);
        assert_eq!(mounted(&facts), expected);
        facts.cluster.spec.secret_encryption = None;
        expected.truncate(1);
        assert_eq!(mounted(&facts), expected);
        // Only the operator of a managed service has an identity for key vaults.
        facts.cloud.azure_key_vault_client_id = None;
        assert!(mounted(&facts).is_empty());
    }
}

#[test]
fn the_encryption_plugin_gets_its_configuration() {
    for (is_managed, field, value) in [
        (true, "aadMSIDataPlaneIdentityPath", json!("/mnt/certs/kms")),
        (false, "useWorkloadIdentityExtension", json!(true)),
    ] {
        let mut facts = facts(is_managed);
        assert_eq!(secret(&facts, "azure-kms-config"), None);
        encrypt(&mut facts, is_managed);
        let config = secret(&facts, "azure-kms-config").unwrap();
        let text = config["cloud.conf"].as_str().unwrap();
        let found: Value = serde_json::from_str(text).unwrap();
        let mut expected = json!({
            "cloud": "AzurePublicCloud",
            "tenantId": "tenant",
            "subscriptionId": "subscription",
            "resourceGroup": "machines",
            "location": "eastus",
            "loadBalancerName": "one-x7k2p",
            "loadBalancerSku": "standard",
            "cloudProviderBackoff": true,
            "cloudProviderBackoffDuration": 6,
            "disableOutboundSNAT": true,
            "useInstanceMetadata": false,
            "useManagedIdentityExtension": false,
        });
        expected[field] = value;
        assert_eq!(found, expected);
        encrypt(&mut facts, !is_managed);
        assert_eq!(secret(&facts, "azure-kms-config"), None, "no identity");
    }
}

/// The pod of Cluster API's controllers.
fn pod(facts: &Facts) -> Value {
    let plan = build(facts).unwrap().into_iter();
    let of_step = |it: &Planned| it.step == Step::Operators;
    let mut objects = plan.filter(of_step).flat_map(|it| it.objects);
    let provider =
        objects.find(|it| it.resource.kind == "Deployment" && it.name() == "capi-provider");
    provider.unwrap().body["spec"]["template"]["spec"].clone()
}

fn named<'a>(list: &'a Value, name: &str) -> Option<&'a Value> {
    let mut items = list.as_array().into_iter().flatten();
    items.find(|it| it["name"] == name)
}

#[test]
fn the_provider_authenticates_with_a_workload_identity() {
    let pod = pod(&facts(false));
    let manager = named(&pod["containers"], "manager").unwrap();
    let image = manager["image"].as_str().unwrap();
    assert!(image.contains("azure-cluster-api-controllers"), "{image}");
    let args = manager["args"].to_string();
    for expected in ARGUMENTS {
        assert!(args.contains(expected), "{expected}: {args}");
    }
    let requests = json!({ "cpu": "10m", "memory": "10Mi" });
    assert_eq!(manager["resources"]["requests"], requests);
    let token = "/var/run/secrets/openshift/serviceaccount";
    for (name, expected) in [
        (
            "AZURE_FEDERATED_TOKEN_FILE",
            json!(format!("{token}/token")),
        ),
        (
            "AZURE_CLIENT_ID",
            json!("00000000-0000-0000-0000-000000000002"),
        ),
        ("AZURE_TENANT_ID", json!("tenant")),
    ] {
        assert_eq!(
            named(&manager["env"], name).unwrap()["value"],
            expected,
            "{name}"
        );
    }
    assert_eq!(
        named(&manager["env"], "ARO_HCP_KEY_VAULT_USER_CLIENT_ID"),
        None
    );
    assert_eq!(
        named(&manager["volumeMounts"], "cloud-token").unwrap()["mountPath"],
        token
    );
    let memory = &named(&pod["volumes"], "cloud-token").unwrap()["emptyDir"]["medium"];
    assert_eq!(memory, "Memory");
    let minter = named(&pod["initContainers"], "cloud-token-minter").unwrap();
    let args = minter["args"].to_string();
    for expected in [
        "--token-audience=openshift",
        "--service-account-namespace=kube-system",
        "--service-account-name=capi-provider",
    ] {
        assert!(args.contains(expected), "{expected}: {args}");
    }
}

#[test]
fn the_provider_authenticates_with_a_managed_identity() {
    let pod = pod(&facts(true));
    let manager = named(&pod["containers"], "manager").unwrap();
    let client = named(&manager["env"], "ARO_HCP_KEY_VAULT_USER_CLIENT_ID").unwrap();
    assert_eq!(client["value"], "key-vault-client");
    assert_eq!(named(&manager["env"], "AZURE_CLIENT_ID"), None);
    let mount = named(&manager["volumeMounts"], CERTIFICATE).unwrap();
    assert_eq!(mount["mountPath"], "/mnt/certs");
    let csi = json!({
        "driver": "secrets-store.csi.k8s.io",
        "readOnly": true,
        "volumeAttributes": { "secretProviderClass": "managed-azure-nodepool-management" },
    });
    assert_eq!(named(&pod["volumes"], CERTIFICATE).unwrap()["csi"], csi);
    assert_eq!(named(&pod["initContainers"], "cloud-token-minter"), None);
}

/// The control-plane-operator renders classes of the same key vault.
#[test]
fn the_control_plane_operator_gets_the_settings_of_the_managed_service() {
    let mut facts = facts(true);
    facts.cloud.managed_service = Some("ARO-HCP".to_owned());
    let operator = &built(&facts, "Deployment")["control-plane-operator"];
    let pod = &operator.body["spec"]["template"]["spec"];
    let env = &pod["containers"][0]["env"];
    for (name, expected) in [
        ("MANAGED_SERVICE", "ARO-HCP"),
        ("ARO_HCP_KEY_VAULT_USER_CLIENT_ID", "key-vault-client"),
    ] {
        assert_eq!(named(env, name).unwrap()["value"], expected, "{name}");
    }
}

#[test]
fn the_image_is_that_of_the_annotation_the_flag_or_the_release() {
    let mut facts = facts(false);
    let image = |facts: &Facts| Azure.provider_image(facts).unwrap().unwrap();
    assert!(image(&facts).contains("/azure-cluster-api-controllers@"));
    facts.images.azure_provider = Some("images.example.com/flag:v1".to_owned());
    assert_eq!(image(&facts), "images.example.com/flag:v1");
    let annotations = facts.cluster.metadata.annotations.get_or_insert_default();
    let annotated = "images.example.com/annotation:v1".to_owned();
    annotations.insert(IMAGE_ANNOTATION.to_owned(), annotated.clone());
    assert_eq!(image(&facts), annotated);
}

#[test]
fn machines_are_given_up_with_managed_identities_only() {
    assert!(Azure.orphans(&facts(false)).is_none());
    let orphans = Azure.orphans(&facts(true)).unwrap();
    assert_eq!(orphans.resource.kind, "AzureMachine");
    assert_eq!(
        orphans.finalizer,
        "azuremachine.infrastructure.cluster.x-k8s.io"
    );
}
