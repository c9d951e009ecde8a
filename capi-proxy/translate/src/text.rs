//! Free text in responses: private names become standard ones. Never used on what a client sends.
//!
//! A message has no places, and label keys, finalizers and secret types look exactly like groups. So the swap is
//! one-way, from private to standard: what clients store of that kind is never translated and keeps its standard
//! spelling, and is therefore never met here. And only a whole name changes, where its surroundings say that it is one:
//! by itself, as an API version, or after a resource, kind or version (`machines.<group>`, `Machine.<group>`).

use std::borrow::Cow;

use api::group::CapiTypes;

use super::Rules;

/// What may precede a name, apart from the start of the text and a [`PATHS`] entry.
const OPENERS: [char; 13] = [
    '"', '\'', '`', '(', '[', '{', '<', '>', '=', ':', ',', ';', '|',
];
/// What may follow a name, apart from the end of the text and `/v1...`. The backslash begins an escaped quote.
const CLOSERS: [char; 16] = [
    '"', '\'', '`', ')', ']', '}', '<', '>', '=', ':', ',', ';', '|', '?', '!', '\\',
];
/// Slashes that lead to a name: a URL path in a refusal, an object count in a quota's message.
const PATHS: [&str; 2] = ["/apis/", "count/"];

/// Replaces the private names in `text` by the standard ones.
///
/// ```
/// use capi_translate::{Rules, text::swap};
///
/// let message = r#"machines.cluster.hypershift.openshift.io "m" not found"#;
/// assert_eq!(swap(&Rules::default(), message), r#"machines.cluster.x-k8s.io "m" not found"#);
/// ```
pub fn swap<'t>(rules: &Rules, text: &'t str) -> Cow<'t, str> {
    let mut out = String::new();
    let mut copied = 0;
    for (start, word) in words(text) {
        let end = start + word.len();
        let Some((head, name)) = standard_name(rules, word) else {
            continue;
        };
        if !opens(&text[..start]) || !closes(&text[end..]) {
            continue;
        }
        out.push_str(&text[copied..start + head]);
        out.push_str(name);
        copied = end;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// The dotted words of `text`, each with its offset and without the dots that end a sentence.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let in_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let mut position = 0;
    std::iter::from_fn(move || {
        let start = position + text[position..].find(in_word)?;
        let rest = &text[start..];
        let word = &rest[..rest.find(|c| !in_word(c)).unwrap_or(rest.len())];
        position = start + word.len();
        Some((start, word.trim_end_matches('.')))
    })
}

/// The standard name for the private group that `word` is or ends with, and the length of the text before it.
fn standard_name<'r>(rules: &'r Rules, word: &str) -> Option<(usize, &'r str)> {
    if let Some(name) = standard_group(rules, word) {
        return Some((0, name));
    }
    let (head, group) = word.split_once('.')?;
    if !is_kind_resource_or_version(head) {
        return None;
    }
    Some((head.len() + 1, standard_group(rules, group)?))
}

fn standard_group<'r>(rules: &'r Rules, group: &str) -> Option<&'r str> {
    match rules.table().find(group.as_bytes())? {
        (pair, CapiTypes::Private) => Some(pair.name(CapiTypes::Standard)),
        (_, CapiTypes::Standard) => None,
    }
}

/// Whether a group may follow `head` and a dot. A singular such as `machine` is a finalizer's or a label's.
fn is_kind_resource_or_version(head: &str) -> bool {
    let is_kind = head.starts_with(|c: char| c.is_ascii_uppercase());
    let is_resource = head.ends_with('s');
    is_kind || is_resource || is_version(head)
}

fn is_version(text: &str) -> bool {
    text.strip_prefix('v')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn opens(before: &str) -> bool {
    let opener = |c: char| c.is_whitespace() || OPENERS.contains(&c);
    before.is_empty() || before.ends_with(opener) || PATHS.iter().any(|path| before.ends_with(path))
}

fn closes(after: &str) -> bool {
    // A sentence's last dots were cut off the word; what they lead to has to be a closer like any other.
    let sentence_ends = after.starts_with('.');
    let after = after.trim_start_matches('.');
    match after.chars().next() {
        None => true,
        Some('/') => !sentence_ends && is_version(&after[1..]),
        Some(c) => c.is_whitespace() || CLOSERS.contains(&c),
    }
}

#[cfg(test)]
mod tests;
