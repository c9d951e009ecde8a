//! Follows a chunked body to its end. Sizes must be plain hexadecimal numbers; extensions are rejected.

use super::head::check_field;
use super::{MAX_HEADERS, Violation};

/// Maximum number of digits of a chunk size.
const MAX_DIGITS: usize = 15;
/// Maximum size of the trailer section.
const MAX_TRAILERS: usize = 8 * 1024;

/// How many bytes are released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    /// Zero: more bytes are needed.
    pub(super) released: usize,
    /// The released bytes end the body.
    pub(super) end: bool,
}

/// The element of the next byte.
#[derive(Debug, Default)]
pub(super) enum Scanner {
    /// A chunk size line.
    #[default]
    Size,
    /// The rest of the data of a chunk.
    Data(u64),
    /// The line end after the data of a chunk.
    DataEnd,
    /// The trailer section.
    Trailers,
}

// === impl Scanner ===

impl Scanner {
    /// `pending` holds all bytes that have arrived and were not released.
    pub(super) fn scan(&mut self, pending: &[u8]) -> Result<Found, Violation> {
        let mut released = 0;
        loop {
            match self.take(&pending[released..]) {
                Ok(Found {
                    released: taken @ 1..,
                    end: false,
                }) => released += taken,
                Ok(Found {
                    released: taken,
                    end,
                }) => {
                    return Ok(Found {
                        released: released + taken,
                        end,
                    });
                }
                // Valid bytes are released, and the rest is rejected next time, independent of chunks.
                Err(_) if released > 0 => {
                    return Ok(Found {
                        released,
                        end: false,
                    });
                }
                Err(violation) => return Err(violation),
            }
        }
    }

    fn take(&mut self, rest: &[u8]) -> Result<Found, Violation> {
        let released = match self {
            Self::Size => self.size(rest)?,
            Self::Data(_) => self.data(rest),
            Self::DataEnd => self.data_end(rest)?,
            Self::Trailers => {
                let taken = trailers(rest)?;
                return Ok(Found {
                    released: taken.unwrap_or(0),
                    end: taken.is_some(),
                });
            }
        };
        Ok(Found {
            released,
            end: false,
        })
    }

    fn size(&mut self, rest: &[u8]) -> Result<usize, Violation> {
        let digits = rest
            .iter()
            .take(MAX_DIGITS + 1)
            .take_while(|byte| byte.is_ascii_hexdigit())
            .count();
        let behind = &rest[digits..];
        if digits > MAX_DIGITS
            || !b"\r\n".starts_with(&behind[..behind.len().min(2)])
            || (digits == 0 && !rest.is_empty())
        {
            return Err(Violation::bad_request(
                "a chunk's size is not a plain hexadecimal number",
            ));
        }
        if behind.len() < 2 {
            return Ok(0);
        }
        let size = rest[..digits]
            .iter()
            .fold(0, |size, &digit| size * 16 + hex(digit));
        *self = if size == 0 {
            Self::Trailers
        } else {
            Self::Data(size)
        };
        Ok(digits + 2)
    }

    fn data(&mut self, rest: &[u8]) -> usize {
        let Self::Data(left) = self else { return 0 };
        let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(rest.len());
        *left -= taken as u64;
        if *left == 0 {
            *self = Self::DataEnd;
        }
        taken
    }

    fn data_end(&mut self, rest: &[u8]) -> Result<usize, Violation> {
        if !b"\r\n".starts_with(&rest[..rest.len().min(2)]) {
            return Err(Violation::bad_request(
                "a chunk's data does not end where its size says",
            ));
        }
        if rest.len() < 2 {
            return Ok(0);
        }
        *self = Self::Size;
        Ok(2)
    }
}

fn hex(digit: u8) -> u64 {
    u64::from(match digit {
        b'a'..=b'f' => digit - b'a' + 10,
        b'A'..=b'F' => digit - b'A' + 10,
        _ => digit - b'0',
    })
}

/// Validates the trailer section; returns its length, including the empty line, once it is complete.
fn trailers(rest: &[u8]) -> Result<Option<usize>, Violation> {
    let mut length = 0;
    for (count, line) in rest.split_inclusive(|&byte| byte == b'\n').enumerate() {
        length += line.len();
        if length > MAX_TRAILERS || count > MAX_HEADERS {
            return Err(Violation::bad_request(
                "the request's trailers are too large",
            ));
        }
        let Some(line) = line.strip_suffix(b"\n") else {
            return Ok(None);
        };
        let line = line
            .strip_suffix(b"\r")
            .ok_or_else(|| Violation::bad_request("a line ends without a carriage return"))?;
        if line.is_empty() {
            return Ok(Some(length));
        }
        check_field(line)?;
    }
    Ok(None)
}
