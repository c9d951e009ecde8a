//! Words that must not return, in crates that are free of them: CONTRIBUTING.md describes the language.

use std::path::Path;

use anyhow::Result;

use crate::sources;

/// Words, and what to write instead.
const WORDS: [(&str, &str); 19] = [
    ("anew", "again"),
    ("census", "metrics"),
    ("foresight", "compatibility"),
    ("mend", "fix"),
    ("mended", "fixed"),
    ("minds", "manages"),
    ("nobody", "no controller, no user"),
    ("powerless", "missing permissions"),
    ("somebody", "a user, a controller"),
    ("speaks", "supports, uses"),
    ("stumble", "fail"),
    ("stumbles", "fails"),
    ("tell", "report"),
    ("tells", "reports"),
    ("told", "reported"),
    ("twin", "target"),
    ("whoever", "the client, the caller"),
    ("wish", "desired state"),
    ("wished", "desired"),
];
/// Directories that are free of them. A crate is added when it is clean, and never removed.
const CLEAN: [&str; 7] = [
    "api/codegen/",
    "capi-proxy/",
    "cli/src/",
    "hypershift-operator/ownership/",
    "migration/",
    "testbed/",
    "xtask/src/",
];
/// This list itself.
const RULE: &str = "xtask/src/tidy/words.rs";

/// The lines with such words.
pub(super) fn findings(files: &[String]) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| is_clean(file)) {
        let text = sources::read(file)?;
        findings
            .extend(words(&text).map(|(line, word, instead)| {
                format!("{file}:{line}: \"{word}\": write {instead}")
            }));
    }
    Ok(findings)
}

fn is_clean(file: &str) -> bool {
    let text = sources::is_rust(file) || Path::new(file).extension().is_some_and(|it| it == "md");
    text && file != RULE && CLEAN.iter().any(|clean| file.starts_with(clean))
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

/// Whether a word stands in a line by itself, or as a part of a name between underscores.
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
    fn only_clean_directories_are_held_to_it() {
        assert!(is_clean("xtask/src/ci.rs") && !is_clean("xtask/Cargo.toml"));
        assert!(!is_clean("e2e/tests/doctor.rs") && !is_clean(RULE));
    }
}
