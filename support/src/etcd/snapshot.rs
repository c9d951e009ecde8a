//! Snapshots: a stream of JSON documents, one on each line, with the database and its checksum.

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use http_body_util::BodyExt as _;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::{Connection, Error};

/// etcd appends the SHA-256 of the database to it; what restores a snapshot verifies it, too.
const CHECKSUM: usize = 32;
/// The database has pages of this size.
const PAGE: u64 = 512;
/// The longest line: etcd sends 32 KiB of the database in each.
const LONGEST_LINE: usize = 1 << 20;
const WHAT: &str = "a snapshot";

/// One line.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Line {
    result: Part,
    error: Option<serde_json::Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Part {
    blob: String,
}

/// Verifies what passes: all but the last [`CHECKSUM`] bytes are the database.
struct Verifier {
    database: Sha256,
    /// Bytes of the database.
    size: u64,
    /// The last bytes, which may be the checksum.
    last: Vec<u8>,
}

impl Connection {
    /// Passes a snapshot to `sink` in pieces, and returns its size in bytes. It is verified: after an error, what was passed
    /// must not be used.
    pub async fn snapshot(
        &self,
        mut sink: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<u64, Error> {
        let response = self.stream(WHAT, "/v3/maintenance/snapshot").await?;
        if response.status() != StatusCode::OK {
            return Err(Error::Snapshot("etcd refused to send it"));
        }
        let mut body = response.into_body();
        let mut verifier = Verifier::new();
        let mut received = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|source| Error::Request { what: WHAT, source })?;
            received.extend_from_slice(frame.data_ref().map_or(&[], |bytes| bytes));
            while let Some(end) = received.iter().position(|byte| *byte == b'\n') {
                let blob = blob(&received[..end])?;
                received.drain(..=end);
                verifier.add(&blob);
                sink(&blob).map_err(Error::Write)?;
            }
            if received.len() > LONGEST_LINE {
                return Err(Error::Snapshot("a line is too long"));
            }
        }
        if !received.is_empty() {
            let blob = blob(&received)?;
            verifier.add(&blob);
            sink(&blob).map_err(Error::Write)?;
        }
        verifier.finish()
    }
}

/// The bytes of a line.
fn blob(line: &[u8]) -> Result<Vec<u8>, Error> {
    let line: Line =
        serde_json::from_slice(line).map_err(|_| Error::Snapshot("a line is not JSON"))?;
    if line.error.is_some() {
        return Err(Error::Snapshot("etcd ended it with an error"));
    }
    let blob = STANDARD.decode(line.result.blob);
    blob.map_err(|_| Error::Snapshot("a part is not base64"))
}

// === impl Verifier ===

impl Verifier {
    fn new() -> Self {
        Self {
            database: Sha256::new(),
            size: 0,
            last: Vec::new(),
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        self.last.extend_from_slice(bytes);
        let known = self.last.len().saturating_sub(CHECKSUM);
        self.database.update(&self.last[..known]);
        self.size += known as u64;
        self.last.drain(..known);
    }

    fn finish(self) -> Result<u64, Error> {
        if self.last.len() < CHECKSUM || self.size == 0 || !self.size.is_multiple_of(PAGE) {
            return Err(Error::Snapshot("it is incomplete"));
        }
        if self.database.finalize().as_slice() != self.last.as_slice() {
            return Err(Error::Snapshot("its checksum differs"));
        }
        Ok(self.size + CHECKSUM as u64)
    }
}
