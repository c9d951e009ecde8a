//! Conditions in the status of an object.

use serde_json::Value;

/// The condition of a kind, if there is one.
pub fn find<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    all(object).find(|one| one["type"] == kind)
}

/// Whether it is true.
pub fn is_true(object: &Value, kind: &str) -> bool {
    find(object, kind).is_some_and(|one| one["status"] == "True")
}

/// Those that are not true, as text.
pub fn untrue(object: &Value) -> String {
    let bad = all(object).filter(|one| one["status"] != "True");
    let reported = bad.map(|one| format!("{} {}: {}", one["type"], one["status"], one["message"]));
    reported.collect::<Vec<_>>().join("; ")
}

/// All of them.
pub fn all(object: &Value) -> impl Iterator<Item = &Value> {
    let conditions = object["status"]["conditions"].as_array();
    conditions.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn conditions_are_found_and_untrue_ones_are_listed() {
        let object = json!({ "status": { "conditions": [
            { "type": "A", "status": "True", "message": "" },
            { "type": "B", "status": "False", "message": "no" },
        ]}});
        assert!(is_true(&object, "A") && !is_true(&object, "B") && !is_true(&object, "C"));
        assert_eq!(
            find(&object, "B").map(|one| &one["message"]),
            Some(&json!("no"))
        );
        assert_eq!(untrue(&object), "\"B\" \"False\": \"no\"");
        assert_eq!(all(&json!({})).count(), 0);
    }
}
