//! Faults at random: proxies are killed, connections are cut on either side of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use testbed::wait;

use crate::fidelity::fixture::Way;
use crate::fidelity::random::Random;

/// How many events go by between two faults, at most.
const EVENTS_BETWEEN: u64 = 2500;
/// How long they may take.
const WITHIN: Duration = Duration::from_mins(1);

/// What can happen to a way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// SIGKILL to the proxy, which is started again at once.
    Kill,
    /// One client's connection, most likely within an event.
    CutClient,
    /// All connections of clients.
    CutClients,
    /// One of the proxy's connections to the server.
    CutServer,
}

// === impl Fault ===

impl Fault {
    /// All kinds, and the likelier ones more often.
    const CHOICES: [Self; 8] = [
        Self::Kill,
        Self::CutClient,
        Self::CutClient,
        Self::CutClient,
        Self::CutClients,
        Self::CutServer,
        Self::CutServer,
        Self::CutServer,
    ];

    /// Does it to a way; says whether there was anything to do it to.
    async fn strike(self, way: &mut Way, random: &mut Random) -> Result<bool> {
        match self {
            Self::Kill => way.kill().await.map(|()| true),
            Self::CutClient => Ok(way.front.cut_one(random)),
            Self::CutClients => Ok(way.front.cut_all()),
            Self::CutServer => Ok(way.cut_back(random)),
        }
    }
}

/// Strikes again and again, until it is dropped; counts into `struck`.
pub(crate) async fn rage(
    ways: &mut [Way],
    count: Arc<AtomicUsize>,
    mut random: Random,
    struck: &mut BTreeMap<Fault, usize>,
) -> Result<()> {
    let mut next = 0;
    loop {
        next += random.index(usize::try_from(EVENTS_BETWEEN)?);
        wait::until("more events", WITHIN, async || {
            let read = count.load(Ordering::Relaxed);
            ensure!(read >= next, "{read} of {next} events");
            Ok(())
        })
        .await?;
        let fault = Fault::CHOICES[random.index(Fault::CHOICES.len())];
        let way = random.index(ways.len());
        if fault.strike(&mut ways[way], &mut random).await? {
            *struck.entry(fault).or_default() += 1;
        }
    }
}
