//! Migrates hosted clusters from standard to private types, and back on request.
//!
//! ```text
//! resync ── evaluation ─> candidate (pure) ─> queue (pure): which is next ─> driver: one cluster, step by step
//!                         │                                               │ objects: crate `migration`
//!                         v                                               │ the rest: hooks
//!                      state_counts ──> metrics                           │   annotations  lock, commit, finish
//!                                                                         │   handover  the former owner acknowledges
//!                                                                         │   quiesce   no controller runs
//!                                                                         │   deploy    controllers of the other types
//!                                                                         v   health    no worse than before
//!                                                                       report: condition, Events, log
//! ```
//!
//! Which objects are migrated, how and in which order is decided by the crate `migration`, which also
//! keeps the journal. Here is what a hosted cluster adds to that. What is decided is pure (`candidate`, `queue`,
//! `state_counts`, `workloads`, `health`, `annotations`); the rest reads and writes, and every write names the version
//! that it was decided on. `leftovers` revokes permissions of a migration whose operator was killed before it did.

mod annotations;
mod candidate;
mod control;
mod deploy;
mod driver;
mod failure;
mod handover;
mod health;
mod hooks;
mod leftovers;
mod metrics;
mod observe;
mod permissions;
mod queue;
mod quiesce;
mod report;
mod settings;
mod state_counts;
mod workloads;

use api::annotations::{MIGRATION_ROLLBACK, ROLLBACK_REQUESTED};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

pub(crate) use control::{Migrations, run};
pub(crate) use metrics::{Metrics, PREFIX};
use state_counts::StateCounts;

/// Whether a rollback to standard types is requested, which needs operator-legacy.
pub(crate) fn is_rollback_requested(metadata: &ObjectMeta) -> bool {
    let annotations = metadata.annotations.as_ref();
    let requested = annotations.and_then(|it| it.get(MIGRATION_ROLLBACK));
    requested.is_some_and(|it| it == ROLLBACK_REQUESTED)
}
