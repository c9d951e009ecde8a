//! The edits that a body needs: names, and the lengths of all messages around them.

use std::ops::Range;

use api::group::CapiTypes;

use super::kinds::{Node, openapi};
use super::wire::{self, Bytes, Field, Fields, Value};
use crate::name::{self, Swapped};
use crate::place::{self, Action};
use crate::{Counts, Refusal, Rules, yaml};

/// Messages in messages: schemas may be nested as deeply as their authors like.
const MAX_DEPTH: usize = 1000;

/// What to write instead of some bytes of the body.
#[derive(Debug)]
enum Edit<'b> {
    /// Nothing else: a length of content that keeps its size.
    Keep,
    Length {
        value: usize,
        /// Bytes that the old spelling had in excess. The new one has them too, so that a second swap restores it.
        padding: usize,
    },
    Name(Swapped<'b>),
    Text(Vec<u8>),
}

/// Collects edits in the order of the body, then writes the body with them.
#[derive(Debug)]
pub(super) struct Plan<'b> {
    rules: &'b Rules,
    body: &'b [u8],
    edits: Vec<(Range<usize>, Edit<'b>)>,
    counts: Counts,
}

// === impl Plan ===

impl<'b> Plan<'b> {
    pub(super) fn new(rules: &'b Rules, body: &'b [u8]) -> Self {
        Self {
            rules,
            body,
            edits: Vec::new(),
            counts: Counts::default(),
        }
    }

    /// Plans the edits of a value at `node`.
    pub(super) fn nested(&mut self, node: Node, bytes: &Bytes) -> Result<(), Refusal> {
        self.value(node, bytes, 0).map(|_| ())
    }

    /// Plans the edits of a body that is one message.
    pub(super) fn document(&mut self, fields: &[(u32, Node)]) -> Result<(), Refusal> {
        self.message(fields, 0..self.body.len(), 0).map(|_| ())
    }

    /// As [`Plan::nested`]; how many bytes longer the value's content becomes.
    fn value(&mut self, node: Node, bytes: &Bytes, depth: usize) -> Result<isize, Refusal> {
        let length_edit = self.edits.len();
        self.edits.push((bytes.length.clone(), Edit::Keep));
        let growth = match node {
            Node::Leaf(action) => self.leaf(action, bytes),
            Node::Message(fields) => self.message(fields, bytes.content.clone(), depth + 1)?,
            Node::Extension => self.extension(bytes.content.clone(), depth + 1)?,
            Node::Kinds => self.kinds(bytes)?,
        };
        if growth == 0 {
            // Nothing changed inside, as nearly always.
            if self.edits.len() == length_edit + 1 {
                self.edits.pop();
            }
            return Ok(0);
        }
        let old = bytes.content.len();
        let value = old.saturating_add_signed(growth);
        let padding = bytes.length.len() - wire::varint_width(old);
        self.edits[length_edit].1 = Edit::Length { value, padding };
        let length_growth = signed(wire::varint_width(value)) - signed(wire::varint_width(old));
        Ok(growth + length_growth)
    }

    fn message(
        &mut self,
        fields: &[(u32, Node)],
        message: Range<usize>,
        depth: usize,
    ) -> Result<isize, Refusal> {
        if depth > MAX_DEPTH {
            return Err(Refusal::too_large(format!(
                "the protobuf body is nested more than {MAX_DEPTH} levels deep"
            )));
        }
        let mut growth = 0;
        for field in Fields::new(self.body, message) {
            let field = field?;
            let Value::Bytes(bytes) = field.value else {
                continue;
            };
            if let Some((_, node)) = fields.iter().find(|(number, _)| *number == field.number) {
                growth += self.value(*node, &bytes, depth)?;
            }
        }
        Ok(growth)
    }

    /// An extension of an `OpenAPI` document: only that one is looked into which names kinds.
    fn extension(&mut self, message: Range<usize>, depth: usize) -> Result<isize, Refusal> {
        let names_kinds = |field: &Result<Field, Refusal>| {
            let Ok(Field {
                number: openapi::EXTENSION_NAME,
                value: Value::Bytes(bytes),
            }) = field
            else {
                return false;
            };
            self.body[bytes.content.clone()] == *openapi::KIND_EXTENSION
        };
        if !Fields::new(self.body, message.clone()).any(|field| names_kinds(&field)) {
            return Ok(0);
        }
        self.message(&openapi::EXTENSION_VALUE, message, depth)
    }

    fn kinds(&mut self, bytes: &Bytes) -> Result<isize, Refusal> {
        let text = &self.body[bytes.content.clone()];
        if !self.rules.mentions_group(text) {
            return Ok(0);
        }
        let mut swapped = Vec::new();
        let counts = yaml::swap(self.rules, place::Node::GroupKind, text, &mut swapped)?;
        self.counts.add(counts);
        let growth = signed(swapped.len()) - signed(text.len());
        self.edits
            .push((bytes.content.clone(), Edit::Text(swapped)));
        Ok(growth)
    }

    fn leaf(&mut self, action: Action, bytes: &Bytes) -> isize {
        let body = self.body;
        let swapped = std::str::from_utf8(&body[bytes.content.clone()])
            .ok()
            .and_then(|text| name::swap(self.rules, action, text));
        let Some(swapped) = swapped else { return 0 };
        match swapped.to {
            CapiTypes::Standard => self.counts.to_standard += 1,
            CapiTypes::Private => self.counts.to_private += 1,
        }
        let length = swapped.before.len() + swapped.name.len() + swapped.after.len();
        self.edits
            .push((bytes.content.clone(), Edit::Name(swapped)));
        signed(length) - signed(bytes.content.len())
    }

    /// Appends the edited body to `out`; leaves `out` alone on an error.
    pub(super) fn write(self, out: &mut Vec<u8>) -> Result<Counts, Refusal> {
        let before = out.len();
        let mut copied = 0;
        for (range, edit) in self.edits {
            out.extend_from_slice(&self.body[copied..range.start]);
            copied = range.end;
            let fits = match edit {
                Edit::Keep => {
                    out.extend_from_slice(&self.body[range]);
                    true
                }
                Edit::Length { value, padding } => wire::write_varint(value, padding, out),
                Edit::Text(text) => {
                    out.extend(text);
                    true
                }
                Edit::Name(name) => {
                    out.extend(
                        [name.before, name.name, name.after]
                            .iter()
                            .flat_map(|part| part.bytes()),
                    );
                    true
                }
            };
            if !fits {
                out.truncate(before);
                return Err(Refusal::malformed(
                    "the body is damaged protobuf: a length is spelled with idle bytes",
                ));
            }
        }
        out.extend_from_slice(&self.body[copied..]);
        Ok(self.counts)
    }
}

fn signed(length: usize) -> isize {
    isize::try_from(length).expect("invariant: no body is larger than the address space")
}
