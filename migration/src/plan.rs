//! What a migration would do: computed from a snapshot, without a write.

use std::time::Duration;

use serde::Serialize;

use crate::groups::{Direction, Groups};
use crate::inventory::Inventory;
use crate::preflight::{self, Facts, Finding, Severity};
use crate::snapshot::Snapshot;

/// A dry run.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// Which way.
    pub direction: Direction,
    /// Every object and what becomes of it.
    pub inventory: Inventory,
    /// What speaks against it, and what is worth knowing.
    pub findings: Vec<Finding>,
    /// How many writes it takes.
    pub writes: usize,
    /// How long it will take, roughly, in seconds.
    #[serde(rename = "seconds", serialize_with = "as_seconds")]
    pub estimate: Duration,
}

// === impl Plan ===

impl Plan {
    /// Plans the migration of everything in a snapshot.
    pub fn new(groups: &Groups, snapshot: &Snapshot, facts: &Facts) -> Self {
        let inventory = Inventory::of(groups, snapshot);
        let findings = preflight::findings(groups, snapshot, facts, &inventory);
        Self {
            direction: groups.direction(),
            writes: 0,
            estimate: Duration::ZERO,
            inventory,
            findings,
        }
    }

    /// Whether nothing speaks against it.
    pub fn may_begin(&self) -> bool {
        self.blockers().next().is_none()
    }

    /// What speaks against it.
    pub fn blockers(&self) -> impl Iterator<Item = &Finding> {
        let findings = self.findings.iter();
        findings.filter(|finding| finding.severity == Severity::Blocks)
    }
}

fn as_seconds<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(time.as_secs())
}
