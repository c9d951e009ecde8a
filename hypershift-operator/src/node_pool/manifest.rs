//! One manifest of a pool's configuration: parsed, validated, and normalized to the form that is hashed and rendered.

use serde_json::{Map, Value, json};

use crate::canonical;

/// The pool that MachineConfigs are for: a hosted cluster has workers only.
const ROLE_LABEL: &str = "machineconfiguration.openshift.io/role";
/// Labels of the pools that the machine config operator creates.
const BUILT_IN: &str = "machineconfiguration.openshift.io/mco-built-in";

/// The version of a `ClusterImagePolicy`. Its fields are those of the earlier v1alpha1.
const POLICY_VERSION: &str = "config.openshift.io/v1";

/// The most aliases of a ConfigMap.
const ALIASES: usize = 1_000;
const TOO_MANY_ALIASES: &str =
    "its anchors and aliases expand to too much: write the values out in place of aliases";

/// The supported kinds of configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    MachineConfig,
    KubeletConfig,
    ContainerRuntimeConfig,
    ImageContentSourcePolicy,
    ImageDigestMirrorSet,
    ImageTagMirrorSet,
    ClusterImagePolicy,
}

/// A manifest that may be rendered.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Manifest {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    object: Value,
}

/// Why a manifest is refused; it follows the name of where it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    /// The error text may quote the document, and a MachineConfig may have secrets: only the position is reported.
    #[error("document {document} is not valid YAML (line {line}, column {column})")]
    NoYaml {
        document: usize,
        line: u64,
        column: u64,
    },
    #[error("document {document} exceeds a limit (line {line}, column {column}): {limit}")]
    TooLarge {
        document: usize,
        line: u64,
        column: u64,
        /// The limit, and what to do.
        limit: &'static str,
    },
    #[error(
        "document {document} is of kind {kind:?} in {api_version:?}, which is not supported as node configuration: use {}",
        Kind::all()
    )]
    Kind {
        document: usize,
        kind: String,
        api_version: String,
    },
    #[error("document {document}, a {kind}, has no metadata.name: add it")]
    NoName { document: usize, kind: &'static str },
    #[error("{kind} {name} has no spec: add it, or remove the object")]
    NoSpec { kind: &'static str, name: String },
}

// === impl Kind ===

impl Kind {
    const ALL: [Self; 7] = [
        Self::MachineConfig,
        Self::KubeletConfig,
        Self::ContainerRuntimeConfig,
        Self::ImageContentSourcePolicy,
        Self::ImageDigestMirrorSet,
        Self::ImageTagMirrorSet,
        Self::ClusterImagePolicy,
    ];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::MachineConfig => "MachineConfig",
            Self::KubeletConfig => "KubeletConfig",
            Self::ContainerRuntimeConfig => "ContainerRuntimeConfig",
            Self::ImageContentSourcePolicy => "ImageContentSourcePolicy",
            Self::ImageDigestMirrorSet => "ImageDigestMirrorSet",
            Self::ImageTagMirrorSet => "ImageTagMirrorSet",
            Self::ClusterImagePolicy => "ClusterImagePolicy",
        }
    }

    fn group(self) -> &'static str {
        match self {
            Self::MachineConfig | Self::KubeletConfig | Self::ContainerRuntimeConfig => {
                "machineconfiguration.openshift.io"
            }
            Self::ImageContentSourcePolicy => "operator.openshift.io",
            Self::ImageDigestMirrorSet | Self::ImageTagMirrorSet | Self::ClusterImagePolicy => {
                "config.openshift.io"
            }
        }
    }

    fn find(api_version: &str, kind: &str) -> Option<Self> {
        let (group, _) = api_version.split_once('/')?;
        let mut all = Self::ALL.into_iter();
        all.find(|known| known.as_str() == kind && known.group() == group)
    }

    fn all() -> String {
        Self::ALL.map(Self::as_str).join(", ")
    }
}

// === impl Manifest ===

impl Manifest {
    /// Splits a text into manifests.
    pub(crate) fn read(text: &str) -> Result<Vec<Self>, Refused> {
        let documents = documents(text)?.into_iter();
        documents
            .map(|(number, document)| Self::parse(number, document))
            .collect()
    }

