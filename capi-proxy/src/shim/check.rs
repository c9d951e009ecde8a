//! Holds a converted object to what the API server expects of a conversion, and to more. Pure.

use super::object::Object;

/// What a converted object breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Breach {
    #[error("the backend answered version {found:?} where {wanted:?} was asked for")]
    Version { wanted: String, found: String },
    #[error("the backend answered kind {found:?}")]
    Kind { found: String },
    #[error("the backend changed metadata.{field}")]
    Metadata { field: String },
}

/// Whether `converted` is `original` in the API version `wanted`: only labels and annotations of its metadata may
/// differ.
pub(crate) fn check(
    original: &Object<'_>,
    converted: &Object<'_>,
    wanted: &str,
) -> Result<(), Breach> {
    if converted.name.api_version != wanted {
        return Err(Breach::Version {
            wanted: wanted.to_owned(),
            found: converted.name.api_version.clone(),
        });
    }
    if converted.name.kind != original.name.kind {
        return Err(Breach::Kind {
            found: converted.name.kind.clone(),
        });
    }
    let (before, after) = (&original.metadata, &converted.metadata);
    let differs = |field: &&String| before.get(*field) != after.get(*field);
    match before.keys().chain(after.keys()).find(differs) {
        Some(field) => Err(Breach::Metadata {
            field: field.clone(),
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check C01.
    #[test]
    fn conversion_may_change_only_labels_and_annotations() {
        let original = r#"{"apiVersion":"g/v1","kind":"K","metadata":{"name":"o","uid":"u","creationTimestamp":"t",
            "labels":{"a":"b"},"finalizers":[],"ownerReferences":[{"uid":"p"}]}}"#;
        let table = [
            (
                r#"{"apiVersion":"g/v2","kind":"K","metadata":{"name":"o","uid":"u","creationTimestamp":"t",
                "annotations":{"c":"d"},"ownerReferences":[{"uid":"p"}],"managedFields":null}}"#,
                None,
            ),
            (
                r#"{"apiVersion":"g/v1","kind":"K","metadata":{"name":"o","uid":"u","creationTimestamp":"t",
                "ownerReferences":[{"uid":"p"}]}}"#,
                Some(r#"the backend answered version "g/v1" where "g/v2" was asked for"#),
            ),
            (
                r#"{"apiVersion":"g/v2","kind":"L","metadata":{"name":"o"}}"#,
                Some(r#"the backend answered kind "L""#),
            ),
            (
                r#"{"apiVersion":"g/v2","kind":"K","metadata":{"name":"o","uid":"u","creationTimestamp":"t",
                "ownerReferences":[{"uid":"q"}]}}"#,
                Some("the backend changed metadata.ownerReferences"),
            ),
            (
                r#"{"apiVersion":"g/v2","kind":"K","metadata":{"name":"o","uid":"u",
                "ownerReferences":[{"uid":"p"}]}}"#,
                Some("the backend changed metadata.creationTimestamp"),
            ),
            (
                r#"{"apiVersion":"g/v2","kind":"K","metadata":{"name":"o","uid":"u","creationTimestamp":"t",
                "ownerReferences":[{"uid":"p"}],"deletionTimestamp":"t"}}"#,
                Some("the backend changed metadata.deletionTimestamp"),
            ),
        ];
        let original = Object::read(original).unwrap();
        for (converted, expected) in table {
            let converted = Object::read(converted).unwrap();
            let found = check(&original, &converted, "g/v2").err();
            let found = found.map(|breach| breach.to_string());
            assert_eq!(found.as_deref(), expected);
        }
    }
}
