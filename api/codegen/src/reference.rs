//! The API reference: a page for each kind, from its definition.

use std::fmt::Write as _;

use api::features::FeatureSet;
use serde_json::{Map, Value};

const RULES: &str = "x-kubernetes-validations";

/// The list of all kinds.
pub(super) fn index(crds: &[Value], features: FeatureSet) -> String {
    let (title, about) = match features {
        FeatureSet::Default => ("API reference", ""),
        FeatureSet::TechPreviewNoUpgrade => (
            "API reference: technology preview",
            "`hypershift install --tech-preview-no-upgrade` installs these definitions, from `manifests/crds-tech-preview`.\n\
             The kinds that are not listed here are those of the [default feature set](../api/README.md).\n",
        ),
    };
    let mut text = format!(
        "# {title}\n\n\
         Written by `cargo xtask codegen` from the types of the api crate.\n{about}\
         `kubectl explain <kind>.<field>` shows the same in a terminal.\n\n\
         | kind | group and version | what it is |\n|---|---|---|\n",
    );
    for crd in crds {
        let _ = writeln!(
            text,
            "| [{}]({}.md) | `{}` | {} |",
            string(&crd["spec"]["names"]["kind"]),
            string(&crd["metadata"]["name"]),
            group_version(crd),
            string(&schema(crd)["description"])
        );
    }
    text
}

/// A kind's page.
pub(super) fn page(crd: &Value) -> String {
    let names = &crd["spec"]["names"];
    let schema = schema(crd);
    let mut text = format!(
        "# {}\n\n{}\n\n",
        string(&names["kind"]),
        string(&schema["description"])
    );
    let _ = writeln!(text, "- group and version: `{}`", group_version(crd));
    let _ = writeln!(text, "- plural: `{}`", string(&names["plural"]));
    let short: Vec<_> = strings(&names["shortNames"]);
    if !short.is_empty() {
        let _ = writeln!(text, "- short names: {}", short.join(", "));
    }
    let _ = writeln!(
        text,
        "- scope: {}",
        match string(&crd["spec"]["scope"]) {
            "Cluster" => "the whole cluster",
            _ => "a namespace",
        }
    );
    for rule in rules(schema) {
        let _ = writeln!(text, "- rule: {rule}");
    }
    for part in ["spec", "status"] {
        let fields = &schema["properties"][part];
        let _ = write!(
            text,
            "\n## {part}\n\n{}\n",
            cell(string(&fields["description"]))
        );
        for rule in rules(fields) {
            let _ = writeln!(text, "- rule: {rule}");
        }
        sections(&mut text, part, fields);
    }
    text
}

/// A table of the plain fields, then a table for each field that has fields of its own.
fn sections(text: &mut String, path: &str, fields: &Value) {
    let empty = Map::new();
    let properties = fields["properties"].as_object().unwrap_or(&empty);
    if properties.is_empty() {
        return;
    }
    let required = strings(&fields["required"]);
    let mut table = String::new();
    for (name, field) in sorted(properties) {
        row(&mut table, name, field, required.contains(&name.as_str()));
    }
    push_table(text, &table);
    for (name, field) in sorted(properties) {
        let mut table = String::new();
        rows(&mut table, "", field);
        if !table.is_empty() {
            let _ = write!(text, "\n### {path}.{name}\n");
            push_table(text, &table);
        }
    }
}

fn push_table(text: &mut String, rows: &str) {
    let _ = write!(
        text,
        "\n| field | type | what it is |\n|---|---|---|\n{rows}"
    );
}

/// A row for each field below this one.
fn rows(table: &mut String, path: &str, field: &Value) {
    if let Some(items) = field.get("items") {
        rows(table, &format!("{path}[]"), items);
    }
    if let Some(values) = field.get("additionalProperties") {
        rows(table, &format!("{path}.*"), values);
    }
    let empty = Map::new();
    let required = strings(&field["required"]);
    for (name, inner) in sorted(field["properties"].as_object().unwrap_or(&empty)) {
        let path = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        row(table, &path, inner, required.contains(&name.as_str()));
        rows(table, &path, inner);
    }
}

