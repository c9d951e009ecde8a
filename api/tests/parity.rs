//! Every definition has the properties, defaults, bounds and rules of the public CRDs of the OpenShift HyperShift project
//! (<https://github.com/openshift/hypershift>, August 2026), so that objects made for one are taken by the other.
//!
//! `data/parity/<name>.tsv` holds those facts: names, versions, columns, then one property a line with its type and what
//! is said of it. `data/parity/tech_preview/` has the lines that the technology preview adds or replaces.
//! Rules are counted here; what they accept and refuse is shown by the objects in `data/rules`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may fail them"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use api::crds;
use api::features::FeatureSet;
use serde_json::{Map, Value};

/// What can be said of a property, in the order in which it is written.
const FACTS: [&str; 13] = [
    "format",
    "pattern",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
];
/// What other tests compare: the structure, the descriptions, and what has its own form in a line.
const STRUCTURE: [&str; 12] = [
    "additionalProperties",
    "anyOf",
    "default",
    "description",
    "enum",
    "items",
    "nullable",
    "properties",
    "required",
    "type",
    "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields",
];
const RULES: &str = "x-kubernetes-validations";

#[test]
fn definitions_have_every_property_default_and_rule() {
    let mut report = String::new();
    for features in FeatureSet::ALL {
        for crd in kinds(features) {
            let name = (crd.name)();
            let differences = differences(name, features, &(crd.render)(features));
            if !differences.is_empty() {
                let _ = writeln!(report, "{name} ({features}):\n{differences}");
            }
        }
    }
    assert!(report.is_empty(), "\n{report}");
}

#[test]
fn kinds_of_the_preview_are_not_in_the_default_set() {
    let names = |features| -> Vec<_> { crds::of(features).map(|crd| (crd.name)()).collect() };
    let default = names(FeatureSet::Default);
    let mut added = names(FeatureSet::TechPreviewNoUpgrade);
    added.retain(|name| !default.contains(name));
    let expected = [
        "gcpprivateserviceconnects.hypershift.openshift.io",
        "hcpetcdbackups.hypershift.openshift.io",
    ];
    assert_eq!(added, expected);
}

#[test]
fn definitions_name_their_feature_set() {
    for crd in crds::ALL {
        let preview = (crd.render)(FeatureSet::TechPreviewNoUpgrade);
        let annotation = |crd: &Value| crd["metadata"]["annotations"][crds::FEATURE_SET].clone();
        assert_eq!(annotation(&preview), "TechPreviewNoUpgrade");
        let default = (crd.render)(FeatureSet::Default);
        assert_eq!(annotation(&default), Value::Null);
    }
}

#[test]
fn every_fact_is_of_a_definition() {
    let known = kinds(FeatureSet::TechPreviewNoUpgrade);
    let known: Vec<_> = known.map(|crd| (crd.name)()).collect();
    for features in FeatureSet::ALL {
        let files = std::fs::read_dir(directory(features)).unwrap();
        let files = files.map(|file| file.unwrap().path());
        for file in files.filter(|path| path.is_file()) {
            let name = file.file_stem().and_then(std::ffi::OsStr::to_str).unwrap();
            assert!(known.contains(&name), "no definition is called {name}");
        }
    }
}

#[test]
fn every_property_is_documented() {
    let mut silent = Vec::new();
    for crd in kinds(FeatureSet::TechPreviewNoUpgrade) {
        let crd = (crd.render)(FeatureSet::TechPreviewNoUpgrade);
        let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        undocumented(
            crd["metadata"]["name"].as_str().unwrap(),
            schema,
            &mut silent,
        );
    }
    assert!(
        silent.is_empty(),
        "without a description for users: {silent:#?}"
    );
}

