//! Ignition 3.2: files as they are written, and the checks of what users write.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::Result;
use crate::manifests::{Manifest, text};

/// The version of all documents.
pub(crate) const VERSION: &str = "3.2.0";
/// What is before the content of a file that is written here.
const PREFIX: &str = "data:text/plain;charset=utf-8;base64,";
/// Versions that documents of users may have, as long as they use no later field.
const VERSIONS: [&str; 6] = ["3.0", "3.1", "3.2", "3.3", "3.4", "3.5"];
const SECTIONS: [&str; 4] = ["ignition", "passwd", "storage", "systemd"];
/// The lists of `storage`.
const STORAGE: [&str; 7] = [
    "directories",
    "disks",
    "files",
    "filesystems",
    "links",
    "luks",
    "raid",
];
/// The suffixes of units.
const UNITS: [&str; 8] = [
    ".automount",
    ".mount",
    ".path",
    ".service",
    ".slice",
    ".socket",
    ".swap",
    ".timer",
];
const SCHEMES: [&str; 7] = ["arn", "data", "gs", "http", "https", "s3", "tftp"];
/// All permission bits.
const MODES: u64 = 0o7777;

/// A file.
pub(crate) fn file(path: &str, mode: u32, content: &str) -> Value {
    json!({
        "path": path,
        "mode": mode,
        "overwrite": true,
        "contents": { "source": format!("{PREFIX}{}", STANDARD.encode(content)) },
    })
}

/// A document with files.
pub(crate) fn document(files: &[Value]) -> Value {
    json!({ "ignition": { "version": VERSION }, "storage": { "files": files } })
}

/// The content of a file that was written here.
pub(crate) fn content(file: &Value) -> Option<String> {
    let encoded = text(file, "/contents/source").strip_prefix(PREFIX)?;
    String::from_utf8(STANDARD.decode(encoded).ok()?).ok()
}

/// Returns the Ignition document of a MachineConfig without its version, if it can be merged. The errors name a field and
/// do not quote contents, which may be secret.
pub(crate) fn checked(owner: &Manifest) -> Result<Value> {
    let config = match &owner.spec()["config"] {
        Value::Null => return Ok(json!({})),
        Value::Object(config) => config,
        _ => return Err(owner.invalid("spec.config", "use an Ignition object")),
    };
    check_version(owner, config)?;
    check_names(owner, config.keys(), &SECTIONS, "spec.config")?;
    let storage = config.get("storage").and_then(Value::as_object);
    let lists = storage.into_iter().flat_map(Map::keys);
    check_names(owner, lists, &STORAGE, "spec.config.storage")?;
    for list in ["directories", "files", "links"] {
        for (field, entry) in entries(config, "storage", list) {
            check_entry(entry)
                .map_err(|(part, problem)| owner.invalid(&format!("{field}.{part}"), problem))?;
        }
    }
    for (field, unit) in entries(config, "systemd", "units") {
        let name = text(unit, "/name");
        if !UNITS.iter().any(|suffix| name.ends_with(suffix)) {
            let problem =
                format!("{name:?} is not a valid unit name: use a suffix such as .service");
            return Err(owner.invalid(&format!("{field}.name"), problem));
        }
    }
    let mut config = config.clone();
    if let Some(ignition) = config.get_mut("ignition").and_then(Value::as_object_mut) {
        ignition.remove("version");
    }
    Ok(Value::Object(config))
}

fn check_version(owner: &Manifest, config: &Map<String, Value>) -> Result<()> {
    let version = config.get("ignition").map(|it| text(it, "/version"));
    let version = version.unwrap_or_default();
    let minor = version.rsplit_once('.').map_or(version, |(minor, _)| minor);
    if VERSIONS.contains(&minor) {
        return Ok(());
    }
    let problem = format!("{version:?} is not supported: use {VERSION}");
    Err(owner.invalid("spec.config.ignition.version", problem))
}

fn check_names<'n>(
    owner: &Manifest,
    mut names: impl Iterator<Item = &'n String>,
    known: &[&str],
    field: &str,
) -> Result<()> {
    match names.find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => {
            let problem = format!("not part of Ignition {VERSION}: remove it");
            Err(owner.invalid(&format!("{field}.{name}"), problem))
        }
    }
}

