//! The target of a connection: a host and a port. Pure.
//!
//! A host is an IP address or a DNS name and nothing else, so that it can be written into a request line.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// Maximum length of a DNS name.
const MAX_NAME: usize = 253;

/// A host.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Host {
    /// An address.
    Ip(IpAddr),
    /// A DNS name, in lower case.
    Name(String),
}

/// A host and a port.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Target {
    pub(crate) host: Host,
    pub(crate) port: u16,
}

/// A host that is neither an IP address nor a DNS name. Its text may be of any length, so it is not quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the host is not an IP address or a DNS name")]
pub(crate) struct InvalidHost;

// === impl Host ===

impl Host {
    /// The name in the form in which it is compared, or none for an address.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Ip(_) => None,
            Self::Name(name) => Some(name.trim_end_matches('.')),
        }
    }
}

impl FromStr for Host {
    type Err = InvalidHost;

    fn from_str(text: &str) -> Result<Self, InvalidHost> {
        let bare = text
            .strip_prefix('[')
            .and_then(|text| text.strip_suffix(']'));
        if let Ok(address) = bare.unwrap_or(text).parse::<IpAddr>() {
            return Ok(Self::Ip(address.to_canonical()));
        }
        if is_name(text) {
            return Ok(Self::Name(text.to_ascii_lowercase()));
        }
        Err(InvalidHost)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(IpAddr::V4(address)) => address.fmt(f),
            Self::Ip(IpAddr::V6(address)) => write!(f, "[{address}]"),
            Self::Name(name) => name.fmt(f),
        }
    }
}

/// Underscores are no part of host names, but of names that DNS servers resolve.
fn is_name(text: &str) -> bool {
    let text = text.strip_suffix('.').unwrap_or(text);
    let is_label = |label: &str| {
        let mut bytes = label.bytes();
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    text.len() <= MAX_NAME && text.split('.').all(is_label)
}

// === impl Target ===

impl Target {
    /// A target.
    pub(crate) fn new(host: Host, port: u16) -> Self {
        Self { host, port }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hosts_are_addresses_or_names() {
        for (text, expected) in [
            ("10.0.0.1", Some("10.0.0.1")),
            ("fd00::1", Some("[fd00::1]")),
            ("[fd00::1]", Some("[fd00::1]")),
            ("::ffff:10.0.0.1", Some("10.0.0.1")),
            ("Quay.IO", Some("quay.io")),
            ("example.com.", Some("example.com.")),
            ("_ldap._tcp.example.com", Some("_ldap._tcp.example.com")),
            ("", None),
            (".", None),
            ("a..b", None),
            ("-a", None),
            ("a b", None),
            ("a:1", None),
            ("user@a", None),
            ("a\r\nX: y", None),
            ("a/b", None),
            ("ä.example.com", None),
            ("fe80::1%eth0", None),
        ] {
            let host = text.parse::<Host>().ok().map(|host| host.to_string());
            assert_eq!(host.as_deref(), expected, "{text:?}");
        }
        let label = "a".repeat(63);
        assert!(label.parse::<Host>().is_ok());
        assert!(format!("{label}a").parse::<Host>().is_err());
        let long = vec![label; 4].join(".");
        assert!(long.parse::<Host>().is_err());
        assert!(long[..253].parse::<Host>().is_ok());
    }

    #[test]
    fn names_are_compared_without_the_final_dot() {
        let host: Host = "example.com.".parse().unwrap();
        assert_eq!(host.name(), Some("example.com"));
        let address: Host = "10.0.0.1".parse().unwrap();
        assert_eq!(address.name(), None);
    }

    proptest! {
        /// A host never ends a line of a request, whatever a client sends.
        #[test]
        fn hosts_are_safe_in_a_request_line(text in "\\PC*|[a-z.\\r\\n :@/%\\[\\]]{0,20}") {
            if let Ok(host) = text.parse::<Host>() {
                let written = Target::new(host, 443).to_string();
                prop_assert!(written.bytes().all(|byte| byte.is_ascii_graphic()), "{written:?}");
            }
        }
    }
}
