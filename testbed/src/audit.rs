//! The API server's audit log: who requested what.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Deserialize;

/// The audit log of one API server.
#[derive(Debug, Clone)]
pub struct AuditLog {
    path: PathBuf,
}

/// A place in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark(u64);

/// One completed request.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// The Kubernetes verb: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: String,
    /// Path and query as they arrived at the API server.
    #[serde(rename = "requestURI")]
    pub uri: String,
    /// The client.
    pub user: User,
    /// The user agent.
    #[serde(default)]
    pub user_agent: String,
    /// When the request arrived, in microseconds of UTC: times sort as texts.
    #[serde(default, rename = "requestReceivedTimestamp")]
    pub received: String,
    /// What it was about.
    #[serde(default)]
    pub object_ref: ObjectRef,
    /// What got a response.
    #[serde(default)]
    pub response_status: ResponseStatus,
}

/// The user of an [`Event`].
#[derive(Debug, Clone, Deserialize)]
pub struct User {
    /// The user's name.
    #[serde(default)]
    pub username: String,
}

/// The object of an [`Event`].
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectRef {
    /// The API group; empty for the core group.
    pub api_group: String,
    /// The plural.
    pub resource: String,
    /// The namespace, if any.
    pub namespace: String,
    /// The name, if the request names one.
    pub name: String,
    /// `status`, `scale`, `token`...
    pub subresource: String,
}

/// The response of an [`Event`].
#[derive(Debug, Clone, Default, Deserialize)]
pub struct ResponseStatus {
    /// The HTTP status.
    #[serde(default)]
    pub code: u16,
}

// === impl Event ===

impl Event {
    /// Whether the request could have changed something.
    pub fn is_write(&self) -> bool {
        matches!(
            self.verb.as_str(),
            "create" | "update" | "patch" | "delete" | "deletecollection"
        )
    }

    /// One line for an error message.
    pub fn summary(&self) -> String {
        format!(
            "{} {} by {} -> {}",
            self.verb, self.uri, self.user.username, self.response_status.code
        )
    }
}

// === impl ObjectRef ===

impl ObjectRef {
    /// The group that it is about: of a CRD, that which it defines.
    pub fn group_of_definition(&self) -> &str {
        match (self.resource.as_str(), self.name.split_once('.')) {
            ("customresourcedefinitions", Some((_, group))) => group,
            _ => &self.api_group,
        }
    }
}

// === impl AuditLog ===

impl AuditLog {
    /// The log in the given file.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// The present end of the log.
    pub fn mark(&self) -> Result<Mark> {
        // After the last whole line: the server may be writing one.
        let bytes = std::fs::read(&self.path)
            .with_context(|| format!("cannot read the audit log {}", self.path.display()))?;
        let end = bytes.iter().rposition(|&byte| byte == b'\n');
        let end = end.map_or(0, |at| at + 1);
        Ok(Mark(u64::try_from(end).unwrap_or(u64::MAX)))
    }

    /// Everything since the start of the API server.
    pub fn all(&self) -> Result<Vec<Event>> {
        self.since(Mark(0))
    }

    /// What got a response since the mark.
    pub fn since(&self, mark: Mark) -> Result<Vec<Event>> {
        let mut text = String::new();
        File::open(&self.path)
            .and_then(|mut file| {
                file.seek(SeekFrom::Start(mark.0))?;
                file.read_to_string(&mut text)
            })
            .with_context(|| format!("cannot read the audit log {}", self.path.display()))?;
        // The last line may still be in writing.
        let complete = text.rfind('\n').map_or("", |end| &text[..end]);
        complete
            .lines()
            .map(|line| {
                serde_json::from_str(line)
                    .with_context(|| format!("not an audit event: {line:.200}"))
            })
            .collect()
    }

    /// How many requests and writes each user made since the mark.
    pub fn totals(&self, mark: Mark) -> Result<BTreeMap<String, Totals>> {
        let mut totals: BTreeMap<String, Totals> = BTreeMap::new();
        for event in self.since(mark)? {
            let entry = totals.entry(event.user.username.clone()).or_default();
            entry.requests += 1;
            entry.writes += usize::from(event.is_write());
        }
        Ok(totals)
    }
}

/// Requests of one user.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// All requests.
    pub requests: usize,
    /// Those that could have changed something.
    pub writes: usize,
}
