//! Creations in flight through a proxy that is killed (F01).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::group::CapiTypes;
use http::{Request, StatusCode};
use serde_json::Value;
use testbed::audit::Event;
use testbed::raw::RawClient;
use testbed::wait;
use tokio::task::JoinSet;

use crate::fidelity::backoff::Backoff;
use crate::fidelity::fixture::{Fixture, claim, collection};

const COUNT: usize = 1000;
/// The proxy is killed when this many are done.
const KILLS: [usize; 5] = [50, 200, 400, 600, 800];
const WITHIN: Duration = Duration::from_mins(2);
/// A response that takes longer is lost: a request must get a response or an error, however its proxy ended.
const RESPONSE_WITHIN: Duration = Duration::from_mins(1);
/// Large enough that a body arrives in several pieces.
const TEXT: usize = 20_000;
const PREFIX: &str = "created-";

/// What became of one creation.
#[derive(Debug)]
struct Created {
    name: String,
    tries: usize,
    /// The content of the response, if one arrived.
    uid: Option<String>,
}

/// Checks that each object is there once and whole, however often it was tried; returns a summary line.
pub(crate) async fn happen_once(fixture: &mut Fixture) -> Result<String> {
    let mark = fixture.testbed.control_plane.audit.mark()?;
    let client = fixture.proxies[0].client()?;
    let done = Arc::new(AtomicUsize::new(0));
    let mut creations = JoinSet::new();
    for number in 0..COUNT {
        let (client, done) = (client.clone(), Arc::clone(&done));
        creations.spawn(async move {
            let created = create(client, format!("{PREFIX}{number}")).await;
            done.fetch_add(1, Ordering::Relaxed);
            created
        });
    }
    for threshold in KILLS {
        wait::until("creations", WITHIN, async || {
            let done = done.load(Ordering::Relaxed);
            ensure!(done >= threshold, "{done} of {threshold}");
            Ok(())
        })
        .await?;
        fixture.proxies[0].kill().await?;
    }
    let mut all = Vec::new();
    while let Some(created) = creations.join_next().await {
        all.push(created??);
    }
    let stored = stored(fixture).await?;
    for created in &all {
        created.check(&stored)?;
    }
    ensure!(
        stored.len() == COUNT,
        "{} objects instead of {COUNT}",
        stored.len()
    );
    let events = fixture.testbed.control_plane.audit.since(mark)?;
    happened_once(&events, &fixture.username())?;
    let again = all.iter().filter(|created| created.tries > 1).count();
    let unknown = all.iter().filter(|created| created.uid.is_none()).count();
    ensure!(again > 0, "no creation was interrupted");
    Ok(format!(
        "{again} tried again, of which {unknown} had succeeded without a response"
    ))
}

/// Tries until the object is there: created now, or by an earlier request whose response was lost.
async fn create(client: RawClient, name: String) -> Result<Created> {
    let body = claim(CapiTypes::Standard, &name, &text(&name))
        .to_string()
        .into_bytes();
    let backoff = Backoff::new(WITHIN);
    let mut tries = 0;
    loop {
        tries += 1;
        let response = tokio::time::timeout(RESPONSE_WITHIN, try_to_create(&client, body.clone()))
            .await
            .with_context(|| {
                format!("{name} got neither a response nor an error in {RESPONSE_WITHIN:?}")
            })?;
        let trouble = match response {
            Ok((StatusCode::CREATED, body)) => {
                let object: Value =
                    serde_json::from_slice(&body).context("a complete response is not JSON")?;
                let uid = object["metadata"]["uid"].as_str().map(str::to_owned);
                return Ok(Created { name, tries, uid });
            }
            Ok((StatusCode::CONFLICT, _)) => {
                return Ok(Created {
                    name,
                    tries,
                    uid: None,
                });
            }
            Ok((status, body)) => format!("{status}: {}", String::from_utf8_lossy(&body)),
            Err(error) => format!("{error:#}"),
        };
        backoff.again(&trouble).await?;
    }
}

async fn try_to_create(client: &RawClient, body: Vec<u8>) -> Result<(StatusCode, Vec<u8>)> {
    let request = Request::post(collection(CapiTypes::Standard))
        .header("content-type", "application/json")
        .body(body)?;
    let response = client.send(request).await?;
    Ok((response.status, response.bytes().await?))
}

/// Text of its own for each object, which shows where something is missing.
fn text(name: &str) -> String {
    format!("{name} ").repeat(TEXT / name.len())
}

async fn stored(fixture: &Fixture) -> Result<BTreeMap<String, Value>> {
    let objects = fixture
        .testbed
        .admin
        .list(&collection(CapiTypes::Private))
        .await?;
    let named = objects.into_iter().filter_map(|object| {
        let name = object["metadata"]["name"].as_str()?.to_owned();
        name.starts_with(PREFIX).then_some((name, object))
    });
    Ok(named.collect())
}

// === impl Created ===

impl Created {
    fn check(&self, stored: &BTreeMap<String, Value>) -> Result<()> {
        let Self { name, tries, uid } = self;
        ensure!(
            uid.is_some() || *tries > 1,
            "{name} was there already when it was first tried"
        );
        let object = stored
            .get(name)
            .with_context(|| format!("{name} is not there"))?;
        let whole = object["metadata"]["annotations"]["text"] == text(name);
        ensure!(whole, "{name} is not whole");
        if let Some(uid) = uid {
            ensure!(
                object["metadata"]["uid"] == **uid,
                "{name} is not the one in the response"
            );
        }
        Ok(())
    }
}

/// The audit log has no second creation of any object. (It may lack the first: for a request whose client has gone, the
/// server notes that the response was not read.)
fn happened_once(events: &[Event], username: &str) -> Result<()> {
    let mut created: BTreeMap<&str, usize> = BTreeMap::new();
    for event in events {
        let ours = event.user.username == username && event.verb == "create";
        if ours && event.response_status.code == 201 {
            *created.entry(&event.object_ref.name).or_default() += 1;
        }
    }
    let twice: Vec<_> = created.iter().filter(|(_, times)| **times != 1).collect();
    ensure!(twice.is_empty(), "created more than once: {twice:?}");
    ensure!(!created.is_empty(), "the audit log has no creation at all");
    Ok(())
}
