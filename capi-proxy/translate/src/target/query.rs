//! The query: forwarded unchanged, except for field selectors that hold a group and the hash of OpenAPI documents.

use std::fmt::Write as _;

use super::path::hex_digit;
use crate::{Rules, cache};

/// Reads `watch` as the API server does: the first value counts, and anything but `false` and `0` is yes.
pub(super) fn requests_watch(query: &str) -> bool {
    parameters(query)
        .find(|(key, _)| key == "watch")
        .is_some_and(|(_, value)| value != "0" && !value.eq_ignore_ascii_case("false"))
}

/// Takes our salt off `hash=`, so that the API server knows its own hash again.
pub(super) fn strip_hash(rules: &Rules, query: &str) -> String {
    map_hash(query, |hash| cache::hash_up(rules, hash))
}

/// Puts our salt on `hash=`, on the way to the client.
pub(super) fn salt_hash(rules: &Rules, query: &str) -> String {
    map_hash(query, |hash| cache::hash_down(rules, hash))
}

fn map_hash(query: &str, map: impl Fn(&str) -> String) -> String {
    let mapped: Vec<_> = query
        .split('&')
        .map(|parameter| match parameter.strip_prefix("hash=") {
            Some(hash) => format!("hash={}", map(hash)),
            None => parameter.to_owned(),
        })
        .collect();
    mapped.join("&")
}

/// Swaps values of terms in every `fieldSelector`; a parameter in which nothing changes keeps its bytes.
pub(super) fn swap_field_selectors(
    query: &str,
    swap: impl Fn(&str, &str) -> Option<String>,
) -> String {
    let swapped: Vec<_> = query
        .split('&')
        .map(|raw| {
            let changed = split(raw)
                .filter(|(key, _)| key == "fieldSelector")
                .and_then(|(_, selector)| swap_terms(&selector, &swap));
            match changed {
                Some(selector) => format!("fieldSelector={}", encode(&selector)),
                None => raw.to_owned(),
            }
        })
        .collect();
    swapped.join("&")
}

fn swap_terms(selector: &str, swap: impl Fn(&str, &str) -> Option<String>) -> Option<String> {
    let mut changed = false;
    // A swapped value holds no escape, so a comma behind a backslash only ever parts terms that stay as they are.
    let terms: Vec<_> = selector
        .split(',')
        .map(|term| {
            let swapped = ["!=", "==", "="].into_iter().find_map(|operator| {
                let (field, value) = term.split_once(operator)?;
                Some(swap(field.trim(), value).map(|value| format!("{field}{operator}{value}")))
            });
            match swapped.flatten() {
                Some(term) => {
                    changed = true;
                    term
                }
                None => term.to_owned(),
            }
        })
        .collect();
    changed.then(|| terms.join(","))
}

/// The parameters that the API server would see: one that cannot be decoded is dropped there too.
fn parameters(query: &str) -> impl Iterator<Item = (String, String)> {
    query.split('&').filter_map(split)
}

fn split(parameter: &str) -> Option<(String, String)> {
    if parameter.contains(';') {
        return None;
    }
    let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
    Some((decode(key)?, decode(value)?))
}

fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => hex_digit(rest.next()?)? << 4 | hex_digit(rest.next()?)?,
            b'+' => b' ',
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

fn encode(text: &str) -> String {
    text.bytes()
        .fold(String::with_capacity(text.len() + 16), |mut out, byte| {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                out.push(char::from(byte));
            } else {
                let _ = write!(out, "%{byte:02X}");
            }
            out
        })
}
