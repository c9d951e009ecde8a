//! JSON in its one form: keys in order, no spaces. What is hashed must not change with a library's taste.

use serde_json::Value;

/// The text of a value, whatever order its keys came in.
pub(crate) fn text(value: &Value) -> String {
    sorted(value).to_string()
}

/// The value with its keys in order.
pub(crate) fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(key, _)| *key);
            let sorted = fields.into_iter();
            let sorted = sorted.map(|(key, value)| (key.clone(), self::sorted(value)));
            Value::Object(sorted.collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_keys_does_not_matter() {
        let one: Value =
            serde_json::from_str(r#"{ "b": [{"y": 1, "x": null}], "a": "ü" }"#).unwrap();
        let two: Value = serde_json::from_str(r#"{"a":"ü","b":[{"x":null,"y":1}]}"#).unwrap();
        assert_eq!(text(&one), text(&two));
        assert_eq!(text(&two), r#"{"a":"ü","b":[{"x":null,"y":1}]}"#);
    }
}
