//! Whether to take a lease: pure. Clocks of other machines do not count, but for how long the lease has not changed as
//! seen from here.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use tokio::time::Instant;

/// A lease that has not changed since `at`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    version: Option<String>,
    holder: Option<String>,
    duration: Duration,
    epoch: i32,
    at: Instant,
}

/// What a candidate does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Move {
    /// Takes the lease in this epoch.
    Take {
        /// One more than the last.
        epoch: i32,
    },
    /// Reads the lease again, at the latest when it expires.
    Wait {
        /// When that is.
        expires: Instant,
    },
}

// === impl Seen ===

impl Seen {
    /// The lease as it was just read; `before` says since when it has not changed.
    pub(super) fn new(lease: &Lease, before: Option<Self>, now: Instant) -> Self {
        let version = lease.metadata.resource_version.clone();
        if let Some(before) = before.filter(|before| before.version == version) {
            return before;
        }
        let spec = lease.spec.as_ref();
        let seconds = spec.and_then(|spec| spec.lease_duration_seconds);
        let holder = spec.and_then(|spec| spec.holder_identity.clone());
        Self {
            version,
            holder: holder.filter(|holder| !holder.is_empty()),
            duration: Duration::from_secs(seconds.unwrap_or(0).max(0).unsigned_abs().into()),
            epoch: epoch(lease),
            at: now,
        }
    }
}

/// The fencing epoch of a lease.
pub(super) fn epoch(lease: &Lease) -> i32 {
    let spec = lease.spec.as_ref();
    spec.and_then(|spec| spec.lease_transitions).unwrap_or(0)
}

/// What to do next; `last` is the highest epoch that this process has seen.
pub(super) fn next(seen: Option<&Seen>, last: i32, identity: &str, now: Instant) -> Move {
    let take = |epoch: i32| Move::Take {
        epoch: epoch.max(last).saturating_add(1),
    };
    let Some(seen) = seen else {
        return take(0);
    };
    let Some(holder) = &seen.holder else {
        return take(seen.epoch);
    };
    let expires = seen.at + seen.duration;
    // A lease with our identity was taken by a write whose answer was lost: no term began with it.
    if holder == identity || now >= expires {
        return take(seen.epoch);
    }
    Move::Wait { expires }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn seen(holder: Option<&str>, at: Instant) -> Seen {
        Seen {
            version: Some("1".to_owned()),
            holder: holder.map(str::to_owned),
            duration: 15 * SECOND,
            epoch: 4,
            at,
        }
    }

    /// Check O03.
    #[test]
    fn a_lease_is_taken_when_it_is_free_and_never_earlier() {
        let start = Instant::now();
        let waits = Move::Wait {
            expires: start + 15 * SECOND,
        };
        let table = [
            ("no lease", None, 0, 0, Move::Take { epoch: 1 }),
            ("no lease any more", None, 9, 0, Move::Take { epoch: 10 }),
            ("released", Some(None), 4, 0, Move::Take { epoch: 5 }),
            ("held", Some(Some("b")), 4, 0, waits),
            ("held, just", Some(Some("b")), 4, 14, waits),
            ("expired", Some(Some("b")), 4, 15, Move::Take { epoch: 5 }),
            ("ours", Some(Some("a")), 4, 0, Move::Take { epoch: 5 }),
        ];
        for (name, holder, last, seconds, expected) in table {
            let seen = holder.map(|holder| seen(holder, start));
            let now = start + seconds * SECOND;
            assert_eq!(next(seen.as_ref(), last, "a", now), expected, "{name}");
        }
    }

    #[test]
    fn expiry_counts_from_the_last_change_of_the_lease() {
        let start = Instant::now();
        let mut lease = Lease::default();
        lease.metadata.resource_version = Some("1".to_owned());
        let first = Seen::new(&lease, None, start);
        let second = Seen::new(&lease, Some(first.clone()), start + SECOND);
        assert_eq!(first, second);
        lease.metadata.resource_version = Some("2".to_owned());
        let third = Seen::new(&lease, Some(second), start + 2 * SECOND);
        assert_eq!(third.at, start + 2 * SECOND);
    }
}
