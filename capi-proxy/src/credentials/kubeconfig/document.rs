//! A small YAML document as a JSON value. Not for bodies of requests, which must keep their bytes.

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Value};

/// The most levels that a document may be nested.
const MAX_DEPTH: usize = 64;

/// Where a text is not such a document: line and column, counted from one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Misplaced {
    pub(super) line: usize,
    pub(super) column: usize,
}

/// A collection that is not yet closed.
enum Open {
    Sequence(Vec<Value>),
    /// The key that waits for its value.
    Mapping(Map<String, Value>, Option<String>),
}

/// What has been read so far.
#[derive(Default)]
struct Reading {
    open: Vec<Open>,
    root: Option<Value>,
}

/// Reads one document without aliases and tags. Scalars are strings, but for `null`, `true` and `false`.
pub(super) fn read(text: &str) -> Result<Value, Misplaced> {
    let mut parser = Parser::new_from_str(text);
    let mut reading = Reading::default();
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| misplaced(*error.marker()))?;
        reading.take(event).ok_or_else(|| misplaced(span.start))?;
    }
    Ok(reading.root.unwrap_or_else(|| Value::Object(Map::new())))
}

fn misplaced(marker: saphyr_parser::Marker) -> Misplaced {
    Misplaced {
        line: marker.line(),
        column: marker.col() + 1,
    }
}

/// A plain scalar may be no string; a quoted one always is.
fn scalar(text: &str, style: ScalarStyle) -> Value {
    match (style, text) {
        (ScalarStyle::Plain, "" | "~" | "null" | "Null" | "NULL") => Value::Null,
        (ScalarStyle::Plain, "true" | "True" | "TRUE") => Value::Bool(true),
        (ScalarStyle::Plain, "false" | "False" | "FALSE") => Value::Bool(false),
        _ => Value::String(text.to_owned()),
    }
}

// === impl Reading ===

impl Reading {
    /// Nothing if the event has no place here.
    fn take(&mut self, event: Event<'_>) -> Option<()> {
        match event {
            Event::DocumentStart(_) if self.root.is_some() => None,
            Event::Scalar(text, style, _, None) => self.put(scalar(&text, style)),
            Event::SequenceStart(_, None) => self.enter(Open::Sequence(Vec::new())),
            Event::MappingStart(_, None) => self.enter(Open::Mapping(Map::new(), None)),
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop()? {
                Open::Sequence(items) => self.put(Value::Array(items)),
                Open::Mapping(fields, _) => self.put(Value::Object(fields)),
            },
            Event::Scalar(..)
            | Event::SequenceStart(..)
            | Event::MappingStart(..)
            | Event::Alias(_) => None,
            Event::DocumentStart(_)
            | Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentEnd => Some(()),
        }
    }

    fn enter(&mut self, open: Open) -> Option<()> {
        self.open.push(open);
        (self.open.len() <= MAX_DEPTH).then_some(())
    }

    fn put(&mut self, value: Value) -> Option<()> {
        match self.open.last_mut() {
            None => self.root = Some(value),
            Some(Open::Sequence(items)) => items.push(value),
            Some(Open::Mapping(fields, waiting)) => match (waiting.take(), value) {
                // Twice the same key, or one that represents the fields of another mapping.
                (None, Value::String(key)) if fields.contains_key(&key) || key == "<<" => {
                    return None;
                }
                (None, Value::String(key)) => *waiting = Some(key),
                (None, _) => return None,
                // A field without a value is a field that is left out.
                (Some(_), Value::Null) => {}
                (Some(key), value) => {
                    fields.insert(key, value);
                }
            },
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn yaml_and_json_documents_are_equal() {
        let expected = json!({
            "clusters": [{"name": "a", "cluster": {"server": "https://a:6443", "insecure": true}}],
            "port": "6443",
            "quoted": "true",
            "text": "two\nlines\n",
        });
        let yaml = "clusters:\n- name: a\n  cluster: {server: 'https://a:6443', insecure: true}\n\
                    port: 6443\nquoted: \"true\"\nempty:\ntext: |\n  two\n  lines\n";
        assert_eq!(read(yaml), Ok(expected));
        assert_eq!(
            read("{\"a\": [1, null, \"x\"]}"),
            Ok(json!({"a": ["1", null, "x"]}))
        );
        assert_eq!(read(""), Ok(json!({})));
    }

    #[test]
    fn unsupported_yaml_is_rejected_with_its_location() {
        for (text, line) in [
            ("a: 1\na: 2\n", 2),
            ("a: &x b\nc: *x\n", 2),
            ("a: {b: c}\n<<: {d: e}\n", 2),
            ("a: 1\n---\nb: 2\n", 2),
            ("a: !!binary aGk=\n", 1),
            ("a: [1,\n", 2),
            ("? {a: b}\n: c\n", 1),
        ] {
            let misplaced = read(text).expect_err(text);
            assert!(misplaced.line >= line, "{text}: {misplaced:?}");
        }
        assert!(read(&"[".repeat(100_000)).is_err());
    }
}
