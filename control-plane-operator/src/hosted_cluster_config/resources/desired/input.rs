//! What desired objects are built from.

use std::collections::BTreeMap;

use api::annotations::cluster::SWIFT_POD_NETWORK_INSTANCE;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use control_plane_component::{Objects, Release};
use jiff::Timestamp;
use serde_json::Value;

use super::error::Error;
use super::object::{Key, by_key};

/// The live objects of the hosted cluster, as far as they are known.
#[derive(Debug, Clone, Default)]
pub struct Guest(BTreeMap<Key, Value>);

/// Values that the operator has by itself.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Host and port of the konnectivity server for agents.
    pub konnectivity: (String, u16),
    /// Host and port of the OAuth server.
    pub oauth: (String, u16),
    /// Root CA of the control plane, PEM.
    pub initial_ca: String,
    /// CA of kubelet serving certificates and of signed client certificates, PEM.
    pub signer_ca: String,
    /// This operator's image.
    pub own_image: String,
    /// Images of operator catalogs by name. They are only known if catalogs run in the hosted cluster.
    pub catalog_images: BTreeMap<String, String>,
    /// Bcrypt hash of the password of `kubeadmin`.
    pub kubeadmin_hash: Option<String>,
}

/// What desired objects are built from.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// The HostedControlPlane.
    pub hcp: &'a Value,
    /// Release of the hosted cluster.
    pub release: &'a Release,
    /// Objects of the control plane namespace.
    pub sources: &'a Objects,
    /// Live objects of the hosted cluster.
    pub guest: &'a Guest,
    /// Values that the operator has by itself.
    pub settings: &'a Settings,
    /// Random bytes, for secrets that do not exist yet.
    pub random: &'a [u8; 96],
    /// The current time.
    pub now: Timestamp,
}

// === impl Guest ===

impl Guest {
    /// Returns an object.
    pub fn get(&self, key: &Key) -> Option<&Value> {
        self.0.get(key)
    }

    /// Adds an object, or replaces it.
    pub fn insert(&mut self, value: Value) {
        self.0.insert(Key::of(&value), value);
    }

    /// Removes an object.
    pub fn remove(&mut self, key: &Key) {
        self.0.remove(key);
    }

    /// All objects.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Value)> {
        self.0.iter()
    }
}

impl FromIterator<Value> for Guest {
    fn from_iter<I: IntoIterator<Item = Value>>(values: I) -> Self {
        Self(by_key(values))
    }
}

// === impl Input ===

