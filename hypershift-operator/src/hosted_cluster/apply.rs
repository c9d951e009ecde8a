//! Writes what was built, step by step. One step that fails does not stop the others, unless they depend on it.

use std::collections::HashSet;

use support::apply::Applier;
use support::error::chain;

use super::build::{Class, Planned, Step};
use super::wanted::Wanted;

/// What became of a plan.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    /// Objects that were written.
    pub(crate) written: usize,
    /// What failed.
    pub(crate) failures: Vec<Failure>,
}

/// A step that failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) step: Step,
    pub(crate) error: support::apply::Error,
}

// === impl Applied ===

impl Applied {
    /// What failed, in words: if something critical did, nothing else is told.
    pub(crate) fn told(&self) -> Vec<String> {
        let is_critical = |it: &&Failure| it.step.class() == Class::Critical;
        let critical: Vec<_> = self.failures.iter().filter(is_critical).collect();
        let told = if critical.is_empty() {
            self.failures.iter().collect()
        } else {
            critical
        };
        told.iter()
            .map(|it| format!("{}: {}", it.step.as_str(), chain(&it.error)))
            .collect()
    }

    fn is_blocked(&self) -> bool {
        self.failures
            .iter()
            .any(|it| it.step.class() == Class::Critical)
    }
}

/// Applies the steps in their order.
pub(crate) async fn apply(applier: &Applier, plan: Vec<Planned>) -> Applied {
    let mut done = Applied::default();
    for planned in plan {
        if planned.step.class() == Class::Blockable && done.is_blocked() {
            continue;
        }
        step(applier, planned, &mut done).await;
    }
    done
}

async fn step(applier: &Applier, planned: Planned, done: &mut Applied) {
    let Planned {
        step,
        objects,
        surplus,
    } = planned;
    let mut namespaces = HashSet::new();
    for object in &objects {
        namespaces.extend(object.namespace().map(str::to_owned));
        match write(applier, object).await {
            Ok(written) => done.written += usize::from(written),
            Err(error) => {
                done.failures.push(Failure { step, error });
                // What follows in the same step refers to it.
                return;
            }
        }
    }
    for (resource, name) in &surplus {
        for namespace in &namespaces {
            let deleted = applier.delete(resource, Some(namespace), name).await;
            if let Err(error) = deleted {
                done.failures.push(Failure { step, error });
            }
        }
    }
}

/// Writes an object, and its status where that is ours. Gives whether anything was written.
pub(crate) async fn write(
    applier: &Applier,
    object: &Wanted,
) -> Result<bool, support::apply::Error> {
    let outcome = applier
        .apply_value(&object.resource, object.body.clone())
        .await?;
    let mut written = outcome.change.is_written();
    if let Some(status) = &object.status {
        let body = serde_json::json!({ "metadata": {
            "name": object.name(),
            "namespace": object.namespace(),
        }, "status": status });
        let outcome = applier.apply_status(&object.resource, body).await?;
        written |= outcome.change.is_written();
    }
    Ok(written)
}
