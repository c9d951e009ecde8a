//! Copies of the ConfigMaps with a pool's KubeletConfig and ContainerRuntimeConfig in the control plane namespace. From
//! there they get into the hosted cluster, where operators read how its nodes are configured. Pure.

use std::collections::BTreeSet;

use api::hypershift::v1beta1::node_pool::NodePool;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::config::{Content, KEY, Source};
use super::facts::Facts;
use super::manifest::{Kind, Manifest};
use super::tuning;
use crate::facts::references::is_reserved;
use crate::names::{LONGEST_LABEL, node_pool as names};

/// Labels of copies: that they are, and what they have.
const MIRRORED: &str = "hypershift.openshift.io/mirrored-config";
const KUBELET: &str = "hypershift.openshift.io/kubeletconfig-config";
const RUNTIME: &str = "hypershift.openshift.io/containerruntimeconfig-config";

/// The ConfigMaps of the control plane namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Observed {
    /// The copies of the pool.
    pub(crate) written: Vec<Written>,
    /// The names of all others.
    pub(crate) others: BTreeSet<String>,
}

/// A copy that was written for the pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) name: String,
    /// Earlier versions of HyperShift wrote such copies. They have to be created again.
    pub(crate) is_immutable: bool,
}

/// The copies of a pool.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Maps {
    pub(crate) desired: Vec<ConfigMap>,
    /// The names of those that are desired and have to be deleted first.
    pub(crate) immutable: Vec<String>,
    /// The names of those that are not desired any more.
    pub(crate) obsolete: Vec<String>,
}

/// A copy of a ConfigMap.
struct Mirror<'a> {
    name: String,
    source: &'a str,
    text: &'a str,
    labels: Vec<&'static str>,
}

/// Whether a ConfigMap of the control plane namespace is a copy of this pool.
pub(crate) fn is_copy(metadata: &ObjectMeta, pool: &NodePool) -> bool {
    tuning::is_of(metadata, pool) && tuning::label_of(metadata, MIRRORED) == Some("true")
}

/// The copies of a valid configuration.
pub(crate) fn maps(facts: &Facts) -> Maps {
    let copies: Vec<_> = copies(facts)
        .into_iter()
        .filter(|it| it.conflict(facts).is_none())
        .collect();
    let is_desired = |name: &str| copies.iter().any(|it| it.name == name);
    let (desired, obsolete): (Vec<_>, Vec<_>) = facts
        .mirrored
        .written
        .iter()
        .partition(|it| is_desired(&it.name));
    let immutable = desired.iter().filter(|it| it.is_immutable);
    Maps {
        immutable: immutable.map(|it| it.name.clone()).collect(),
        obsolete: obsolete.iter().map(|it| it.name.clone()).collect(),
        desired: copies.iter().map(|it| it.config_map(facts)).collect(),
    }
}

/// Why copies cannot be written, each with a fix.
pub(crate) fn conflicts(facts: &Facts) -> Vec<String> {
    let copies = copies(facts);
    if !copies.is_empty() && facts.name().len() > LONGEST_LABEL {
        return vec![format!(
            "the name of the NodePool has {} characters, and copies support at most {LONGEST_LABEL}: create a NodePool \
             with a shorter name",
            facts.name().len()
        )];
    }
    copies.iter().filter_map(|it| it.conflict(facts)).collect()
}

fn copies(facts: &Facts) -> Vec<Mirror<'_>> {
    let mut seen = BTreeSet::new();
    let sources = facts.own.iter().filter(|it| seen.insert(&it.name));
    sources
        .filter_map(|source| Mirror::of(source, facts.name()))
        .collect()
}

// === impl Mirror ===

impl<'a> Mirror<'a> {
    /// The copy of a ConfigMap; nothing if it has neither kind of configuration.
    fn of(source: &'a Source, pool: &str) -> Option<Self> {
        let Content::Text(text) = &source.content else {
            return None;
        };
        let manifests = Manifest::read(text).ok()?;
        let has = |kind: Kind| manifests.iter().any(|it| it.kind == kind);
        let labels = [
            (Kind::KubeletConfig, KUBELET),
            (Kind::ContainerRuntimeConfig, RUNTIME),
        ];
        let labels = labels.into_iter().filter(|(kind, _)| has(*kind));
        let labels: Vec<_> = labels.map(|(_, label)| label).collect();
        (!labels.is_empty()).then(|| Self {
            name: names::joined(&source.name, pool, LONGEST_LABEL),
            source: &source.name,
            text,
            labels,
        })
    }

    fn config_map(&self, facts: &Facts) -> ConfigMap {
        let labels = [&self.labels[..], &[MIRRORED]].concat();
        tuning::config_map(facts, &self.name, &labels, (KEY, self.text))
    }

