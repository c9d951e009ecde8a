//! What bindings of roles contain.

use serde_json::{Value, json};

use super::kind::Kind;

/// The fields of a binding that gives a role to subjects.
pub(super) fn fields(role: Kind, name: &str, subjects: &[Value]) -> Value {
    json!({
        "roleRef": {
            "apiGroup": role.resource().group,
            "kind": role.name(),
            "name": name,
        },
        "subjects": subjects,
    })
}

/// A service account as the subject of a binding.
pub(super) fn service_account(namespace: &str, name: &str) -> Value {
    json!({
        "kind": Kind::ServiceAccount.name(),
        "namespace": namespace,
        "name": name,
    })
}
