//! The `Connection` and `Upgrade` headers.
//!
//! `Connection` names headers that the next hop must drop. A client that names `Impersonate-User` there would see its
//! request run with the proxy's own rights. So it may name what concerns the connection, and nothing else.

use http::header::{CONNECTION, UPGRADE};
use http::{HeaderMap, StatusCode};

use crate::failure::Failure;
use capi_translate::target::Target;

/// What `Connection` may name.
const CONNECTION_LEVEL: [&str; 4] = ["keep-alive", "close", "upgrade", "te"];
/// The protocols that the API server switches to.
const PROTOCOLS: [&str; 2] = ["SPDY/3.1", "websocket"];

/// Whether a request asks for another protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wants {
    Http,
    Upgrade,
}

/// Refuses a `Connection` header that names anything but the connection's own.
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
        "the Connection header names a header that concerns more than the connection",
    ))
}

fn is_connection_level(name: &str) -> bool {
    let name = name.trim_matches([' ', '\t']);
    name.is_empty()
        || CONNECTION_LEVEL
            .iter()
            .any(|known| known.eq_ignore_ascii_case(name))
}

/// Whether the request asks for another protocol; refused where there is none, and where it is one that is not known.
///
/// Such a request ends its connection in any case: the bytes behind it are not looked at any more.
pub(crate) fn wants(headers: &HeaderMap, target: &Target) -> Result<Wants, Failure> {
    let mut upgrades = headers.get_all(UPGRADE).iter();
    let Some(first) = upgrades.next() else {
        return Ok(Wants::Http);
    };
    let refuse = |message| Err(Failure::client(StatusCode::BAD_REQUEST, message).closing());
    if !target.is_upgrade() {
        return refuse("only exec, attach, portforward and proxy may switch protocols");
    }
    let known = PROTOCOLS
        .iter()
        .any(|known| first.as_bytes().eq_ignore_ascii_case(known.as_bytes()));
    if upgrades.next().is_some() || !known {
        return refuse("the Upgrade header names something else than SPDY/3.1 or websocket");
    }
    if !names_upgrade(headers) {
        return refuse("the Connection header does not name the Upgrade header");
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
