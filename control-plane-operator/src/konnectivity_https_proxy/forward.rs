//! Requests with an absolute URL: what is sent on. Pure.

use http::header::{CONNECTION, HOST, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER};
use http::header::{TRANSFER_ENCODING, UPGRADE};
use http::request::Parts;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};

use crate::konnectivity::proxies::ProxyUrl;
use crate::konnectivity::target::Target;

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

/// What a client requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Requested {
    /// A tunnel.
    Tunnel(Target),
    /// One request.
    Forward(Target),
}

/// A request that no proxy can serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Invalid {
    #[error("this is a proxy: send CONNECT HOST:PORT, or an absolute URL")]
    NotForProxy,
    #[error("use CONNECT for https URLs")]
    Https,
    #[error("only http URLs and CONNECT are supported")]
    Scheme,
    #[error("the host is not an IP address or a DNS name")]
    Host,
    #[error("the port is missing or invalid")]
    Port,
}

/// Reads the target of a request.
pub(super) fn requested(method: &Method, uri: &Uri) -> Result<Requested, Invalid> {
    let authority = uri.authority().ok_or(Invalid::NotForProxy)?;
    let host = authority.host().parse().map_err(|_| Invalid::Host)?;
    if *method == Method::CONNECT {
        let port = port(authority)?.ok_or(Invalid::Port)?;
        return Ok(Requested::Tunnel(Target::new(host, port)));
    }
    match uri.scheme() {
        Some(scheme) if *scheme == Scheme::HTTP => {}
        Some(scheme) if *scheme == Scheme::HTTPS => return Err(Invalid::Https),
        Some(_) => return Err(Invalid::Scheme),
        None => return Err(Invalid::NotForProxy),
    }
    let port = port(authority)?.unwrap_or(80);
    Ok(Requested::Forward(Target::new(host, port)))
}

/// The port, if there is one. `Authority::port` ignores invalid ones.
fn port(authority: &Authority) -> Result<Option<u16>, Invalid> {
    let address = authority.as_str().rsplit('@').next().unwrap_or_default();
    match address.strip_prefix(authority.host()) {
        Some("" | ":") => Ok(None),
        Some(rest) => {
            let port = rest.strip_prefix(':').and_then(|port| port.parse().ok());
            port.map(Some).ok_or(Invalid::Port)
        }
        None => Err(Invalid::Port),
    }
}

/// Rewrites a request for the server of its URL, or for the proxy. Credentials in the URL are dropped, and so are those
/// for this proxy.
pub(super) fn rewrite(parts: &mut Parts, target: &Target, proxy: Option<&ProxyUrl>) {
    let host = match target.port {
        80 => target.host.to_string(),
        _ => target.to_string(),
    };
    let path = parts.uri.path_and_query().cloned();
    let path = path.unwrap_or(PathAndQuery::from_static("/"));
    parts.uri = match proxy {
        None => Uri::from(path),
        Some(_) => absolute(&host, path),
    };
    strip_hop_by_hop(&mut parts.headers);
    if let Ok(host) = HeaderValue::from_str(&host) {
        parts.headers.insert(HOST, host);
    }
    let authorization = proxy.and_then(|proxy| proxy.authorization.as_ref());
    let authorization = authorization.and_then(|it| HeaderValue::from_str(it.value()).ok());
    if let Some(mut authorization) = authorization {
        authorization.set_sensitive(true);
        parts.headers.insert(PROXY_AUTHORIZATION, authorization);
    }
}

fn absolute(host: &str, path: PathAndQuery) -> Uri {
    let uri = Uri::builder()
        .scheme(Scheme::HTTP)
        .authority(host)
        .path_and_query(path)
        .build();
    uri.expect("invariant: a host and a port are an authority")
}

