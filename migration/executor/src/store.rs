//! Where the journal is kept: one ConfigMap, each write of which supposes the version that was read before.
//!
//! So of two processes that carry out one migration, the second takes the journal over, and the first finds out at its
//! next look.

use serde_json::{Value, json};

use crate::Error;
use crate::calls::Calls;
use crate::response::Rejection;
use migration::journal::Journal;

/// The ConfigMap's name.
pub const NAME: &str = "capi-migration-journal";
const JOURNAL: &str = "journal";
const OUTCOME: &str = "outcome";
/// How often a conflict is looked into.
const TRIES: u32 = 5;

/// How a migration ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Everything is of the target types.
    Done,
    /// Everything is as it was before.
    RolledBack,
}

/// A journal as it is stored.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The journal.
    pub journal: Journal,
    /// How its migration ended, if it has.
    pub outcome: Option<Outcome>,
}

/// The ConfigMap.
#[derive(Debug)]
pub(crate) struct Store {
    calls: Calls,
    namespace: String,
    /// The version that was read or written last; none while there is no ConfigMap.
    version: Option<String>,
}

// === impl Outcome ===

impl Outcome {
    fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::RolledBack => "rolled-back",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        [Self::Done, Self::RolledBack]
            .into_iter()
            .find(|outcome| outcome.name() == name)
    }
}

// === impl Store ===

impl Store {
    pub(crate) fn new(calls: Calls, namespace: &str) -> Self {
        Self {
            calls,
            namespace: namespace.to_owned(),
            version: None,
        }
    }

    /// Reads the journal, if there is one.
    pub(crate) async fn read(&mut self) -> Result<Option<Entry>, Error> {
        let found = self.find().await?;
        self.version = found.as_ref().map(version_of);
        let Some(found) = found else {
            return Ok(None);
        };
        let data = |key: &str| found["data"][key].as_str().unwrap_or_default();
        let journal = Journal::parse(data(JOURNAL)).map_err(|source| Error::Unreadable {
            name: self.to_string(),
            source,
        })?;
        Ok(Some(Entry {
            journal,
            outcome: Outcome::parse(data(OUTCOME)),
        }))
    }

    /// Writes the journal; a conflicting write is [`Error::Replaced`].
    pub(crate) async fn write(
        &mut self,
        journal: &Journal,
        outcome: Option<Outcome>,
    ) -> Result<(), Error> {
        let body = self.body(journal, outcome);
        let mut tries = TRIES;
        loop {
            let written = match self.version {
                None => self.calls.create(&self.collection(), &body).await,
                Some(_) => self.calls.replace(&self.path(), &body).await,
            };
            match written {
                Ok(written) => {
                    self.version = Some(version_of(&written));
                    return Ok(());
                }
                Err(Rejection::Conflict) if tries > 0 => tries -= 1,
                Err(Rejection::Conflict | Rejection::Gone) => return Err(Error::Replaced),
                Err(fault) => return Err(self.failed("write", fault)),
            }
            if let Some(version) = self.own(&body).await? {
                self.version = Some(version);
                return Ok(());
            }
        }
    }

    /// Whether the journal is still as this process left it.
    pub(crate) async fn confirm(&self) -> Result<(), Error> {
        let found = self.find().await?;
        if found.as_ref().map(version_of) == self.version {
            return Ok(());
        }
        Err(Error::Replaced)
    }

    /// The version that is stored, if it is what this process meant to store and only the response was lost; none when
    /// nothing has changed, so that it can be tried again.
    async fn own(&self, body: &Value) -> Result<Option<String>, Error> {
        let found = self.find().await?;
        let version = found.as_ref().map(version_of);
        if found.is_some_and(|found| found["data"] == body["data"]) {
            return Ok(version);
        }
        if version == self.version {
            return Ok(None);
        }
        Err(Error::Replaced)
    }

    async fn find(&self) -> Result<Option<Value>, Error> {
        let found = self.calls.find(&self.path()).await;
        found.map_err(|fault| self.failed("read", fault))
    }

    fn body(&self, journal: &Journal, outcome: Option<Outcome>) -> Value {
        let mut body = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": { "namespace": self.namespace, "name": NAME },
            "data": { JOURNAL: journal.to_json() },
        });
        if let Some(version) = &self.version {
            body["metadata"]["resourceVersion"] = json!(version);
        }
        if let Some(outcome) = outcome {
            body["data"][OUTCOME] = json!(outcome.name());
        }
        body
    }

    fn collection(&self) -> String {
        format!("/api/v1/namespaces/{}/configmaps", self.namespace)
    }

    fn path(&self) -> String {
        format!("{}/{NAME}", self.collection())
    }

    fn failed(&self, verb: &str, fault: Rejection) -> Error {
        match fault {
            Rejection::Fenced => Error::Replaced,
            fault => Error::Failed(fault.into_failure(&format!("{verb} the journal {self}"))),
        }
    }
}

impl std::fmt::Display for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ConfigMap {}/{NAME}", self.namespace)
    }
}

fn version_of(object: &Value) -> String {
    let version = object["metadata"]["resourceVersion"].as_str();
    version.unwrap_or_default().to_owned()
}
