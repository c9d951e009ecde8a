//! The history: read directly by one, through proxies by many, and compared.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use api::group::CapiTypes;
use testbed::raw::RawClient;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::fidelity::faults::{Fault, rage};
use crate::fidelity::fixture::{Fixture, collection, group};
use crate::fidelity::history::{Entry, Reference, Summary};
use crate::fidelity::random::Random;
use crate::fidelity::reader::{Reader, Source, Start, Until};
use crate::fidelity::writer;

/// Changes that are made, readers through each proxy, and the events that they must read between them.
const CHANGES: u64 = 9_000;
const READERS_EACH: usize = 4;
const EVENTS: usize = 100_000;
/// Faults without which the run shows little.
const FAULTS: usize = 20;
/// How long the last events may take.
const CAUGHT_UP_WITHIN: Duration = Duration::from_mins(1);

type Reading = JoinHandle<Result<Vec<Entry>>>;

/// Writes, reads under faults, compares; returns a summary line.
pub(crate) async fn report_what_happened(
    fixture: &mut Fixture,
    random: &mut Random,
) -> Result<String> {
    let admin = fixture.testbed.admin.clone();
    writer::prepare(&admin).await?;
    let (until, receiver) = watch::channel(Until::Open);
    let count = Arc::new(AtomicUsize::new(0));
    // Only traffic through proxies counts.
    let reference = read(reference(fixture)?, &receiver, &Arc::default());
    let mut readings = Vec::new();
    for source in sources(fixture)? {
        readings.push(read(source, &receiver, &count));
    }
    let mut struck = BTreeMap::new();
    let faults = random.split();
    let last = tokio::select! {
        last = writer::write(&admin, CHANGES, random) => last?,
        failed = rage(&mut fixture.proxies, Arc::clone(&count), faults, &mut struck) => {
            return Err(failed.err().unwrap_or_else(|| anyhow!("the faults ended too early")));
        }
    };
    for way in &mut fixture.proxies {
        way.revive().await?;
    }
    until
        .send(Until::Version(last))
        .context("there is no reader")?;
    drop(receiver);
    if timeout(CAUGHT_UP_WITHIN, until.closed()).await.is_err() {
        // What is missing by now is missing for good, and the check will say what.
        let _without_readers = until.send(Until::Now);
    }
    let reference = reference.await??;
    let reference =
        Reference::new(&reference).map_err(|wrong| anyhow!("read directly: {wrong:?}"))?;
    let mut total = Summary::default();
    for (number, reading) in readings.into_iter().enumerate() {
        let history = reading.await?.with_context(|| format!("reader {number}"))?;
        let summary = reference
            .check(&history)
            .map_err(|wrong| anyhow!("reader {number}: {wrong:?}"))?;
        total.add(summary);
    }
    check(&reference, total, &struck)
}

fn check(reference: &Reference, total: Summary, struck: &BTreeMap<Fault, usize>) -> Result<String> {
    let said = format!(
        "{} changes, {} events seen, {} bookmarks, {} resumptions, {} lists again; {struck:?}",
        reference.len(),
        total.seen,
        total.bookmarks,
        total.resumed,
        total.relisted
    );
    ensure!(total.seen >= EVENTS, "too few events: {said}");
    ensure!(
        struck.values().sum::<usize>() >= FAULTS && struck.len() == 4,
        "too few faults: {said}"
    );
    ensure!(
        total.resumed >= FAULTS,
        "the faults interrupted no reader: {said}"
    );
    Ok(said)
}

fn read(source: Source, until: &watch::Receiver<Until>, count: &Arc<AtomicUsize>) -> Reading {
    tokio::spawn(Reader::new(source, until.clone(), Arc::clone(count)).run())
}

/// Straight from the server, where the group has its private name.
fn reference(fixture: &Fixture) -> Result<Source> {
    let endpoint = fixture.testbed.control_plane.endpoint();
    let client = RawClient::new(&endpoint.server, Some(&endpoint.authority))?;
    Ok(Source {
        client: client.with_token(&fixture.token()?)?,
        path: collection(CapiTypes::Private),
        start: Start::List,
        renamed: Some((group(CapiTypes::Private), group(CapiTypes::Standard))),
    })
}

fn sources(fixture: &Fixture) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for way in &fixture.proxies {
        for number in 0..READERS_EACH {
            sources.push(Source {
                client: way.client()?,
                path: collection(CapiTypes::Standard),
                start: if number % 2 == 0 {
                    Start::List
                } else {
                    Start::Watch
                },
                renamed: None,
            });
        }
    }
    Ok(sources)
}