/// Removes headers that are for one connection only, known ones and those that `Connection` names.
pub(super) fn strip_hop_by_hop(headers: &mut HeaderMap) {
    let listed: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    let known = [
        CONNECTION,
        KEEP_ALIVE,
        PROXY_AUTHENTICATE,
        PROXY_AUTHORIZATION,
        PROXY_CONNECTION,
        TE,
        TRAILER,
        TRANSFER_ENCODING,
        UPGRADE,
    ];
    for name in listed.into_iter().chain(known) {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn read(method: &str, uri: &str) -> String {
        let method = method.parse().unwrap();
        match requested(&method, &uri.parse().unwrap()) {
            Ok(Requested::Tunnel(target)) => format!("tunnel {target}"),
            Ok(Requested::Forward(target)) => format!("forward {target}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn targets_are_read() {
        for (method, uri, expected) in [
            ("CONNECT", "quay.io:443", "tunnel quay.io:443"),
            ("CONNECT", "[fd00::1]:443", "tunnel [fd00::1]:443"),
            ("CONNECT", "user:pass@quay.io:443", "tunnel quay.io:443"),
            ("CONNECT", "quay.io", "the port is missing or invalid"),
            (
                "CONNECT",
                "a_b.c~d:443",
                "the host is not an IP address or a DNS name",
            ),
            ("GET", "http://quay.io/v2/", "forward quay.io:80"),
            ("GET", "HTTP://quay.io:8080", "forward quay.io:8080"),
            ("GET", "http://quay.io:/", "forward quay.io:80"),
            (
                "GET",
                "http://quay.io:70000/",
                "the port is missing or invalid",
            ),
            ("CONNECT", "quay.io:70000", "the port is missing or invalid"),
            ("GET", "http://[fd00::1]/", "forward [fd00::1]:80"),
            ("GET", "https://quay.io/", "use CONNECT for https URLs"),
            (
                "GET",
                "ftp://quay.io/",
                "only http URLs and CONNECT are supported",
            ),
            (
                "GET",
                "/healthz",
                "this is a proxy: send CONNECT HOST:PORT, or an absolute URL",
            ),
            (
                "OPTIONS",
                "*",
                "this is a proxy: send CONNECT HOST:PORT, or an absolute URL",
            ),
        ] {
            assert_eq!(read(method, uri), expected, "{method} {uri}");
        }
    }

    fn rewritten(uri: &str, proxy: Option<&str>) -> (String, HeaderMap) {
        let request = Request::get(uri)
            .header("host", "other.example.com")
            .header("connection", "close, X-Hop")
            .header("x-hop", "a")
            .header("x-end", "b")
            .header("keep-alive", "timeout=5")
            .header("proxy-connection", "keep-alive")
            .header("proxy-authorization", "Basic b2xk")
            .header("te", "trailers")
            .header("upgrade", "websocket")
            .header("authorization", "Bearer token");
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        let Ok(Requested::Forward(target)) = requested(&parts.method, &parts.uri) else {
            panic!("{uri}");
        };
        let proxy = proxy.map(|url| ProxyUrl::read(url).unwrap().unwrap());
        rewrite(&mut parts, &target, proxy.as_ref());
        (parts.uri.to_string(), parts.headers)
    }

    #[test]
    fn requests_are_rewritten_for_their_server_or_for_a_proxy() {
        for (uri, proxy, expected, host) in [
            (
                "http://a.example.com/x?y=z",
                None,
                "/x?y=z",
                "a.example.com",
            ),
            (
                "http://u:p@a.example.com:8080",
                None,
                "/",
                "a.example.com:8080",
            ),
            ("http://a.example.com:80/", None, "/", "a.example.com"),
            ("http://[fd00::1]:81/x", None, "/x", "[fd00::1]:81"),
            (
                "http://u:p@a.example.com/x?y=z",
                Some("http://proxy:3128"),
                "http://a.example.com/x?y=z",
                "a.example.com",
            ),
            (
                "http://a.example.com:8080",
                Some("http://proxy:3128"),
                "http://a.example.com:8080/",
                "a.example.com:8080",
            ),
        ] {
            let (sent, headers) = rewritten(uri, proxy);
            assert_eq!(sent, expected, "{uri}");
            assert_eq!(headers["host"], host, "{uri}");
            let mut names: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
            names.sort_unstable();
            assert_eq!(names, ["authorization", "host", "x-end"], "{uri}");
        }
    }

    #[test]
    fn proxies_get_their_own_credentials() {
        let (_, headers) = rewritten("http://a.example.com/", Some("http://u:p@proxy:3128"));
        assert_eq!(headers["proxy-authorization"], "Basic dTpw");
        assert!(headers["proxy-authorization"].is_sensitive());
    }
}
