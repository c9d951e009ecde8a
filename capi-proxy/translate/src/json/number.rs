//! The grammar of numbers, a byte at a time: a number may be long, and may be cut anywhere.

use crate::Refusal;

/// How much of a number has been seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Number {
    #[default]
    Start,
    Minus,
    Zero,
    Integer,
    Point,
    Fraction,
    Exponent,
    ExponentSign,
    ExponentDigits,
}

// === impl Number ===

impl Number {
    /// Takes one byte; `false` when the number has ended before it.
    pub(super) fn push(&mut self, byte: u8) -> Result<bool, Refusal> {
        *self = match (*self, byte) {
            (Self::Start, b'-') => Self::Minus,
            (Self::Start | Self::Minus, b'0') => Self::Zero,
            (Self::Start | Self::Minus, b'1'..=b'9') | (Self::Integer, b'0'..=b'9') => {
                Self::Integer
            }
            (Self::Zero | Self::Integer, b'.') => Self::Point,
            (Self::Point | Self::Fraction, b'0'..=b'9') => Self::Fraction,
            (Self::Zero | Self::Integer | Self::Fraction, b'e' | b'E') => Self::Exponent,
            (Self::Exponent, b'+' | b'-') => Self::ExponentSign,
            (Self::Exponent | Self::ExponentSign | Self::ExponentDigits, b'0'..=b'9') => {
                Self::ExponentDigits
            }
            (state, _) if state.is_complete() => return Ok(false),
            _ => return Err(Refusal::malformed("the JSON body holds a broken number")),
        };
        Ok(true)
    }

    /// The number may end here.
    pub(super) fn is_complete(self) -> bool {
        matches!(
            self,
            Self::Zero | Self::Integer | Self::Fraction | Self::ExponentDigits
        )
    }
}
