//! What is written from the `api` crate's types, and is not edited by hand. `cargo xtask codegen` runs it.

mod manifest;
mod reference;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use api::crds;

/// Where the custom resource definitions are.
const MANIFESTS: &str = "manifests/crds";
/// Where the API reference is.
const REFERENCE: &str = "docs/api";

/// The root of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Everything that is generated, by its path in the repository.
fn files() -> Result<BTreeMap<PathBuf, String>> {
    let mut files = BTreeMap::new();
    let mut rendered = Vec::new();
    for crd in crds::ALL {
        let name = (crd.name)();
        let crd = (crd.render)();
        let manifest = manifest::render(&crd)
            .with_context(|| format!("failed to write the definition of {name} as YAML"))?;
        files.insert(Path::new(MANIFESTS).join(format!("{name}.yaml")), manifest);
        files.insert(
            Path::new(REFERENCE).join(format!("{name}.md")),
            reference::page(&crd),
        );
        rendered.push(crd);
    }
    files.insert(
        Path::new(REFERENCE).join("README.md"),
        reference::index(&rendered),
    );
    Ok(files)
}

/// Compares all files with what would be written, and gives their number. Fails with the first that differs.
pub fn check() -> Result<usize> {
    let files = files()?;
    compare(&files)?;
    Ok(files.len())
}

fn compare(files: &BTreeMap<PathBuf, String>) -> Result<()> {
    for (path, text) in files {
        let found = fs::read_to_string(root().join(path)).unwrap_or_default();
        if found != *text {
            bail!(
                "{} is not what the types of the api crate say: run `cargo xtask codegen` and commit the result{}",
                path.display(),
                first_difference(&found, text)
            );
        }
    }
    if let Some(path) = unexpected(files)?.first() {
        bail!(
            "{} is not generated from anything: remove it, or run `cargo xtask codegen`, which does",
            path.display()
        );
    }
    Ok(())
}

/// Writes what differs, removes what is not generated any more; gives the number of both, and of all files.
pub fn write() -> Result<(usize, usize)> {
    let files = files()?;
    let mut count = 0;
    for (path, text) in &files {
        let path = root().join(path);
        if fs::read_to_string(&path).is_ok_and(|found| found == *text) {
            continue;
        }
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)
                .with_context(|| format!("failed to create {}", directory.display()))?;
        }
        fs::write(&path, text).with_context(|| format!("failed to write {}", path.display()))?;
        count += 1;
    }
    for path in unexpected(&files)? {
        let path = root().join(path);
        fs::remove_file(&path).with_context(|| format!("failed to remove {}", path.display()))?;
        count += 1;
    }
    Ok((count, files.len()))
}

/// Files beside the generated ones that nothing generates.
fn unexpected(files: &BTreeMap<PathBuf, String>) -> Result<Vec<PathBuf>> {
    let mut unexpected = Vec::new();
    for directory in [MANIFESTS, REFERENCE] {
        let Ok(entries) = fs::read_dir(root().join(directory)) else {
            continue;
        };
        for entry in entries {
            let entry = entry.with_context(|| format!("failed to list {directory}"))?;
            let path = Path::new(directory).join(entry.file_name());
            if !files.contains_key(&path) {
                unexpected.push(path);
            }
        }
    }
    unexpected.sort();
    Ok(unexpected)
}

/// Where two texts part, for people.
fn first_difference(found: &str, wanted: &str) -> String {
    let mut lines = found.lines().zip(wanted.lines()).enumerate();
    match lines.find(|(_, (found, wanted))| found != wanted) {
        Some((line, (found, wanted))) => {
            format!("\n  line {}: {found}\n  should be: {wanted}", line + 1)
        }
        None => format!(
            "\n  it has {} lines and should have {}",
            found.lines().count(),
            wanted.lines().count()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_differs_is_shown() {
        for (found, wanted, expected) in [
            ("a\nb\n", "a\nc\n", "line 2: b"),
            ("", "a\n", "0 lines and should have 1"),
            ("a\nb\n", "a\n", "2 lines and should have 1"),
        ] {
            let shown = first_difference(found, wanted);
            assert!(shown.contains(expected), "{shown}");
        }
    }

    #[test]
    fn every_definition_has_a_manifest_and_a_page() {
        let files = files().unwrap();
        assert_eq!(files.len(), 2 * crds::ALL.len() + 1);
        let manifest = &files[Path::new("manifests/crds/nodepools.hypershift.openshift.io.yaml")];
        assert!(
            manifest.contains("kind: CustomResourceDefinition"),
            "{manifest}"
        );
    }
}
