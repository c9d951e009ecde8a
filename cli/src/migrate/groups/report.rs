//! Output: the plan before the migration, counts during it, figures after it.

use std::time::Instant;

use anyhow::Context;
use migration::phase::Phase;
use migration::plan::Plan;
use migration_executor::Executor;
use serde::Serialize;

use super::Format;
use crate::install::display;

/// What a migration came to.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    id: String,
    /// Objects that were moved: twins at the end.
    moved: usize,
    /// Writes of objects, of this process.
    writes: u64,
    /// Those that were sent, tried again ones included.
    tries: u64,
    seconds: f64,
    /// Seconds in each phase, of this process.
    phases: Vec<(String, f64)>,
    #[serde(skip)]
    started: Instant,
    #[serde(skip)]
    entered: Instant,
    #[serde(skip)]
    phase: Option<Phase>,
}

// === impl Report ===

impl Report {
    pub(super) fn new(executor: &Executor) -> Self {
        let journal = executor.under_way();
        Self {
            id: journal
                .map(|journal| journal.id.clone())
                .unwrap_or_default(),
            moved: 0,
            writes: 0,
            tries: 0,
            seconds: 0.0,
            phases: Vec::new(),
            started: Instant::now(),
            entered: Instant::now(),
            phase: journal.map(|journal| journal.phase),
        }
    }

    /// Notes the time of the phase before.
    pub(super) fn enters(&mut self, phase: Phase) {
        if self.phase == Some(phase) {
            return;
        }
        if let Some(before) = self.phase.replace(phase) {
            let seconds = self.entered.elapsed().as_secs_f64();
            self.phases.push((before.name().to_owned(), seconds));
        }
        self.entered = Instant::now();
    }

    /// Notes the end.
    pub(super) fn ends(&mut self, executor: &Executor) {
        let counts = executor.counts();
        self.moved = executor.moved();
        self.writes = counts.writes;
        self.tries = counts.tries;
        if let Some(last) = self.phase {
            let seconds = self.entered.elapsed().as_secs_f64();
            self.phases.push((last.name().to_owned(), seconds));
        }
        self.seconds = self.started.elapsed().as_secs_f64();
    }

    pub(super) fn summary(&self) -> String {
        format!(
            "{} objects moved with {} writes in {:.1} s; start the controllers of the new groups",
            self.moved, self.writes, self.seconds
        )
    }
}

/// How far a phase is, in a few words.
pub(super) fn progress(executor: &Executor, phase: Phase) -> String {
    let copied = executor.copied();
    match phase {
        Phase::Copy => format!(
            "{phase}: {} of {} objects",
            copied.targets, copied.originals
        ),
        Phase::Retire => format!("{phase}: {} objects left", copied.originals),
        _ => phase.to_string(),
    }
}

/// Prints what a migration came to.
pub(super) fn print(format: Format, report: &Report) -> anyhow::Result<()> {
    match format {
        // It was said meanwhile.
        Format::Text => Ok(()),
        Format::Json => print_json(report),
    }
}

/// Prints what a migration would do.
pub(in super::super) fn print_plan(format: Format, plan: &Plan) -> anyhow::Result<()> {
    match format {
        Format::Text => display::print(&format!("{}\n", plan.to_string().trim_end())),
        Format::Json => print_json(plan),
    }
}

fn print_json(document: &impl Serialize) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(document).context("cannot write JSON")?;
    display::print(&format!("{text}\n"))
}
