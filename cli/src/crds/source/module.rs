//! Documents from a Go module, fetched by the `go` command into its own cache.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
    process::Command,
    str::FromStr,
};

use serde::Deserialize;

use super::{SourceError, file, kustomization};
use crate::crds::{Batch, Document};

/// The modules and versions that this release is tested with.
pub const PINNED: [(&str, &str); 8] = [
    ("sigs.k8s.io/cluster-api", "v1.13.4"),
    ("sigs.k8s.io/cluster-api/test", "v1.13.4"),
    ("sigs.k8s.io/cluster-api-provider-aws/v2", "v2.13.0"),
    ("sigs.k8s.io/cluster-api-provider-gcp", "v1.13.1"),
    ("sigs.k8s.io/cluster-api-provider-kubevirt", "v0.11.2"),
    ("sigs.k8s.io/cluster-api-provider-azure", "v1.26.0"),
    ("sigs.k8s.io/cluster-api-provider-openstack", "v0.14.6"),
    ("sigs.k8s.io/cluster-api-provider-ibmcloud", "v0.13.1"),
];

/// Modules of other projects with kinds that providers use, with the versions that this release is tested with.
pub const SHARED: [(&str, &str); 1] = [(
    "github.com/k-orc/openstack-resource-controller/v2",
    "v2.4.0",
)];

/// Directories that hold no CRDs of the project itself.
const NOT_SEARCHED: [&str; 3] = ["testdata", "vendor", "node_modules"];

/// A Go module at a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    path: String,
    version: String,
}

/// A text that names no module at a known version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidModule {
    /// Not a module path, or an empty version.
    #[error(
        "{text:?} is not a Go module: write MODULE@VERSION, for example sigs.k8s.io/cluster-api@v1.13.4"
    )]
    Form {
        /// The text as given.
        text: String,
    },
    /// No version, and the module is not pinned.
    #[error("module {path} needs a version, since what is newest changes: write {path}@VERSION")]
    NoVersion {
        /// The module's path.
        path: String,
    },
}

/// Why a module cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ModuleError {
    /// The `go` command cannot be started.
    #[error(
        "the go command cannot be run: install Go, or use --from-url with the project's release manifest"
    )]
    NoGo(#[source] io::Error),
    /// The `go` command says no.
    #[error("go mod download says: {0}")]
    Refused(String),
    /// The module has no CRDs where projects of this kind keep them.
    #[error(
        "it has no config/crd directory: use --from-file or --from-url with the project's release manifest"
    )]
    NoCrds,
}

/// What `go mod download -json` prints.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Download {
    dir: Option<PathBuf>,
    error: Option<String>,
}

// === impl Module ===

impl FromStr for Module {
    type Err = InvalidModule;

    /// Reads `MODULE@VERSION`, or `MODULE` when it is pinned.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (path, version) = match text.split_once('@') {
            Some((path, version)) => (path, Some(version)),
            None => (text, None),
        };
        let invalid = |part: &str| {
            part.is_empty() || part.starts_with('-') || part.contains(char::is_whitespace)
        };
        if invalid(path) || version.is_some_and(invalid) {
            return Err(InvalidModule::Form {
                text: text.to_owned(),
            });
        }
        let version = version
            .or_else(|| pinned(path))
            .ok_or_else(|| InvalidModule::NoVersion {
                path: path.to_owned(),
            })?;
        Ok(Self {
            path: path.to_owned(),
            version: version.to_owned(),
        })
    }
}

impl fmt::Display for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.path, self.version)
    }
}

impl Module {
    /// The modules of [`PINNED`].
    pub fn pinned() -> impl Iterator<Item = Self> {
        PINNED.into_iter().map(Self::of)
    }

    /// The modules of [`SHARED`].
    pub fn shared() -> impl Iterator<Item = Self> {
        SHARED.into_iter().map(Self::of)
    }

    fn of((path, version): (&str, &str)) -> Self {
        Self {
            path: path.to_owned(),
            version: version.to_owned(),
        }
    }
}

fn pinned(path: &str) -> Option<&'static str> {
    PINNED
        .iter()
        .chain(&SHARED)
        .find(|(pinned, _)| *pinned == path)
        .map(|(_, version)| *version)
}

