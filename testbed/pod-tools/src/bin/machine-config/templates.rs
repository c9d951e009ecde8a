//! The templates of the image: MachineConfigs of each role, as files and units with variables.
//!
//! ```text
//! common/VARIANT/{files,units}/NAME.yaml         -> MachineConfig 00-ROLE
//! ROLE/CONFIG/VARIANT/{files,units}/NAME.yaml    -> MachineConfig CONFIG
//! ```
//!
//! VARIANT is `_base`, or a platform in lower case. `@NAME@` is a variable; a template with `needs: NAME` is left out where
//! that variable is empty. The templates of the real image are in the language of Go; these are of the testbed's own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::Result;
use crate::controller_config::ControllerConfig;
use crate::ignition::{VERSION, file};
use crate::manifests::{Manifest, document, entries};
use crate::merge::merge;

/// The roles of which an image has templates.
pub(crate) const ROLES: [&str; 2] = ["master", "worker"];
/// The directory of what all roles have.
const COMMON: &str = "common";
/// The variant of all platforms.
const BASE: &str = "_base";

/// A file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileTemplate {
    needs: Option<String>,
    path: String,
    mode: u32,
    contents: Contents,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    inline: String,
}

/// A unit, or drop-ins for one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct UnitTemplate {
    needs: Option<String>,
    name: String,
    enabled: Option<bool>,
    contents: Option<String>,
    #[serde(default)]
    dropins: Vec<DropIn>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DropIn {
    name: String,
    contents: String,
}

/// The values of variables.
#[derive(Debug)]
pub(crate) struct Variables {
    /// The directory of the platform's variants.
    platform: String,
    values: BTreeMap<&'static str, String>,
}

/// Renders the templates of all roles.
pub(crate) fn render(directory: &Path, variables: &Variables) -> Result<Vec<Manifest>> {
    let mut configs = Vec::new();
    for role in ROLES {
        let common = config(&directory.join(COMMON), variables)?;
        configs.push(Manifest::machine_config(
            &format!("00-{role}"),
            role,
            &common,
        ));
        for path in entries(&directory.join(role))? {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let rendered = config(&path, variables)?;
            configs.push(Manifest::machine_config(&name, role, &rendered));
        }
    }
    Ok(configs)
}

/// The Ignition document of one directory.
fn config(directory: &Path, variables: &Variables) -> Result<Value> {
    let mut config = json!({ "ignition": { "version": VERSION } });
    for variant in [BASE, variables.platform.as_str()] {
        for path in files(&directory.join(variant).join("files"))? {
            if let Some(file) = variables.file(&read(&path)?).map_err(named(&path))? {
                merge(&mut config, json!({ "storage": { "files": [file] } }));
            }
        }
        for path in files(&directory.join(variant).join("units"))? {
            if let Some(unit) = variables.unit(&read(&path)?).map_err(named(&path))? {
                merge(&mut config, json!({ "systemd": { "units": [unit] } }));
            }
        }
    }
    Ok(config)
}

/// The files of a directory, which not every variant has.
fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    if directory.is_dir() {
        return entries(directory);
    }
    Ok(Vec::new())
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T> {
    T::deserialize(document(path)?).map_err(|error| named(path)(error.to_string()))
}

fn named(path: &Path) -> impl Fn(String) -> String {
    move |error| format!("{}: {error}", path.display())
}

// === impl Variables ===

impl Variables {
    pub(crate) fn new(config: &ControllerConfig, pull_secret: &str) -> Self {
        let addresses = config.cluster_dns.iter().map(ToString::to_string);
        let addresses: Value = addresses.collect();
        Self {
            platform: config.platform.to_lowercase(),
            values: BTreeMap::from([
                ("CLOUD_CONFIG", config.cloud_config.clone()),
                ("CLOUD_PROVIDER", config.cloud_provider().to_owned()),
                ("CLUSTER_DNS", addresses.to_string()),
                ("KUBELET_CA", config.kube_ca.clone()),
                ("PROXY_ENVIRONMENT", config.proxy.environment()),
                ("PULL_SECRET", pull_secret.to_owned()),
                ("TRUST_BUNDLE", config.trust_bundle.clone()),
            ]),
        }
    }

    fn file(&self, template: &FileTemplate) -> Result<Option<Value>> {
        if !self.has(template.needs.as_deref())? {
            return Ok(None);
        }
        let content = self.fill(&template.contents.inline)?;
        Ok(Some(file(&template.path, template.mode, &content)))
    }

