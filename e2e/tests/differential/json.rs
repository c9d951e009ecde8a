//! JSON as it was written: fields in their order, numbers and strings in their own spelling.

use anyhow::{Context, Result, ensure};
use serde::de::IgnoredAny;

/// A JSON value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Json {
    /// A number, string, boolean or null: its text, with the quotes of a string.
    Atom(String),
    /// An array.
    Array(Vec<Json>),
    /// An object: keys are decoded.
    Object(Vec<(String, Json)>),
}

struct Reader<'a> {
    rest: &'a str,
}

// === impl Json ===

impl Json {
    /// Reads one document.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let mut documents = Self::parse_all(text)?;
        ensure!(
            documents.len() == 1,
            "{} JSON documents instead of one",
            documents.len()
        );
        Ok(documents.remove(0))
    }

    /// Reads all documents of a stream.
    pub(crate) fn parse_all(text: &str) -> Result<Vec<Self>> {
        // Later steps rely on the text being JSON.
        let documents = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
        let count = documents
            .collect::<Result<Vec<_>, _>>()
            .context("not JSON")?
            .len();
        let mut reader = Reader { rest: text };
        Ok((0..count).map(|_| reader.value()).collect())
    }

    /// A string value.
    pub(crate) fn string(text: &str) -> Self {
        Self::Atom(serde_json::Value::from(text).to_string())
    }

    /// The text of a string.
    pub(crate) fn text(&self) -> Option<String> {
        match self {
            Self::Atom(raw) => serde_json::from_str(raw).ok(),
            Self::Array(_) | Self::Object(_) => None,
        }
    }

    /// The value of a field.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Object(fields) => fields
                .iter()
                .find(|(name, _)| name == key)
                .map(|(_, value)| value),
            Self::Atom(_) | Self::Array(_) => None,
        }
    }
}

impl std::fmt::Display for Json {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Atom(raw) => f.write_str(raw),
            Self::Array(items) => {
                f.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if index == 0 { "" } else { "," })?;
                }
                f.write_str("]")
            }
            Self::Object(fields) => {
                f.write_str("{")?;
                for (index, (key, value)) in fields.iter().enumerate() {
                    write!(f, "{}{key:?}:{value}", if index == 0 { "" } else { "," })?;
                }
                f.write_str("}")
            }
        }
    }
}

// === impl Reader ===

impl Reader<'_> {
    fn value(&mut self) -> Json {
        match self.peek() {
            '{' => self.object(),
            '[' => self.array(),
            '"' => Json::Atom(self.string()),
            _ => {
                let end = self.rest.find([',', '}', ']', ' ', '\n', '\r', '\t']);
                Json::Atom(self.take(end.unwrap_or(self.rest.len())))
            }
        }
    }

    fn object(&mut self) -> Json {
        let mut fields = Vec::new();
        self.take(1);
        while self.peek() != '}' {
            let key = serde_json::from_str(&self.string()).expect("invariant: the text is JSON");
            self.peek();
            self.take(1);
            fields.push((key, self.value()));
            self.skip_comma();
        }
        self.take(1);
        Json::Object(fields)
    }

    fn array(&mut self) -> Json {
        let mut items = Vec::new();
        self.take(1);
        while self.peek() != ']' {
            items.push(self.value());
            self.skip_comma();
        }
        self.take(1);
        Json::Array(items)
    }

    fn string(&mut self) -> String {
        let mut escaped = false;
        let close = self.rest[1..].find(|c| {
            let closes = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            closes
        });
        self.take(close.expect("invariant: the text is JSON") + 2)
    }

    fn skip_comma(&mut self) {
        if self.peek() == ',' {
            self.take(1);
            self.peek();
        }
    }

    /// The next character that is no white space.
    fn peek(&mut self) -> char {
        self.rest = self.rest.trim_start();
        self.rest.chars().next().unwrap_or('\0')
    }

    fn take(&mut self, length: usize) -> String {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_order_spelling_and_duplicates() {
        let text = r#" {"b": 1.0, "a":[ 1e2 ,"x\u002d\"y" , null,[],{}], "b":{"c":true}} "#;
        let json = Json::parse(text).unwrap();
        assert_eq!(
            json.to_string(),
            r#"{"b":1.0,"a":[1e2,"x\u002d\"y",null,[],{}],"b":{"c":true}}"#
        );
        assert_ne!(
            Json::parse(r#"{"a":1,"b":2}"#).unwrap(),
            Json::parse(r#"{"b":2,"a":1}"#).unwrap()
        );
    }

    #[test]
    fn reads_streams_and_rejects_malformed_json() {
        assert_eq!(Json::parse_all("{}\n[1]\n2\n").unwrap().len(), 3);
        assert_eq!(Json::parse_all("").unwrap().len(), 0);
        for text in ["{", "{\"a\":}", "[1,]", "{} x", "\"a"] {
            assert!(Json::parse_all(text).is_err(), "{text}");
        }
    }

    #[test]
    fn strings_are_decoded_on_demand() {
        let json = Json::parse(r#"{"a":"x\ty","n":1}"#).unwrap();
        assert_eq!(json.get("a").and_then(Json::text), Some("x\ty".to_owned()));
        assert_eq!(json.get("n").and_then(Json::text), None);
        assert_eq!(Json::string("x\ty"), json.get("a").unwrap().clone());
    }
}
