//! The speed that the proxy promises, and whether a run has met it.
//!
//! Promises about a real API server (p95 of real calls, lists of a real server) are not evaluated here: the server of this
//! bench is a fake that costs next to nothing.

use serde::Serialize;

use super::figures::{Delays, Figures, Memory, Peer, Percentiles, Throughput};

/// What a peer must add, in microseconds, to be a bound: less is noise, and so is everything beside it.
const RESOLUTION: f64 = 1.0;
/// How much slower than the bare search a body without any name of ours may be.
const SEARCH_FACTOR: f64 = 1.25;
/// Bounds of memory in MiB, and of an idle watch in KiB.
const IDLE_MIB: f64 = 6.0;
const STEADY_MIB: f64 = 10.0;
const LISTS_MIB: f64 = 16.0;
const WATCH_KIB: f64 = 12.0;
/// The bound of a cold start, in milliseconds.
const COLD_START_MILLIS: f64 = 20.0;
/// The bound of the translator's speed, in gigabytes a second.
const GIGABYTES: f64 = 1.0;

/// One target, and whether it is met.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evaluation {
    /// What is promised.
    pub what: String,
    /// The figure of this run.
    pub found: String,
    /// What it must not pass.
    pub bound: String,
    /// Whether the promise is kept. Nothing when the bound itself was lost in the machine's noise.
    pub met: Option<bool>,
}

/// All promises.
pub fn evaluate(figures: &Figures) -> Vec<Evaluation> {
    let mut evaluations = Vec::new();
    for delays in &figures.calls {
        if delays.what.starts_with("LIST") {
            evaluations.extend(half_of_nginx(delays));
        } else {
            evaluations.extend(near_the_relay(delays, "added p50", 1.1));
            evaluations.extend(below_nginx(delays));
        }
    }
    evaluations.extend(near_the_relay(&figures.watch, "delivery, added p50", 1.2));
    let throughput = |peer| figures.throughput.get(&peer);
    if let (Some(ours), Some(nginx)) = (throughput(Peer::Ours), throughput(Peer::Nginx)) {
        evaluations.extend(pressure(ours, nginx));
    }
    if let Some(ours) = figures.memory.get(&Peer::Ours) {
        evaluations.extend(memory(ours));
    }
    evaluations.extend(translation(figures));
    evaluations.extend(cold_start(figures));
    evaluations
}

/// At most `bound`, both as `unit` with one digit.
fn at_most(what: impl Into<String>, found: f64, bound: f64, unit: &str) -> Evaluation {
    Evaluation {
        what: what.into(),
        found: format!("{found:.1} {unit}"),
        bound: format!("<= {bound:.1} {unit}"),
        met: Some(found <= bound),
    }
}

/// At most `factor` times what another peer adds, in microseconds.
fn at_most_of(what: String, found: f64, factor: f64, peer: f64) -> Evaluation {
    let evaluation = at_most(what, found, peer * factor, "us");
    let met = evaluation.met.filter(|_| peer > RESOLUTION);
    Evaluation { met, ..evaluation }
}

fn at_least(what: impl Into<String>, found: f64, bound: f64, unit: &str) -> Evaluation {
    Evaluation {
        what: what.into(),
        found: format!("{found:.1} {unit}"),
        bound: format!(">= {bound:.1} {unit}"),
        met: Some(found >= bound),
    }
}

fn near_the_relay(delays: &Delays, what: &str, factor: f64) -> Option<Evaluation> {
    let (ours, relay) = (
        delays.added.get(&Peer::Ours)?,
        delays.added.get(&Peer::Relay)?,
    );
    let what = format!("{} {what} <= {factor} x relay", delays.what);
    Some(at_most_of(what, ours.p50, factor, relay.p50))
}

/// The percentile that is furthest above nginx's, or nearest to it, is shown for all.
fn below_nginx(delays: &Delays) -> Option<Evaluation> {
    let (ours, nginx) = (
        delays.added.get(&Peer::Ours)?,
        delays.added.get(&Peer::Nginx)?,
    );
    let (name, ours, nginx) = pairs(ours, nginx).into_iter().max_by(
        |(_, ours, nginx), (_, other_ours, other_nginx)| {
            (ours - nginx).total_cmp(&(other_ours - other_nginx))
        },
    )?;
    let what = format!(
        "{} every percentile <= nginx (closest: {name})",
        delays.what
    );
    Some(at_most_of(what, ours, 1.0, nginx))
}

