//! Generated documents in mixed styles, against a walk over their JSON.

use proptest::prelude::*;
use serde_json::{Map, Value};

use super::swapped;
use crate::place::{Node, Shape};
use crate::{Rules, name};

const KEYS: [&str; 10] = [
    "apiVersion",
    "apiGroup",
    "kind",
    "metadata",
    "labels",
    "ownerReferences",
    "spec",
    "hard",
    "name",
    "count/machines.cluster.x-k8s.io",
];
const TEXTS: [&str; 9] = [
    "cluster.x-k8s.io",
    "cluster.hypershift.openshift.io",
    "cluster.x-k8s.io/v1beta2",
    "ipam.cluster.hypershift.openshift.io/v1beta1",
    "machines.cluster.x-k8s.io",
    "v1",
    "it's: a \"text\" # with ö",
    "true",
    "",
];

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        (0..TEXTS.len()).prop_map(|index| Value::from(TEXTS[index])),
        any::<i8>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((0..KEYS.len(), inner), 0..5).prop_map(|fields| {
                fields
                    .into_iter()
                    .map(|(key, value)| (KEYS[key].to_owned(), value))
                    .collect::<Map<_, _>>()
                    .into()
            }),
        ]
    })
}

/// Writes YAML in styles that a string of choices picks.
struct Writer<'c> {
    choices: std::iter::Cycle<std::slice::Iter<'c, u8>>,
    out: String,
}

impl Writer<'_> {
    fn yaml(value: &Value, choices: &[u8]) -> String {
        let mut writer = Writer {
            choices: choices.iter().cycle(),
            out: String::new(),
        };
        writer.node(value, 0, false);
        writer.out.push('\n');
        writer.out
    }

    fn pick(&mut self, of: u8) -> u8 {
        self.choices.next().unwrap() % of
    }

    fn node(&mut self, value: &Value, indent: usize, flow: bool) {
        match value {
            Value::Array(items) if flow || items.is_empty() || self.pick(3) == 0 => {
                self.out.push('[');
                for item in items {
                    self.node(item, indent, true);
                    let comma = if self.pick(2) == 0 { " , " } else { "," };
                    self.out.push_str(comma);
                }
                self.out.push(']');
            }
            Value::Object(fields) if flow || fields.is_empty() || self.pick(3) == 0 => {
                self.out.push('{');
                for (key, value) in fields {
                    self.text(key);
                    self.out.push_str(": ");
                    self.node(value, indent, true);
                    self.out.push_str(", ");
                }
                self.out.push('}');
            }
            Value::Array(items) => {
                for item in items {
                    self.line(indent);
                    self.out.push_str("- ");
                    self.node(item, indent + 2, false);
                }
            }
            Value::Object(fields) => {
                for (key, value) in fields {
                    self.line(indent);
                    self.text(key);
                    self.out.push_str(":  ");
                    self.node(value, indent + 1, false);
                }
            }
            Value::String(text) => self.text(text),
            Value::Null | Value::Bool(_) | Value::Number(_) => {
                self.out.push_str(&value.to_string());
            }
        }
    }

    fn line(&mut self, indent: usize) {
        if self.pick(5) == 0 {
            self.out.push_str(" # apiVersion: cluster.x-k8s.io/v1 é");
        }
        self.out.push('\n');
        self.out.push_str(&" ".repeat(indent));
    }

    fn text(&mut self, text: &str) {
        let plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
            && !text.contains(['\'', '#'])
            && text != "true";
        let written = match self.pick(4) {
            0 | 1 if plain => text.to_owned(),
            2 => format!("'{}'", text.replace('\'', "''")),
            3 => format!("\"{}\"", text.replace('"', "\\\"").replace('.', "\\x2e")),
            _ => Value::from(text).to_string(),
        };
        self.out.push_str(&written);
    }
}

/// The naive translation: a walk over the whole document.
fn oracle(node: Node, value: &Value) -> Value {
    let rules = Rules::default();
    let swap = |action: Option<_>, text: &str| {
        let swapped = action.and_then(|action| name::swap(&rules, action, text));
        swapped.map_or_else(|| text.to_owned(), |swapped| swapped.to_string())
    };
    match value {
        Value::String(text) => Value::from(swap(node.action(), text)),
        Value::Array(items) => items.iter().map(|item| oracle(node, item)).collect(),
        Value::Object(fields) => {
            let field = |(key, value): (&String, &Value)| {
                (
                    swap(node.key_action(), key),
                    oracle(node.child(key.as_bytes()), value),
                )
            };
            fields.iter().map(field).collect::<Map<_, _>>().into()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn parse(yaml: &str) -> Value {
    serde_saphyr::from_str(yaml).unwrap_or_else(|error| panic!("{error}\n{yaml}"))
}

proptest! {
    /// Check R02.
    #[test]
    fn yaml_agrees_with_the_oracle_and_round_trips(
        value in values(),
        choices in prop::collection::vec(any::<u8>(), 1..60),
        quota: bool,
    ) {
        let root = Node::Document(if quota { Shape::Quota } else { Shape::Plain });
        let yaml = Writer::yaml(&value, &choices);
        prop_assert_eq!(parse(&yaml), value.clone(), "the writer is wrong:\n{}", yaml);
        let (out, _) = swapped(root, &yaml).map_err(|refusal| TestCaseError::fail(format!("{refusal}\n{yaml}")))?;
        prop_assert_eq!(parse(&out), oracle(root, &value), "{}", yaml);
        let (back, _) = swapped(root, &out).unwrap();
        prop_assert_eq!(parse(&back), value);
        if !yaml.contains("\\x2e") {
            prop_assert_eq!(back, yaml);
        }
    }

    #[test]
    fn translating_arbitrary_yaml_never_panics(text in "[a:{}\\[\\],&*!|>'\"%#?\\- \n\té\\\\<.]{0,60}") {
        if let Ok((out, _)) = swapped(Node::Generic, &text) {
            prop_assert_eq!(out, text);
        }
    }
}
