//! The tuning of a pool's nodes: manifests of the kinds `Tuned` and `PerformanceProfile`, which the tuning operator of the
//! control plane gets as ConfigMaps, and what it reports about them. Pure.

mod manifest;
mod profile;
mod schema;
mod status;

use std::collections::{BTreeMap, BTreeSet};

use api::annotations::node_pool::NODE_POOL;
use api::hypershift::v1beta1::capabilities::OptionalCapability;
use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use api::hypershift::v1beta1::node_pool::NodePool;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use self::manifest::{Kind, Manifest};
use super::config::{Content, Source};
use super::facts::Facts;
use crate::facts::references::is_reserved;
use crate::names::{LONGEST_LABEL, node_pool as names};
pub(crate) use status::{clear, report};

/// The key of ConfigMaps with manifests, those of users and those of the control plane.
pub(crate) const KEY: &str = "tuning";
/// The key of ConfigMaps in which the tuning operator reports about a performance profile.
pub(crate) const REPORT_KEY: &str = "status";

/// Labels by which the tuning operator finds its ConfigMaps, and marks the one that it writes.
const TUNED: &str = "hypershift.openshift.io/tuned-config";
const PROFILE: &str = "hypershift.openshift.io/performanceprofile-config";
const REPORT: &str = "hypershift.openshift.io/nto-generated-performance-profile-status";

/// The most that the manifests of a pool have together, before and after they are normalized: they have to fit into one
/// ConfigMap.
const MOST_BYTES: usize = 1_000_000;

/// What was read about the tuning of a pool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Observed {
    /// The ConfigMaps that the pool refers to.
    pub(crate) sources: Vec<Source>,
    /// The ConfigMaps of the control plane namespace that were written for the pool.
    pub(crate) written: Vec<Written>,
    /// The names of all other ConfigMaps there.
    pub(crate) others: BTreeSet<String>,
    /// What the tuning operator reports about the pool's performance profile.
    pub(crate) reports: Vec<Source>,
}

/// A ConfigMap that was written for the pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) name: String,
    pub(crate) is_profile: bool,
}

/// What a ConfigMap of the control plane namespace is to a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// It has the pool's `Tuned` manifests.
    Tuned,
    /// It has the pool's performance profile.
    Profile,
    /// The tuning operator reports in it.
    Report,
    /// It has nothing to do with the pool's tuning.
    Other,
}

/// The valid tuning of a pool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tuning {
    /// All `Tuned` manifests as one text, if there are any.
    tuned: Option<String>,
    profile: Option<Profile>,
}

/// A performance profile.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Profile {
    /// The ConfigMap that it is from.
    source: String,
    text: String,
}

/// The ConfigMaps of a pool's tuning.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Maps {
    pub(crate) desired: Vec<ConfigMap>,
    /// The names of those that are not desired any more.
    pub(crate) obsolete: Vec<String>,
}

/// Why the tuning is invalid: all problems, each with a fix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub(crate) struct Refused(Vec<String>);

/// A ConfigMap for the tuning operator.
struct Desired<'a> {
    name: String,
    label: &'static str,
    text: &'a str,
    /// What it has, and what to do if it cannot have its name.
    content: &'static str,
    remedy: String,
}

/// Whether the cluster has a tuning operator.
pub(crate) fn is_enabled(cluster: &HostedCluster) -> bool {
    let disabled = &cluster.spec.capabilities.disabled;
    !disabled.contains(&OptionalCapability::NodeTuning)
}

/// What a ConfigMap of the control plane namespace is to this pool.
pub(crate) fn role(metadata: &ObjectMeta, pool: &NodePool) -> Role {
    if !is_of(metadata, pool) {
        return Role::Other;
    }
    let has = |label: &str| label_of(metadata, label) == Some("true");
    if has(TUNED) {
        Role::Tuned
    } else if has(PROFILE) {
        Role::Profile
    } else if has(REPORT) {
        Role::Report
    } else {
        Role::Other
    }
}

/// Whether a ConfigMap of the control plane namespace may be written for this pool: it has to be the pool's tuning already.
pub(crate) fn may_write(metadata: &ObjectMeta, pool: &NodePool) -> bool {
    matches!(role(metadata, pool), Role::Tuned | Role::Profile)
}

/// Whether it is the pool's: by its annotation, and without one by its label. The tuning operator may set the label only.
pub(super) fn is_of(metadata: &ObjectMeta, pool: &NodePool) -> bool {
    let annotations = metadata.annotations.as_ref();
    match annotations.and_then(|it| it.get(NODE_POOL.key())) {
        Some(reference) => *reference == names::reference(pool),
        None => label_of(metadata, NODE_POOL.key()) == Some(names::of(pool)),
    }
}

