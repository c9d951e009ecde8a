//! Azure: configuration files and identities, with workload identities and with managed ones (ARO).

use serde_json::{Value, json};

use super::*;

const NODES: &str = "ConfigMap/azure-cloud-config";
const CONTROLLERS: &str = "Secret/azure-cloud-config";
const MODE: &str = "hypershift.openshift.io/azure-load-balancer-health-probe-mode";
const PATH: &str = "hypershift.openshift.io/shared-load-balancer-health-probe-path";
const PORT: &str = "hypershift.openshift.io/shared-load-balancer-health-probe-port";
const TOKEN: &str = "/var/run/secrets/openshift/serviceaccount/token";

/// Managed identities instead of workload identities.
pub(super) fn managed() -> Changes {
    let identity = |name: &str| json!({ "credentialsSecretName": name, "objectEncoding": "utf-8" });
    let authentication = json!({
        "azureAuthenticationConfigType": "ManagedIdentities",
        "managedIdentities": {
            "controlPlane": {
                "managedIdentitiesKeyVault": { "name": "vault", "tenantID": "tenant" },
                "cloudProvider": identity("cloud-provider-creds"),
                "nodePoolManagement": identity("a"),
                "controlPlaneOperator": identity("a"),
                "ingress": identity("a"),
                "network": identity("a"),
                "disk": identity("a"),
                "file": identity("a"),
            },
            "dataPlane": {
                "imageRegistryMSIClientID": "", "diskMSIClientID": "", "fileMSIClientID": "",
            },
        },
    });
    let mut changes = on_platform("Azure");
    changes.push((
        "/spec/platform/azure/azureAuthenticationConfig",
        authentication,
    ));
    changes
}

fn azure(field: &'static str, value: Value) -> Changes {
    vec![(field, value)]
}

