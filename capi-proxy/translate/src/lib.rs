//! Translation of Kubernetes API traffic between two sets of API groups: bytes in, bytes out, no I/O.
//!
//! No async runtime and no HTTP client: `cargo xtask tidy` holds this crate's graph to that.
//!
//! The translation *swaps* the two names of a group: what a client calls standard is private upstream and the reverse,
//! so that applying it twice gives the input back. Only whole names from a [`GroupTable`] change, and only at *places*
//! that are known to hold a group.
//!
//! - [`target`]: a request's URL: its one canonical form, swapped, and what the bodies under it hold.
//! - [`place`]: the places, as small tries over field names.
//! - [`name`]: what a swap does to one string at a place.
//! - [`json`]: the streaming JSON translator; [`json_patch`], [`yaml`] and [`protobuf`] are its buffered siblings.
//! - [`text`]: free text in responses, which has no places.
//! - [`accept`]: the Accept header; [`cache`]: ETags and OpenAPI hashes.
//! - [`body`]: which of them a body needs, from its target and content type.

pub mod accept;
pub mod body;
pub mod cache;
pub mod json;
pub mod json_patch;
pub mod name;
pub mod place;
pub mod protobuf;
pub mod target;
pub mod text;
pub mod yaml;

use std::collections::BTreeMap;
use std::sync::Arc;

use api::group::{CapiTypes, GroupTable};
use memchr::memmem::Finder;

/// The table of groups and the digest that caches are salted with. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Rules(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    table: GroupTable,
    version: String,
    spellings: name::Spellings,
    /// What every body contains that names a group.
    needles: Arc<[Needle]>,
    checks_leaks: bool,
}

/// Names that begin alike, found in one pass by how they begin.
#[derive(Debug)]
struct Needle {
    beginning: Finder<'static>,
    names: Vec<String>,
}

impl Rules {
    /// Rules over `table`.
    pub fn new(table: GroupTable) -> Self {
        Self(Arc::new(Inner {
            version: table.version(),
            spellings: name::Spellings::new(&table),
            needles: needles(&table),
            checks_leaks: false,
            table,
        }))
    }

    /// The pairs of groups.
    pub fn table(&self) -> &GroupTable {
        &self.0.table
    }

    /// The table's version, see [`GroupTable::version`].
    pub fn version(&self) -> &str {
        &self.0.version
    }

    /// Whether a JSON body might name a group of the table, plainly or behind an escape.
    pub fn mentions_group(&self, body: &[u8]) -> bool {
        self.0.needles.iter().any(|needle| needle.is_in(body))
    }

    /// The same rules, by which translators of responses also count the private names that they leave standing.
    ///
    /// For tests and for debugging: every string is looked at, which costs most of the speed.
    #[must_use]
    pub fn checking_leaks(self) -> Self {
        let inner = Inner {
            table: self.0.table.clone(),
            version: self.0.version.clone(),
            spellings: name::Spellings::new(&self.0.table),
            needles: Arc::clone(&self.0.needles),
            checks_leaks: true,
        };
        Self(Arc::new(inner))
    }

    fn checks_leaks(&self) -> bool {
        self.0.checks_leaks
    }

    /// Whether `text` holds a private name, as a part of whatever.
    fn names_private(&self, text: &[u8]) -> bool {
        self.table().pairs().iter().any(|pair| {
            memchr::memmem::find(text, pair.name(CapiTypes::Private).as_bytes()).is_some()
        })
    }

    fn spellings(&self) -> &name::Spellings {
        &self.0.spellings
    }
}

/// The shortest set of texts of which every name of the table contains one, and the start of an escape.
fn needles(table: &GroupTable) -> Arc<[Needle]> {
    let names = || {
        table.pairs().iter().flat_map(|pair| {
            [CapiTypes::Standard, CapiTypes::Private].map(|types| pair.name(types))
        })
    };
    let is_minimal = |name: &&str| !names().any(|other| other != *name && name.contains(other));
    let mut needles: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for name in names().filter(is_minimal).chain([r"\u"]) {
        let beginning = name.find('.').map_or(name, |dot| &name[..=dot]);
        needles.entry(beginning).or_default().push(name.to_owned());
    }
    needles
        .into_iter()
        .map(|(beginning, names)| Needle {
            beginning: Finder::new(beginning.as_bytes()).into_owned(),
            names,
        })
        .collect()
}

