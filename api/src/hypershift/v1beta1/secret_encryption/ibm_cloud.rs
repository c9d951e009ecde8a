//! Encryption of Secrets by IBM Cloud.

use k8s_openapi::api::core::v1::LocalObjectReference;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::{self, no_format, rule};

/// Encryption by Key Protect or Hyper Protect Crypto Services of IBM Cloud.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IbmCloudKmsSpec {
    /// IBM Cloud region of the service.
    #[schemars(length(max = 255))]
    pub region: String,
    /// How the control plane authenticates to the service.
    pub auth: IbmCloudKmsAuthSpec,
    /// The keys, in any order: the one with the highest `keyVersion` encrypts, the others decrypt
    /// what was written before.
    /// To rotate, add a key with a higher version.
    #[schemars(length(max = 100))]
    pub key_list: Vec<IbmCloudKmsKeyEntry>,
}

/// How a control plane authenticates to a key service of IBM Cloud.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IbmCloudKmsAuthSpec {
    /// The way to authenticate: `Managed` for clusters that IBM Cloud runs, `Unmanaged` with an API
    /// key.
    #[serde(rename = "type")]
    pub type_: IbmCloudKmsAuthType,
    /// Present, and empty, when `type` is `Managed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed: Option<IbmCloudKmsManagedAuthSpec>,
    /// The API key, when `type` is `Unmanaged`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unmanaged: Option<IbmCloudKmsUnmanagedAuthSpec>,
}

/// Authentication that IBM Cloud sets up; there is nothing to say.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IbmCloudKmsManagedAuthSpec {}

/// Authentication by an API key.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IbmCloudKmsUnmanagedAuthSpec {
    /// Secret in the HostedCluster's namespace that holds the API key, under `iam_apikey`.
    #[schemars(with = "schema::LocalObjectReference")]
    pub credentials: LocalObjectReference,
}

/// A root key of IBM Cloud.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IbmCloudKmsKeyEntry {
    /// ID of the root key.
    #[serde(rename = "crkID")]
    #[schemars(length(min = 1, max = 255))]
    pub crk_id: String,
    /// ID of the service instance that holds the key.
    #[serde(rename = "instanceID")]
    #[schemars(length(min = 1, max = 255))]
    pub instance_id: String,
    /// ID that ties the calls to this key together in the service's logs.
    #[serde(rename = "correlationID")]
    #[schemars(length(min = 1, max = 255))]
    pub correlation_id: String,
    /// URL of the service instance. It begins with `https://`.
    #[schemars(
        length(min = 1, max = 2048),
        transform = rule(
            "self.matches('^https://')",
            "url must be the URL of the key service's instance, which begins with https://"
        ),
    )]
    pub url: String,
    /// Version of the key. Give each key that replaces another a higher one.
    #[schemars(range(min = 0, max = 2_147_483_647), transform = no_format)]
    pub key_version: i64,
}

/// A way to authenticate to a key service of IBM Cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum IbmCloudKmsAuthType {
    /// IBM Cloud sets it up.
    Managed,
    /// By an API key.
    Unmanaged,
}
