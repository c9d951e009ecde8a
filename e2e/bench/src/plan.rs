//! How much is measured.

use load::wire::Call;

use super::Depth;

/// A size that lists are measured at.
const MB: u64 = 1_000_000;

/// One kind of call, and how often it is made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Calls {
    /// Its name in tables.
    pub(super) name: &'static str,
    /// The call.
    pub(super) call: Call,
    /// How many a round.
    pub(super) count: usize,
}

/// The counts of one run.
#[derive(Debug)]
pub(super) struct Plan {
    /// Rounds in which every peer is called once with everything in `calls`, and watched once.
    pub(super) rounds: usize,
    /// The calls of a round.
    pub(super) calls: Vec<Calls>,
    /// Events of a round's watch.
    pub(super) watch_events: usize,
    /// Time between two events.
    pub(super) watch_interval_micros: u64,
    /// Rounds of throughput.
    pub(super) throughput_rounds: usize,
    /// How long each peer is pressed in a round.
    pub(super) throughput_millis: u64,
    /// Clients that press.
    pub(super) throughput_clients: usize,
    /// How long the steady load lasts.
    pub(super) steady_millis: u64,
    /// Requests a second of the steady load.
    pub(super) steady_rate: u32,
    /// Watches of the steady load.
    pub(super) steady_watches: usize,
    /// Watches that are held and idle.
    pub(super) idle_watches: usize,
    /// Lists at the same time.
    pub(super) list_clients: usize,
    /// Size of each.
    pub(super) list_bytes: u64,
    /// Starts of each program.
    pub(super) cold_starts: usize,
    /// How long each way of translating is run.
    pub(super) translation_millis: u64,
}

// === impl Plan ===

impl Plan {
    /// The counts of a run.
    pub(super) fn new(depth: Depth) -> Self {
        let [get, patch, one, ten] = match depth {
            Depth::Full => [250, 250, 12, 3],
            Depth::Quick => [40, 40, 3, 1],
        };
        let list = |megabytes| Call::List {
            bytes: megabytes * MB,
        };
        let calls = vec![
            Calls {
                name: "GET",
                call: Call::Get,
                count: get,
            },
            Calls {
                name: "PATCH",
                call: Call::Patch,
                count: patch,
            },
            Calls {
                name: "LIST 1 MB",
                call: list(1),
                count: one,
            },
            Calls {
                name: "LIST 10 MB",
                call: list(10),
                count: ten,
            },
        ];
        let full = Self {
            rounds: 24,
            calls,
            watch_events: 150,
            watch_interval_micros: 2_000,
            throughput_rounds: 5,
            throughput_millis: 1_200,
            throughput_clients: 16,
            steady_millis: 6_000,
            steady_rate: 100,
            steady_watches: 50,
            idle_watches: 1_000,
            list_clients: 4,
            list_bytes: 100 * MB,
            cold_starts: 11,
            translation_millis: 1_500,
        };
        match depth {
            Depth::Full => full,
            Depth::Quick => Self {
                rounds: 2,
                watch_events: 30,
                throughput_rounds: 1,
                throughput_millis: 300,
                steady_millis: 1_000,
                cold_starts: 3,
                translation_millis: 150,
                ..full
            },
        }
    }
}
