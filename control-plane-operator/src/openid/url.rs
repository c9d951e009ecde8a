//! URLs that users choose, and that this operator requests. Pure.

use std::fmt;
use std::net::IpAddr;

use http::Uri;
use http::uri::Authority;

use crate::konnectivity::target::{Host, Target};

/// The longest URL.
const MAX_LENGTH: usize = 2048;
const DEFAULT_PORT: u16 = 443;

/// An `https` URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HttpsUrl {
    pub(super) target: Target,
    text: String,
    path: String,
}

/// A URL that is not requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidUrl {
    #[error("it is longer than {MAX_LENGTH} bytes")]
    TooLong,
    #[error("expected https://HOST or https://HOST:PORT, with or without a path")]
    Form,
    #[error("it has credentials")]
    Credentials,
    #[error("it has a fragment")]
    Fragment,
    #[error("it has a query")]
    Query,
    #[error("the host is not an IP address or a DNS name")]
    Host,
    #[error("the port is invalid")]
    Port,
    #[error("the host is a loopback, link-local or multicast address")]
    Local,
}

// === impl HttpsUrl ===

impl HttpsUrl {
    /// Reads a URL.
    pub(super) fn parse(text: &str) -> Result<Self, InvalidUrl> {
        if text.len() > MAX_LENGTH {
            return Err(InvalidUrl::TooLong);
        }
        // The parser drops it.
        if text.contains('#') {
            return Err(InvalidUrl::Fragment);
        }
        let uri: Uri = text.parse().map_err(|_| InvalidUrl::Form)?;
        let (Some("https"), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(InvalidUrl::Form);
        };
        if authority.as_str().contains('@') {
            return Err(InvalidUrl::Credentials);
        }
        let host: Host = authority.host().parse().map_err(|_| InvalidUrl::Host)?;
        if is_local(&host) {
            return Err(InvalidUrl::Local);
        }
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        Ok(Self {
            target: Target::new(host, port(authority)?),
            text: text.to_owned(),
            path: path.to_owned(),
        })
    }

    /// The URL of an issuer's discovery document.
    pub(super) fn discovery(issuer: &str) -> Result<Self, InvalidUrl> {
        if issuer.contains('?') {
            return Err(InvalidUrl::Query);
        }
        let issuer = issuer.trim_end_matches('/');
        Self::parse(&format!("{issuer}/.well-known/openid-configuration"))
    }

    /// Path and query.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Header `Host`.
    pub(super) fn host(&self) -> String {
        match self.target.port {
            DEFAULT_PORT => self.target.host.to_string(),
            _ => self.target.to_string(),
        }
    }
}

impl fmt::Display for HttpsUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The port. `Authority::port` ignores invalid ones.
fn port(authority: &Authority) -> Result<u16, InvalidUrl> {
    match authority.as_str().strip_prefix(authority.host()) {
        Some("" | ":") => Ok(DEFAULT_PORT),
        Some(rest) => {
            let port = rest.strip_prefix(':').and_then(|port| port.parse().ok());
            port.filter(|port| *port != 0).ok_or(InvalidUrl::Port)
        }
        None => Err(InvalidUrl::Port),
    }
}

/// Whether it is the host that connects: an agent of the tunnel, on a node.
fn is_local(host: &Host) -> bool {
    match host {
        Host::Ip(address) => !is_allowed(address),
        Host::Name(_) => {
            let name = host.name().unwrap_or_default();
            name == "localhost" || name.ends_with(".localhost")
        }
    }
}

/// Whether an address may be connected to. Private addresses may: a provider is often in the network of its users.
pub(super) fn is_allowed(address: &IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            !(address.is_loopback()
                || address.is_unspecified()
                || address.is_link_local()
                || address.is_multicast()
                || address.is_broadcast())
        }
        IpAddr::V6(address) => {
            !(address.is_loopback()
                || address.is_unspecified()
                || address.is_unicast_link_local()
                || address.is_multicast())
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn urls_of_other_hosts_are_read() {
        for (text, target, host, path) in [
            (
                "https://sso.example.com",
                "sso.example.com:443",
                "sso.example.com",
                "/",
            ),
            (
                "HTTPS://SSO.example.com:443/",
                "sso.example.com:443",
                "sso.example.com",
                "/",
            ),
            (
                "https://10.0.0.7:8443/a?b=c",
                "10.0.0.7:8443",
                "10.0.0.7:8443",
                "/a?b=c",
            ),
            ("https://[fd00::7]:/a", "[fd00::7]:443", "[fd00::7]", "/a"),
        ] {
            let url = HttpsUrl::parse(text).unwrap();
            assert_eq!(url.target.to_string(), target, "{text}");
            assert_eq!((url.host().as_str(), url.path()), (host, path), "{text}");
            assert_eq!(url.to_string(), text);
        }
    }

    #[test]
    fn other_urls_are_refused() {
        let long = format!("https://a/{}", "a".repeat(MAX_LENGTH));
        for (text, expected) in [
            ("", InvalidUrl::Form),
            ("sso.example.com", InvalidUrl::Form),
            ("http://sso.example.com", InvalidUrl::Form),
            ("file:///etc/passwd", InvalidUrl::Form),
            ("https://", InvalidUrl::Form),
            ("https://a b", InvalidUrl::Form),
            ("https://a\r\nX: y", InvalidUrl::Form),
            ("https://user:pass@a", InvalidUrl::Credentials),
            ("https://a#b", InvalidUrl::Fragment),
            ("https://a:0", InvalidUrl::Port),
            ("https://a:70000", InvalidUrl::Port),
            ("https://a~b", InvalidUrl::Host),
            ("https://127.0.0.1", InvalidUrl::Local),
            ("https://[::1]", InvalidUrl::Local),
            ("https://[::ffff:127.0.0.1]", InvalidUrl::Local),
            ("https://169.254.169.254/latest", InvalidUrl::Local),
            ("https://[fe80::1]", InvalidUrl::Local),
            ("https://0.0.0.0", InvalidUrl::Local),
            ("https://[::]", InvalidUrl::Local),
            ("https://224.0.0.1", InvalidUrl::Local),
            ("https://localhost:6443", InvalidUrl::Local),
            ("https://a.LOCALHOST.", InvalidUrl::Local),
            (&long, InvalidUrl::TooLong),
        ] {
            assert_eq!(HttpsUrl::parse(text), Err(expected), "{text:?}");
        }
    }

    #[test]
    fn discovery_documents_are_below_their_issuer() {
        for issuer in ["https://a/realm", "https://a/realm/", "https://a/realm//"] {
            let url = HttpsUrl::discovery(issuer).unwrap();
            assert_eq!(url.path(), "/realm/.well-known/openid-configuration");
        }
        let refused = HttpsUrl::discovery("https://a?b=c");
        assert_eq!(refused, Err(InvalidUrl::Query));
    }

    proptest! {
        /// A URL never ends a line of a request, whatever a user sets.
        #[test]
        fn urls_are_safe_in_a_request(text in "\\PC{0,40}|https://[a-z.\\r\\n :@/%?#\\[\\]0-9]{0,30}") {
            if let Ok(url) = HttpsUrl::parse(&text) {
                let written = format!("{}{}", url.host(), url.path());
                prop_assert!(written.bytes().all(|byte| byte > b' ' && byte != 0x7f), "{written:?}");
            }
        }
    }
}