/// Check T04: a number that does not fit its type is refused when it is written, and so is never read.
#[test]
fn every_int32_has_a_range() {
    let mut unbounded = Vec::new();
    for crd in kinds(FeatureSet::TechPreviewNoUpgrade) {
        let crd = (crd.render)(FeatureSet::TechPreviewNoUpgrade);
        let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let name = crd["metadata"]["name"].as_str().unwrap();
        collect_unbounded(name, schema, &mut unbounded);
    }
    assert!(
        unbounded.is_empty(),
        "int32 without a range: {unbounded:#?}"
    );
}

fn collect_unbounded(path: &str, schema: &Value, unbounded: &mut Vec<String>) {
    let has_range = ["minimum", "maximum"]
        .iter()
        .all(|bound| schema[bound].is_i64());
    if schema["format"] == "int32" && !has_range {
        unbounded.push(path.to_owned());
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        collect_unbounded(&format!("{path}.{name}"), property, unbounded);
    }
    for inner in ["items", "additionalProperties"] {
        if let Some(schema) = schema.get(inner) {
            collect_unbounded(&format!("{path}[]"), schema, unbounded);
        }
    }
}

/// Properties that `kubectl explain` has nothing to say about. The API server itself describes `metadata`.
fn undocumented(path: &str, schema: &Value, silent: &mut Vec<String>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        let description = property["description"].as_str().unwrap_or_default();
        if description.trim().is_empty() && name != "metadata" {
            silent.push(path.clone());
        }
        undocumented(&path, property, silent);
    }
    for inner in ["items", "additionalProperties"] {
        if let Some(schema) = schema.get(inner) {
            undocumented(&format!("{path}[]"), schema, silent);
        }
    }
}

#[test]
fn a_difference_in_any_fact_is_found() {
    let crd = crds::ALL
        .iter()
        .find(|crd| (crd.name)() == "nodepools.hypershift.openshift.io")
        .unwrap();
    let preview = FeatureSet::TechPreviewNoUpgrade;
    let default = FeatureSet::Default;
    for (features, pointer, value, expected) in [
        (default, "/spec/arch/default", "\"arm64\"".into(), "default"),
        (
            default,
            "/spec/clusterName/maxLength",
            9.into(),
            "maxLength=9",
        ),
        (
            default,
            "/spec/taints/uniqueItems",
            true.into(),
            "uniqueItems",
        ),
        (default, "/spec/release", Value::Null, "missing"),
        (
            preview,
            "/spec/clusterName/maxLength",
            9.into(),
            "maxLength=9",
        ),
        (preview, "/spec/osImageStream", Value::Null, "missing"),
    ] {
        let mut changed = (crd.render)(features);
        change(&mut changed, pointer, value);
        let differences = differences((crd.name)(), features, &changed);
        assert!(differences.contains(expected), "{pointer}: {differences}");
    }
    let preview = differences((crd.name)(), default, &(crd.render)(preview));
    assert!(
        preview.contains("too much: .spec.osImageStream"),
        "{preview}"
    );
}

/// Changes what `pointer`, written without the `properties` between, leads to; null takes a property away.
fn change(crd: &mut Value, pointer: &str, value: Value) {
    let mut steps: Vec<_> = pointer.split('/').skip(1).collect();
    let last = steps.pop().unwrap();
    let mut at = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    for step in steps {
        at = &mut at["properties"][step];
    }
    if value.is_null() {
        at["properties"].as_object_mut().unwrap().remove(last);
    } else {
        at[last] = value;
    }
}

/// The definitions that a feature set has, and those of hosted clusters.
fn kinds(features: FeatureSet) -> impl Iterator<Item = &'static crds::Crd> {
    crds::of(features).chain(crds::GUEST)
}

/// What is missing, too much, or not the same, one line each.
fn differences(name: &str, features: FeatureSet, crd: &Value) -> String {
    let expected = expected(name, features);
    let expected: Vec<_> = expected.iter().map(|line| without_width(line)).collect();
    let expected = by_key(expected.iter().map(String::as_str));
    let found: Vec<_> = facts(crd).iter().map(|line| without_width(line)).collect();
    let found = by_key(found.iter().map(String::as_str));
    let mut differences = String::new();
    for (key, line) in &expected {
        match found.get(key) {
            Some(same) if same == line => {}
            Some(other) => {
                let _ = writeln!(differences, "  is:       {other}\n  should be: {line}");
            }
            None => {
                let _ = writeln!(differences, "  missing:  {line}");
            }
        }
    }
    for (key, line) in &found {
        if !expected.contains_key(key) {
            let _ = writeln!(differences, "  too much: {line}");
        }
    }
    differences
}

