//! The hashes by which the operators and ignition servers, also those of HyperShift, recognise contents. All are 32-bit FNV-1a,
//! written as eight hexadecimal digits. They are stable: another hash is another name, or replaces nodes.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The hash of bytes.
pub fn hash(bytes: &[u8]) -> String {
    let hash = bytes.iter().fold(0x811c_9dc5_u32, |hash, &byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    format!("{hash:08x}")
}

/// The hash of the decimal numbers of bytes, as in `[1 2 3]`: that of a pull secret.
pub fn bytes_hash(bytes: &[u8]) -> String {
    let mut text = "[".to_owned();
    for (index, byte) in bytes.iter().enumerate() {
        let space = if index == 0 { "" } else { " " };
        // Writing to a String never fails.
        let _ = write!(text, "{space}{byte}");
    }
    text.push(']');
    hash(text.as_bytes())
}

/// The hash of the data of a `ConfigMap`, which is empty if the data is.
pub fn data_hash(data: &BTreeMap<String, String>) -> String {
    if data.is_empty() {
        return String::new();
    }
    let mut text = String::new();
    for (key, value) in data {
        text.extend([key.as_str(), "\0", value.as_str(), "\0"]);
    }
    hash(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv_1a() {
        assert_eq!(hash(b""), "811c9dc5");
        assert_eq!(hash(b"foobar"), "bf9cf968");
    }

    #[test]
    fn other_values_are_hashed_as_text() {
        for (bytes, text) in [
            (b"".as_slice(), "[]"),
            (b"{}".as_slice(), "[123 125]"),
            (b"\x01\xff".as_slice(), "[1 255]"),
        ] {
            assert_eq!(bytes_hash(bytes), hash(text.as_bytes()), "{text}");
        }
        let data = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter();
            pairs
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect()
        };
        assert_eq!(data_hash(&data(&[])), "");
        let pairs = data(&[("b", "2"), ("a", "1")]);
        assert_eq!(data_hash(&pairs), hash(b"a\x001\x00b\x002\x00"));
    }
}