fn pairs(ours: &Percentiles, nginx: &Percentiles) -> [(&'static str, f64, f64); 4] {
    let Percentiles { p50, p90, p95, p99 } = ours;
    [
        ("p50", *p50, nginx.p50),
        ("p90", *p90, nginx.p90),
        ("p95", *p95, nginx.p95),
        ("p99", *p99, nginx.p99),
    ]
}

fn half_of_nginx(delays: &Delays) -> Option<Evaluation> {
    let (ours, nginx) = (
        delays.added.get(&Peer::Ours)?,
        delays.added.get(&Peer::Nginx)?,
    );
    let what = format!("{} added p50 <= half of nginx", delays.what);
    Some(at_most_of(what, ours.p50, 0.5, nginx.p50))
}

fn pressure(ours: &Throughput, nginx: &Throughput) -> Vec<Evaluation> {
    let mut evaluations = vec![at_least(
        "throughput >= nginx",
        ours.requests_per_second,
        nginx.requests_per_second,
        "req/s",
    )];
    if let (Some(ours), Some(nginx)) = (ours.cpu_millis_per_thousand, nginx.cpu_millis_per_thousand)
    {
        evaluations.push(at_most(
            "CPU per 1,000 requests <= nginx",
            ours,
            nginx,
            "ms",
        ));
    }
    evaluations
}

fn memory(ours: &Memory) -> [Evaluation; 4] {
    let Memory {
        idle,
        steady,
        idle_watches: _,
        each_watch,
        lists,
    } = ours;
    [
        at_most("memory, idle", mib(*idle), IDLE_MIB, "MiB"),
        at_most(
            "memory, 100 req/s and 50 watches",
            mib(*steady),
            STEADY_MIB,
            "MiB",
        ),
        at_most("memory, an idle watch", *each_watch, WATCH_KIB, "KiB"),
        at_most(
            "memory, four lists of 100 MB",
            mib(*lists),
            LISTS_MIB,
            "MiB",
        ),
    ]
}

/// KiB as MiB.
pub(super) fn mib(kib: u64) -> f64 {
    super::statistics::figure(kib) / 1024.0
}

fn translation(figures: &Figures) -> [Evaluation; 2] {
    let (list, unchanged) = (&figures.translation.list, &figures.translation.unchanged);
    let bound = unchanged.search / SEARCH_FACTOR;
    [
        at_least(
            "translator, a list, as a stream",
            list.stream,
            GIGABYTES,
            "GB/s",
        ),
        at_least(
            "translator, nothing to change: one search",
            unchanged.whole,
            bound,
            "GB/s",
        ),
    ]
}

fn cold_start(figures: &Figures) -> Option<Evaluation> {
    let ours = figures.cold_starts.get(&Peer::Ours)?;
    let slowest = ours
        .ready_millis
        .unwrap_or_default()
        .max(ours.first_response_millis);
    Some(at_most(
        "cold start, ready and responding",
        slowest,
        COLD_START_MILLIS,
        "ms",
    ))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn delays(what: &'static str, figures: [(Peer, [f64; 4]); 3]) -> Delays {
        let percentiles = |[p50, p90, p95, p99]: [f64; 4]| Percentiles { p50, p90, p95, p99 };
        Delays {
            what,
            direct: percentiles([100.0; 4]),
            added: figures
                .map(|(peer, values)| (peer, percentiles(values)))
                .into(),
        }
    }

    #[test]
    fn a_single_percentile_above_nginx_is_a_miss() {
        let relay = (Peer::Relay, [20.0; 4]);
        let nginx = (Peer::Nginx, [50.0, 60.0, 70.0, 80.0]);
        let good = delays(
            "GET",
            [relay, nginx, (Peer::Ours, [22.0, 59.0, 69.0, 79.0])],
        );
        assert_eq!(below_nginx(&good).unwrap().met, Some(true));
        assert_eq!(near_the_relay(&good, "p50", 1.1).unwrap().met, Some(true));
        let bad = delays(
            "GET",
            [relay, nginx, (Peer::Ours, [22.1, 59.0, 71.0, 79.0])],
        );
        let evaluation = below_nginx(&bad).unwrap();
        assert!(
            evaluation.met == Some(false) && evaluation.what.contains("p95"),
            "{evaluation:?}"
        );
        assert_eq!(near_the_relay(&bad, "p50", 1.1).unwrap().met, Some(false));
    }

    #[test]
    fn half_of_nginx_is_enough_for_a_list() {
        let list = |ours| {
            delays(
                "LIST 1 MB",
                [
                    (Peer::Relay, [1.0; 4]),
                    (Peer::Nginx, [900.0; 4]),
                    (Peer::Ours, [ours; 4]),
                ],
            )
        };
        assert_eq!(half_of_nginx(&list(450.0)).unwrap().met, Some(true));
        assert_eq!(half_of_nginx(&list(451.0)).unwrap().met, Some(false));
    }

    #[test]
    fn a_peer_below_the_resolution_is_no_bound() {
        let noise = delays(
            "LIST 10 MB",
            [
                (Peer::Relay, [-40.0; 4]),
                (Peer::Nginx, [-20.0; 4]),
                (Peer::Ours, [-30.0; 4]),
            ],
        );
        assert_eq!(half_of_nginx(&noise).unwrap().met, None);
    }

    #[test]
    fn a_missing_peer_is_not_evaluated() {
        let mut alone = delays(
            "GET",
            [
                (Peer::Relay, [1.0; 4]),
                (Peer::Nginx, [1.0; 4]),
                (Peer::Ours, [1.0; 4]),
            ],
        );
        alone.added = BTreeMap::new();
        assert_eq!(below_nginx(&alone), None);
    }
}
