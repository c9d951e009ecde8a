//! Finds the end of a request head, validates its lines, and determines the framing of its body.

use http::StatusCode;
use http::uri::PathAndQuery;

use super::{MAX_HEAD, MAX_HEADERS, Violation};

/// The framing of the bytes after a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// No body.
    None,
    /// A body of this length.
    Length(u64),
    /// `Transfer-Encoding: chunked`.
    Chunked,
    /// An upgrade: no HTTP follows if the server accepts it.
    Upgrade,
}

/// A complete head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    /// Its length, including the empty line at its end.
    pub(super) length: usize,
    pub(super) framing: Framing,
}

/// Finds the end of a head in chunks, and scans each byte once.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    scanned: usize,
    line_start: usize,
}

/// The header fields that determine the framing.
#[derive(Debug, Default)]
struct Fields {
    count: usize,
    hosts: usize,
    length: Option<u64>,
    chunked: bool,
    upgrade: bool,
}

// === impl Scanner ===

impl Scanner {
    /// `pending` begins with the head and holds all of it that has arrived.
    pub(super) fn scan(&mut self, pending: &[u8]) -> Result<Option<Head>, Violation> {
        while let Some(found) = memchr::memchr(b'\n', &pending[self.scanned..]) {
            let feed = self.scanned + found;
            let line = pending[self.line_start..feed]
                .strip_suffix(b"\r")
                .ok_or_else(|| Violation::bad_request("a line ends without a carriage return"))?;
            if feed >= MAX_HEAD {
                return Err(too_large());
            }
            self.scanned = feed + 1;
            if line.is_empty() {
                let length = self.scanned;
                return Ok(Some(Head {
                    length,
                    framing: check(&pending[..length])?,
                }));
            }
            self.line_start = self.scanned;
        }
        self.scanned = pending.len();
        if pending.len() >= MAX_HEAD {
            Err(too_large())
        } else {
            Ok(None)
        }
    }
}

fn too_large() -> Violation {
    Violation::new(
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        format!("the request's head is larger than {MAX_HEAD} bytes"),
    )
}

/// Validates a complete head, including the empty line at its end.
fn check(head: &[u8]) -> Result<Framing, Violation> {
    // The scanner has seen that every line feed follows a carriage return.
    let mut lines = head
        .split(|&byte| byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    check_request_line(lines.next().unwrap_or_default())?;
    let mut fields = Fields::default();
    for line in lines.take_while(|line| !line.is_empty()) {
        let (name, value) = check_field(line)?;
        fields.take(name, value)?;
    }
    fields.framing()
}

fn check_request_line(line: &[u8]) -> Result<(), Violation> {
    let mut words = line.split(|&byte| byte == b' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(Violation::bad_request(
            "the request line is not `METHOD TARGET HTTP/1.1`",
        ));
    };
    if method.is_empty() || !method.iter().all(|&byte| is_token(byte)) {
        return Err(Violation::bad_request(
            "the request's method is not a token",
        ));
    }
    if method == b"CONNECT" {
        return Err(Violation::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "CONNECT is not served: this is no forward proxy",
        ));
    }
    check_version(version)?;
    check_target(target)
}

fn check_version(version: &[u8]) -> Result<(), Violation> {
    match version {
        b"HTTP/1.1" => Ok(()),
        // An HTTP/1.0 response may end with the connection, so a truncated one looks complete.
        b"HTTP/1.0" | b"HTTP/2.0" => Err(Violation::new(
            StatusCode::HTTP_VERSION_NOT_SUPPORTED,
            "only HTTP/1.1 is served",
        )),
        _ => Err(Violation::bad_request(
            "the request line is not `METHOD TARGET HTTP/1.1`",
        )),
    }
}

fn check_target(target: &[u8]) -> Result<(), Violation> {
    if target.first() != Some(&b'/') {
        return Err(Violation::bad_request(
            "the request's target must be a path: only origin-form is served",
        ));
    }
    let parsed = PathAndQuery::try_from(target).ok();
    // The library silently drops a fragment.
    if parsed.is_none_or(|parsed| parsed.as_str().as_bytes() != target) {
        return Err(Violation::bad_request(
            "the request's target holds bytes that must be percent-encoded",
        ));
    }
    Ok(())
}

