//! What is written from the `api` crate's types, and is not edited by hand. `cargo xtask codegen` runs it.

mod manifest;
mod reference;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use api::crds::{self, Crd};
use api::features::FeatureSet;
use serde_json::Value;

/// Where the custom resource definitions are that hosted clusters serve.
const GUEST: &str = "manifests/crds-guest";

/// Where everything of one feature set is.
#[derive(Debug, Clone, Copy)]
struct Place {
    features: FeatureSet,
    /// The custom resource definitions.
    manifests: &'static str,
    /// The API reference.
    reference: &'static str,
}

/// Where everything is.
const PLACES: [Place; 2] = [
    Place {
        features: FeatureSet::Default,
        manifests: "manifests/crds",
        reference: "docs/api",
    },
    Place {
        features: FeatureSet::TechPreviewNoUpgrade,
        manifests: "manifests/crds-tech-preview",
        reference: "docs/api-tech-preview",
    },
];

/// The root of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Everything that is generated, by its path in the repository.
fn files() -> Result<BTreeMap<PathBuf, String>> {
    let mut files = BTreeMap::new();
    for place in PLACES {
        add(&mut files, place)?;
    }
    Ok(files)
}

/// Adds the files of a feature set. The definitions are all there, so that a directory can be applied; the reference has
/// only the kinds that differ from the default set, which also has those that hosted clusters serve.
fn add(files: &mut BTreeMap<PathBuf, String>, place: Place) -> Result<()> {
    let guest = match place.features {
        FeatureSet::Default => crds::GUEST,
        FeatureSet::TechPreviewNoUpgrade => &[],
    };
    let own = crds::of(place.features).map(|crd| (place.manifests, crd));
    let guest = guest.iter().map(|crd| (GUEST, crd));
    let mut described = Vec::new();
    for (manifests, crd) in own.chain(guest) {
        let name = (crd.name)();
        let definition = (crd.render)(place.features);
        let manifest = manifest::render(&definition)
            .with_context(|| format!("failed to write the definition of {name} as YAML"))?;
        files.insert(Path::new(manifests).join(format!("{name}.yaml")), manifest);
        if is_described(crd, place.features, &definition) {
            let path = Path::new(place.reference).join(format!("{name}.md"));
            files.insert(path, reference::page(&definition));
            described.push(definition);
        }
    }
    let path = Path::new(place.reference).join("README.md");
    files.insert(path, reference::index(&described, place.features));
    Ok(())
}

/// Whether a kind has a page: always in the default set, and in another one if its fields are not those of the default.
fn is_described(crd: &Crd, features: FeatureSet, definition: &Value) -> bool {
    let is_new = crd.features != FeatureSet::Default;
    let default = || (crd.render)(FeatureSet::Default);
    features == FeatureSet::Default || is_new || default()["spec"] != definition["spec"]
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
    let directories = PLACES.iter().flat_map(|it| [it.manifests, it.reference]);
    let directories = directories.chain([GUEST]);
    for directory in directories {
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
        let number = |directory: &str| {
            let directory = Path::new(directory);
            let within = files.keys().filter(|path| path.starts_with(directory));
            within.count()
        };
        let default = crds::of(FeatureSet::Default).count();
        assert_eq!(number("manifests/crds"), default);
        let guest = crds::GUEST.len();
        assert_eq!(number("manifests/crds-guest"), guest);
        assert_eq!(number("docs/api"), default + guest + 1);
        assert_eq!(number("manifests/crds-tech-preview"), crds::ALL.len());
        let manifest = &files[Path::new("manifests/crds/nodepools.hypershift.openshift.io.yaml")];
        assert!(
            manifest.contains("kind: CustomResourceDefinition"),
            "{manifest}"
        );
    }

    #[test]
    fn the_preview_describes_kinds_that_differ() {
        let files = files().unwrap();
        for (kind, expected) in [
            ("gcpprivateserviceconnects", true),
            ("hcpetcdbackups", true),
            ("hostedclusters", true),
            ("hostedcontrolplanes", true),
            ("nodepools", true),
            ("awsendpointservices", false),
        ] {
            let file = format!("docs/api-tech-preview/{kind}.hypershift.openshift.io.md");
            assert_eq!(files.contains_key(Path::new(&file)), expected, "{kind}");
        }
        let preview = |path: &Path| path.starts_with("manifests/crds-tech-preview");
        let unmarked = |text: &str| !text.contains("TechPreviewNoUpgrade");
        for (path, text) in &files {
            assert!(!text.contains("x-tech-preview"), "{}", path.display());
            assert!(!(preview(path) && unmarked(text)), "{}", path.display());
        }
    }
}
