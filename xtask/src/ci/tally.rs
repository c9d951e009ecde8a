//! Counting what passed, what failed, and what was not checked.

use std::fmt;
use std::ops::Add;

/// Numbers of checks: each test of a test run, and each step that has no tests in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) passed: u64,
    pub(super) failed: u64,
    /// Not checked, for a cause that was printed.
    pub(super) skipped: u64,
}

// === impl Tally ===

impl Tally {
    /// One check that passed.
    pub(super) fn success() -> Self {
        Self {
            passed: 1,
            ..Self::default()
        }
    }

    /// One check that failed.
    pub(super) fn failure() -> Self {
        Self {
            failed: 1,
            ..Self::default()
        }
    }

    /// One check that could not be made.
    pub(super) fn skipped() -> Self {
        Self {
            skipped: 1,
            ..Self::default()
        }
    }

    /// Adds up the results in the output of test programs: `test result: ok. 12 passed; 0 failed; ...`.
    pub(super) fn of_output(text: &str) -> Self {
        text.lines()
            .filter_map(Self::of_line)
            .fold(Self::default(), |total, more| total + more)
    }

    fn of_line(line: &str) -> Option<Self> {
        let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
        let count = |label: &str| {
            counts
                .split(';')
                .find_map(|part| part.trim().strip_suffix(label)?.trim().parse().ok())
        };
        Some(Self {
            passed: count("passed")?,
            failed: count("failed")?,
            skipped: 0,
        })
    }
}

impl Add for Tally {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            skipped: self.skipped + other.skipped,
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.skipped > 0 {
            write!(f, ", {} skipped", self.skipped)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_only_the_result_of_a_test_run() {
        let line = "test result: FAILED. 3 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s";
        let read = Tally::of_line(line).unwrap();
        assert_eq!((read.passed, read.failed), (3, 2));
        for line in ["running 3 tests", "test a ... ok", "test result: ok"] {
            assert_eq!(Tally::of_line(line), None, "{line}");
        }
        let twice = format!("{line}\nrunning 1 test\n{line}\n");
        assert_eq!(Tally::of_output(&twice).passed, 6);
    }
}