/// All lines about a definition that the files have, those of the feature set last: they replace earlier ones.
fn expected(name: &str, features: FeatureSet) -> Vec<String> {
    let sets = FeatureSet::ALL.into_iter();
    let sets = sets.filter(|set| features.includes(*set));
    let files = sets.map(|set| directory(set).join(format!("{name}.tsv")));
    let mut lines = Vec::new();
    for file in files.filter(|file| file.exists()) {
        let text = std::fs::read_to_string(&file)
            .unwrap_or_else(|error| panic!("cannot read {}: {error}", file.display()));
        let facts = text.lines().filter(|line| !line.starts_with('#'));
        lines.extend(facts.map(str::to_owned));
    }
    assert!(
        !lines.is_empty(),
        "tests/data/parity has no facts of {name}"
    );
    lines
}

/// Where the facts of a feature set are.
fn directory(features: FeatureSet) -> PathBuf {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/parity");
    match features {
        FeatureSet::Default => directory,
        FeatureSet::TechPreviewNoUpgrade => directory.join("tech_preview"),
    }
}

/// A line without the bounds that only state the range of an `int32`: they refuse no value that a client could read, and
/// most public CRDs leave them to the format, which an API server does not check.
fn without_width(line: &str) -> String {
    if !line.contains("\tformat=int32") {
        return line.to_owned();
    }
    let columns = line.split('\t');
    let columns = columns.filter(|it| !["minimum=-2147483648", "maximum=2147483647"].contains(it));
    columns.collect::<Vec<_>>().join("\t")
}

/// Lines by their subject: a property's path, or the first two words of a line about the whole definition.
fn by_key<'a>(lines: impl Iterator<Item = &'a str>) -> BTreeMap<String, &'a str> {
    let key = |line: &str| {
        let words = if line.starts_with('.') { 1 } else { 2 };
        line.split('\t').take(words).collect::<Vec<_>>().join(" ")
    };
    lines.map(|line| (key(line), line)).collect()
}

/// All lines about a definition.
fn facts(crd: &Value) -> Vec<String> {
    let mut lines = vec![names(&crd["spec"])];
    for version in crd["spec"]["versions"].as_array().into_iter().flatten() {
        lines.push(format!(
            "version\t{}\tserved={}\tstorage={}",
            text(&version["name"]),
            version["served"],
            version["storage"]
        ));
        for (name, subresource) in version["subresources"].as_object().into_iter().flatten() {
            lines.push(subresource_line(name, subresource));
        }
        let columns = version["additionalPrinterColumns"].as_array();
        lines.extend(columns.into_iter().flatten().map(column));
        property(
            "",
            &version["schema"]["openAPIV3Schema"],
            Needed::Unsaid,
            &mut lines,
        );
    }
    lines
}

fn names(spec: &Value) -> String {
    let names = &spec["names"];
    let mut line = format!("names\tgroup={}", text(&spec["group"]));
    for key in ["kind", "listKind", "plural", "singular"] {
        let _ = write!(line, "\t{key}={}", text(&names[key]));
    }
    let _ = write!(line, "\tscope={}", text(&spec["scope"]));
    for key in ["shortNames", "categories"] {
        let _ = write!(line, "\t{key}={}", joined(&names[key]));
    }
    line
}

fn subresource_line(name: &str, subresource: &Value) -> String {
    let mut paths: Vec<_> = subresource.as_object().into_iter().flatten().collect();
    paths.sort_by_key(|(key, _)| *key);
    let mut line = format!("subresource\t{name}");
    for (key, path) in paths {
        let _ = write!(line, "\t{key}={}", text(path));
    }
    line
}

