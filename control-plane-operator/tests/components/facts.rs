//! Objects as lines `Kind/name path = value`, to compare them field by field.
//!
//! Facts are generated from JSON descriptions of the components of another implementation, where embedded configuration
//! is `{format, value}`, and scripts are `{script, description}`. They become lines with `@json`, `@yaml` or `@ini` in
//! the path, and `<script>`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Path and value, both as text.
pub(crate) type Facts = BTreeMap<String, String>;

const HASH: &str = "component.hypershift.openshift.io/config-hash";
pub(crate) const SCRIPT: &str = "<script>";
/// Formats of embedded configuration.
const FORMATS: [&str; 3] = ["json", "yaml", "ini"];

/// Returns the facts of a described component.
pub(crate) fn described(component: &Value) -> Facts {
    let mut facts = Facts::new();
    for object in component["objects"].as_array().unwrap() {
        let mut object = object.clone();
        let name = take(&mut object, "name");
        let kind = take(&mut object, "kind");
        let at = format!("{}/{}", text(&kind), text(&name));
        facts.insert(format!("{at} metadata.name"), name.to_string());
        let annotations = structured_as_json(take(&mut object, "annotations"));
        let fields = ["namespace", "labels"].map(|field| (field, take(&mut object, field)));
        for (field, value) in fields.into_iter().chain([("annotations", annotations)]) {
            flatten(
                &format!("{at} metadata.{field}"),
                &value,
                &Embedded::default(),
                &mut facts,
            );
        }
        flatten(&format!("{at} "), &object, &Embedded::default(), &mut facts);
    }
    facts
}

/// Returns the facts of a rendered object. `embedded` are the paths of embedded configuration.
pub(crate) fn rendered(object: &Value, embedded: &Embedded) -> Facts {
    let mut facts = Facts::new();
    let mut object = object.clone();
    let kind = take(&mut object, "kind");
    let name = object["metadata"]["name"].clone();
    let at = format!("{}/{}", text(&kind), text(&name));
    if let Some(owner) = object["metadata"]["ownerReferences"].get(0) {
        let owner = format!("{}/{}", text(&owner["kind"]), text(&owner["name"]));
        facts.insert(format!("{at} owner"), Value::String(owner).to_string());
    }
    take(&mut object["metadata"], "ownerReferences");
    if kind == "Secret" {
        decode(&mut object["data"]);
    }
    flatten(&format!("{at} "), &object, embedded, &mut facts);
    facts
}

/// Paths of embedded configuration, with the format.
#[derive(Debug, Default)]
pub(crate) struct Embedded(BTreeMap<String, String>);

// === impl Embedded ===

impl Embedded {
    /// Collects the paths from facts.
    pub(crate) fn of(facts: &Facts) -> Self {
        let mut places = BTreeMap::new();
        for format in FORMATS {
            let mark = format!("@{format}");
            for path in facts.keys() {
                if let Some((place, _)) = path.split_once(&mark) {
                    places.insert(place.to_owned(), format.to_owned());
                }
            }
        }
        Self(places)
    }
}

fn take(object: &mut Value, field: &str) -> Value {
    object
        .as_object_mut()
        .and_then(|fields| fields.remove(field))
        .unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Annotations are text: one that is described by its structure holds JSON.
fn structured_as_json(mut annotations: Value) -> Value {
    let values = annotations.as_object_mut().into_iter().flatten();
    for (_, value) in values.filter(|(_, value)| !value.is_string()) {
        *value = serde_json::json!({ "format": "json", "value": value.take() });
    }
    annotations
}

fn decode(data: &mut Value) {
    use base64::Engine as _;
    for value in data
        .as_object_mut()
        .into_iter()
        .flat_map(|data| data.values_mut())
    {
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(text(value))
            .unwrap();
        *value = Value::String(String::from_utf8(bytes).unwrap());
    }
}

fn flatten(path: &str, value: &Value, embedded: &Embedded, facts: &mut Facts) {
    match value {
        Value::Object(fields) if fields.get("script") == Some(&Value::Bool(true)) => {
            facts.insert(path.to_owned(), SCRIPT.to_owned());
        }
        Value::Object(fields) if fields.contains_key("format") => {
            described_text(path, value, embedded, facts)
        }
        Value::Object(fields) if fields.is_empty() => {
            facts.insert(path.to_owned(), "{}".to_owned());
        }
        Value::Object(fields) => {
            for (key, value) in fields {
                if key == "annotations_with_computed_hash" {
                    let path = join(&join(path, "annotations"), HASH);
                    facts.insert(path, "<computed>".to_owned());
                    continue;
                }
                flatten(&join(path, key), value, embedded, facts);
            }
        }
        Value::Array(items) if items.is_empty() => {
            facts.insert(path.to_owned(), "[]".to_owned());
        }
        Value::Array(items) => {
            let key = ["name", "mountPath", "record", "type"]
                .into_iter()
                .find(|key| {
                    items
                        .iter()
                        .all(|item| item.get(key).is_some_and(Value::is_string))
                });
            for (index, item) in items.iter().enumerate() {
                let at = key.map_or_else(|| index.to_string(), |key| text(&item[key]).to_owned());
                flatten(&format!("{path}[{at}]"), item, embedded, facts);
            }
        }
        Value::String(config) if embedded.0.contains_key(path) => {
            let format = &embedded.0[path];
            let value = match format.as_str() {
                "ini" => ini(config),
                // JSON is YAML.
                _ => serde_saphyr::from_str(config).unwrap(),
            };
            flatten(
                &format!("{path}@{format}"),
                &value,
                &Embedded::default(),
                facts,
            );
        }
        Value::Null if !path.contains('@') => {}
        value => {
            facts.insert(path.to_owned(), value.to_string());
        }
    }
}

fn described_text(path: &str, value: &Value, embedded: &Embedded, facts: &mut Facts) {
    match value["format"].as_str() {
        Some(format) if FORMATS.contains(&format) => {
            flatten(
                &format!("{path}@{format}"),
                &value["value"],
                embedded,
                facts,
            );
        }
        Some("empty") => {
            facts.insert(path.to_owned(), "\"\"".to_owned());
        }
        _ => {
            facts.insert(path.to_owned(), value["value"].to_string());
        }
    }
}

/// Parses sections of settings.
fn ini(text: &str) -> Value {
    let mut file = json!({});
    let mut section = "";
    for line in text.lines() {
        let heading = line.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        match (heading, line.split_once('=')) {
            (Some(name), _) => section = name,
            (None, Some((name, value))) => file[section][name.trim()] = json!(value.trim()),
            (None, None) => assert!(line.is_empty(), "{line:?} is not a setting"),
        }
    }
    file
}

fn join(path: &str, key: &str) -> String {
    if key.contains(['.', '/']) {
        return format!("{path}[{key}]");
    }
    if path.ends_with(' ') {
        return format!("{path}{key}");
    }
    format!("{path}.{key}")
}
