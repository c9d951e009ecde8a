//! Every check of the product has a line in `docs/checks.md`, and every mutation of `docs/mutations.md` tests that exist.

use std::collections::BTreeSet;

use anyhow::Result;

use crate::sources;

/// The legend of check numbers.
const LEGEND: &str = "docs/checks.md";
/// Changes of the code, and the tests that fail with them.
const MUTATIONS: &str = "docs/mutations.md";
/// The families of checks and how many each has: rewriting, security, streaming, faults, operators,
/// migrations, conversion.
const FAMILIES: [(char, usize); 7] = [
    ('R', 34),
    ('S', 20),
    ('W', 11),
    ('F', 8),
    ('O', 8),
    ('M', 20),
    ('C', 7),
];

/// A line of the legend: a number, and the tests that show it.
#[derive(Debug, PartialEq, Eq)]
struct Row<'a> {
    number: &'a str,
    tests: Vec<&'a str>,
}

/// Checks without a line or without a test, and tests that do not exist.
pub(super) fn findings(files: &[String]) -> Result<Vec<String>> {
    let mut functions = BTreeSet::new();
    for file in files.iter().filter(|file| sources::is_rust(file)) {
        functions.extend(names_of_functions(&sources::read(file)?));
    }
    let mut findings = compare(&sources::read(LEGEND)?, &functions);
    findings.extend(mutations(&sources::read(MUTATIONS)?, &functions));
    Ok(findings)
}

/// Mutations without a test, and tests of mutations that do not exist.
fn mutations(page: &str, functions: &BTreeSet<String>) -> Vec<String> {
    let rows = page.lines().filter(|line| {
        let first = line
            .strip_prefix("| ")
            .and_then(|row| row.split(" | ").next());
        first.is_some_and(|cell| cell.split(", ").all(is_number))
    });
    let mut findings = Vec::new();
    for row in rows {
        let tests = tests(row);
        if tests.is_empty() {
            findings.push(format!("{MUTATIONS}: no test: {row}"));
        }
        let missing = tests.into_iter().filter(|test| !functions.contains(*test));
        findings.extend(missing.map(|test| format!("{MUTATIONS}: there is no test {test}")));
    }
    findings
}

fn compare(legend: &str, functions: &BTreeSet<String>) -> Vec<String> {
    let rows: Vec<_> = legend.lines().filter_map(Row::read).collect();
    let mut findings = Vec::new();
    for number in all() {
        if !rows.iter().any(|row| row.number == number) {
            findings.push(format!("{LEGEND}: {number} is missing"));
        }
    }
    for row in &rows {
        if row.tests.is_empty() {
            findings.push(format!("{LEGEND}: {} has no test", row.number));
        }
        for test in row.tests.iter().filter(|test| !functions.contains(**test)) {
            findings.push(format!("{LEGEND}: {}: there is no test {test}", row.number));
        }
    }
    findings
}

fn all() -> impl Iterator<Item = String> {
    FAMILIES
        .into_iter()
        .flat_map(|(family, count)| (1..=count).map(move |number| format!("{family}{number:02}")))
}

fn names_of_functions(text: &str) -> impl Iterator<Item = String> {
    text.split("fn ").skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
        Some(rest[..end].to_owned())
    })
}

// === impl Row ===

impl<'a> Row<'a> {
    /// Reads `| M02 | what must hold | ..tests.. |`; measurements (P) have no tests.
    fn read(line: &'a str) -> Option<Self> {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        let number = cells.next().filter(|cell| is_number(cell))?;
        Some(Self {
            number,
            tests: tests(line),
        })
    }
}

/// The names in backticks in the last cell of a row.
fn tests(row: &str) -> Vec<&str> {
    let cell = row.rsplit(" | ").next().unwrap_or_default();
    cell.split('`').skip(1).step_by(2).collect()
}

/// Whether a cell is a letter and two digits, other than a measurement's.
fn is_number(cell: &str) -> bool {
    let mut chars = cell.chars();
    chars
        .next()
        .is_some_and(|c| c.is_ascii_uppercase() && c != 'P')
        && chars.clone().count() == 2
        && chars.all(|c| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_needs_a_line_with_tests_that_exist() {
        let line =
            |number: &str| format!("| {number} | What holds, `not a test`. | `good`, `bad` |\n");
        let functions: BTreeSet<_> =
            names_of_functions("async fn good() {} fn bad<T>() {}").collect();
        let complete: String = all().map(|number| line(&number)).collect();
        assert_eq!(compare(&complete, &functions), [""; 0]);

        let missing = complete.replace(&line("M02"), "");
        assert_eq!(
            compare(&missing, &functions),
            ["docs/checks.md: M02 is missing"]
        );
        let renamed = complete.replacen("`good`", "`gone`", 1);
        assert_eq!(
            compare(&renamed, &functions),
            ["docs/checks.md: R01: there is no test gone"]
        );
        let bare = format!("{complete}| T01 | What holds. |  |\n");
        assert_eq!(
            compare(&bare, &functions),
            ["docs/checks.md: T01 has no test"]
        );
    }

    #[test]
    fn every_mutation_names_tests_that_exist() {
        let functions: BTreeSet<_> = names_of_functions("fn good() {} fn fine() {}").collect();
        let page = "| check | change | test |\n|---|---|---|\n\
            | T01, T20 | No `check`. | `good`, `fine` |\n| T02 | No limit. | `gone` |\n| M03 | None. | |\n";
        assert_eq!(
            mutations(page, &functions),
            [
                "docs/mutations.md: there is no test gone",
                "docs/mutations.md: no test: | M03 | None. | |"
            ]
        );
    }

    #[test]
    fn the_families_are_complete() {
        let all: Vec<_> = all().collect();
        assert_eq!(all.len(), 108);
        assert!(all.contains(&"F08".to_owned()));
        assert!(is_number("T21") && !is_number("P01") && !is_number("number"));
    }
}