    /// Why it cannot be written.
    fn conflict(&self, facts: &Facts) -> Option<String> {
        let Self { name, source, .. } = self;
        let is_taken = facts.mirrored.others.contains(name);
        let is_taken = is_taken || is_reserved(name, facts.infra_id());
        let is_long = facts.name().len() > LONGEST_LABEL;
        (is_taken || is_long).then(|| {
            format!(
                "ConfigMap {}/{name}, which is to have a copy of ConfigMap {source}, is not of this NodePool: rename \
                 ConfigMap {source}",
                facts.namespace
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use api::annotations::node_pool::NODE_POOL;

    use super::*;
    use crate::node_pool::fixtures;

    const KUBELET_CONFIG: &str = "apiVersion: machineconfiguration.openshift.io/v1\nkind: KubeletConfig\n\
                                  metadata: {name: a}\nspec: {kubeletConfig: {maxPods: 300}}\n";
    const RUNTIME_CONFIG: &str = "apiVersion: machineconfiguration.openshift.io/v1\nkind: ContainerRuntimeConfig\n\
                                  metadata: {name: a}\nspec: {containerRuntimeConfig: {pidsLimit: 9}}\n";
    const MACHINE_CONFIG: &str = "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\n\
                                  metadata: {name: a}\nspec: {}\n";

    fn facts(text: &str) -> Facts {
        let mut facts = fixtures::facts();
        facts.own = vec![Source {
            name: "limits".to_owned(),
            content: Content::Text(text.to_owned()),
        }];
        facts
    }

    #[test]
    fn configuration_that_operators_read_is_copied() {
        let both = format!("{KUBELET_CONFIG}---\n{RUNTIME_CONFIG}");
        for (text, expected) in [
            (KUBELET_CONFIG, vec![KUBELET]),
            (RUNTIME_CONFIG, vec![RUNTIME]),
            (both.as_str(), vec![RUNTIME, KUBELET]),
            (MACHINE_CONFIG, vec![]),
            ("a: [", vec![]),
        ] {
            let facts = facts(text);
            let found = maps(&facts);
            if expected.is_empty() {
                assert_eq!(found, Maps::default(), "{text}");
                continue;
            }
            let [map] = &*found.desired else {
                panic!("{text}: {found:?}");
            };
            assert_eq!(map.metadata.name.as_deref(), Some("limits-workers"));
            let labels = map.metadata.labels.clone().unwrap();
            let kinds = labels.keys().map(String::as_str);
            let kinds = kinds.filter(|it| [RUNTIME, KUBELET].contains(it));
            assert_eq!(kinds.collect::<Vec<_>>(), expected, "{text}");
            assert_eq!(labels[MIRRORED], "true", "{text}");
            assert_eq!(labels[NODE_POOL.key()], "workers", "{text}");
            assert_eq!(map.data.as_ref().unwrap()[KEY], text);
            assert_eq!(map.immutable, Some(false), "{text}");
            assert!(is_copy(&map.metadata, &facts.pool), "{text}");
        }
    }

    #[test]
    fn immutable_copies_are_replaced_and_obsolete_ones_deleted() {
        let mut facts = facts(KUBELET_CONFIG);
        let written = |name: &str, is_immutable| Written {
            name: name.to_owned(),
            is_immutable,
        };
        for (name, found, immutable, obsolete) in [
            ("none", vec![], vec![], vec![]),
            (
                "up to date",
                vec![written("limits-workers", false)],
                vec![],
                vec![],
            ),
            (
                "immutable",
                vec![written("limits-workers", true)],
                vec!["limits-workers"],
                vec![],
            ),
            (
                "obsolete",
                vec![written("older-workers", true)],
                vec![],
                vec!["older-workers"],
            ),
        ] {
            facts.mirrored.written = found;
            let maps = maps(&facts);
            assert_eq!(maps.desired.len(), 1, "{name}");
            assert_eq!(maps.immutable, immutable, "{name}");
            assert_eq!(maps.obsolete, obsolete, "{name}");
        }
    }

    /// Check T09: names that users choose are in the names of copies.
    #[test]
    fn a_copy_takes_the_name_of_no_other_object() {
        for (name, change, expected) in [
            ("free", (|_| {}) as fn(&mut Facts), None),
            (
                "taken",
                |it| {
                    it.mirrored.others.insert("limits-workers".to_owned());
                },
                Some("ConfigMap clusters-dev/limits-workers, which is to have"),
            ),
            (
                "reserved",
                |it| {
                    it.own[0].name = "ignition".to_owned();
                    it.pool.metadata.name = Some("server".to_owned());
                },
                Some("rename ConfigMap ignition"),
            ),
            (
                "a long name",
                |it| it.pool.metadata.name = Some("w".repeat(64)),
                Some("has 64 characters, and copies support at most 63"),
            ),
        ] {
            let mut facts = facts(KUBELET_CONFIG);
            change(&mut facts);
            let conflicts = conflicts(&facts);
            assert_eq!(
                conflicts.len(),
                usize::from(expected.is_some()),
                "{conflicts:?}"
            );
            assert_eq!(
                maps(&facts).desired.is_empty(),
                expected.is_some(),
                "{name}"
            );
            let expected = expected.unwrap_or_default();
            assert!(conflicts.concat().contains(expected), "{conflicts:?}");
        }
    }
}
