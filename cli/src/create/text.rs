//! Values of flags that are more than a word: pairs, tolerations, files.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use serde_json::{Map, Value, json};

use crate::Usage;
use crate::install::time;

/// A time as in Kubernetes, or 0 for no limit.
pub(crate) fn time_or_zero(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    if digits == "0" {
        return Ok(Duration::ZERO);
    }
    time(text).map_err(|error| format!("{error}, or 0 for no limit"))
}

/// Whether a text has lower-case letters, digits and dashes only, and one of them.
pub(crate) fn is_plain(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.bytes().all(is_plain)
}

/// Whether a text is also without a dash at either end.
pub(crate) fn is_name(text: &str) -> bool {
    is_plain(text) && !text.starts_with('-') && !text.ends_with('-')
}

/// Pairs of the form `KEY=VALUE`. A key may be given once.
pub(crate) fn pairs(flag: &str, given: &[String]) -> Result<BTreeMap<String, String>, Usage> {
    let mut pairs = BTreeMap::new();
    for text in given {
        let (key, value) = text
            .split_once('=')
            .filter(|(key, _)| !key.is_empty())
            .ok_or_else(|| Usage::new(&format!("{flag} {text:?}: write KEY=VALUE")))?;
        if pairs.insert(key.to_owned(), value.to_owned()).is_some() {
            return Err(Usage::new(&format!("{flag}: {key} is given twice")));
        }
    }
    Ok(pairs)
}

/// A toleration of the form `key=K,value=V,operator=O,effect=E,tolerationSeconds=N`.
pub(crate) fn toleration(text: &str) -> Result<Value, Usage> {
    let fields = text.split(',').map(str::to_owned).collect::<Vec<_>>();
    let mut toleration = Map::new();
    for (key, value) in pairs("--toleration", &fields)? {
        let value = match key.as_str() {
            "key" | "value" => json!(value),
            "operator" => json!(one_of(&key, &value, &["Exists", "Equal"])?),
            "effect" => {
                let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
                json!(one_of(&key, &value, &effects)?)
            }
            "tolerationSeconds" => json!(value.parse::<i64>().map_err(|_| Usage::new(
                &format!("--toleration: tolerationSeconds must be a number, not {value:?}")
            ))?),
            other => {
                return Err(Usage::new(&format!(
                    "--toleration: there is no field {other}; there are key, value, operator, effect and tolerationSeconds"
                )));
            }
        };
        toleration.insert(key, value);
    }
    Ok(Value::Object(toleration))
}

/// The one of the words that is meant, in its usual case.
fn one_of(key: &str, value: &str, allowed: &[&'static str]) -> Result<&'static str, Usage> {
    let found = allowed
        .iter()
        .find(|word| word.eq_ignore_ascii_case(value))
        .copied();
    found.ok_or_else(|| {
        Usage::new(&format!(
            "--toleration: {key} must be one of {}",
            allowed.join(", ")
        ))
    })
}

/// The text of a file that a flag names.
pub(crate) fn file(flag: &str, path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path)
        .with_context(|| format!("cannot read {}, named by {flag}", path.display()))
}

/// The text of a `.dockerconfigjson`, which must be one.
pub(crate) fn pull_secret(path: &Path) -> anyhow::Result<String> {
    let text = file("--pull-secret", path)?;
    checked_pull_secret(&format!("--pull-secret {}", path.display()), &text)
}

/// The same of a text, which has a name in errors.
pub(crate) fn checked_pull_secret(name: &str, text: &str) -> anyhow::Result<String> {
    let parsed: Value =
        serde_json::from_str(text).with_context(|| format!("{name}: this is not JSON"))?;
    if !parsed["auths"].is_object() {
        let message = format!("{name}: not a .dockerconfigjson: object \"auths\" is missing");
        return Err(Usage::new(&message).into());
    }
    Ok(text.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_read_and_doubles_refused() {
        let given = ["a=1".to_owned(), "b=x=y".to_owned(), "c=".to_owned()];
        let pairs = pairs("--labels", &given).unwrap();
        assert_eq!(pairs["b"], "x=y");
        assert_eq!(pairs["c"], "");
        for wrong in [vec!["a"], vec!["=b"], vec!["a=1", "a=2"]] {
            let wrong: Vec<_> = wrong.into_iter().map(str::to_owned).collect();
            super::pairs("--labels", &wrong).unwrap_err();
        }
    }

    #[test]
    fn zero_is_no_limit() {
        for (text, expected) in [
            ("0", Some(0)),
            ("0s", Some(0)),
            ("90s", Some(90)),
            ("1h", Some(3600)),
            ("soon", None),
            ("", None),
        ] {
            let time = time_or_zero(text).ok().map(|time| time.as_secs());
            assert_eq!(time, expected, "{text}");
        }
    }

    #[test]
    fn tolerations_are_read_by_field() {
        let read = toleration("key=a,operator=Equal,value=b,effect=NoExecute,tolerationSeconds=5");
        let expected = json!({
            "key": "a", "operator": "Equal", "value": "b", "effect": "NoExecute", "tolerationSeconds": 5
        });
        assert_eq!(read.unwrap(), expected);
        let read = toleration("key=a,operator=exists,effect=noschedule").unwrap();
        assert_eq!(
            read,
            json!({ "key": "a", "operator": "Exists", "effect": "NoSchedule" })
        );
        for (wrong, words) in [
            ("key", "KEY=VALUE"),
            (
                "key=a,effect=Never",
                "NoSchedule, PreferNoSchedule, NoExecute",
            ),
            ("key=a,operator=Is", "Exists, Equal"),
            ("key=a,colour=red", "no field colour"),
            ("key=a,tolerationSeconds=x", "must be a number"),
        ] {
            let error = toleration(wrong).unwrap_err().to_string();
            assert!(error.contains(words), "{wrong}: {error}");
        }
    }
}