    /// A generated manifest of a supported kind.
    pub(crate) fn machine_config(name: &str, spec: &Value) -> Self {
        let object = json!({
            "apiVersion": "machineconfiguration.openshift.io/v1",
            "kind": "MachineConfig",
            "metadata": { "name": name },
            "spec": spec,
        });
        Self {
            kind: Kind::MachineConfig,
            name: name.to_owned(),
            object: for_workers(Kind::MachineConfig, object),
        }
    }

    /// The same for a mirror of registries.
    pub(crate) fn mirrors(name: &str, spec: &Value) -> Self {
        Self {
            kind: Kind::ImageDigestMirrorSet,
            name: name.to_owned(),
            object: json!({
                "apiVersion": "config.openshift.io/v1",
                "kind": "ImageDigestMirrorSet",
                "metadata": { "name": name },
                "spec": spec,
            }),
        }
    }

    /// Whether both have the same kind and name.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (self.kind, &self.name) == (other.kind, &other.name)
    }

    /// As it is hashed and rendered.
    pub(crate) fn text(&self) -> String {
        canonical::text(&self.object)
    }

    fn parse(document: usize, object: Value) -> Result<Self, Refused> {
        let text = |pointer: &str| {
            let found = object.pointer(pointer).and_then(Value::as_str);
            found.unwrap_or_default().to_owned()
        };
        let (api_version, name) = (text("/apiVersion"), text("/metadata/name"));
        let word = text("/kind");
        let kind = Kind::find(&api_version, &word).ok_or(Refused::Kind {
            document,
            kind: word,
            api_version,
        })?;
        if name.is_empty() {
            let kind = kind.as_str();
            return Err(Refused::NoName { document, kind });
        }
        if !object["spec"].is_object() {
            let kind = kind.as_str();
            return Err(Refused::NoSpec { kind, name });
        }
        let object = for_workers(kind, object);
        Ok(Self { kind, name, object })
    }
}

// === impl Refused ===

impl Refused {
    fn of_yaml(text: &str, error: &serde_saphyr::Error) -> Self {
        let (line, column) = error
            .location()
            .map_or((0, 0), |at| (at.line(), at.column()));
        let before = text.lines().take(usize::try_from(line).unwrap_or_default());
        let document = 1 + before.filter(|line| line.trim_end() == "---").count();
        match limit(error) {
            Some(limit) => Self::TooLarge {
                document,
                line,
                column,
                limit,
            },
            None => Self::NoYaml {
                document,
                line,
                column,
            },
        }
    }
}

/// The documents of a text with their numbers, without empty ones.
pub(crate) fn documents(text: &str) -> Result<Vec<(usize, Value)>, Refused> {
    let documents: Vec<Value> = serde_saphyr::from_multiple_with_options(text, options(text))
        .map_err(|error| Refused::of_yaml(text, &error))?;
    let documents = (1..).zip(documents);
    Ok(documents
        .filter(|(_, document)| !document.is_null())
        .collect())
}

/// Limits of what a text may need in memory. Values that aliases repeat count each time, so that a small text cannot
/// become a large object; aliases as people write them stay far below.
fn options(text: &str) -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_nodes: 5_000 + text.len() / 8,
            max_total_scalar_bytes: 2 * text.len() + (64 << 10),
            max_anchors: ALIASES,
            max_aliases: ALIASES,
            max_merge_keys: ALIASES,
            max_recorded_anchor_events: 50_000,
            max_recorded_anchor_bytes: 2 * text.len() + (64 << 10),
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 10_000,
        },
        // The error would keep a part of the text.
        with_snippet: false,
    }
}

/// The limit that a text exceeds, and what to do.
fn limit(error: &serde_saphyr::Error) -> Option<&'static str> {
    use serde_saphyr::Error as Yaml;
    use serde_saphyr::budget::BudgetBreach as Breach;
    match error {
        Yaml::AliasError { error, .. } | Yaml::WithSnippet { error, .. } => limit(error),
        Yaml::AliasReplayCounterOverflow { .. }
        | Yaml::AliasReplayLimitExceeded { .. }
        | Yaml::AliasExpansionLimitExceeded { .. }
        | Yaml::AliasReplayStackDepthExceeded { .. } => Some(TOO_MANY_ALIASES),
        Yaml::Budget { breach, .. } => Some(match breach {
            Breach::Aliases { .. }
            | Breach::AliasAnchorRatio { .. }
            | Breach::Anchors { .. }
            | Breach::MergeKeys { .. }
            | Breach::RecordedAnchorEvents { .. }
            | Breach::RecordedAnchorBytes { .. } => TOO_MANY_ALIASES,
            Breach::ScalarBytes { .. } => {
                "its aliases repeat too much text: write it out, or put it into fewer places"
            }
            Breach::Nodes { .. } | Breach::Events { .. } => {
                "it has too many values: use fewer aliases, or several ConfigMaps"
            }
            Breach::Depth { .. } => "it is nested too deeply",
            _ => "it is too complex: use several ConfigMaps",
        }),
        _ => None,
    }
}

