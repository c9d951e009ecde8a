//! What components authenticate to OpenStack with: the user's Secret, and copies of it with a configuration of the cloud
//! provider.

use std::collections::BTreeMap;

use api::hypershift::v1beta1::platform::openstack::OpenStackPlatformSpec;
use control_plane_component::openstack::{AUTHORITIES_FILE, CloudConfig};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use serde_json::json;

use crate::desired::Desired;
use crate::facts::Facts;

/// Key of the clouds and their credentials.
const CLOUDS: &str = "clouds.yaml";
/// Key of the certificate authorities of the cloud.
const AUTHORITIES: &str = "cacert";
/// Key of the configuration of the cloud provider.
const CONFIG: &str = "cloud.conf";
/// The Secrets of components that read all of it.
const SECRETS: [&str; 3] = [
    "cloud-network-config-controller-creds",
    "manila-cloud-credentials",
    "openstack-cloud-credentials",
];

/// Why the configuration cannot be written.
pub(super) fn problem(facts: &Facts, openstack: &OpenStackPlatformSpec) -> Option<String> {
    let secret = facts.secret(&openstack.identity_ref.name)?;
    let refused = config(facts, openstack, secret).err()?;
    Some(refused.to_string())
}

/// The Secrets of components. Nothing while the user's does not exist: validation reports it.
pub(super) fn desired(facts: &Facts, openstack: &OpenStackPlatformSpec) -> Vec<Desired> {
    let Some(given) = facts.secret(&openstack.identity_ref.name) else {
        return Vec::new();
    };
    let (Some(clouds), Ok(config)) = (value(given, CLOUDS), config(facts, openstack, given)) else {
        return Vec::new();
    };
    let mut data = BTreeMap::from([
        (CLOUDS, clouds.clone()),
        (CONFIG, ByteString(config.into_bytes())),
    ]);
    if let Some(authorities) = value(given, AUTHORITIES) {
        data.insert(AUTHORITIES, authorities.clone());
        data.insert(AUTHORITIES_FILE, authorities.clone());
    }
    let fields = json!({ "type": "Opaque", "data": data });
    let secret = |name: &str| Desired::new::<Secret>(&facts.namespace, name, fields.clone());
    SECRETS.map(secret).into()
}

fn config(
    facts: &Facts,
    openstack: &OpenStackPlatformSpec,
    given: &Secret,
) -> control_plane_component::Result<String> {
    let own = value(given, CONFIG).map(|it| String::from_utf8_lossy(&it.0));
    let network = openstack.external_network.as_ref();
    let machines = super::infrastructure::machine_networks(facts);
    let config = CloudConfig {
        own: own.as_deref().unwrap_or_default(),
        cloud: &openstack.identity_ref.cloud_name,
        external_network: network.and_then(|it| it.id.as_deref()),
        machines: &machines,
        has_authorities: value(given, AUTHORITIES).is_some(),
    };
    config.text()
}

fn value<'a>(secret: &'a Secret, key: &str) -> Option<&'a ByteString> {
    secret.data.as_ref()?.get(key)
}
