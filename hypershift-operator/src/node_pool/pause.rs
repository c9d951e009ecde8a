//! Until when a pool is left alone.

use jiff::Timestamp;

/// Whether `pausedUntil` holds, and until when if it ends by itself. What cannot be read pauses nothing: the API refuses it.
pub(crate) fn paused(until: Option<&str>, now: Timestamp) -> Option<Pause> {
    let until = until?;
    if until.eq_ignore_ascii_case("true") {
        return Some(Pause::ForGood);
    }
    let until: Timestamp = until.parse().ok()?;
    (until > now).then_some(Pause::Until(until))
}

/// How long a pool is paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pause {
    /// Until somebody says otherwise.
    ForGood,
    /// Until then.
    Until(Timestamp),
}

// === impl Pause ===

impl std::fmt::Display for Pause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ForGood => f.write_str("paused by spec.pausedUntil until it is removed"),
            Self::Until(time) => write!(f, "paused by spec.pausedUntil until {time}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_end() {
        let now: Timestamp = "2026-11-22T00:00:00Z".parse().unwrap();
        let later: Timestamp = "2026-11-22T00:00:01Z".parse().unwrap();
        for (until, expected) in [
            (None, None),
            (Some("false"), None),
            (Some("True"), Some(Pause::ForGood)),
            (Some("2026-11-22T00:00:01Z"), Some(Pause::Until(later))),
            (Some("2026-11-22T00:00:00Z"), None),
            (Some("2026-11-22T02:00:01+02:00"), Some(Pause::Until(later))),
            (Some("soon"), None),
        ] {
            assert_eq!(paused(until, now), expected, "{until:?}");
        }
    }
}
