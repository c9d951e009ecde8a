//! The container runtime: a pool's ContainerRuntimeConfig, and registry mirrors.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use api::hypershift::v1beta1::image_content_source::ImageContentSource;
use serde_json::{Map, Value};

use super::file::{PUBLIC, file};
use super::manifests::{InvalidConfig, Manifest};

/// Path of the runtime's configuration.
const RUNTIME: &str = "/etc/crio/crio.conf.d/50-container-runtime-config.conf";
const MIRRORS: &str = "/etc/containers/registries.conf.d/50-mirrors.conf";

/// Registry mirrors of a source.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Mirror {
    pub(super) source: ImageContentSource,
    pub(super) pull: Pull,
}

/// Which images are pulled from mirrors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Pull {
    ByDigest,
    ByTag,
}

/// Renders the runtime's configuration, if the pool has one.
pub(super) fn config(users: &[Manifest]) -> Result<Option<Value>, InvalidConfig> {
    let mut lines = BTreeMap::new();
    for user in users {
        let desired = &user.spec["containerRuntimeConfig"];
        for (field, value) in desired.as_object().into_iter().flat_map(Map::iter) {
            let (name, value) = setting(user, field, value)?;
            lines.insert(name, value);
        }
    }
    if lines.is_empty() {
        return Ok(None);
    }
    let mut text = "[crio.runtime]\n".to_owned();
    for (name, value) in lines {
        let _ = writeln!(text, "{name} = {value}");
    }
    Ok(Some(file(RUNTIME, PUBLIC, text)))
}

fn setting(
    user: &Manifest,
    field: &str,
    value: &Value,
) -> Result<(&'static str, String), InvalidConfig> {
    let path = format!("spec.containerRuntimeConfig.{field}");
    let text = || {
        value
            .as_str()
            .ok_or_else(|| user.invalid(&path, "use a string"))
    };
    Ok(match field {
        "pidsLimit" => {
            let limit = value.as_i64().filter(|limit| *limit >= -1);
            let limit =
                limit.ok_or_else(|| user.invalid(&path, "use a number, or -1 for no limit"))?;
            ("pids_limit", limit.to_string())
        }
        "logLevel" => ("log_level", quoted(text()?)),
        "defaultRuntime" => ("default_runtime", quoted(text()?)),
        "logSizeMax" => {
            let size = value.as_str().map_or_else(|| value.as_i64(), bytes);
            let size = size.ok_or_else(|| user.invalid(&path, "use a size (for example 50Mi)"))?;
            ("log_size_max", size.to_string())
        }
        _ => {
            return Err(user.invalid(
                &path,
                "unsupported field: only pidsLimit, logLevel, logSizeMax and defaultRuntime are supported",
            ));
        }
    })
}

/// Parses a quantity with an optional unit.
fn bytes(text: &str) -> Option<i64> {
    let digits = text
        .bytes()
        .take_while(|byte| byte.is_ascii_digit() || *byte == b'-')
        .count();
    let (number, unit) = text.split_at(digits);
    let factor: i64 = match unit {
        "" => 1,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        "k" => 1000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        _ => return None,
    };
    number.parse::<i64>().ok()?.checked_mul(factor)
}

/// Renders the registries configuration with the mirrors of the cluster and of the pool, if any.
pub(super) fn mirrors(cluster: &[ImageContentSource], pool: &[Mirror]) -> Option<Value> {
    let mut by_source: BTreeMap<&str, Vec<(&str, Pull)>> = BTreeMap::new();
    let of_cluster = cluster.iter().map(|source| (source, Pull::ByDigest));
    let of_pool = pool.iter().map(|mirror| (&mirror.source, mirror.pull));
    for (source, pull) in of_cluster.chain(of_pool) {
        let known = by_source.entry(&source.source).or_default();
        for mirror in &source.mirrors {
            if !known.contains(&(mirror, pull)) {
                known.push((mirror, pull));
            }
        }
    }
    if by_source.is_empty() {
        return None;
    }
    let text: String = by_source.into_iter().map(registry).collect();
    Some(file(MIRRORS, PUBLIC, text))
}

fn registry((source, mirrors): (&str, Vec<(&str, Pull)>)) -> String {
    let mut text = format!("[[registry]]\nlocation = {}\n", quoted(source));
    for (mirror, pull) in mirrors {
        let pull = match pull {
            Pull::ByDigest => "digest-only",
            Pull::ByTag => "tag-only",
        };
        let _ = writeln!(text, "[[registry.mirror]]\nlocation = {}", quoted(mirror));
        let _ = writeln!(text, "pull-from-mirror = {}", quoted(pull));
    }
    text
}

/// Formats a TOML string; JSON strings are valid TOML.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_parse_with_units() {
        for (text, expected) in [
            ("50Mi", Some(50 << 20)),
            ("-1", Some(-1)),
            ("8192", Some(8192)),
            ("1G", Some(1_000_000_000)),
            ("", None),
            ("5x", None),
            ("99999999999Gi", None),
        ] {
            assert_eq!(bytes(text), expected, "{text}");
        }
    }
}
