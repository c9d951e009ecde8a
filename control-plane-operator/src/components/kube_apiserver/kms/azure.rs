//! Encryption by an Azure Key Vault key: with a managed identity, whose certificate a CSI driver mounts, or with a
//! workload identity, which trusts tokens of the guest.

use api::hypershift::v1beta1::secret_encryption::azure::{
    AzureKeyVaultType, AzureKmsKey, AzureKmsSpec,
};
use control_plane_component::Context;
use k8s_openapi::api::core::v1::Container;
use serde_json::{Value, json};

use super::{Api, Plugin, SOCKETS, Token, container, edit, minter};
use crate::encryption::key::azure_name;

/// The release's name of the plugin's image.
const IMAGE: &str = "azure-kms-encryption-provider";
const SOCKET_DIRECTORY: &str = "/opt";
/// Name, health port and metrics port of the plugin of each key.
const ROLES: [(&str, i32, i32); 2] = [("active", 8787, 8095), ("backup", 8788, 8096)];
/// The Secret with the cloud's configuration, and the volume of it.
const CONFIG: (&str, &str) = ("azure-kms-config", "azure-kms-credentials");
/// The `SecretProviderClass` of a managed identity's certificate, its volume and mount path.
const CERTIFICATE: (&str, &str, &str) = ("managed-azure-kms", "kms-cert", "/mnt/certs");
const TOKEN: Token = Token {
    volume: "azure-kms-cloud-token",
    directory: "/var/run/secrets/openshift/serviceaccount",
    kubeconfig: "/etc/kubernetes",
};

pub(super) fn plugin(
    context: &Context<'_>,
    azure: &AzureKmsSpec,
    keys: &[&AzureKmsKey],
    api: Api,
) -> Plugin {
    let by_token = azure.workload_identity.is_some();
    let mut plugin = Plugin {
        sockets: SOCKET_DIRECTORY,
        volumes: volumes(by_token).into_iter().map(edit::from_json).collect(),
        ..Plugin::default()
    };
    for ((role, port, metrics), key) in ROLES.into_iter().zip(keys) {
        let socket = format!("{SOCKET_DIRECTORY}/azurekms{role}.socket");
        let name = azure_name(key, azure.key_vault_type);
        plugin.providers.push(api.provider(&name, &socket));
        let name = format!("azure-kms-provider-{role}");
        let mut container = container(&name, IMAGE, port, "/healthz");
        container.args = Some(arguments(azure, key, &socket, (port, metrics)));
        authenticate(context, azure, &mut container);
        plugin.containers.push(container);
    }
    if by_token {
        plugin
            .containers
            .push(minter("azure-kms-token-minter", &TOKEN));
    }
    plugin
}

fn arguments(
    azure: &AzureKmsSpec,
    key: &AzureKmsKey,
    socket: &str,
    (health, metrics): (i32, i32),
) -> Vec<String> {
    let mut arguments = vec![
        format!("--keyvault-name={}", key.key_vault_name),
        format!("--key-name={}", key.key_name),
        format!("--key-version={}", key.key_version),
        format!("--listen-addr=unix://{socket}"),
        format!("--healthz-port={health}"),
        format!("--metrics-addr={metrics}"),
        "--healthz-path=/healthz".to_owned(),
        "--config-file-path=/etc/kubernetes/azure.json".to_owned(),
        "-v=1".to_owned(),
    ];
    if azure.key_vault_type == Some(AzureKeyVaultType::ManagedHsm) {
        arguments.push("--managed-hsm".to_owned());
    }
    arguments
}

fn authenticate(context: &Context<'_>, azure: &AzureKmsSpec, container: &mut Container) {
    let mut mounts = vec![
        json!({ "name": SOCKETS, "mountPath": SOCKET_DIRECTORY }),
        json!({ "name": CONFIG.1, "mountPath": "/etc/kubernetes" }),
    ];
    match &azure.workload_identity {
        None => {
            let (_, volume, path) = CERTIFICATE;
            mounts.push(json!({ "name": volume, "mountPath": path, "readOnly": true }));
        }
        Some(identity) => {
            let Token {
                volume, directory, ..
            } = TOKEN;
            mounts.push(json!({ "name": volume, "mountPath": directory, "readOnly": true }));
            let platform = context.spec().platform.azure.as_ref();
            let tenant = platform.map_or("", |platform| platform.tenant_id.as_str());
            edit::env(container, "AZURE_CLIENT_ID", identity.client_id.0.as_str());
            edit::env(container, "AZURE_TENANT_ID", tenant);
            let file = format!("{directory}/token");
            edit::env(container, "AZURE_FEDERATED_TOKEN_FILE", file);
        }
    }
    container.volume_mounts = Some(mounts.into_iter().map(edit::from_json).collect());
}

fn volumes(by_token: bool) -> [Value; 2] {
    let (secret, volume) = CONFIG;
    let config = json!({ "name": volume, "secret": {
        "secretName": secret,
        "items": [{ "key": "cloud.conf", "path": "azure.json" }],
    } });
    let (class, certificate, _) = CERTIFICATE;
    let identity = if by_token {
        json!({ "name": TOKEN.volume, "emptyDir": { "medium": "Memory" } })
    } else {
        json!({ "name": certificate, "csi": {
            "driver": "secrets-store.csi.k8s.io",
            "readOnly": true,
            "volumeAttributes": { "secretProviderClass": class },
        } })
    };
    [config, identity]
}
