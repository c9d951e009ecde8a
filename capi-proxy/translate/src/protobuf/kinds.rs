//! Where built-in kinds hold a group: tries over field numbers, chosen by URL and envelope.
//!
//! The numbers are those of `generated.proto` in `k8s.io/api`, `apimachinery`, `apiextensions-apiserver` and
//! `kube-aggregator`, at v0.35; they never change once released.

mod groups;
mod nodes;
pub(super) mod openapi;

use crate::place::Action;

pub(super) use nodes::TYPE_META;

/// A position in a message.
#[derive(Debug, Clone, Copy)]
pub(super) enum Node {
    /// A message, and its fields that lead to a group.
    Message(&'static [(u32, Node)]),
    /// A string that may hold a group.
    Leaf(Action),
    /// A vendor extension of an `OpenAPI` document: its name says whether its value holds a group.
    Extension,
    /// YAML that names kinds, each with its group.
    Kinds,
}

/// What an object's fields are known to be.
#[derive(Debug, Clone, Copy)]
pub(super) enum Root {
    Known(Node),
    /// Only the metadata is known.
    Unknown,
}

/// The field of every object that holds its metadata.
pub(super) const OBJECT_METADATA: u32 = 1;

// === impl Root ===

impl Root {
    pub(super) fn node(self) -> Node {
        match self {
            Self::Known(node) => node,
            Self::Unknown => nodes::PLAIN,
        }
    }
}

/// What an object of `resource` holds, with the type that its envelope names.
///
/// The envelope decides what the API server reads, and a subresource's body or another version may be another message
/// than the URL's kind: then only the metadata is known.
pub(super) fn root(group: &str, resource: &str, api_version: &[u8], kind: &[u8]) -> Root {
    if kind == b"DeleteOptions" {
        return Root::Known(Node::Message(&[]));
    }
    let found = groups::GROUPS
        .iter()
        .filter(|row| row.name == group && row.serves(api_version))
        .find_map(|row| {
            let matches = |entry: &&Entry| {
                entry.0 == resource && (kind.is_empty() || entry.1.as_bytes() == kind)
            };
            row.kinds.iter().find(matches)
        });
    found.map_or(Root::Unknown, |&(_, _, node)| Root::Known(node))
}

/// Plural, kind and what it holds.
type Entry = (&'static str, &'static str, Node);

/// Kinds of one group that have the same fields in all `versions`.
struct Group {
    name: &'static str,
    versions: &'static [&'static str],
    kinds: &'static [Entry],
}

// === impl Group ===

impl Group {
    /// Whether `api_version` is one of ours; an envelope without one leaves it to the URL.
    fn serves(&self, api_version: &[u8]) -> bool {
        if api_version.is_empty() {
            return true;
        }
        let version = match (self.name, api_version.strip_prefix(self.name.as_bytes())) {
            ("", _) => Some(api_version),
            (_, rest) => rest.and_then(|rest| rest.strip_prefix(b"/")),
        };
        version.is_some_and(|version| {
            self.versions
                .iter()
                .any(|known| known.as_bytes() == version)
        })
    }
}
