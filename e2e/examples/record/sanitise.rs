//! Fixed values for what differs between two runs of one recording.

use std::collections::HashMap;

/// Replaces UIDs by numbers in the order in which they are met, and everything else by one constant each.
#[derive(Debug, Default)]
pub(crate) struct Sanitiser {
    uids: HashMap<String, usize>,
}

/// A text before a value that differs, and the value instead.
const VALUES: [(&str, &str); 5] = [
    ("\"resourceVersion\":\"", "1"),
    ("\"storageVersionHash\":\"", "HASH"),
    ("\"continue\":\"", "TOKEN"),
    ("?hash=", "HASH"),
    ("too old resource version: ", "1 (1)"),
];
const UID: &str = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
const TIME: &str = "dddd-dd-ddTdd:dd:dd";
/// The part of a second in a `MicroTime`.
const FRACTION: &str = ".dddddd";

// === impl Sanitiser ===

impl Sanitiser {
    /// The body with fixed values.
    pub(crate) fn clean(&mut self, body: &str) -> String {
        let mut out = String::with_capacity(body.len());
        let mut rest = body;
        while let Some(c) = rest.chars().next() {
            let taken = self.replace(rest, &mut out).unwrap_or_else(|| {
                out.push(c);
                c.len_utf8()
            });
            rest = &rest[taken..];
        }
        out
    }

    /// Writes the fixed form of what `text` begins with, if that differs between runs; how long it is.
    fn replace(&mut self, text: &str, out: &mut String) -> Option<usize> {
        if matches(UID, text) {
            let next = self.uids.len() + 1;
            let number = self
                .uids
                .entry(text[..UID.len()].to_owned())
                .or_insert(next);
            let uid = format!("00000000-0000-4000-8000-{number:012}");
            out.push_str(&uid);
            return Some(UID.len());
        }
        if matches(TIME, text) {
            out.push_str("2026-01-01T00:00:00");
            let fraction = matches(FRACTION, &text[TIME.len()..]);
            return Some(TIME.len() + if fraction { FRACTION.len() } else { 0 });
        }
        let (before, value) = VALUES.iter().find(|(before, _)| text.starts_with(before))?;
        let rest = &text[before.len()..];
        let length = rest.find('"').unwrap_or(rest.len());
        if length == 0 {
            return None;
        }
        out.push_str(before);
        out.push_str(value);
        Some(before.len() + length)
    }
}

/// Whether `text` begins with the pattern: `x` is a hexadecimal digit, `d` a decimal one.
fn matches(pattern: &str, text: &str) -> bool {
    let is_match = |(pattern, byte): (u8, u8)| match pattern {
        b'x' => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
        b'd' => byte.is_ascii_digit(),
        other => byte == other,
    };
    text.len() >= pattern.len() && pattern.bytes().zip(text.bytes()).all(is_match)
}
