//! The machine's monotonic clock, which all processes of a run share.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds on the monotonic clock: comparable between processes of one machine.
pub fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    let part = |value: i64| {
        u64::try_from(value).expect("invariant: the monotonic clock is never negative")
    };
    part(time.tv_sec) * 1_000_000_000 + part(time.tv_nsec)
}
