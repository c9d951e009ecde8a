//! The container runtime: what a ContainerRuntimeConfig sets.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::Result;
use crate::ignition::file;
use crate::manifests::Manifest;

/// Its configuration.
const CONFIG: &str = "/etc/crio/crio.conf.d/50-container-runtime-config.conf";

/// The configuration, if users set something.
pub(crate) fn files(users: &[&Manifest]) -> Result<Vec<Value>> {
    let mut settings = BTreeMap::new();
    for user in users {
        let desired = user.spec()["containerRuntimeConfig"].as_object();
        for (field, value) in desired.into_iter().flat_map(Map::iter) {
            let (name, value) = setting(field, value).map_err(|problem| {
                user.invalid(&format!("spec.containerRuntimeConfig.{field}"), problem)
            })?;
            settings.insert(name, value);
        }
    }
    if settings.is_empty() {
        return Ok(Vec::new());
    }
    let mut lines = "[crio.runtime]\n".to_owned();
    for (name, value) in settings {
        let _ = writeln!(lines, "{name} = {value}");
    }
    Ok(vec![file(CONFIG, 0o644, &lines)])
}

/// The name and value of a setting, in TOML; or what is wrong.
fn setting(
    field: &str,
    value: &Value,
) -> std::result::Result<(&'static str, String), &'static str> {
    let quoted = || value.as_str().map(|text| Value::from(text).to_string());
    let (name, value, problem) = match field {
        "pidsLimit" => {
            let limit = value.as_i64().filter(|limit| *limit >= -1);
            let limit = limit.map(|limit| limit.to_string());
            ("pids_limit", limit, "use a number, or -1 for no limit")
        }
        "logSizeMax" => {
            let size = value.as_str().map_or_else(|| value.as_i64(), bytes);
            let size = size.map(|size| size.to_string());
            ("log_size_max", size, "use a size (for example 50Mi)")
        }
        "logLevel" => ("log_level", quoted(), "use a string"),
        "defaultRuntime" => ("default_runtime", quoted(), "use a string"),
        _ => {
            return Err(
                "unsupported field: only pidsLimit, logLevel, logSizeMax and defaultRuntime are supported",
            );
        }
    };
    value.map(|value| (name, value)).ok_or(problem)
}

/// The bytes of a quantity.
fn bytes(quantity: &str) -> Option<i64> {
    let end = quantity.find(|c: char| !c.is_ascii_digit() && c != '-');
    let (number, unit) = quantity.split_at(end.unwrap_or(quantity.len()));
    let factor: i64 = match unit {
        "" => 1,
        "k" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        _ => return None,
    };
    number.parse::<i64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ignition::content;

    #[test]
    fn settings_are_written_or_refused() {
        for (config, expected) in [
            (
                json!({ "pidsLimit": 2048, "logSizeMax": "50Mi" }),
                Ok("[crio.runtime]\nlog_size_max = 52428800\npids_limit = 2048\n"),
            ),
            (
                json!({ "logSizeMax": 8192, "defaultRuntime": "runc", "logLevel": "debug" }),
                Ok(
                    "[crio.runtime]\ndefault_runtime = \"runc\"\nlog_level = \"debug\"\nlog_size_max = 8192\n",
                ),
            ),
            (json!({}), Ok("")),
            (
                json!({ "pidsLimit": -2 }),
                Err(
                    "ContainerRuntimeConfig c: spec.containerRuntimeConfig.pidsLimit: use a number",
                ),
            ),
            (
                json!({ "logSizeMax": "5x" }),
                Err("ContainerRuntimeConfig c: spec.containerRuntimeConfig.logSizeMax: use a size"),
            ),
            (
                json!({ "logLevel": 4 }),
                Err("ContainerRuntimeConfig c: spec.containerRuntimeConfig.logLevel: use a string"),
            ),
            (
                json!({ "overlaySize": "1G" }),
                Err(
                    "ContainerRuntimeConfig c: spec.containerRuntimeConfig.overlaySize: unsupported",
                ),
            ),
        ] {
            let user = Manifest::of(json!({
                "kind": "ContainerRuntimeConfig",
                "metadata": { "name": "c" },
                "spec": { "containerRuntimeConfig": config },
            }));
            match (files(&[&user]), expected) {
                (Ok(files), Ok(expected)) => {
                    let text = files.first().and_then(content).unwrap_or_default();
                    assert_eq!(text, expected);
                }
                (Err(error), Err(expected)) => assert!(error.starts_with(expected), "{error}"),
                (found, _) => panic!("{config}: {found:?}"),
            }
        }
    }
}
