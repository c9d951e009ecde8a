//! Counting what passed and what failed.

use std::fmt;
use std::ops::Add;

/// How many checks passed and failed: each test of a test run, and each step that has no tests in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Passed.
    pub(crate) passed: u64,
    /// Failed.
    pub(crate) failed: u64,
}

// === impl Tally ===

impl Tally {
    /// One check that passed.
    pub(crate) fn success() -> Self {
        Self {
            passed: 1,
            failed: 0,
        }
    }

    /// One check that failed.
    pub(crate) fn failure() -> Self {
        Self {
            passed: 0,
            failed: 1,
        }
    }

    /// Reads a line of a test run: `test result: ok. 12 passed; 0 failed; ...`.
    pub(crate) fn of_line(line: &str) -> Option<Self> {
        let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
        let count = |label: &str| {
            counts
                .split(';')
                .find_map(|part| part.trim().strip_suffix(label)?.trim().parse().ok())
        };
        Some(Self {
            passed: count("passed")?,
            failed: count("failed")?,
        })
    }
}

impl Add for Tally {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_result_of_a_test_run_and_nothing_else() {
        let line = "test result: FAILED. 3 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s";
        let read = Tally::of_line(line);
        assert_eq!(
            read,
            Some(Tally {
                passed: 3,
                failed: 2
            })
        );
        for line in ["running 3 tests", "test a ... ok", "test result: ok"] {
            assert_eq!(Tally::of_line(line), None, "{line}");
        }
    }
}
