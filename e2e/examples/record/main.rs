//! Records responses of a real API server, once for standard types and once for private ones, with the same requests:
//! the bodies in `capi-proxy/translate/tests/data`, which the tests of the proxy's translator use.
//!
//! ```console
//! cargo run -p e2e --example record
//! ```
//!
//! What differs between two runs (UIDs, times, versions, hashes) is replaced by fixed values, so that the two sides
//! differ in names of groups only and a new recording shows what really changed.

mod custom;
mod exchanges;
mod sanitise;
mod trim;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use api::group::CapiTypes;
use http::{Request, Response};
use kube::client::Body;
use testbed::client::ApiClient;
use testbed::crds;
use testbed::progress::Progress;
use testbed::testbed::Testbed;
use testbed::wait;

use exchanges::Exchange;
use sanitise::Sanitiser;

/// Headers of responses that a translator may look at or change.
const HEADERS: [&str; 2] = ["content-type", "warning"];

/// How long new kinds may be missing in `OpenAPI`.
const DESCRIBED_WITHIN: Duration = Duration::from_mins(1);

#[tokio::main]
async fn main() -> Result<()> {
    for capi_types in [CapiTypes::Standard, CapiTypes::Private] {
        let testbed = Testbed::start("record", Progress::detect()).await?;
        let outcome = record(&testbed, capi_types).await;
        testbed.finish(outcome)?;
    }
    Ok(())
}

async fn record(testbed: &Testbed, capi_types: CapiTypes) -> Result<()> {
    let step = testbed
        .progress
        .step(format!("recording the {capi_types:?} side"));
    crds::install(&testbed.admin, &custom::crds(capi_types)).await?;
    openapi_is_complete(&testbed.admin, capi_types).await?;
    let directory = directory(capi_types);
    std::fs::create_dir_all(&directory)
        .with_context(|| format!("cannot create {}", directory.display()))?;
    let mut sanitiser = Sanitiser::default();
    let exchanges = exchanges::all(capi_types);
    for exchange in &exchanges {
        let record = converse(&testbed.admin, exchange, &mut sanitiser)
            .await
            .with_context(|| format!("recording {}", exchange.name))?;
        let path = directory.join(format!("{}.http", exchange.name));
        std::fs::write(&path, record)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    step.done_with(&format!("{} exchanges", exchanges.len()));
    Ok(())
}

/// The API server describes new kinds a little later than it serves them.
async fn openapi_is_complete(client: &ApiClient, capi_types: CapiTypes) -> Result<()> {
    for path in exchanges::documents(capi_types) {
        wait::until(&path, DESCRIBED_WITHIN, async || client.get(&path).await).await?;
    }
    Ok(())
}

fn directory(capi_types: CapiTypes) -> PathBuf {
    let name = match capi_types {
        CapiTypes::Standard => "standard",
        CapiTypes::Private => "private",
    };
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../capi-proxy/translate/tests/data")
        .join(name)
}

/// One exchange as text: request line, headers, body, status, headers, body, with empty lines between.
async fn converse(
    client: &ApiClient,
    exchange: &Exchange,
    sanitiser: &mut Sanitiser,
) -> Result<String> {
    let mut request = Request::builder()
        .method(exchange.method)
        .uri(&exchange.path);
    let mut record = format!("{} {}\n", exchange.method, exchange.path);
    for (name, value) in &exchange.headers {
        request = request.header(*name, value);
        writeln!(record, "{name}: {value}")?;
    }
    write!(record, "\n{}\n\n", exchange.body)?;
    let body = Body::from(exchange.body.clone().into_bytes());
    let response = client.kube().send(request.body(body)?).await?;
    record.push_str(&head(&response)?);
    let body = response.into_body().collect_bytes().await?;
    let body = std::str::from_utf8(&body).context("the response is not text")?;
    record.push_str(&sanitiser.clean(&trim::trimmed(exchange.name, body)?));
    Ok(record)
}

fn head(response: &Response<Body>) -> Result<String> {
    let mut head = format!("{}\n", response.status().as_u16());
    for name in HEADERS {
        for value in response.headers().get_all(name) {
            writeln!(head, "{name}: {}", value.to_str()?)?;
        }
    }
    head.push('\n');
    Ok(head)
}
