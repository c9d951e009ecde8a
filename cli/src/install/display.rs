//! What people see while a command works: a spinner on a terminal, plain lines elsewhere.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};

/// How often the spinner turns.
const TICK: Duration = Duration::from_millis(120);

/// Standard error, as far as it is wanted.
#[derive(Debug)]
pub(crate) struct Display {
    quiet: bool,
    terminal: bool,
}

/// Something under way.
#[derive(Debug)]
pub(crate) struct Step<'d> {
    display: &'d Display,
    what: String,
    bar: Option<ProgressBar>,
    /// What was said last, so that plain lines do not repeat.
    last: String,
}

// === impl Display ===

impl Display {
    pub(crate) fn new(quiet: bool) -> Self {
        Self {
            quiet,
            terminal: io::stderr().is_terminal(),
        }
    }

    /// One line.
    pub(crate) fn say(&self, line: &str) {
        if !self.quiet {
            // A line that cannot be shown is no reason to stop.
            drop(writeln!(io::stderr(), "{line}"));
        }
    }

    /// Begins something that takes time.
    pub(crate) fn step(&self, what: &str) -> Step<'_> {
        let bar = (self.terminal && !self.quiet).then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg} {elapsed}") {
                bar.set_style(style);
            }
            bar.set_message(what.to_owned());
            bar.enable_steady_tick(TICK);
            bar
        });
        if bar.is_none() {
            self.say(what);
        }
        Step {
            display: self,
            what: what.to_owned(),
            bar,
            last: String::new(),
        }
    }
}

// === impl Step ===

impl Step<'_> {
    /// How it goes.
    pub(crate) fn update(&mut self, how: &str) {
        if self.last == how {
            return;
        }
        how.clone_into(&mut self.last);
        match &self.bar {
            Some(bar) => bar.set_message(format!("{}: {how}", self.what)),
            None => self.display.say(&format!("  {how}")),
        }
    }

    /// It is done.
    pub(crate) fn done(self, result: &str) {
        match &self.bar {
            Some(bar) => {
                bar.finish_and_clear();
                self.display.say(&format!("{}: {result}", self.what));
            }
            None => self.display.say(&format!("  {result}")),
        }
    }
}

impl Drop for Step<'_> {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Writes to standard output. A reader who has seen enough, as `head` has, is no error.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to standard output"),
    }
}
