//! The challenge of a registry: the header `WWW-Authenticate`.

use std::collections::BTreeMap;

/// How the registry authenticates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Challenge {
    /// User name and password.
    Basic,
    /// A token of a token service.
    Bearer {
        /// The URL of the token service.
        realm: String,
        /// The service for which the token is.
        service: Option<String>,
    },
}

impl Challenge {
    /// Reads the header; nothing if it is of another scheme.
    pub(super) fn parse(header: &str) -> Option<Self> {
        let (scheme, parameters) = header.trim().split_once(' ').unwrap_or((header.trim(), ""));
        let mut parameters = parse_parameters(parameters);
        match scheme.to_ascii_lowercase().as_str() {
            "basic" => Some(Self::Basic),
            "bearer" => Some(Self::Bearer {
                realm: parameters.remove("realm")?,
                service: parameters.remove("service"),
            }),
            _ => None,
        }
    }
}

/// `name="value", name=value`; stops at what is neither.
fn parse_parameters(mut text: &str) -> BTreeMap<String, String> {
    let mut parameters = BTreeMap::new();
    while let Some((name, rest)) = text.split_once('=') {
        let (value, rest) = rest
            .strip_prefix('"')
            .map_or_else(|| unquoted(rest), quoted);
        parameters.insert(name.trim().to_ascii_lowercase(), value);
        text = rest.trim_start_matches([',', ' ']);
    }
    parameters
}

/// Up to the next comma; and what follows.
fn unquoted(text: &str) -> (String, &str) {
    let (value, rest) = text.split_once(',').unwrap_or((text, ""));
    (value.trim().to_owned(), rest)
}

/// Up to the closing quote, with escapes taken away; and what follows.
fn quoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, &text[at + 1..]),
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            other => value.push(other),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn challenges_are_read_as_registries_write_them() {
        let bearer = |realm: &str, service: Option<&str>| {
            Some(Challenge::Bearer {
                realm: realm.to_owned(),
                service: service.map(str::to_owned),
            })
        };
        let realm = "https://auth.example.com/token";
        for (header, expected) in [
            ("Basic realm=\"registry\"", Some(Challenge::Basic)),
            ("basic", Some(Challenge::Basic)),
            (
                "Bearer realm=\"https://auth.example.com/token\",service=\"reg, istry\",scope=\"repository:a:pull,push\"",
                bearer(realm, Some("reg, istry")),
            ),
            (
                "bearer  service=\"a\\\"b\" , REALM=https://auth.example.com/token",
                bearer(realm, Some("a\"b")),
            ),
            (
                "Bearer realm=\"https://auth.example.com/token\"",
                bearer(realm, None),
            ),
            ("Bearer service=\"x\"", None),
            ("Negotiate", None),
        ] {
            assert_eq!(Challenge::parse(header), expected, "{header}");
        }
    }

    proptest! {
        #[test]
        fn any_header_is_parsed_without_a_panic(header in "\\PC{0,80}") {
            let _ = Challenge::parse(&header);
        }

        #[test]
        fn quoted_values_round_trip(realm in "[ -~]{1,40}", service in "[ -~]{0,40}") {
            let escape = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
            let header = format!("Bearer realm=\"{}\",service=\"{}\"", escape(&realm), escape(&service));
            prop_assert_eq!(Challenge::parse(&header), Some(Challenge::Bearer { realm, service: Some(service) }));
        }
    }
}
