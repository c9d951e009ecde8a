//! UTF-8 across chunks: JSON is UTF-8, so that anything else is damage.

use crate::Refusal;

/// The bytes of a character that the last chunk has cut.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Utf8 {
    cut: [u8; 4],
    length: usize,
}

// === impl Utf8 ===

impl Utf8 {
    pub(super) fn push(&mut self, input: &[u8]) -> Result<(), Refusal> {
        let mut rest = input;
        while self.length > 0 {
            let Some((&byte, after)) = rest.split_first() else {
                return Ok(());
            };
            rest = after;
            self.cut[self.length] = byte;
            self.length += 1;
            match std::str::from_utf8(&self.cut[..self.length]) {
                Ok(_) => self.length = 0,
                Err(error) if error.error_len().is_none() => {}
                Err(_) => return Err(not_utf8()),
            }
        }
        match std::str::from_utf8(rest) {
            Ok(_) => Ok(()),
            Err(error) if error.error_len().is_none() => {
                let tail = &rest[error.valid_up_to()..];
                self.cut[..tail.len()].copy_from_slice(tail);
                self.length = tail.len();
                Ok(())
            }
            Err(_) => Err(not_utf8()),
        }
    }

    pub(super) fn finish(self) -> Result<(), Refusal> {
        if self.length == 0 {
            Ok(())
        } else {
            Err(not_utf8())
        }
    }
}

#[cold]
fn not_utf8() -> Refusal {
    Refusal::malformed("the JSON body is not UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_may_span_chunks() {
        let text = "aé€😀z".as_bytes();
        for cut in 0..=text.len() {
            let mut utf8 = Utf8::default();
            utf8.push(&text[..cut]).unwrap();
            utf8.push(&text[cut..]).unwrap();
            utf8.finish().unwrap();
        }
    }

    #[test]
    fn invalid_utf8_is_rejected_in_any_chunks() {
        for bad in [
            &b"a\xffb"[..],
            b"\xc3(",
            b"\xed\xa0\x80",
            b"\xf5\x80\x80\x80",
        ] {
            let whole = Utf8::default().push(bad);
            let mut bytewise = Utf8::default();
            let cut = bad.iter().try_for_each(|byte| bytewise.push(&[*byte]));
            assert!(whole.is_err() && cut.is_err(), "{bad:?}");
        }
        let mut unfinished = Utf8::default();
        unfinished.push(b"\xe2\x82").unwrap();
        assert!(unfinished.finish().is_err());
    }
}
