//! Encryption by IBM Cloud Key Protect: one plugin has all keys.

use std::collections::BTreeMap;

use api::hypershift::v1beta1::secret_encryption::ibm_cloud::{
    IbmCloudKmsAuthType, IbmCloudKmsSpec,
};
use control_plane_component::{Context, Error, Result};
use serde_json::{Value, json};

use super::{Api, Plugin, SOCKETS, container, edit};
use crate::encryption::key::IBM_CLOUD_NAME;

/// Annotation with the plugin's image, which releases do not contain.
const IMAGE_ANNOTATION: &str = "hypershift.openshift.io/ibmcloud-kms-provider-image";
const SOCKET_DIRECTORY: &str = "/tmp";
const SOCKET: &str = "/tmp/keyprotectprovider.sock";
/// Secret with wrapped keys, its volume and mount path.
const WRAPPED: (&str, &str, &str) = ("kp-wdek-secret", "ibmcloud-kms-kp", "/tmp/kp");
/// The pod identity token, and its mount path.
const TOKEN: (&str, &str) = ("pod-identity-token", "/etc/pod-identity-token");
const HEALTH_PORT: i32 = 8081;

pub(super) fn plugin(
    context: &Context<'_>,
    ibm_cloud: &IbmCloudKmsSpec,
    api: Api,
) -> Result<Plugin> {
    let image = context
        .annotation(IMAGE_ANNOTATION)
        .ok_or_else(|| Error::Invalid {
            field: "spec.secretEncryption.kms.provider".to_owned(),
            value: "IBMCloud".to_owned(),
            hint: format!(
                "releases do not contain the image of its plugin: set annotation {IMAGE_ANNOTATION}"
            ),
        })?;
    let mut container = container("ibmcloud-kms", image, HEALTH_PORT, "healthz/liveness");
    container.ports = Some(edit::from_json(
        json!([{ "name": "http", "containerPort": 8001, "protocol": "TCP" }]),
    ));
    for (name, value) in variables(ibm_cloud) {
        edit::env(&mut container, name, value);
    }
    if let Some(key) = api_key(ibm_cloud)? {
        let variables = container.env.get_or_insert_default();
        variables.push(edit::from_json(key));
    }
    container.volume_mounts = Some(edit::from_json(json!([
        { "name": SOCKETS, "mountPath": SOCKET_DIRECTORY },
        { "name": WRAPPED.1, "mountPath": WRAPPED.2 },
        { "name": TOKEN.0, "mountPath": TOKEN.1 },
    ])));
    Ok(Plugin {
        providers: vec![api.provider(IBM_CLOUD_NAME, SOCKET)],
        containers: vec![container],
        volumes: volumes().into_iter().map(edit::from_json).collect(),
        sockets: SOCKET_DIRECTORY,
    })
}

fn variables(ibm_cloud: &IbmCloudKmsSpec) -> [(&'static str, String); 12] {
    let text = str::to_owned;
    [
        ("LOG_LEVEL", text("info")),
        ("NUM_LEN_BYTES", text("4")),
        ("CACHE_TIMEOUT_IN_HOURS", text("1")),
        ("RESTART_DELAY_IN_SECONDS", text("0")),
        ("UNIX_SOCKET_PATH", text(SOCKET)),
        ("KP_TIMEOUT", text("10")),
        ("KP_WDEK_PATH", format!("{}/wdek", WRAPPED.2)),
        ("KP_STATE_PATH", format!("{}/state", WRAPPED.2)),
        ("HEALTHZ_PATH", text("/healthz")),
        ("HEALTHZ_PORT", format!(":{HEALTH_PORT}")),
        ("KP_DATA_JSON", keys(ibm_cloud)),
        ("REGION", ibm_cloud.region.clone()),
    ]
}

/// All keys, by version.
fn keys(ibm_cloud: &IbmCloudKmsSpec) -> String {
    let managed = ibm_cloud.auth.type_ == IbmCloudKmsAuthType::Managed;
    let keys: BTreeMap<String, Value> = ibm_cloud
        .key_list
        .iter()
        .map(|key| {
            let value = json!({
                "crkID": key.crk_id,
                "instanceID": key.instance_id,
                "correlationID": key.correlation_id,
                "url": key.url,
                "serviceToService": managed,
            });
            (key.key_version.to_string(), value)
        })
        .collect();
    json!(keys).to_string()
}

/// The user's API key for the service, unless authentication is managed.
fn api_key(ibm_cloud: &IbmCloudKmsSpec) -> Result<Option<Value>> {
    match ibm_cloud.auth.type_ {
        IbmCloudKmsAuthType::Managed => Ok(None),
        IbmCloudKmsAuthType::Unmanaged => {
            let unmanaged = ibm_cloud.auth.unmanaged.as_ref().ok_or_else(|| {
                Error::missing("field spec.secretEncryption.kms.ibmcloud.auth", "unmanaged")
            })?;
            Ok(Some(
                json!({ "name": "API_KEY", "valueFrom": { "secretKeyRef": {
                "name": unmanaged.credentials.name, "key": "iam_apikey",
            } } }),
            ))
        }
    }
}

fn volumes() -> [Value; 2] {
    let (secret, wrapped, _) = WRAPPED;
    let (token, _) = TOKEN;
    [
        json!({ "name": wrapped, "secret": { "secretName": secret, "optional": true } }),
        json!({ "name": token, "projected": { "sources": [{ "serviceAccountToken": {
            "path": token, "expirationSeconds": 900,
        } }] } }),
    ]
}
