//! Carrying out the writes of one wave, some at a time, and taking their answers into the snapshot.

use std::collections::HashMap;
use std::sync::Arc;

use futures::{StreamExt, stream};
use serde_json::Value;

use super::calls::Calls;
use super::fault::Fault;
use super::reading::depth;
use super::witness::{Deed, Moment, Verdict, Witness};
use super::{Error, Options};
use crate::failure::Reason;
use crate::groups::Groups;
use crate::journal::Failure;
use crate::machine::{Purpose, Write};
use crate::object::{Object, ObjectKey};
use crate::snapshot::Snapshot;

/// How often one object may turn out to be other than supposed before somebody else is taken to be at work.
const MOST_CONFLICTS: u32 = 20;

/// Executes writes.
#[derive(Debug)]
pub(crate) struct Executor {
    calls: Calls,
    parallel: usize,
    witness: Arc<dyn Witness>,
    conflicts: HashMap<ObjectKey, u32>,
}

/// What became of one write.
struct Answer {
    key: ObjectKey,
    /// The object now; none when it is gone.
    found: Option<Object>,
    conflict: bool,
}

// === impl Executor ===

impl Executor {
    pub(crate) fn new(calls: Calls, options: &Options) -> Self {
        Self {
            calls,
            parallel: options.parallel.max(1),
            witness: Arc::clone(&options.witness),
            conflicts: HashMap::new(),
        }
    }

    /// Does all writes of a wave. The first that fails for good ends it; those under way are given up, and what became
    /// of them is seen when objects are read anew.
    pub(crate) async fn run(
        &mut self,
        groups: &Groups,
        writes: &[Write],
        snapshot: &mut Snapshot,
    ) -> Result<(), Error> {
        let this = &*self;
        let writes = writes.iter().map(|write| this.one(groups, write));
        let writes: Vec<_> = writes.collect();
        let mut answers = stream::iter(writes).buffer_unordered(this.parallel);
        let mut conflicts = Vec::new();
        while let Some(answer) = answers.next().await {
            let answer = answer?;
            if answer.conflict {
                conflicts.push(answer.key.clone());
            }
            match answer.found {
                Some(object) => snapshot.put(object),
                None => snapshot.remove(&answer.key),
            }
        }
        drop(answers);
        self.count(conflicts)
    }

    async fn one(&self, groups: &Groups, write: &Write) -> Result<Answer, Error> {
        self.show(write, Moment::Before)?;
        let depth = depth(groups, &write.resource);
        let answer = self.calls.write(write, depth).await;
        if answer.is_ok() {
            self.show(write, Moment::After)?;
        }
        let (found, conflict) = match answer {
            Ok(Some(object)) => (Some(object), false),
            Ok(None) | Err(Fault::Gone) => (self.look(groups, write).await?, false),
            Err(Fault::Conflict) => (self.look(groups, write).await?, true),
            Err(fault) => return Err(failed(write, fault)),
        };
        let object = found.map(|body| Object::new(&write.resource, body));
        Ok(Answer {
            key: write.key.clone(),
            found: object.transpose().map_err(|malformed| {
                let message = format!("cannot {}: {malformed}", deed(write));
                Error::Failed(Failure::new(Reason::ApiUnavailable, message))
            })?,
            conflict,
        })
    }

    /// Reads an object that is not as was supposed, or that may still be there.
    async fn look(&self, groups: &Groups, write: &Write) -> Result<Option<Value>, Error> {
        let depth = depth(groups, &write.resource);
        let found = self.calls.get(&write.resource, &write.key, depth).await;
        found.map_err(|fault| failed(write, fault))
    }

    fn show(&self, write: &Write, moment: Moment) -> Result<(), Error> {
        match self.witness.sees(Deed::Write(write), moment) {
            Verdict::GoOn => Ok(()),
            Verdict::Die => Err(Error::Killed),
        }
    }

    fn count(&mut self, conflicts: Vec<ObjectKey>) -> Result<(), Error> {
        for key in conflicts {
            let count = self.conflicts.entry(key.clone()).or_default();
            *count += 1;
            if *count > MOST_CONFLICTS {
                let message = format!(
                    "{key} has changed {MOST_CONFLICTS} times while it was written: find out who writes it, and stop \
                     that"
                );
                return Err(Error::Failed(Failure::new(Reason::Conflict, message)));
            }
        }
        Ok(())
    }
}

fn failed(write: &Write, fault: Fault) -> Error {
    match fault {
        Fault::Fenced => Error::Replaced,
        fault => Error::Failed(fault.into_failure(&deed(write))),
    }
}

fn deed(write: &Write) -> String {
    let verb = match write.purpose {
        Purpose::Pause => "pause",
        Purpose::Unpause => "unpause",
        Purpose::Create => "create",
        Purpose::Status => "write the status of",
        Purpose::Owners => "write the owners of",
        Purpose::Seat => "complete",
        Purpose::AddOwner => "add an owner to",
        Purpose::DropOwner => "drop an owner from",
        Purpose::BringHome => "bring back",
        Purpose::Strip => "take the finalizers off",
        Purpose::Delete => "delete",
    };
    format!("{verb} {}", write.key)
}