/// Splits a header line, and rejects one that another parser might split differently.
pub(super) fn check_field(line: &[u8]) -> Result<(&[u8], &[u8]), Violation> {
    if matches!(line.first(), Some(b' ' | b'\t')) {
        return Err(Violation::bad_request("a header line is folded"));
    }
    let colon = memchr::memchr(b':', line)
        .ok_or_else(|| Violation::bad_request("a header line has no colon"))?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    if name.is_empty() || !name.iter().all(|&byte| is_token(byte)) {
        return Err(Violation::bad_request("a header's name is not a token"));
    }
    if value
        .iter()
        .any(|&byte| (byte < b' ' && byte != b'\t') || byte == 0x7f)
    {
        return Err(Violation::bad_request(
            "a header's value holds a control character",
        ));
    }
    Ok((name, trim(value)))
}

fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

// === impl Fields ===

impl Fields {
    fn take(&mut self, name: &[u8], value: &[u8]) -> Result<(), Violation> {
        self.count += 1;
        if self.count > MAX_HEADERS {
            return Err(Violation::new(
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                format!("the request has more than {MAX_HEADERS} headers"),
            ));
        }
        // The relevant names differ in length, which excludes most others.
        match name.len() {
            4 if name.eq_ignore_ascii_case(b"host") => self.take_host(),
            6 if name.eq_ignore_ascii_case(b"expect") => check_expect(value),
            7 if name.eq_ignore_ascii_case(b"upgrade") => {
                self.upgrade = true;
                Ok(())
            }
            14 if name.eq_ignore_ascii_case(b"content-length") => self.take_length(value),
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => self.take_encoding(value),
            _ => Ok(()),
        }
    }

    fn take_host(&mut self) -> Result<(), Violation> {
        self.hosts += 1;
        if self.hosts > 1 {
            return Err(Violation::bad_request("the request has two Host headers"));
        }
        Ok(())
    }

    fn take_length(&mut self, value: &[u8]) -> Result<(), Violation> {
        if self.length.is_some() {
            return Err(Violation::bad_request(
                "the request has two Content-Length headers",
            ));
        }
        let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
        let length = digits
            .then_some(value)
            .and_then(|value| std::str::from_utf8(value).ok()?.parse().ok());
        self.length = Some(
            length.ok_or_else(|| Violation::bad_request("Content-Length is not a plain number"))?,
        );
        Ok(())
    }

    fn take_encoding(&mut self, value: &[u8]) -> Result<(), Violation> {
        if self.chunked {
            return Err(Violation::bad_request(
                "the request has two Transfer-Encoding headers",
            ));
        }
        if !value.eq_ignore_ascii_case(b"chunked") {
            return Err(Violation::bad_request(
                "Transfer-Encoding is not exactly `chunked`",
            ));
        }
        self.chunked = true;
        Ok(())
    }

    fn framing(&self) -> Result<Framing, Violation> {
        match (self.length, self.chunked, self.upgrade) {
            (Some(_), true, _) => Err(Violation::bad_request(
                "the request has both Content-Length and Transfer-Encoding",
            )),
            (Some(1..), _, true) | (_, true, true) => Err(Violation::bad_request(
                "a request for another protocol has no body",
            )),
            (_, _, true) => Ok(Framing::Upgrade),
            (_, true, false) => Ok(Framing::Chunked),
            (Some(length), false, false) => Ok(Framing::Length(length)),
            (None, false, false) => Ok(Framing::None),
        }
    }
}

fn check_expect(value: &[u8]) -> Result<(), Violation> {
    if value.eq_ignore_ascii_case(b"100-continue") {
        return Ok(());
    }
    Err(Violation::new(
        StatusCode::EXPECTATION_FAILED,
        "Expect is not `100-continue`",
    ))
}
