//! Validates a MachineConfig: whether its Ignition can be merged, and whether it has settings that Ignition cannot
//! apply.

use serde_json::{Map, Value, json};

use super::manifests::{InvalidConfig, Manifest};

/// Ignition versions that are compatible with 3.2 as long as they use no later fields.
const VERSIONS: [&str; 6] = ["3.0", "3.1", "3.2", "3.3", "3.4", "3.5"];
/// Sections of Ignition 3.2.
const SECTIONS: [&str; 4] = ["ignition", "passwd", "storage", "systemd"];
/// Lists in its storage section.
const STORAGE: [&str; 7] = [
    "directories",
    "disks",
    "files",
    "filesystems",
    "links",
    "luks",
    "raid",
];
/// Suffixes of valid unit names.
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
/// Fields that only the release's own programs and its daemon on the node apply. A release without these programs
/// configures nodes by Ignition only.
const UNAPPLIED: [&str; 6] = [
    "baseOSExtensionsContainerImage",
    "extensions",
    "fips",
    "kernelArguments",
    "kernelType",
    "osImageURL",
];
/// A field without effect.
const ROLE: &str = "role";
/// Permission bits of a file.
const MODES: u64 = 0o7777;

/// A MachineConfig.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MachineConfig(Manifest);

impl From<Manifest> for MachineConfig {
    fn from(manifest: Manifest) -> Self {
        Self(manifest)
    }
}

// === impl MachineConfig ===

impl MachineConfig {
    /// Returns its Ignition config if it can be merged.
    pub(super) fn ignition(&self) -> Result<Value, InvalidConfig> {
        self.check_fields()?;
        self.check_applied()?;
        let mut config = match &self.0.spec["config"] {
            Value::Null => return Ok(json!({})),
            Value::Object(config) => config.clone(),
            _ => return Err(self.0.invalid("spec.config", "use an Ignition object")),
        };
        self.check_version(&config)?;
        self.check_sections(&config)?;
        let config_value = Value::Object(config.clone());
        self.check_storage(&config_value)?;
        self.check_units(&config_value)?;
        // The payload has its own version.
        if let Some(ignition) = config.get_mut("ignition").and_then(Value::as_object_mut) {
            ignition.remove("version");
        }
        Ok(Value::Object(config))
    }

    fn check_fields(&self) -> Result<(), InvalidConfig> {
        let known = |field: &str| field == "config" || field == ROLE || UNAPPLIED.contains(&field);
        let fields = self.0.spec.as_object().into_iter().flat_map(Map::keys);
        match fields.into_iter().find(|field| !known(field)) {
            None => Ok(()),
            Some(field) => Err(self.0.invalid(
                &format!("spec.{field}"),
                "unknown field of MachineConfig: remove it",
            )),
        }
    }

    /// Rejects settings that would silently have no effect.
    fn check_applied(&self) -> Result<(), InvalidConfig> {
        let is_set = |field: &str| match &self.0.spec[field] {
            Value::Null | Value::Bool(false) => false,
            Value::String(text) => !matches!(text.as_str(), "" | "default"),
            Value::Array(items) => !items.is_empty(),
            _ => true,
        };
        let Some(field) = UNAPPLIED.into_iter().find(|field| is_set(field)) else {
            return Ok(());
        };
        let hint = match field {
            "fips" => {
                "FIPS mode is not supported by this release, whose machine-config-operator image has no programs that \
                 apply it: use a release that has them, or create the HostedCluster without spec.fips; nodes whose \
                 image has FIPS mode enabled stay in it"
            }
            _ => {
                "not supported by this release, whose machine-config-operator image has no programs that apply it: use \
                 a release that has them, remove the field, or boot nodes from an image that has this setting"
            }
        };
        Err(self.0.invalid(&format!("spec.{field}"), hint))
    }

