//! Protobuf: request bodies of built-in kinds, and the `OpenAPI` v2 document. Rewritten in place, byte by byte.
//!
//! client-go sends built-in kinds in this encoding and has no fallback when it is refused. A body is four magic bytes and
//! an envelope (`runtime.Unknown`) with the type's name and the object. Only the fields on the way to a group are read
//! (see `kinds`); all others keep their bytes, also unknown ones. Other responses
//! are never protobuf, because the API server is not requested it (see [`super::accept`]).

mod kinds;
mod plan;
mod wire;

use std::ops::Range;

use super::{Counts, Refusal, Rules};
use kinds::Root;
use plan::Plan;
use wire::{Fields, Value};

/// What every body begins with.
const MAGIC: &[u8] = b"k8s\0";

/// Swaps the names in a request body, appending the result to `out`.
///
/// `group` and `resource` are those of the URL; they and the envelope say what the object holds. A kind that is not
/// known has its metadata swapped, and is refused when anything else in it reads like a group of the table. On an error
/// `out` is left as it was.
pub fn swap(
    rules: &Rules,
    group: &str,
    resource: &str,
    input: &[u8],
    out: &mut Vec<u8>,
) -> Result<Counts, Refusal> {
    if !input.starts_with(MAGIC) {
        return Err(Refusal::malformed(
            "the body is not Kubernetes protobuf: it does not begin with \"k8s\" and a zero byte",
        ));
    }
    let envelope = Envelope::read(input)?;
    let root = kinds::root(group, resource, envelope.api_version, envelope.kind);
    let mut plan = Plan::new(rules, input);
    for field in envelope.fields() {
        let field = field?;
        match (field.number, &field.value) {
            (TYPE_META, Value::Bytes(bytes)) => plan.nested(kinds::TYPE_META, bytes)?,
            (RAW, Value::Bytes(bytes)) => plan.nested(root.node(), bytes)?,
            _ => {}
        }
    }
    if let Root::Unknown = root {
        refuse_groups_outside_metadata(rules, input, envelope.raw)?;
    }
    plan.write(out)
}

/// Swaps the names in an `OpenAPI` v2 document, which is a message without an envelope, appending the result to `out`.
///
/// It is the only response in this encoding: some clients accept no other one. On an error `out` is left as it was.
pub fn swap_openapi(rules: &Rules, input: &[u8], out: &mut Vec<u8>) -> Result<Counts, Refusal> {
    let mut plan = Plan::new(rules, input);
    plan.document(&kinds::openapi::DOCUMENT)?;
    plan.write(out)
}

/// Fields of the envelope.
const TYPE_META: u32 = 1;
const RAW: u32 = 2;
const CONTENT_ENCODING: u32 = 3;
const CONTENT_TYPE: u32 = 4;

/// `runtime.Unknown`, read as far as needed to know what it holds.
struct Envelope<'b> {
    body: &'b [u8],
    api_version: &'b [u8],
    kind: &'b [u8],
    raw: Range<usize>,
}

// === impl Envelope ===

impl<'b> Envelope<'b> {
    fn read(body: &'b [u8]) -> Result<Self, Refusal> {
        let mut envelope = Self {
            body,
            api_version: b"",
            kind: b"",
            raw: body.len()..body.len(),
        };
        let mut seen = [false; 5];
        for field in envelope.fields() {
            let field = field?;
            let Some(seen) = seen.get_mut(field.number as usize) else {
                continue;
            };
            // The API server would merge the two, or let the last one win.
            if std::mem::replace(seen, true) {
                return Err(Refusal::malformed(
                    "a field of the protobuf envelope is there twice: send each once",
                ));
            }
            let Value::Bytes(bytes) = field.value else {
                return Err(Refusal::malformed(
                    "a field of the protobuf envelope is a number: send runtime.Unknown",
                ));
            };
            match field.number {
                TYPE_META => envelope.read_type_meta(bytes.content)?,
                RAW => envelope.raw = bytes.content,
                CONTENT_ENCODING | CONTENT_TYPE if !bytes.content.is_empty() => {
                    return Err(Refusal::unsupported_media_type(
                        "the protobuf envelope names a content type or encoding of its own: send the object as protobuf",
                    ));
                }
                _ => {}
            }
        }
        Ok(envelope)
    }

    fn read_type_meta(&mut self, type_meta: Range<usize>) -> Result<(), Refusal> {
        for field in Fields::new(self.body, type_meta) {
            let field = field?;
            if let Value::Bytes(bytes) = field.value {
                match field.number {
                    1 => self.api_version = &self.body[bytes.content],
                    2 => self.kind = &self.body[bytes.content],
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn fields(&self) -> Fields<'b> {
        Fields::new(self.body, MAGIC.len()..self.body.len())
    }
}

/// Refuses an object of an unknown kind in which a string, at any depth, is a group of the table or an API version.
///
/// Without the kind's description strings cannot be distinguished from messages, so this looks for names that follow their
/// own length.
fn refuse_groups_outside_metadata(
    rules: &Rules,
    body: &[u8],
    raw: Range<usize>,
) -> Result<(), Refusal> {
    for field in Fields::new(body, raw) {
        let field = field?;
        if let (number, Value::Bytes(bytes)) = (field.number, field.value)
            && number != kinds::OBJECT_METADATA
            && holds_group(rules, &body[bytes.length.start..bytes.content.end])
        {
            return Err(Refusal::unsupported_media_type(
                "this kind is not known here as protobuf and names an API group that has to be translated: send it as JSON",
            ));
        }
    }
    Ok(())
}

fn holds_group(rules: &Rules, bytes: &[u8]) -> bool {
    let is_group = |text: &[u8]| rules.table().find(text).is_some() || is_api_version(rules, text);
    let string_at = |start: usize| {
        let (length, width) = wire::read_varint(&bytes[start..]).ok()?;
        bytes[start + width..].get(..usize::try_from(length).ok()?)
    };
    (0..bytes.len()).filter_map(string_at).any(is_group)
}

/// `<group>/v<digit>...`: a label key has the same form, but seldom a version's name.
fn is_api_version(rules: &Rules, text: &[u8]) -> bool {
    rules
        .table()
        .swap_api_version(text)
        .is_some_and(|(_, rest)| {
            rest.starts_with(b"/v") && rest.get(2).is_some_and(u8::is_ascii_digit)
        })
}

#[cfg(test)]
mod tests;
