//! `ETag`s and `OpenAPI` hashes, salted with the table's version.
//!
//! Both are digests of the untranslated document. A client that filled its cache through another table, or without the
//! proxy, would find a matching digest and a wrong document. So clients see `<digest>.<version>`, and only a
//! digest with our own version is shown to the API server as its own.

use std::borrow::Cow;

use super::Rules;

/// The `ETag` that a client sees for the API server's `etag`.
///
/// ```
/// use capi_translate::{Rules, cache::etag_down};
///
/// let rules = Rules::default();
/// assert_eq!(etag_down(&rules, r#"W/"3F""#), format!(r#"W/"3F.{}""#, rules.version()));
/// ```
pub fn etag_down(rules: &Rules, etag: &str) -> String {
    let (open, digest, close) = split_etag(etag.trim());
    format!("{open}{}{close}", hash_down(rules, digest))
}

/// The `If-None-Match` value for the API server: a list of `ETag`s, or `*`.
///
/// An `ETag` without our salt gets it here, and with it becomes one that the API server has never given out: a document
/// that was cached through another table, or without the proxy, is fetched again.
pub fn etag_up(rules: &Rules, if_none_match: &str) -> String {
    let etags = split_list(if_none_match).map(|etag| match etag {
        "*" => Cow::Borrowed(etag),
        _ => Cow::Owned(salt_or_strip(rules, etag)),
    });
    etags.collect::<Vec<_>>().join(", ")
}

/// The value of `hash=` that a client sees in an `OpenAPI` URL for the API server's `hash`.
pub fn hash_down(rules: &Rules, hash: &str) -> String {
    format!("{hash}.{}", rules.version())
}

/// The API server's own hash for the one in a client's `OpenAPI` URL.
///
/// Empty when it does not carry our salt. The API server takes an empty hash for none: it responds with the document of
/// now and without the promise that it never changes. The bare hash could match, and would make a shared cache keep our
/// translation under the untranslated document's URL.
pub fn hash_up(rules: &Rules, hash: &str) -> String {
    strip_salt(rules, hash).unwrap_or_default().to_owned()
}

fn strip_salt<'h>(rules: &Rules, salted: &'h str) -> Option<&'h str> {
    salted.strip_suffix(rules.version())?.strip_suffix('.')
}

fn salt_or_strip(rules: &Rules, etag: &str) -> String {
    let (open, digest, close) = split_etag(etag);
    match strip_salt(rules, digest) {
        Some(bare) => format!("{open}{bare}{close}"),
        None => etag_down(rules, etag),
    }
}

/// An `ETag`'s opening (`"` or `W/"`), digest and closing; all digest when it is not quoted.
fn split_etag(etag: &str) -> (&str, &str, &str) {
    let prefix = if etag.starts_with("W/\"") { 3 } else { 1 };
    let is_quoted =
        etag.len() > prefix && etag[prefix - 1..].starts_with('"') && etag.ends_with('"');
    if !is_quoted {
        return ("", etag, "");
    }
    let (open, rest) = etag.split_at(prefix);
    let (digest, close) = rest.split_at(rest.len() - 1);
    (open, digest, close)
}

/// The members of a comma-separated list; a comma inside quotes belongs to its member.
fn split_list(list: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    let comma = move |c: char| {
        quoted ^= c == '"';
        c == ',' && !quoted
    };
    list.split(comma)
        .map(str::trim)
        .filter(|member| !member.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn etag_salt_is_inside_the_quotes() {
        let rules = Rules::default();
        let version = rules.version();
        for (etag, want) in [
            ("\"ABC\"", format!("\"ABC.{version}\"")),
            ("W/\"ABC\"", format!("W/\"ABC.{version}\"")),
            (" \"ABC\" ", format!("\"ABC.{version}\"")),
            ("\"\"", format!("\".{version}\"")),
            ("ABC", format!("ABC.{version}")),
            ("\"", format!("\".{version}")),
            ("", format!(".{version}")),
        ] {
            assert_eq!(etag_down(&rules, etag), want, "{etag:?}");
        }
    }

    #[test]
    fn only_our_etag_salt_is_removed() {
        let rules = Rules::default();
        let version = rules.version();
        for (up, want) in [
            (format!("\"ABC.{version}\""), "\"ABC\"".to_owned()),
            (format!("W/\"ABC.{version}\""), "W/\"ABC\"".to_owned()),
            (
                format!("\"A.{version}\",W/\"B.{version}\" , *"),
                "\"A\", W/\"B\", *".to_owned(),
            ),
            ("*".to_owned(), "*".to_owned()),
            (format!("\"a,b.{version}\""), "\"a,b\"".to_owned()),
            ("\"ABC\"".to_owned(), format!("\"ABC.{version}\"")),
            (
                "\"ABC.00000000\"".to_owned(),
                format!("\"ABC.00000000.{version}\""),
            ),
            (String::new(), String::new()),
        ] {
            assert_eq!(etag_up(&rules, &up), want, "{up:?}");
        }
    }

    /// Check R14.
    #[test]
    fn caches_of_another_group_table_are_not_reused() {
        let rules = Rules::default();
        let more = rules
            .table()
            .clone()
            .with("a.example.com=b.example.com".parse().unwrap())
            .unwrap();
        let other = Rules::new(more);
        let cached = etag_down(&other, "\"ABC\"");
        assert_ne!(etag_up(&rules, &cached), "\"ABC\"");
        assert_ne!(etag_up(&rules, "\"ABC\""), "\"ABC\"");
        assert_eq!(hash_up(&rules, &hash_down(&other, "ABC")), "");
        assert_eq!(hash_up(&rules, "ABC"), "");
        assert_eq!(hash_up(&rules, rules.version()), "");
    }

    proptest! {
        #[test]
        fn etags_round_trip(digest in "[!#-~]{0,20}", weak: bool) {
            let rules = Rules::default();
            let etag = format!("{}\"x{digest}\"", if weak { "W/" } else { "" });
            prop_assert_eq!(etag_up(&rules, &etag_down(&rules, &etag)), etag);
            let hash = format!("x{digest}");
            let salted = hash_down(&rules, &hash);
            prop_assert_eq!(hash_up(&rules, &salted), hash);
        }

        #[test]
        fn arbitrary_etag_headers_never_panic(text in ".{0,40}") {
            let rules = Rules::default();
            etag_up(&rules, &text);
            etag_down(&rules, &text);
            hash_up(&rules, &text);
        }
    }
}
