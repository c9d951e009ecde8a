//! The text of a document before it is parsed.

use std::borrow::Cow;

use crate::Refusal;

/// Line breaks of YAML 1.1 that YAML 1.2 takes for ordinary characters.
const OLD_LINE_BREAKS: [char; 3] = ['\u{85}', '\u{2028}', '\u{2029}'];

/// The body as text, if every parser of YAML takes it for the same characters and lines.
pub(super) fn check(input: &[u8]) -> Result<&str, Refusal> {
    let text =
        std::str::from_utf8(input).map_err(|_| Refusal::malformed("the YAML body is not UTF-8"))?;
    if text.contains('\u{feff}') {
        return Err(Refusal::malformed(
            "the YAML body holds a byte order mark: leave it out",
        ));
    }
    let is_control = |c: char| c.is_ascii_control() && !matches!(c, '\t' | '\n' | '\r');
    if text.contains(is_control) || text.contains(OLD_LINE_BREAKS) {
        return Err(Refusal::malformed(
            "the YAML body holds a control character or a line break that parsers read differently: write it as an escape",
        ));
    }
    Ok(text)
}

/// `text` with an `x` for every byte that is not ASCII.
///
/// The parser counts characters. So they are bytes, and no name of the table or of a field is touched.
pub(super) fn mask(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mask = |byte: u8| {
        if byte.is_ascii() {
            char::from(byte)
        } else {
            'x'
        }
    };
    Cow::Owned(text.bytes().map(mask).collect())
}
