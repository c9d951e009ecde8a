//! Preflight checks of a migration, before anything is written: a chain of checks of one property each.

mod checks;
mod schema;

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::groups::Groups;
use crate::inventory::Inventory;
use crate::snapshot::Snapshot;

/// What the server says that no object does.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The CRDs of the target kinds and, for comparison, of the source kinds.
    pub definitions: Vec<Definition>,
    /// The rights that a review refused.
    pub denied: Vec<Denied>,
    /// The quotas on counts of objects in the namespaces.
    pub quotas: Vec<Quota>,
}

/// One custom resource definition, as far as it matters here.
#[derive(Debug, Clone, Default)]
pub struct Definition {
    /// Its group.
    pub group: String,
    /// Its kind.
    pub kind: String,
    /// Whether the server serves it (condition `Established`).
    pub established: bool,
    /// The version that is stored.
    pub stored: String,
    /// `openAPIV3Schema` of each version that is served.
    pub schemas: BTreeMap<String, Value>,
}

/// A right that lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denied {
    /// The verb, for instance `create`.
    pub verb: String,
    /// The resource with its group, for instance `machines.cluster.example.com`, and `/status` where it is that.
    pub resource: String,
    /// The namespace; empty for the whole cluster.
    pub namespace: String,
}

/// A quota on a count of objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quota {
    /// The namespace.
    pub namespace: String,
    /// The name of the ResourceQuota.
    pub name: String,
    /// What is counted: `count/<resource>.<group>`.
    pub counted: String,
    /// `hard` less `used`.
    pub free: u64,
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Whether it forbids the migration.
    pub severity: Severity,
    /// Which check found it.
    pub check: &'static str,
    /// What is wrong with which object, and the way out.
    pub message: String,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Nothing is begun.
    Blocks,
}

/// What the checks look at.
#[derive(Debug)]
pub(crate) struct Case<'a> {
    groups: &'a Groups,
    snapshot: &'a Snapshot,
    facts: &'a Facts,
    inventory: &'a Inventory,
}

/// Asks all checks.
pub fn findings(
    groups: &Groups,
    snapshot: &Snapshot,
    facts: &Facts,
    inventory: &Inventory,
) -> Vec<Finding> {
    let case = Case {
        groups,
        snapshot,
        facts,
        inventory,
    };
    let found = checks::ALL.iter().flat_map(|(name, check)| {
        let found = check(&case).into_iter();
        found.map(move |(severity, message)| Finding {
            severity,
            check: name,
            message,
        })
    });
    found.collect()
}