fn column(column: &Value) -> String {
    let mut line = format!(
        "column\t{}\t{}\t{}",
        text(&column["name"]),
        text(&column["type"]),
        text(&column["jsonPath"])
    );
    if let Some(priority) = column["priority"].as_i64() {
        let _ = write!(line, "\tpriority={priority}");
    }
    line
}

/// Whether an object must have a property. Items and the whole have no say in it.
#[derive(Clone, Copy, PartialEq)]
enum Needed {
    Required,
    Unsaid,
}

fn property(path: &str, schema: &Value, needed: Needed, lines: &mut Vec<String>) {
    let Some(object) = schema.as_object() else {
        lines.push(format!("{path}\tis no schema"));
        return;
    };
    lines.push(line(path, object, needed));
    let required = object.get("required").and_then(Value::as_array).into_iter();
    let required: Vec<_> = required.flatten().filter_map(Value::as_str).collect();
    for (name, schema) in object
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let needed = if required.contains(&name.as_str()) {
            Needed::Required
        } else {
            Needed::Unsaid
        };
        property(&format!("{path}.{name}"), schema, needed, lines);
    }
    if let Some(items) = object.get("items") {
        property(&format!("{path}[]"), items, Needed::Unsaid, lines);
    }
    if let Some(values) = object.get("additionalProperties") {
        property(&format!("{path}{{}}"), values, Needed::Unsaid, lines);
    }
}

fn line(path: &str, schema: &Map<String, Value>, needed: Needed) -> String {
    let kind = match schema.get("x-kubernetes-int-or-string") {
        Some(_) => "int-or-string",
        None => schema
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default(),
    };
    let path = if path.is_empty() { "." } else { path };
    let mut line = format!("{path}\t{kind}");
    if needed == Needed::Required {
        line.push_str("\trequired");
    }
    if schema.contains_key("nullable") {
        line.push_str("\tnullable");
    }
    if schema.contains_key("x-kubernetes-preserve-unknown-fields") {
        line.push_str("\tpreserveUnknown");
    }
    if let Some(default) = schema.get("default") {
        let _ = write!(line, "\tdefault={}", canonical(default));
    }
    if let Some(Value::Array(values)) = schema.get("enum") {
        let mut values: Vec<_> = values.iter().map(canonical).collect();
        values.sort();
        let _ = write!(line, "\tenum=[{}]", values.join(","));
    }
    for fact in FACTS {
        if let Some(value) = schema.get(fact) {
            let _ = write!(line, "\t{}={}", short(fact), joined(value));
        }
    }
    if let Some(Value::Array(rules)) = schema.get(RULES) {
        let _ = write!(line, "\trules={}", rules.len());
    }
    for key in schema.keys() {
        let known = FACTS.contains(&key.as_str()) || STRUCTURE.contains(&key.as_str());
        if !known && key != RULES {
            let _ = write!(line, "\t{key}");
        }
    }
    line
}

/// `x-kubernetes-list-type` is written `listType`.
fn short(fact: &str) -> String {
    let Some(rest) = fact.strip_prefix("x-kubernetes-") else {
        return fact.to_owned();
    };
    let mut words = rest.split('-');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |mut name, word| {
        let (head, tail) = word.split_at(1);
        name.push_str(&head.to_uppercase());
        name.push_str(tail);
        name
    })
}

/// A value in one way of writing, whatever the order of its keys.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let sorted: BTreeMap<_, _> = fields.iter().collect();
            let fields: Vec<_> = sorted
                .into_iter()
                .map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), canonical(value)))
                .collect();
            format!("{{{}}}", fields.join(","))
        }
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(canonical).collect();
            format!("[{}]", items.join(","))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

fn joined(value: &Value) -> String {
    match value {
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(","),
        Value::Null => String::new(),
        other => text(other),
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => canonical(other),
    }
}
