//! The proxy through which a cluster reaches the internet.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hypershift::v1beta1::references::NameReference;

/// The proxy through which a hosted cluster reaches the internet: its nodes, and those parts of its
/// control plane that call a cloud.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProxyConfiguration {
    /// URL of the proxy for HTTP. Empty means none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_proxy: Option<String>,
    /// URL of the proxy for HTTPS. Empty means none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub https_proxy: Option<String>,
    /// Host names, domains, addresses and ranges, separated by commas, that are reached without the
    /// proxy. Those of the cluster are added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_proxy: Option<String>,
    /// URLs that must respond through the proxy for it to be considered ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readiness_endpoints: Vec<String>,
    /// ConfigMap with certificate authorities, under the key `ca-bundle.crt`, which the cluster
    /// trusts in addition to the system's. It is needed for a proxy that reads HTTPS.
    #[serde(rename = "trustedCA", skip_serializing_if = "Option::is_none")]
    pub trusted_ca: Option<NameReference>,
}
