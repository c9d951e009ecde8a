//! Documents from a file, a directory or standard input.

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use super::{SourceError, kustomization};
use crate::crds::{Batch, Document, parse};

/// The path that means standard input.
const STDIN: &str = "-";
const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

/// Reads a file, the files of a directory (not of directories below it), or standard input for `-`.
///
/// A directory with a kustomization is built as the kustomization says.
pub fn read(path: &Path) -> Result<Batch, SourceError> {
    let name = path.display().to_string();
    let documents = if path == Path::new(STDIN) {
        read_stdin()?
    } else if path.is_dir() {
        read_directory(path)?
    } else {
        read_file(path)?
    };
    Ok(Batch { name, documents })
}

/// Reads a directory: as its kustomization says, or else every file in it, ordered by name.
pub(super) fn read_directory(path: &Path) -> Result<Vec<Document>, SourceError> {
    if let Some(kustomization) = kustomization::find(path) {
        return kustomization::build(&kustomization);
    }
    let files = list(path)?;
    if files.is_empty() {
        return Err(SourceError::EmptyDirectory {
            path: path.to_owned(),
        });
    }
    let documents: Result<Vec<_>, _> = files.iter().map(|file| read_file(file)).collect();
    Ok(documents?.into_iter().flatten().collect())
}

/// Reads the documents of one file.
pub(super) fn read_file(path: &Path) -> Result<Vec<Document>, SourceError> {
    let text = fs::read_to_string(path).map_err(|source| read_error(path, source))?;
    Ok(parse(&path.display().to_string(), &text)?)
}

/// The YAML and JSON files of a directory, ordered by name.
fn list(directory: &Path) -> Result<Vec<PathBuf>, SourceError> {
    let entries = fs::read_dir(directory).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut files: Vec<_> = entries
        .map_err(|source| read_error(directory, source))?
        .into_iter()
        .map(|entry| entry.path())
        .filter(|path| path.is_file() && has_extension(path))
        .collect();
    files.sort();
    Ok(files)
}

fn has_extension(path: &Path) -> bool {
    path.extension()
        .and_then(|extension| extension.to_str())
        .is_some_and(|extension| EXTENSIONS.contains(&extension))
}

fn read_stdin() -> Result<Vec<Document>, SourceError> {
    let mut text = String::new();
    io::stdin()
        .read_to_string(&mut text)
        .map_err(|source| read_error(Path::new("standard input"), source))?;
    Ok(parse("standard input", &text)?)
}

/// An error of the file system, with the path it is about.
pub(super) fn read_error(path: &Path, source: io::Error) -> SourceError {
    SourceError::Read {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(directory: &Path, name: &str, text: &str) {
        fs::write(directory.join(name), text).unwrap();
    }

    #[test]
    fn reads_the_files_of_a_directory_by_name() {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), "b.yml", "kind: B\n");
        write(directory.path(), "a.yaml", "kind: A\n---\nkind: A2\n");
        write(directory.path(), "c.json", "{\"kind\": \"C\"}");
        write(directory.path(), "OWNERS", "not: [yaml");
        let batch = read(directory.path()).unwrap();
        let kinds: Vec<_> = batch
            .documents
            .iter()
            .filter_map(|document| document.value["kind"].as_str())
            .collect();
        assert_eq!(kinds, ["A", "A2", "B", "C"]);
        assert!(
            batch.documents[1]
                .origin
                .to_string()
                .ends_with("a.yaml, document 2")
        );
    }

    #[test]
    fn names_what_cannot_be_read() {
        let directory = tempfile::tempdir().unwrap();
        let empty = read(directory.path()).unwrap_err();
        assert!(
            matches!(empty, SourceError::EmptyDirectory { .. }),
            "{empty}"
        );
        let missing = read(&directory.path().join("missing.yaml")).unwrap_err();
        assert!(missing.to_string().contains("missing.yaml"), "{missing}");
    }
}
