//! Public RSA keys, as AWS reads them to validate tokens: a set of keys has their numbers. Pure.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};

/// What blocks of PEM with such a key are called. The content is the same.
const LABELS: [&str; 2] = ["PUBLIC KEY", "RSA PUBLIC KEY"];
/// The tags of DER.
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OBJECT_IDENTIFIER: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
/// The identifier of RSA keys, 1.2.840.113549.1.1.1.
const RSA: [u8; 9] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
/// The most bytes of a length: more than any key has.
const LONGEST_LENGTH: u8 = 4;

/// A key. Its parts are in base64 for URLs, without padding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey {
    /// The SHA-256 of the key in DER, by which tokens name it.
    pub id: String,
    /// The modulus.
    pub modulus: String,
    /// The exponent.
    pub exponent: String,
}

/// A text without such a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it has no public RSA key in PEM")]
pub struct InvalidKey;

// === impl PublicKey ===

impl PublicKey {
    /// The first key of a text in PEM.
    pub fn of_pem(pem: &str) -> Result<Self, InvalidKey> {
        let der = block(pem).ok_or(InvalidKey)?;
        let (modulus, exponent) = numbers(&der).ok_or(InvalidKey)?;
        Ok(Self {
            id: URL_SAFE_NO_PAD.encode(Sha256::digest(&der)),
            modulus: URL_SAFE_NO_PAD.encode(modulus),
            exponent: URL_SAFE_NO_PAD.encode(exponent),
        })
    }
}

/// The content of the first block with a public key.
fn block(pem: &str) -> Option<Vec<u8>> {
    let mut lines = pem.lines().map(str::trim);
    let label = lines.find_map(|line| {
        let label = line.strip_prefix("-----BEGIN ")?.strip_suffix("-----")?;
        LABELS.contains(&label).then_some(label)
    })?;
    let end = format!("-----END {label}-----");
    let mut text = String::new();
    for line in lines {
        if line == end {
            return STANDARD.decode(text).ok();
        }
        text.push_str(line);
    }
    None
}

/// Modulus and exponent of a key in DER (`SubjectPublicKeyInfo`).
fn numbers(der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (info, _) = element(der, SEQUENCE)?;
    let (algorithm, key) = element(info, SEQUENCE)?;
    let (identifier, _) = element(algorithm, OBJECT_IDENTIFIER)?;
    if identifier != RSA {
        return None;
    }
    let (bits, _) = element(key, BIT_STRING)?;
    let (_, key) = bits.split_first().filter(|(unused, _)| **unused == 0)?;
    let (numbers, _) = element(key, SEQUENCE)?;
    let (modulus, rest) = element(numbers, INTEGER)?;
    let (exponent, _) = element(rest, INTEGER)?;
    Some((unsigned(modulus), unsigned(exponent)))
}

/// The content of the first element, which has to have this tag, and what follows it.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, rest) = der.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = if *first < 0x80 {
        (usize::from(*first), rest)
    } else {
        let count = Some(first & 0x7f).filter(|it| (1..=LONGEST_LENGTH).contains(it))?;
        let (bytes, rest) = rest.split_at_checked(usize::from(count))?;
        let length = bytes
            .iter()
            .fold(0_usize, |length, byte| (length << 8) | usize::from(*byte));
        (length, rest)
    };
    let parts = rest.split_at_checked(length)?;
    (*found == tag).then_some(parts)
}

/// A number without the zeros that keep it positive.
fn unsigned(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    number.get(zeros..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made by openssl, as are the numbers below.
    const KEY: &str = "-----BEGIN PUBLIC KEY-----
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQC3PxkaOZ0mK++HlRtFIfkWv1yz
A8byi+CBIfG0U2SDL2dziG4Je2/QGD4NMxRp9Yw4i5f8RCpqMOkC5fcz0InDMJ0w
RZlrggSvfVs57FhmoDoZ69PVzTWinl6vmRSNHsSlnyqNzS85eBzsKp5eayO/R2ov
Ff4KAe55rqi6yy+zVQIDAQAB
-----END PUBLIC KEY-----
";
    /// On the curve P-256.
    const ELLIPTIC: &str = "-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEk6KwctW5re33j0q/akdxfjoSrvPT
a9yQtoe5wdl8HR33zifmI5QFBDAHfr8d+KPI8fcahrNbW2jtsyawnQpsTQ==
-----END PUBLIC KEY-----
";

    #[test]
    fn keys_are_read_from_pem() {
        let expected = PublicKey {
            id: "_1XrkqhgouV4HaAwGztziJfbJCq832srSEV3smg-aqU".to_owned(),
            modulus: "tz8ZGjmdJivvh5UbRSH5Fr9cswPG8ovggSHxtFNkgy9nc4huCXtv0Bg-DTMUafWMOIuX_EQqajDpAuX3M9CJwzCd\
                      MEWZa4IEr31bOexYZqA6GevT1c01op5er5kUjR7EpZ8qjc0vOXgc7CqeXmsjv0dqLxX-CgHuea6oussvs1U"
                .to_owned(),
            exponent: "AQAB".to_owned(),
        };
        let named = KEY.replace("PUBLIC KEY", "RSA PUBLIC KEY");
        let after = format!("-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n{KEY}");
        for pem in [KEY, &named, &after] {
            assert_eq!(PublicKey::of_pem(pem), Ok(expected.clone()), "{pem}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        let cut = KEY.replace("Ff4KAe55rqi6yy+zVQIDAQAB\n", "");
        let open = KEY.replace("-----END PUBLIC KEY-----\n", "");
        for pem in ["", "no key", ELLIPTIC, &cut, &open] {
            assert_eq!(PublicKey::of_pem(pem), Err(InvalidKey), "{pem}");
        }
    }

    #[test]
    fn lengths_beyond_the_end_are_refused() {
        for der in [
            &[SEQUENCE][..],
            &[SEQUENCE, 2, 0],
            &[SEQUENCE, 0x80],
            &[SEQUENCE, 0x85, 1, 1, 1, 1, 1],
            &[SEQUENCE, 0x84, 0xff, 0xff, 0xff, 0xff],
            &[INTEGER, 0],
        ] {
            assert_eq!(element(der, SEQUENCE), None, "{der:?}");
        }
    }
}