/// The part of an entry that is wrong, and what is wrong with it.
fn check_entry(entry: &Value) -> std::result::Result<(), (&'static str, String)> {
    let path = text(entry, "/path");
    let is_plain = |part: &str| part != "." && part != "..";
    if !path.starts_with('/') || path.len() == 1 || !path.split('/').all(is_plain) {
        let problem =
            format!("{path:?} is not a valid path: use an absolute path without . and ..");
        return Err(("path", problem));
    }
    let mode = &entry["mode"];
    if !mode.is_null() && mode.as_u64().is_none_or(|mode| mode > MODES) {
        let problem = format!(
            "{mode} is not a valid mode: use a decimal number up to 4095 (for example 420 for 0644)"
        );
        return Err(("mode", problem));
    }
    let source = text(entry, "/contents/source");
    let scheme = source.split_once(':').map_or("", |(scheme, _)| scheme);
    if !source.is_empty() && !SCHEMES.contains(&scheme) {
        let problem =
            "not a valid URL: use data:,TEXT or an http(s), s3, gs, arn or tftp URL".to_owned();
        return Err(("contents.source", problem));
    }
    Ok(())
}

/// The entries of a list, with the paths of their fields.
fn entries<'c>(
    config: &'c Map<String, Value>,
    section: &'c str,
    list: &'c str,
) -> impl Iterator<Item = (String, &'c Value)> {
    let found = config.get(section).and_then(|it| it[list].as_array());
    let entries = found.into_iter().flatten().enumerate();
    entries.map(move |(index, entry)| (format!("spec.config.{section}.{list}[{index}]"), entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(config: &Value) -> Result<Value> {
        let object = json!({
            "kind": "MachineConfig", "metadata": { "name": "50-x" }, "spec": { "config": config },
        });
        checked(&Manifest::of(object))
    }

    fn with(section: &str, value: Value) -> Value {
        let mut config = json!({ "ignition": { "version": VERSION } });
        config[section] = value;
        config
    }

    #[test]
    fn contents_are_read_as_they_were_written() {
        assert_eq!(content(&file("/a", 0o644, "b\n")).as_deref(), Some("b\n"));
        let other = json!({ "path": "/a", "contents": { "source": "data:,b" } });
        assert_eq!(content(&other), None);
    }

    #[test]
    fn documents_lose_their_version_only() {
        let storage = json!({ "files": [{ "path": "/a", "mode": 420, "contents": { "source": "data:,x" } }] });
        let checked = check(&with("storage", storage.clone())).unwrap();
        assert_eq!(checked, json!({ "ignition": {}, "storage": storage }));
        assert_eq!(check(&Value::Null).unwrap(), json!({}));
    }

    #[test]
    fn invalid_documents_are_refused_by_field() {
        for (config, expected) in [
            (json!([]), "spec.config: use an Ignition object"),
            (json!({}), "spec.config.ignition.version: \"\""),
            (
                json!({ "ignition": { "version": "2.2.0" } }),
                "spec.config.ignition.version: \"2.2.0\"",
            ),
            (
                with("kernelArguments", json!({})),
                "spec.config.kernelArguments: ",
            ),
            (
                with("storage", json!({ "trees": [] })),
                "spec.config.storage.trees: ",
            ),
            (
                with("storage", json!({ "files": [{ "path": "etc/a" }] })),
                "spec.config.storage.files[0].path: ",
            ),
            (
                with("storage", json!({ "links": [{ "path": "/a/../b" }] })),
                "spec.config.storage.links[0].path: ",
            ),
            (
                with(
                    "storage",
                    json!({ "files": [{ "path": "/a", "mode": 70000 }] }),
                ),
                "spec.config.storage.files[0].mode: ",
            ),
            (
                with(
                    "storage",
                    json!({ "files": [{ "path": "/a", "contents": { "source": "hunter2" } }] }),
                ),
                "spec.config.storage.files[0].contents.source: ",
            ),
            (
                with("systemd", json!({ "units": [{ "name": "a" }] })),
                "spec.config.systemd.units[0].name: ",
            ),
        ] {
            let error = check(&config).unwrap_err();
            assert!(
                error.starts_with(&format!("MachineConfig 50-x: {expected}")),
                "{error}"
            );
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
