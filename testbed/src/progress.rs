//! Progress output: a spinner on a terminal, plain lines elsewhere.
//!
//! It writes to standard error directly, so that a test's progress is seen without `--nocapture`.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::wait::seconds;

/// How often a step on a plain output says that it is still running.
const HEARTBEAT: Duration = Duration::from_secs(30);

/// A line of steps with a common start.
#[derive(Debug, Clone)]
pub struct Progress {
    start: Instant,
    bars: Option<Arc<MultiProgress>>,
}

/// One step that is running. Dropped without [`Step::done`], it is shown as not finished.
#[derive(Debug)]
pub struct Step {
    what: String,
    start: Instant,
    progress: Progress,
    shown: Shown,
    finished: bool,
}

#[derive(Debug)]
enum Shown {
    Bar(ProgressBar),
    /// The task that prints the heartbeat, when there is a runtime to run it.
    Plain(Option<tokio::task::JoinHandle<()>>),
}

// === impl Progress ===

impl Progress {
    /// A spinner if standard error is a terminal, else plain lines.
    #[must_use]
    pub fn detect() -> Self {
        let terminal = std::io::stderr().is_terminal();
        Self {
            start: Instant::now(),
            bars: terminal.then(|| Arc::new(MultiProgress::new())),
        }
    }

    /// Plain lines.
    #[must_use]
    pub fn plain() -> Self {
        Self {
            start: Instant::now(),
            bars: None,
        }
    }

    /// Time since the start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Prints a line.
    pub fn note(&self, line: &str) {
        let text = format!("[{:>8}] {line}", seconds(self.elapsed()));
        match &self.bars {
            // A line that cannot be shown is no reason to fail the work that it describes.
            Some(bars) => drop(bars.println(text)),
            None => drop(writeln!(std::io::stderr(), "{text}")),
        }
    }

    /// Starts a step.
    #[must_use]
    pub fn step(&self, what: impl Into<String>) -> Step {
        let what = what.into();
        let shown = match &self.bars {
            Some(bars) => Shown::Bar(spinner(bars, &what)),
            None => Shown::Plain(self.heartbeat(&what)),
        };
        Step {
            what,
            start: Instant::now(),
            progress: self.clone(),
            shown,
            finished: false,
        }
    }

    fn heartbeat(&self, what: &str) -> Option<tokio::task::JoinHandle<()>> {
        self.note(&format!("{what} ..."));
        let (progress, what, start) = (self.clone(), what.to_owned(), Instant::now());
        let runtime = tokio::runtime::Handle::try_current().ok()?;
        Some(runtime.spawn(async move {
            loop {
                tokio::time::sleep(HEARTBEAT).await;
                progress.note(&format!("{what} ... {}", seconds(start.elapsed())));
            }
        }))
    }
}

fn spinner(bars: &MultiProgress, what: &str) -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {msg} ... {elapsed}")
        .expect("invariant: the template is valid");
    let bar = bars.add(ProgressBar::new_spinner().with_style(style));
    bar.set_message(what.to_owned());
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

// === impl Step ===

impl Step {
    /// Ends the step; gives how long it took.
    pub fn done(self) -> Duration {
        self.done_with("")
    }

    /// Ends the step and adds its result to its line.
    pub fn done_with(mut self, result: &str) -> Duration {
        let took = self.start.elapsed();
        self.finished = true;
        let result = if result.is_empty() {
            String::new()
        } else {
            format!(": {result}")
        };
        self.close(&format!("{}{result} ({})", self.what, seconds(took)));
        took
    }

    fn close(&mut self, line: &str) {
        match &mut self.shown {
            Shown::Bar(bar) => bar.finish_and_clear(),
            Shown::Plain(heartbeat) => {
                if let Some(task) = heartbeat.take() {
                    task.abort();
                }
            }
        }
        self.progress.note(line);
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        if !self.finished {
            self.close(&format!(
                "{}: not finished ({})",
                self.what,
                seconds(self.start.elapsed())
            ));
        }
    }
}