    fn unit(&self, template: &UnitTemplate) -> Result<Option<Value>> {
        if !self.has(template.needs.as_deref())? {
            return Ok(None);
        }
        let mut unit = json!({ "name": template.name });
        if let Some(enabled) = template.enabled {
            unit["enabled"] = json!(enabled);
        }
        if let Some(contents) = &template.contents {
            unit["contents"] = json!(self.fill(contents)?);
        }
        if !template.dropins.is_empty() {
            let parts = template.dropins.iter();
            let parts = parts.map(|part| {
                Ok(json!({ "name": part.name, "contents": self.fill(&part.contents)? }))
            });
            unit["dropins"] = Value::Array(parts.collect::<Result<_>>()?);
        }
        Ok(Some(unit))
    }

    /// Whether a variable that a template needs has a value.
    fn has(&self, needed: Option<&str>) -> Result<bool> {
        needed.map_or(Ok(true), |name| Ok(!self.value(name)?.is_empty()))
    }

    fn value(&self, name: &str) -> Result<&str> {
        let value = self.values.get(name).map(String::as_str);
        value.ok_or_else(|| format!("unknown variable {name}"))
    }

    /// Replaces variables by their values.
    fn fill(&self, template: &str) -> Result<String> {
        let is_name = |name: &str| {
            let mut letters = name.chars();
            !name.is_empty() && letters.all(|c| c.is_ascii_uppercase() || c == '_')
        };
        let mut filled = String::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('@') {
            filled.push_str(before);
            let variable = after.split_once('@').filter(|(name, _)| is_name(name));
            if let Some((name, behind)) = variable {
                filled.push_str(self.value(name)?);
                rest = behind;
            } else {
                filled.push('@');
                rest = after;
            }
        }
        filled.push_str(rest);
        Ok(filled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifests::write;

    fn variables(platform: &str) -> Variables {
        let config = ControllerConfig {
            platform: platform.to_owned(),
            kube_ca: "AUTHORITIES\n".to_owned(),
            ..ControllerConfig::default()
        };
        Variables::new(&config, "{}")
    }

    #[test]
    fn variables_are_replaced_by_their_values() {
        for (template, expected) in [
            ("a@b", Ok("a@b")),
            ("@KUBELET_CA@@PULL_SECRET@", Ok("AUTHORITIES\n{}")),
            ("core@host @ @CLOUD_PROVIDER@", Ok("core@host @ external")),
            ("@NO_SUCH@", Err("unknown variable NO_SUCH")),
        ] {
            let filled = variables("AWS").fill(template);
            assert_eq!(
                filled.as_deref().map_err(String::as_str),
                expected,
                "{template}"
            );
        }
    }

    #[test]
    fn templates_of_the_platform_and_with_their_needs_are_rendered() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        for (name, text) in [
            (
                "common/_base/files/a.yaml",
                "{path: /a, mode: 420, contents: {inline: a}}",
            ),
            (
                "common/_base/files/b.yaml",
                "{needs: TRUST_BUNDLE, path: /b, mode: 420, contents: {inline: b}}",
            ),
            (
                "common/aws/units/c.yaml",
                "{name: c.service, enabled: true, contents: c}",
            ),
            (
                "worker/01-worker/_base/units/d.yaml",
                "{name: d.service, dropins: [{name: x, contents: '@KUBELET_CA@'}]}",
            ),
        ] {
            write(&path.join(name), text).unwrap();
        }
        let error = render(path, &variables("AWS")).unwrap_err();
        assert!(
            error.ends_with("No such file or directory (os error 2)"),
            "{error}"
        );
        std::fs::create_dir(path.join("master")).unwrap();
        let names = |platform: &str| {
            let configs = render(path, &variables(platform)).unwrap();
            let described = configs.iter().map(|config| {
                let ignition = &config.spec()["config"];
                let files = ignition["storage"]["files"].as_array().map_or(0, Vec::len);
                let units = ignition["systemd"]["units"].as_array().map_or(0, Vec::len);
                format!("{} {files} {units}", config.name)
            });
            described.collect::<Vec<_>>().join(", ")
        };
        assert_eq!(names("AWS"), "00-master 1 1, 00-worker 1 1, 01-worker 0 1");
        assert_eq!(names("None"), "00-master 1 0, 00-worker 1 0, 01-worker 0 1");

        write(
            &path.join("common/_base/files/a.yaml"),
            "{path: /a, text: a}",
        )
        .unwrap();
        let error = render(path, &variables("None")).unwrap_err();
        assert!(
            error.contains("common/_base/files/a.yaml: unknown field"),
            "{error}"
        );
    }
}
