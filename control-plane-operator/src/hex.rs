//! Bytes as hexadecimal text.

use std::fmt::Write as _;

/// The bytes in lower case, two digits each.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a String never fails.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[test]
fn bytes_have_two_digits() {
    assert_eq!(encode(&[0, 10, 255]), "000aff");
    assert_eq!(encode(&[]), "");
}
