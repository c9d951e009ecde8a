//! Label selectors as `kubectl` takes them: `size=large,zone in (a,b),!old`.

use serde_json::{Map, Value, json};

use crate::Usage;

/// A selector as it stands in an object: `matchLabels` and `matchExpressions`.
pub(super) fn parse(flag: &str, text: &str) -> Result<Value, Usage> {
    let mut labels = Map::new();
    let mut expressions = Vec::new();
    for requirement in requirements(text) {
        let wrong = || {
            Usage::new(&format!(
                "{flag} {text:?}: {requirement:?} is no requirement; write KEY=VALUE, KEY!=VALUE, KEY in (A,B), KEY notin \
                 (A,B), KEY or !KEY, separated by commas"
            ))
        };
        match read(requirement).ok_or_else(wrong)? {
            Requirement::Is(key, value) => {
                let before = labels.insert(key.to_owned(), json!(value));
                if before.is_some_and(|before| before != value) {
                    return Err(Usage::new(&format!(
                        "{flag} {text:?}: {key} has two values, which no object has"
                    )));
                }
            }
            Requirement::Expression(key, operator, values) => {
                let mut expression = json!({ "key": key, "operator": operator });
                if !values.is_empty() {
                    expression["values"] = json!(values);
                }
                expressions.push(expression);
            }
        }
    }
    let mut selector = Map::new();
    if !labels.is_empty() {
        selector.insert("matchLabels".to_owned(), Value::Object(labels));
    }
    if !expressions.is_empty() {
        selector.insert("matchExpressions".to_owned(), Value::Array(expressions));
    }
    Ok(Value::Object(selector))
}

enum Requirement<'t> {
    Is(&'t str, &'t str),
    Expression(&'t str, &'static str, Vec<&'t str>),
}

/// Parts between commas that are in no parentheses.
fn requirements(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_u32;
    text.split(move |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
    .map(str::trim)
}

fn read(text: &str) -> Option<Requirement<'_>> {
    if let Some(set) = text.strip_suffix(')') {
        let (left, values) = set.split_once('(')?;
        let mut words = left.split_whitespace();
        let (key, word) = (words.next()?, words.next()?);
        let operator = match word {
            "in" => "In",
            "notin" => "NotIn",
            _ => return None,
        };
        let values: Vec<_> = values.split(',').map(str::trim).collect();
        let known = words.next().is_none() && is_key(key) && values.iter().all(|it| is_value(it));
        return known.then_some(Requirement::Expression(key, operator, values));
    }
    if let Some((key, value)) = text.split_once("!=") {
        let (key, value) = (key.trim(), value.trim());
        let known = is_key(key) && is_value(value);
        return known.then(|| Requirement::Expression(key, "NotIn", vec![value]));
    }
    if let Some((key, value)) = text.split_once('=') {
        let (key, value) = (key.trim(), value.trim_start_matches('=').trim());
        return (is_key(key) && is_value(value)).then_some(Requirement::Is(key, value));
    }
    let (key, operator) = match text.strip_prefix('!') {
        Some(key) => (key.trim(), "DoesNotExist"),
        None => (text, "Exists"),
    };
    if !is_key(key) {
        return None;
    }
    Some(Requirement::Expression(key, operator, Vec::new()))
}

fn is_key(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| is_letter(byte) || byte == b'/')
}

fn is_value(text: &str) -> bool {
    text.bytes().all(is_letter)
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_become_labels_and_expressions() {
        for (text, expected) in [
            ("a=b", json!({ "matchLabels": { "a": "b" } })),
            ("a==b, c=", json!({ "matchLabels": { "a": "b", "c": "" } })),
            (
                "example.com/size in (s, m),old notin (x),!new,there,a!=b",
                json!({ "matchExpressions": [
                    { "key": "example.com/size", "operator": "In", "values": ["s", "m"] },
                    { "key": "old", "operator": "NotIn", "values": ["x"] },
                    { "key": "new", "operator": "DoesNotExist" },
                    { "key": "there", "operator": "Exists" },
                    { "key": "a", "operator": "NotIn", "values": ["b"] },
                ] }),
            ),
        ] {
            assert_eq!(parse("--s", text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_selector_is_refused() {
        for text in [
            "",
            "=a",
            "a b",
            "a in b",
            "a is (b)",
            "a in (b) c",
            "a=b c",
            "a=1,a=2",
        ] {
            let error = parse("--s", text).unwrap_err().to_string();
            assert!(error.contains("--s"), "{error}");
        }
    }
}
