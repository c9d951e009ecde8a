//! Encryption by a key management service: plugins in the API server's pods, which it calls through sockets.
//!
//! The first key of a rotation has the socket `active`, the second one `backup`.

mod aws;
mod azure;
mod ibm_cloud;

use api::hypershift::v1beta1::secret_encryption::KmsSpec;
use api::hypershift::v1beta1::secret_encryption::status::{
    SecretEncryptionKeyStatus, SecretEncryptionProvider,
};
use control_plane_component::{Context, Error, Result};
use k8s_openapi::api::core::v1::{Container, PodSpec, Volume, VolumeMount};
use serde_json::{Value, json};

use super::{edit, encryption};
use crate::encryption::config::Config;

/// The volume with the sockets.
const SOCKETS: &str = "kms-socket";
/// The volume with a kubeconfig for the API server in the same pod.
const LOCALHOST_KUBECONFIG: &str = "localhost-kubeconfig";
/// The guest's service account that plugins use, and its namespace.
const ACCOUNT: &str = "kms-provider";
const ACCOUNT_NAMESPACE: &str = "kube-system";

/// What a key management service adds to the API server.
#[derive(Debug, Default)]
pub(super) struct Plugin {
    /// Providers of the encryption configuration. The first one encrypts.
    pub(super) providers: Vec<Value>,
    containers: Vec<Container>,
    volumes: Vec<Volume>,
    /// Mount path of the sockets in the API server.
    sockets: &'static str,
}

/// Returns the plugin of the keys in a key management service, if any.
pub(super) fn plugin(context: &Context<'_>) -> Result<Option<Plugin>> {
    let keys = encryption::keys(context)?;
    let Some(first) = keys.iter().find(|key| key.aescbc.is_none()) else {
        return Ok(None);
    };
    let api = Api::of(&encryption::live(context));
    let kms = settings(context)?;
    let missing = |field: &str| Error::missing("field spec.secretEncryption.kms", field);
    let plugin = match first.provider {
        SecretEncryptionProvider::Aescbc => return Ok(None),
        SecretEncryptionProvider::Aws => {
            let aws = kms.aws.as_ref().ok_or_else(|| missing("aws"))?;
            aws::plugin(context, aws, &each(&keys, |key| key.aws.as_ref()), api)
        }
        SecretEncryptionProvider::Azure => {
            let azure = kms.azure.as_ref().ok_or_else(|| missing("azure"))?;
            azure::plugin(context, azure, &each(&keys, |key| key.azure.as_ref()), api)
        }
        SecretEncryptionProvider::IbmCloud => {
            let ibm_cloud = kms.ibmcloud.as_ref().ok_or_else(|| missing("ibmcloud"))?;
            ibm_cloud::plugin(context, ibm_cloud, api)?
        }
    };
    Ok(Some(plugin))
}

/// How the service is used, which only the spec says.
fn settings<'a>(context: &Context<'a>) -> Result<&'a KmsSpec> {
    let encryption = context.spec().secret_encryption.as_ref();
    let kms = encryption.and_then(|encryption| encryption.kms.as_ref());
    kms.ok_or_else(|| Error::missing("field spec.secretEncryption", "kms"))
}

/// The keys of one service, in order.
fn each<K>(
    keys: &[SecretEncryptionKeyStatus],
    get: impl Fn(&SecretEncryptionKeyStatus) -> Option<&K>,
) -> Vec<&K> {
    keys.iter().filter_map(get).collect()
}

/// Version of the API of plugins. It is kept, because objects say which one encrypted them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Api {
    V1,
    V2,
}

// === impl Api ===

impl Api {
    /// The version of the live configuration.
    fn of(live: &Config) -> Self {
        match live.kms_version.as_deref() {
            Some("v1") => Self::V1,
            _ => Self::V2,
        }
    }

    /// A provider of the encryption configuration.
    fn provider(self, name: &str, socket: &str) -> Value {
        let version = match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
        };
        json!({ "kms": {
            "apiVersion": version,
            "name": name,
            "endpoint": format!("unix://{socket}"),
            "timeout": "35s",
        } })
    }
}

/// Common settings of plugin containers. The probe is lenient, because a restart does not fix a slow service.
fn container(name: &str, image: &str, port: i32, health: &str) -> Container {
    edit::from_json(json!({
        "name": name,
        "image": image,
        "ports": [{ "name": "http", "containerPort": port, "protocol": "TCP" }],
        "livenessProbe": {
            "httpGet": { "scheme": "HTTP", "port": port, "path": health },
            "initialDelaySeconds": 120,
            "periodSeconds": 300,
            "timeoutSeconds": 160,
            "failureThreshold": 3,
            "successThreshold": 1,
        },
        "resources": { "requests": { "cpu": "10m", "memory": "10Mi" } },
    }))
}

/// The container that mints tokens of the guest for the plugins.
fn minter(name: &str, token: &Token) -> Container {
    let Token {
        volume,
        directory,
        kubeconfig,
    } = token;
    edit::from_json(json!({
        "name": name,
        "image": "token-minter",
        "command": ["/usr/bin/control-plane-operator", "token-minter"],
        "args": [
            "--token-audience=openshift",
            format!("--service-account-namespace={ACCOUNT_NAMESPACE}"),
            format!("--service-account-name={ACCOUNT}"),
            format!("--token-file={directory}/token"),
            format!("--kubeconfig={kubeconfig}/kubeconfig"),
        ],
        "resources": { "requests": { "cpu": "10m", "memory": "30Mi" } },
        "volumeMounts": [
            { "name": volume, "mountPath": directory },
            { "name": LOCALHOST_KUBECONFIG, "mountPath": kubeconfig },
        ],
    }))
}

/// Paths of a token and of the kubeconfig to request it.
struct Token {
    volume: &'static str,
    directory: &'static str,
    kubeconfig: &'static str,
}

// === impl Plugin ===

impl Plugin {
    /// Adds the plugins to the API server's pods.
    pub(super) fn add_to(self, pod: &mut PodSpec, server: &str) -> Result<()> {
        let count = self.providers.len();
        let server = edit::container(pod, server)?;
        let mounts = server.volume_mounts.get_or_insert_default();
        mounts.push(VolumeMount {
            name: SOCKETS.to_owned(),
            mount_path: self.sockets.to_owned(),
            ..VolumeMount::default()
        });
        exclude_from_liveness(server, count);
        pod.containers.extend(self.containers);
        let volumes = pod.volumes.get_or_insert_default();
        volumes.push(edit::from_json(json!({ "name": SOCKETS, "emptyDir": {} })));
        volumes.extend(self.volumes);
        Ok(())
    }
}

/// An unavailable key management service makes the API server unready, but must not restart it: its cached keys stay
/// valid.
fn exclude_from_liveness(server: &mut Container, providers: usize) {
    let probe = server.liveness_probe.as_mut();
    let path = probe
        .and_then(|probe| probe.http_get.as_mut())
        .and_then(|get| get.path.as_mut());
    if let Some(path) = path {
        let excluded = (0..providers).map(|number| format!("&exclude=kms-provider-{number}"));
        path.extend(excluded);
    }
}
