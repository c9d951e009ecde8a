//! From where images are imported and pulled.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hypershift::v1beta1::references::NameReference;
use crate::schema::{atomic_list, rule, set, with};

/// From where images may be imported and pulled.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageConfiguration {
    /// Registries from which ordinary users may import images; nothing listed means all.
    /// Users who may create images themselves are not bound by it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = atomic_list)]
    pub allowed_registries_for_import: Vec<RegistryLocation>,
    /// Host names under which the cluster's own registry is reached from outside; the first is
    /// written into image streams.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = atomic_list)]
    pub external_registry_hostnames: Vec<String>,
    /// ConfigMap with certificate authorities for registries; each key is a registry's host name,
    /// with `..` before a port.
    #[serde(
        rename = "additionalTrustedCA",
        skip_serializing_if = "Option::is_none"
    )]
    pub additional_trusted_ca: Option<NameReference>,
    /// How container runtimes, builds and imports treat registries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registry_sources: Option<RegistrySources>,
}

/// A registry to import from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistryLocation {
    /// Host name of the registry, with a port unless it is the usual one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain_name: Option<String>,
    /// Whether it is reached without TLS, or with a certificate that is not verified. Without a
    /// value it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub insecure: Option<bool>,
}

/// How container runtimes, builds and imports treat registries.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    transform = rule(
        "!(has(self.blockedRegistries) && has(self.allowedRegistries))",
        "allowedRegistries and blockedRegistries exclude each other; keep one of the two lists"
    ),
)]
pub struct RegistrySources {
    /// Registries that have no valid TLS certificate or no TLS at all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024), transform = atomic_list)]
    pub insecure_registries: Vec<RegistryScope>,
    /// Registries that images are not pulled from or pushed to; all others are used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024), transform = atomic_list)]
    pub blocked_registries: Vec<RegistryScope>,
    /// Registries that images are pulled from or pushed to; all others are not used.
    /// Those of the release must be among them, or nodes cannot start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024), transform = atomic_list)]
    pub allowed_registries: Vec<RegistryScope>,
    /// Registries to try, in this order, for images that are named without a registry. It works
    /// with host names only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1), transform = with("format", "hostname"), transform = set)]
    pub container_runtime_search_registries: Vec<String>,
}

/// A registry, a part of one, or `*.` and a domain.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
#[schemars(
    transform = rule(
        "self.matches('^[*]([.]([a-zA-Z0-9]|[a-zA-Z0-9][-a-zA-Z0-9]*[a-zA-Z0-9]))+$') || \
         self.matches('^([a-zA-Z0-9]|[a-zA-Z0-9][-a-zA-Z0-9]*[a-zA-Z0-9])([.]([a-zA-Z0-9]|[a-zA-Z0-9][-a-zA-Z0-9]*[a-zA-Z0-9]))*(:[0-9]+)?(/[a-z0-9]+(([._]|__|-*)[a-z0-9]+)*)*$')",
        "an entry must be a registry such as images.example.com or registry.example.com:5000, a repository \
         such as images.example.com/team/app, or a wildcard such as *.example.com"
    ),
)]
pub struct RegistryScope(#[schemars(length(min = 1, max = 256))] pub String);
