//! A bearer token that is never printed.

use std::fmt;
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderValue;
use serde::Deserialize;

use super::Error;

/// A bearer token, as the value of an `Authorization` header.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Token {
    header: HeaderValue,
    expires: Option<SystemTime>,
}

// === impl Token ===

impl Token {
    /// Reads a token; white space around it does not belong to it. `from` is where it was found.
    pub(super) fn parse(text: &[u8], from: impl fmt::Display) -> Result<Self, Error> {
        let text = text.trim_ascii();
        let header = HeaderValue::from_bytes(&[b"Bearer ", text].concat())
            .ok()
            .filter(|_| !text.is_empty());
        let mut header = header.ok_or_else(|| Error::Token {
            from: from.to_string(),
        })?;
        header.set_sensitive(true);
        Ok(Self {
            header,
            expires: expiry(text),
        })
    }

    /// The header's value; `Debug` of it prints nothing of the token.
    pub(crate) fn header(&self) -> &HeaderValue {
        &self.header
    }

    /// Whether the token has an expiry before `now`.
    pub(super) fn has_expired(&self, now: SystemTime) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token")
            .field("expires", &self.expires)
            .finish_non_exhaustive()
    }
}

/// When a JSON Web Token expires; `None` for other tokens.
fn expiry(token: &[u8]) -> Option<SystemTime> {
    #[derive(Deserialize)]
    struct Claims {
        exp: u64,
    }
    let payload = token.split(|&byte| byte == b'.').nth(1)?;
    let claims: Claims = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).ok()?).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(claims.exp))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check S16.
    #[test]
    fn tokens_are_redacted_in_debug_output() {
        let token = Token::parse(b" secret\n", "file").unwrap();
        assert_eq!(token.header(), "Bearer secret");
        assert!(!format!("{token:?} {:?}", token.header()).contains("secret"));
    }

    /// Check S13.
    #[test]
    fn invalid_tokens_are_rejected() {
        for text in [b"".as_slice(), b" \n", b"a\nb", b"\0"] {
            assert!(Token::parse(text, "file").is_err(), "{text:?}");
        }
    }

    #[test]
    fn only_json_web_tokens_have_an_expiry() {
        let claims = URL_SAFE_NO_PAD.encode(br#"{"exp":1000,"sub":"a"}"#);
        let token = Token::parse(format!("x.{claims}.y").as_bytes(), "file").unwrap();
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        assert!(!token.has_expired(at(999)));
        assert!(token.has_expired(at(1000)));
        assert!(
            !Token::parse(b"opaque", "file")
                .unwrap()
                .has_expired(at(u64::from(u32::MAX)))
        );
    }
}
