//! The streaming JSON translator: any chunk split, bounded memory, bytes that hold no place stay as they are.
//!
//! One pass over the bytes. The scanner checks the grammar on the way, so that a damaged or truncated body is noticed,
//! and looks up each string in the trie of [places](super::place). Unchanged runs are copied in one
//! piece. What is held back between chunks is at most one field name or one string at a place.

mod fields;
mod number;
mod scan;
mod token;
mod utf8;

use std::borrow::Cow;
use std::ops::Range;

use api::group::CapiTypes;

use super::place::{Action, Node};
use super::{Counts, Direction, Refusal, Rules, name};
use number::Number;
use scan::{StringScan, skip_plain, skip_whitespace};
use token::{decode, write_string};
use utf8::Utf8;

/// Nesting limit, the API server's own (Go's `encoding/json` refuses more).
pub const MAX_DEPTH: usize = 10_000;
/// No group, version or key is longer than this; what is, is not a place.
const MAX_NAME: usize = 2 * 1024;
/// Free text is swapped in pieces of at most this size.
const MAX_TEXT: usize = 32 * 1024;

/// Whether a body is one document or a sequence of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Documents {
    /// Anything but white space behind the document is damage.
    One,
    /// A watch: one document after the other.
    Many,
}

/// The streaming translator; one for each body.
#[derive(Debug)]
pub struct Json {
    rules: Rules,
    direction: Direction,
    documents: Documents,
    root: Node,
    state: State,
    /// The object or array that the scanner is in.
    current: Frame,
    /// The containers of `current`, outermost first; empty outside of any.
    parents: Vec<Frame>,
    /// The node of the next value.
    child: Node,
    string: StringScan,
    number: Number,
    literal: &'static [u8],
    /// A field name or string at a place that began in an earlier chunk, with its opening quote.
    held: Vec<u8>,
    utf8: Utf8,
    counts: Counts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before a document.
    Start,
    /// Behind the only document.
    End,
    Value,
    FirstElement,
    FirstKey,
    Key,
    Colon,
    AfterValue,
    InKey,
    /// In a field name that leads nowhere, or is too long to be known.
    InUnknownKey,
    InPlace,
    InString,
    InNumber,
    InLiteral,
}

#[derive(Debug, Clone, Copy)]
struct Frame {
    node: Node,
    kind: Container,
    status: StatusMarks,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Container {
    Document,
    Object,
    Array,
}

/// A response's root is a `metav1.Status` when both of its names say so.
#[derive(Debug, Clone, Copy, Default)]
struct StatusMarks {
    kind: bool,
    version: bool,
}

/// One chunk on its way through.
struct Chunk<'i, 'o> {
    input: &'i [u8],
    at: usize,
    /// Everything before is already in `out`.
    copied: usize,
    out: &'o mut Vec<u8>,
}

// === impl Chunk ===

impl Chunk<'_, '_> {
    fn copy_to(&mut self, end: usize) {
        self.out.extend_from_slice(&self.input[self.copied..end]);
        self.copied = end;
    }
}

// === impl Json ===

impl Json {
    /// A translator for one body with its root at `root`.
    pub fn new(rules: &Rules, direction: Direction, documents: Documents, root: Node) -> Self {
        Self {
            rules: rules.clone(),
            direction,
            documents,
            root,
            state: State::Start,
            current: Frame {
                node: root,
                kind: Container::Document,
                status: StatusMarks::default(),
            },
            parents: Vec::new(),
            child: root,
            string: StringScan::default(),
            number: Number::default(),
            literal: b"",
            held: Vec::new(),
            utf8: Utf8::default(),
            counts: Counts::default(),
        }
    }

