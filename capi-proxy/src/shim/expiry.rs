//! The expiry of a certificate, the only X.509 field that is needed, read from the DER.

use rustls::pki_types::CertificateDer;

const SEQUENCE: u8 = 0x30;
/// The version, which is optional.
const EXPLICIT_0: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// `notAfter` in Unix time; none if it cannot be read.
pub(super) fn not_after(certificate: &CertificateDer<'_>) -> Option<i64> {
    let (_, certificate, _) = element(certificate)?;
    let (_, mut fields, _) = element(certificate)?;
    let (tag, _, rest) = element(fields)?;
    if tag == EXPLICIT_0 {
        fields = rest;
    }
    // Serial number, signature algorithm, issuer.
    for _ in 0..3 {
        (_, _, fields) = element(fields)?;
    }
    let (SEQUENCE, validity, _) = element(fields)? else {
        return None;
    };
    let (_, _, rest) = element(validity)?;
    let (tag, text, _) = element(rest)?;
    seconds(tag, std::str::from_utf8(text).ok()?)
}

/// The tag and the contents of the first element, and the rest.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, mut rest) = rest.split_first()?;
    let mut length = usize::from(first);
    if first & 0x80 != 0 {
        let (bytes, after) = rest.split_at_checked(usize::from(first & 0x7f))?;
        if bytes.len() > 4 {
            return None;
        }
        length = bytes
            .iter()
            .fold(0, |all, byte| all << 8 | usize::from(*byte));
        rest = after;
    }
    let (contents, rest) = rest.split_at_checked(length)?;
    Some((tag, contents, rest))
}

/// `YYMMDDhhmmssZ` or `YYYYMMDDhhmmssZ`.
fn seconds(tag: u8, text: &str) -> Option<i64> {
    let digits = text.strip_suffix('Z')?;
    let (year, rest) = digits.split_at_checked(if tag == UTC_TIME { 2 } else { 4 })?;
    let year: i64 = year.parse().ok()?;
    let year = match tag {
        UTC_TIME if year < 50 => 2000 + year,
        UTC_TIME => 1900 + year,
        GENERALIZED_TIME => year,
        _ => return None,
    };
    let mut parts = rest.as_bytes().chunks(2).map(|two| {
        let two = std::str::from_utf8(two).ok()?;
        two.parse::<i64>().ok()
    });
    let mut next = || parts.next().flatten();
    let (month, day, hour, minute, second) = (next()?, next()?, next()?, next()?, next()?);
    Some(((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second)
}

/// Days from 1970 to a date of the Gregorian calendar; years begin in March here.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    #[test]
    fn not_after_is_read_from_a_certificate() {
        for (year, month, day) in [
            (1999, 12, 31),
            (2024, 2, 29),
            (2049, 12, 31),
            (2050, 1, 1),
            (2100, 3, 1),
        ] {
            let mut params = CertificateParams::new(vec!["a".to_owned()]).unwrap();
            params.not_after = date_time_ymd(year, month, day);
            let expected = params.not_after.unix_timestamp();
            let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
            let found = not_after(certificate.der());
            assert_eq!(found, Some(expected), "{year}-{month}-{day}");
            let der = certificate.der();
            for cut in 0..der.len().min(150) {
                let cut = CertificateDer::from(&der[..cut]);
                assert_eq!(not_after(&cut), None);
            }
        }
    }
}
