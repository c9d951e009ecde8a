//! References to images: `host[:port]/path[:tag][@digest]`.

use std::fmt;
use std::str::FromStr;

/// The longest repository that registries accept.
const LONGEST_REPOSITORY: usize = 255;
/// The longest tag.
const LONGEST_TAG: usize = 128;

/// A reference to an image. The registry is always named: nothing is pulled from a default one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    host: String,
    path: String,
    tag: Option<String>,
    digest: Option<Digest>,
}

/// A SHA-256 digest: `sha256:` and 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(String);

/// An invalid image reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is not a reference to an image: {problem}")]
pub struct InvalidReference {
    given: String,
    problem: &'static str,
}

// === impl Reference ===

impl Reference {
    /// The registry's host, with its port if it has one.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The repository's path at the registry.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The repository with the registry: everything but tag and digest.
    pub fn repository(&self) -> String {
        format!("{}/{}", self.host, self.path)
    }

    /// Its digest, which takes precedence over a tag.
    pub fn digest(&self) -> Option<&Digest> {
        self.digest.as_ref()
    }

    /// Its tag; `latest` by default.
    pub fn tag(&self) -> &str {
        self.tag.as_deref().unwrap_or("latest")
    }

    /// The same repository's image of this digest.
    pub fn with_digest(&self, digest: Digest) -> Self {
        Self {
            digest: Some(digest),
            tag: None,
            ..self.clone()
        }
    }

    /// The identifier in requests to the registry.
    pub(crate) fn identifier(&self) -> &str {
        self.digest.as_ref().map_or(self.tag(), Digest::as_str)
    }
}

impl FromStr for Reference {
    type Err = InvalidReference;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).map_err(|problem| InvalidReference {
            given: text.chars().take(LONGEST_REPOSITORY).collect(),
            problem,
        })
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.host, self.path)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        if let Some(digest) = &self.digest {
            write!(f, "@{digest}")?;
        }
        Ok(())
    }
}

fn parse(text: &str) -> Result<Reference, &'static str> {
    let (rest, digest) = match text.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest.parse()?)),
        None => (text, None),
    };
    let (host, rest) = rest.split_once('/').unwrap_or((rest, ""));
    let (path, tag) = match rest.split_once(':') {
        Some((path, tag)) => (path, Some(tag)),
        None => (rest, None),
    };
    check_host(host)?;
    check_path(path)?;
    tag.map_or(Ok(()), check_tag)?;
    if host.len() + path.len() >= LONGEST_REPOSITORY {
        return Err("its repository is longer than 255 characters");
    }
    Ok(Reference {
        host: host.to_ascii_lowercase(),
        path: path.to_owned(),
        tag: tag.map(str::to_owned),
        digest,
    })
}

fn check_host(host: &str) -> Result<(), &'static str> {
    is_host(host)
        .then_some(())
        .ok_or("it should begin with the host of a registry, such as registry.example.com or 192.0.2.7:5000")
}

fn is_host(host: &str) -> bool {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split_once(']').is_some_and(|(address, port)| {
            let port = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
            port && address.parse::<std::net::Ipv6Addr>().is_ok()
        });
    }
    match host.split_once(':') {
        Some((name, port)) => is_name(name) && is_port(port),
        None => is_name(host) && is_qualified(host),
    }
}

fn is_port(port: &str) -> bool {
    port.parse::<u16>().is_ok_and(|port| port > 0)
}

/// A host without a port contains a dot; otherwise it is part of the path.
fn is_qualified(name: &str) -> bool {
    name.contains('.') || name == "localhost"
}

fn is_name(name: &str) -> bool {
    name.split('.').all(|label| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-')
    })
}

fn check_path(path: &str) -> Result<(), &'static str> {
    let good = path.split('/').all(is_component);
    good.then_some(()).ok_or(
        "its repository may have lower-case letters, digits, and single separators between them",
    )
}

/// Letters and digits, with one of `.`, `_`, `__` or any number of `-` between them.
fn is_component(component: &str) -> bool {
    let alphanumeric = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let ends = [component.bytes().next(), component.bytes().next_back()];
    if !ends.iter().all(|end| end.is_some_and(alphanumeric)) {
        return false;
    }
    component
        .split(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        .all(|gap| matches!(gap, "" | "." | "_" | "__") || gap.bytes().all(|b| b == b'-'))
}

fn check_tag(tag: &str) -> Result<(), &'static str> {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let good = tag.bytes().next().is_some_and(word)
        && tag.len() <= LONGEST_TAG
        && tag.bytes().all(|b| word(b) || b == b'.' || b == b'-');
    good.then_some(())
        .ok_or("its tag may have up to 128 letters, digits, dots, dashes and underscores")
}

// === impl Digest ===

