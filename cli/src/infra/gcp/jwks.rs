//! Sets of public keys (JWKS), by which tokens are verified. Pure.

use serde_json::Value;

/// Members that only private or symmetric keys have.
const PRIVATE: [&str; 7] = ["d", "p", "q", "dp", "dq", "qi", "k"];

/// A set of public keys.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Jwks(Value);

// === impl Jwks ===

impl Jwks {
    /// Reads a set. Problems do not quote it: it may have private keys by mistake.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let document: Value = serde_json::from_str(text).map_err(|_| "it is not JSON")?;
        Self::new(document)
    }

    /// Checks a set.
    pub(crate) fn new(document: Value) -> Result<Self, &'static str> {
        let keys = document["keys"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        if keys.is_empty() || !keys.iter().all(|key| key["kty"].is_string()) {
            return Err(
                "it is no set of keys: write an object with a list of keys, each with its kty",
            );
        }
        let is_private = |key: &Value| PRIVATE.iter().any(|member| key.get(member).is_some());
        if keys.iter().any(is_private) {
            return Err(
                "it has private keys, which must not be given away: leave only the public parts",
            );
        }
        Ok(Self(document))
    }

    /// The set, as it is sent.
    pub(super) fn text(&self) -> String {
        self.0.to_string()
    }

    /// Whether a text is the same set: neither the order of keys nor that of their members counts.
    pub(super) fn is_same(&self, text: &str) -> bool {
        let Ok(other) = serde_json::from_str::<Value>(text) else {
            return false;
        };
        let keys = |document: &Value| document["keys"].as_array().cloned().unwrap_or_default();
        let (ours, theirs) = (keys(&self.0), keys(&other));
        ours.len() == theirs.len()
            && ours.iter().all(|key| theirs.contains(key))
            && theirs.iter().all(|key| ours.contains(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_compared_by_their_keys() {
        let set = r#"{"keys": [{"kty": "RSA", "kid": "1", "n": "a"}, {"kty": "RSA", "kid": "2", "n": "b"}]}"#;
        let jwks = Jwks::parse(set).unwrap();
        for (other, expected) in [
            (set, true),
            (
                r#"{"keys":[{"n":"b","kid":"2","kty":"RSA"},{"n":"a","kid":"1","kty":"RSA"}]}"#,
                true,
            ),
            (r#"{"keys": [{"kty": "RSA", "kid": "1", "n": "a"}]}"#, false),
            (
                r#"{"keys": [{"kty": "RSA", "kid": "1", "n": "a"}, {"kty": "RSA", "kid": "1", "n": "a"}]}"#,
                false,
            ),
            (
                r#"{"keys": [{"kty": "RSA", "kid": "1", "n": "a"}, {"kty": "RSA", "kid": "2", "n": "c"}]}"#,
                false,
            ),
            ("{}", false),
            ("", false),
        ] {
            assert_eq!(jwks.is_same(other), expected, "{other}");
        }
        assert!(jwks.is_same(&jwks.text()));
    }

    #[test]
    fn what_is_no_set_of_public_keys_is_refused_without_its_text() {
        for (text, words) in [
            ("s3cret", "not JSON"),
            ("{}", "no set of keys"),
            (r#"{"keys": []}"#, "no set of keys"),
            (r#"{"keys": [{"kid": "s3cret"}]}"#, "no set of keys"),
            (
                r#"{"keys": [{"kty": "RSA", "n": "a", "d": "s3cret"}]}"#,
                "private keys",
            ),
            (
                r#"{"keys": [{"kty": "oct", "k": "s3cret"}]}"#,
                "private keys",
            ),
        ] {
            let problem = Jwks::parse(text).unwrap_err();
            assert!(problem.contains(words), "{problem}");
        }
    }
}
