//! Objects as lines `apiVersion/Kind/namespace/name path = value`, to compare them field by field.
//!
//! Facts are generated from a JSON description of the objects of another implementation. There, text in angle brackets
//! stands for a value that is computed from the input; `values.rs` has what it is for each profile. Embedded
//! configuration is `{format, value}`, and becomes lines with `@yaml` or `@ini` in the path.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

/// Path and value.
pub(crate) type Facts = BTreeMap<String, Value>;

/// Placeholder of scripts.
pub(crate) const SCRIPT: &str = "<script>";

/// Identity of an object in facts.
pub(crate) fn identity(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let at = |pointer: &str| text(object.pointer(pointer).unwrap_or(&Value::Null));
    [
        at("/apiVersion"),
        at("/kind"),
        at("/metadata/namespace"),
        at("/metadata/name"),
    ]
    .join("/")
}

/// Lines of a described object.
pub(crate) fn described(entry: &Value) -> Vec<String> {
    let object = json!({
        "apiVersion": entry["apiVersion"],
        "kind": entry["kind"],
        "metadata": { "namespace": entry["namespace"], "name": entry["name"] },
    });
    let id = identity(&object);
    let present = entry["present"].as_object().into_iter().flatten();
    let present = present
        .filter(|(_, is)| **is == true)
        .map(|(name, _)| name.as_str());
    let step = entry["step"].as_u64().unwrap_or(18);
    let mut lines = vec![
        format!("{id} @step = {step}"),
        format!("{id} @mode = {}", entry["mode"]),
        format!("{id} @label = {}", entry["managedLabel"]),
        format!(
            "{id} @profiles = {}",
            json!(present.collect::<Vec<_>>().join(" "))
        ),
    ];
    let mut facts = Facts::new();
    flatten("", &entry["fields"], &mut facts);
    // An object without fields.
    facts.remove("");
    lines.extend(
        facts
            .iter()
            .map(|(path, value)| format!("{id} {path} = {value}")),
    );
    lines
}

/// The objects of a file with facts.
pub(crate) fn parse(text: &str) -> BTreeMap<String, Facts> {
    let mut objects: BTreeMap<String, Facts> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (path, value) = line.split_once(" = ").unwrap();
        let (id, path) = path.split_once(' ').unwrap();
        let value = serde_json::from_str(value).unwrap();
        objects
            .entry(id.to_owned())
            .or_default()
            .insert(path.to_owned(), value);
    }
    objects
}

/// Lines of a value.
pub(crate) fn flatten(path: &str, value: &Value, facts: &mut Facts) {
    match value {
        Value::Object(fields) if fields.get("script") == Some(&json!(true)) => {
            facts.insert(path.to_owned(), json!(SCRIPT));
        }
        Value::Object(fields) if fields.get("format") == Some(&json!("ini")) => {
            for (key, value) in fields.iter().filter(|(key, _)| *key != "format") {
                flatten(&format!("{path}@ini.{key}"), value, facts);
            }
        }
        Value::Object(fields) if fields.get("format") == Some(&json!("yaml")) => {
            flatten(&format!("{path}@yaml"), &fields["value"], facts);
        }
        Value::Object(fields) if !fields.is_empty() => {
            for (key, value) in fields {
                flatten(&join(path, key), value, facts);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                flatten(&format!("{path}[{index}]"), item, facts);
            }
        }
        Value::Null => {}
        value => {
            facts.insert(path.to_owned(), value.clone());
        }
    }
}

fn join(path: &str, key: &str) -> String {
    match path {
        _ if key.contains(['.', '/', ' ']) => format!("{path}[{}]", key.replace(' ', "_")),
        "" => key.to_owned(),
        path => format!("{path}.{key}"),
    }
}

/// Lines of an object that this operator creates. `theirs` shows which texts are embedded configuration.
pub(crate) fn rendered(object: &Value, theirs: &Facts) -> Facts {
    let mut object = object.clone();
    let embedded: BTreeSet<_> = theirs
        .keys()
        .filter_map(|path| path.split_once('@'))
        .collect();
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    if kind == "Secret" {
        decode(&mut object["data"]);
    }
    if kind == "CustomResourceDefinition" {
        let version = &mut object["spec"]["versions"][0];
        let mut paths = Map::new();
        schema_paths(".", &version["schema"]["openAPIV3Schema"], None, &mut paths);
        version["schemaPaths"] = Value::Object(paths);
        version["schema"] = Value::Null;
    }
    if object["spec"]["template"]["spec"].is_object() {
        describe_pod(&mut object["spec"]["template"]["spec"]);
    }
    let mut facts = Facts::new();
    for field in ["apiVersion", "kind"] {
        object.as_object_mut().unwrap().remove(field);
    }
    for field in ["name", "namespace"] {
        object["metadata"].as_object_mut().unwrap().remove(field);
    }
    flatten("", &object, &mut facts);
    for (path, rest) in embedded {
        if let Some(Value::String(text)) = facts.remove(path) {
            let yaml = rest.starts_with("yaml");
            let value = if yaml {
                serde_saphyr::from_str(&text).unwrap()
            } else {
                ini(&text)
            };
            let format = if yaml { "yaml" } else { "ini" };
            flatten(&format!("{path}@{format}"), &value, &mut facts);
        }
    }
    facts
}

