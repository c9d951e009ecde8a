//! etcd: started for the API server, and read directly to see what is really stored.
//!
//! Reads use etcd's JSON gateway (`/v3/kv/range`), so no further program is needed.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::client::ApiClient;
use crate::process::Launch;
use crate::service::{Service, plain_health_at};
use crate::site::Site;
use crate::work_dir::WorkDir;

/// A running etcd, or one that can be started again on its data.
#[derive(Debug)]
pub struct Etcd {
    /// The program.
    pub service: Service,
    /// Where it keeps its data.
    pub(crate) data: PathBuf,
    address: SocketAddr,
    client: ApiClient,
}

/// A stored key with its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// The key.
    pub key: String,
    /// The value, as the API server wrote it.
    pub value: Vec<u8>,
    /// The revision of its last change.
    pub revision: u64,
}

// === impl Etcd ===

impl Etcd {
    /// Prepares an etcd that keeps its data in the testbed's directory.
    pub fn new(program: &Path, site: Site<'_>, work_dir: &Arc<WorkDir>) -> Result<Self> {
        let (address, peer) = (site.address(2379)?, site.address(2380)?);
        let url = format!("http://{address}");
        let peer = format!("http://{peer}");
        let data = work_dir.join("etcd");
        let launch = Launch::new("etcd", program)
            .flag("name", "testbed")
            .path_flag("data-dir", &data)
            .flag("listen-client-urls", &url)
            .flag("advertise-client-urls", &url)
            .flag("listen-peer-urls", &peer)
            .flag("initial-advertise-peer-urls", &peer)
            .flag("initial-cluster", format!("testbed={peer}"))
            // The data does not outlive the testbed.
            .arg("--unsafe-no-fsync")
            .flag("log-level", "warn");
        Ok(Self {
            service: Service::new(
                site.place(launch),
                work_dir,
                plain_health_at(address, "/health")?,
            ),
            data,
            address,
            client: ApiClient::plain_at(address)?,
        })
    }

    /// Where clients reach it.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All keys that start with `prefix`, in order.
    pub async fn keys(&self, prefix: &str) -> Result<Vec<String>> {
        let response = self.range(prefix, true).await?;
        entries(&response).iter().map(|entry| key(entry)).collect()
    }

    /// All keys that start with `prefix`, with their bytes.
    pub async fn stored(&self, prefix: &str) -> Result<Vec<Stored>> {
        let response = self.range(prefix, false).await?;
        entries(&response)
            .iter()
            .map(|entry| stored(entry))
            .collect()
    }

    /// Writes a key as it is, past everything that an API server checks.
    pub async fn put(&self, key: &str, value: &[u8]) -> Result<()> {
        let put = json!({ "key": STANDARD.encode(key), "value": STANDARD.encode(value) });
        self.client
            .create("/v3/kv/put", &put)
            .await
            .with_context(|| format!("cannot write the etcd key {key}"))?;
        Ok(())
    }

    async fn range(&self, prefix: &str, keys_only: bool) -> Result<Value> {
        let question = json!({
            "key": STANDARD.encode(prefix),
            "range_end": STANDARD.encode(end_of(prefix.as_bytes())),
            "keys_only": keys_only,
        });
        self.client
            .create("/v3/kv/range", &question)
            .await
            .with_context(|| format!("cannot list the etcd keys under {prefix:?}"))
    }
}

/// The first key after all those that start with `prefix`: its last byte is counted up.
fn end_of(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end;
        }
    }
    // A single zero byte means "no end".
    vec![0]
}

fn entries(response: &Value) -> Vec<&Value> {
    response["kvs"].as_array().into_iter().flatten().collect()
}

fn key(entry: &Value) -> Result<String> {
    String::from_utf8(bytes(&entry["key"])?).context("an etcd key is not UTF-8")
}

fn stored(entry: &Value) -> Result<Stored> {
    let revision = entry["mod_revision"].as_str().unwrap_or("0");
    Ok(Stored {
        key: key(entry)?,
        value: bytes(&entry["value"])?,
        revision: revision
            .parse()
            .with_context(|| format!("{revision:?} is not a revision"))?,
    })
}

fn bytes(field: &Value) -> Result<Vec<u8>> {
    STANDARD
        .decode(field.as_str().unwrap_or_default())
        .context("etcd's response is not base64")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_ends_after_its_prefix() {
        for (prefix, end) in [
            (b"/registry/a".as_slice(), b"/registry/b".as_slice()),
            (b"a\xff", b"b"),
            (b"\xff", b"\0"),
        ] {
            assert_eq!(end_of(prefix), end, "{prefix:?}");
        }
    }
}
