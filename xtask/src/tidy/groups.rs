//! Only `api/src/group.rs` spells API groups: what ships takes them from there.
//!
//! Label keys such as `cluster.x-k8s.io/cluster-name` are no groups and may be spelled.

use anyhow::Result;

use crate::sources;

/// The one file that may.
const TABLE: &str = "api/src/group.rs";
/// The standard suffix. It counts where a string literal begins with a group and continues as one does.
const STANDARD: &str = "cluster.x-k8s.io";
/// The private suffix. It counts however the literal continues.
const PRIVATE: &str = "cluster.hypershift.openshift.io";
/// Crates that ship nothing may spell what they test and show.
const EXEMPT: [&str; 3] = ["e2e/", "testbed/", "xtask/"];

/// The lines that spell a group and may not.
pub(super) fn findings(files: &[String]) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| is_checked(file)) {
        let text = sources::read(file)?;
        findings
            .extend(lines_with_groups(&text).map(|line| {
                format!("{file}:{line}: spells an API group: take it from api::group")
            }));
    }
    Ok(findings)
}

fn is_checked(file: &str) -> bool {
    let test = file.ends_with("/tests.rs")
        || ["tests/", "benches/", "fuzz/", "examples/"]
            .iter()
            .any(|part| file.contains(part));
    sources::is_rust(file) && file != TABLE && !test && !EXEMPT.iter().any(|e| file.starts_with(e))
}

/// Line numbers, counted from one, up to where the file's tests begin.
fn lines_with_groups(text: &str) -> impl Iterator<Item = usize> {
    text.lines()
        .take_while(|line| line.trim() != "#[cfg(test)]")
        .enumerate()
        .filter(|(_, line)| !line.trim_start().starts_with("//") && spells_a_group(line))
        .map(|(index, _)| index + 1)
}

/// Whether a string literal of the line begins with a group. Help texts with an example in their middle are no code.
fn spells_a_group(line: &str) -> bool {
    line.split('"').skip(1).step_by(2).any(|literal| {
        let begins = |suffix: &str| {
            let (prefix, rest) = literal.split_once(suffix)?;
            let group = prefix.chars().all(|c| c.is_ascii_lowercase() || c == '.');
            group.then_some(rest)
        };
        begins(PRIVATE).is_some() || begins(STANDARD).is_some_and(goes_on_as_a_group)
    })
}

/// Whether what follows the suffix is what follows a group: nothing, or a version.
fn goes_on_as_a_group(rest: &str) -> bool {
    let version = rest.strip_prefix("/v");
    let version = version.is_some_and(|rest| rest.chars().all(|c| c.is_ascii_alphanumeric()));
    rest.is_empty() || version
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_distinguished_from_label_keys() {
        for (line, expected) in [
            (r#"let group = "infrastructure.cluster.x-k8s.io";"#, true),
            (r#"let version = "cluster.x-k8s.io/v1beta2";"#, true),
            (r#"let label = "cluster.x-k8s.io/cluster-name";"#, false),
            (
                r#"let private = "cluster.hypershift.openshift.io/x";"#,
                true,
            ),
            (
                r#"    example: --path /apis/cluster.x-k8s.io/v1beta2/clusters";"#,
                false,
            ),
            (r#"let label = "cluster.x-k8s.io/v1beta1=v1beta1";"#, false),
            ("let other = 1;", false),
        ] {
            assert_eq!(spells_a_group(line), expected, "{line}");
        }
    }

    #[test]
    fn comments_and_tests_may_spell_groups() {
        let text = "// cluster.hypershift.openshift.io\nlet a = 1;\n#[cfg(test)]\n\
                    let b = \"cluster.hypershift.openshift.io\";\n";
        assert_eq!(lines_with_groups(text).count(), 0);
    }
}
