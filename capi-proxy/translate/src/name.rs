//! What a swap does to one decoded string at a place.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use api::group::{CapiTypes, GroupTable};

use super::place::Action;
use super::{Direction, Rules, cache, text};

/// A swapped string in three borrowed parts, so that the hot path allocates nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Swapped<'a> {
    /// The text before the group, unchanged.
    pub before: &'a str,
    /// The group's new name, in the spelling of the place.
    pub name: &'a str,
    /// The text after the group, unchanged.
    pub after: &'a str,
    /// The types that the new name belongs to.
    pub to: CapiTypes,
}

impl fmt::Display for Swapped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.before, self.name, self.after)
    }
}

/// Swaps the group in `text`, if `text` as a whole is what `action` says and its group is in the table.
///
/// [`Action::Text`] and [`Action::ServerRelativeUrl`] change in more than one spot: use [`swap_owned`].
pub fn swap<'a>(rules: &'a Rules, action: Action, text: &'a str) -> Option<Swapped<'a>> {
    match action {
        Action::ApiVersion => api_version(rules, text),
        Action::Group => plain(rules, text, 0..text.len()),
        Action::Qualified => qualified(rules, text, 0),
        Action::QuotaKey => qualified(rules, text, after_prefix(text, "count/")?),
        Action::OpenApiPath => path(rules, text, after_prefix(text, "/apis/")?),
        Action::OpenApiIndexKey => path(rules, text, after_prefix(text, "apis/")?),
        Action::SchemaName => schema_name(rules, text, 0),
        Action::SchemaRef => ["#/components/schemas/", "#/definitions/"]
            .into_iter()
            .find_map(|prefix| schema_name(rules, text, after_prefix(text, prefix)?)),
        Action::OperationId => operation_id(rules, text),
        Action::Tag => tag(rules, text),
        Action::Text | Action::ServerRelativeUrl | Action::Kind => None,
    }
}

/// As [`swap`], for every action; `None` when nothing changes.
///
/// Free text changes only in responses, and only from private to standard.
pub fn swap_owned(
    rules: &Rules,
    direction: Direction,
    action: Action,
    text: &str,
) -> Option<(String, Option<CapiTypes>)> {
    match action {
        Action::Text => match (direction, text::swap(rules, text)) {
            (Direction::Response, Cow::Owned(changed)) => Some((changed, None)),
            (Direction::Request | Direction::Response, _) => None,
        },
        Action::ServerRelativeUrl => Some((server_relative_url(rules, text), None)),
        _ => swap(rules, action, text).map(|swapped| (swapped.to_string(), Some(swapped.to))),
    }
}

// === places of the API's own objects ===

fn plain<'a>(rules: &'a Rules, text: &'a str, at: Range<usize>) -> Option<Swapped<'a>> {
    let (pair, types) = rules.table().find(&text.as_bytes()[at.clone()])?;
    Some(replace(text, at, pair.name(types.other()), types.other()))
}

fn replace<'a>(text: &'a str, at: Range<usize>, name: &'a str, to: CapiTypes) -> Swapped<'a> {
    Swapped {
        before: &text[..at.start],
        name,
        after: &text[at.end..],
        to,
    }
}

fn after_prefix(text: &str, prefix: &str) -> Option<usize> {
    text.starts_with(prefix).then_some(prefix.len())
}

fn api_version<'a>(rules: &'a Rules, text: &'a str) -> Option<Swapped<'a>> {
    let slash = text.find('/')?;
    is_label(&text[slash + 1..]).then(|| plain(rules, text, 0..slash))?
}

/// `<label>.<group>` from `start` on.
fn qualified<'a>(rules: &'a Rules, text: &'a str, start: usize) -> Option<Swapped<'a>> {
    let dot = start + text[start..].find('.')?;
    is_label(&text[start..dot]).then(|| plain(rules, text, dot + 1..text.len()))?
}