impl Needle {
    fn is_in(&self, body: &[u8]) -> bool {
        self.beginning.find_iter(body).any(|at| {
            let here = &body[at..];
            self.names
                .iter()
                .any(|name| here.starts_with(name.as_bytes()))
        })
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self::new(GroupTable::default())
    }
}

/// Which way a body travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the API server.
    Request,
    /// From the API server to the client.
    Response,
}

/// Why something was refused; the label of the translation error counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorType {
    /// The URL has no single canonical form.
    Path,
    /// The content type or content encoding cannot be translated.
    Encoding,
    /// The body is not what its content type says.
    Malformed,
    /// The body is nested too deeply, or larger than the limit.
    Limit,
    /// The request is understood and not allowed.
    Policy,
}

impl ErrorType {
    /// The metric label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Encoding => "encoding",
            Self::Malformed => "malformed",
            Self::Limit => "limit",
            Self::Policy => "policy",
        }
    }
}

/// A refusal, in the terms of a `metav1.Status`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// HTTP status code, when a request is refused. A rejected response is always a 502.
    pub code: u16,
    /// `metav1.StatusReason`, for instance `BadRequest`.
    pub reason: &'static str,
    /// Metric label.
    pub error_type: ErrorType,
    /// Human-readable: the cause and the way out. Never contains a byte of a body.
    pub message: String,
}

impl Refusal {
    /// 400: the URL has no single canonical form.
    pub fn path(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", ErrorType::Path, message)
    }

    /// 400: the body is not what its content type says.
    pub fn malformed(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", ErrorType::Malformed, message)
    }

    /// 406: no encoding that the client accepts can be translated.
    pub fn not_acceptable(message: impl Into<String>) -> Self {
        Self::new(406, "NotAcceptable", ErrorType::Encoding, message)
    }

    /// 413: the body is too large or nested too deeply.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(413, "RequestEntityTooLarge", ErrorType::Limit, message)
    }

    /// 415: the content type cannot be translated.
    pub fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::new(415, "UnsupportedMediaType", ErrorType::Encoding, message)
    }

    /// 422: the body is understood and holds something that cannot be translated.
    pub fn unprocessable(message: impl Into<String>) -> Self {
        Self::new(422, "Invalid", ErrorType::Malformed, message)
    }

    /// 403: the request is understood and not allowed.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(403, "Forbidden", ErrorType::Policy, message)
    }

    fn new(
        code: u16,
        reason: &'static str,
        error_type: ErrorType,
        message: impl Into<String>,
    ) -> Self {
        Self {
            code,
            reason,
            error_type,
            message: message.into(),
        }
    }
}

/// How many names a translator has swapped, by what they became.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Private names that became standard.
    pub to_standard: u64,
    /// Standard names that became private. In a response this shows that a writer bypasses the proxy.
    pub to_private: u64,
    /// Strings of a response that still hold a private name, outside the deny list; see [`Rules::checking_leaks`].
    pub leaks: u64,
}

// === impl Counts ===

impl Counts {
    fn add(&mut self, other: Self) {
        self.to_standard += other.to_standard;
        self.to_private += other.to_private;
        self.leaks += other.leaks;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_mentioned_where_its_name_occurs() {
        let own = "infra.example.com=infra.private.example.com".parse();
        let table = GroupTable::default().with(own.unwrap()).unwrap();
        let rules = Rules::new(table);
        for (body, expected) in [
            ("", false),
            ("cluster.", false),
            ("cluster.x-k8s.i", false),
            ("cluster.example.com cluster.x-k8s.org", false),
            ("infra.example.org", false),
            ("a cluster. and then a cluster.x-k8s.io/v1beta2", true),
            ("cluster.cluster.hypershift.openshift.io", true),
            ("infrastructure.cluster.x-k8s.io", true),
            ("infra.infra.example.com", true),
            ("infra.private.example.com", true),
            (r"\u0063luster", true),
        ] {
            assert_eq!(rules.mentions_group(body.as_bytes()), expected, "{body}");
        }
    }
}