impl<'a> Input<'a> {
    /// A value of the HostedControlPlane's spec, unless it is null.
    pub(super) fn spec(&self, pointer: &str) -> Option<&'a Value> {
        let spec = self.hcp.get("spec")?;
        spec.pointer(pointer).filter(|value| !value.is_null())
    }

    /// A text of the spec. Empty if it is not set.
    pub(super) fn text(&self, pointer: &str) -> &'a str {
        self.spec(pointer).and_then(Value::as_str).unwrap_or("")
    }

    /// A list of the spec. Empty if it is not set.
    pub(super) fn list(&self, pointer: &str) -> &'a [Value] {
        let found = self.spec(pointer).and_then(Value::as_array);
        found.map_or(&[], Vec::as_slice)
    }

    /// A part of the user's OpenShift configuration.
    pub(super) fn configuration(&self, name: &str) -> Option<&'a Value> {
        self.spec("/configuration")?
            .get(name)
            .filter(|value| !value.is_null())
    }

    /// Name of the HostedControlPlane.
    pub(super) fn name(&self) -> &'a str {
        self.hcp["metadata"]["name"].as_str().unwrap_or("")
    }

    /// An annotation of the HostedControlPlane.
    pub(super) fn annotation(&self, key: &str) -> Option<&'a str> {
        self.hcp["metadata"]["annotations"].get(key)?.as_str()
    }

    /// The platform's name.
    pub(super) fn platform(&self) -> &'a str {
        self.text("/platform/type")
    }

    /// Whether the platform is one of these.
    pub(super) fn is_on(&self, platforms: &[&str]) -> bool {
        platforms.contains(&self.platform())
    }

    /// Whether Azure resources are accessed with managed identities.
    pub(super) fn is_managed_azure(&self) -> bool {
        let kind = "/platform/azure/azureAuthenticationConfig/azureAuthenticationConfigType";
        self.is_on(&["Azure"]) && self.text(kind) == "ManagedIdentities"
    }

    /// Whether an optional part of OpenShift is not disabled.
    pub(super) fn has_capability(&self, name: &str) -> bool {
        !self
            .list("/capabilities/disabled")
            .iter()
            .any(|it| it == name)
    }

    /// Whether the OAuth server is enabled.
    pub(super) fn is_oauth_enabled(&self) -> bool {
        self.text("/configuration/authentication/type") != "OIDC"
    }

    /// Whether operator catalogs run in the management cluster.
    pub(super) fn has_management_catalogs(&self) -> bool {
        self.text("/olmCatalogPlacement") != "guest"
    }

    /// Whether storage is managed by OpenShift.
    pub(super) fn has_managed_storage(&self) -> bool {
        !self.is_on(&["IBMCloud", "PowerVS"])
    }

    /// Whether the API server has an endpoint in the network of the cluster.
    pub(super) fn is_private(&self) -> bool {
        let access = match self.platform() {
            "AWS" => self.text("/platform/aws/endpointAccess"),
            "GCP" => self.text("/platform/gcp/endpointAccess"),
            // Without a topology, nodes use the pods that are attached to their network.
            "Azure" if self.text("/platform/azure/topology").is_empty() => return self.is_swift(),
            "Azure" => self.text("/platform/azure/topology"),
            _ => "",
        };
        ["Private", "PublicAndPrivate"].contains(&access)
    }

    /// Whether pods of an Azure control plane are attached to the nodes' network. Of the annotation, only ARO takes notice.
    fn is_swift(&self) -> bool {
        let annotated = self.annotation(SWIFT_POD_NETWORK_INSTANCE.key());
        let is_annotated = annotated.is_some_and(|instance| !instance.is_empty());
        self.text("/platform/azure/private/type") == "Swift"
            || is_annotated && self.is_managed_azure()
    }

    /// Whether the machines that run routers should be redundant.
    pub(super) fn has_redundant_infrastructure(&self) -> bool {
        self.text("/infrastructureAvailabilityPolicy") == "HighlyAvailable"
    }

    /// The CIDRs of a list of networks.
    pub(super) fn cidrs(&self, networks: &str) -> Vec<&'a str> {
        let networks = self.list(networks).iter();
        networks.filter_map(|it| it["cidr"].as_str()).collect()
    }

    /// The domain of the cluster.
    pub(super) fn base_domain(&self) -> String {
        let domain = self.text("/dns/baseDomain");
        let prefix = self.spec("/dns/baseDomainPrefix").and_then(Value::as_str);
        match prefix.unwrap_or_else(|| self.name()) {
            "" => domain.to_owned(),
            prefix => format!("{prefix}.{domain}"),
        }
    }

    /// The domain of applications.
    pub(super) fn ingress_domain(&self) -> String {
        ["appsDomain", "domain"]
            .iter()
            .filter_map(|field| self.configuration("ingress")?.get(field)?.as_str())
            .find(|domain| !domain.is_empty())
            .map_or_else(|| format!("apps.{}", self.base_domain()), str::to_owned)
    }

    /// The live state of an object. The namespace of a cluster-scoped object is empty.
    pub(super) fn live(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Option<&'a Value> {
        let key = Key::new(api_version, kind, namespace, name);
        self.guest.get(&key)
    }

    /// The live state of a part of the global configuration.
    pub(super) fn live_config(&self, kind: &str) -> Option<&'a Value> {
        self.live("config.openshift.io/v1", kind, "", "cluster")
    }

    /// The fields `data` and `type` of an object of the control plane namespace.
    pub(super) fn source(&self, object: &str, kind: &str, name: &str) -> Result<&'a Value, Error> {
        let found = self.sources.get("", kind, name);
        found.ok_or_else(|| Error::missing(object, format!("{kind} {name}")))
    }

    /// A value of a ConfigMap of the control plane namespace.
    pub(super) fn config_value(
        &self,
        object: &str,
        name: &str,
        key: &str,
    ) -> Result<&'a str, Error> {
        let found = self.source(object, "ConfigMap", name)?["data"][key].as_str();
        found.ok_or_else(|| Error::missing(object, format!("key {key} of ConfigMap {name}")))
    }

    /// A value of a Secret of the control plane namespace.
    pub(super) fn secret_value(
        &self,
        object: &str,
        name: &str,
        key: &str,
    ) -> Result<Vec<u8>, Error> {
        let found = self.source(object, "Secret", name)?["data"][key].as_str();
        let decoded = found.and_then(|text| STANDARD.decode(text).ok());
        decoded.ok_or_else(|| Error::missing(object, format!("key {key} of Secret {name}")))
    }

    /// An image of the release.
    pub(super) fn image(&self, object: &str, name: &str) -> Result<String, Error> {
        self.release
            .image(name)
            .map_err(|error| Error::invalid(object, error.to_string()))
    }
}
