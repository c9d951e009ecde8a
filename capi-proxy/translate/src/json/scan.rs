//! Finding the end of a string, sixteen bytes at a time.

use wide::u8x16;

use crate::Refusal;

/// How many bytes are looked at together.
const LANES: usize = 16;

/// The first byte from `at` on that a plain run of string content cannot hold: a quote, a backslash or a control
/// character; the input's length where there is none.
#[inline]
pub(super) fn skip_plain(input: &[u8], mut at: usize) -> usize {
    while let Some(lanes) = input.get(at..at + LANES) {
        let hits = special(lanes.try_into().expect("invariant: sixteen bytes"));
        if hits != 0 {
            return at + hits.trailing_zeros() as usize;
        }
        at += LANES;
    }
    while at < input.len() && !matches!(input[at], b'"' | b'\\' | 0..0x20) {
        at += 1;
    }
    at
}

/// One bit for each byte that is special.
#[inline]
fn special(lanes: [u8; LANES]) -> u32 {
    let lanes = u8x16::new(lanes);
    let quote = lanes.simd_eq(u8x16::splat(b'"'));
    let backslash = lanes.simd_eq(u8x16::splat(b'\\'));
    let control = lanes.min(u8x16::splat(0x1f)).simd_eq(lanes);
    (quote | backslash | control).to_bitmask()
}

#[inline]
pub(super) fn skip_whitespace(input: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\n' | b'\r') = input.get(at) {
        at += 1;
    }
    at
}

/// The state of a scan inside a string; kept across chunks.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StringScan {
    escape: Escape,
    escaped: bool,
}

#[derive(Debug, Clone, Copy, Default)]
enum Escape {
    #[default]
    None,
    /// Behind a backslash.
    Start,
    /// So many hexadecimal digits are still to come.
    Unicode(u8),
}

// === impl StringScan ===

impl StringScan {
    /// The string has held an escape so far.
    pub(super) fn escaped(self) -> bool {
        self.escaped
    }

    /// Advances over string content: where it stopped, and whether the closing quote lies before that.
    pub(super) fn advance(
        &mut self,
        input: &[u8],
        mut at: usize,
    ) -> Result<(usize, bool), Refusal> {
        loop {
            if matches!(self.escape, Escape::None) {
                at = skip_plain(input, at);
            }
            let Some(&byte) = input.get(at) else {
                return Ok((at, false));
            };
            at += 1;
            match (self.escape, byte) {
                (Escape::None, b'"') => return Ok((at, true)),
                (Escape::None, b'\\') => {
                    self.escape = Escape::Start;
                    self.escaped = true;
                }
                (Escape::Start, b'u') => self.escape = Escape::Unicode(4),
                (Escape::Start, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                    self.escape = Escape::None
                }
                (Escape::Unicode(1), digit) if digit.is_ascii_hexdigit() => {
                    self.escape = Escape::None
                }
                (Escape::Unicode(left), digit) if digit.is_ascii_hexdigit() => {
                    self.escape = Escape::Unicode(left - 1)
                }
                (Escape::None, _) => {
                    return Err(Refusal::malformed(
                        "a JSON string holds a raw control character",
                    ));
                }
                (Escape::Start | Escape::Unicode(_), _) => {
                    return Err(Refusal::malformed("a JSON string holds a broken escape"));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_bytes_are_found_at_every_offset() {
        for special in (0..0x20).chain([b'"', b'\\']) {
            for offset in 0..40 {
                let mut input = vec![b'x'; 40];
                input[offset] = special;
                assert_eq!(skip_plain(&input, 0), offset, "0x{special:02x} at {offset}");
            }
        }
    }

    #[test]
    fn other_bytes_are_skipped() {
        for byte in (0x20..=0xff).filter(|byte| !matches!(byte, b'"' | b'\\')) {
            assert_eq!(skip_plain(&[byte; 21], 0), 21, "0x{byte:02x}");
        }
    }
}
