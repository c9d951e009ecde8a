//! The differences that may be between the two servers, and how they are taken out of a response.
//!
//! Each has a name, and a heading of that name with its reason in `docs/differential.md`.

use std::ops::Range;

use api::group::{CapiTypes, GroupPair, GroupTable};

use crate::differential::json::Json;

/// Differences that any response may have.
pub(crate) const ALWAYS: [&str; 9] = [
    "escapes",
    "framing",
    "hash",
    "managed-fields-order",
    "request-id",
    "resource-version",
    "server-address",
    "time",
    "uid",
];

/// Differences that a step has to allow.
pub(crate) const BY_STEP: [&str; 15] = [
    "content-encoding",
    "definition-order",
    "generated-name",
    "json-only",
    "malformed",
    "own-health",
    "private-names",
    "quota-fields",
    "quota-path",
    "resource-order",
    "rule-order",
    "stale-hash",
    "unknown-encoding",
    "webhooks",
    "yaml-anchors",
];

/// The prefix of the replacement of a uid, before its number.
const UID: &str = "<uid ";
/// The arrays with a different order, by the difference.
const UNORDERED: [(&str, &str); 3] = [
    ("resource-order", "resources"),
    ("rule-order", "nonResourceRules"),
    ("rule-order", "resourceRules"),
];
/// What the names begin with that the server makes up for the script.
const GENERATED: &str = "g-";

/// The script sends times before this year; what is later is of the run.
const FIRST_YEAR: &str = "2024";

/// Takes the allowed differences out of one response.
///
/// A uid becomes its number in the order of appearance, so that one in a wrong place is still found.
#[derive(Debug, Default)]
pub(crate) struct Normalizer {
    uids: Vec<String>,
    /// Arrays with an order that the server itself does not keep.
    unordered: Vec<&'static str>,
    generated_names: bool,
    /// Pairs of private and standard names, where private ones may be seen in one of the responses.
    private_names: Vec<(String, String)>,
    quota_fields: bool,
}

// === impl Normalizer ===

impl Normalizer {
    /// With the differences that a step allows.
    pub(crate) fn new(allowed: &[String]) -> Self {
        let allows = |difference: &str| allowed.iter().any(|name| name == difference);
        Self {
            uids: Vec::new(),
            unordered: UNORDERED
                .iter()
                .filter(|(difference, _)| allows(difference))
                .map(|(_, field)| *field)
                .collect(),
            generated_names: allows("generated-name"),
            private_names: if allows("private-names") || allows("quota-fields") {
                pairs()
            } else {
                Vec::new()
            },
            quota_fields: allows("quota-fields"),
        }
    }

    /// Normalizes a document.
    pub(crate) fn json(&mut self, json: &mut Json) {
        self.number_uids(json);
        self.visit("", json);
    }

    /// Numbers the uids by their place among the values. As field names they are sorted, which is a random order.
    fn number_uids(&mut self, json: &Json) {
        match json {
            Json::Atom(raw) => drop(self.without_uids(raw)),
            Json::Array(items) => items.iter().for_each(|item| self.number_uids(item)),
            Json::Object(fields) => fields.iter().for_each(|(_, value)| self.number_uids(value)),
        }
    }

    fn visit(&mut self, key: &str, json: &mut Json) {
        match json {
            Json::Atom(raw) => {
                if let Some(changed) = self.atom(key, raw) {
                    *raw = changed;
                }
            }
            Json::Array(items) => {
                if key == "managedFields" {
                    items.sort_by_cached_key(manager);
                }
                for item in items.iter_mut() {
                    self.visit(key, item);
                }
                if self.unordered.contains(&key) {
                    items.sort_by_cached_key(Json::to_string);
                }
            }
            Json::Object(fields) => {
                for (name, value) in fields.iter_mut() {
                    *name = self.field_name(name);
                    self.visit(name, value);
                }
                if fields.iter().any(|(name, _)| name.contains(UID)) {
                    fields.sort_by_cached_key(|(name, _)| name.clone());
                }
            }
        }
    }

