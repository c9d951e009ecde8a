//! A request to the operator: annotations on each of the chosen hosted clusters to which it applies.

use std::collections::BTreeMap;

use anyhow::bail;
use clap::Args;

use super::fleet::{Chosen, Line, annotate};
use crate::hosted::Hosted;
use crate::install::display::Display;
use crate::install::{TargetArgs, runtime};

/// Flags of commands that request something.
#[derive(Debug, Args)]
pub(super) struct RequestArgs {
    #[command(flatten)]
    chosen: Chosen,

    /// Suppress progress output
    #[arg(long, short)]
    quiet: bool,

    #[command(flatten)]
    target: TargetArgs,
}

/// What is requested.
pub(super) struct Request {
    /// Annotations to set, and to remove.
    pub(super) annotations: BTreeMap<&'static str, Option<&'static str>>,
    /// Why it does not apply to a cluster.
    pub(super) problem: fn(&Line) -> Option<&'static str>,
    /// Whether clusters to which it does not apply are listed.
    pub(super) names_others: bool,
    /// The line for each cluster that was annotated.
    pub(super) done: &'static str,
    /// The line if none was annotated.
    pub(super) none: Option<&'static str>,
}

// === impl RequestArgs ===

impl RequestArgs {
    /// Annotates the chosen clusters.
    pub(super) fn send(&self, request: &Request) -> anyhow::Result<()> {
        runtime()?.block_on(self.annotate_each(request))
    }

    async fn annotate_each(&self, request: &Request) -> anyhow::Result<()> {
        let display = Display::new(self.quiet);
        let hosted = Hosted::connect(&self.target.access()).await?;
        let mut is_sent = false;
        for cluster in self.chosen.find(&hosted, false).await? {
            let line = Line::of(&cluster);
            if let Some(problem) = (request.problem)(&line) {
                if !self.chosen.is_all() {
                    bail!("{}: {problem}", line.id());
                }
                if request.names_others {
                    display.say(&format!("{}: {problem}", line.id()));
                }
                continue;
            }
            annotate(&hosted, &cluster, &request.annotations).await?;
            display.say(&format!("{}: {}", line.id(), request.done));
            is_sent = true;
        }
        if let Some(none) = request.none.filter(|_| !is_sent) {
            display.say(none);
        }
        Ok(())
    }
}
