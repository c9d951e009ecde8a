//! What the client saw, as a table of `docs/failures.md`.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use testbed::wait::seconds;

use crate::highly_available::journal::Seen;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/failures.md");
const BEGIN: &str = "<!-- measured: written by the test highly_available -->\n";
const END: &str = "<!-- measured: end -->\n";
const HEAD: &str = "\
| failure | API meanwhile | reads failed | longest gap | writes failed | longest gap | all replicas back after |
|---|---|---|---|---|---|---|
";
/// Has the page written again.
const UPDATE: &str = "UPDATE_GOLDEN";

/// The result of a failure, in all its repetitions.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) failure: &'static str,
    /// Whether the API responds while the failure lasts.
    pub(crate) responses: bool,
    /// Of reads and of writes.
    pub(crate) seen: [Seen; 2],
    /// Until every replica served again, counted from the mending.
    pub(crate) whole_after: Duration,
}

/// All failures, in the order in which they were replayed.
#[derive(Debug, Default)]
pub(crate) struct Report {
    rows: Vec<Row>,
}

// === impl Report ===

impl Report {
    /// Adds a failure; of those that are replayed several times, the worst counts.
    pub(crate) fn add(&mut self, row: Row) {
        match self
            .rows
            .iter_mut()
            .find(|known| known.failure == row.failure)
        {
            Some(known) => known.merge(row),
            None => self.rows.push(row),
        }
    }

    /// The table.
    pub(crate) fn table(&self) -> String {
        self.rows
            .iter()
            .fold(HEAD.to_owned(), |text, row| text + &row.line())
    }

    /// Compares the page with the failures that were replayed and with whether the API responded; or updates it. If not all
    /// were replayed, what it says of the others stays.
    pub(crate) fn check(&self, is_all: bool) -> Result<()> {
        let path = Path::new(PAGE);
        let page = std::fs::read_to_string(path).with_context(|| format!("cannot read {PAGE}"))?;
        let (before, known, after) = parts(&page)?;
        let expected = if is_all {
            self.table()
        } else {
            self.amended(known)
        };
        if std::env::var_os(UPDATE).is_some() {
            let page = format!("{before}{expected}{after}");
            return std::fs::write(path, page).with_context(|| format!("cannot write {PAGE}"));
        }
        let (found, expected) = (promises(known), promises(&expected));
        ensure!(
            found == expected,
            "{PAGE} has {found:#?}, and this was seen: {expected:#?}; run the test with {UPDATE}=1, and read what it \
             has written"
        );
        Ok(())
    }

    /// A known table with the rows of this one in place of its own, and after them those that it does not have.
    fn amended(&self, known: &str) -> String {
        let mut lines: Vec<_> = known.lines().map(|line| format!("{line}\n")).collect();
        for row in &self.rows {
            let begin = format!("| {} |", row.failure);
            match lines.iter_mut().find(|line| line.starts_with(&begin)) {
                Some(line) => *line = row.line(),
                None => lines.push(row.line()),
            }
        }
        lines.concat()
    }
}

// === impl Row ===

impl Row {
    fn line(&self) -> String {
        let [reads, writes] = &self.seen;
        let cells = [
            self.failure.to_owned(),
            responses(self.responses).to_owned(),
            failed(reads),
            seconds(reads.gap),
            failed(writes),
            seconds(writes.gap),
            seconds(self.whole_after),
        ];
        format!("| {} |\n", cells.join(" | "))
    }

    fn merge(&mut self, other: Row) {
        self.responses &= other.responses;
        self.whole_after = self.whole_after.max(other.whole_after);
        for (own, other) in self.seen.iter_mut().zip(other.seen) {
            own.requests += other.requests;
            own.failed += other.failed;
            own.gap = own.gap.max(other.gap);
            for (reason, count) in other.reasons {
                *own.reasons.entry(reason).or_default() += count;
            }
        }
    }
}

fn responses(responses: bool) -> &'static str {
    if responses {
        "responds"
    } else {
        "does not respond"
    }
}

/// How many requests failed, and why.
fn failed(seen: &Seen) -> String {
    let mut text = format!("{} of {}", seen.failed, seen.requests);
    let reasons: Vec<_> = seen
        .reasons
        .iter()
        .map(|(reason, count)| format!("{count} {reason}"))
        .collect();
    if !reasons.is_empty() {
        text = format!("{text} ({})", reasons.join(", "));
    }
    text
}

/// What is before the table, the table, and what is after it.
fn parts(page: &str) -> Result<(&str, &str, &str)> {
    let missing = || format!("{PAGE} has no part between {BEGIN:?} and {END:?}");
    let begin = page.find(BEGIN).with_context(missing)? + BEGIN.len();
    let end = page.find(END).with_context(missing)?;
    let table = page.get(begin..end).with_context(missing)?;
    Ok((&page[..begin], table, &page[end..]))
}

/// What a table promises: the failures, and whether the API responds. Figures differ from run to run.
fn promises(table: &str) -> Vec<(String, String)> {
    let rows = table.lines().skip(2);
    let cells = rows.map(|row| row.split('|').map(|cell| cell.trim().to_owned()));
    cells
        .filter_map(|mut cells| Some((cells.nth(1)?, cells.next()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_of_several_repetitions_is_reported() {
        let seen = |failed, gap| Seen {
            requests: 10,
            failed,
            gap: Duration::from_secs(gap),
            reasons: [("no response".to_owned(), failed)].into(),
        };
        let row = |failed, gap, responses| Row {
            failure: "a pod",
            responses,
            seen: [seen(failed, gap), seen(1, 1)],
            whole_after: Duration::from_secs(gap),
        };
        let mut report = Report::default();
        report.add(row(1, 3, true));
        report.add(row(2, 2, true));
        let table = report.table();
        let expected = "| a pod | responds | 3 of 20 (3 no response) | 3.0 s | 2 of 20 (2 no response) | 1.0 s | 3.0 s |\n";
        assert!(table.ends_with(expected), "{table}");
        let promise = ("a pod".to_owned(), "responds".to_owned());
        assert_eq!(promises(&table), [promise]);
        let known = format!("{HEAD}| a node | responds |\n| a pod | responds | 0 of 1 |\n");
        let own = table.lines().last().unwrap();
        let amended = report.amended(&known);
        assert_eq!(amended, format!("{HEAD}| a node | responds |\n{own}\n"));
        assert_eq!(report.amended(HEAD), table);
        report.add(row(0, 0, false));
        assert!(report.table().contains("does not respond"));
    }

    #[test]
    fn the_table_is_found_in_its_page() {
        let page = format!("before\n{BEGIN}table\n{END}after\n");
        let (before, table, after) = parts(&page).unwrap();
        assert!(before.starts_with("before") && after.ends_with("after\n"));
        assert_eq!(table, "table\n");
        assert!(parts("nothing").is_err());
    }
}
