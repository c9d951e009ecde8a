//! The `Connection` and `Upgrade` headers.
//!
//! `Connection` names headers that the next hop must drop. With `Impersonate-User` there, a request would run with the
//! permissions of the proxy itself. So only connection-level headers are allowed.

use http::header::{CONNECTION, UPGRADE};
use http::{HeaderMap, StatusCode};

use crate::failure::Failure;
use capi_translate::target::Target;

/// The allowed values of `Connection`.
const CONNECTION_LEVEL: [&str; 4] = ["keep-alive", "close", "upgrade", "te"];
/// The protocols that the API server supports for upgrades.
const PROTOCOLS: [&str; 2] = ["SPDY/3.1", "websocket"];

/// Whether a request is an upgrade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wants {
    Http,
    Upgrade,
}

/// Rejects a `Connection` header with anything but connection-level headers.
pub(crate) fn check(headers: &HeaderMap) -> Result<(), Failure> {
    let named = headers.get_all(CONNECTION).iter();
    let allowed = named.map(|value| {
        value
            .to_str()
            .is_ok_and(|value| value.split(',').all(is_connection_level))
    });
    if allowed.into_iter().all(|allowed| allowed) {
        return Ok(());
    }
    Err(Failure::client(
        StatusCode::BAD_REQUEST,
        "the Connection header may name only close, keep-alive, upgrade and te",
    ))
}

fn is_connection_level(name: &str) -> bool {
    let name = name.trim_matches([' ', '\t']);
    name.is_empty()
        || CONNECTION_LEVEL
            .iter()
            .any(|known| known.eq_ignore_ascii_case(name))
}

/// Whether the request is an upgrade. Upgrades of other paths and to unknown protocols are rejected.
///
/// An upgrade request is the last of its connection, because the bytes after it are not checked.
pub(crate) fn wants(headers: &HeaderMap, target: &Target) -> Result<Wants, Failure> {
    let mut upgrades = headers.get_all(UPGRADE).iter();
    let Some(first) = upgrades.next() else {
        return Ok(Wants::Http);
    };
    let refuse = |message| Err(Failure::client(StatusCode::BAD_REQUEST, message).closing());
    if !target.is_upgrade() {
        return refuse("only exec, attach, portforward and proxy support upgrades");
    }
    let known = PROTOCOLS
        .iter()
        .any(|known| first.as_bytes().eq_ignore_ascii_case(known.as_bytes()));
    if upgrades.next().is_some() || !known {
        return refuse("the Upgrade header must be SPDY/3.1 or websocket");
    }
    if !names_upgrade(headers) {
        return refuse("the Connection header must name Upgrade");
    }
    Ok(Wants::Upgrade)
}

fn names_upgrade(headers: &HeaderMap) -> bool {
    let values = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok());
    values
        .flat_map(|value| value.split(','))
        .any(|name| name.trim().eq_ignore_ascii_case("upgrade"))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;
    use capi_translate::Rules;

    fn headers(fields: &[(http::HeaderName, &'static str)]) -> HeaderMap {
        fields
            .iter()
            .fold(HeaderMap::new(), |mut headers, (name, value)| {
                headers.append(name, HeaderValue::from_static(value));
                headers
            })
    }

    /// Check S05.
    #[test]
    fn connection_header_may_name_only_known_hop_by_hop_headers() {
        for value in [
            "close",
            "Keep-Alive",
            "keep-alive, Upgrade",
            "TE,close",
            "",
            ", close",
        ] {
            assert!(check(&headers(&[(CONNECTION, value)])).is_ok(), "{value:?}");
        }
        for value in [
            "Impersonate-User",
            "close, Authorization",
            "Content-Length",
            "http2-settings",
        ] {
            assert!(
                check(&headers(&[(CONNECTION, value)])).is_err(),
                "{value:?}"
            );
        }
        let two = headers(&[(CONNECTION, "close"), (CONNECTION, "impersonate-user")]);
        assert_eq!(check(&two).unwrap_err().code, 400);
    }

    /// Check S10.
    #[test]
    fn upgrades_need_a_known_protocol_and_path() {
        let exec = "/api/v1/namespaces/n/pods/p/exec?command=sh";
        let wants = |path: &str, fields: &[_]| {
            wants(
                &headers(fields),
                &Target::parse(&Rules::default(), path).unwrap(),
            )
            .map_err(|refused| {
                assert_eq!(refused.disposition, crate::failure::Disposition::Close);
            })
        };
        let connection = (CONNECTION, "keep-alive, Upgrade");
        for protocol in ["SPDY/3.1", "websocket", "WebSocket"] {
            assert_eq!(
                wants(exec, &[connection.clone(), (UPGRADE, protocol)]),
                Ok(Wants::Upgrade),
                "{protocol}"
            );
        }
        assert_eq!(wants(exec, &[]), Ok(Wants::Http));
        assert_eq!(
            wants(exec, std::slice::from_ref(&connection)),
            Ok(Wants::Http)
        );
        for refused in [
            wants(exec, &[connection.clone(), (UPGRADE, "h2c")]),
            wants(exec, &[connection.clone(), (UPGRADE, "websocket, h2c")]),
            wants(
                exec,
                &[
                    connection.clone(),
                    (UPGRADE, "websocket"),
                    (UPGRADE, "websocket"),
                ],
            ),
            wants(exec, &[(UPGRADE, "websocket")]),
            wants(
                "/api/v1/namespaces/n/pods?watch=true",
                &[connection, (UPGRADE, "websocket")],
            ),
        ] {
            assert_eq!(refused, Err(()));
        }
    }
}