    /// Takes the next chunk and appends what is ready to `out`. After an error the translator is of no further use.
    pub fn push(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(), Refusal> {
        self.utf8.push(input)?;
        let mut chunk = Chunk {
            input,
            at: 0,
            copied: 0,
            out,
        };
        let inspect = self.inspects();
        while chunk.at < input.len() {
            if !inspect && matches!(self.state, State::Key | State::FirstKey | State::AfterValue) {
                self.run(&mut chunk)?;
            }
            self.step(&mut chunk)?;
        }
        chunk.copy_to(input.len());
        Ok(())
    }

    /// Ends the body: an unfinished document is damage.
    pub fn finish(&mut self, _out: &mut Vec<u8>) -> Result<(), Refusal> {
        self.utf8.finish()?;
        match self.state {
            State::Start | State::End => Ok(()),
            State::InNumber if self.parents.is_empty() && self.number.is_complete() => Ok(()),
            _ => Err(Refusal::malformed(
                "the JSON body ends in the middle of a document",
            )),
        }
    }

    /// A body without a group's plain name holds nothing to swap. OpenAPI documents spell names in other ways.
    pub(super) fn may_skip(&self) -> bool {
        !matches!(self.root, Node::OpenApi | Node::OpenApiIndex)
    }

    /// What has been swapped so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    #[inline]
    fn step(&mut self, chunk: &mut Chunk<'_, '_>) -> Result<(), Refusal> {
        match self.state {
            State::InString => self.in_string(chunk),
            State::InKey => self.in_held(chunk, State::InKey),
            State::InPlace => self.in_held(chunk, State::InPlace),
            State::InUnknownKey => self.in_unknown_key(chunk),
            State::InNumber => self.in_number(chunk),
            State::InLiteral => self.in_literal(chunk),
            state => {
                chunk.at = skip_whitespace(chunk.input, chunk.at);
                match chunk.input.get(chunk.at) {
                    Some(&byte) => self.structural(state, byte, chunk),
                    None => Ok(()),
                }
            }
        }
    }

    #[inline]
    fn structural(
        &mut self,
        state: State,
        byte: u8,
        chunk: &mut Chunk<'_, '_>,
    ) -> Result<(), Refusal> {
        match (state, byte) {
            (State::AfterValue, b',') => {
                chunk.at += 1;
                if self.current.kind == Container::Object {
                    self.state = State::Key;
                } else {
                    self.child = self.current.node;
                    self.state = State::Value;
                }
                Ok(())
            }
            (State::AfterValue | State::FirstKey, b'}') => self.close(Container::Object, chunk),
            (State::AfterValue | State::FirstElement, b']') => self.close(Container::Array, chunk),
            (State::Key | State::FirstKey, b'"') => {
                self.key(chunk);
                Ok(())
            }
            (State::Colon, b':') => {
                chunk.at += 1;
                self.state = State::Value;
                Ok(())
            }
            (State::Value | State::FirstElement | State::Start, _) => self.value(byte, chunk),
            _ => Err(unexpected(byte)),
        }
    }

    #[inline]
    fn value(&mut self, byte: u8, chunk: &mut Chunk<'_, '_>) -> Result<(), Refusal> {
        match byte {
            b'"' => self.string(chunk),
            b'{' => self.open(Container::Object, State::FirstKey, chunk)?,
            b'[' => self.open(Container::Array, State::FirstElement, chunk)?,
            b't' => self.literal(b"true"),
            b'f' => self.literal(b"false"),
            b'n' => self.literal(b"null"),
            b'-' | b'0'..=b'9' => {
                self.number = Number::default();
                self.state = State::InNumber;
            }
            _ => return Err(unexpected(byte)),
        }
        Ok(())
    }

    fn literal(&mut self, text: &'static [u8]) {
        self.literal = text;
        self.state = State::InLiteral;
    }

    fn open(
        &mut self,
        kind: Container,
        next: State,
        chunk: &mut Chunk<'_, '_>,
    ) -> Result<(), Refusal> {
        if self.parents.len() >= MAX_DEPTH {
            return Err(Refusal::too_large(format!(
                "the JSON body is nested more than {MAX_DEPTH} levels deep"
            )));
        }
        chunk.at += 1;
        self.parents.push(self.current);
        self.current = Frame {
            node: self.child,
            kind,
            status: StatusMarks::default(),
        };
        self.state = next;
        Ok(())
    }

    fn close(&mut self, kind: Container, chunk: &mut Chunk<'_, '_>) -> Result<(), Refusal> {
        let parent = self.parents.pop().filter(|_| self.current.kind == kind);
        let Some(parent) = parent else {
            return Err(Refusal::malformed(
                "the JSON body closes a bracket that is not open",
            ));
        };
        chunk.at += 1;
        self.current = parent;
        self.after_value();
        Ok(())
    }

    #[inline]
    fn after_value(&mut self) {
        if !self.parents.is_empty() {
            self.state = State::AfterValue;
            return;
        }
        self.child = self.root;
        self.state = match self.documents {
            Documents::One => State::End,
            Documents::Many => State::Start,
        };
    }

    // === field names ===

    fn key(&mut self, chunk: &mut Chunk<'_, '_>) {
        let start = chunk.at + 1;
        if self.current.node == Node::Opaque {
            self.child = Node::Opaque;
            self.string = StringScan::default();
            chunk.at = start;
            self.state = State::InUnknownKey;
            return;
        }
        let end = skip_plain(chunk.input, start);
        if chunk.input.get(end) != Some(&b'"') {
            self.hold(State::InKey, chunk);
            return;
        }
        self.child = self.current.node.child(&chunk.input[start..end]);
        if let Some(action) = self.current.node.key_action() {
            self.edit(action, start..end, chunk);
        }
        chunk.at = end + 1;
        self.state = State::Colon;
    }

    /// Begins to collect a token that is escaped or continues in the next chunk.
    fn hold(&mut self, state: State, chunk: &mut Chunk<'_, '_>) {
        chunk.copy_to(chunk.at);
        self.held.clear();
        self.held.push(b'"');
        self.string = StringScan::default();
        chunk.at += 1;
        chunk.copied = chunk.at;
        self.state = state;
    }

    fn in_held(&mut self, chunk: &mut Chunk<'_, '_>, state: State) -> Result<(), Refusal> {
        let start = chunk.at;
        let (end, complete) = self.string.advance(chunk.input, start)?;
        self.held.extend_from_slice(&chunk.input[start..end]);
        chunk.at = end;
        chunk.copied = end;
        if complete {
            self.release(chunk, state);
        } else {
            self.limit_held(chunk, state);
        }
        Ok(())
    }

    /// A complete token is known: emits it, swapped or as it was.
    fn release(&mut self, chunk: &mut Chunk<'_, '_>, state: State) {
        let held = std::mem::take(&mut self.held);
        let text = decode(&held[1..held.len() - 1], self.string.escaped());
        let action = if state == State::InKey {
            self.state = State::Colon;
            // A name that is no text is listed nowhere, and neither is the empty name.
            self.child = self
                .current
                .node
                .child(text.as_deref().unwrap_or_default().as_bytes());
            self.current.node.key_action()
        } else {
            self.child.action()
        };
        let swapped = action.zip(text).and_then(|(action, text)| {
            self.mark_status(action, &text);
            self.swap(action, &text)
        });
        if let Some(text) = swapped {
            write_string(chunk.out, held[0], &text);
        } else {
            chunk.out.extend_from_slice(&held);
            let inspected = state == State::InPlace && self.inspects_child();
            self.counts.leaks += u64::from(inspected && self.rules.names_private(&held));
        }
        if state == State::InPlace {
            self.after_value();
        }
        self.held = held;
        self.held.clear();
    }

    /// Releases a token that is too long to be a name.
    fn limit_held(&mut self, chunk: &mut Chunk<'_, '_>, state: State) {
        let is_text = state == State::InPlace && self.child.action() == Some(Action::Text);
        let limit = if is_text { MAX_TEXT } else { MAX_NAME };
        if self.held.len() <= limit {
            return;
        }
        if is_text
            && let Some(space) = self
                .held
                .iter()
                .rposition(|&byte| matches!(byte, b' ' | b','))
                .filter(|&at| at > 0)
        {
            self.release_text(space, chunk.out);
            return;
        }
        chunk.out.append(&mut self.held);
        if state == State::InKey {
            // The empty name is listed nowhere, and neither is a name of this length.
            self.child = self.current.node.child(b"");
            self.state = State::InUnknownKey;
        } else {
            self.state = State::InString;
        }
    }

    /// Emits the held text up to a space or comma; no name and no escape reaches across one.
    fn release_text(&mut self, space: usize, out: &mut Vec<u8>) {
        let text = decode(&self.held[1..space], true).map(Cow::into_owned);
        match text.and_then(|text| self.swap(Action::Text, &text)) {
            Some(text) => {
                write_string(out, self.held[0], &text);
                out.pop();
            }
            None => out.extend_from_slice(&self.held[..space]),
        }
        self.held.drain(..space);
    }

    fn in_unknown_key(&mut self, chunk: &mut Chunk<'_, '_>) -> Result<(), Refusal> {
        let (end, complete) = self.string.advance(chunk.input, chunk.at)?;
        chunk.at = end;
        if complete {
            self.state = State::Colon;
        }
        Ok(())
    }

    // === strings ===

    fn string(&mut self, chunk: &mut Chunk<'_, '_>) {
        let start = chunk.at + 1;
        let place = self.child.action();
        let end = skip_plain(chunk.input, start);
        if chunk.input.get(end) == Some(&b'"') && !self.inspects_child() {
            if let Some(action) = place {
                self.edit(action, start..end, chunk);
            }
            chunk.at = end + 1;
            self.after_value();
            return;
        }
        if place.is_some() || self.inspects_child() {
            self.hold(State::InPlace, chunk);
            return;
        }
        self.string = StringScan::default();
        chunk.at = end;
        self.state = State::InString;
    }

    fn in_string(&mut self, chunk: &mut Chunk<'_, '_>) -> Result<(), Refusal> {
        let (end, complete) = self.string.advance(chunk.input, chunk.at)?;
        chunk.at = end;
        if complete {
            self.after_value();
        }
        Ok(())
    }

    /// Swaps a token without escapes that is completely in this chunk; `content` is the text between its quotes.
    #[inline]
    fn edit(&mut self, action: Action, content: Range<usize>, chunk: &mut Chunk<'_, '_>) {
        let Ok(text) = std::str::from_utf8(&chunk.input[content.clone()]) else {
            return;
        };
        self.mark_status(action, text);
        let Some(swapped) = name::swap(&self.rules, action, text) else {
            if let Some(changed) = self.swap(action, text) {
                chunk.copy_to(content.start - 1);
                write_string(chunk.out, b'"', &changed);
                chunk.copied = content.end + 1;
            }
            return;
        };
        chunk.copy_to(content.start);
        for part in [swapped.before, swapped.name, swapped.after] {
            chunk.out.extend_from_slice(part.as_bytes());
        }
        chunk.copied = content.end;
        let to = swapped.to;
        self.count(to);
    }

    fn swap(&mut self, action: Action, text: &str) -> Option<String> {
        let (changed, to) = name::swap_owned(&self.rules, self.direction, action, text)?;
        if let Some(to) = to {
            self.count(to);
        }
        Some(changed)
    }

    fn count(&mut self, to: CapiTypes) {
        match to {
            CapiTypes::Standard => self.counts.to_standard += 1,
            CapiTypes::Private => self.counts.to_private += 1,
        }
    }

    /// Error responses, responses to DELETE and error events are a `metav1.Status` where the URL promises something else.
    /// The server writes its two names before everything in it that is a place.
    #[inline]
    fn mark_status(&mut self, action: Action, text: &str) {
        let Node::Document(shape) = self.current.node else {
            return;
        };
        match action {
            Action::Kind => self.current.status.kind = text == "Status",
            Action::ApiVersion => self.current.status.version = text == "v1",
            _ => return,
        }
        let StatusMarks { kind, version } = self.current.status;
        if kind && version && self.direction == Direction::Response {
            self.current.node = Node::Status(shape);
        }
    }

    // === the leak check ===

    fn inspects(&self) -> bool {
        self.direction == Direction::Response && self.rules.checks_leaks()
    }

    /// Strings below the deny list are the user's and may say what they like.
    fn inspects_child(&self) -> bool {
        self.inspects() && self.child != Node::Opaque
    }

    // === scalars ===

    fn in_number(&mut self, chunk: &mut Chunk<'_, '_>) -> Result<(), Refusal> {
        while let Some(&byte) = chunk.input.get(chunk.at) {
            if !self.number.push(byte)? {
                self.after_value();
                break;
            }
            chunk.at += 1;
        }
        Ok(())
    }

    fn in_literal(&mut self, chunk: &mut Chunk<'_, '_>) -> Result<(), Refusal> {
        while let (Some(&byte), Some((&desired, rest))) =
            (chunk.input.get(chunk.at), self.literal.split_first())
        {
            if byte != desired {
                return Err(unexpected(byte));
            }
            chunk.at += 1;
            self.literal = rest;
        }
        if self.literal.is_empty() {
            self.after_value();
        }
        Ok(())
    }
}

#[cold]
fn unexpected(byte: u8) -> Refusal {
    Refusal::malformed(format!(
        "the body is not JSON: unexpected byte 0x{byte:02x}"
    ))
}

#[cfg(test)]
mod tests;
