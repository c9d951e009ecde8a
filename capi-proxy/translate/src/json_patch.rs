//! JSON Patch bodies (RFC 6902): each `value` is translated at the place that its `path` points to.
//!
//! A `value` may precede its `path`, so the body is read completely; the API server's own cap bounds it.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::json::{Documents, Json};
use super::place::{Action, Node};
use super::{Counts, Direction, Refusal, Rules, name};

#[derive(Deserialize)]
struct Operation<'a> {
    #[serde(borrow)]
    path: Cow<'a, str>,
    #[serde(borrow, default)]
    value: Option<&'a RawValue>,
}

/// Swaps the names in the values of a patch for an object at `root`.
///
/// Refuses what is no JSON Patch, and a path that itself names a quota by its group.
pub fn swap(rules: &Rules, root: Node, input: &[u8], out: &mut Vec<u8>) -> Result<Counts, Refusal> {
    let text = std::str::from_utf8(input)
        .map_err(|_| Refusal::malformed("the JSON Patch is not UTF-8"))?;
    let operations: Vec<Operation<'_>> = serde_json::from_str(text).map_err(|error| {
        Refusal::malformed(format!(
            "the body is no JSON Patch (a list of operations, each with one op, path and value): line {}, column {}",
            error.line(),
            error.column()
        ))
    })?;
    let mut counts = Counts::default();
    let mut copied = 0;
    for operation in &operations {
        let node = resolve(rules, root, &operation.path)?;
        let Some(value) = operation.value else {
            continue;
        };
        let raw = value.get();
        // A borrowed `RawValue` is a slice of the input, so its address is its offset.
        let start = raw.as_ptr().addr() - text.as_ptr().addr();
        out.extend_from_slice(&input[copied..start]);
        let mut json = Json::new(rules, Direction::Request, Documents::One, node);
        json.push(raw.as_bytes(), out)?;
        json.finish(out)?;
        counts.add(json.counts());
        copied = start + raw.len();
    }
    out.extend_from_slice(&input[copied..]);
    Ok(counts)
}

/// Follows a JSON pointer; an index is an array's element, at the node of the array.
fn resolve(rules: &Rules, root: Node, path: &str) -> Result<Node, Refusal> {
    path.split('/').skip(1).try_fold(root, |node, token| {
        if token == "-" || token.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(node);
        }
        let key = token.replace("~1", "/").replace("~0", "~");
        if node.key_action() == Some(Action::QuotaKey) && name::swap(rules, Action::QuotaKey, &key).is_some() {
            return Err(Refusal::unprocessable(
                "a JSON Patch path names a quota by its API group, which cannot be translated: use a merge patch",
            ));
        }
        Ok(node.child(key.as_bytes()))
    })
}

#[cfg(test)]
mod tests {
    use super::super::place::Shape;
    use super::*;

    fn swapped(shape: Shape, patch: &str) -> Result<String, Refusal> {
        let mut out = Vec::new();
        swap(
            &Rules::default(),
            Node::Document(shape),
            patch.as_bytes(),
            &mut out,
        )?;
        Ok(String::from_utf8(out).unwrap())
    }

    /// Check R19.
    #[test]
    fn json_patch_values_are_translated_by_their_path() {
        let rows = [
            (
                Shape::Plain,
                r#"[{"op":"test","path":"/metadata/ownerReferences/0/apiVersion","value":"cluster.x-k8s.io/v1beta2"}]"#,
                r#"[{"op":"test","path":"/metadata/ownerReferences/0/apiVersion","value":"cluster.hypershift.openshift.io/v1beta2"}]"#,
            ),
            (
                Shape::Plain,
                r#"[ {"value" : {"apiGroup":"cluster.x-k8s.io"}, "path":"/spec/infrastructureRef","op":"replace"} ]"#,
                r#"[ {"value" : {"apiGroup":"cluster.hypershift.openshift.io"}, "path":"/spec/infrastructureRef","op":"replace"} ]"#,
            ),
            (
                Shape::Plain,
                r#"[{"op":"replace","path":"/metadata/managedFields","value":[{"apiVersion":"cluster.x-k8s.io/v1beta2"}]}]"#,
                r#"[{"op":"replace","path":"/metadata/managedFields","value":[{"apiVersion":"cluster.hypershift.openshift.io/v1beta2"}]}]"#,
            ),
            (
                Shape::Rbac,
                r#"[{"op":"add","path":"/rules/0/apiGroups/-","value":"ipam.cluster.x-k8s.io"}]"#,
                r#"[{"op":"add","path":"/rules/0/apiGroups/-","value":"ipam.cluster.hypershift.openshift.io"}]"#,
            ),
            (
                Shape::Plain,
                r#"[{"op":"replace","path":"","value":{"apiVersion":"cluster.x-k8s.io/v1beta2"}}]"#,
                r#"[{"op":"replace","path":"","value":{"apiVersion":"cluster.hypershift.openshift.io/v1beta2"}}]"#,
            ),
        ];
        for (shape, standard, private) in rows {
            assert_eq!(swapped(shape, standard).unwrap(), private);
            assert_eq!(swapped(shape, private).unwrap(), standard);
        }
    }

    #[test]
    fn other_json_patch_values_are_unchanged() {
        for patch in [
            r#"[{"op":"add","path":"/metadata/annotations/a~1b","value":"cluster.x-k8s.io/v1beta2"}]"#,
            r#"[{"op":"add","path":"/metadata/labels","value":{"apiVersion":"cluster.x-k8s.io"}}]"#,
            r#"[{"op":"remove","path":"/metadata/ownerReferences"}]"#,
            r#"[{"op":"add","path":"/x","value":null}]"#,
            "[]",
        ] {
            assert_eq!(swapped(Shape::Plain, patch).unwrap(), patch);
        }
    }

    #[test]
    fn invalid_json_patches_are_rejected() {
        for patch in [
            "",
            "{}",
            "[1]",
            r#"[{"op":"add"}]"#,
            r#"[{"path":"/a","path":"/b"}]"#,
            "[] x",
        ] {
            assert_eq!(
                swapped(Shape::Plain, patch).unwrap_err().code,
                400,
                "{patch}"
            );
        }
        let quota =
            r#"[{"op":"add","path":"/spec/hard/count~1machines.cluster.x-k8s.io","value":"3"}]"#;
        assert_eq!(swapped(Shape::Quota, quota).unwrap_err().code, 422);
    }
}