    fn check_version(&self, config: &Map<String, Value>) -> Result<(), InvalidConfig> {
        let version = config.get("ignition").and_then(|it| it["version"].as_str());
        let version = version.unwrap_or_default();
        let is_of = |minor: &str| {
            let rest = version.strip_prefix(minor);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        if VERSIONS.into_iter().any(is_of) {
            return Ok(());
        }
        Err(self.0.invalid(
            "spec.config.ignition.version",
            format!("{version:?} is not supported: use 3.2.0"),
        ))
    }

    fn check_sections(&self, config: &Map<String, Value>) -> Result<(), InvalidConfig> {
        for section in config.keys() {
            if !SECTIONS.contains(&section.as_str()) {
                return Err(self.0.invalid(
                    &format!("spec.config.{section}"),
                    "unknown section of Ignition 3.2: remove it",
                ));
            }
        }
        let storage = config.get("storage").and_then(Value::as_object);
        for list in storage.into_iter().flat_map(Map::keys) {
            if !STORAGE.contains(&list.as_str()) {
                let field = format!("spec.config.storage.{list}");
                return Err(self
                    .0
                    .invalid(&field, "unknown list of Ignition 3.2: remove it"));
            }
        }
        Ok(())
    }

    fn check_storage(&self, config: &Value) -> Result<(), InvalidConfig> {
        for list in ["files", "directories", "links"] {
            for (field, entry) in entries(config, "storage", list) {
                self.check_path(&field, &entry["path"])?;
                self.check_mode(&field, &entry["mode"])?;
                self.check_source(&field, &entry["contents"]["source"])?;
            }
        }
        Ok(())
    }

    fn check_path(&self, field: &str, path: &Value) -> Result<(), InvalidConfig> {
        let path = path.as_str().unwrap_or_default();
        let plain = |part: &str| part != "." && part != "..";
        if path.starts_with('/') && path.len() > 1 && path.split('/').all(plain) {
            return Ok(());
        }
        let problem =
            format!("{path:?} is not a valid path: use an absolute path without . and ..");
        Err(self.0.invalid(&format!("{field}.path"), problem))
    }

    fn check_mode(&self, field: &str, mode: &Value) -> Result<(), InvalidConfig> {
        if mode.is_null() || mode.as_u64().is_some_and(|mode| mode <= MODES) {
            return Ok(());
        }
        let problem = format!(
            "{mode} is not a valid mode: use a decimal number up to 4095 (for example 420 for 0644)"
        );
        Err(self.0.invalid(&format!("{field}.mode"), problem))
    }

    fn check_source(&self, field: &str, source: &Value) -> Result<(), InvalidConfig> {
        let Some(source) = source.as_str() else {
            return Ok(());
        };
        let scheme = source.split_once(':').map_or("", |(scheme, _)| scheme);
        // Only the scheme, because the rest can be a secret.
        if source.is_empty()
            || matches!(
                scheme,
                "data" | "http" | "https" | "s3" | "gs" | "arn" | "tftp"
            )
        {
            return Ok(());
        }
        let field = format!("{field}.contents.source");
        Err(self.0.invalid(
            &field,
            "not a valid URL: use data:,TEXT or an http(s), s3, gs, arn or tftp URL",
        ))
    }

    fn check_units(&self, config: &Value) -> Result<(), InvalidConfig> {
        for (field, unit) in entries(config, "systemd", "units") {
            let name = unit["name"].as_str().unwrap_or_default();
            if !UNITS.iter().any(|ending| name.ends_with(ending)) {
                let problem =
                    format!("{name:?} is not a valid unit name: use a suffix such as .service");
                return Err(self.0.invalid(&format!("{field}.name"), problem));
            }
        }
        Ok(())
    }
}

/// Returns the entries of a list with their field paths.
fn entries<'a>(
    config: &'a Value,
    section: &'a str,
    list: &'a str,
) -> impl Iterator<Item = (String, &'a Value)> {
    let found = config[section][list].as_array();
    let entries = found.into_iter().flatten().enumerate();
    entries.map(move |(index, entry)| (format!("spec.config.{section}.{list}[{index}]"), entry))
}
