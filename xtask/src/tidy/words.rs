//! Words that must not return, in sources, documentation and manifests: CONTRIBUTING.md describes the language.

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
/// Manifests that are shipped. Those in crates are not checked: a changed comment in a script rolls its pods.
const MANIFESTS: &str = "manifests/";
/// Lines with a value that users depend on, such as the label value of a metric: one constant in each file, and the lines
/// that document it.
const CONTRACT: [(&str, &str); 4] = [
    (
        "hypershift-operator/src/metrics.rs",
        "const OWNER_UNDECIDED: &str = \"nobody\";",
    ),
    (
        "e2e/tests/operator/ownership.rs",
        "const OWNER_UNDECIDED: &str = \"nobody\";",
    ),
    (
        "docs/metrics.md",
        "| `hypershift_operator_hostedclusters` | gauge | `owner`: `new`, `legacy`, `migration`, `nobody` | hosted clusters by owner |",
    ),
    (
        "CHANGELOG.md",
        "- UPGRADE: `hypershift doctor` reports the owner `nobody` as `none`, also in JSON.",
    ),
];
/// This list itself.
const RULE: &str = "xtask/src/tidy/words.rs";

/// The lines with such words.
pub(super) fn findings(files: &[String]) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| is_checked(file)) {
        let text = sources::read(file)?;
        let text = without_contract(file, &text);
        findings
            .extend(words(&text).map(|(line, word, instead)| {
                format!("{file}:{line}: \"{word}\": write {instead}")
            }));
    }
    Ok(findings)
}

fn is_checked(file: &str) -> bool {
    let is_text = sources::is_rust(file) || sources::is_markdown(file);
    let is_manifest = file.starts_with(MANIFESTS) && sources::has_extension(file, "yaml");
    file != RULE && (is_text || is_manifest)
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
    fn sources_documentation_and_manifests_are_checked() {
        for (file, expected) in [
            ("xtask/src/ci.rs", true),
            ("e2e/tests/doctor.rs", true),
            ("README.md", true),
            ("docs/api/README.md", true),
            ("docs/runbooks/HyperShiftOperatorDegraded.md", true),
            ("capi-proxy/fuzz/README.md", true),
            ("manifests/alerts/capi-conversion.yaml", true),
            ("manifests/README.txt", false),
            ("xtask/Cargo.toml", false),
            (
                "control-plane-operator/src/components/etcd/assets/statefulset.yaml",
                false,
            ),
            (RULE, false),
        ] {
            assert_eq!(is_checked(file), expected, "{file}");
        }
    }

    #[test]
    fn words_are_found_in_markdown() {
        let page =
            "# Owners\n\n| `owner` | `new`, `nobody` |\nThe operator [tells](x.md) the user.\n";
        let found: Vec<_> = words(page).map(|(line, word, _)| (line, word)).collect();
        assert_eq!(found, [(3, "nobody"), (4, "tells")]);
    }
}
