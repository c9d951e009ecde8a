//! The fast path: runs of fields in compact JSON, without the states of single tokens.

use std::ops::Range;

use super::scan::skip_plain;
use super::{Chunk, Container, Json, Node, Refusal, State};

impl Json {
    /// The common run of compact JSON: fields without white space or escapes that lie whole in this chunk.
    ///
    /// It decides nothing that [`Json::step`] would not decide the same way: it stops, in a state that `step` knows,
    /// before whatever is of another form, and at the end of the chunk. What it saves is the way through the states
    /// for each of the four or more tokens of a field.
    pub(super) fn run(&mut self, chunk: &mut Chunk<'_, '_>) -> Result<(), Refusal> {
        let input = chunk.input;
        let mut at = chunk.at;
        let mut after_value = self.state == State::AfterValue;
        if self.current.kind != Container::Object {
            return Ok(());
        }
        let state = loop {
            if after_value {
                if !self.next_field(input, &mut at) {
                    break State::AfterValue;
                }
                self.state = State::Key;
            }
            // Here the state is `Key` or `FirstKey`, and a field name is next.
            let Some((name, first)) = plain_field(input, at) else {
                break self.state;
            };
            let value = name.end + 2;
            let Some(child) = self.current.node.plain_child(&input[name]) else {
                break self.state;
            };
            match first {
                b'"' => {
                    let end = skip_plain(input, value + 1);
                    if input.get(end) != Some(&b'"') {
                        break self.state;
                    }
                    if let Some(action) = child.action() {
                        self.edit(action, value + 1..end, chunk);
                    }
                    at = end + 1;
                    after_value = true;
                }
                b'{' => {
                    at = value;
                    if child == Node::Opaque && input.get(at + 1) == Some(&b'}') {
                        // An empty object, of which `fieldsV1` has many.
                        at += 2;
                        after_value = true;
                        continue;
                    }
                    self.child = child;
                    chunk.at = at;
                    self.open(Container::Object, State::FirstKey, chunk)?;
                    at = chunk.at;
                    after_value = input.get(at) == Some(&b'}');
                }
                _ => {
                    self.child = child;
                    at = value;
                    break State::Value;
                }
            }
        };
        self.state = state;
        chunk.at = at;
        Ok(())
    }

    /// Reads the ends of objects after a value, and the comma. Returns whether a field of an object is next.
    #[inline]
    fn next_field(&mut self, input: &[u8], at: &mut usize) -> bool {
        loop {
            match input.get(*at) {
                Some(b',') => {
                    *at += 1;
                    return true;
                }
                Some(b'}') if self.parents.len() > 1 => {
                    *at += 1;
                    self.current = self
                        .parents
                        .pop()
                        .expect("invariant: an object has a parent");
                    if self.current.kind != Container::Object {
                        return false;
                    }
                }
                _ => return false,
            }
        }
    }
}

/// The name of the field at `at` and the first byte of its value, if the name has no escapes, lies whole in `input`, and
/// no white space surrounds the colon.
#[inline]
fn plain_field(input: &[u8], at: usize) -> Option<(Range<usize>, u8)> {
    if input.get(at) != Some(&b'"') {
        return None;
    }
    let end = skip_plain(input, at + 1);
    match input.get(end..end + 3) {
        Some(&[b'"', b':', first]) => Some((at + 1..end, first)),
        _ => None,
    }
}
