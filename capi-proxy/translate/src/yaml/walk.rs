//! Follows a document's events through the trie of places and collects the edits.

use std::ops::Range;

use api::group::CapiTypes;
use saphyr_parser::Tag;

use super::scalar::{self, Scalar};
use crate::name;
use crate::place::{Action, Node};
use crate::{Counts, Refusal, Rules};

/// The most levels that a document may be nested, as for JSON.
const MAX_DEPTH: usize = 1000;
/// The key that represents the fields of other mappings.
const MERGE: &str = "<<";

/// The state between two events.
#[derive(Debug)]
pub(super) struct Walk<'t> {
    rules: &'t Rules,
    root: Node,
    text: &'t str,
    frames: Vec<Frame>,
    edits: Vec<(Range<usize>, String)>,
    counts: Counts,
    documents: usize,
    /// A reference to a part of the document that is written elsewhere.
    refers: bool,
    /// Some scalar mentions a group of the table.
    mentions: bool,
}

#[derive(Debug)]
enum Frame {
    Sequence(Node),
    Mapping { node: Node, next: Next },
}

/// What is next in a mapping.
#[derive(Debug, Clone, Copy)]
enum Next {
    Key,
    Value(Node),
}

/// The node of the next value.
enum Position {
    Key(Node),
    Value(Node),
}

// === impl Walk ===

impl<'t> Walk<'t> {
    pub(super) fn new(rules: &'t Rules, root: Node, text: &'t str) -> Self {
        Self {
            rules,
            root,
            text,
            frames: Vec::new(),
            edits: Vec::new(),
            counts: Counts::default(),
            documents: 0,
            refers: false,
            mentions: false,
        }
    }

    pub(super) fn document(&mut self) -> Result<(), Refusal> {
        self.documents += 1;
        if self.documents > 1 {
            return Err(Refusal::malformed(
                "the YAML body holds more than one document: send each by itself",
            ));
        }
        Ok(())
    }

    pub(super) fn open_mapping(&mut self, tag: Option<&Tag>) -> Result<(), Refusal> {
        let node = self.container("map", tag)?;
        self.open(Frame::Mapping {
            node,
            next: Next::Key,
        })
    }

    pub(super) fn open_sequence(&mut self, tag: Option<&Tag>) -> Result<(), Refusal> {
        let node = self.container("seq", tag)?;
        self.open(Frame::Sequence(node))
    }

    pub(super) fn close(&mut self) {
        self.frames.pop();
        self.after_node();
    }

    pub(super) fn alias(&mut self) {
        self.refers = true;
        self.after_node();
    }

    pub(super) fn scalar(&mut self, scalar: &Scalar<'_>) -> Result<(), Refusal> {
        self.mentions |= self.rules.mentions_group(scalar.value.as_bytes());
        match self.position() {
            Position::Key(node) => {
                self.refers |= scalar.value == MERGE;
                self.place(node.key_action(), scalar)?;
                scalar.check_string("key")?;
                self.set_next(Next::Value(node.child(scalar.value.as_bytes())));
            }
            Position::Value(node) => {
                self.place(node.action(), scalar)?;
                self.after_node();
            }
        }
        Ok(())
    }

    /// The document with its edits; leaves `out` alone on an error.
    pub(super) fn write(self, out: &mut Vec<u8>) -> Result<Counts, Refusal> {
        if self.refers && self.mentions {
            return Err(Refusal::unprocessable(
                "the YAML body names an API group that has to be translated and uses aliases or merge keys: write them out, or send JSON",
            ));
        }
        let mut copied = 0;
        for (at, name) in self.edits {
            out.extend_from_slice(&self.text.as_bytes()[copied..at.start]);
            out.extend_from_slice(name.as_bytes());
            copied = at.end;
        }
        out.extend_from_slice(&self.text.as_bytes()[copied..]);
        Ok(self.counts)
    }

    fn open(&mut self, frame: Frame) -> Result<(), Refusal> {
        if self.frames.len() >= MAX_DEPTH {
            return Err(Refusal::too_large(format!(
                "the YAML body is nested more than {MAX_DEPTH} levels deep"
            )));
        }
        self.frames.push(frame);
        Ok(())
    }

    /// The node of a mapping or sequence that begins now.
    fn container(&self, kind: &str, tag: Option<&Tag>) -> Result<Node, Refusal> {
        if !scalar::is_core(tag, kind) {
            return Err(Refusal::unprocessable(
                "the YAML body has a tag on a mapping or sequence: leave it out",
            ));
        }
        match self.position() {
            // What has a mapping for its name is listed nowhere.
            Position::Key(_) => Ok(Node::Opaque),
            Position::Value(node) => Ok(node),
        }
    }

    fn position(&self) -> Position {
        match self.frames.last() {
            None => Position::Value(self.root),
            Some(
                Frame::Sequence(node)
                | Frame::Mapping {
                    next: Next::Value(node),
                    ..
                },
            ) => Position::Value(*node),
            Some(Frame::Mapping {
                node,
                next: Next::Key,
            }) => Position::Key(*node),
        }
    }

    /// A value is followed by the next key, and a key without a name by its value.
    fn after_node(&mut self) {
        match self.frames.last() {
            Some(Frame::Mapping {
                next: Next::Key, ..
            }) => self.set_next(Next::Value(Node::Opaque)),
            Some(Frame::Mapping {
                next: Next::Value(_),
                ..
            }) => self.set_next(Next::Key),
            Some(Frame::Sequence(_)) | None => {}
        }
    }

    fn set_next(&mut self, to: Next) {
        if let Some(Frame::Mapping { next, .. }) = self.frames.last_mut() {
            *next = to;
        }
    }

    /// Plans the edit of a scalar that may be a name.
    fn place(&mut self, action: Option<Action>, scalar: &Scalar<'_>) -> Result<(), Refusal> {
        let Some(action) = action else { return Ok(()) };
        scalar.check_string("field that may name an API group")?;
        let Some(swapped) = name::swap(self.rules, action, scalar.value) else {
            return Ok(());
        };
        let source = self.text.get(scalar.at.clone());
        let Some(content) = source.and_then(|source| scalar.content(source)) else {
            return Err(Refusal::unprocessable(
                "the YAML body spells the name of an API group in a way that cannot be translated: write it plainly on one line",
            ));
        };
        let start = scalar.at.start;
        self.edits.push((
            start + content.start..start + content.end,
            swapped.to_string(),
        ));
        match swapped.to {
            CapiTypes::Standard => self.counts.to_standard += 1,
            CapiTypes::Private => self.counts.to_private += 1,
        }
        Ok(())
    }
}
