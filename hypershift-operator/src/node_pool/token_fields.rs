//! What a token's Secret has for the ignition server of a cluster, besides the configuration: hashes that it compares
//! with what it renders from, and the form of the configuration that it reads. Pure.

use api::annotations::cluster::RESTORED_FROM_BACKUP;
use api::hypershift::v1beta1::node_pool::NodePool;
use control_plane_component::node_config::configuration_hash;
use payload::{Capabilities, Capability};

use super::config::Config;
use super::facts::Facts;
use super::workload;
use crate::names::node_pool as names;

/// The form of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Compressed, and encoded as text.
    Encoded,
    /// Compressed only: earlier ignition servers do not decode it.
    Compressed,
}

/// Whether machines have fetched the payload of a new token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reached {
    /// The ignition server reports it.
    Reported,
    /// The pool's machines are older than its token.
    Assumed,
}

/// The fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fields {
    pub(crate) form: Form,
    pub(crate) reached: Reached,
    /// Hashes of contents. A payload is not rendered with other ones. What does not exist is empty, and not compared.
    pub(crate) pull_secret: String,
    pub(crate) trust_bundle: String,
    pub(crate) configuration: String,
    pub(crate) cloud_config: String,
    /// The operating system stream.
    pub(crate) os_stream: &'static str,
    /// What nodes register with, as JSON; empty if there are no taints. It is no part of the hash: nodes that run get them
    /// by their machine.
    pub(crate) taints: String,
}

// === impl Fields ===

impl Fields {
    pub(crate) fn of(facts: &Facts, config: &Config) -> Self {
        let bundle = facts.trust_bundle.as_ref();
        let annotations = facts.cluster.metadata.annotations.as_ref();
        let is_restored = annotations.is_some_and(|it| RESTORED_FROM_BACKUP.is_set(it));
        Self {
            form: form(&facts.capabilities),
            // No machine fetches its configuration again after a restore, and repair waits for the first one that does.
            reached: if is_restored {
                Reached::Assumed
            } else {
                Reached::Reported
            },
            pull_secret: names::bytes_hash(&facts.pull_secret),
            trust_bundle: bundle.map_or_else(String::new, |it| names::hash(it.as_bytes())),
            configuration: configuration_hash(facts.cluster.spec.configuration.as_ref()),
            cloud_config: names::data_hash(&facts.cloud_config),
            os_stream: config.os.stream.name(),
            taints: taints(&facts.pool),
        }
    }
}

fn taints(pool: &NodePool) -> String {
    if pool.spec.taints.is_empty() {
        return String::new();
    }
    workload::taints(pool)
}

/// The form that the ignition server of such a control plane reads. This project's reads each; that of a release whose
/// labels are unknown is assumed to be a current one.
fn form(capabilities: &Capabilities) -> Form {
    let current = [
        Capability::DecompressesConfig,
        Capability::V2,
        Capability::PrivateTypes,
    ];
    if current.iter().any(|it| capabilities.has(*it)) {
        return Form::Encoded;
    }
    Form::Compressed
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::node_pool::fixtures;
    use crate::node_pool::os_stream::{Resolved, Stream};

    fn config() -> Config {
        Config {
            raw: "kind: MachineConfig".to_owned(),
            os: Resolved::default(),
        }
    }

    /// The hashes were computed by the definitions of the system that older ignition servers are from.
    #[test]
    fn contents_are_hashed_as_ignition_servers_hash_them() {
        let mut facts = fixtures::facts();
        let bare = Fields::of(&facts, &config());
        let expected = Fields {
            form: Form::Compressed,
            reached: Reached::Reported,
            // Of "[123 125]", "null" and the name of the default stream.
            pull_secret: "829b997b".to_owned(),
            trust_bundle: String::new(),
            configuration: "77074ba4".to_owned(),
            cloud_config: String::new(),
            os_stream: "rhel-9",
            taints: String::new(),
        };
        assert_eq!(bare, expected);
        facts.trust_bundle = Some("foobar".to_owned());
        facts.cluster.spec.configuration = serde_json::from_value(json!({})).unwrap();
        let data = [("cloud.conf", "{}"), ("b", "x")];
        facts.cloud_config = data
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into();
        let mut config = config();
        config.os.stream = Stream::Rhel10;
        let full = Fields::of(&facts, &config);
        assert_eq!(full.trust_bundle, "bf9cf968");
        assert_eq!(full.configuration, "5465b825");
        assert_eq!(full.cloud_config, names::hash(b"b\0x\0cloud.conf\0{}\0"));
        assert_eq!(full.os_stream, "rhel-10");
    }

    /// ConfigMap machine-config-server of the control plane has this hash of the same configuration: the tests of
    /// `machine_config` in control-plane-operator have the same value.
    #[test]
    fn the_configuration_has_the_hash_of_the_control_plane() {
        let mut facts = fixtures::facts();
        let configuration = json!({ "proxy": {
            "httpProxy": "http://proxy.example.com:3128",
            "noProxy": ".example.com",
            "readinessEndpoints": ["https://example.com"],
            "trustedCA": { "name": "proxy-ca" },
        } });
        facts.cluster.spec.configuration = serde_json::from_value(configuration).unwrap();
        assert_eq!(Fields::of(&facts, &config()).configuration, "ea9a9489");
    }

    #[test]
    fn only_current_ignition_servers_get_encoded_configuration() {
        let labels = |all: &[Capability]| {
            let labels = all.iter().map(|it| (it.label(), "true".to_owned()));
            Capabilities::of_labels(&labels.collect::<BTreeMap<_, _>>())
        };
        for (name, capabilities, expected) in [
            ("earlier", labels(&[]), Form::Compressed),
            (
                "without the form",
                labels(&[Capability::Subcommands]),
                Form::Compressed,
            ),
            (
                "with the form",
                labels(&[Capability::DecompressesConfig]),
                Form::Encoded,
            ),
            (
                "this project's",
                labels(&[Capability::PrivateTypes]),
                Form::Encoded,
            ),
            ("unknown", Capabilities::unknown(), Form::Encoded),
        ] {
            assert_eq!(form(&capabilities), expected, "{name}");
        }
    }

    #[test]
    fn machines_of_restored_clusters_have_reached_ignition() {
        let mut facts = fixtures::facts();
        let annotations = facts.cluster.metadata.annotations.get_or_insert_default();
        annotations.insert(RESTORED_FROM_BACKUP.key().to_owned(), String::new());
        assert_eq!(Fields::of(&facts, &config()).reached, Reached::Assumed);
    }
}
