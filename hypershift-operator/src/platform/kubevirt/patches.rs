//! Changes of the virtual machines of a cluster or a pool, which an annotation has as a JSON patch.

use std::collections::BTreeMap;
use std::slice;

use api::annotations::node_pool::KUBEVIRT_VM_JSONPATCH;
use json_patch::{Patch, PatchOperation};
use serde_json::{Value, json};

/// The most operations of a patch, and the most levels and bytes of what it makes. An operation can copy the whole
/// template into itself, so without limits a short patch takes all memory, or all of the stack.
const MOST_OPERATIONS: usize = 256;
const DEEPEST: usize = 64;
const LARGEST: usize = 256 * 1024;

/// Applies the patch of these annotations, if they have one.
pub(super) fn apply(
    template: &mut Value,
    annotations: &BTreeMap<String, String>,
) -> Result<(), String> {
    let key = KUBEVIRT_VM_JSONPATCH.key();
    let Some(text) = annotations.get(key) else {
        return Ok(());
    };
    let patch: Patch = serde_json::from_str(text)
        .map_err(|error| format!("annotation {key} is not a valid JSON patch: {error}"))?;
    let too_large = || {
        format!(
            "annotation {key} is too large: a patch may have {MOST_OPERATIONS} operations, and make a virtual machine of \
             {DEEPEST} levels and {LARGEST} bytes. Shorten the patch"
        )
    };
    if patch.0.len() > MOST_OPERATIONS {
        return Err(too_large());
    }
    for (index, operation) in patch.0.iter().enumerate() {
        if let PatchOperation::Add(add) = operation {
            let target = add.path.as_str();
            if target.matches('/').count() > DEEPEST {
                return Err(too_large());
            }
            ensure_parents(template, target);
        }
        json_patch::patch(template, slice::from_ref(operation)).map_err(|error| {
            format!(
                "annotation {key} cannot be applied to the virtual machine: operation {index} fails at path {}: {}",
                error.path, error.kind
            )
        })?;
        rest(template, DEEPEST, LARGEST).ok_or_else(too_large)?;
    }
    Ok(())
}

/// What is left of a size after a value, if it fits into these levels and this size.
fn rest(value: &Value, levels: usize, size: usize) -> Option<usize> {
    let levels = levels.checked_sub(1)?;
    let size = size.checked_sub(1)?;
    match value {
        Value::Object(fields) => fields.iter().try_fold(size, |size, (key, value)| {
            rest(value, levels, size.checked_sub(key.len())?)
        }),
        Value::Array(items) => items
            .iter()
            .try_fold(size, |size, item| rest(item, levels, size)),
        Value::String(text) => size.checked_sub(text.len()),
        Value::Null | Value::Bool(_) | Value::Number(_) => Some(size),
    }
}

/// Adds the objects and lists on the way to a path that are missing, so that a patch does not depend on which fields this
/// operator sets. What it cannot add is an error of the operation.
fn ensure_parents(document: &mut Value, path: &str) {
    let mut tokens = path.split('/').skip(1).map(decoded).peekable();
    let mut place = document;
    while let Some(token) = tokens.next() {
        let Some(next) = tokens.peek() else {
            return;
        };
        place = match place {
            Value::Object(fields) => {
                let field = fields.entry(token).or_insert(Value::Null);
                if field.is_null() {
                    *field = if is_index(next) { json!([]) } else { json!({}) };
                }
                field
            }
            Value::Array(items) => {
                let index = token.parse::<usize>().ok();
                match index.and_then(|index| items.get_mut(index)) {
                    Some(item) => item,
                    None => return,
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return,
        };
    }
}

fn is_index(token: &str) -> bool {
    token == "-" || (!token.is_empty() && token.bytes().all(|it| it.is_ascii_digit()))
}

/// A part of a JSON pointer.
fn decoded(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patched(patch: &Value) -> Result<Value, String> {
        let mut template = json!({ "spec": { "list": [1], "text": "a" } });
        let annotation = (KUBEVIRT_VM_JSONPATCH.key().to_owned(), patch.to_string());
        apply(&mut template, &[annotation].into())?;
        Ok(template["spec"].clone())
    }

    #[test]
    fn add_creates_missing_parents() {
        for (path, expected) in [
            (
                "/spec/a/b~1c/d",
                json!({ "list": [1], "text": "a", "a": { "b/c": { "d": 7 } } }),
            ),
            ("/spec/a/-", json!({ "list": [1], "text": "a", "a": [7] })),
            ("/spec/a/0", json!({ "list": [1], "text": "a", "a": [7] })),
            ("/spec/list/-", json!({ "list": [1, 7], "text": "a" })),
            ("/spec/text", json!({ "list": [1], "text": 7 })),
        ] {
            let patch = json!([{ "op": "add", "path": path, "value": 7 }]);
            assert_eq!(patched(&patch), Ok(expected), "{path}");
        }
    }

    #[test]
    fn operations_that_fail_are_named() {
        for (patch, expected) in [
            (json!({}), "not a valid JSON patch"),
            (
                json!([{ "path": "/spec/a", "value": 1 }]),
                "not a valid JSON patch",
            ),
            (
                json!([{ "op": "add", "path": "/spec/a" }]),
                "not a valid JSON patch",
            ),
            (
                json!([
                    { "op": "add", "path": "/spec/a", "value": 1 },
                    { "op": "remove", "path": "/spec/b" },
                ]),
                "operation 1 fails at path /spec/b",
            ),
            (
                json!([{ "op": "add", "path": "/spec/text/a", "value": 1 }]),
                "operation 0 fails at path /spec/text/a",
            ),
            (
                json!([{ "op": "add", "path": "/spec/list/7/a", "value": 1 }]),
                "operation 0 fails at path /spec/list/7/a",
            ),
        ] {
            let message = patched(&patch).unwrap_err();
            assert!(message.contains(expected), "{patch}: {message}");
        }
    }

    /// A short patch makes no large template, and none that is too deep to be dropped.
    #[test]
    fn patches_have_limits() {
        let operation = |mut operation: Value, path: &str| {
            operation["path"] = json!(path);
            operation
        };
        let add = |path: &str| operation(json!({ "op": "add", "value": 1 }), path);
        let copy = |path: &str| operation(json!({ "op": "copy", "from": "/spec" }), path);
        let doubled = (0..40).map(|index| copy(&format!("/spec/copy{index}")));
        for (name, patch, is_allowed) in [
            ("a deep path", vec![add(&"/a".repeat(DEEPEST - 1))], true),
            ("a deeper path", vec![add(&"/a".repeat(100_000))], false),
            (
                "few operations",
                vec![add("/spec/a"); MOST_OPERATIONS],
                true,
            ),
            (
                "many operations",
                vec![add("/spec/a"); MOST_OPERATIONS + 1],
                false,
            ),
            ("one copy", vec![copy("/spec/copy")], true),
            ("copies of copies", doubled.collect(), false),
        ] {
            let found = patched(&Value::Array(patch));
            assert_eq!(found.is_ok(), is_allowed, "{name}");
            if let Err(message) = found {
                assert!(message.contains("Shorten the patch"), "{name}: {message}");
            }
        }
    }
}