/// The same, for workers only, in the version of its kind that nodes are configured by.
fn for_workers(kind: Kind, mut object: Value) -> Value {
    match kind {
        Kind::MachineConfig => {
            let metadata = &mut object["metadata"];
            if !metadata["labels"].is_object() {
                metadata["labels"] = Value::Object(Map::new());
            }
            metadata["labels"][ROLE_LABEL] = json!("worker");
        }
        Kind::KubeletConfig | Kind::ContainerRuntimeConfig => {
            object["spec"]["machineConfigPoolSelector"] =
                json!({ "matchLabels": { BUILT_IN: "" } });
        }
        Kind::ClusterImagePolicy => object["apiVersion"] = json!(POLICY_VERSION),
        Kind::ImageContentSourcePolicy | Kind::ImageDigestMirrorSet | Kind::ImageTagMirrorSet => {}
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    const KUBELET: &str = "
apiVersion: machineconfiguration.openshift.io/v1
kind: KubeletConfig
metadata: {name: more-pods}
spec:
  kubeletConfig: {maxPods: 300}
";

    #[test]
    fn manifests_are_made_for_workers() {
        let both = format!(
            "{KUBELET}---\napiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata: {{name: a}}\nspec: {{}}\n"
        );
        let manifests = Manifest::read(&both).unwrap();
        let texts: Vec<_> = manifests.iter().map(Manifest::text).collect();
        assert_eq!(
            texts,
            [
                r#"{"apiVersion":"machineconfiguration.openshift.io/v1","kind":"KubeletConfig","metadata":{"name":"more-pods"},"spec":{"kubeletConfig":{"maxPods":300},"machineConfigPoolSelector":{"matchLabels":{"machineconfiguration.openshift.io/mco-built-in":""}}}}"#,
                r#"{"apiVersion":"machineconfiguration.openshift.io/v1","kind":"MachineConfig","metadata":{"labels":{"machineconfiguration.openshift.io/role":"worker"},"name":"a"},"spec":{}}"#,
            ]
        );
    }

    #[test]
    fn comments_and_order_do_not_matter() {
        let other = "# more\nkind: KubeletConfig\napiVersion: machineconfiguration.openshift.io/v1\nspec: {kubeletConfig: {maxPods: 300}}\nmetadata:\n  name: more-pods\n";
        assert_eq!(
            Manifest::read(KUBELET).unwrap(),
            Manifest::read(other).unwrap()
        );
    }

    #[test]
    fn invalid_manifests_are_rejected_with_a_message() {
        for (text, expected) in [
            (
                "kind: Pod\napiVersion: v1",
                "document 1 is of kind \"Pod\" in \"v1\"",
            ),
            (
                "apiVersion: example.com/v1\nkind: MachineConfig\nmetadata: {name: a}\nspec: {}",
                "in \"example.com/v1\"",
            ),
            (
                "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nspec: {}",
                "a MachineConfig, has no metadata.name",
            ),
            (
                "apiVersion: config.openshift.io/v1\nkind: ImageDigestMirrorSet\nmetadata: {name: a}",
                "ImageDigestMirrorSet a has no spec",
            ),
            ("a: 1\n---\nb: [", "document 2 is no YAML"),
        ] {
            let found = Manifest::read(text).unwrap_err().to_string();
            let second = found.contains(expected);
            assert!(second || expected.contains("document 2"), "{found}");
        }
    }

    /// A MachineConfig with anything in its spec.
    fn machine_config(spec: &str) -> String {
        format!(
            "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata: {{name: a}}\nspec:\n{spec}"
        )
    }

    /// Check T22.
    #[test]
    fn configs_that_expand_to_too_much_are_rejected_with_a_message() {
        let laughs = (1..9).map(|level| {
            let before = vec![format!("*a{}", level - 1); 9].join(", ");
            format!("  a{level}: &a{level} [{before}]\n")
        });
        let laughs = format!("  a0: &a0 [lol]\n{}", laughs.collect::<String>());
        let text = format!(
            "  a: &a {}\n  b: [{}]\n",
            "hunter2".repeat(10_000),
            vec!["*a"; 90].join(", ")
        );
        let merged = (0..90).map(|number| format!("  m{number}: {{<<: *a}}\n"));
        let keys = (0..1_000).map(|number| format!("hunter2{number}: 1"));
        let merged = format!(
            "  a: &a {{{}}}\n{}",
            keys.collect::<Vec<_>>().join(", "),
            merged.collect::<String>()
        );
        let anchors = (0..60).map(|level| {
            format!("{}a:\n", " ".repeat(2 + level)).replace("a:", &format!("a{level}: &b{level}"))
        });
        let anchors = format!(
            "{}{}x: [{}]\n",
            anchors.collect::<String>(),
            " ".repeat(62),
            vec!["1"; 4_000].join(", ")
        );
        let values = format!("  a: [{}]\n", vec!["1"; 100_000].join(","));
        for (name, spec, expected) in [
            ("nested aliases", laughs, "aliases"),
            ("a long text", text, "its aliases repeat too much text"),
            ("merge keys", merged, "aliases"),
            ("nested anchors", anchors, "aliases"),
            ("values", values, "it has too many values"),
        ] {
            let refused = Manifest::read(&machine_config(&spec))
                .unwrap_err()
                .to_string();
            assert!(refused.contains(expected), "{name}: {refused}");
            assert!(
                refused.starts_with("document 1 exceeds a limit (line "),
                "{name}: {refused}"
            );
            assert!(!refused.contains("hunter2"), "{name}: {refused}");
        }
    }

    #[test]
    fn ordinary_aliases_and_large_configs_are_read() {
        let aliases = "  a: &a {mode: 420, user: &user {name: root}}\n  b: {<<: *a, mode: 384}\n  c: [*user, *user]\n";
        let read = Manifest::read(&machine_config(aliases)).unwrap();
        assert_eq!(
            read[0].object["spec"],
            json!({
                "a": { "mode": 420, "user": { "name": "root" } },
                "b": { "mode": 384, "user": { "name": "root" } },
                "c": [{ "name": "root" }, { "name": "root" }],
            })
        );
        let file = |number: usize| {
            let content = "a".repeat(1_000);
            format!(
                "    - {{path: /etc/{number}, mode: 420, contents: {{source: 'data:,{content}'}}}}\n"
            )
        };
        let files = (0..900).map(file).collect::<String>();
        let mirror = |number: usize| {
            format!("  - {{source: a.example.com/{number}, mirrors: [b.example.com/{number}]}}\n")
        };
        let mirrors = (0..5_000).map(mirror).collect::<String>();
        for spec in [
            format!("  config: {{}}\n  files:\n{files}"),
            format!("  mirrors:\n{mirrors}"),
        ] {
            let text = machine_config(&spec);
            assert_eq!(
                Manifest::read(&text).map(|it| it.len()),
                Ok(1),
                "{}",
                text.len()
            );
        }
    }

    #[test]
    fn unreadable_manifests_are_not_quoted() {
        let found = Manifest::read("a: hunter2\nb: {hunter2").unwrap_err();
        assert!(!found.to_string().contains("hunter2"), "{found}");
    }

    /// Check F04.
    #[test]
    fn image_policies_are_read_in_both_versions() {
        let policy = |version: &str| {
            let text = format!(
                "apiVersion: config.openshift.io/{version}\nkind: ClusterImagePolicy\nmetadata: {{name: a}}\n\
                 spec: {{scopes: [config.openshift.io/v1alpha1]}}\n"
            );
            Manifest::read(&text).unwrap()
        };
        let manifests = policy("v1");
        assert_eq!(manifests.len(), 1);
        assert_eq!(
            manifests[0].text(),
            r#"{"apiVersion":"config.openshift.io/v1","kind":"ClusterImagePolicy","metadata":{"name":"a"},"spec":{"scopes":["config.openshift.io/v1alpha1"]}}"#
        );
        assert_eq!(policy("v1alpha1"), policy("v1"));
    }
}
