//! Durations as Go programs print them: `1h0m0s`.

use std::time::Duration;

/// Units, in seconds.
const UNITS: [(&str, f64); 7] = [
    ("ns", 1e-9),
    ("us", 1e-6),
    ("\u{b5}s", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("m", 60.0),
    ("h", 3600.0),
];

/// Parses a duration such as `1.5h` or `10m30s`; negative ones are rejected.
pub(crate) fn parse(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let is_digit = |letter: char| letter.is_ascii_digit() || letter == '.';
        let (number, after) = rest.split_at(rest.find(|letter| !is_digit(letter))?);
        let (unit, next) = after.split_at(after.find(is_digit).unwrap_or(after.len()));
        let (_, seconds) = UNITS.iter().find(|(name, _)| *name == unit)?;
        let part = number.parse::<f64>().ok()? * seconds;
        total = total.checked_add(Duration::try_from_secs_f64(part).ok()?)?;
        rest = next;
    }
    (!text.is_empty()).then_some(total)
}

/// Formats a duration as Go does, but less than a second as a fraction of it.
pub(crate) fn format(duration: Duration) -> String {
    let minutes = duration.as_secs() / 60;
    let mut seconds = (duration.as_secs() % 60).to_string();
    if duration.subsec_nanos() != 0 {
        let fraction = format!("{:09}", duration.subsec_nanos());
        seconds = format!("{seconds}.{}", fraction.trim_end_matches('0'));
    }
    match (minutes / 60, minutes % 60) {
        (0, 0) => format!("{seconds}s"),
        (0, minutes) => format!("{minutes}m{seconds}s"),
        (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_the_form_of_go() {
        for (written, expected) in [
            ("10m", Some("10m0s")),
            ("300s", Some("5m0s")),
            ("1.5h", Some("1h30m0s")),
            ("24h", Some("24h0m0s")),
            ("5m30.25s", Some("5m30.25s")),
            ("300500ms", Some("5m0.5s")),
            ("0s", Some("0s")),
            ("", None),
            ("10", None),
            ("-10m", None),
            ("10x", None),
            ("10m ", None),
            ("10m --v=9", None),
            ("1e9h", None),
            ("99999999999999999999h", None),
        ] {
            assert_eq!(parse(written).map(format).as_deref(), expected, "{written}");
        }
    }
}
