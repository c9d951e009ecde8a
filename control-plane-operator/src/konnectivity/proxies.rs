//! HTTP proxies of a cluster: their URLs, with credentials that are never shown, and which targets they are for. Pure.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::connect::Authorization;
use super::no_proxy::NoProxy;
use super::target::{Host, Target};

/// The proxies of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Proxies {
    pub(crate) http: Option<ProxyUrl>,
    pub(crate) https: Option<ProxyUrl>,
    pub(crate) no_proxy: NoProxy,
}

/// The scheme of a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

/// A proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProxyUrl {
    /// With [`Scheme::Https`] the connection to the proxy uses TLS.
    pub(crate) scheme: Scheme,
    pub(crate) target: Target,
    pub(crate) authorization: Option<Authorization>,
}

/// The value of a flag that may have credentials: it is shown nowhere.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Confidential(pub String);

/// A URL that is none of a proxy. It is not quoted, because it may have credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected http://HOST:PORT or https://HOST:PORT, with or without credentials USER:PASSWORD@"
)]
pub(crate) struct InvalidUrl;

// === impl Proxies ===

impl Proxies {
    /// The proxy for a target, if it is not reached without one.
    pub(crate) fn find(&self, scheme: Scheme, target: &Target) -> Option<&ProxyUrl> {
        let proxy = match scheme {
            Scheme::Http => self.http.as_ref(),
            Scheme::Https => self.https.as_ref(),
        };
        proxy.filter(|_| !self.no_proxy.matches(target))
    }

    /// The hosts of the proxies.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = &Host> {
        let proxies = self.http.iter().chain(&self.https);
        proxies.map(|proxy| &proxy.target.host)
    }
}

// === impl ProxyUrl ===

impl ProxyUrl {
    /// Reads a URL; none if it is empty. Without a scheme it is that of an HTTP proxy.
    pub(crate) fn read(text: &str) -> Result<Option<Self>, InvalidUrl> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(None);
        }
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (Scheme::Http, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (Scheme::Https, rest),
            Some(_) => return Err(InvalidUrl),
            None => (Scheme::Http, text),
        };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let (user, address) = match authority.rsplit_once('@') {
            Some((user, address)) => (Some(user), address),
            None => (None, authority),
        };
        let authorization = user.map(basic).transpose()?;
        Ok(Some(Self {
            scheme,
            target: target(address, scheme)?,
            authorization,
        }))
    }
}

/// The target of `HOST` or `HOST:PORT`.
fn target(address: &str, scheme: Scheme) -> Result<Target, InvalidUrl> {
    // The colons of an IPv6 address are in brackets.
    let (host, port) = match address.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (address, None),
    };
    let port = match (port, scheme) {
        (None | Some(""), Scheme::Http) => 80,
        (None | Some(""), Scheme::Https) => 443,
        (Some(port), _) => port.parse().map_err(|_| InvalidUrl)?,
    };
    let host = host.parse().map_err(|_| InvalidUrl)?;
    Ok(Target::new(host, port))
}

/// The header for the user information of a URL.
fn basic(user: &str) -> Result<Authorization, InvalidUrl> {
    let (name, password) = user.split_once(':').unwrap_or((user, ""));
    let mut plain = decode(name).ok_or(InvalidUrl)?;
    plain.push(b':');
    plain.extend(decode(password).ok_or(InvalidUrl)?);
    let encoded = STANDARD.encode(plain);
    Ok(Authorization::new(format!("Basic {encoded}")))
}

/// Resolves percent escapes.
fn decode(text: &str) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        let (high, low) = (digit()?, digit()?);
        decoded.push(u8::try_from(high * 16 + low).ok()?);
    }
    Some(decoded)
}

impl fmt::Display for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
        };
        write!(f, "{scheme}://{}", self.target)
    }
}

// === impl Confidential ===

