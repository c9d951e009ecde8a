//! When a request is sent again: back-off with jitter, so that clients do not come back all at once. Pure.

use std::time::Duration;

/// The longest pause after the first attempt.
const FIRST: Duration = Duration::from_millis(250);
/// Codes of services that got too many requests.
const THROTTLED: [&str; 11] = [
    "BandwidthLimitExceeded",
    "EC2ThrottledException",
    "PriorRequestNotComplete",
    "RequestLimitExceeded",
    "RequestThrottled",
    "RequestThrottledException",
    "SlowDown",
    "Throttling",
    "ThrottledException",
    "ThrottlingException",
    "TooManyRequestsException",
];

/// How often a request is sent, and how long the pauses become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// All attempts, the first one included.
    pub attempts: u32,
    /// The longest pause.
    pub longest: Duration,
}

/// Whether a code says that there were too many requests.
pub fn is_throttled(code: &str) -> bool {
    THROTTLED.contains(&code)
}

// === impl Retry ===

impl Retry {
    /// The pause after so many failed attempts, or `None` if there is no further attempt. `random` decides between almost none
    /// and the longest one, which doubles each time.
    pub fn pause(&self, failed: u32, random: u8) -> Option<Duration> {
        if failed >= self.attempts {
            return None;
        }
        let doublings = failed.saturating_sub(1).min(16);
        let longest = FIRST.saturating_mul(1 << doublings).min(self.longest);
        Some(longest * (u32::from(random) + 1) / 256)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_limit() {
        let retry = Retry {
            attempts: 11,
            longest: Duration::from_secs(5),
        };
        for (failed, random, expected) in [
            (1, u8::MAX, Some(250)),
            (1, 127, Some(125)),
            (2, u8::MAX, Some(500)),
            (5, u8::MAX, Some(4_000)),
            (6, u8::MAX, Some(5_000)),
            (10, u8::MAX, Some(5_000)),
            (11, u8::MAX, None),
        ] {
            let expected = expected.map(Duration::from_millis);
            assert_eq!(retry.pause(failed, random), expected, "{failed}");
        }
        assert!(retry.pause(1, 0).unwrap() < Duration::from_millis(1));
        let forever = Retry {
            attempts: u32::MAX,
            ..retry
        };
        assert_eq!(forever.pause(100, u8::MAX), Some(retry.longest));
    }

    #[test]
    fn codes_of_throttling_are_known() {
        assert!(is_throttled("RequestLimitExceeded") && is_throttled("SlowDown"));
        assert!(!is_throttled("DependencyViolation") && !is_throttled(""));
    }
}
