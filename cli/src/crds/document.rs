//! YAML and JSON documents together with where they came from.

use std::fmt;

use serde_json::Value;

/// Where a document came from; error messages start with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// File, URL or cluster.
    pub source: String,
    /// Counted from one, empty documents left out; none when the source is one object by its nature.
    pub document: Option<usize>,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.source)?;
        match self.document {
            Some(number) => write!(f, ", document {number}"),
            None => Ok(()),
        }
    }
}

/// One object and its origin.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// Where it came from.
    pub origin: Origin,
    /// The object, its fields in the order in which they were written.
    pub value: Value,
}

/// What one source gave: a module, a file or directory, a URL, a cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// The source as the user named it.
    pub name: String,
    /// Its documents.
    pub documents: Vec<Document>,
}

impl Batch {
    /// A batch of objects that a caller already has.
    pub fn of_values(name: &str, values: Vec<Value>) -> Self {
        let documents = values
            .into_iter()
            .enumerate()
            .map(|(index, value)| Document {
                origin: Origin {
                    source: name.to_owned(),
                    document: Some(index + 1),
                },
                value,
            })
            .collect();
        Self {
            name: name.to_owned(),
            documents,
        }
    }
}

/// A text that is not YAML or JSON.
#[derive(Debug, thiserror::Error)]
pub enum ParseError {
    /// Broken YAML.
    #[error("{origin} is not valid YAML: fix it, or derive from another source")]
    Yaml {
        /// The document that is broken.
        origin: Origin,
        /// What the parser says, with line and column.
        #[source]
        source: Box<serde_saphyr::Error>,
    },
    /// Broken JSON.
    #[error("{origin} is not valid JSON: fix it, or derive from another source")]
    Json {
        /// The document that is broken.
        origin: Origin,
        /// What the parser says, with line and column.
        #[source]
        source: serde_json::Error,
    },
}

/// Parses a stream of YAML documents, or of JSON values when the first character is `{`.
///
/// Lists (`kind: List`, as `kubectl get -o yaml` prints) are taken apart.
pub fn parse(source: &str, text: &str) -> Result<Vec<Document>, ParseError> {
    let text = text.trim_start_matches('\u{feff}');
    let documents = if text.trim_start().starts_with('{') {
        parse_json(source, text)?
    } else {
        parse_yaml(source, text)?
    };
    Ok(documents.into_iter().flat_map(flatten_list).collect())
}

fn parse_json(source: &str, text: &str) -> Result<Vec<Document>, ParseError> {
    let values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    numbered(source, values, |origin, source| ParseError::Json {
        origin,
        source,
    })
}

fn parse_yaml(source: &str, text: &str) -> Result<Vec<Document>, ParseError> {
    // Numbers and booleans are read as kubectl reads them, that is as YAML 1.1 has them.
    // The budget leaves room for deep schemas and for a List of every CRD of a cluster.
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: 256,
            max_events: 8_000_000,
            max_nodes: 4_000_000,
        },
        emit_comments: false,
        legacy_octal_numbers: true,
        with_snippet: false,
    };
    let mut reader = text.as_bytes();
    let values = serde_saphyr::read_with_options::<_, Value>(&mut reader, options);
    numbered(source, values, |origin, source| ParseError::Yaml {
        origin,
        source: Box::new(source),
    })
}

fn numbered<E>(
    source: &str,
    values: impl Iterator<Item = Result<Value, E>>,
    refuse: impl Fn(Origin, E) -> ParseError,
) -> Result<Vec<Document>, ParseError> {
    values
        .enumerate()
        .map(|(index, value)| {
            let origin = Origin {
                source: source.to_owned(),
                document: Some(index + 1),
            };
            match value {
                Ok(value) => Ok(Document { origin, value }),
                Err(error) => Err(refuse(origin, error)),
            }
        })
        .collect()
}

fn flatten_list(document: Document) -> Vec<Document> {
    let Document { origin, value } = document;
    match list_items(value) {
        Ok(items) => items
            .into_iter()
            .map(|value| Document {
                origin: origin.clone(),
                value,
            })
            .collect(),
        Err(value) => vec![Document { origin, value }],
    }
}

/// The items of a list object, or the value itself when it is none.
fn list_items(mut value: Value) -> Result<Vec<Value>, Value> {
    let is_list = value
        .get("kind")
        .and_then(Value::as_str)
        .is_some_and(|kind| kind == "List" || kind == "CustomResourceDefinitionList");
    match value.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) if is_list => Ok(items),
        Some(items) => {
            value["items"] = items;
            Err(value)
        }
        None => Err(value),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_yaml_streams_json_streams_and_lists() {
        let item = json!({"kind": "A"});
        let table = [
            ("yaml", "---\n# nothing\n---\nkind: A\n---\nkind: A\n", 2),
            ("json", "{\"kind\":\"A\"}\n{\"kind\":\"A\"}", 2),
            ("byte order mark", "\u{feff}kind: A\n", 1),
            ("yaml list", "kind: List\nitems:\n- kind: A\n- kind: A\n", 2),
            (
                "json list",
                r#"{"kind":"CustomResourceDefinitionList","items":[{"kind":"A"}]}"#,
                1,
            ),
            ("nothing", "", 0),
        ];
        for (name, text, count) in table {
            let documents = parse(name, text).unwrap();
            assert_eq!(documents.len(), count, "{name}");
            assert!(documents.iter().all(|d| d.value == item), "{name}");
        }
    }

    #[test]
    fn keeps_the_order_of_fields() {
        let documents = parse("f", "b: 1\na: 2\nc: 3\n").unwrap();
        assert_eq!(documents[0].value.to_string(), r#"{"b":1,"a":2,"c":3}"#);
    }

    #[test]
    fn broken_text_is_named_by_file_and_document() {
        let table = [
            ("a: 1\n---\na: [1\n", "f.yaml, document 2 is not valid YAML"),
            (
                "a: 1\n---\na: 1\na: 2\n",
                "f.yaml, document 2 is not valid YAML",
            ),
            ("{\"a\":1}\n{\"a\":", "f.yaml, document 2 is not valid JSON"),
        ];
        for (text, expected) in table {
            let message = parse("f.yaml", text).unwrap_err().to_string();
            assert!(message.starts_with(expected), "{text:?}: {message}");
        }
    }

    #[test]
    fn an_object_with_items_that_is_no_list_stays_whole() {
        let documents = parse("f", "kind: ConfigMap\nitems: [1]\n").unwrap();
        assert_eq!(
            documents[0].value,
            json!({"kind": "ConfigMap", "items": [1]})
        );
    }
}
