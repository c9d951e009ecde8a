//! Two responses, compared field by field and header by header.

use std::collections::BTreeMap;

use http::{HeaderMap, header};

use crate::differential::allowed::Normalizer;
use crate::differential::json::Json;
use crate::differential::script::Step;
use crate::differential::side::Received;

/// How many fields a report shows.
const SHOWN: usize = 12;
/// How much of a value a report shows.
const SHOWN_BYTES: usize = 400;

/// What every standard group ends with.
const NAMED: &str = "cluster.x-k8s.io";

/// Headers that frame the message on its way, or name the request.
const FRAMING: [header::HeaderName; 4] = [
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::DATE,
    header::TRANSFER_ENCODING,
];
/// Headers of which only the presence is compared.
const PRESENCE: [&str; 6] = [
    "audit-id",
    "etag",
    "expires",
    "last-modified",
    "x-kubernetes-pf-flowschema-uid",
    "x-kubernetes-pf-prioritylevel-uid",
];

/// What differs between the responses to a step, beyond what may.
pub(crate) fn differences(step: &Step, direct: &Received, proxied: &Received) -> Vec<String> {
    let mut found = Vec::new();
    if direct.status != proxied.status {
        found.push(format!("status: {} and {}", direct.status, proxied.status));
    }
    headers(step, direct, proxied, &mut found);
    bodies(step, &direct.text(), &proxied.text(), &mut found);
    found
}

fn headers(step: &Step, direct: &Received, proxied: &Received, found: &mut Vec<String>) {
    let (direct, proxied) = (
        comparable(step, &direct.headers),
        comparable(step, &proxied.headers),
    );
    for name in direct
        .keys()
        .chain(proxied.keys().filter(|name| !direct.contains_key(*name)))
    {
        let (one, two) = (direct.get(name), proxied.get(name));
        if one != two {
            found.push(format!("header {name}: {one:?} and {two:?}"));
        }
    }
}

fn comparable(step: &Step, headers: &HeaderMap) -> BTreeMap<String, Vec<String>> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in headers.iter().filter(|(name, _)| !FRAMING.contains(name)) {
        let value = if PRESENCE.contains(&name.as_str()) {
            "<present>".to_owned()
        } else {
            let value = String::from_utf8_lossy(value.as_bytes());
            Normalizer::new(&step.allowed).without_uids(&value)
        };
        all.entry(name.to_string()).or_default().push(value);
    }
    all
}

fn bodies(step: &Step, direct: &str, proxied: &str, found: &mut Vec<String>) {
    let documents = |text| Json::parse_all(text).map(|documents| normalized(step, documents));
    match (documents(direct), documents(proxied)) {
        (Ok(direct), Ok(proxied)) => values("", &direct, &proxied, found),
        _ if direct == proxied => {}
        _ => found.push(format!(
            "body: {:?} and {:?}",
            clipped(direct),
            clipped(proxied)
        )),
    }
}

fn normalized(step: &Step, documents: Vec<Json>) -> Json {
    let mut all = Json::Array(documents);
    Normalizer::new(&step.allowed).json(&mut all);
    all
}

/// Collects the paths at which two values differ.
pub(crate) fn values(path: &str, direct: &Json, proxied: &Json, found: &mut Vec<String>) {
    if found.len() >= SHOWN || direct == proxied {
        return;
    }
    match (direct, proxied) {
        (Json::Object(one), Json::Object(two)) => {
            fields(path, one, two, found);
        }
        (Json::Array(one), Json::Array(two)) if one.len() == two.len() => {
            for (index, (one, two)) in one.iter().zip(two).enumerate() {
                values(&format!("{path}/{index}"), one, two, found);
            }
        }
        (Json::Atom(_), Json::Atom(_)) if is_respelled(direct, proxied) => {}
        _ => found.push(format!(
            "{path}:\n      direct  {}\n      proxied {}",
            clipped(&direct.to_string()),
            clipped(&proxied.to_string())
        )),
    }
}

/// Whether two strings are equal but for escapes, and name a group, so that the proxy had to write one of them again.
fn is_respelled(direct: &Json, proxied: &Json) -> bool {
    let text = direct.text();
    text == proxied.text() && text.is_some_and(|text| text.contains(NAMED))
}

fn fields(path: &str, one: &[(String, Json)], two: &[(String, Json)], found: &mut Vec<String>) {
    let names = |fields: &[(String, Json)]| {
        fields
            .iter()
            .map(|(name, _)| name.clone())
            .collect::<Vec<_>>()
    };
    let (one_names, two_names) = (names(one), names(two));
    if one_names != two_names {
        let without = |names: &[String], others: &[String]| {
            let rest = names.iter().filter(|name| !others.contains(name));
            rest.cloned().collect::<Vec<_>>().join(" ")
        };
        let (only_one, only_two) = (
            without(&one_names, &two_names),
            without(&two_names, &one_names),
        );
        let what = match (only_one.as_str(), only_two.as_str()) {
            ("", "") => "the fields are in another order".to_owned(),
            _ => format!(
                "only direct [{}], only proxied [{}]",
                clipped(&only_one),
                clipped(&only_two)
            ),
        };
        found.push(format!("{path}: {what}"));
    }
    for (name, value) in one {
        if let Some((_, other)) = two.iter().find(|(other, _)| other == name) {
            values(&format!("{path}/{name}"), value, other, found);
        }
    }
}

/// The beginning of a text.
pub(crate) fn clipped(text: &str) -> String {
    if text.len() <= SHOWN_BYTES {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(SHOWN_BYTES);
    format!("{}... ({} bytes)", &text[..end], text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(direct: &str, proxied: &str) -> Vec<String> {
        let mut found = Vec::new();
        bodies(&Step::default(), direct, proxied, &mut found);
        found
    }

    #[test]
    fn finds_every_kind_of_difference() {
        for (direct, proxied, expected) in [
            (r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#, "another order"),
            (r#"{"a":1}"#, r#"{"a":1,"b":2}"#, "only proxied [b]"),
            (
                r#"{"a":{"b":[1,{"c":"x"}]}}"#,
                r#"{"a":{"b":[1,{"c":"y"}]}}"#,
                "/0/a/b/1/c",
            ),
            (r#"{"a":1.0}"#, r#"{"a":1}"#, "/0/a"),
            (r#"{"a":"\u003c"}"#, r#"{"a":"<"}"#, "/0/a"),
            ("[1,2]", "[1]", "/0"),
            ("{}\n{}\n", "{}\n", "\n"),
            ("no json", "{}", "body"),
        ] {
            let found = compared(direct, proxied);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].contains(expected), "{found:?}");
        }
    }

    #[test]
    fn equal_responses_are_equal() {
        for (direct, proxied) in [
            (r#"{"a": 1}"#, r#"{"a":1}"#),
            (
                r#"{"a":"\u003c cluster.x-k8s.io"}"#,
                r#"{"a":"< cluster.x-k8s.io"}"#,
            ),
            (
                r#"{"uid":"01234567-89ab-cdef-0123-456789abcdef"}"#,
                r#"{"uid":"11111111-2222-3333-4444-555555555555"}"#,
            ),
            ("404 page not found\n", "404 page not found\n"),
            ("", ""),
        ] {
            assert_eq!(compared(direct, proxied), Vec::<String>::new());
        }
    }
}
