//! An annotation's key together with the type of its value.

use std::collections::BTreeMap;
use std::str::FromStr;

use kube_core::Duration;

/// An annotation whose value has a type.
///
/// ```
/// use std::collections::BTreeMap;
/// use api::annotations::cluster::KUBE_API_SERVER_VERBOSITY;
///
/// let mut annotations = BTreeMap::new();
/// assert_eq!(KUBE_API_SERVER_VERBOSITY.get(&annotations), Ok(None));
/// annotations.insert(KUBE_API_SERVER_VERBOSITY.key().to_owned(), "four".to_owned());
/// let error = KUBE_API_SERVER_VERBOSITY.get(&annotations).unwrap_err();
/// assert!(error.to_string().ends_with("write a whole number or remove the annotation"));
/// ```
#[derive(Debug)]
pub struct Annotation<T> {
    key: &'static str,
    expected: &'static str,
    parse: fn(&str) -> Option<T>,
}

/// A value that is not of the annotation's type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("annotation {key} cannot be {value:?}: write {expected} or remove the annotation")]
pub struct AnnotationError {
    /// The annotation.
    pub key: String,
    /// Its value.
    pub value: String,
    /// What the value may be.
    pub expected: &'static str,
}

impl<T> Annotation<T> {
    /// The key.
    pub const fn key(&self) -> &'static str {
        self.key
    }

    /// The value, if the annotation is there.
    pub fn get(
        &self,
        annotations: &BTreeMap<String, String>,
    ) -> Result<Option<T>, AnnotationError> {
        let Some(value) = annotations.get(self.key) else {
            return Ok(None);
        };
        let parsed = (self.parse)(value).ok_or_else(|| AnnotationError {
            key: self.key.to_owned(),
            value: value.clone(),
            expected: self.expected,
        })?;
        Ok(Some(parsed))
    }
}

impl Annotation<()> {
    /// One that says all by being there, whatever its value.
    pub(crate) const fn presence(key: &'static str) -> Self {
        Self {
            key,
            expected: "anything",
            parse: |_| Some(()),
        }
    }

    /// Whether it is there.
    pub fn is_set(&self, annotations: &BTreeMap<String, String>) -> bool {
        annotations.contains_key(self.key)
    }
}

impl Annotation<bool> {
    /// `true` or `false`.
    pub(crate) const fn flag(key: &'static str) -> Self {
        Self {
            key,
            expected: "true or false",
            parse: |value| value.to_ascii_lowercase().parse().ok(),
        }
    }

    /// Whether it is `true`. What cannot be read is not.
    pub fn is_true(&self, annotations: &BTreeMap<String, String>) -> bool {
        matches!(self.get(annotations), Ok(Some(true)))
    }
}

impl Annotation<String> {
    /// Any text but none.
    pub(crate) const fn text(key: &'static str) -> Self {
        Self {
            key,
            expected: "a text",
            parse: |value| (!value.trim().is_empty()).then(|| value.trim().to_owned()),
        }
    }
}

impl Annotation<u64> {
    /// A whole number.
    pub(crate) const fn number(key: &'static str) -> Self {
        Self {
            key,
            expected: "a whole number",
            parse: |value| value.trim().parse().ok(),
        }
    }
}

impl Annotation<f64> {
    /// A part of one.
    pub(crate) const fn fraction(key: &'static str) -> Self {
        Self {
            key,
            expected: "a number between 0 and 1",
            parse: |value| {
                let number: f64 = value.trim().parse().ok()?;
                (0.0..=1.0).contains(&number).then_some(number)
            },
        }
    }
}

impl Annotation<Duration> {
    /// A span of time.
    pub(crate) const fn duration(key: &'static str) -> Self {
        Self {
            key,
            expected: "a span of time such as 1h30m",
            parse: |value| Duration::from_str(value.trim()).ok(),
        }
    }
}

impl Annotation<Vec<String>> {
    /// Texts with commas between.
    pub(crate) const fn list(key: &'static str) -> Self {
        Self {
            key,
            expected: "texts with commas between",
            parse: |value| Some(items(value)),
        }
    }
}

impl Annotation<BTreeMap<String, String>> {
    /// `name=value` with commas between.
    pub(crate) const fn pairs(key: &'static str) -> Self {
        Self {
            key,
            expected: "name=value pairs with commas between",
            parse: pairs,
        }
    }
}

fn items(value: &str) -> Vec<String> {
    let items = value.split(',').map(str::trim);
    items
        .filter(|item| !item.is_empty())
        .map(str::to_owned)
        .collect()
}

fn pairs(value: &str) -> Option<BTreeMap<String, String>> {
    let pair = |item: String| {
        let (name, value) = item.split_once('=')?;
        let named = !name.trim().is_empty();
        named.then(|| (name.trim().to_owned(), value.trim().to_owned()))
    };
    items(value).into_iter().map(pair).collect()
}

/// Pairs of an annotation with a key that is not known beforehand.
pub(super) fn read_pairs(
    key: &str,
    value: &str,
) -> Result<BTreeMap<String, String>, AnnotationError> {
    pairs(value).ok_or_else(|| AnnotationError {
        key: key.to_owned(),
        value: value.to_owned(),
        expected: "name=value pairs with commas between",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T>(annotation: &Annotation<T>, value: &str) -> Result<Option<T>, AnnotationError> {
        annotation.get(&BTreeMap::from([(
            annotation.key().to_owned(),
            value.to_owned(),
        )]))
    }

    #[test]
    fn values_are_read_by_their_type() {
        assert_eq!(read(&Annotation::flag("a"), "True"), Ok(Some(true)));
        assert_eq!(read(&Annotation::number("a"), " 400 "), Ok(Some(400)));
        assert_eq!(read(&Annotation::fraction("a"), "0.001"), Ok(Some(0.001)));
        assert_eq!(read(&Annotation::presence("a"), ""), Ok(Some(())));
        let list = vec!["a".to_owned(), "b".to_owned()];
        assert_eq!(read(&Annotation::list("a"), "a, b,"), Ok(Some(list)));
        let pairs = BTreeMap::from([("name".to_owned(), "host/image:tag=1".to_owned())]);
        assert_eq!(
            read(&Annotation::pairs("a"), "name=host/image:tag=1"),
            Ok(Some(pairs))
        );
        let minutes = read(&Annotation::duration("a"), "1h30m").unwrap().unwrap();
        assert_eq!(std::time::Duration::from(minutes).as_secs(), 5400);
    }

    #[test]
    fn values_of_another_type_are_refused_with_the_way_out() {
        let errors = [
            read(&Annotation::flag("key"), "yes").map(drop),
            read(&Annotation::number("key"), "-1").map(drop),
            read(&Annotation::fraction("key"), "2").map(drop),
            read(&Annotation::text("key"), " ").map(drop),
            read(&Annotation::pairs("key"), "image").map(drop),
            read(&Annotation::duration("key"), "1 day").map(drop),
        ];
        for error in errors {
            let said = error.unwrap_err().to_string();
            assert!(said.starts_with("annotation key cannot be"), "{said}");
            assert!(said.ends_with("or remove the annotation"), "{said}");
        }
    }
}