fn row(table: &mut String, path: &str, field: &Value, required: bool) {
    let mut what = vec![string(&field["description"]).to_owned()];
    what.extend(constraints(field));
    what.extend(
        rules(field)
            .into_iter()
            .map(|rule| format!("Rule: {rule}.")),
    );
    if let Some(items) = field.get("items") {
        let about = constraints(items).into_iter();
        what.extend(about.map(|constraint| format!("Each: {constraint}")));
        let about = rules(items).into_iter();
        what.extend(about.map(|rule| format!("Rule for each: {rule}.")));
    }
    let what: Vec<_> = what
        .iter()
        .filter(|text| !text.is_empty())
        .map(|text| cell(text))
        .collect();
    let required = if required { ", required" } else { "" };
    let _ = writeln!(
        table,
        "| `{path}` | {}{required} | {} |",
        type_of(field),
        what.join("<br>")
    );
}

fn type_of(field: &Value) -> String {
    if field.get("x-kubernetes-int-or-string").is_some() {
        return "integer or string".to_owned();
    }
    match string(&field["type"]) {
        "array" => format!("list of {}", type_of(&field["items"])),
        "object" => match field.get("additionalProperties") {
            Some(values) => format!("map to {}", type_of(values)),
            None => "object".to_owned(),
        },
        other => other.to_owned(),
    }
}

/// What is demanded of a value, a sentence each.
fn constraints(field: &Value) -> Vec<String> {
    let mut sentences = Vec::new();
    if let Some(default) = field.get("default") {
        sentences.push(format!("Default: `{default}`."));
    }
    if let Some(values) = field["enum"].as_array() {
        let values: Vec<_> = values.iter().map(|value| format!("`{value}`")).collect();
        sentences.push(format!("One of {}.", values.join(", ")));
    }
    for (least, most, what) in [
        ("minimum", "maximum", "Value"),
        ("minLength", "maxLength", "Length"),
        ("minItems", "maxItems", "Number of items"),
        ("minProperties", "maxProperties", "Number of fields"),
    ] {
        match (field.get(least), field.get(most)) {
            (Some(least), Some(most)) => sentences.push(format!("{what}: {least} to {most}.")),
            (Some(least), None) => sentences.push(format!("{what}: at least {least}.")),
            (None, Some(most)) => sentences.push(format!("{what}: at most {most}.")),
            (None, None) => {}
        }
    }
    if let Some(pattern) = field["pattern"].as_str() {
        sentences.push(format!("Pattern: `{pattern}`."));
    }
    if let Some(keys) = field["x-kubernetes-list-map-keys"].as_array() {
        let keys: Vec<_> = keys.iter().map(string).collect();
        sentences.push(format!("Items are distinguished by {}.", keys.join(", ")));
    }
    if field["x-kubernetes-list-type"] == "set" {
        sentences.push("No item twice.".to_owned());
    }
    sentences
}

/// What a user who breaks a rule reads.
fn rules(field: &Value) -> Vec<String> {
    let rules = field[RULES].as_array().into_iter().flatten();
    rules
        .map(|rule| string(&rule["message"]).to_owned())
        .collect()
}

/// Text for a cell of a table, or for one line.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
        .replace('<', "&lt;")
        .replace("\n\n", "<br>")
        .replace('\n', " ")
}

fn schema(crd: &Value) -> &Value {
    &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
}

fn group_version(crd: &Value) -> String {
    format!(
        "{}/{}",
        string(&crd["spec"]["group"]),
        string(&crd["spec"]["versions"][0]["name"])
    )
}

/// The order does not depend on how the map keeps it.
fn sorted(fields: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut fields: Vec<_> = fields.iter().collect();
    fields.sort_by_key(|(name, _)| *name);
    fields
}

fn string(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn strings(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().map(string).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rows_list_all_requirements() {
        let field = json!({
            "description": "First.\n\nSecond | third.",
            "type": "array",
            "maxItems": 2,
            "items": {
                "type": "string",
                "pattern": "^(a|b)$",
                "x-kubernetes-validations": [{"rule": "self != ''", "message": "say something"}],
            },
        });
        let mut table = String::new();
        row(&mut table, "names", &field, true);
        assert_eq!(
            table,
            "| `names` | list of string, required | First.<br>Second \\| third.<br>Number of items: at most 2.<br>\
             Each: Pattern: `^(a\\|b)$`.<br>Rule for each: say something. |\n"
        );
    }
}