    /// The replacement for a value, if it may differ.
    fn atom(&mut self, key: &str, raw: &str) -> Option<String> {
        let text = raw.strip_prefix('"')?.strip_suffix('"')?;
        if text.is_empty() {
            return None;
        }
        let replaced = match key {
            "resourceVersion" | "continue" => "<resource version>".to_owned(),
            "storageVersionHash" | "hash" => "<hash>".to_owned(),
            "serverAddress" => "<server address>".to_owned(),
            "serverRelativeURL" => format!("{}hash=<hash>", text.split_once("hash=")?.0),
            "name" if self.generated_names && text.starts_with(GENERATED) => {
                "<generated>".to_owned()
            }
            "cells" if is_age(text) => "<time>".to_owned(),
            "message" if !self.private_names.is_empty() => self.standard_names(text),
            "message" if mentions_version(text) => without_numbers(text),
            _ if is_time(text) => "<time>".to_owned(),
            _ => self.without_uids(text),
        };
        (replaced != text).then(|| format!("\"{replaced}\""))
    }

    fn field_name(&mut self, name: &str) -> String {
        let name = self.without_uids(name);
        if self.quota_fields && name.starts_with("f:count/") {
            return self.standard_names(&name);
        }
        name
    }

    fn standard_names(&self, text: &str) -> String {
        let replace =
            |text: String, (private, standard): &(String, String)| text.replace(private, standard);
        self.private_names.iter().fold(text.to_owned(), replace)
    }

    /// Replaces the uids in a text.
    pub(crate) fn without_uids(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut copied = 0;
        for found in uids(text) {
            let uid = &text[found.clone()];
            let known = self.uids.iter().position(|known| known == uid);
            let number = known.unwrap_or_else(|| {
                self.uids.push(uid.to_owned());
                self.uids.len() - 1
            });
            out.push_str(&text[copied..found.start]);
            out.push_str(UID);
            out.push_str(&number.to_string());
            out.push('>');
            copied = found.end;
        }
        out.push_str(&text[copied..]);
        out
    }
}

/// The private names with the standard ones.
fn pairs() -> Vec<(String, String)> {
    let table = GroupTable::default();
    let names = |pair: &GroupPair| {
        (
            pair.name(CapiTypes::Private).to_owned(),
            pair.name(CapiTypes::Standard).to_owned(),
        )
    };
    table.pairs().iter().map(names).collect()
}

/// What the entries of `managedFields` are ordered by once their times are left out.
fn manager(entry: &Json) -> Vec<Option<String>> {
    ["manager", "operation", "apiVersion", "subresource"]
        .map(|field| entry.get(field).and_then(Json::text))
        .to_vec()
}

/// Where uids (8-4-4-4-12 hexadecimal digits) are.
fn uids(text: &str) -> Vec<Range<usize>> {
    const LENGTH: usize = 36;
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at + LENGTH <= bytes.len() {
        let is_uid = bytes[at..at + LENGTH]
            .iter()
            .enumerate()
            .all(|(index, byte)| match index {
                8 | 13 | 18 | 23 => *byte == b'-',
                _ => byte.is_ascii_digit() || (b'a'..=b'f').contains(byte),
            });
        if is_uid {
            found.push(at..at + LENGTH);
        }
        at += if is_uid { LENGTH } else { 1 };
    }
    found
}

/// A time of the run, alone in its string.
pub(crate) fn is_time(text: &str) -> bool {
    let shape: String = text
        .chars()
        .map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect();
    let is_time = shape.starts_with("0000-00-00T00:00:00") && shape.ends_with('Z');
    is_time && text >= FIRST_YEAR
}

