//! Whose credentials a request uses: those of the proxy or of the client, never both.

use std::fmt;

use http::header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL};
use http::{HeaderMap, StatusCode};
use subtle::ConstantTimeEq;

use crate::failure::Failure;
use crate::upstream::Authorization;

/// The prefix of the protocol in which WebSocket clients that cannot set headers send their token.
const WEBSOCKET_BEARER: &str = "base64url.bearer.authorization.k8s.io.";

/// A secret that all clients must send, if other containers can reach the listener.
#[derive(Clone)]
pub(crate) struct SharedSecret(Vec<u8>);

// === impl SharedSecret ===

impl SharedSecret {
    /// Reads a secret, without surrounding white space. `None` if it is empty.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let secret = text.trim_ascii();
        (!secret.is_empty()).then(|| Self(secret.to_vec()))
    }

    /// Compares in constant time; only the length is revealed.
    fn is(&self, offered: &[u8]) -> bool {
        self.0.ct_eq(offered).into()
    }
}

impl fmt::Debug for SharedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedSecret")
    }
}

/// Decides which credentials the request uses, and removes the shared secret.
pub(crate) fn decide(
    secret: Option<&SharedSecret>,
    headers: &mut HeaderMap,
) -> Result<Authorization, Failure> {
    let authorizations = headers.get_all(AUTHORIZATION).iter().count();
    let websocket = has_websocket_token(headers);
    if authorizations + usize::from(websocket) > 1 {
        return Err(Failure::client(
            StatusCode::BAD_REQUEST,
            "the request has more than one authorization",
        ));
    }
    let Some(secret) = secret else {
        return Ok(if authorizations == 0 && !websocket {
            Authorization::Ours
        } else {
            Authorization::Client
        });
    };
    let bearer = headers
        .get(AUTHORIZATION)
        .and_then(|value| bearer(value.as_bytes()));
    if !bearer.is_some_and(|offered| secret.is(offered)) {
        return Err(Failure::client(
            StatusCode::UNAUTHORIZED,
            "missing or wrong shared secret: send it as `Authorization: Bearer SECRET`",
        ));
    }
    headers.remove(AUTHORIZATION);
    Ok(Authorization::Ours)
}

fn has_websocket_token(headers: &HeaderMap) -> bool {
    let protocols = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    protocols
        .flat_map(|value| value.as_bytes().split(|&byte| byte == b','))
        .any(|protocol| {
            protocol
                .trim_ascii()
                .starts_with(WEBSOCKET_BEARER.as_bytes())
        })
}

fn bearer(authorization: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = authorization.split_at_checked("Bearer ".len())?;
    scheme
        .eq_ignore_ascii_case(b"Bearer ")
        .then_some(token.trim_ascii())
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn headers(fields: &[(HeaderName, &'static str)]) -> HeaderMap {
        fields
            .iter()
            .fold(HeaderMap::new(), |mut headers, (name, value)| {
                headers.append(name, HeaderValue::from_static(value));
                headers
            })
    }

    /// Check S07.
    #[test]
    fn client_authorization_replaces_the_proxy_credentials() {
        let own = (AUTHORIZATION, "Bearer theirs");
        let websocket = (
            SEC_WEBSOCKET_PROTOCOL,
            "v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.dA",
        );
        let decide = |fields: &[_]| {
            decide(None, &mut headers(fields)).map_err(|refused| refused.code.as_u16())
        };
        assert_eq!(decide(&[]), Ok(Authorization::Ours));
        assert_eq!(
            decide(&[(SEC_WEBSOCKET_PROTOCOL, "v5.channel.k8s.io")]),
            Ok(Authorization::Ours)
        );
        assert_eq!(
            decide(std::slice::from_ref(&own)),
            Ok(Authorization::Client)
        );
        assert_eq!(
            decide(std::slice::from_ref(&websocket)),
            Ok(Authorization::Client)
        );
        assert_eq!(decide(&[own.clone(), own.clone()]), Err(400));
        assert_eq!(decide(&[own, websocket]), Err(400));
    }

    /// Check S15.
    #[test]
    fn the_shared_secret_is_checked_and_removed() {
        let secret = SharedSecret::parse(b"open sesame\n").unwrap();
        let mut right = headers(&[(AUTHORIZATION, "bearer open sesame")]);
        assert_eq!(
            decide(Some(&secret), &mut right).ok(),
            Some(Authorization::Ours)
        );
        assert!(right.is_empty(), "it is not for the API server");
        for wrong in [
            "Bearer open",
            "Bearer open sesames",
            "Basic open sesame",
            "open sesame",
            "Bearer",
        ] {
            let refused =
                decide(Some(&secret), &mut headers(&[(AUTHORIZATION, wrong)])).unwrap_err();
            assert_eq!(refused.code, 401, "{wrong}");
        }
        assert_eq!(
            decide(Some(&secret), &mut HeaderMap::new())
                .unwrap_err()
                .code,
            401
        );
        assert!(SharedSecret::parse(b" \n").is_none());
        assert_eq!(format!("{secret:?}"), "SharedSecret");
    }
}
