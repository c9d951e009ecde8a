//! The configuration of a pool's nodes: all manifests as one text, and the hashes that detect changes.

use std::collections::BTreeSet;

use api::hypershift::v1beta1::configuration::api_server::TlsProfileType;
use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use payload::{Minor, Version};
use serde_json::{Value, json};

use super::manifest::{Kind, Manifest};
use super::os_stream;
use crate::canonical;
use crate::names::node_pool as names;

/// The key of the ConfigMaps that hold manifests.
pub(crate) const KEY: &str = "config";

/// The most that all ConfigMaps of a pool have together. They are parsed in one go; and the Secret with the token has room
/// for 1 MiB of them, compressed.
const MOST_BYTES: usize = 2 << 20;

/// The first release whose nodes follow the TLS profile of the cluster.
const FIRST_WITH_TLS: Minor = Minor::of_4(23);

/// A ConfigMap with manifests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) content: Content,
}

/// The content of a ConfigMap under [`KEY`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    /// There is no such ConfigMap.
    Missing,
    /// It has no such key.
    Empty,
    Text(String),
}

/// All sources.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sources<'a> {
    /// Objects that the pool refers to.
    pub(crate) own: &'a [Source],
    /// Manifests from the control plane. They take precedence over generated ones.
    pub(crate) core: &'a [Source],
    /// Manifests from the tuning operator.
    pub(crate) tuning: &'a [Source],
    /// Generated manifests.
    pub(crate) made: &'a [Manifest],
}

/// The configuration as one text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) raw: String,
    /// The operating system of the nodes.
    pub(crate) os: os_stream::Resolved,
}

/// Other inputs of machines: by name, never by content, so that renewing a Secret replaces no node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Context {
    pub(crate) version: String,
    pub(crate) pull_secret: String,
    pub(crate) trust_bundle: String,
    pub(crate) global: String,
    /// The TLS profile as text, empty for the default; `None` for releases whose nodes do not follow it.
    pub(crate) tls: Option<String>,
}

/// The hashes that detect changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hashes {
    /// Of all that new machines depend on.
    pub(crate) with_version: String,
    /// The same without the release and without global configuration.
    pub(crate) without_version: String,
}

/// Why the configuration is invalid: all problems, each with a fix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub(crate) struct Refused(Vec<String>);

// === impl Sources ===

impl Sources<'_> {
    /// All manifests as one text, independent of their order.
    pub(crate) fn join(&self) -> Result<Config, Refused> {
        self.check_size().map_err(|error| Refused(vec![error]))?;
        let mut wrong = Vec::new();
        let mut read = |sources: &[Source]| {
            let mut manifests = Vec::new();
            for source in sources {
                match source.manifests() {
                    Ok(read) => manifests.extend(read),
                    Err(error) => wrong.push(error),
                }
            }
            manifests
        };
        let mut manifests = read(self.core);
        let made = self
            .made
            .iter()
            .filter(|made| !manifests.iter().any(|core| core.is_same(made)));
        let made: Vec<_> = made.cloned().collect();
        manifests.extend(made);
        manifests.extend(read(self.own));
        manifests.extend(read(self.tuning));
        wrong.extend(conflicts(&manifests));
        if !wrong.is_empty() {
            return Err(Refused(wrong));
        }
        let mut texts: Vec<_> = manifests.iter().map(Manifest::text).collect();
        texts.sort();
        let raw = texts.join("\n---\n");
        Ok(Config {
            raw,
            os: os_stream::Resolved::default(),
        })
    }

    /// Before anything is parsed.
    fn check_size(&self) -> Result<(), String> {
        let Self {
            own,
            core,
            tuning,
            made: _,
        } = self;
        let sources = [own, core, tuning].into_iter().copied().flatten();
        let total: usize = sources.clone().map(Source::size).sum();
        if total <= MOST_BYTES {
            return Ok(());
        }
        let largest = sources.max_by_key(|source| source.size());
        let (name, size) = largest.map_or(("", 0), |it| (it.name.as_str(), it.size()));
        Err(format!(
            "the ConfigMaps have {total} bytes of configuration together, and at most {MOST_BYTES} are supported. The \
             largest is ConfigMap {name} with {size} bytes: make it smaller"
        ))
    }
}

// === impl Source ===

impl Source {
    fn size(&self) -> usize {
        match &self.content {
            Content::Missing | Content::Empty => 0,
            Content::Text(text) => text.len(),
        }
    }

    fn manifests(&self) -> Result<Vec<Manifest>, String> {
        let Self { name, content } = self;
        match content {
            Content::Missing => Err(format!(
                "ConfigMap {name} does not exist: create it, or remove it from spec.config"
            )),
            Content::Empty => Err(format!(
                "ConfigMap {name} has no key {KEY}: add the manifests there"
            )),
            Content::Text(text) => {
                Manifest::read(text).map_err(|error| format!("ConfigMap {name}: {error}"))
            }
        }
    }
}

