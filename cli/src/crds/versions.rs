//! Which versions of a CRD the private one has.

use serde_json::Value;

use super::{Conversion, Refusal, schema};

/// The versions to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Versions {
    /// Only the one that objects are stored at.
    Storage,
    /// All of them.
    All,
}

/// Keeps the chosen versions and returns the names of those that are served.
///
/// Without a conversion webhook the API server serves what is stored as it is, whatever version it is asked for. With
/// more than one served version that is right only if their schemas are the same, so a choice is asked for otherwise.
pub(super) fn keep(
    versions: &mut Vec<Value>,
    choice: Option<Versions>,
    conversion: &Conversion,
) -> Result<Vec<String>, Refusal> {
    let storage = storage_version(versions)?;
    if choice == Some(Versions::Storage) {
        let kept = versions.swap_remove(storage);
        *versions = vec![kept];
    }
    let served = served(versions)?;
    if served.len() > 1 && *conversion == Conversion::None {
        check_choice(versions, choice, &served)?;
    }
    Ok(served)
}

fn storage_version(versions: &[Value]) -> Result<usize, Refusal> {
    let mut stored = versions
        .iter()
        .enumerate()
        .filter(|(_, version)| is(version, "storage"))
        .map(|(index, _)| index);
    match (stored.next(), stored.next()) {
        (Some(index), None) if is(&versions[index], "served") => Ok(index),
        (Some(index), None) => Err(Refusal::StorageVersionNotServed {
            version: name(&versions[index])?,
        }),
        (None, _) => Err(Refusal::NoStorageVersion),
        (Some(_), Some(_)) => Err(Refusal::SeveralStorageVersions),
    }
}

fn served(versions: &[Value]) -> Result<Vec<String>, Refusal> {
    versions
        .iter()
        .filter(|version| is(version, "served"))
        .map(name)
        .collect()
}

fn check_choice(
    versions: &[Value],
    choice: Option<Versions>,
    served: &[String],
) -> Result<(), Refusal> {
    let served = served.join(", ");
    if choice.is_none() {
        return Err(Refusal::SeveralVersions { served });
    }
    let mut schemas = versions
        .iter()
        .filter(|version| is(version, "served"))
        .map(|version| &version["schema"]["openAPIV3Schema"]);
    let first = schemas.next().unwrap_or(&Value::Null);
    if schemas.all(|other| schema::interchangeable(first, other)) {
        return Ok(());
    }
    Err(Refusal::SchemasDiffer { served })
}

fn is(version: &Value, flag: &str) -> bool {
    version[flag].as_bool() == Some(true)
}

fn name(version: &Value) -> Result<String, Refusal> {
    version["name"]
        .as_str()
        .map(str::to_owned)
        .ok_or(Refusal::Malformed {
            field: "spec.versions[].name",
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn version(name: &str, served: bool, storage: bool, kind: &str) -> Value {
        json!({
            "name": name, "served": served, "storage": storage,
            "schema": {"openAPIV3Schema": {"type": kind, "description": name}},
        })
    }

    struct Case {
        name: &'static str,
        versions: Vec<Value>,
        choice: Option<Versions>,
        conversion: &'static str,
        expected: Result<(&'static [&'static str], &'static [&'static str]), Refusal>,
    }

    #[test]
    fn keeps_versions_only_where_conversion_is_right() {
        let same = || {
            vec![
                version("v1", true, false, "object"),
                version("v2", true, true, "object"),
            ]
        };
        let other = || {
            vec![
                version("v1", true, false, "string"),
                version("v2", true, true, "object"),
            ]
        };
        let served = || "v1, v2".to_owned();
        let cases = [
            Case {
                name: "storage only",
                versions: other(),
                choice: Some(Versions::Storage),
                conversion: "none",
                expected: Ok((&["v2"], &["v2"])),
            },
            Case {
                name: "all by webhook",
                versions: other(),
                choice: None,
                conversion: "webhook=a/b",
                expected: Ok((&["v1", "v2"], &["v1", "v2"])),
            },
            Case {
                name: "no choice",
                versions: same(),
                choice: None,
                conversion: "none",
                expected: Err(Refusal::SeveralVersions { served: served() }),
            },
            Case {
                name: "all without conversion, same schema",
                versions: same(),
                choice: Some(Versions::All),
                conversion: "none",
                expected: Ok((&["v1", "v2"], &["v1", "v2"])),
            },
            Case {
                name: "all without conversion, other schema",
                versions: other(),
                choice: Some(Versions::All),
                conversion: "none",
                expected: Err(Refusal::SchemasDiffer { served: served() }),
            },
            Case {
                name: "an unserved version needs no choice",
                versions: vec![
                    version("v1", false, false, "string"),
                    version("v2", true, true, "object"),
                ],
                choice: None,
                conversion: "none",
                expected: Ok((&["v1", "v2"], &["v2"])),
            },
            Case {
                name: "nothing stored",
                versions: vec![version("v1", true, false, "object")],
                choice: None,
                conversion: "none",
                expected: Err(Refusal::NoStorageVersion),
            },
            Case {
                name: "two stored",
                versions: vec![
                    version("v1", true, true, "object"),
                    version("v2", true, true, "object"),
                ],
                choice: None,
                conversion: "none",
                expected: Err(Refusal::SeveralStorageVersions),
            },
            Case {
                name: "stored and not served",
                versions: vec![
                    version("v1", false, true, "object"),
                    version("v2", true, false, "object"),
                ],
                choice: Some(Versions::Storage),
                conversion: "none",
                expected: Err(Refusal::StorageVersionNotServed {
                    version: "v1".to_owned(),
                }),
            },
        ];
        for case in cases {
            let mut versions = case.versions;
            let result = keep(
                &mut versions,
                case.choice,
                &case.conversion.parse().unwrap(),
            );
            let kept: Vec<_> = versions.iter().filter_map(|v| v["name"].as_str()).collect();
            match case.expected {
                Ok((names, served)) => {
                    assert_eq!(kept, names, "{}", case.name);
                    assert_eq!(result.unwrap(), served, "{}", case.name);
                }
                Err(refusal) => assert_eq!(result, Err(refusal), "{}", case.name),
            }
        }
    }
}
