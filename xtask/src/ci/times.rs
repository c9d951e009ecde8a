//! How long tests took the last time, kept beside what cargo builds: the longest are started first.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use super::summary::Part;
use crate::sources::root;

/// Seconds by the name of a test.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Times(BTreeMap<String, u64>);

// === impl Times ===

impl Times {
    /// Reads those of the last run; there are none on a clean clone.
    pub(super) fn load() -> Self {
        Self::parse(&std::fs::read_to_string(file()).unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let lines = text.lines().filter_map(|line| {
            let (seconds, name) = line.split_once('\t')?;
            Some((name.to_owned(), seconds.parse().ok()?))
        });
        Self(lines.collect())
    }

    /// How long a test took.
    pub(super) fn of(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }

    /// Takes over what was measured.
    pub(super) fn record(&mut self, part: &Part) {
        let Part { name, took } = part;
        self.0.insert(name.clone(), rounded_up(*took));
    }

    /// Keeps them for the next run. Without them that run is only slower.
    pub(super) fn store(&self) {
        if let Some(directory) = file().parent() {
            drop(std::fs::create_dir_all(directory));
        }
        drop(std::fs::write(file(), self.text()));
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for (name, seconds) in &self.0 {
            let _ = writeln!(text, "{seconds}\t{name}");
        }
        text
    }
}

fn rounded_up(took: Duration) -> u64 {
    took.as_secs() + u64::from(took.subsec_nanos() > 0)
}

fn file() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR");
    let target = target.map_or_else(|| root().join("target"), PathBuf::from);
    target.join("xtask/times.tsv")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_times_are_read_again() {
        let mut times = Times::default();
        times.record(&Part {
            name: "node::pods".to_owned(),
            took: Duration::from_millis(1500),
        });
        assert_eq!(times.of("node::pods"), Some(2));
        assert_eq!(Times::parse(&times.text()), times);
        assert_eq!(Times::parse("no number\tname\nnothing"), Times::default());
    }
}
