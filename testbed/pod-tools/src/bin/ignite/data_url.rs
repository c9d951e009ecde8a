//! Data URLs: what a document holds itself.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The bytes of a data URL.
pub(crate) fn decode(url: &str) -> Result<Vec<u8>, String> {
    let rest = url
        .strip_prefix("data:")
        .ok_or_else(|| format!("{url:.60?} is no data URL"))?;
    let (kind, data) = rest
        .split_once(',')
        .ok_or_else(|| format!("{url:.60?} has no data"))?;
    let plain = percent_decoded(data)?;
    if kind.ends_with(";base64") {
        return STANDARD
            .decode(&plain)
            .map_err(|error| format!("a data URL is not in base64: {error}"));
    }
    Ok(plain)
}

fn percent_decoded(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        if first != b'%' {
            bytes.push(first);
            rest = after;
            continue;
        }
        let digits = after
            .get(..2)
            .and_then(|pair| std::str::from_utf8(pair).ok());
        let value = digits.and_then(|pair| u8::from_str_radix(pair, 16).ok());
        bytes.push(value.ok_or("a data URL has a % without two digits")?);
        rest = &after[2..];
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_is_decoded() {
        for (url, expected) in [
            ("data:,", ""),
            ("data:,a%20b%0A", "a b\n"),
            ("data:text/plain;charset=utf-8;base64,aGVsbG8=", "hello"),
        ] {
            assert_eq!(decode(url).unwrap(), expected.as_bytes(), "{url}");
        }
        for wrong in ["http://x", "data:text/plain", "data:,%4", "data:;base64,!"] {
            assert!(decode(wrong).is_err(), "{wrong}");
        }
    }
}
