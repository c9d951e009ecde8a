//! What a run has found.

use std::collections::BTreeMap;

use load::wire::Translation;
use serde::Serialize;

pub use super::peer::Peer;

/// All figures of a run. Times in microseconds unless a name says otherwise.
#[derive(Debug, Serialize)]
pub struct Figures {
    /// Where they were taken.
    pub machine: Machine,
    /// Versions of the peers that are not ours.
    pub peers: BTreeMap<String, String>,
    /// Calls one after the other.
    pub calls: Vec<Delays>,
    /// Delivery of watch events.
    pub watch: Delays,
    /// Many clients at once.
    pub throughput: BTreeMap<Peer, Throughput>,
    /// Memory of each peer.
    pub memory: BTreeMap<Peer, Memory>,
    /// From the start of the process to the first correct response.
    pub cold_starts: BTreeMap<Peer, ColdStart>,
    /// The translator by itself.
    pub translation: Translation,
}

/// The machine, and how much of it the run had.
#[derive(Debug, Serialize)]
pub struct Machine {
    /// Processors.
    pub cores: usize,
    /// The share of all processors that unrelated processes used during the run, from 0 to 1.
    pub used_by_others: f64,
}

/// One kind of call.
#[derive(Debug, Serialize)]
pub struct Delays {
    /// What is called.
    pub what: &'static str,
    /// Without a proxy.
    pub direct: Percentiles,
    /// What each proxy adds: the median, over the rounds, of the difference to `direct` in the same round.
    pub added: BTreeMap<Peer, Percentiles>,
}

/// Percentiles of a duration, in microseconds.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Percentiles {
    /// The median.
    pub p50: f64,
    /// Nine of ten.
    pub p90: f64,
    /// Nineteen of twenty.
    pub p95: f64,
    /// All but one in a hundred.
    pub p99: f64,
}

/// A peer under pressure.
#[derive(Debug, Serialize)]
pub struct Throughput {
    /// Responses per second.
    pub requests_per_second: f64,
    /// Processor time of the peer for a thousand requests, in milliseconds. The server's own is not shown.
    pub cpu_millis_per_thousand: Option<f64>,
}

/// Peaks of a peer's memory, in KiB, each taken on a fresh process (sum over its processes).
#[derive(Debug, Serialize)]
pub struct Memory {
    /// After the first response.
    pub idle: u64,
    /// Under a steady load of requests and watches.
    pub steady: u64,
    /// With idle watches.
    pub idle_watches: u64,
    /// For one of these watches.
    pub each_watch: f64,
    /// While clients stream large lists.
    pub lists: u64,
}

/// Medians over several starts, in milliseconds.
#[derive(Debug, Serialize)]
pub struct ColdStart {
    /// Until a small GET gets a response.
    pub first_response_millis: f64,
    /// Until the program itself says that it is ready, where it has a way to say so.
    pub ready_millis: Option<f64>,
}
