//! Configuration files in INI format, with values of users.
//!
//! The format has no escapes that all readers agree on. A value with a line break would add settings of its own, and
//! some settings run programs or name files of the pod.

use crate::error::{Error, Result};

/// Characters that start a comment, quote, or continue a line in some readers.
const SPECIAL: [u8; 6] = *b"\"'\\;#`";

/// A file with sections of settings.
#[derive(Debug, Default)]
pub struct Ini(Vec<String>);

// === impl Ini ===

impl Ini {
    /// Begins a section.
    pub fn section(mut self, name: &str) -> Self {
        if !self.0.is_empty() {
            self.0.push(String::new());
        }
        self.0.push(format!("[{name}]"));
        self
    }

    /// Adds a setting with a value of this program.
    pub fn fixed(mut self, name: &str, value: &str) -> Self {
        self.0.push(format!("{name} = {value}"));
        self
    }

    /// Adds a setting with a value of a user. An error names the field that it is from.
    pub fn set(self, name: &str, (field, value): (&str, &str)) -> Result<Self> {
        Ok(self.fixed(name, plain(field, value)?))
    }

    /// Formats the file.
    pub fn text(self) -> String {
        self.0.join("\n")
    }
}

/// Returns the value if it has no special meaning in such files.
fn plain<'a>(field: &str, value: &'a str) -> Result<&'a str> {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && !SPECIAL.contains(&byte);
    if value.bytes().all(is_plain) && value.trim() == value {
        return Ok(value);
    }
    Err(Error::Invalid {
        field: field.to_owned(),
        value: value.to_owned(),
        hint: "use printable ASCII characters on one line, without quotes, backslashes, # and ;"
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_sections_and_settings() {
        let file = Ini::default()
            .section("a")
            .fixed("one", "1")
            .section("b")
            .set("two", ("spec.two", "vpc 2"))
            .unwrap();
        assert_eq!(file.text(), "[a]\none = 1\n\n[b]\ntwo = vpc 2");
    }

    /// Check T16.
    #[test]
    fn values_cannot_add_settings() {
        for (value, expected) in [
            ("", true),
            ("vpc-0a1b2c", true),
            ("arn:aws:iam::123456789012:role/a", true),
            ("Default resources", true),
            ("a\nb = c", false),
            ("a\rb = c", false),
            ("a\u{2028}b", false),
            ("a\\", false),
            ("a ; b", false),
            ("a # b", false),
            ("\"a", false),
            ("a`b`", false),
            (" a", false),
            ("a\t", false),
            ("\0", false),
        ] {
            let set = Ini::default().set("name", ("spec.field", value));
            assert_eq!(set.is_ok(), expected, "{value:?}");
            if let Err(error) = set {
                assert!(error.to_string().contains("for spec.field"), "{error}");
            }
        }
    }
}
