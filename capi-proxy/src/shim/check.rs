//! Validates a converted object, more strictly than the API server. Pure.

use super::object::Object;

/// An invalid change by a conversion.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Mismatch {
    #[error("the backend returned version {found:?} instead of {desired:?}")]
    Version { desired: String, found: String },
    #[error("the backend returned kind {found:?}")]
    Kind { found: String },
    #[error("the backend changed metadata.{field}")]
    Metadata { field: String },
}

/// Checks that `converted` is `original` in the API version `desired`: in metadata, only labels and annotations may
/// differ.
pub(crate) fn check(
    original: &Object<'_>,
    converted: &Object<'_>,
    desired: &str,
) -> Result<(), Mismatch> {
    if converted.name.api_version != desired {
        return Err(Mismatch::Version {
            desired: desired.to_owned(),
            found: converted.name.api_version.clone(),
        });
    }
    if converted.name.kind != original.name.kind {
        return Err(Mismatch::Kind {
            found: converted.name.kind.clone(),
        });
    }
    let (before, after) = (&original.metadata, &converted.metadata);
    let differs = |field: &&String| before.get(*field) != after.get(*field);
    match before.keys().chain(after.keys()).find(differs) {
        Some(field) => Err(Mismatch::Metadata {
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
                Some(r#"the backend returned version "g/v1" instead of "g/v2""#),
            ),
            (
                r#"{"apiVersion":"g/v2","kind":"L","metadata":{"name":"o"}}"#,
                Some(r#"the backend returned kind "L""#),
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
