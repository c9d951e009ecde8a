//! Private CRDs as text: one stream, or one file each.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use tempfile::NamedTempFile;

/// The form of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// YAML; documents are separated by `---`.
    Yaml,
    /// JSON; a stream is one `List`.
    Json,
}

/// Why output failed.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// An object cannot be written as YAML.
    #[error("cannot write YAML")]
    Yaml(#[from] serde_saphyr::SerializeError),
    /// An object cannot be written as JSON.
    #[error("cannot write JSON")]
    Json(#[from] serde_json::Error),
    /// A file cannot be written.
    #[error("cannot write {}: check that the directory may be written to", path.display())]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
}

/// Who may read a file that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readers {
    /// Everyone.
    Everyone,
    /// The user who writes it: it has secrets.
    Owner,
}

/// All objects as one text that `kubectl apply -f -` takes.
pub fn stream(objects: &[Value], format: Format) -> Result<String, OutputError> {
    match format {
        Format::Yaml => {
            let documents: Result<Vec<_>, _> = objects
                .iter()
                .map(|object| render(object, format))
                .collect();
            Ok(documents?.join("---\n"))
        }
        Format::Json => render(
            &json!({"apiVersion": "v1", "kind": "List", "items": objects}),
            format,
        ),
    }
}

/// Writes each object to a file of its own, called by the object's name, and returns the files.
///
/// A file appears whole or not at all. Other files in the directory are left alone.
pub fn files(
    directory: &Path,
    objects: &[Value],
    format: Format,
) -> Result<Vec<PathBuf>, OutputError> {
    fs::create_dir_all(directory).map_err(|source| write_error(directory, source))?;
    objects
        .iter()
        .map(|object| {
            let name = object["metadata"]["name"].as_str().unwrap_or("unnamed");
            let path = directory.join(format!("{name}.{}", extension(format)));
            let text = render(object, format)?;
            let written = write(directory, &path, &text, Readers::Everyone);
            written.map_err(|source| write_error(&path, source))?;
            Ok(path)
        })
        .collect()
}

/// Writes a file, and the directories that it is in. It appears whole or not at all.
pub(crate) fn file(path: &Path, text: &str, readers: Readers) -> Result<(), OutputError> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let made = fs::create_dir_all(directory);
    made.and_then(|()| write(directory, path, text, readers))
        .map_err(|source| write_error(path, source))
}

fn render(object: &Value, format: Format) -> Result<String, OutputError> {
    match format {
        Format::Yaml => {
            // Long lines stay lines: folding would make every reworded sentence a larger difference.
            let options = serde_saphyr::ser_options! {
                folded_wrap_chars: usize::MAX,
            };
            Ok(serde_saphyr::to_string_with_options(object, options)?)
        }
        Format::Json => Ok(format!("{}\n", serde_json::to_string_pretty(object)?)),
    }
}

fn write(directory: &Path, path: &Path, text: &str, readers: Readers) -> io::Result<()> {
    let mut file = NamedTempFile::new_in(directory)?;
    file.write_all(text.as_bytes())?;
    if readers == Readers::Everyone {
        make_readable(file.as_file())?;
    }
    file.persist(path)?;
    Ok(())
}

/// Temporary files are their owner's alone; manifests are for everyone.
#[cfg(unix)]
fn make_readable(file: &fs::File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn make_readable(_: &fs::File) -> io::Result<()> {
    Ok(())
}

fn extension(format: Format) -> &'static str {
    match format {
        Format::Yaml => "yaml",
        Format::Json => "json",
    }
}

fn write_error(path: &Path, source: io::Error) -> OutputError {
    OutputError::Write {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crds::parse;

    fn objects() -> Vec<Value> {
        vec![
            json!({"metadata": {"name": "b"}, "text": "yes", "lines": "one\n  two\n", "number": 1.5, "none": null}),
            json!({"metadata": {"name": "a"}, "text": "0123", "long": "word ".repeat(60), "empty": {}, "list": []}),
        ]
    }

    #[test]
    fn a_stream_reads_back_as_it_was() {
        for format in [Format::Yaml, Format::Json] {
            let text = stream(&objects(), format).unwrap();
            let read: Vec<_> = parse("stream", &text)
                .unwrap()
                .into_iter()
                .map(|d| d.value)
                .collect();
            assert_eq!(read, objects(), "{text}");
        }
    }

    #[test]
    fn words_that_old_readers_take_for_booleans_are_quoted() {
        let text = stream(&objects(), Format::Yaml).unwrap();
        assert!(
            !text.contains("text: yes\n") && !text.contains("text: 0123\n"),
            "{text}"
        );
    }

    #[test]
    fn files_are_called_by_name_and_replaced_whole() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("new/crds");
        for _ in 0..2 {
            let paths = files(&target, &objects(), Format::Yaml).unwrap();
            assert_eq!(paths, [target.join("b.yaml"), target.join("a.yaml")]);
        }
        let left = fs::read_dir(&target).unwrap().count();
        assert_eq!(left, 2, "temporary files are left behind");
        let read = parse("a", &fs::read_to_string(target.join("a.yaml")).unwrap()).unwrap();
        assert_eq!(read[0].value, objects()[1]);
    }
}
