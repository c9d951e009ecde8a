//! Whether a hosted cluster or a node pool is paused: pure.

use jiff::Timestamp;

/// Whether an object is reconciled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pause {
    /// It is.
    Active,
    /// It is, since the time that was given is over.
    Over,
    /// It is paused until the field is removed.
    Indefinite,
    /// It is not, until then.
    Until(Timestamp),
    /// The value is invalid: it is not paused, and the condition reports it.
    Unreadable(String),
}

/// Reads `spec.pausedUntil`.
pub(crate) fn pause(until: Option<&str>, now: Timestamp) -> Pause {
    let Some(text) = until.map(str::trim).filter(|text| !text.is_empty()) else {
        return Pause::Active;
    };
    match text.to_ascii_lowercase().as_str() {
        "true" => return Pause::Indefinite,
        "false" => return Pause::Active,
        _ => {}
    }
    match text.parse::<Timestamp>() {
        Ok(until) if until > now => Pause::Until(until),
        Ok(_) => Pause::Over,
        Err(_) => Pause::Unreadable(text.to_owned()),
    }
}

// === impl Pause ===

impl Pause {
    /// Whether nothing is to be changed.
    pub(crate) fn is_paused(&self) -> bool {
        match self {
            Self::Indefinite | Self::Until(_) => true,
            Self::Active | Self::Over | Self::Unreadable(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_end_at_their_time() {
        let now: Timestamp = "2030-01-31T12:00:00Z".parse().unwrap();
        let later: Timestamp = "2030-01-31T12:00:01Z".parse().unwrap();
        for (text, expected) in [
            (None, Pause::Active),
            (Some(""), Pause::Active),
            (Some("false"), Pause::Active),
            (Some("True"), Pause::Indefinite),
            (Some("2030-01-31T12:00:01Z"), Pause::Until(later)),
            (Some("2030-01-31T12:00:00Z"), Pause::Over),
            (Some("2030-01-31T14:00:01+02:00"), Pause::Until(later)),
            (Some("tomorrow"), Pause::Unreadable("tomorrow".to_owned())),
        ] {
            assert_eq!(pause(text, now), expected, "{text:?}");
        }
    }
}
