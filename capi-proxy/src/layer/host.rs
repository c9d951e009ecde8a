//! Accepted names in the `Host` header, and rejection of browsers.
//!
//! A web page can make a browser send requests to any address, including loopback, and resolve its own name to it. It
//! cannot choose `Host` or omit `Origin`.

use http::header::{HOST, ORIGIN, REFERER};
use http::{HeaderMap, StatusCode};

use crate::failure::Failure;

/// Names that are always accepted.
const LOCAL: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The accepted names, with any port.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hosts {
    more: Vec<String>,
}

// === impl Hosts ===

impl Hosts {
    /// The local names, and `more`.
    pub(crate) fn new(more: Vec<String>) -> Self {
        Self { more }
    }

    /// Rejects requests for other names, and those that a browser sends for a web page.
    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<(), Failure> {
        let host = headers
            .get(HOST)
            .and_then(|host| host.to_str().ok())
            .map(without_port);
        if !host.is_some_and(|host| self.allows(host)) {
            return Err(Failure::client(
                StatusCode::FORBIDDEN,
                "the Host header names another server: use localhost, or allow the name with --allow-host",
            ));
        }
        if headers.contains_key(ORIGIN) || headers.contains_key(REFERER) {
            return Err(Failure::client(
                StatusCode::FORBIDDEN,
                "requests from web pages are not allowed",
            ));
        }
        Ok(())
    }

    fn allows(&self, host: &str) -> bool {
        let more = self.more.iter().map(String::as_str);
        LOCAL
            .into_iter()
            .chain(more)
            .any(|allowed| allowed.eq_ignore_ascii_case(host))
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port))
            if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.ends_with(':') =>
        {
            name
        }
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn check(hosts: &Hosts, headers: &[(&'static str, &str)]) -> bool {
        let headers = headers.iter().map(|(name, value)| {
            (
                http::HeaderName::from_static(name),
                HeaderValue::from_str(value).unwrap(),
            )
        });
        hosts.check(&headers.collect()).is_ok()
    }

    /// Check S04.
    #[test]
    fn only_local_host_names_are_accepted() {
        let hosts = Hosts::new(vec!["proxy.internal".to_owned()]);
        for host in [
            "localhost",
            "LocalHost:8080",
            "127.0.0.1:1",
            "[::1]",
            "[::1]:8080",
            "proxy.internal:80",
        ] {
            assert!(check(&hosts, &[("host", host)]), "{host}");
        }
        for host in [
            "",
            "evil.com",
            "evil.com:8080",
            "localhost.evil.com",
            "127.0.0.1.evil.com",
            "127.0.0.1:80:80",
            "::1",
            "[::1",
            "localhost:http",
            "evil.com@localhost",
            "localhost ",
            "127.1",
            "0.0.0.0",
        ] {
            assert!(!check(&hosts, &[("host", host)]), "{host:?}");
        }
        assert!(!check(&hosts, &[]));
    }

    /// Check S04.
    #[test]
    fn requests_from_web_pages_are_rejected() {
        let hosts = Hosts::default();
        for name in ["origin", "referer"] {
            assert!(
                !check(&hosts, &[("host", "localhost"), (name, "null")]),
                "{name}"
            );
        }
    }
}