fn decode(data: &mut Value) {
    for value in data
        .as_object_mut()
        .into_iter()
        .flat_map(|data| data.values_mut())
    {
        let bytes = STANDARD.decode(value.as_str().unwrap()).unwrap();
        *value = json!(String::from_utf8(bytes).unwrap());
    }
}

fn ini(text: &str) -> Value {
    let mut value = json!({});
    for line in text.lines() {
        match line.split_once(" = ") {
            Some((key, text)) => value[key] = json!(text),
            None => value["section"] = json!(line.trim_matches(['[', ']'])),
        }
    }
    value
}

/// A schema as one entry per path.
fn schema_paths(
    path: &str,
    schema: &Value,
    required: Option<bool>,
    paths: &mut Map<String, Value>,
) {
    let mut own = schema.as_object().unwrap().clone();
    let of = own.remove("required").unwrap_or_default();
    let properties = own.remove("properties").unwrap_or_default();
    let items = own.remove("items");
    if let Some(required) = required {
        own.insert("required".to_owned(), json!(required));
    }
    if path == ".status.last24h[]" {
        own.insert("sameAs".to_owned(), json!(".status.currentHour"));
    }
    paths.insert(path.to_owned(), Value::Object(own));
    if path == ".status.last24h[]" {
        return;
    }
    let base = path.trim_end_matches('.');
    for (name, schema) in properties.as_object().into_iter().flatten() {
        let is_required = of.as_array().is_some_and(|of| of.contains(&json!(name)));
        schema_paths(&format!("{base}.{name}"), schema, Some(is_required), paths);
    }
    if let Some(items) = items {
        schema_paths(&format!("{base}[]"), &items, None, paths);
    }
}

/// The short forms in which pods are described.
fn describe_pod(pod: &mut Value) {
    for container in pod["containers"].as_array_mut().unwrap() {
        let env = container["env"].as_array().cloned().unwrap_or_default();
        let variables: Map<_, _> = env
            .iter()
            .map(|variable| {
                let path = &variable["valueFrom"]["fieldRef"]["fieldPath"];
                let value = if path.is_string() {
                    path
                } else {
                    &variable["value"]
                };
                (variable["name"].as_str().unwrap().to_owned(), value.clone())
            })
            .collect();
        container["env"] = json!(variables);
        let env = container["env"].clone();
        describe_args(&mut container["args"], &env);
        let mounts = container["volumeMounts"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let mounts: Map<_, _> = mounts
            .iter()
            .map(|mount| {
                let suffix = if mount["readOnly"] == true {
                    " read-only"
                } else {
                    ""
                };
                let path = format!("{}{suffix}", mount["mountPath"].as_str().unwrap());
                (mount["name"].as_str().unwrap().to_owned(), json!(path))
            })
            .collect();
        container["volumeMounts"] = json!(mounts);
        if container["command"][2]
            .as_str()
            .is_some_and(|text| text.contains('\n'))
        {
            container["command"][2] = json!(SCRIPT);
        }
    }
    for volume in pod["volumes"].as_array_mut().into_iter().flatten() {
        for (kind, name) in [
            ("secret", "secretName"),
            ("configMap", "name"),
            ("hostPath", "path"),
        ] {
            if let Some(mut source) = volume.get(kind).cloned() {
                let name = source.as_object_mut().unwrap().remove(name).unwrap();
                volume[kind] = name;
                for (key, value) in source.as_object().unwrap() {
                    volume[key] = value.clone();
                }
            }
        }
    }
}

fn describe_args(args: &mut Value, env: &Value) {
    let Some(list) = args.as_array() else {
        return;
    };
    if !list.iter().all(|it| it.as_str().unwrap().starts_with("--")) {
        return;
    }
    let expand = |text: &str| {
        let name = text
            .strip_prefix("$(")
            .and_then(|text| text.strip_suffix(')'));
        name.map_or_else(
            || text.to_owned(),
            |name| format!("env {name} {}", env[name].as_str().unwrap()),
        )
    };
    let flags = list.iter().map(|it| {
        let (flag, value) = it.as_str().unwrap().split_once('=').unwrap();
        (flag.to_owned(), json!(expand(value)))
    });
    *args = Value::Object(flags.collect());
}
