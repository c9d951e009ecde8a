//! The canonical form of a path.

use std::fmt;

use api::group::CapiTypes;

use crate::place::Action;
use crate::{Refusal, Rules, name};

/// The segments of a path, decoded; each one is preceded by `/`.
#[derive(Debug, Clone)]
pub(super) struct Segments {
    decoded: Vec<String>,
    /// What follows a `proxy` subresource belongs to the workload behind it and is forwarded unchanged.
    tail: String,
}

// === impl Segments ===

impl Segments {
    pub(super) fn parse(path: &str) -> Result<Self, Refusal> {
        let Some(rest) = path.strip_prefix('/') else {
            return Err(Refusal::path(
                "the request target is not a path: start it with \"/\"",
            ));
        };
        if let Some(bad) = path
            .bytes()
            .find(|&byte| !(0x21..=0x7e).contains(&byte) || byte == b'#')
        {
            return Err(Refusal::path(format!(
                "the path holds the byte 0x{bad:02x}, which has no place in a Kubernetes path"
            )));
        }
        let mut segments = Self {
            decoded: Vec::with_capacity(8),
            tail: String::new(),
        };
        let mut pieces = rest.split('/').peekable();
        while let Some(piece) = pieces.next() {
            let last = pieces.peek().is_none();
            segments.decoded.push(decode(piece, last)?);
            if segments.ends_in_proxy() {
                segments.tail = tail(pieces)?;
                break;
            }
        }
        Ok(segments)
    }

    pub(super) fn get(&self, index: usize) -> Option<&str> {
        self.decoded.get(index).map(String::as_str)
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &str> + ExactSizeIterator {
        self.decoded.iter().map(String::as_str)
    }

    /// Swaps one segment; whether the client named it by its private name.
    pub(super) fn swap(&mut self, rules: &Rules, index: usize, action: Action) -> bool {
        let Some(segment) = self.decoded.get_mut(index) else {
            return false;
        };
        let Some(swapped) = name::swap(rules, action, segment) else {
            return false;
        };
        let private = swapped.to == CapiTypes::Standard;
        *segment = swapped.to_string();
        private
    }

    /// `/api/v1/[namespaces/<namespace>/]<pods|services|nodes>/<name>/proxy`.
    fn ends_in_proxy(&self) -> bool {
        let parts: Vec<&str> = self.iter().collect();
        matches!(
            parts.as_slice(),
            ["api", "v1", "nodes", _, "proxy"]
                | [
                    "api",
                    "v1",
                    "namespaces",
                    _,
                    "pods" | "services",
                    _,
                    "proxy"
                ]
        )
    }
}

impl fmt::Display for Segments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for segment in &self.decoded {
            f.write_str("/")?;
            encode(segment, f)?;
        }
        f.write_str(&self.tail)
    }
}

fn decode(piece: &str, last: bool) -> Result<String, Refusal> {
    let decoded = if piece.contains('%') {
        percent_decode(piece)?
    } else {
        piece.to_owned()
    };
    if decoded.is_empty() && !last {
        return Err(Refusal::path(
            "the path holds an empty segment (\"//\"): send each path in its plain form",
        ));
    }
    if decoded == "." || decoded == ".." {
        return Err(Refusal::path(
            "the path holds a dot segment: send each path in its plain form",
        ));
    }
    if decoded
        .chars()
        .any(|c| c.is_control() || matches!(c, '/' | '\\' | '%' | ';'))
    {
        return Err(Refusal::path(
            "a path segment holds an encoded separator, \"%\", \";\" or control character",
        ));
    }
    Ok(decoded)
}

/// The rest of a `proxy` path, checked for dot segments only, with its leading slash.
fn tail<'a>(pieces: impl Iterator<Item = &'a str>) -> Result<String, Refusal> {
    let mut tail = String::new();
    for piece in pieces {
        let decoded = percent_decode(piece)?;
        if decoded
            .split(['/', '\\'])
            .any(|part| part == "." || part == "..")
            || decoded.contains('\0')
        {
            return Err(Refusal::path(
                "the path holds a dot segment or NUL: send each path in its plain form",
            ));
        }
        tail.push('/');
        tail.push_str(piece);
    }
    Ok(tail)
}

fn percent_decode(piece: &str) -> Result<String, Refusal> {
    let bad = || Refusal::path("the path holds a broken percent escape");
    let mut bytes = Vec::with_capacity(piece.len());
    let mut rest = piece.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let mut digit = || rest.next().and_then(hex_digit).ok_or_else(bad);
            bytes.push(digit()? << 4 | digit()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).map_err(|_| bad())
}

pub(super) fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte)
        .to_digit(16)
        .and_then(|digit| u8::try_from(digit).ok())
}

fn encode(segment: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for byte in segment.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,=:@".contains(&byte) {
            write!(f, "{}", char::from(byte))?;
        } else {
            write!(f, "%{byte:02X}")?;
        }
    }
    Ok(())
}
