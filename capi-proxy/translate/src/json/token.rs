//! The text of string tokens.

use std::borrow::Cow;

/// The text of a token; `None` where it is no Unicode text (lone surrogates), which no name is.
pub(super) fn decode(raw: &[u8], escaped: bool) -> Option<Cow<'_, str>> {
    if !escaped {
        return std::str::from_utf8(raw).ok().map(Cow::Borrowed);
    }
    let quoted = [b"\"", raw, b"\""].concat();
    serde_json::from_slice::<String>(&quoted)
        .ok()
        .map(Cow::Owned)
}

/// Appends `text` as a JSON string that begins with `first`: a quote, or the space or comma that parts two pieces of a text.
pub(super) fn write_string(out: &mut Vec<u8>, first: u8, text: &str) {
    let start = out.len();
    serde_json::to_writer(&mut *out, text).expect("invariant: a string is written to memory");
    out[start] = first;
}
