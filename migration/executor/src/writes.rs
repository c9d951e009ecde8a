//! Sends the writes of one wave, some at a time, and records the responses in the snapshot.

use std::collections::HashMap;

use futures::{StreamExt, stream};
use serde_json::Value;

use crate::calls::Calls;
use crate::fault_injection::{FaultPoints, Operation, Position};
use crate::reading::depth;
use crate::response::Rejection;
use crate::{Error, Options};
use migration::failure::Reason;
use migration::groups::Groups;
use migration::journal::Failure;
use migration::machine::{Purpose, Write};
use migration::object::{Object, ObjectKey};
use migration::snapshot::Snapshot;

/// How many conflicts an object may have before another writer is assumed.
const MOST_CONFLICTS: u32 = 20;

/// Sends writes.
#[derive(Debug)]
pub(crate) struct Writes {
    calls: Calls,
    parallel: usize,
    faults: FaultPoints,
    conflicts: HashMap<ObjectKey, u32>,
}

/// What became of one write.
struct Response {
    key: ObjectKey,
    /// The object now; none when it is gone.
    found: Option<Object>,
    conflict: bool,
}

// === impl Writes ===

impl Writes {
    pub(crate) fn new(calls: Calls, options: &Options) -> Self {
        Self {
            calls,
            parallel: options.parallel.max(1),
            faults: FaultPoints::new(options),
            conflicts: HashMap::new(),
        }
    }

    /// Does all writes of a wave. The first that fails for good ends it; those under way are given up, and what became
    /// of them is seen when objects are read again.
    pub(crate) async fn run(
        &mut self,
        groups: &Groups,
        writes: &[Write],
        snapshot: &mut Snapshot,
    ) -> Result<(), Error> {
        let this = &*self;
        let writes = writes.iter().map(|write| this.one(groups, write));
        let writes: Vec<_> = writes.collect();
        let mut responses = stream::iter(writes).buffer_unordered(this.parallel);
        let mut conflicts = Vec::new();
        while let Some(response) = responses.next().await {
            let response = response?;
            if response.conflict {
                conflicts.push(response.key.clone());
            }
            match response.found {
                Some(object) => snapshot.put(object),
                None => snapshot.remove(&response.key),
            }
        }
        drop(responses);
        self.count(conflicts)
    }

    async fn one(&self, groups: &Groups, write: &Write) -> Result<Response, Error> {
        let operation = Operation::Write(write);
        self.faults.pass(operation, Position::Before)?;
        let depth = depth(groups, &write.resource);
        let response = self.calls.write(write, depth).await;
        if response.is_ok() {
            self.faults.pass(operation, Position::After)?;
        }
        let (found, conflict) = match response {
            Ok(Some(object)) => (Some(object), false),
            Ok(None) | Err(Rejection::Gone) => (self.look(groups, write).await?, false),
            Err(Rejection::Conflict) => (self.look(groups, write).await?, true),
            Err(fault) => return Err(failed(write, fault)),
        };
        let object = found.map(|body| Object::new(&write.resource, body));
        Ok(Response {
            key: write.key.clone(),
            found: object.transpose().map_err(|malformed| {
                let message = format!("cannot {}: {malformed}", describe(write));
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

    fn count(&mut self, conflicts: Vec<ObjectKey>) -> Result<(), Error> {
        for key in conflicts {
            let count = self.conflicts.entry(key.clone()).or_default();
            *count += 1;
            if *count > MOST_CONFLICTS {
                let message = format!(
                    "{key} has changed {MOST_CONFLICTS} times while it was written: stop its other writers"
                );
                return Err(Error::Failed(Failure::new(Reason::Conflict, message)));
            }
        }
        Ok(())
    }
}

fn failed(write: &Write, fault: Rejection) -> Error {
    match fault {
        Rejection::Fenced => Error::Replaced,
        fault => Error::Failed(fault.into_failure(&describe(write))),
    }
}

fn describe(write: &Write) -> String {
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
