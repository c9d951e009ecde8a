//! Objects that the API accepts or refuses, from `api/tests/data/rules`.
//!
//! Each file there names the definitions that it is about and lists cases.
//! A case changes an object of `base/`, which is accepted, at places that are written as JSON pointers;
//! `null` takes something away, and a number one past a list's end adds to it.
//! With `was` it is an update, of the base with those changes to the base with the changes of `set`.
//!
//! Those in `tech_preview/` are about what the technology preview adds. Those outside of it hold for all feature sets.
//!
//! - `refused` is a part of the message of the rule that the object violates.
//! - `invalid` is a part of the API server's message for an object that violates the schema and no rule.
//! - Without either the object is accepted.
//!
//! The same cases are read by the tests in this directory and by those of the `e2e` crate on a real API server.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests read it: a table that cannot be read fails them"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use api::features::FeatureSet;
use serde::Deserialize;
use serde_json::{Map, Value};

/// One object, or one change of an object, and what is to become of it.
#[derive(Debug)]
pub(crate) struct Case {
    /// The definition's name.
    pub(crate) crd: String,
    /// The file that it is in and its name there.
    pub(crate) name: String,
    /// The object before, if this is an update.
    pub(crate) old: Option<Value>,
    /// The object.
    pub(crate) object: Value,
    /// What is to become of it.
    pub(crate) verdict: Verdict,
}

/// What is to become of an object.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is accepted.
    Accepted,
    /// A rule rejects it with a message that has these texts.
    Refused(String),
    /// The schema rejects it with a message that has these texts.
    Invalid(String),
}

/// Changes, by JSON pointer.
type Changes = BTreeMap<String, Value>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    of: Vec<String>,
    #[serde(default)]
    with: Changes,
    cases: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    was: Option<Changes>,
    #[serde(default)]
    set: Changes,
    refused: Option<String>,
    invalid: Option<String>,
}

/// All cases that a feature set has the fields for.
pub(crate) fn of(features: FeatureSet) -> Vec<Case> {
    let sets = FeatureSet::ALL.into_iter();
    let sets = sets.filter(|set| features.includes(*set));
    sets.flat_map(added_by).collect()
}

/// The cases that a feature set has in addition to those before it.
fn added_by(features: FeatureSet) -> Vec<Case> {
    let directory = match features {
        FeatureSet::Default => directory(),
        FeatureSet::TechPreviewNoUpgrade => directory().join("tech_preview"),
    };
    let mut cases = Vec::new();
    for path in files(&directory) {
        let file: File = read(&path);
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        for crd in &file.of {
            let mut base = base(crd);
            change(&mut base, &file.with, &stem);
            let of_file = file.cases.iter();
            cases.extend(of_file.map(|entry| case(crd, &stem, &base, entry)));
        }
    }
    cases
}

/// An object of this definition that is accepted.
pub(crate) fn base(crd: &str) -> Value {
    read(&directory().join(format!("base/{crd}.yaml")))
}

fn case(crd: &str, file: &str, base: &Value, entry: &Entry) -> Case {
    let name = format!("{file}: {}", entry.name);
    let changed = |changes: &Changes| {
        let mut object = base.clone();
        change(&mut object, changes, &name);
        object
    };
    Case {
        crd: crd.to_owned(),
        old: entry.was.as_ref().map(changed),
        object: changed(&entry.set),
        verdict: match (&entry.refused, &entry.invalid) {
            (None, None) => Verdict::Accepted,
            (Some(words), None) => Verdict::Refused(words.clone()),
            (None, Some(words)) => Verdict::Invalid(words.clone()),
            (Some(_), Some(_)) => panic!("{name} is both refused and invalid"),
        },
        name,
    }
}

fn change(object: &mut Value, changes: &Changes, name: &str) {
    for (pointer, value) in changes {
        let steps: Vec<_> = pointer.split('/').skip(1).map(unescaped).collect();
        let Some((last, steps)) = steps.split_last() else {
            panic!("{name}: {pointer:?} is not a JSON pointer: begin with a slash");
        };
        let at = steps.iter().fold(&mut *object, |at, step| place(at, step));
        if value.is_null() {
            remove(at, last);
        } else {
            *place(at, last) = value.clone();
        }
    }
}

fn unescaped(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

/// The field or item, which is made if it is not there.
fn place<'a>(at: &'a mut Value, step: &str) -> &'a mut Value {
    if let (Value::Array(items), Ok(index)) = (&mut *at, step.parse::<usize>()) {
        if index == items.len() {
            items.push(Value::Null);
        }
        return &mut at[index];
    }
    if at.is_null() {
        *at = Value::Object(Map::new());
    }
    &mut at[step]
}

fn remove(at: &mut Value, step: &str) {
    match at {
        Value::Object(fields) => {
            fields.remove(step);
        }
        Value::Array(items) => {
            items.remove(step.parse().unwrap());
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> T {
    let text = fs::read_to_string(path)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = paths.filter(|path| path.is_file()).collect();
    files.sort();
    files
}

/// Whichever crate's test this is.
fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../api/tests/data/rules")
}