/// The same row for the file of nodes and that of the controllers.
fn both(changes: &[(&'static str, Value)], path: &'static str, value: Value) -> [Row; 2] {
    [
        row(AZURE, changes.to_vec(), NODES, path, Is(value.clone())),
        row(AZURE, changes.to_vec(), CONTROLLERS, path, Is(value)),
    ]
}

#[test]
pub(crate) fn config_has_the_place_of_the_cluster() {
    let network = "/subscriptions/s/resourceGroups/net/providers/Microsoft.Network";
    let vnet = json!(format!("{network}/virtualNetworks/v1"));
    let subnet = json!(format!("{network}/virtualNetworks/v1/subnets/n1"));
    let group = json!(format!("{network}/networkSecurityGroups/g1"));
    let vnet = azure("/spec/platform/azure/vnetID", vnet);
    let subnet = azure("/spec/platform/azure/subnetID", subnet);
    let group = azure("/spec/platform/azure/securityGroupID", group);
    let government = json!("AzureUSGovernmentCloud");
    let rows = [
        both(
            &azure("/spec/platform/azure/cloud", government.clone()),
            "/data/cloud.conf#/cloud",
            government,
        ),
        both(&[], "/data/cloud.conf#/cloud", json!("AzurePublicCloud")),
        both(
            &azure("/spec/platform/azure/tenantID", json!("t")),
            "/data/cloud.conf#/tenantId",
            json!("t"),
        ),
        both(
            &azure("/spec/platform/azure/subscriptionID", json!("s")),
            "/data/cloud.conf#/subscriptionId",
            json!("s"),
        ),
        both(
            &azure("/spec/platform/azure/resourceGroup", json!("g")),
            "/data/cloud.conf#/resourceGroup",
            json!("g"),
        ),
        both(
            &azure("/spec/platform/azure/location", json!("eastus")),
            "/data/cloud.conf#/location",
            json!("eastus"),
        ),
        both(
            &azure("/spec/infraID", json!("dev-x7k2p")),
            "/data/cloud.conf#/loadBalancerName",
            json!("dev-x7k2p"),
        ),
        both(&vnet, "/data/cloud.conf#/vnetName", json!("v1")),
        both(&vnet, "/data/cloud.conf#/vnetResourceGroup", json!("net")),
        both(&subnet, "/data/cloud.conf#/subnetName", json!("n1")),
        both(&group, "/data/cloud.conf#/securityGroupName", json!("g1")),
        both(
            &group,
            "/data/cloud.conf#/securityGroupResourceGroup",
            json!("net"),
        ),
        both(&[], "/data/cloud.conf#/routeTableName", json!("")),
        both(&[], "/data/cloud.conf#/loadBalancerSku", json!("standard")),
        both(&[], "/data/cloud.conf#/disableOutboundSNAT", json!(true)),
        both(&[], "/data/cloud.conf#/cloudProviderBackoff", json!(true)),
        both(
            &[],
            "/data/cloud.conf#/cloudProviderBackoffDuration",
            json!(6),
        ),
    ];
    verify(rows.as_flattened());
}

#[test]
fn config_has_the_health_probe_of_the_annotations() {
    let mode = "/data/cloud.conf#/clusterServiceLoadBalancerHealthProbeMode";
    let path = "/data/cloud.conf#/clusterServiceSharedLoadBalancerHealthProbePath";
    let port = "/data/cloud.conf#/clusterServiceSharedLoadBalancerHealthProbePort";
    let all = json!({ MODE: "servicenodeport", PATH: "/healthz", PORT: "10256" });
    let unshared = vec![("/metadata/annotations", all)];
    let rows = [
        both(&[], mode, json!("shared")),
        both(&annotated(MODE, "shared"), mode, json!("shared")),
        both(
            &annotated(MODE, "servicenodeport"),
            mode,
            json!("servicenodeport"),
        ),
        both(&[], path, Value::Null),
        both(&[], port, Value::Null),
        both(&annotated(PATH, "/healthz"), path, json!("/healthz")),
        both(&annotated(PORT, "1"), port, json!(1)),
        both(&unshared, path, Value::Null),
        both(&unshared, port, Value::Null),
        // JSON escapes what other formats could not.
        both(&annotated(PATH, INJECTED), path, json!(INJECTED)),
    ];
    verify(rows.as_flattened());
    for (key, value) in [(MODE, "Shared"), (PORT, "0"), (PORT, "65536"), (PORT, "x")] {
        let error = error(AZURE, &changed(&annotated(key, value)));
        assert!(error.contains(key) && error.contains("write "), "{error}");
    }
}

#[test]
fn invalid_resource_ids_are_errors() {
    let network = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network";
    for (field, id) in [
        ("vnetID", format!("{network}/networkSecurityGroups/a")),
        ("vnetID", format!("{network}/virtualNetworks/")),
        ("subnetID", format!("{network}/virtualNetworks/a")),
        (
            "securityGroupID",
            "/subscriptions/s/resourceGroups//providers/Microsoft.Network/networkSecurityGroups/a"
                .to_owned(),
        ),
    ] {
        let path = match field {
            "vnetID" => "/spec/platform/azure/vnetID",
            "subnetID" => "/spec/platform/azure/subnetID",
            _ => "/spec/platform/azure/securityGroupID",
        };
        let error = error(AZURE, &changed(&azure(path, json!(id))));
        assert!(error.contains(field), "{error}");
    }
}

/// The table of both files, with both kinds of identities.
#[test]
pub(crate) fn config_authenticates_with_the_identity_of_the_cloud_provider() {
    let client = json!("00000000-0000-0000-0000-000000000007");
    let identity =
        "/spec/platform/azure/azureAuthenticationConfig/workloadIdentities/cloudProvider";
    let own = vec![(identity, json!({ "clientID": client }))];
    let federated = "/data/cloud.conf#/useFederatedWorkloadIdentityExtension";
    let id = "/data/cloud.conf#/aadClientId";
    let token = "/data/cloud.conf#/aadFederatedTokenFile";
    let extension = "/data/cloud.conf#/useManagedIdentityExtension";
    let metadata = "/data/cloud.conf#/useInstanceMetadata";
    let certificate = "/data/cloud.conf#/aadMSIDataPlaneIdentityPath";
    let of = |object: &'static str, path: &'static str, value: Value| {
        row(AZURE, managed(), object, path, Is(value))
    };
    let rows = [
        both(&own, federated, json!(true)),
        both(&own, id, client),
        both(&own, token, json!(TOKEN)),
        both(&own, extension, json!(false)),
        both(&own, metadata, json!(true)),
        both(&own, certificate, json!("")),
        both(&managed(), federated, json!(false)),
        both(&managed(), id, json!("")),
        both(&managed(), token, json!("")),
        [
            of(NODES, extension, json!(true)),
            of(CONTROLLERS, extension, json!(false)),
        ],
        [
            of(NODES, metadata, json!(true)),
            of(CONTROLLERS, metadata, json!(false)),
        ],
        [
            of(NODES, certificate, json!("")),
            of(
                CONTROLLERS,
                certificate,
                json!("/mnt/certs/cloud-provider-creds"),
            ),
        ],
    ];
    verify(rows.as_flattened());
}

#[test]
pub(crate) fn nodes_get_the_identity_for_the_registry() {
    let id = json!(
        "/subscriptions/s/resourceGroups/g/providers/Microsoft.ManagedIdentity/userAssignedIdentities/i"
    );
    let credentials = json!({ "type": "ManagedIdentity", "managedIdentity": { "resourceID": id } });
    let registry = json!({ "credentials": credentials });
    let with = || azure("/spec/platform/azure/containerRegistry", registry.clone());
    let path = "/data/cloud.conf#/userAssignedIdentityID";
    verify(&[
        row(AZURE, with(), NODES, path, Is(id)),
        row(AZURE, with(), CONTROLLERS, path, Is(Value::Null)),
        row(AZURE, vec![], NODES, path, Is(Value::Null)),
    ]);
}

#[test]
pub(crate) fn service_account_has_the_workload_identity() {
    let account = "ServiceAccount/azure-cloud-controller-manager";
    let name = "/metadata/name";
    let client = "/metadata/annotations/azure.workload.identity~1client-id";
    let tenant = "/metadata/annotations/azure.workload.identity~1tenant-id";
    let own = || azure("/spec/platform/azure/tenantID", json!("t"));
    verify(&[
        row(AZURE, vec![], account, client, Is(json!("myClientID"))),
        row(AZURE, own(), account, tenant, Is(json!("t"))),
        row(AZURE, managed(), account, name, Is(Value::Null)),
        pod(AZURE, vec![], "/serviceAccountName", Is(json!(AZURE))),
        pod(AZURE, managed(), "/serviceAccountName", Is(Value::Null)),
    ]);
    let authentication = json!({ "azureAuthenticationConfigType": "WorkloadIdentities" });
    let path = "/spec/platform/azure/azureAuthenticationConfig";
    let error = error(AZURE, &changed(&azure(path, authentication)));
    assert!(error.contains("workloadIdentities"), "{error}");
}

#[test]
pub(crate) fn managed_identities_come_from_the_key_vault() {
    let class = "SecretProviderClass/managed-azure-cloud-provider";
    let parameter = |path: &'static str, value: &str| {
        row(AZURE, managed(), class, path, Is(json!(value))).with(|input| {
            serve_classes(input);
            input.settings.azure_key_vault_client_id = Some("reader".to_owned());
        })
    };
    let objects = "\narray:\n  - |\n    objectName: cloud-provider-creds\n    objectEncoding: utf-8\n    \
                   objectType: secret\n";
    let csi = "/volumes/cloud-provider-cert/csi";
    let mount = "/containers/cloud-controller-manager/volumeMounts/cloud-provider-cert";
    verify(&[
        parameter("/spec/provider", "azure"),
        parameter("/spec/parameters/usePodIdentity", "false"),
        parameter("/spec/parameters/useVMManagedIdentity", "true"),
        parameter("/spec/parameters/userAssignedIdentityID", "reader"),
        parameter("/spec/parameters/keyvaultName", "vault"),
        parameter("/spec/parameters/tenantId", "tenant"),
        parameter("/spec/parameters/objects", objects),
        row(AZURE, vec![], class, "/metadata/name", Is(Value::Null)).with(serve_classes),
        pod(
            AZURE,
            managed(),
            csi,
            Is(json!({
                "driver": "secrets-store.csi.k8s.io",
                "readOnly": true,
                "volumeAttributes": { "secretProviderClass": "managed-azure-cloud-provider" },
            })),
        ),
        pod(
            AZURE,
            managed(),
            mount,
            Is(
                json!({ "name": "cloud-provider-cert", "mountPath": "/mnt/certs", "readOnly": true }),
            ),
        ),
        pod(AZURE, vec![], csi, Is(Value::Null)),
        pod(AZURE, vec![], mount, Is(Value::Null)),
    ]);
}

/// The management cluster has the CSI driver.
fn serve_classes(input: &mut Input) {
    let group = "secrets-store.csi.x-k8s.io".to_owned();
    input.settings.served_groups.push(group);
}

/// Check T16.
#[test]
fn key_vault_objects_reject_injected_names() {
    let mut changes = managed();
    let (_, authentication) = &mut changes[1];
    let identity = "/managedIdentities/controlPlane/cloudProvider/credentialsSecretName";
    *authentication.pointer_mut(identity).unwrap() = json!("a\n  - |\n    objectName: b");
    let error = error(AZURE, &changed(&changes));
    assert!(error.contains("credentialsSecretName"), "{error}");
}

#[test]
pub(crate) fn manager_gets_the_name_of_the_cluster() {
    let args = "/containers/cloud-controller-manager/args";
    let own = vec![("/spec/infraID", json!("dev-x7k2p"))];
    verify(&[
        pod(AZURE, own, args, Has("--cluster-name=dev-x7k2p")),
        pod(AZURE, vec![], args, Has("--cluster-name=")),
        pod(
            AZURE,
            vec![],
            "/volumes/cloud-config/secret/secretName",
            Is(json!("azure-cloud-config")),
        ),
    ]);
}