/// A duration as tables show it: `5s`, `2m10s`.
pub(crate) fn is_age(text: &str) -> bool {
    let units: Vec<&str> = text
        .split(|c: char| c.is_ascii_digit())
        .filter(|unit| !unit.is_empty())
        .collect();
    text.starts_with(|c: char| c.is_ascii_digit())
        && !units.is_empty()
        && units.iter().all(|unit| ["s", "m", "h", "d"].contains(unit))
}

fn mentions_version(message: &str) -> bool {
    message.to_lowercase().contains("resource version")
}

/// Each run of digits becomes a `#`.
pub(crate) fn without_numbers(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if !c.is_ascii_digit() {
            out.push(c);
        } else if !out.ends_with('#') {
            out.push('#');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    fn normalized(text: &str) -> String {
        let mut json = Json::parse(text).unwrap();
        Normalizer::default().json(&mut json);
        json.to_string()
    }

    #[test]
    fn removes_differences_between_any_two_servers() {
        for (text, expected) in [
            (
                r#"{"resourceVersion":"12","a":"12"}"#,
                r#"{"resourceVersion":"<resource version>","a":"12"}"#,
            ),
            (r#"{"resourceVersion":""}"#, r#"{"resourceVersion":""}"#),
            (
                r#"{"t":"2026-01-02T03:04:05Z","u":"2020-01-02T03:04:05Z"}"#,
                r#"{"t":"<time>","u":"2020-01-02T03:04:05Z"}"#,
            ),
            (
                r#"{"cells":["a","15s","3m2s"],"x":"15s"}"#,
                r#"{"cells":["a","<time>","<time>"],"x":"15s"}"#,
            ),
            (
                r#"{"message":"too old resource version: 1 (23)","m":"1"}"#,
                r#"{"message":"too old resource version: # (#)","m":"1"}"#,
            ),
            (
                r#"{"serverRelativeURL":"/openapi/v3/apis/a/v1?hash=AB"}"#,
                r#"{"serverRelativeURL":"/openapi/v3/apis/a/v1?hash=<hash>"}"#,
            ),
        ] {
            assert_eq!(normalized(text), expected, "{text}");
        }
    }

    #[test]
    fn the_same_uid_keeps_the_same_number() {
        let (a, b) = (
            "01234567-89ab-cdef-0123-456789abcdef",
            "11111111-2222-3333-4444-555555555555",
        );
        let text = format!(
            r#"{{"uid":"{a}","o":[{{"uid":"{b}"}},{{"uid":"{a}"}}],"f":{{"k:{b}":1,"k:{a}":2}}}}"#
        );
        let expected = concat!(
            r#"{"uid":"<uid 0>","o":[{"uid":"<uid 1>"},{"uid":"<uid 0>"}],"#,
            r#""f":{"k:<uid 0>":2,"k:<uid 1>":1}}"#
        );
        assert_eq!(normalized(&text), expected);
        assert_eq!(
            normalized(r#"{"uid":"01234567-89ab-cdef-0123-456789abcdeg"}"#).len(),
            46
        );
    }

    #[test]
    fn managers_are_ordered_by_name() {
        let (a, b) = (
            r#"{"manager":"a","operation":"Apply"}"#,
            r#"{"manager":"b","operation":"Apply"}"#,
        );
        let one = normalized(&format!(r#"{{"managedFields":[{a},{b}]}}"#));
        assert_eq!(
            one,
            normalized(&format!(r#"{{"managedFields":[{b},{a}]}}"#))
        );
        assert_ne!(one, normalized(&format!(r#"{{"other":[{b},{a}]}}"#)));
    }

    #[test]
    fn each_difference_is_documented_with_its_reason() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/differential.md");
        let docs = std::fs::read_to_string(docs).unwrap();
        let documented: BTreeSet<&str> = docs
            .lines()
            .filter_map(|line| line.strip_prefix("### "))
            .collect();
        let known: BTreeSet<&str> = ALWAYS.into_iter().chain(BY_STEP).collect();
        assert_eq!(documented, known);
    }
}