/// A label of an object.
pub(super) fn label_of<'a>(metadata: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    let labels = metadata.labels.as_ref()?;
    labels.get(key).map(String::as_str)
}

// === impl Observed ===

impl Observed {
    /// Whether a performance profile is in use, whatever the pool refers to now.
    pub(crate) fn has_profile(&self) -> bool {
        self.written.iter().any(|it| it.is_profile)
    }
}

// === impl Tuning ===

impl Tuning {
    /// Reads all manifests of a pool.
    pub(crate) fn read(facts: &Facts) -> Result<Self, Refused> {
        let mut seen = BTreeSet::new();
        let sources = facts.tuning_inputs.sources.iter();
        let sources: Vec<_> = sources.filter(|it| seen.insert(&it.name)).collect();
        check_size(&sources).map_err(|error| Refused(vec![error]))?;
        let mut wrong = Vec::new();
        let mut found = Vec::new();
        for source in sources {
            match manifests(source) {
                Ok(read) => found.extend(read.into_iter().map(|it| (source.name.as_str(), it))),
                Err(errors) => wrong.extend(errors),
            }
        }
        let (profiles, tuned): (Vec<_>, Vec<_>) = found
            .into_iter()
            .partition(|(_, it)| it.kind == Kind::PerformanceProfile);
        wrong.extend(repeated(&tuned));
        wrong.extend(several(&profiles));
        let tuning = Self {
            tuned: joined(tuned),
            profile: profiles.into_iter().next().map(|(source, it)| Profile {
                source: source.to_owned(),
                text: it.text,
            }),
        };
        wrong.extend(tuning.conflicts(facts));
        if wrong.is_empty() {
            Ok(tuning)
        } else {
            Err(Refused(wrong))
        }
    }

    /// Whether a performance profile is part of it.
    pub(crate) fn has_profile(&self) -> bool {
        self.profile.is_some()
    }

    /// The ConfigMaps that the tuning operator is to have, and those that it is not to have any more.
    pub(crate) fn maps(&self, facts: &Facts) -> Maps {
        let desired = self.desired(facts.name());
        let written = facts.tuning_inputs.written.iter();
        let obsolete = written.filter(|it| desired.iter().all(|desired| desired.name != it.name));
        Maps {
            obsolete: obsolete.map(|it| it.name.clone()).collect(),
            desired: desired.iter().map(|it| it.config_map(facts)).collect(),
        }
    }

    fn desired(&self, pool: &str) -> Vec<Desired<'_>> {
        let tuned = self.tuned.as_deref().map(|text| Desired {
            name: names::tuned(pool),
            label: TUNED,
            text,
            content: "the Tuned manifests",
            remedy: "delete it if it is not used, or create a NodePool of another name".to_owned(),
        });
        let profile = self.profile.as_ref().map(|profile| Desired {
            name: names::performance_profile(&profile.source, pool),
            label: PROFILE,
            text: &profile.text,
            content: "the PerformanceProfile",
            remedy: format!("rename ConfigMap {}", profile.source),
        });
        tuned.into_iter().chain(profile).collect()
    }

    /// Why the ConfigMaps cannot be written.
    fn conflicts(&self, facts: &Facts) -> Vec<String> {
        let pool = facts.name();
        let mut wrong = Vec::new();
        if let Some(Profile { source, text: _ }) = &self.profile
            && names::performance_profile(source, pool) == names::tuned(pool)
        {
            wrong.push(format!(
                "the copy of ConfigMap {source}, which has a PerformanceProfile, has the name of the copy of the Tuned \
                 manifests: rename ConfigMap {source}"
            ));
        }
        let desired = self.desired(pool);
        if !desired.is_empty() && pool.len() > LONGEST_LABEL {
            wrong.push(format!(
                "the name of the NodePool has {} characters, and tuning supports at most {LONGEST_LABEL}: create a \
                 NodePool with a shorter name",
                pool.len()
            ));
        }
        for it in &desired {
            wrong.extend(it.conflict(facts));
        }
        wrong
    }
}

// === impl Desired ===

