//! The API server is down for a while: requests fail, and the proxy adds none of its own (F03).

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::group::CapiTypes;
use http::{Request, StatusCode, header};
use serde_json::Value;
use testbed::raw::RawClient;
use testbed::wait;

use crate::fidelity::fixture::{Fixture, claim, collection};

const EACH: usize = 100;
const WITHIN: Duration = Duration::from_mins(1);

/// Checks which requests arrived that were sent while the server was down, and after; returns a summary line.
pub(crate) async fn adds_no_requests(fixture: &mut Fixture) -> Result<String> {
    let client = fixture.proxies[1].client()?;
    let username = fixture.username();
    let control_plane = &mut fixture.testbed.control_plane;
    control_plane.api_server.kill();
    wait::until("the proxy to notice", WITHIN, async || {
        let status = client.get(&collection(CapiTypes::Standard)).await?.status;
        ensure!(status == StatusCode::SERVICE_UNAVAILABLE, "{status}");
        Ok(())
    })
    .await?;
    for number in 0..EACH {
        is_refused(&client, &format!("down-{number}")).await?;
    }
    let mark = control_plane.audit.mark()?;
    control_plane.api_server.start().await?;
    let mut requested = 0;
    wait::until("the proxy to find the server again", WITHIN, async || {
        requested += 1;
        let status = client.get(&collection(CapiTypes::Standard)).await?.status;
        ensure!(status == StatusCode::OK, "{status}");
        Ok(())
    })
    .await?;
    for number in 0..EACH {
        let (status, ..) = create(&client, &format!("up-{number}")).await?;
        ensure!(status == StatusCode::CREATED, "up-{number}: {status}");
    }
    let mut arrived: BTreeMap<String, usize> = BTreeMap::new();
    let mut lists = 0;
    for event in control_plane.audit.since(mark)? {
        let ours =
            event.user.username == username && event.object_ref.resource == "ipaddressclaims";
        match event.verb.as_str() {
            "create" if ours => *arrived.entry(event.object_ref.name).or_default() += 1,
            "list" if ours => lists += 1,
            _ => {}
        }
    }
    let late: Vec<_> = arrived
        .keys()
        .filter(|name| name.starts_with("down-"))
        .collect();
    ensure!(
        late.is_empty(),
        "what had been refused arrived later: {late:?}"
    );
    let again: Vec<_> = arrived.iter().filter(|(_, times)| **times > 1).collect();
    ensure!(again.is_empty(), "arrived more than once: {again:?}");
    ensure!(
        arrived.len() == EACH,
        "{} of {EACH} requests arrived",
        arrived.len()
    );
    ensure!(
        lists <= requested,
        "{requested} lists were requested and {lists} arrived"
    );
    Ok(format!(
        "{EACH} requests refused meanwhile, {} of {EACH} arrived after",
        arrived.len()
    ))
}

/// A request that cannot be served is refused in a way that a client may try again by.
async fn is_refused(client: &RawClient, name: &str) -> Result<()> {
    let (status, retry_after, body) = create(client, name).await?;
    ensure!(
        status == StatusCode::SERVICE_UNAVAILABLE,
        "{name}: {status} {body}"
    );
    ensure!(retry_after, "{name}: nothing says when to try again");
    ensure!(
        body["kind"] == "Status" && body["code"] == 503,
        "{name}: {body}"
    );
    Ok(())
}

async fn create(client: &RawClient, name: &str) -> Result<(StatusCode, bool, Value)> {
    let body = claim(CapiTypes::Standard, name, "")
        .to_string()
        .into_bytes();
    let request = Request::post(collection(CapiTypes::Standard))
        .header(header::CONTENT_TYPE, "application/json")
        .body(body)?;
    let response = client.send(request).await?;
    let (status, retry_after) = (
        response.status,
        response.headers.contains_key(header::RETRY_AFTER),
    );
    let body = response.bytes().await?;
    let body = serde_json::from_slice(&body).with_context(|| format!("{name}: not JSON"))?;
    Ok((status, retry_after, body))
}
