//! A wish to the operator: annotations on each of the chosen hosted clusters for which it makes sense.

use std::collections::BTreeMap;

use anyhow::bail;
use clap::Args;

use super::fleet::{Chosen, Line, annotate};
use crate::hosted::Hosted;
use crate::install::display::Display;
use crate::install::{TargetArgs, runtime};

/// On what, and where.
#[derive(Debug, Args)]
pub(super) struct WishArgs {
    #[command(flatten)]
    chosen: Chosen,

    /// Suppress progress output
    #[arg(long, short)]
    quiet: bool,

    #[command(flatten)]
    target: TargetArgs,
}

/// What is wished for.
pub(super) struct Wish {
    /// Annotations, and those that are to go.
    pub(super) annotations: BTreeMap<&'static str, Option<&'static str>>,
    /// Why it makes no sense for a cluster, if it makes none.
    pub(super) problem: fn(&Line) -> Option<&'static str>,
    /// Whether those of all for which it makes no sense are named.
    pub(super) names_others: bool,
    /// What is said of a cluster that was asked for.
    pub(super) asked: &'static str,
    /// What is said when there was none, if anything.
    pub(super) none: Option<&'static str>,
}

// === impl WishArgs ===

impl WishArgs {
    /// Asks for it.
    pub(super) fn ask(&self, wish: &Wish) -> anyhow::Result<()> {
        runtime()?.block_on(self.each(wish))
    }

    async fn each(&self, wish: &Wish) -> anyhow::Result<()> {
        let display = Display::new(self.quiet);
        let hosted = Hosted::connect(&self.target.access()).await?;
        let mut is_asked = false;
        for cluster in self.chosen.find(&hosted, false).await? {
            let line = Line::of(&cluster);
            if let Some(problem) = (wish.problem)(&line) {
                if !self.chosen.is_all() {
                    bail!("{}: {problem}", line.id());
                }
                if wish.names_others {
                    display.say(&format!("{}: {problem}", line.id()));
                }
                continue;
            }
            annotate(&hosted, &cluster, &wish.annotations).await?;
            display.say(&format!("{}: {}", line.id(), wish.asked));
            is_asked = true;
        }
        if let Some(none) = wish.none.filter(|_| !is_asked) {
            display.say(none);
        }
        Ok(())
    }
}