impl Digest {
    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The digest of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        use sha2::Digest as _;
        Self::from_hash(sha2::Sha256::digest(bytes))
    }

    pub(crate) fn from_hash(hash: impl AsRef<[u8]>) -> Self {
        use std::fmt::Write as _;
        let mut text = "sha256:".to_owned();
        for byte in hash.as_ref() {
            let _ = write!(text, "{byte:02x}");
        }
        Self(text)
    }

    /// The hexadecimal digits.
    pub(crate) fn hex(&self) -> &str {
        self.0.trim_start_matches("sha256:")
    }
}

impl FromStr for Digest {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let hex = text.strip_prefix("sha256:").unwrap_or_default();
        let digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        let good = hex.len() == 64 && hex.bytes().all(digit);
        good.then(|| Self(text.to_owned()))
            .ok_or("its digest should be sha256: and 64 hexadecimal digits")
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEX: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn references_have_their_parts() {
        for (text, host, path, identifier) in [
            (
                "registry.example.com/a/b:4.22.1-x86_64",
                "registry.example.com",
                "a/b",
                "4.22.1-x86_64",
            ),
            (
                "registry.example.com/a",
                "registry.example.com",
                "a",
                "latest",
            ),
            (
                "registry:5000/a__b/c-d.e",
                "registry:5000",
                "a__b/c-d.e",
                "latest",
            ),
            ("localhost/a:1", "localhost", "a", "1"),
            ("[2001:db8::1]:5000/a:1", "[2001:db8::1]:5000", "a", "1"),
            ("[::1]/a:1", "[::1]", "a", "1"),
            (
                "Registry.Example.com/a:V_1",
                "registry.example.com",
                "a",
                "V_1",
            ),
        ] {
            let reference: Reference = text.parse().unwrap();
            assert_eq!(reference.host(), host, "{text}");
            assert_eq!(reference.path(), path, "{text}");
            assert_eq!(reference.identifier(), identifier, "{text}");
        }
        let both = format!("registry.example.com/a:1@sha256:{HEX}");
        let reference: Reference = both.parse().unwrap();
        assert_eq!(reference.identifier(), format!("sha256:{HEX}"));
        assert_eq!(reference.to_string(), both);
    }

    #[test]
    fn invalid_references_are_refused_with_the_reason() {
        let long = format!("registry.example.com/{}", "a".repeat(240));
        let upper = format!("registry.example.com/a@sha256:{}", HEX.to_uppercase());
        for (text, expected) in [
            ("", "host"),
            ("a", "host"),
            ("library/a", "host"),
            ("-bad.example.com/a", "host"),
            ("registry.example.com:99999/a", "host"),
            ("registry.example.com:/a", "host"),
            ("someone@registry.example.com/a", "digest"),
            ("https://registry.example.com/a", "host"),
            ("[::1]x/a", "host"),
            ("[::1/a", "host"),
            ("registry.example.com/", "lower-case"),
            ("registry.example.com/A", "lower-case"),
            ("registry.example.com/a//b", "lower-case"),
            ("registry.example.com/../b", "lower-case"),
            ("registry.example.com/a/", "lower-case"),
            ("registry.example.com/a..b", "lower-case"),
            ("registry.example.com/a?b", "lower-case"),
            ("registry.example.com/a:", "tag"),
            ("registry.example.com/a:b c", "tag"),
            ("registry.example.com/a:b/c", "tag"),
            ("registry.example.com/a@sha256:00", "digest"),
            ("registry.example.com/a@md5:00", "digest"),
            (&upper, "digest"),
            (&long, "255"),
        ] {
            let error = text.parse::<Reference>().unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            host in "[a-z0-9]{1,9}\\.[a-z]{2,5}(:[1-9][0-9]{1,3})?",
            path in "[a-z0-9]{1,9}(/[a-z0-9]{1,5}([._-][a-z0-9]{1,4})?){0,3}",
            tag in proptest::option::of("[A-Za-z0-9_][A-Za-z0-9_.-]{0,20}"),
            digest in proptest::option::of("[0-9a-f]{64}"),
        ) {
            let tag = tag.map_or(String::new(), |tag| format!(":{tag}"));
            let digest = digest.map_or(String::new(), |digest| format!("@sha256:{digest}"));
            let text = format!("{host}/{path}{tag}{digest}");
            let reference: Reference = text.parse().unwrap();
            prop_assert_eq!(reference.to_string(), text);
        }

        #[test]
        fn parsed_references_print_the_same(text in "\\PC{0,60}") {
            if let Ok(reference) = text.parse::<Reference>() {
                prop_assert_eq!(reference.to_string().to_lowercase(), text.to_lowercase());
                // It can be put into a URL as it is.
                let url = format!("https://{}/v2/{}/manifests/{}", reference.host(), reference.path(), reference.identifier());
                prop_assert!(url.parse::<http::Uri>().is_ok());
            }
        }
    }
}