impl Desired<'_> {
    fn config_map(&self, facts: &Facts) -> ConfigMap {
        config_map(facts, &self.name, &[self.label], (KEY, self.text))
    }

    /// Why it cannot be written.
    fn conflict(&self, facts: &Facts) -> Option<String> {
        let Self {
            name,
            label: _,
            text,
            content,
            remedy,
        } = self;
        if text.len() > MOST_BYTES {
            return Some(format!(
                "the text of {content} has {} bytes, and at most {MOST_BYTES} are supported: make it smaller",
                text.len()
            ));
        }
        let is_taken = facts.tuning_inputs.others.contains(name);
        let is_taken = is_taken || is_reserved(name, facts.infra_id());
        is_taken.then(|| {
            format!(
                "ConfigMap {}/{name}, which is to have {content}, is not of this NodePool: {remedy}",
                facts.namespace
            )
        })
    }
}

/// A ConfigMap of the pool in the control plane namespace, with these labels.
pub(super) fn config_map(
    facts: &Facts,
    name: &str,
    labels: &[&str],
    (key, text): (&str, &str),
) -> ConfigMap {
    let labels = labels.iter().map(|label| (*label, "true"));
    let labels = labels.chain([(NODE_POOL.key(), facts.name())]);
    let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let annotation = (NODE_POOL.key().to_owned(), names::reference(&facts.pool));
    ConfigMap {
        metadata: ObjectMeta {
            namespace: Some(facts.namespace.clone()),
            name: Some(name.to_owned()),
            labels: Some(labels.collect()),
            annotations: Some([annotation].into()),
            ..ObjectMeta::default()
        },
        data: Some([(key.to_owned(), text.to_owned())].into()),
        immutable: Some(false),
        ..ConfigMap::default()
    }
}

/// Before anything is parsed.
fn check_size(sources: &[&Source]) -> Result<(), String> {
    let size = |it: &Source| match &it.content {
        Content::Missing | Content::Empty => 0,
        Content::Text(text) => text.len(),
    };
    let total: usize = sources.iter().map(|it| size(it)).sum();
    if total <= MOST_BYTES {
        return Ok(());
    }
    let largest = sources.iter().max_by_key(|it| size(it));
    let (name, bytes) = largest.map_or(("", 0), |it| (it.name.as_str(), size(it)));
    Err(format!(
        "the ConfigMaps of spec.tuningConfig have {total} bytes together, and at most {MOST_BYTES} are supported. The \
         largest is ConfigMap {name} with {bytes} bytes: make it smaller"
    ))
}

/// The manifests of a ConfigMap, or all that is wrong with them.
fn manifests(source: &Source) -> Result<Vec<Manifest>, Vec<String>> {
    let Source { name, content } = source;
    match content {
        Content::Missing => Err(vec![format!(
            "ConfigMap {name} does not exist: create it, or remove it from spec.tuningConfig"
        )]),
        Content::Empty => Err(vec![format!(
            "ConfigMap {name} has no key {KEY}: add a Tuned or a PerformanceProfile there"
        )]),
        Content::Text(text) => Manifest::read(text).map_err(|errors| {
            let errors = errors.into_iter();
            errors
                .map(|error| format!("ConfigMap {name}: {error}"))
                .collect()
        }),
    }
}

/// All texts as one, whatever the order of the ConfigMaps. The same manifest is there once.
fn joined(tuned: Vec<(&str, Manifest)>) -> Option<String> {
    let texts: BTreeSet<_> = tuned.into_iter().map(|(_, it)| it.text).collect();
    (!texts.is_empty()).then(|| Vec::from_iter(texts).join("---\n"))
}

/// Different manifests of one name: the tuning operator would use one of them.
fn repeated(tuned: &[(&str, Manifest)]) -> Vec<String> {
    let mut by_name: BTreeMap<&str, (BTreeSet<&str>, BTreeSet<&str>)> = BTreeMap::new();
    for (source, it) in tuned {
        let (sources, texts) = by_name.entry(&it.name).or_default();
        sources.insert(source);
        texts.insert(&it.text);
    }
    let repeated = by_name.iter().filter(|(_, (_, texts))| texts.len() > 1);
    let messages = repeated.map(|(name, (sources, _))| {
        format!(
            "Tuned {name} is defined more than once (ConfigMaps {}): rename or remove one",
            list(sources)
        )
    });
    messages.collect()
}

fn several(profiles: &[(&str, Manifest)]) -> Option<String> {
    if profiles.len() < 2 {
        return None;
    }
    let sources: BTreeSet<_> = profiles.iter().map(|(source, _)| *source).collect();
    Some(format!(
        "a NodePool supports one PerformanceProfile, and {} are given (ConfigMaps {}): keep one of them",
        profiles.len(),
        list(&sources)
    ))
}

fn list(names: &BTreeSet<&str>) -> String {
    names.iter().copied().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