/// A plural or a version: nothing that JSON would escape, and nothing that separates.
fn is_label(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

// === places of OpenAPI documents ===

/// `<group>` or `<group>/...` from `start` on.
fn path<'a>(rules: &'a Rules, text: &'a str, start: usize) -> Option<Swapped<'a>> {
    let end = text[start..]
        .find('/')
        .map_or(text.len(), |slash| start + slash);
    plain(rules, text, start..end)
}

/// `<reversed group>.<version>.<Kind>` from `start` on.
fn schema_name<'a>(rules: &'a Rules, text: &'a str, start: usize) -> Option<Swapped<'a>> {
    let (rest, kind) = text[start..].rsplit_once('.')?;
    let (reversed, version) = rest.rsplit_once('.')?;
    if !is_label(kind) || !is_label(version) {
        return None;
    }
    let (spelling, to) = rules
        .spellings()
        .other(|spelling| spelling.reversed == reversed)?;
    Some(replace(
        text,
        start..start + reversed.len(),
        &spelling.reversed,
        to,
    ))
}

/// `<verb><CamelGroup>`, then a version or the end.
fn operation_id<'a>(rules: &'a Rules, text: &'a str) -> Option<Swapped<'a>> {
    // The server builds the name from a verb of its own choice; the group starts at the first capital.
    let start = text.find(|c: char| c.is_ascii_uppercase())?;
    let rest = &text[start..];
    let found = |spelling: &Spelling| {
        rest.strip_prefix(spelling.title.as_str())
            .is_some_and(|after| after.is_empty() || is_camel_version(after))
    };
    let length = rules.spellings().matching(found)?.title.len();
    let (spelling, to) = rules.spellings().other(found)?;
    Some(replace(text, start..start + length, &spelling.title, to))
}

/// `V1beta2...`: a group's name is followed by nothing else.
fn is_camel_version(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next() == Some(b'V') && bytes.next().is_some_and(|byte| byte.is_ascii_digit())
}

/// `<camelGroup>` or `<camelGroup>_<version>`.
fn tag<'a>(rules: &'a Rules, text: &'a str) -> Option<Swapped<'a>> {
    let end = text.find('_').unwrap_or(text.len());
    let (spelling, to) = rules
        .spellings()
        .other(|spelling| spelling.camel == text[..end])?;
    Some(replace(text, 0..end, &spelling.camel, to))
}

/// The path's group is swapped, and the hash carries the table's version so that a client's cache cannot outlive it.
fn server_relative_url(rules: &Rules, text: &str) -> String {
    let (path_part, query) = text
        .split_once('?')
        .map_or((text, None), |(path, query)| (path, Some(query)));
    let swapped = after_prefix(path_part, "/openapi/v3/apis/")
        .and_then(|start| path(rules, path_part, start))
        .map_or_else(|| path_part.to_owned(), |swapped| swapped.to_string());
    let Some(query) = query else { return swapped };
    let parameters: Vec<_> = query
        .split('&')
        .map(|parameter| match parameter.strip_prefix("hash=") {
            Some(hash) => format!("hash={}", cache::hash_down(rules, hash)),
            None => parameter.to_owned(),
        })
        .collect();
    format!("{swapped}?{}", parameters.join("&"))
}

/// How the API server spells a group's name inside OpenAPI documents.
#[derive(Debug)]
struct Spelling {
    /// `io.x-k8s.cluster`.
    reversed: String,
    /// `clusterXK8sIo`.
    camel: String,
    /// `ClusterXK8sIo`.
    title: String,
}

/// The spellings of every pair of a table.
#[derive(Debug)]
pub(super) struct Spellings(Vec<(Spelling, Spelling)>);

// === impl Spellings ===

impl Spellings {
    pub(super) fn new(table: &GroupTable) -> Self {
        let both = |pair: &api::group::GroupPair| {
            (
                Spelling::new(pair.name(CapiTypes::Standard)),
                Spelling::new(pair.name(CapiTypes::Private)),
            )
        };
        Self(table.pairs().iter().map(both).collect())
    }

    /// The spelling that `found` accepts.
    fn matching(&self, found: impl Fn(&Spelling) -> bool) -> Option<&Spelling> {
        self.0
            .iter()
            .flat_map(|(standard, private)| [standard, private])
            .find(|spelling| found(spelling))
    }

    /// The other spelling of the group that `found` accepts.
    fn other(&self, found: impl Fn(&Spelling) -> bool) -> Option<(&Spelling, CapiTypes)> {
        self.0.iter().find_map(|(standard, private)| {
            if found(standard) {
                Some((private, CapiTypes::Private))
            } else if found(private) {
                Some((standard, CapiTypes::Standard))
            } else {
                None
            }
        })
    }
}

impl Spelling {
    fn new(group: &str) -> Self {
        let reversed: Vec<_> = group.rsplit('.').collect();
        // The server drops this suffix from the names of its own groups before it spells them.
        let trimmed = group.strip_suffix(".k8s.io").unwrap_or(group);
        Self {
            reversed: reversed.join("."),
            camel: camel_case(trimmed, false),
            title: camel_case(trimmed, true),
        }
    }
}

/// Drops what is not a letter, a digit or `_`, and capitalises what follows (the API server's operation ids).
fn camel_case(text: &str, capitalise_first: bool) -> String {
    let mut capitalise = capitalise_first;
    let mut out = String::with_capacity(text.len());
    for (index, c) in text.char_indices() {
        if c.is_ascii_alphabetic() || c == '_' || (index != 0 && c.is_ascii_digit()) {
            out.push(if capitalise {
                c.to_ascii_uppercase()
            } else {
                c
            });
            capitalise = false;
        } else {
            capitalise = true;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Row {
        action: Action,
        standard: &'static str,
        private: &'static str,
    }

    const ROWS: &[Row] = &[
        Row {
            action: Action::ApiVersion,
            standard: "ipam.cluster.x-k8s.io/v1beta2",
            private: "ipam.cluster.hypershift.openshift.io/v1beta2",
        },
        Row {
            action: Action::Group,
            standard: "cluster.x-k8s.io",
            private: "cluster.hypershift.openshift.io",
        },
        Row {
            action: Action::Qualified,
            standard: "machines.cluster.x-k8s.io",
            private: "machines.cluster.hypershift.openshift.io",
        },
        Row {
            action: Action::QuotaKey,
            standard: "count/machines.cluster.x-k8s.io",
            private: "count/machines.cluster.hypershift.openshift.io",
        },
        Row {
            action: Action::OpenApiPath,
            standard: "/apis/cluster.x-k8s.io/v1beta2/machines",
            private: "/apis/cluster.hypershift.openshift.io/v1beta2/machines",
        },
        Row {
            action: Action::OpenApiIndexKey,
            standard: "apis/cluster.x-k8s.io",
            private: "apis/cluster.hypershift.openshift.io",
        },
        Row {
            action: Action::SchemaName,
            standard: "io.x-k8s.cluster.infrastructure.v1beta2.DevMachine",
            private: "io.openshift.hypershift.cluster.infrastructure.v1beta2.DevMachine",
        },
        Row {
            action: Action::SchemaRef,
            standard: "#/components/schemas/io.x-k8s.cluster.v1beta2.Machine",
            private: "#/components/schemas/io.openshift.hypershift.cluster.v1beta2.Machine",
        },
        Row {
            action: Action::SchemaRef,
            standard: "#/definitions/io.x-k8s.cluster.v1beta2.Machine",
            private: "#/definitions/io.openshift.hypershift.cluster.v1beta2.Machine",
        },
        Row {
            action: Action::OperationId,
            standard: "listClusterXK8sIoV1beta2MachineForAllNamespaces",
            private: "listClusterHypershiftOpenshiftIoV1beta2MachineForAllNamespaces",
        },
        Row {
            action: Action::OperationId,
            standard: "getInfrastructureClusterXK8sIo",
            private: "getInfrastructureClusterHypershiftOpenshiftIo",
        },
        Row {
            action: Action::Tag,
            standard: "clusterXK8sIo_v1beta2",
            private: "clusterHypershiftOpenshiftIo_v1beta2",
        },
    ];

    #[test]
    fn every_action_is_an_involution() {
        let rules = Rules::default();
        for row in ROWS {
            let there = swap(&rules, row.action, row.standard);
            assert_eq!(
                there.map(|s| s.to_string()).as_deref(),
                Some(row.private),
                "{:?}",
                row.action
            );
            assert_eq!(there.map(|s| s.to), Some(CapiTypes::Private));
            let back = swap(&rules, row.action, row.private);
            assert_eq!(
                back.map(|s| s.to_string()).as_deref(),
                Some(row.standard),
                "{:?}",
                row.action
            );
        }
    }

    /// Check R27.
    #[test]
    fn similar_names_are_not_translated() {
        let rules = Rules::default();
        for (action, text) in [
            (Action::ApiVersion, "cluster.x-k8s.io"),
            (Action::ApiVersion, "cluster.x-k8s.io/v1/x"),
            (Action::ApiVersion, "xcluster.x-k8s.io/v1beta2"),
            (Action::Group, "clusters.x-k8s.io"),
            (Action::Group, " cluster.x-k8s.io"),
            (Action::Qualified, "machine.foo.cluster.x-k8s.io"),
            (Action::Qualified, "machines.CLUSTER.x-k8s.io"),
            (Action::QuotaKey, "requests.cluster.x-k8s.io"),
            (Action::SchemaName, "io.x-k8s.cluster.v1beta2"),
            (Action::SchemaName, "io.x-k8s.cluster.other.v1beta2.Machine"),
            (Action::OperationId, "listClusterXK8sIoverV1"),
            (Action::Tag, "clusterXK8sIos_v1"),
        ] {
            assert_eq!(swap(&rules, action, text), None, "{action:?} {text}");
        }
    }

    #[test]
    fn free_text_is_translated_only_in_responses() {
        let rules = Rules::default();
        let message = "machines.cluster.hypershift.openshift.io \"x\" not found";
        assert_eq!(
            swap_owned(&rules, Direction::Request, Action::Text, message),
            None
        );
        let (changed, _) = swap_owned(&rules, Direction::Response, Action::Text, message).unwrap();
        assert_eq!(changed, "machines.cluster.x-k8s.io \"x\" not found");
    }

    /// Check R15.
    #[test]
    fn server_relative_urls_are_translated_and_salted() {
        let rules = Rules::default();
        let private = "/openapi/v3/apis/cluster.hypershift.openshift.io/v1beta2?hash=AB12";
        let (changed, _) = swap_owned(
            &rules,
            Direction::Response,
            Action::ServerRelativeUrl,
            private,
        )
        .unwrap();
        let expected = cache::hash_down(&rules, "AB12");
        assert_eq!(
            changed,
            format!("/openapi/v3/apis/cluster.x-k8s.io/v1beta2?hash={expected}")
        );
        assert_ne!(expected, "AB12");
    }

    #[test]
    fn spellings_drop_the_server_suffix() {
        assert_eq!(Spelling::new("apiextensions.k8s.io").camel, "apiextensions");
        assert_eq!(Spelling::new("cluster.x-k8s.io").title, "ClusterXK8sIo");
    }
}
