//! The protobuf wire format: fields of a message, by their offsets in the body.

use std::ops::Range;

use crate::Refusal;

/// The most bytes that a number may have.
const MAX_VARINT: usize = 10;

/// One field of a message.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) number: u32,
    pub(super) value: Value,
}

/// The value of a field.
#[derive(Debug)]
pub(super) enum Value {
    /// A number, which is never a place.
    Number,
    /// A string, bytes or a message.
    Bytes(Bytes),
}

/// The range of a length-delimited value in the body.
#[derive(Debug)]
pub(super) struct Bytes {
    /// The length, as a number.
    pub(super) length: Range<usize>,
    pub(super) content: Range<usize>,
}

/// The fields of one message, in order. Ends after the first error.
#[derive(Debug)]
pub(super) struct Fields<'b> {
    body: &'b [u8],
    rest: Range<usize>,
}

// === impl Fields ===

impl<'b> Fields<'b> {
    /// The fields of the message at `message` of `body`.
    pub(super) fn new(body: &'b [u8], message: Range<usize>) -> Self {
        Self {
            body,
            rest: message,
        }
    }

    fn field(&mut self) -> Result<Field, Refusal> {
        let tag = self.varint()?;
        // The API server cuts a larger number down to one that may mean another field.
        let tag = u32::try_from(tag).map_err(|_| malformed("a field number is too large"))?;
        let number = tag >> 3;
        if number == 0 {
            return Err(malformed("a field number is zero"));
        }
        let value = match tag & 7 {
            0 => self.varint().map(|_| Value::Number)?,
            1 => self.take(8).map(|_| Value::Number)?,
            2 => Value::Bytes(self.bytes()?),
            5 => self.take(4).map(|_| Value::Number)?,
            _ => {
                return Err(malformed(
                    "a field has a wire type that Kubernetes does not use",
                ));
            }
        };
        Ok(Field { number, value })
    }

    fn bytes(&mut self) -> Result<Bytes, Refusal> {
        let start = self.rest.start;
        let length = usize::try_from(self.varint()?).map_err(|_| truncated())?;
        let prefix = start..self.rest.start;
        Ok(Bytes {
            length: prefix,
            content: self.take(length)?,
        })
    }

    fn take(&mut self, length: usize) -> Result<Range<usize>, Refusal> {
        if length > self.rest.len() {
            return Err(truncated());
        }
        let taken = self.rest.start..self.rest.start + length;
        self.rest.start = taken.end;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64, Refusal> {
        let (value, width) = read_varint(&self.body[self.rest.clone()])?;
        self.rest.start += width;
        Ok(value)
    }
}

impl Iterator for Fields<'_> {
    type Item = Result<Field, Refusal>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest.start = self.rest.end;
        }
        Some(field)
    }
}

/// The number that `bytes` begins with, and how many bytes it has.
pub(super) fn read_varint(bytes: &[u8]) -> Result<(u64, usize), Refusal> {
    let mut value = 0;
    for (index, &byte) in bytes.iter().take(MAX_VARINT).enumerate() {
        let bits = u64::from(byte & 0x7f);
        if index == MAX_VARINT - 1 && bits > 1 {
            return Err(overlong());
        }
        value |= bits << (7 * index);
        if byte < 0x80 {
            return Ok((value, index + 1));
        }
    }
    Err(if bytes.len() < MAX_VARINT {
        truncated()
    } else {
        overlong()
    })
}

/// Appends `value` in `padding` more bytes than it needs; false when no number may be that long.
pub(super) fn write_varint(value: usize, padding: usize, out: &mut Vec<u8>) -> bool {
    let width = varint_width(value) + padding;
    let mut rest = value;
    for index in 0..width {
        let more = if index + 1 < width { 0x80 } else { 0 };
        let bits = u8::try_from(rest & 0x7f).expect("invariant: seven bits fit in a byte");
        out.push(bits | more);
        rest >>= 7;
    }
    width <= MAX_VARINT
}

/// The fewest bytes that `value` fits in.
pub(super) fn varint_width(value: usize) -> usize {
    let bits = (usize::BITS - value.leading_zeros()).max(1);
    bits.div_ceil(7) as usize
}

fn truncated() -> Refusal {
    malformed("it ends in the middle of a field")
}

fn overlong() -> Refusal {
    malformed("a number is longer than 64 bits")
}

fn malformed(what: &str) -> Refusal {
    Refusal::malformed(format!("the body is damaged protobuf: {what}"))
}
