//! Quantities of Kubernetes.

const UNITS: [(&str, i64); 8] = [
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("k", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
];

/// Processors, in thousandths: `2`, `0.5`, `250m`.
pub(crate) fn thousandths(text: &str) -> Option<i64> {
    if let Some(number) = text.strip_suffix('m') {
        return number.parse().ok();
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    // Three digits, whatever there are.
    let fraction: String = fraction.chars().chain("000".chars()).take(3).collect();
    let whole: i64 = whole.parse().ok()?;
    Some(whole * 1000 + fraction.parse::<i64>().ok()?)
}

/// Memory, in bytes: `1048576`, `1Mi`, `1M`.
pub(crate) fn bytes(text: &str) -> Option<i64> {
    let found = UNITS
        .iter()
        .find_map(|(unit, size)| Some((text.strip_suffix(unit)?, *size)));
    let (number, size) = found.unwrap_or((text, 1));
    number.parse::<i64>().ok()?.checked_mul(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read() {
        for (text, expected) in [
            ("2", Some(2000)),
            ("250m", Some(250)),
            ("0.5", Some(500)),
            ("1.2345", Some(1234)),
            ("", None),
            ("a", None),
        ] {
            assert_eq!(thousandths(text), expected, "{text}");
        }
        for (text, expected) in [
            ("1024", Some(1024)),
            ("2Ki", Some(2048)),
            ("3Gi", Some(3 << 30)),
            ("5M", Some(5_000_000)),
            ("1.5Gi", None),
            ("", None),
        ] {
            assert_eq!(bytes(text), expected, "{text}");
        }
    }
}
