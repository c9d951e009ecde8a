//! Manifests, and the files and directories that they are in.

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::Result;

/// The group and version of MachineConfigs.
pub(crate) const API: &str = "machineconfiguration.openshift.io/v1";
/// Label: the role of the machines that a MachineConfig is for.
pub(crate) const ROLE: &str = "machineconfiguration.openshift.io/role";

/// An object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Manifest {
    pub(crate) kind: String,
    pub(crate) name: String,
    object: Value,
}

// === impl Manifest ===

impl Manifest {
    pub(crate) fn of(object: Value) -> Self {
        Self {
            kind: text(&object, "/kind").to_owned(),
            name: text(&object, "/metadata/name").to_owned(),
            object,
        }
    }

    /// A MachineConfig for the machines of a role.
    pub(crate) fn machine_config(name: &str, role: &str, ignition: &Value) -> Self {
        Self::of(json!({
            "apiVersion": API,
            "kind": "MachineConfig",
            "metadata": { "name": name, "labels": { ROLE: role } },
            "spec": { "config": ignition },
        }))
    }

    pub(crate) fn spec(&self) -> &Value {
        &self.object["spec"]
    }

    pub(crate) fn status(&self) -> &Value {
        &self.object["status"]
    }

    pub(crate) fn data(&self) -> &Value {
        &self.object["data"]
    }

    pub(crate) fn labels(&self) -> &Value {
        &self.object["metadata"]["labels"]
    }

    pub(crate) fn api_version(&self) -> &str {
        text(&self.object, "/apiVersion")
    }

    /// The value at a pointer, for objects whose text is of another form than a spec.
    pub(crate) fn text(&self, pointer: &str) -> &str {
        text(&self.object, pointer)
    }

    /// The whole object.
    pub(crate) fn object(&self) -> &Value {
        &self.object
    }

    /// An error about a field.
    pub(crate) fn invalid(&self, field: &str, problem: impl Display) -> String {
        let Self { kind, name, .. } = self;
        format!("{kind} {name}: {field}: {problem}")
    }
}

/// The text at a pointer, or nothing.
pub(crate) fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_default()
}

/// Reads a file.
pub(crate) fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|error| format!("failed to read {}: {error}", path.display()))
}

/// Writes a file, and the directories above it.
pub(crate) fn write(path: &Path, content: &str) -> Result<()> {
    let parent = path.parent().map_or(Ok(()), fs::create_dir_all);
    parent
        .and_then(|()| fs::write(path, content))
        .map_err(|error| format!("failed to write {}: {error}", path.display()))
}

/// Writes an object. JSON is YAML.
pub(crate) fn write_object(path: &Path, object: &Value) -> Result<()> {
    write(path, &format!("{object:#}\n"))
}

/// Reads the documents of a file. Errors do not quote it, since it may have secrets.
pub(crate) fn documents(path: &Path) -> Result<Vec<Value>> {
    let text = read(path)?;
    let options = serde_saphyr::options! { strict_booleans: true };
    let documents: std::result::Result<Vec<Value>, _> =
        serde_saphyr::from_multiple_with_options(&text, options);
    let documents = documents.map_err(|error| {
        let at = error
            .location()
            .map(|location| format!(" at line {}", location.line()))
            .unwrap_or_default();
        format!("{}: invalid YAML{at}", path.display())
    })?;
    Ok(documents.into_iter().filter(|it| !it.is_null()).collect())
}

/// Reads a file with one document.
pub(crate) fn document(path: &Path) -> Result<Value> {
    let mut documents = documents(path)?;
    match (documents.pop(), documents.is_empty()) {
        (Some(document @ Value::Object(_)), true) => Ok(document),
        _ => Err(format!("{}: not one YAML mapping", path.display())),
    }
}

/// Reads a file with one object of a kind.
pub(crate) fn object(path: &Path, kind: &str) -> Result<Manifest> {
    let found = Manifest::of(document(path)?);
    if found.kind == kind {
        return Ok(found);
    }
    let problem = format!("its kind is {:?} in place of {kind}", found.kind);
    Err(format!("{}: {problem}", path.display()))
}

/// Reads all files of a directory, but not of those in it.
pub(crate) fn directory(path: &Path) -> Result<Vec<Manifest>> {
    let mut manifests = Vec::new();
    for file in entries(path)?.iter().filter(|path| path.is_file()) {
        manifests.extend(documents(file)?.into_iter().map(Manifest::of));
    }
    Ok(manifests)
}

/// The paths in a directory, in order.
pub(crate) fn entries(path: &Path) -> Result<Vec<PathBuf>> {
    let failed = |error| format!("failed to read {}: {error}", path.display());
    let mut paths = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        paths.push(entry.map_err(failed)?.path());
    }
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_no_manifests_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.yaml");
        for (text, expected) in [
            ("kind: DNS\n", ""),
            ("kind: Proxy\n", "its kind is \"Proxy\" in place of DNS"),
            ("kind: DNS\n---\nkind: DNS\n", "not one YAML mapping"),
            ("", "not one YAML mapping"),
            ("- a\n", "not one YAML mapping"),
            ("secret: [\n", "invalid YAML"),
        ] {
            write(&path, text).unwrap();
            let error = object(&path, "DNS").err().unwrap_or_default();
            assert!(error.contains(expected), "{text}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
        let missing = object(&directory.path().join("b.yaml"), "DNS").unwrap_err();
        assert!(missing.starts_with("failed to read "), "{missing}");
    }

    #[test]
    fn a_directory_is_read_in_order_and_not_below() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        write(
            &path.join("b.yaml"),
            "{kind: A, metadata: {name: b1}}\n---\n---\n{kind: A, metadata: {name: b2}}\n",
        )
        .unwrap();
        write(&path.join("a.yaml"), "{kind: A, metadata: {name: a}}\n").unwrap();
        write(&path.join("below/c.yaml"), "[\n").unwrap();
        let manifests = super::directory(path).unwrap();
        let names: Vec<_> = manifests.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["a", "b1", "b2"]);
    }
}
