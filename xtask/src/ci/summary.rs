//! The summary of a run of the gate: counts, and the slowest parts.

use std::cmp::Reverse;
use std::fmt::Write;
use std::time::Duration;

use super::tally::Tally;

/// How many of the slowest parts are named.
const SLOWEST: usize = 10;

/// The result of a step.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) step: &'static str,
    pub(super) took: Duration,
    pub(super) tally: Tally,
}

/// A test, or a test program, and the time that it took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) name: String,
    pub(super) took: Duration,
}

/// A time in seconds.
pub(super) fn seconds(took: Duration) -> String {
    format!("{:.1} s", took.as_secs_f64())
}

/// The end of a run's output.
pub(super) fn text(outcomes: &[Outcome], parts: &[Part]) -> String {
    let steps = outcomes.iter().map(|outcome| Part {
        name: format!("step {}", outcome.step),
        took: outcome.took,
    });
    let mut text = String::from("\n");
    list(&mut text, "steps", steps.collect());
    list(&mut text, "tests", parts.to_vec());
    for outcome in outcomes.iter().filter(|outcome| outcome.tally.failed > 0) {
        let step = outcome.step;
        let _ = writeln!(
            text,
            "failed: {step} (again: cargo xtask test --only {step})"
        );
    }
    for outcome in outcomes.iter().filter(|outcome| outcome.tally.skipped > 0) {
        let _ = writeln!(
            text,
            "NOT CHECKED: {} (the step's output has the cause)",
            outcome.step
        );
    }
    let total = outcomes
        .iter()
        .fold(Tally::default(), |total, outcome| total + outcome.tally);
    let took: Duration = outcomes.iter().map(|outcome| outcome.took).sum();
    let _ = writeln!(text, "{total} in {}", seconds(took));
    text
}

fn list(text: &mut String, what: &str, mut parts: Vec<Part>) {
    if parts.is_empty() {
        return;
    }
    parts.sort_by_key(|part| Reverse(part.took));
    let _ = writeln!(text, "slowest {what}:");
    for part in parts.iter().take(SLOWEST) {
        let _ = writeln!(text, "  {:>9}  {}", seconds(part.took), part.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_parts_failures_and_totals_are_listed() {
        let outcome = |step, took, tally| Outcome {
            step,
            took: Duration::from_secs(took),
            tally,
        };
        let skipped = Tally {
            skipped: 1,
            ..Tally::default()
        };
        let outcomes = [
            outcome("fmt", 1, Tally::success()),
            outcome("e2e", 60, Tally::failure()),
            outcome("deny", 2, skipped),
        ];
        let parts: Vec<_> = (0..12)
            .map(|number| Part {
                name: format!("test_{number:02}"),
                took: Duration::from_secs(number),
            })
            .collect();
        let text = text(&outcomes, &parts);
        assert!(text.find("step e2e") < text.find("step fmt"), "{text}");
        assert!(
            text.contains("test_11") && text.contains("test_02"),
            "{text}"
        );
        assert!(!text.contains("test_01"), "{text}");
        assert!(text.contains("failed: e2e (again:"), "{text}");
        assert!(text.contains("NOT CHECKED: deny"), "{text}");
        assert!(
            text.ends_with("1 passed, 1 failed, 1 skipped in 63.0 s\n"),
            "{text}"
        );
    }
}
