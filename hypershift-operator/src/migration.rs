//! Moves hosted clusters from standard to private types, and back when somebody asks for that.
//!
//! ```text
//! drift ── survey ──> candidate (pure) ──> queue (pure): who is next ──> driver: one cluster, step after step
//!                         │                                               │ objects: crate `migration`
//!                         v                                               │ the rest: site
//!                      census ──> metrics                                 │   mark      lock, commit, finish
//!                                                                         │   handover  the old owner stands aside
//!                                                                         │   quiesce   no controller runs
//!                                                                         │   deploy    controllers of the other side
//!                                                                         v   health    no worse than before
//!                                                                       tell: condition, Events, log
//! ```
//!
//! Which objects there are, what becomes of them and in which order is decided by the crate `migration`, which also
//! keeps the journal. Here is what a hosted cluster adds to that. What is decided is pure (`candidate`, `queue`,
//! `census`, `workloads`, `health`, `mark`); the rest reads and writes, and everything that it writes names the version
//! that it was decided on.

mod aside;
mod candidate;
mod census;
mod control;
mod deploy;
mod driver;
mod failure;
mod handover;
mod health;
mod mark;
mod metrics;
mod observe;
mod queue;
mod quiesce;
mod rights;
mod settings;
mod site;
mod tell;
mod workloads;

use api::annotations::{MIGRATION_ROLLBACK, ROLLBACK_REQUESTED};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

pub(crate) use aside::Passes;
use census::Census;
pub(crate) use control::{Migrations, run};
pub(crate) use handover::acknowledge;
pub(crate) use metrics::{Metrics, PREFIX};
pub(crate) use settings::Settings;

/// Whether somebody asks for the way back to standard types: operator-legacy has to be there for that.
pub(crate) fn is_wanted_back(metadata: &ObjectMeta) -> bool {
    let annotations = metadata.annotations.as_ref();
    let asked = annotations.and_then(|it| it.get(MIGRATION_ROLLBACK));
    asked.is_some_and(|it| it == ROLLBACK_REQUESTED)
}
