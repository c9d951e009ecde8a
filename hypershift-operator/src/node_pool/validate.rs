//! Evaluates a pool: checks in the order of their dependencies. Pure.
//!
//! Each check sets its conditions. A check that blocks the ones after it ends the validation: the
//! later conditions keep their state, and nothing new is rolled out. What the pool has goes on.

mod arch;
mod config;
mod ignition;
mod platform;
mod release;
mod spec;
mod tuning;

use std::sync::Arc;

use api::annotations::node_pool::CURRENT_CONFIG;
use api::conditions::{PoolCondition, Status};
use payload::Release;

use super::conditions::Conditions;
use super::config::{Config, Hashes};
use super::facts::Facts;
use super::tuning::Tuning;
use crate::pause::{Pause, pause};
use crate::platform::machines::Machine;
pub(crate) use spec::{autoscaling_problem, update_problem};

/// The evaluation so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Evaluation {
    pub(crate) release: Option<Arc<Release>>,
    pub(crate) config: Option<Config>,
    pub(crate) hashes: Option<Hashes>,
    /// Nothing if it is invalid: then it stays as it is.
    pub(crate) tuning: Option<Tuning>,
    /// The machine of the platform; nothing on platforms whose machines another controller creates.
    pub(crate) machine: Option<Machine>,
    pub(crate) is_paused: bool,
}

/// Why the reconcile of a pool stops for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blocked {
    /// A condition has the reason. It changes with a watched object.
    Waiting,
    /// A condition has the reason, and it may be transient: requeue soon.
    Soon,
    /// Reconciliation is paused.
    Paused,
}

type Check = fn(&Facts, &mut Evaluation, &mut Conditions) -> Result<(), Blocked>;

/// The checks, in the order of what they depend on.
const CHECKS: [Check; 14] = [
    // First, because a pool that is paused is left alone whatever else is wrong with it.
    reconciliation,
    spec::autoscaling,
    spec::update_management,
    release::image,
    ignition::endpoint,
    arch::arch,
    release::skew,
    tuning::manifests,
    config::manifests,
    updating_config,
    updating_version,
    ignition::payload,
    ignition::reached,
    platform::platform,
];

/// The checks of a configuration whose machines another controller makes.
const OF_CONFIGURATION: [Check; 4] = [
    release::image,
    ignition::endpoint,
    release::skew,
    config::manifests,
];

/// Evaluates the configuration of a pool, and nothing of its machines.
pub(crate) fn configuration(
    facts: &Facts,
    conditions: &mut Conditions,
) -> (Evaluation, Result<(), Blocked>) {
    let mut found = Evaluation::default();
    let outcome = OF_CONFIGURATION
        .iter()
        .try_for_each(|check| check(facts, &mut found, conditions));
    (found, outcome)
}

/// Runs the checks until one blocks.
pub(crate) fn validate(
    facts: &Facts,
    conditions: &mut Conditions,
) -> (Evaluation, Result<(), Blocked>) {
    let mut found = Evaluation::default();
    let outcome = CHECKS
        .iter()
        .try_for_each(|check| check(facts, &mut found, conditions));
    let outcome = match outcome {
        // What is being read is read for a paused pool, too.
        Err(Blocked::Soon) => outcome,
        Ok(()) | Err(Blocked::Waiting | Blocked::Paused) if found.is_paused => Err(Blocked::Paused),
        Ok(()) | Err(Blocked::Waiting | Blocked::Paused) => outcome,
    };
    (found, outcome)
}

/// A paused pool is evaluated; nothing is written for it.
#[expect(clippy::unnecessary_wraps, reason = "the form of checks")]
fn reconciliation(
    facts: &Facts,
    found: &mut Evaluation,
    conditions: &mut Conditions,
) -> Result<(), Blocked> {
    let about = PoolCondition::ReconciliationActive;
    let Some(until) = paused_until(facts) else {
        let message = "the NodePool is reconciled";
        conditions.set(about, Status::True, "ReconciliationActive", message);
        return Ok(());
    };
    found.is_paused = true;
    let message = format!("paused by spec.pausedUntil until {until}");
    conditions.set(about, Status::False, "ReconciliationPaused", message);
    Ok(())
}

/// Until when the pool is paused, if it is.
fn paused_until(facts: &Facts) -> Option<String> {
    match pause(facts.pool.spec.paused_until.as_deref(), facts.now) {
        Pause::Indefinite => Some("it is removed".to_owned()),
        Pause::Until(time) => Some(time.to_string()),
        // Invalid values do not pause; the API rejects them.
        Pause::Active | Pause::Over | Pause::Unreadable(_) => None,
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the form of checks")]
fn updating_config(
    facts: &Facts,
    found: &mut Evaluation,
    conditions: &mut Conditions,
) -> Result<(), Blocked> {
    let about = PoolCondition::UpdatingConfig;
    let desired = found.hashes.as_ref().map(|it| it.without_version.as_str());
    match facts.annotation(CURRENT_CONFIG.key()) {
        Some(current) if Some(current) != desired => {
            let desired = desired.unwrap_or_default();
            updating(
                facts,
                conditions,
                about,
                &format!("Rolling out configuration {desired}"),
            );
        }
        Some(_) | None => conditions.off(about, "all nodes have the current configuration"),
    }
    Ok(())
}

#[expect(clippy::unnecessary_wraps, reason = "the form of checks")]
fn updating_version(
    facts: &Facts,
    found: &mut Evaluation,
    conditions: &mut Conditions,
) -> Result<(), Blocked> {
    let about = PoolCondition::UpdatingVersion;
    let current = facts
        .pool
        .status
        .as_ref()
        .and_then(|it| it.version.as_deref());
    let desired = found
        .release
        .as_ref()
        .map(|it| it.version.to_string())
        .unwrap_or_default();
    match current.filter(|it| !it.is_empty()) {
        Some(current) if current != desired => {
            let message = format!("Rolling out release {desired}, from {current}");
            updating(facts, conditions, about, &message);
        }
        Some(_) | None => conditions.off(about, "all nodes have the desired release"),
    }
    Ok(())
}

/// An upgrade, or why it does not go on.
fn updating(facts: &Facts, conditions: &mut Conditions, about: PoolCondition, message: &str) {
    let failure = facts
        .workload
        .as_ref()
        .and_then(|it| it.annotations.get(UPGRADE_FAILED));
    match failure.filter(|it| !it.is_empty()) {
        Some(failure) => conditions.set(
            about,
            Status::False,
            "InplaceUpgradeFailed",
            failure.clone(),
        ),
        None => conditions.set(about, Status::True, "AsExpected", message),
    }
}

/// On the MachineSet of a pool that is upgraded in place: why a node could not be.
const UPGRADE_FAILED: &str = "hypershift.openshift.io/nodePoolUpgradeInProgressFalse";

/// The message of a refusal, and what it means for machines that exist.
pub(super) fn kept(facts: &Facts, refusal: &str) -> String {
    if facts.workload.is_none() || paused_until(facts).is_some() {
        return refusal.to_owned();
    }
    format!("{refusal}. {KEPT}")
}

/// What holds while a check refuses the pool: [`super::held`].
const KEPT: &str = "Until then nothing new is rolled out: the machines keep their release, configuration and template, \
                    and their number, labels, taints and repair follow the NodePool";

#[cfg(test)]
mod tests;