/// Downloads a module, unless the cache has it, and reads the CRDs of each of its `config/crd` directories.
pub fn read(module: &Module) -> Result<Batch, SourceError> {
    let failed = |source| SourceError::Module {
        module: module.to_string(),
        source,
    };
    let root = download(module).map_err(failed)?;
    let mut directories = Vec::new();
    find_crds(&root, &mut directories)?;
    if directories.is_empty() {
        return Err(failed(ModuleError::NoCrds));
    }
    let mut documents = Vec::new();
    for directory in directories {
        documents.extend(read_crds(&directory)?);
    }
    for document in &mut documents {
        document.origin.source = shorten(&document.origin.source, &root, module);
    }
    Ok(Batch {
        name: module.to_string(),
        documents,
    })
}

/// Downloads a module, unless the cache has it; gives the directory of its sources.
pub fn download(module: &Module) -> Result<PathBuf, ModuleError> {
    // An empty directory, because a module or workspace that the user stands in has no say.
    let directory = tempfile::tempdir().map_err(ModuleError::NoGo)?;
    let output = Command::new("go")
        .args(["mod", "download", "-json", &module.to_string()])
        .current_dir(directory.path())
        .env("GO111MODULE", "on")
        .env("GOWORK", "off")
        .output()
        .map_err(ModuleError::NoGo)?;
    let refused = |text: &str| ModuleError::Refused(text.trim().to_owned());
    let download: Download = serde_json::from_slice(&output.stdout)
        .map_err(|_| refused(&String::from_utf8_lossy(&output.stderr)))?;
    match download {
        Download {
            error: Some(error), ..
        } => Err(refused(&error)),
        Download { dir: Some(dir), .. } => Ok(dir),
        Download {
            dir: None,
            error: None,
        } => Err(refused("nothing")),
    }
}

/// Collects the `config/crd` directories below `directory`, ordered by path.
fn find_crds(directory: &Path, found: &mut Vec<PathBuf>) -> Result<(), SourceError> {
    let entries = fs::read_dir(directory).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut directories: Vec<_> = entries
        .map_err(|source| file::read_error(directory, source))?
        .into_iter()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir() && searched(path))
        .collect();
    directories.sort();
    for path in directories {
        if path.ends_with("config/crd") {
            found.push(path);
        } else {
            find_crds(&path, found)?;
        }
    }
    Ok(())
}

fn searched(directory: &Path) -> bool {
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    !name.starts_with(['.', '_']) && !NOT_SEARCHED.contains(&&*name)
}

/// Reads a `config/crd` directory: as its kustomization says, or the generated files below it.
fn read_crds(directory: &Path) -> Result<Vec<Document>, SourceError> {
    let bases = directory.join("bases");
    if kustomization::find(directory).is_none() && bases.is_dir() {
        return file::read_directory(&bases);
    }
    file::read_directory(directory)
}

/// Names a file by module and path, not by where the cache is.
fn shorten(source: &str, root: &Path, module: &Module) -> String {
    source
        .strip_prefix(&*root.to_string_lossy())
        .map_or_else(|| source.to_owned(), |path| format!("{module}{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_written_or_pinned() {
        for (text, expected) in [
            ("sigs.k8s.io/cluster-api", "sigs.k8s.io/cluster-api@v1.13.4"),
            (
                "sigs.k8s.io/cluster-api@v1.12.0",
                "sigs.k8s.io/cluster-api@v1.12.0",
            ),
            ("example.com/provider@v0.1.0", "example.com/provider@v0.1.0"),
            (
                "github.com/k-orc/openstack-resource-controller/v2",
                "github.com/k-orc/openstack-resource-controller/v2@v2.4.0",
            ),
        ] {
            assert_eq!(text.parse::<Module>().unwrap().to_string(), expected);
        }
        assert!(matches!(
            "example.com/provider".parse::<Module>(),
            Err(InvalidModule::NoVersion { .. })
        ));
        for text in ["", "@v1", "a@", "-x", "a b@v1", "a@-x"] {
            assert!(
                matches!(text.parse::<Module>(), Err(InvalidModule::Form { .. })),
                "{text}"
            );
        }
    }

    #[test]
    fn finds_config_crd_directories_by_path() {
        let root = tempfile::tempdir().unwrap();
        for path in [
            "config/crd/bases",
            "bootstrap/kubeadm/config/crd",
            "vendor/x/config/crd",
            "pkg/testdata/config/crd",
            ".hidden/config/crd",
            "config/crds",
            "crd",
        ] {
            fs::create_dir_all(root.path().join(path)).unwrap();
        }
        let mut found = Vec::new();
        find_crds(root.path(), &mut found).unwrap();
        let found: Vec<_> = found
            .iter()
            .filter_map(|path| path.strip_prefix(root.path()).ok()?.to_str())
            .collect();
        assert_eq!(found, ["bootstrap/kubeadm/config/crd", "config/crd"]);
    }
}
