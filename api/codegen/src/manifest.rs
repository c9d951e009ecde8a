//! A custom resource definition as a file.

use anyhow::Result;
use serde_json::Value;

const HEAD: &str = "# Written by `cargo xtask codegen` from the types of the api crate.\n";

/// The file's text. It is the same whatever order the fields come in.
pub(super) fn render(crd: &Value) -> Result<String> {
    // Long lines stay lines: folding would make every reworded sentence a larger difference.
    let options = serde_saphyr::ser_options! {
        folded_wrap_chars: usize::MAX,
    };
    let text = serde_saphyr::to_string_with_options(&sorted(crd), options)?;
    Ok(format!("{HEAD}{text}"))
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(key, _)| *key);
            let fields = fields.into_iter();
            let fields = fields.map(|(key, value)| (key.clone(), sorted(value)));
            Value::Object(fields.collect())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_written_reads_the_same_again() {
        let crd = json!({
            "b": [{"d": "a: b # c", "c": "^(\\w+\\S+)$"}, "true", true, 1, "1", "", "~"],
            "a": "several paragraphs\n\nwith 'quotes' and \"quotes\"",
        });
        let text = render(&crd).unwrap();
        let read: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(read, crd, "{text}");
        assert!(text.find("\na:") < text.find("\nb:"), "{text}");
    }
}
