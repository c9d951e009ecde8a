//! What takes time: operations, and the URLs at which they are asked for.

use serde_json::json;

use super::path::Path;
use super::{Azure, MANAGEMENT};
use crate::Answer;

/// How many steps an operation takes.
const STEPS: u32 = 2;

/// An operation.
#[derive(Debug)]
pub(super) struct Operation {
    key: String,
    effect: Effect,
    left: u32,
    failure: Option<String>,
}

/// What it does at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Put,
    Delete,
}

impl Azure {
    /// Begins an operation, and gives the URL at which it is asked for.
    pub(super) fn begin(&mut self, path: &Path, effect: Effect) -> String {
        let number = self.operations.len();
        let operation = Operation {
            key: path.key.clone(),
            effect,
            left: STEPS,
            failure: None,
        };
        self.operations.insert(number, operation);
        let place = "subscriptions/0/providers/Microsoft.Network/locations/here";
        format!("https://{MANAGEMENT}/{place}/operations/{number}?api-version=2023-11-01")
    }

    /// One step of all operations.
    pub(super) fn advance(&mut self) {
        let mut ended = Vec::new();
        for (number, operation) in &mut self.operations {
            if operation.left == 1 {
                ended.push((*number, operation.key.clone(), operation.effect));
            }
            operation.left = operation.left.saturating_sub(1);
        }
        for (number, key, effect) in ended {
            let fails = effect == Effect::Delete && self.is_used(&key);
            if effect == Effect::Delete && !fails {
                self.remove(&key);
                continue;
            }
            if let Some(document) = self.resources.get_mut(&key) {
                document["properties"]["provisioningState"] = json!("Succeeded");
            }
            if fails && let Some(operation) = self.operations.get_mut(&number) {
                operation.failure = Some(format!("a resource refers to {key}"));
            }
        }
    }

    pub(super) fn operation(&self, number: usize) -> Answer {
        let Some(operation) = self.operations.get(&number) else {
            return Answer::refused(404, "OperationNotFound", "there is no such operation");
        };
        match (operation.effect, operation.left, &operation.failure) {
            (_, 0, Some(problem)) => Answer::refused(409, "InUse", problem),
            (Effect::Delete, 0, None) => Answer::empty(204),
            (Effect::Delete, ..) => Answer::empty(202),
            (Effect::Put, 0, None) => Answer::ok(json!({ "status": "Succeeded" })),
            (Effect::Put, ..) => Answer::ok(json!({ "status": "InProgress" })),
        }
    }
}
