//! Machines of the fake cloud: who has requested what of it, by its own record.

use anyhow::{Context, Result, ensure};
use api::group::CapiTypes;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Request;
use serde_json::Value;
use testbed::hosted::{Cluster, Fixture, Identities, Platform};
use testbed::raw::RawClient;

use super::machines::Machines;

/// How actions begin that change nothing.
const READS: [&str; 4] = ["Describe", "Get", "List", "AssumeRole"];

/// The instances of the fixture's cloud.
pub(crate) struct Instances<'a> {
    fixture: &'a Fixture,
}

/// A record that is kept from its start.
pub(crate) struct Record {
    client: RawClient,
}

// === impl Instances ===

impl<'a> Instances<'a> {
    pub(crate) fn of(fixture: &'a Fixture) -> Self {
        Self { fixture }
    }
}

impl Machines for Instances<'_> {
    type Record = Record;

    fn platform(&self) -> Platform<'_> {
        Platform::Aws
    }

    fn flags(&self, _: CapiTypes) -> Vec<String> {
        Vec::new()
    }

    async fn extend_standard(&self) -> Result<()> {
        // Its provider uses the version that is stored.
        Ok(())
    }

    async fn identify(&self, _: &Cluster<'_>, _: &mut Identities) -> Result<()> {
        // Workers are identified by their instances already.
        Ok(())
    }

    async fn record(&self) -> Result<Record> {
        Record::start(self.fixture).await
    }

    async fn are_untouched(&self, record: Record) -> Result<String> {
        let calls = record.changes_nothing().await?;
        Ok(format!(
            "the cloud saw {calls} calls, none of which changed anything"
        ))
    }

    fn said(&self) -> String {
        // Failures of it are diagnosed by the logs of the testbed.
        String::new()
    }
}

// === impl Record ===

impl Record {
    async fn start(fixture: &Fixture) -> Result<Self> {
        let client = RawClient::new(&fixture.cloud.url(), None)?;
        for action in ["reset", "start"] {
            let path = format!("/moto-api/recorder/{action}-recording");
            let response = client.send(Request::post(path).body(Vec::new())?).await?;
            ensure!(
                response.status.is_success(),
                "the cloud keeps no record: {}",
                response.status
            );
        }
        Ok(Self { client })
    }

    /// Fails if any client requested a change of the cloud; returns the number of requests.
    async fn changes_nothing(&self) -> Result<usize> {
        let response = self
            .client
            .get("/moto-api/recorder/download-recording")
            .await?;
        let text = String::from_utf8(response.bytes().await?)?;
        let requested = text.lines().map(action).collect::<Result<Vec<_>>>()?;
        let changes: Vec<_> = requested
            .iter()
            .filter(|action| !READS.iter().any(|read| action.starts_with(read)))
            .collect();
        ensure!(changes.is_empty(), "changes were requested: {changes:?}");
        // Its own watcher polls all the time: no request means that nothing was recorded.
        ensure!(!requested.is_empty(), "the cloud has recorded nothing");
        Ok(requested.len())
    }
}

/// What a line of the record requests.
fn action(line: &str) -> Result<String> {
    let entry: Value = serde_json::from_str(line).context("the record is not what it was")?;
    let body = entry["body"].as_str().unwrap_or_default();
    let body = if entry["body_encoded"] == true {
        String::from_utf8(STANDARD.decode(body)?)?
    } else {
        body.to_owned()
    };
    let named = body
        .split('&')
        .find_map(|pair| pair.strip_prefix("Action="));
    let whole = || format!("{} {}", entry["method"], entry["url"]);
    Ok(named.map_or_else(whole, str::to_owned))
}
