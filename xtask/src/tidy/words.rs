//! Words that must not return, in crates that are free of them: CONTRIBUTING.md describes the language.

use std::path::Path;

use anyhow::Result;

use crate::sources;

/// Words, and what to write instead.
const WORDS: [(&str, &str); 28] = [
    ("anew", "again"),
    ("anybody", "any client, any user"),
    ("befall", "happen to"),
    ("census", "metrics"),
    ("deed", "operation"),
    ("deeds", "operations"),
    ("foresight", "compatibility"),
    ("foretold", "predicted"),
    ("imagine", "render"),
    ("mend", "fix"),
    ("mended", "fixed"),
    ("minds", "manages"),
    ("nobody", "no controller, no user"),
    ("portrait", "snapshot"),
    ("powerless", "missing permissions"),
    ("somebody", "a user, a controller"),
    ("speaks", "supports, uses"),
    ("stumble", "fail"),
    ("stumbles", "fails"),
    ("surplus", "prune"),
    ("tell", "report"),
    ("tells", "reports"),
    ("told", "reported"),
    ("twin", "target"),
    ("whoever", "the client, the caller"),
    ("wish", "desired state"),
    ("wished", "desired"),
    ("world", "Cluster API, snapshot, fixture"),
];
/// Directories that are free of them. A crate is added when it is clean, and never removed.
const CLEAN: [&str; 12] = [
    "api/",
    "capi-proxy/",
    "cli/",
    "control-plane-component/",
    "control-plane-operator/",
    "e2e/",
    "hypershift-operator/",
    "migration/",
    "payload/",
    "support/",
    "testbed/",
    "xtask/",
];
/// Lines with a value that users depend on, such as the label value of a metric: each is one constant in one file.
const CONTRACT: [(&str, &str); 2] = [
    (
        "hypershift-operator/src/metrics.rs",
        "const OWNER_UNDECIDED: &str = \"nobody\";",
    ),
    (
        "e2e/tests/operator/ownership.rs",
        "const OWNER_UNDECIDED: &str = \"nobody\";",
    ),
];
/// This list itself.
const RULE: &str = "xtask/src/tidy/words.rs";

/// The lines with such words.
pub(super) fn findings(files: &[String]) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| is_clean(file)) {
        let text = sources::read(file)?;
        let text = without_contract(file, &text);
        findings
            .extend(words(&text).map(|(line, word, instead)| {
                format!("{file}:{line}: \"{word}\": write {instead}")
            }));
    }
    Ok(findings)
}

fn is_clean(file: &str) -> bool {
    let text = sources::is_rust(file) || Path::new(file).extension().is_some_and(|it| it == "md");
    text && file != RULE && CLEAN.iter().any(|it| file.starts_with(it))
}

/// The text with an empty line in place of each contract of the file. Only the exact line is exempt.
fn without_contract(file: &str, text: &str) -> String {
    let is_contract = |line: &str| CONTRACT.contains(&(file, line));
    let lines = text.lines();
    let lines = lines.map(|line| if is_contract(line) { "" } else { line });
    lines.collect::<Vec<_>>().join("\n")
}

/// Line numbers from one, the words, and what to write instead.
fn words(text: &str) -> impl Iterator<Item = (usize, &'static str, &'static str)> {
    text.lines().enumerate().flat_map(|(index, line)| {
        let lower = line.to_lowercase();
        WORDS
            .into_iter()
            .filter(move |(word, _)| has_word(&lower, word))
            .map(move |(word, instead)| (index + 1, word, instead))
    })
}

/// Whether a line contains a word, or a name with it as a part between underscores.
fn has_word(line: &str, word: &str) -> bool {
    line.split(|c: char| !c.is_ascii_alphanumeric())
        .any(|part| part == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_words_are_found_in_prose_and_in_names() {
        let text =
            "fn told_to_end() {}\n// Whoever asks.\n// A mention of tellers, amended and twine.\n";
        let found: Vec<_> = words(text).map(|(line, word, _)| (line, word)).collect();
        assert_eq!(found, [(1, "told"), (2, "whoever")]);
    }

    #[test]
    fn only_the_exact_line_of_a_contract_is_exempt() {
        let (file, line) = CONTRACT[0];
        let count = |file, line: &str| words(&without_contract(file, line)).count();
        assert_eq!(count(file, line), 0);
        assert_eq!(count(file, &format!("{line} // for nobody")), 1);
        assert_eq!(count("hypershift-operator/src/run.rs", line), 1);
    }

    #[test]
    fn only_clean_directories_are_held_to_it() {
        assert!(is_clean("xtask/src/ci.rs") && !is_clean("xtask/Cargo.toml"));
        assert!(is_clean("e2e/tests/doctor.rs") && is_clean("support/src/lib.rs"));
        assert!(!is_clean("testdata/README.md") && !is_clean(RULE));
    }
}
