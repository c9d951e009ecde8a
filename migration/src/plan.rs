//! What a migration would do: computed from a snapshot, without a write.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::groups::{Direction, Groups};
use crate::inventory::{Inventory, Left, Verdict, originals, shared};
use crate::object::Object;
use crate::preflight::{self, Facts, Finding, Severity};
use crate::reparent;
use crate::snapshot::Snapshot;
use crate::target::Way;
use crate::target::order::{APART, Order};

/// How many writes a server takes in a second, at the parallelism of a migration; measured on two cores.
const WRITES_A_SECOND: usize = 100;
/// What controllers take to stop and to start.
const CONTROLLERS: Duration = Duration::from_secs(10);

/// A dry run.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// Which way.
    pub direction: Direction,
    /// Every object and what becomes of it.
    pub inventory: Inventory,
    /// Blocking problems and notes.
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
            writes: writes(groups, snapshot),
            estimate: estimate(groups, snapshot),
            inventory,
            findings,
        }
    }

    /// Whether all preflight checks passed.
    pub fn may_begin(&self) -> bool {
        self.blockers().next().is_none()
    }

    /// Blocking problems.
    pub fn blockers(&self) -> impl Iterator<Item = &Finding> {
        let findings = self.findings.iter();
        findings.filter(|finding| finding.severity == Severity::Blocks)
    }
}

/// Human-readable text: problems first, then every object.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            let severity = match finding.severity {
                Severity::Blocks => "BLOCKS",
                Severity::Note => "note",
            };
            writeln!(f, "{severity} ({}): {}", finding.check, finding.message)?;
        }
        if !self.findings.is_empty() {
            writeln!(f)?;
        }
        for entry in &self.inventory.entries {
            writeln!(f, "{}\n    {}", entry.object, Described(&entry.verdict))?;
        }
        let left =
            self.inventory.entries.len() - self.inventory.moved() - self.inventory.reparented();
        writeln!(
            f,
            "\n{} objects: {} get a target, {} get new owners, {left} are left as they are.",
            self.inventory.entries.len(),
            self.inventory.moved(),
            self.inventory.reparented(),
        )?;
        let outcome = if self.may_begin() {
            "may begin"
        } else {
            "may not begin"
        };
        write!(
            f,
            "{} writes, about {} seconds. The migration {outcome}.",
            self.writes,
            self.estimate.as_secs()
        )
    }
}

/// One classification, human-readable.
struct Described<'a>(&'a Verdict);

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Verdict::Move { becomes } => write!(f, "becomes {becomes}"),
            Verdict::Share { becomes, used_by } => {
                write!(
                    f,
                    "is copied to {becomes} and stays: {used_by} and others may use it"
                )
            }
            Verdict::Reparent { owners } => {
                let owners: Vec<_> = owners.iter().map(ToString::to_string).collect();
                write!(
                    f,
                    "stays; the target of {} becomes its owner",
                    owners.join(" and of ")
                )
            }
            Verdict::Leave { reason } => match reason {
                Left::AlreadyMoved => f.write_str("is in the other group already"),
                Left::Unused => {
                    f.write_str("stays: it is of the whole cluster, and nothing here uses it")
                }
                Left::Record => f.write_str("stays: it records what was"),
                Left::FoundByLabel => {
                    f.write_str("stays: it is found by its label, which stays the same")
                }
                Left::NamesGroup(places) => {
                    write!(f, "stays, and names a group at {}", places.join(", "))
                }
                Left::Unrelated => f.write_str("stays: it has nothing to do with it"),
            },
        }
    }
}

/// The writes of a migration that meets no fault.
fn writes(groups: &Groups, snapshot: &Snapshot) -> usize {
    let way = Way {
        groups,
        snapshot,
        owners_later: false,
    };
    let copies = |object: &Object| {
        let has_status = way
            .resource(object)
            .is_ok_and(|resource| resource.has_status);
        2 + usize::from(has_status && object.body().get("status").is_some())
    };
    let ends = |object: &Object| {
        1 + usize::from(!object.finalizers().is_empty() || !object.owners().is_empty())
    };
    let pauses = |object: &Object| {
        let paused = object.body().pointer("/spec/paused") == Some(&true.into());
        if object.key().kind == "Cluster" && !paused {
            2
        } else {
            0
        }
    };
    let moved =
        originals(groups, snapshot).map(|object| copies(object) + ends(object) + pauses(object));
    let shared = shared(groups, snapshot);
    moved.sum::<usize>()
        + shared.into_iter().map(copies).sum::<usize>()
        + 2 * reparent::dependents(groups, snapshot).count()
}

fn estimate(groups: &Groups, snapshot: &Snapshot) -> Duration {
    let waits = u32::try_from(Order::of(groups, snapshot).waits()).unwrap_or(u32::MAX);
    let writes =
        u64::try_from(writes(groups, snapshot).div_ceil(WRITES_A_SECOND)).unwrap_or(u64::MAX);
    CONTROLLERS + APART * waits + Duration::from_secs(writes)
}

fn as_seconds<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(time.as_secs())
}
