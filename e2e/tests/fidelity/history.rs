//! Histories of one kind of object, and the check that one shows the same as another.
//!
//! Every change of an object has its own resource version, and all versions of a kind are in one order. So a reader's
//! history is correct when it follows the reference's order, omits nothing and repeats nothing,
//! across all interruptions.

use std::collections::BTreeMap;

/// One change as a reader has seen it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    /// The resource version of the change.
    pub(crate) version: u64,
    /// What was changed.
    pub(crate) name: String,
    pub(crate) change: Change,
    /// A digest of everything that was said about it.
    pub(crate) digest: u64,
}

/// What became of the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Added,
    Modified,
    Deleted,
}

/// The version of each object.
pub(crate) type State = BTreeMap<String, u64>;

/// What a reader observes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    /// It has listed everything.
    Listed { version: u64, state: State },
    /// It has seen a change.
    Seen(Event),
    /// It has seen a bookmark: there is nothing more up to this version.
    Bookmark(u64),
    /// Its watch broke off, and it continues behind this version.
    Resumed(u64),
}

/// What really happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reference {
    start: State,
    /// In the order of their versions.
    events: Vec<Event>,
}

/// Where a history differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Violation {
    /// A change was never seen.
    Lost { name: String, version: u64 },
    /// A change was seen twice in a row.
    Doubled { name: String, version: u64 },
    /// A change was seen after a later one.
    Reordered {
        name: String,
        version: u64,
        after: u64,
    },
    /// A change was seen that never was.
    Invented { name: String, version: u64 },
    /// A change was seen differently from what it was.
    Altered { name: String, version: u64 },
    /// A list is not what there was.
    WrongList { version: u64 },
    /// The reader went on somewhere else than where it had come to.
    WrongStart { version: u64, after: u64 },
    /// The reader never listed anything.
    NoStart,
}

/// What a right history went through.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) seen: usize,
    pub(crate) bookmarks: usize,
    pub(crate) resumed: usize,
    /// Lists after the first.
    pub(crate) relisted: usize,
}

/// A reader's place in the reference.
struct Cursor<'a> {
    reference: &'a Reference,
    /// How many events of the reference are behind it.
    passed: usize,
    /// All up to this version is known to the reader.
    version: u64,
}

// === impl Reference ===

impl Reference {
    /// The history of a reader that only the server interrupted, as a busy one does with a slow watch.
    ///
    /// It continues where it was, which the server vouches for; a list in between would leave changes out.
    pub(crate) fn new(history: &[Entry]) -> Result<Self, Violation> {
        let Some((Entry::Listed { version, state }, rest)) = history.split_first() else {
            return Err(Violation::NoStart);
        };
        let mut events: Vec<Event> = Vec::new();
        let mut after = *version;
        for entry in rest {
            match entry {
                Entry::Seen(event) if event.version > after => {
                    after = event.version;
                    events.push(event.clone());
                }
                Entry::Seen(event) => {
                    let (name, version) = (event.name.clone(), event.version);
                    return Err(Violation::Reordered {
                        name,
                        version,
                        after,
                    });
                }
                Entry::Bookmark(version) => after = after.max(*version),
                Entry::Resumed(version) if *version == after => {}
                Entry::Listed { version, .. } | Entry::Resumed(version) => {
                    return Err(Violation::WrongStart {
                        version: *version,
                        after,
                    });
                }
            }
        }
        Ok(Self {
            start: state.clone(),
            events,
        })
    }

    /// Number of changes.
    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    /// Checks a reader's history against what really happened.
    pub(crate) fn check(&self, history: &[Entry]) -> Result<Summary, Violation> {
        let Some((Entry::Listed { version, state }, rest)) = history.split_first() else {
            return Err(Violation::NoStart);
        };
        let mut cursor = Cursor {
            reference: self,
            passed: 0,
            version: 0,
        };
        cursor.listed(*version, state)?;
        let mut summary = Summary::default();
        for entry in rest {
            match entry {
                Entry::Listed { version, state } => {
                    cursor.listed(*version, state)?;
                    summary.relisted += 1;
                }
                Entry::Seen(event) => {
                    cursor.seen(event)?;
                    summary.seen += 1;
                }
                Entry::Bookmark(version) => {
                    cursor.bookmark(*version)?;
                    summary.bookmarks += 1;
                }
                Entry::Resumed(version) => {
                    cursor.resumed(*version)?;
                    summary.resumed += 1;
                }
            }
        }
        cursor.end()?;
        Ok(summary)
    }

    /// What there was once the first `count` changes were made.
    fn state_after(&self, count: usize) -> State {
        let mut state = self.start.clone();
        for event in &self.events[..count] {
            let _known = match event.change {
                Change::Added | Change::Modified => state.insert(event.name.clone(), event.version),
                Change::Deleted => state.remove(&event.name),
            };
        }
        state
    }
}

// === impl Summary ===

impl Summary {
    /// Adds another reader's.
    pub(crate) fn add(&mut self, other: Self) {
        self.seen += other.seen;
        self.bookmarks += other.bookmarks;
        self.resumed += other.resumed;
        self.relisted += other.relisted;
    }
}

// === impl Cursor ===

impl<'a> Cursor<'a> {
    /// The change that has to be seen next.
    fn next(&self) -> Option<&'a Event> {
        self.reference.events.get(self.passed)
    }

    fn listed(&mut self, version: u64, state: &State) -> Result<(), Violation> {
        if version < self.version {
            return Err(Violation::WrongStart {
                version,
                after: self.version,
            });
        }
        let passed = self
            .reference
            .events
            .partition_point(|event| event.version <= version);
        if *state != self.reference.state_after(passed) {
            return Err(Violation::WrongList { version });
        }
        (self.passed, self.version) = (passed, version);
        Ok(())
    }

    fn seen(&mut self, event: &Event) -> Result<(), Violation> {
        let (name, version) = (event.name.clone(), event.version);
        if version <= self.version {
            let known = &self.reference.events[..self.passed];
            let after = self.version;
            return Err(match known.last() {
                Some(last) if last.version == version => Violation::Doubled { name, version },
                _ => Violation::Reordered {
                    name,
                    version,
                    after,
                },
            });
        }
        match self.next() {
            Some(next) if next.version < version => Err(lost(next)),
            Some(next) if next == event => {
                self.passed += 1;
                self.version = version;
                Ok(())
            }
            Some(next) if next.version == version => Err(Violation::Altered { name, version }),
            Some(_) | None => Err(Violation::Invented { name, version }),
        }
    }

    fn bookmark(&mut self, version: u64) -> Result<(), Violation> {
        match self.next() {
            Some(next) if next.version <= version => Err(lost(next)),
            _ => {
                self.version = self.version.max(version);
                Ok(())
            }
        }
    }

    fn resumed(&self, version: u64) -> Result<(), Violation> {
        if version == self.version {
            return Ok(());
        }
        Err(Violation::WrongStart {
            version,
            after: self.version,
        })
    }

    fn end(&self) -> Result<(), Violation> {
        self.next().map_or(Ok(()), |next| Err(lost(next)))
    }
}

fn lost(event: &Event) -> Violation {
    Violation::Lost {
        name: event.name.clone(),
        version: event.version,
    }
}

#[cfg(test)]
mod tests;