impl FromStr for Confidential {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Debug for Confidential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Confidential")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> ProxyUrl {
        ProxyUrl::read(text).unwrap().unwrap()
    }

    #[test]
    fn urls_are_read() {
        for (text, shown, authorization) in [
            ("http://proxy:3128", "http://proxy:3128", None),
            ("HTTP://Proxy:3128/", "http://proxy:3128", None),
            (
                "proxy.example.com:3128",
                "http://proxy.example.com:3128",
                None,
            ),
            ("http://proxy", "http://proxy:80", None),
            ("http://proxy:", "http://proxy:80", None),
            ("https://proxy", "https://proxy:443", None),
            ("https://[fd00::1]", "https://[fd00::1]:443", None),
            (
                "https://[fd00::1]:3128/path?x=y",
                "https://[fd00::1]:3128",
                None,
            ),
            ("http://a:b@proxy:1", "http://proxy:1", Some("a:b")),
            (
                "http://a:p%40ss%3a@proxy:1",
                "http://proxy:1",
                Some("a:p@ss:"),
            ),
            ("http://a:p@ss@proxy:1", "http://proxy:1", Some("a:p@ss")),
            ("http://a@proxy:1", "http://proxy:1", Some("a:")),
        ] {
            let url = read(text);
            assert_eq!(url.to_string(), shown, "{text}");
            let expected = authorization.map(|plain| format!("Basic {}", STANDARD.encode(plain)));
            let sent = url.authorization.as_ref().map(Authorization::value);
            assert_eq!(sent, expected.as_deref(), "{text}");
        }
        assert_eq!(ProxyUrl::read(" "), Ok(None));
        for text in [
            "socks5://proxy:1080",
            "http://",
            "http://proxy:x",
            "http://proxy:70000",
            "http://a b",
            "http://a:%4@proxy:1",
            "http://a:%zz@proxy:1",
        ] {
            assert_eq!(ProxyUrl::read(text), Err(InvalidUrl), "{text}");
        }
    }

    #[test]
    fn credentials_are_never_shown() {
        let url = read("http://user:secret@proxy:1");
        let flag: Confidential = "http://user:secret@proxy:1".parse().unwrap();
        let error = ProxyUrl::read("ftp://user:secret@proxy").unwrap_err();
        let shown = format!("{url} {url:?} {flag:?} {error} {error:?}");
        let encoded = STANDARD.encode("user:secret");
        assert!(
            !shown.contains("secret") && !shown.contains(&encoded),
            "{shown}"
        );
    }

    #[test]
    fn the_scheme_selects_the_proxy() {
        let proxies = Proxies {
            http: Some(read("http://plain:1")),
            https: Some(read("http://secure:1")),
            no_proxy: NoProxy::new(".svc"),
        };
        let find = |scheme, host: &str| {
            let target = Target::new(host.parse().unwrap(), 443);
            proxies.find(scheme, &target).map(ToString::to_string)
        };
        assert_eq!(find(Scheme::Http, "quay.io").unwrap(), "http://plain:1");
        assert_eq!(find(Scheme::Https, "quay.io").unwrap(), "http://secure:1");
        assert_eq!(find(Scheme::Https, "a.b.svc"), None);
        let hosts: Vec<_> = proxies.hosts().map(ToString::to_string).collect();
        assert_eq!(hosts, ["plain", "secure"]);
    }

    proptest! {
        /// A URL is read or refused, and never puts line breaks into a request.
        #[test]
        fn any_text_is_handled(text in "\\PC{0,60}|http://[a-z:@%0-9\\r\\n]{0,40}") {
            if let Ok(Some(url)) = ProxyUrl::read(&text) {
                let authorization = url.authorization.as_ref().map(Authorization::value);
                let is_safe = |text: &str| !text.contains(['\r', '\n']);
                prop_assert!(is_safe(&url.to_string()));
                prop_assert!(is_safe(authorization.unwrap_or_default()));
            }
        }
    }
}
