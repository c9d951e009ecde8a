//! Jobs with many clients at once, a thread each.

use std::sync::Barrier;
use std::thread::{ScopedJoinHandle, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};

use super::caller::Caller;
use super::watcher::Watcher;
use crate::wire::{Call, Outcome, Target};

/// Time between the events of a watch under steady load.
const EVENT_INTERVAL: Duration = Duration::from_millis(200);
/// Clients that share a steady load.
const STEADY_CLIENTS: u32 = 10;

/// Clients that call as fast as they get responses.
pub(super) fn throughput(target: &Target, clients: usize, millis: u64) -> Result<Outcome> {
    let callers = (0..clients)
        .map(|_| Caller::open(target, Call::Get))
        .collect::<Result<Vec<_>>>()?;
    let barrier = Barrier::new(clients + 1);
    let period = Duration::from_millis(millis);
    std::thread::scope(|scope| {
        let threads: Vec<_> = callers
            .into_iter()
            .map(|mut caller| {
                let barrier = &barrier;
                scope.spawn(move || {
                    // The first call is not counted: it may open a connection behind the peer.
                    let warm = caller.call();
                    barrier.wait();
                    warm.and_then(|()| call_for(&mut caller, period))
                })
            })
            .collect();
        barrier.wait();
        let start = Instant::now();
        let requests = sum(threads)?;
        Ok(Outcome::Rate {
            requests,
            seconds: start.elapsed().as_secs_f64(),
        })
    })
}

fn call_for(caller: &mut Caller, period: Duration) -> Result<u64> {
    let start = Instant::now();
    let mut count = 0;
    while start.elapsed() < period {
        caller.call()?;
        count += 1;
    }
    Ok(count)
}

/// Lists of the same size at the same time.
pub(super) fn lists(target: &Target, clients: usize, bytes: u64) -> Result<Outcome> {
    let start = Instant::now();
    let requests = std::thread::scope(|scope| {
        let threads = (0..clients)
            .map(|_| {
                scope.spawn(|| {
                    Caller::open(target, Call::List { bytes })?
                        .call()
                        .map(|()| 1)
                })
            })
            .collect();
        sum(threads)
    })?;
    Ok(Outcome::Rate {
        requests,
        seconds: start.elapsed().as_secs_f64(),
    })
}

/// Calls at a rate, beside watches.
pub(super) fn steady(target: &Target, watches: usize, rate: u32, millis: u64) -> Result<Outcome> {
    let period = Duration::from_millis(millis);
    let start = Instant::now();
    let requests = std::thread::scope(|scope| {
        let streams: Vec<_> = (0..watches)
            .map(|_| scope.spawn(|| watch_for(target, period)))
            .collect();
        let callers = (0..STEADY_CLIENTS)
            .map(|number| {
                let call = if number % 2 == 0 {
                    Call::Get
                } else {
                    Call::Patch
                };
                scope.spawn(move || call_steadily(target, call, rate, period))
            })
            .collect();
        let requests = sum(callers)?;
        sum(streams)?;
        anyhow::Ok(requests)
    })?;
    Ok(Outcome::Rate {
        requests,
        seconds: start.elapsed().as_secs_f64(),
    })
}

fn watch_for(target: &Target, period: Duration) -> Result<u64> {
    let events = usize::try_from(period.as_millis() / EVENT_INTERVAL.as_millis())
        .context("the load lasts too long")?;
    let interval =
        u64::try_from(EVENT_INTERVAL.as_micros()).expect("invariant: the interval is short");
    Watcher::open(target, events, interval)?
        .receive(events)
        .map(|delays| delays.len() as u64)
}

/// One client's share of a steady load.
fn call_steadily(target: &Target, call: Call, rate: u32, period: Duration) -> Result<u64> {
    let interval = Duration::from_secs(1) * STEADY_CLIENTS / rate.max(1);
    let mut caller = Caller::open(target, call)?;
    let (start, mut count) = (Instant::now(), 0);
    while start.elapsed() < period {
        caller.call()?;
        count += 1;
        sleep((interval * count).saturating_sub(start.elapsed()));
    }
    Ok(u64::from(count))
}

/// The sum of what the threads counted, or the first error of one.
fn sum(threads: Vec<ScopedJoinHandle<'_, Result<u64>>>) -> Result<u64> {
    threads
        .into_iter()
        .map(|thread| thread.join().map_err(|_| anyhow!("a client panicked"))?)
        .sum()
}