// === impl Context ===

impl Context {
    /// The context of the pools of a cluster that have this release.
    pub(crate) fn of(cluster: &HostedCluster, version: &Version) -> Self {
        let spec = &cluster.spec;
        let bundle = spec.additional_trust_bundle.as_ref();
        Self {
            version: version.to_string(),
            pull_secret: spec.pull_secret.name.clone(),
            trust_bundle: bundle.map(|it| it.name.clone()).unwrap_or_default(),
            global: global(cluster),
            tls: (version.minor() >= FIRST_WITH_TLS).then(|| tls(cluster)),
        }
    }

    /// As versions of this operator recorded it that left the TLS profile out.
    pub(crate) fn without_tls(&self) -> Self {
        Self {
            tls: None,
            ..self.clone()
        }
    }

    /// Identifies what the hashes cover besides the manifests and the release, with this entry for the stream.
    pub(crate) fn fingerprint(&self, os: &str) -> String {
        let Self {
            version: _,
            pull_secret,
            trust_bundle,
            global,
            tls,
        } = self;
        let mut text = format!("{pull_secret}\0{trust_bundle}\0{global}\0{os}");
        if let Some(tls) = tls {
            text.push('\0');
            text.push_str(tls);
        }
        names::hash(text.as_bytes())
    }
}

// === impl Config ===

impl Config {
    /// Identifies what the hashes cover besides the manifests and the release.
    pub(crate) fn fingerprint(&self, context: &Context) -> String {
        context.fingerprint(self.os.entry)
    }

    /// The hashes of this configuration in such a cluster.
    pub(crate) fn hashes(&self, context: &Context) -> Hashes {
        let Context {
            version,
            pull_secret,
            trust_bundle,
            global,
            tls,
        } = context;
        let tls = tls.as_deref().unwrap_or_default();
        let (raw, os) = (&self.raw, self.os.entry);
        let all = format!("{raw}{version}{pull_secret}{trust_bundle}{global}{tls}{os}");
        let stays = format!("{raw}{pull_secret}{trust_bundle}{os}");
        Hashes {
            with_version: names::hash(all.as_bytes()),
            without_version: names::hash(stays.as_bytes()),
        }
    }
}

/// What holds for all nodes of the cluster, as text. Nothing that is unset is in it: a field that is added to the API
/// must not replace a node.
pub(crate) fn global(cluster: &HostedCluster) -> String {
    let configuration = serde_json::to_value(&cluster.spec.configuration).unwrap_or_default();
    let part = |name: &str| pruned(configuration.get(name).cloned().unwrap_or_default());
    let global = pruned(json!({ "proxy": part("proxy"), "image": part("image") }));
    match global {
        Value::Null => String::new(),
        Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => canonical::text(&global),
    }
}

/// The TLS profile of the cluster as a line. Selecting the default one replaces no node.
fn tls(cluster: &HostedCluster) -> String {
    let configuration = cluster.spec.configuration.as_ref();
    let api_server = configuration.and_then(|it| it.api_server.as_ref());
    let profile = api_server.and_then(|it| it.tls_security_profile.as_ref());
    let Some(profile) = profile else {
        return String::new();
    };
    match profile.type_ {
        None | Some(TlsProfileType::Intermediate) => String::new(),
        Some(TlsProfileType::Old | TlsProfileType::Modern | TlsProfileType::Custom) => {
            let profile = pruned(serde_json::to_value(profile).unwrap_or_default());
            format!("{}\n", canonical::text(&profile))
        }
    }
}

/// The value without empty fields.
fn pruned(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(key, value)| (key, pruned(value)));
            let fields: serde_json::Map<_, _> =
                fields.filter(|(_, value)| !value.is_null()).collect();
            if fields.is_empty() {
                return Value::Null;
            }
            Value::Object(fields)
        }
        Value::Array(items) if items.is_empty() => Value::Null,
        Value::String(text) if text.is_empty() => Value::Null,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            value
        }
    }
}

/// Conflicting manifests.
fn conflicts(manifests: &[Manifest]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for Manifest { kind, name, .. } in manifests {
        if !seen.insert((kind.as_str(), name)) {
            let kind = kind.as_str();
            wrong.push(format!(
                "{kind} {name} is defined more than once: rename or remove one"
            ));
        }
    }
    let kubelet = manifests.iter().filter(|it| it.kind == Kind::KubeletConfig);
    let names: BTreeSet<_> = kubelet.map(|it| it.name.as_str()).collect();
    if names.len() > 1 {
        let names = Vec::from_iter(names).join(", ");
        wrong.push(format!(
            "a NodePool supports one KubeletConfig, and several are given ({names}): merge them"
        ));
    }
    wrong
}

#[cfg(test)]
mod tests;
