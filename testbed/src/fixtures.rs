//! YAML files with objects: the tests' own, and those that are installed.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The directory of the crate's own fixtures.
pub fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

/// The directory of the install manifests.
pub fn install_manifests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../manifests/install")
}

/// Reads a fixture (`name` without `.yaml`) and fills in its `${NAME}` placeholders.
pub fn render(name: &str, values: &[(&str, &str)]) -> Result<Vec<Value>> {
    let path = directory().join(format!("{name}.yaml"));
    let mut text = read(&path)?;
    for (placeholder, value) in values {
        text = text.replace(&format!("${{{placeholder}}}"), value);
    }
    if let Some(start) = text.find("${") {
        let end = text[start..]
            .find('}')
            .map_or(text.len(), |at| start + at + 1);
        bail!(
            "{} has the placeholder {}, which has been given no value",
            path.display(),
            &text[start..end]
        );
    }
    parse(&text).with_context(|| format!("cannot parse {}", path.display()))
}

/// Reads all objects of a YAML file.
pub fn load(path: &Path) -> Result<Vec<Value>> {
    parse(&read(path)?).with_context(|| format!("cannot parse {}", path.display()))
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn parse(text: &str) -> Result<Vec<Value>> {
    let objects: Vec<Value> = serde_saphyr::from_multiple(text)?;
    Ok(objects
        .into_iter()
        .filter(|object| !object.is_null())
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_roles_for_managers_name_private_groups_only() {
        let own = directory().join("rbac");
        let installed = install_manifests().join("cluster-api");
        let mut roles = 0;
        for entry in [own, installed]
            .iter()
            .flat_map(|directory| std::fs::read_dir(directory).unwrap())
        {
            for role in load(&entry.unwrap().path()).unwrap() {
                roles += 1;
                for rule in role["rules"].as_array().unwrap() {
                    let groups = rule["apiGroups"].as_array().unwrap();
                    for group in groups {
                        let group = group.as_str().unwrap();
                        assert_ne!(group, "*", "{role}");
                        assert!(!group.ends_with("cluster.x-k8s.io"), "{role}");
                    }
                }
            }
        }
        assert!(roles >= 9, "{roles}");
    }
}
