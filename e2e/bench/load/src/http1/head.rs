//! Heads of responses, and sizes of chunks.

use anyhow::{Context, Result, bail};

/// The part of a head that the client needs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// The status code.
    pub(super) status: u16,
    /// How the body's end is found.
    pub(super) framing: Framing,
}

/// How the end of a body is found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// By its length.
    Length(u64),
    /// By an empty chunk.
    Chunked,
}

// === impl Head ===

impl Head {
    /// Reads a head, with its empty line.
    pub(super) fn parse(text: &[u8]) -> Result<Self> {
        let text = std::str::from_utf8(text).context("the response's head is not text")?;
        let mut lines = text.split("\r\n");
        let status_line = lines.next().unwrap_or_default();
        let status = status_line
            .strip_prefix("HTTP/1.1 ")
            .and_then(|rest| rest.get(..3))
            .and_then(|code| code.parse().ok())
            .with_context(|| format!("{status_line:?} is no status line of HTTP/1.1"))?;
        let mut framing = None;
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            if name.eq_ignore_ascii_case("content-length") {
                let length = value
                    .trim()
                    .parse()
                    .with_context(|| format!("{value:?} is no length"))?;
                framing = Some(Framing::Length(length));
            } else if name.eq_ignore_ascii_case("transfer-encoding") && value.trim() == "chunked" {
                framing = Some(Framing::Chunked);
            } else if name.eq_ignore_ascii_case("content-encoding") && value.trim() != "identity" {
                bail!(
                    "the response is encoded ({}): only plain ones can be compared",
                    value.trim()
                );
            }
        }
        let framing = framing.context("the response has neither a length nor chunks")?;
        Ok(Self { status, framing })
    }
}

/// The size in a chunk's first line.
pub(super) fn chunk_size(line: &[u8]) -> Result<u64> {
    let text = std::str::from_utf8(line).context("a chunk's size is not text")?;
    let digits = text.split(';').next().unwrap_or_default().trim();
    u64::from_str_radix(digits, 16).with_context(|| format!("{digits:?} is no chunk size"))
}
