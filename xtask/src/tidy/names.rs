//! Files that do not belong into the repository, by their names.

/// Directories and files that another build tool would bring: `cargo xtask` is the one door.
const OTHER_DOORS: [&str; 5] = [
    "GNUmakefile",
    "Makefile",
    "Taskfile.yml",
    "hack",
    "justfile",
];
/// Endings of what editors, merges and secrets leave.
const ENDINGS: [&str; 8] = [
    ".bak",
    ".key",
    ".kubeconfig",
    ".orig",
    ".pem",
    ".rej",
    ".swp",
    "~",
];

/// The files that do not belong here.
pub(super) fn findings(files: &[String]) -> Vec<String> {
    let unwanted = files.iter().filter(|file| is_unwanted(file));
    unwanted
        .map(|file| format!("{file}: files of this name do not belong into the repository"))
        .collect()
}

fn is_unwanted(file: &str) -> bool {
    file.split('/').any(|part| OTHER_DOORS.contains(&part))
        || ENDINGS.iter().any(|ending| file.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_by_part_and_ending() {
        for (file, expected) in [
            ("Makefile", true),
            ("docs/hack/notes.md", true),
            ("api/src/group.rs.orig", true),
            ("docs/hacking.md", false),
            ("e2e/src/kubeconfig.rs", false),
        ] {
            assert_eq!(is_unwanted(file), expected, "{file}");
        }
    }
}
