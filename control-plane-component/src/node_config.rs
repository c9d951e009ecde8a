//! Settings of a hosted cluster for all of its nodes, as manifests that the configuration of each pool begins with.
//!
//! The control plane publishes them, and the NodePool controller makes those of clusters whose control plane does not.
//! Both use these functions, because another text is another configuration, which replaces all nodes.

use api::hypershift::v1beta1::configuration::ClusterConfiguration;
use api::hypershift::v1beta1::image_content_source::ImageContentSource;
use serde_json::{Value, json};

use crate::hash::hash;

/// Name of the MachineConfig with the FIPS mode.
pub const FIPS: &str = "30-fips";
/// Name of the MachineConfig with the SSH key of the user `core`.
pub const SSH: &str = "99-worker-ssh";
/// Name of the `ImageDigestMirrorSet`.
pub const MIRRORS: &str = "cluster";

/// The `spec` of the MachineConfig [`FIPS`].
pub fn fips(is_on: bool) -> Value {
    json!({ "config": ignition(), "fips": is_on })
}

/// The `spec` of the MachineConfig [`SSH`].
pub fn ssh(key: Option<&str>) -> Value {
    let mut user = json!({ "name": "core" });
    if let Some(key) = key.map(str::trim).filter(|key| !key.is_empty()) {
        user["sshAuthorizedKeys"] = json!([key]);
    }
    let mut config = ignition();
    config["passwd"] = json!({ "users": [user] });
    json!({ "config": config })
}

/// The `spec` of the `ImageDigestMirrorSet` [`MIRRORS`], which exists only if the cluster has mirrors.
pub fn mirrors(sources: &[ImageContentSource]) -> Option<Value> {
    (!sources.is_empty()).then(|| json!({ "imageDigestMirrors": sources }))
}

/// The hash of a cluster's OpenShift configuration, by which a payload is not rendered with an older one: that of its JSON.
pub fn configuration_hash(configuration: Option<&ClusterConfiguration>) -> String {
    // Values in objects of the API always have a JSON form.
    let text = serde_json::to_string(&configuration).unwrap_or_default();
    hash(text.as_bytes())
}

fn ignition() -> Value {
    json!({ "ignition": { "version": "3.2.0" } })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A change of one of these texts replaces the nodes of all clusters.
    #[test]
    fn manifests_stay_as_they_are() {
        let source = ImageContentSource {
            source: "registry.example.com/a".to_owned(),
            mirrors: vec!["images.example.com/a".to_owned()],
        };
        for (spec, expected) in [
            (
                fips(true),
                json!({ "config": { "ignition": { "version": "3.2.0" } }, "fips": true }),
            ),
            (
                ssh(Some("ssh-ed25519 AAAA user\n")),
                json!({ "config": {
                    "ignition": { "version": "3.2.0" },
                    "passwd": { "users": [{ "name": "core", "sshAuthorizedKeys": ["ssh-ed25519 AAAA user"] }] },
                } }),
            ),
            (
                ssh(Some(" ")),
                json!({ "config": {
                    "ignition": { "version": "3.2.0" },
                    "passwd": { "users": [{ "name": "core" }] },
                } }),
            ),
            (
                mirrors(&[source]).unwrap_or_default(),
                json!({ "imageDigestMirrors": [
                    { "source": "registry.example.com/a", "mirrors": ["images.example.com/a"] },
                ] }),
            ),
        ] {
            assert_eq!(spec, expected);
        }
        assert_eq!(mirrors(&[]), None);
    }

    #[test]
    fn configurations_have_stable_hashes() {
        let parse = |value: Value| serde_json::from_value::<ClusterConfiguration>(value).ok();
        // FNV-1a of `null`, and of `{}`.
        assert_eq!(configuration_hash(None), "77074ba4");
        let empty = parse(json!({}));
        assert!(empty.is_some());
        assert_eq!(configuration_hash(empty.as_ref()), "5465b825");
        let proxy = parse(json!({ "proxy": { "httpProxy": "http://proxy.example.com" } }));
        assert_ne!(configuration_hash(proxy.as_ref()), "5465b825");
    }
}
