//! What a MachineConfig sets beside its Ignition document: FIPS mode, kernel arguments, the operating system's image.
//!
//! The document has a file with it, which the daemon of OpenShift's nodes applies after Ignition at the first boot, and
//! after an upgrade in place. A machine of the testbed has neither a kernel nor an operating system of its own: what
//! would be changed is recorded in files below `/etc/testbed`, one value in each line. FIPS mode has the file that it has
//! on a real node.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use serde::Deserialize;

/// The MachineConfig in the document.
const ENCAPSULATED: &str = "etc/ignition-machine-config-encapsulated.json";
/// Where it is when it has been applied.
const APPLIED: &str = "etc/ignition-machine-config-encapsulated.json.applied";
/// The MachineConfig that the machine runs.
const CURRENT: &str = "etc/machine-config-daemon/currentconfig";
/// Exists in FIPS mode.
const FIPS: &str = "etc/system-fips";
const RECORDS: &str = "etc/testbed";
/// The kernel of machines without another one.
const DEFAULT_KERNEL: &str = "default";

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct MachineConfig {
    spec: Spec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    fips: bool,
    kernel_arguments: Vec<String>,
    kernel_type: String,
    extensions: Vec<String>,
    #[serde(rename = "osImageURL")]
    image: String,
}

/// Applies the MachineConfig that a document has left below `root`, if there is one.
pub(crate) fn apply(root: &Path) -> Result<(), String> {
    let source = root.join(ENCAPSULATED);
    let Some(text) = read(&source)? else {
        return Ok(());
    };
    let desired = parse(&source, &text)?.spec;
    let current = root.join(CURRENT);
    if let Some(text) = read(&current)?
        && parse(&current, &text)?.spec.fips != desired.fips
    {
        return Err("FIPS mode is set at the first boot only: replace the machine".to_owned());
    }
    desired.record(root)?;
    write(&current, &text)?;
    let applied = root.join(APPLIED);
    fs::rename(&source, &applied).map_err(|error| format!("{}: {error}", applied.display()))
}

fn parse(path: &Path, text: &str) -> Result<MachineConfig, String> {
    serde_json::from_str(text).map_err(|error| format!("{}: {error}", path.display()))
}

/// The text of a file that may be missing.
fn read(path: &Path) -> Result<Option<String>, String> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let parent = path.parent().map_or(Ok(()), fs::create_dir_all);
    parent
        .and_then(|()| fs::write(path, text))
        .map_err(|error| format!("{}: {error}", path.display()))
}

fn non_empty(value: &str) -> Vec<&str> {
    Some(value)
        .filter(|value| !value.is_empty())
        .into_iter()
        .collect()
}

/// Writes lines, or removes the file when there are none.
fn write_lines(path: &Path, lines: &[&str]) -> Result<(), String> {
    if !lines.is_empty() {
        return write(path, &format!("{}\n", lines.join("\n")));
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(format!("{}: {error}", path.display()))
        }
        _ => Ok(()),
    }
}

// === impl Spec ===

impl Spec {
    fn record(&self, root: &Path) -> Result<(), String> {
        let kernel = match self.kernel_type.as_str() {
            DEFAULT_KERNEL => "",
            kernel => kernel,
        };
        for (name, lines) in [
            ("extensions", texts(&self.extensions)),
            ("kernel-arguments", texts(&self.kernel_arguments)),
            ("kernel-type", non_empty(kernel)),
            ("os-image", non_empty(&self.image)),
        ] {
            write_lines(&root.join(RECORDS).join(name), &lines)?;
        }
        let fips = if self.fips { "# FIPS mode" } else { "" };
        write_lines(&root.join(FIPS), &non_empty(fips))
    }
}

fn texts(values: &[String]) -> Vec<&str> {
    values.iter().map(String::as_str).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The files below /etc/testbed, and that of FIPS mode.
    fn recorded(root: &Path) -> Vec<(&'static str, String)> {
        let names = [
            "etc/system-fips",
            "etc/testbed/extensions",
            "etc/testbed/kernel-arguments",
            "etc/testbed/kernel-type",
            "etc/testbed/os-image",
        ];
        let found = names.map(|name| Some((name, read(&root.join(name)).unwrap()?)));
        found.into_iter().flatten().collect()
    }

    fn boot(root: &Path, spec: &Value) -> Result<(), String> {
        let config = json!({ "kind": "MachineConfig", "spec": spec });
        write(&root.join(ENCAPSULATED), &config.to_string())?;
        apply(root)
    }

    #[test]
    fn settings_are_recorded_and_removed() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let whole = json!({
            "fips": true, "kernelArguments": ["nosmt", "audit=1"], "kernelType": "realtime",
            "extensions": ["usbguard"], "osImageURL": "images.example.com/os", "config": {},
        });
        boot(root, &whole).unwrap();
        let expected = [
            ("etc/system-fips", "# FIPS mode\n"),
            ("etc/testbed/extensions", "usbguard\n"),
            ("etc/testbed/kernel-arguments", "nosmt\naudit=1\n"),
            ("etc/testbed/kernel-type", "realtime\n"),
            ("etc/testbed/os-image", "images.example.com/os\n"),
        ];
        let expected = expected.map(|(name, text)| (name, text.to_owned()));
        assert_eq!(recorded(root), expected);
        // It is applied once.
        assert_eq!(read(&root.join(ENCAPSULATED)), Ok(None));
        fs::remove_dir_all(root.join(RECORDS)).unwrap();
        apply(root).unwrap();
        assert_eq!(recorded(root).len(), 1);

        boot(root, &json!({ "fips": true, "kernelType": "default" })).unwrap();
        assert_eq!(recorded(root).len(), 1);
    }

    #[test]
    fn fips_mode_is_not_changed_later() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        boot(root, &json!({ "fips": false })).unwrap();
        let error = boot(root, &json!({ "fips": true })).unwrap_err();
        assert!(error.starts_with("FIPS mode"), "{error}");
        assert!(recorded(root).is_empty());
    }

    #[test]
    fn documents_without_a_machine_config_change_nothing() {
        let directory = tempfile::tempdir().unwrap();
        apply(directory.path()).unwrap();
        assert!(recorded(directory.path()).is_empty());
        write(&directory.path().join(ENCAPSULATED), "[").unwrap();
        let error = apply(directory.path()).unwrap_err();
        assert!(error.contains(ENCAPSULATED), "{error}");
    }
}
