//! Progress of a command, on standard error.

/// Says what happens, or keeps quiet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Progress {
    quiet: bool,
}

impl Progress {
    /// Talkative unless `quiet`.
    pub(crate) fn new(quiet: bool) -> Self {
        Self { quiet }
    }

    /// One line.
    pub(crate) fn say(self, line: &str) {
        if !self.quiet {
            eprintln!("{line}");
        }
    }
}
