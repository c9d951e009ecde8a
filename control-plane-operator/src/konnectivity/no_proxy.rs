//! `NO_PROXY`: which targets are reached without a proxy. Pure; the rules are those of programs in Go.

use std::net::IpAddr;

use ipnet::IpNet;

use super::target::{Host, Target};

/// The list of targets that are reached without a proxy. Loopback addresses and `localhost` always are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NoProxy(Vec<Entry>);

/// An entry of the list, with a port if it is for one only.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    matcher: Matcher,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Matcher {
    /// `*`
    All,
    /// `10.0.0.0/8`
    Network(IpNet),
    /// `10.0.0.1`
    Address(IpAddr),
    /// `example.com`: the domain and its subdomains.
    Domain(String),
    /// `.example.com` or `*.example.com`: subdomains only.
    Subdomains(String),
}

// === impl NoProxy ===

impl NoProxy {
    /// Reads a list, separated by commas. Entries that are nothing of the known kinds match nothing.
    pub(crate) fn new(list: &str) -> Self {
        Self(list.split(',').filter_map(Entry::new).collect())
    }

    /// Whether the target is reached without a proxy.
    pub(crate) fn matches(&self, target: &Target) -> bool {
        is_local(&target.host) || self.0.iter().any(|entry| entry.matches(target))
    }
}

fn is_local(host: &Host) -> bool {
    match host {
        Host::Ip(address) => address.is_loopback(),
        Host::Name(name) => name == "localhost",
    }
}

// === impl Entry ===

impl Entry {
    fn new(text: &str) -> Option<Self> {
        let text = text.trim().to_ascii_lowercase();
        let any_port = |matcher| {
            Some(Self {
                matcher,
                port: None,
            })
        };
        if text == "*" {
            return any_port(Matcher::All);
        }
        if let Ok(network) = text.parse() {
            return any_port(Matcher::Network(network));
        }
        // An IPv6 address without brackets has colons, and no port.
        if let Ok(address) = text.parse::<IpAddr>() {
            return any_port(Matcher::Address(address.to_canonical()));
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => (host, Some(port.parse().ok()?)),
            None => (text.as_str(), None),
        };
        let matcher = Matcher::new(host)?;
        Some(Self { matcher, port })
    }

    fn matches(&self, target: &Target) -> bool {
        self.port.is_none_or(|port| port == target.port) && self.matcher.matches(&target.host)
    }
}

// === impl Matcher ===

impl Matcher {
    fn new(host: &str) -> Option<Self> {
        let bare = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        if let Ok(address) = bare.unwrap_or(host).parse::<IpAddr>() {
            return Some(Self::Address(address.to_canonical()));
        }
        let host = host.strip_prefix('*').unwrap_or(host);
        match host.strip_prefix('.') {
            Some("") => None,
            Some(domain) => Some(Self::Subdomains(domain.to_owned())),
            None if host.is_empty() => None,
            None => Some(Self::Domain(host.to_owned())),
        }
    }

    fn matches(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::All, _) => true,
            (Self::Network(network), Host::Ip(address)) => network.contains(address),
            (Self::Address(one), Host::Ip(address)) => one == address,
            (Self::Domain(domain), Host::Name(_)) => {
                host.name() == Some(domain) || is_subdomain(host, domain)
            }
            (Self::Subdomains(domain), Host::Name(_)) => is_subdomain(host, domain),
            (Self::Network(_) | Self::Address(_), Host::Name(_)) => false,
            (Self::Domain(_) | Self::Subdomains(_), Host::Ip(_)) => false,
        }
    }
}

fn is_subdomain(host: &Host, domain: &str) -> bool {
    let rest = host.name().and_then(|name| name.strip_suffix(domain));
    rest.is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn target(text: &str) -> Target {
        let (host, port) = text.rsplit_once(':').unwrap();
        Target::new(host.parse().unwrap(), port.parse().unwrap())
    }

    #[test]
    fn entries_match_as_in_go() {
        for (list, text, expected) in [
            ("", "example.com:443", false),
            ("", "localhost:443", true),
            ("", "127.0.0.2:443", true),
            ("", "[::1]:443", true),
            ("", "localhost.example.com:443", false),
            ("*", "example.com:443", true),
            ("*", "10.0.0.1:443", true),
            ("example.com", "example.com:443", true),
            ("example.com", "Example.COM.:443", true),
            ("EXAMPLE.com", "a.b.example.com:80", true),
            ("example.com", "notexample.com:443", false),
            ("example.com", "example.com.evil.org:443", false),
            (".example.com", "a.example.com:443", true),
            (".example.com", "example.com:443", false),
            ("*.example.com", "a.example.com:443", true),
            ("*.example.com", "example.com:443", false),
            (".svc", "a.b.svc:443", true),
            (".", "example.com:443", false),
            ("example.com:8443", "example.com:8443", true),
            ("example.com:8443", "a.example.com:8443", true),
            ("example.com:8443", "example.com:443", false),
            ("example.com:https", "example.com:443", false),
            ("10.0.0.1", "10.0.0.1:443", true),
            ("10.0.0.1", "10.0.0.2:443", false),
            ("10.0.0.1:443", "10.0.0.1:443", true),
            ("10.0.0.1:443", "10.0.0.1:80", false),
            ("0.0.0.1", "10.0.0.1:443", false),
            ("10.0.0.0/8", "10.200.0.1:443", true),
            ("10.0.0.1/8", "10.200.0.1:443", true),
            ("10.0.0.0/8", "11.0.0.1:443", false),
            ("10.0.0.0/8", "ten.example.com:443", false),
            ("fd00::/8", "[fd01::1]:443", true),
            ("fd00::1", "[fd00::1]:443", true),
            ("[fd00::1]:443", "[fd00::1]:443", true),
            ("[fd00::1]:443", "[fd00::1]:80", false),
            (" a.com , ,b.com", "b.com:443", true),
            ("a.com b.com", "b.com:443", false),
        ] {
            let matches = NoProxy::new(list).matches(&target(text));
            assert_eq!(matches, expected, "{list:?} {text}");
        }
    }

    proptest! {
        /// Any list can be read, and a domain always matches itself.
        #[test]
        fn lists_never_fail(list in "\\PC{0,40}", domain in "[a-z]{1,8}\\.[a-z]{2,5}") {
            let host = target(&format!("{domain}:443"));
            let _ = NoProxy::new(&list).matches(&host);
            let list = NoProxy::new(&format!("x,{domain}"));
            prop_assert!(list.matches(&host));
        }
    }
}
