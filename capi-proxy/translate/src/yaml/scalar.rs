//! One scalar: its value, and the position of its text between its properties, quotes and the white space after it.

use std::ops::Range;

use saphyr_parser::{ScalarStyle, Tag};

use crate::Refusal;

/// Prefix of the tags that YAML itself defines.
const CORE: &str = "tag:yaml.org,2002:";

/// A scalar as the parser found it.
#[derive(Debug)]
pub(super) struct Scalar<'e> {
    pub(super) value: &'e str,
    pub(super) style: ScalarStyle,
    pub(super) tag: Option<&'e Tag>,
    /// Its position, perhaps with properties before it and white space after it.
    pub(super) at: Range<usize>,
}

// === impl Scalar ===

impl Scalar<'_> {
    /// Refuses a tag that makes the scalar something else than the string that it looks like.
    pub(super) fn check_string(&self, what: &str) -> Result<(), Refusal> {
        // A lone `!` says: a string, whatever it looks like.
        if is_core(self.tag, "str") || self.tag.is_some_and(|tag| full_name(tag) == "!") {
            return Ok(());
        }
        Err(Refusal::unprocessable(format!(
            "the YAML body has a tag on a {what}: leave it out"
        )))
    }

    /// The part of `source` to replace in order to give the scalar another text without quotes or spaces.
    ///
    /// `None` when that cannot be done by a plain replacement: block scalars, and what was not understood.
    pub(super) fn content(&self, source: &str) -> Option<Range<usize>> {
        match self.style {
            ScalarStyle::Plain => {
                let properties = source.trim_end().strip_suffix(self.value)?.len();
                Some(properties..properties + self.value.len())
            }
            ScalarStyle::SingleQuoted => self.literal(source, '\''),
            ScalarStyle::DoubleQuoted => self.literal(source, '"').or_else(|| escaped(source)),
            ScalarStyle::Literal | ScalarStyle::Folded => None,
        }
    }

    /// A quoted text that is its own meaning.
    fn literal(&self, source: &str, quote: char) -> Option<Range<usize>> {
        let (properties, rest) = source.split_once(quote)?;
        // The name of an anchor may hold a quote.
        let is_opening = properties.is_empty() || properties.ends_with(char::is_whitespace);
        let is_closed = rest.strip_prefix(self.value)?.starts_with(quote);
        let start = properties.len() + quote.len_utf8();
        (is_opening && is_closed).then_some(start..start + self.value.len())
    }
}

/// A text with escapes, if no property precedes its quote.
fn escaped(source: &str) -> Option<Range<usize>> {
    let inside = source.strip_prefix('"')?;
    let mut escape = false;
    let closing = |byte: u8| {
        let is_end = byte == b'"' && !escape;
        escape = byte == b'\\' && !escape;
        is_end
    };
    let length = inside.bytes().position(closing)?;
    Some(1..1 + length)
}

/// Whether there is no tag, or YAML's own tag `name`.
pub(super) fn is_core(tag: Option<&Tag>, name: &str) -> bool {
    tag.is_none_or(|tag| full_name(tag).strip_prefix(CORE) == Some(name))
}

fn full_name(tag: &Tag) -> String {
    format!("{}{}", tag.handle, tag.suffix)
}
