//! What is the case with a pool, in the order in which one thing depends on the other. Pure.
//!
//! Each check notes its conditions. One that finds what everything behind it needs to be missing stops there: the
//! conditions behind it keep what they said, and what runs is left alone.

mod config;
mod ignition;
mod release;
mod spec;

use std::sync::Arc;

use api::annotations::node_pool::{CURRENT_CONFIG, PLATFORM_MACHINE_TEMPLATE};
use api::conditions::{PoolCondition, Status};
use payload::Release;

use super::conditions::Conditions;
use super::config::{Config, Hashes};
use super::facts::Facts;
use super::machines;
use super::machines::{Machine, Refused};
use crate::pause::{Pause, pause};

/// What was found out, as far as it was.
#[derive(Debug, Clone, Default)]
pub(crate) struct Found {
    pub(crate) release: Option<Arc<Release>>,
    pub(crate) config: Option<Config>,
    pub(crate) hashes: Option<Hashes>,
    /// The platform's machine; nothing on platforms where somebody else makes them.
    pub(crate) machine: Option<Machine>,
    pub(crate) is_paused: bool,
}

/// Why a pool goes no further for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// A condition says why. It changes with something that is watched.
    Waiting,
    /// A condition says why, and it may pass by itself: look again soon.
    Soon,
    /// Somebody wants it to be left alone.
    Paused,
}

type Check = fn(&Facts, &mut Found, &mut Conditions) -> Result<(), Stop>;

/// The checks, in the order of what they depend on.
const CHECKS: [Check; 13] = [
    spec::autoscaling,
    spec::update_management,
    release::image,
    ignition::endpoint,
    release::arch,
    reconciliation,
    release::skew,
    config::manifests,
    updating_config,
    updating_version,
    ignition::payload,
    ignition::reached,
    platform,
];

/// Goes through the checks until one stops.
pub(crate) fn judge(facts: &Facts, conditions: &mut Conditions) -> (Found, Result<(), Stop>) {
    let mut found = Found::default();
    let outcome = CHECKS
        .iter()
        .try_for_each(|check| check(facts, &mut found, conditions));
    let outcome = if found.is_paused {
        Err(Stop::Paused)
    } else {
        outcome
    };
    (found, outcome)
}

/// A pool that is paused is still looked at; nothing is written for it.
#[expect(clippy::unnecessary_wraps, reason = "the form of checks")]
fn reconciliation(
    facts: &Facts,
    found: &mut Found,
    conditions: &mut Conditions,
) -> Result<(), Stop> {
    let about = PoolCondition::ReconciliationActive;
    let until = match pause(facts.pool.spec.paused_until.as_deref(), facts.now) {
        Pause::Indefinite => "it is removed".to_owned(),
        Pause::Until(time) => time.to_string(),
        // What cannot be read pauses nothing: the API refuses it.
        Pause::Active | Pause::Over | Pause::Unreadable(_) => {
            let message = "the pool is reconciled";
            conditions.set(about, Status::True, "ReconciliationActive", message);
            return Ok(());
        }
    };
    found.is_paused = true;
    let message = format!("paused by spec.pausedUntil until {until}");
    conditions.set(about, Status::False, "ReconciliationPaused", message);
    Ok(())
}

#[expect(clippy::unnecessary_wraps, reason = "the form of checks")]
fn updating_config(
    facts: &Facts,
    found: &mut Found,
    conditions: &mut Conditions,
) -> Result<(), Stop> {
    let about = PoolCondition::UpdatingConfig;
    let wanted = found.hashes.as_ref().map(|it| it.without_version.as_str());
    match facts.annotation(CURRENT_CONFIG.key()) {
        Some(current) if Some(current) != wanted => {
            let wanted = wanted.unwrap_or_default();
            updating(
                facts,
                conditions,
                about,
                &format!("configuration {wanted} is being rolled out"),
            );
        }
        Some(_) | None => conditions.off(about, "the nodes have the newest configuration"),
    }
    Ok(())
}

#[expect(clippy::unnecessary_wraps, reason = "the form of checks")]
fn updating_version(
    facts: &Facts,
    found: &mut Found,
    conditions: &mut Conditions,
) -> Result<(), Stop> {
    let about = PoolCondition::UpdatingVersion;
    let current = facts
        .pool
        .status
        .as_ref()
        .and_then(|it| it.version.as_deref());
    let wanted = found
        .release
        .as_ref()
        .map(|it| it.version.to_string())
        .unwrap_or_default();
    match current.filter(|it| !it.is_empty()) {
        Some(current) if current != wanted => {
            let message = format!("release {wanted} is being rolled out, from {current}");
            updating(facts, conditions, about, &message);
        }
        Some(_) | None => conditions.off(about, "the nodes have the release that is wanted"),
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

/// What the platform makes of the pool's wishes.
fn platform(facts: &Facts, found: &mut Found, conditions: &mut Conditions) -> Result<(), Stop> {
    let Some(release) = found.release.clone() else {
        return Err(Stop::Waiting);
    };
    let ask = machines::Ask {
        capi: facts.capi(),
        pool: &facts.pool,
        cluster: &facts.cluster,
        release: &release,
        capabilities: &facts.capabilities,
        infra_id: facts.infra_id(),
        namespace: &facts.namespace,
    };
    match machines::machine(&ask) {
        Err(Refused {
            condition,
            reason,
            message,
        }) => {
            conditions.set(condition, Status::False, reason, message);
            Err(Stop::Waiting)
        }
        Ok(machine) => {
            let mut notes = machine.iter().flat_map(|it| &it.notes);
            if notes.all(|it| it.condition != PoolCondition::ValidPlatformConfig) {
                conditions.clear(PoolCondition::ValidPlatformConfig);
            }
            for note in machine.iter().flat_map(|it| &it.notes) {
                conditions.set(
                    note.condition,
                    note.is_so,
                    note.reason,
                    note.message.as_str(),
                );
            }
            settle(facts, machine.as_ref(), &ask, conditions);
            found.machine = machine;
            Ok(())
        }
    }
}

fn settle(
    facts: &Facts,
    machine: Option<&Machine>,
    ask: &machines::Ask<'_>,
    conditions: &mut Conditions,
) {
    conditions.clear(PoolCondition::AwsSecurityGroupAvailable);
    let Some(machine) = machine else {
        return;
    };
    conditions.good(
        PoolCondition::ValidPlatformImage,
        "there is an image to start machines from",
    );
    conditions.good(
        PoolCondition::ValidMachineTemplate,
        "the machines' template is complete",
    );
    let about = PoolCondition::UpdatingPlatformMachineTemplate;
    let wanted = machine.template(ask).name;
    match facts.annotation(PLATFORM_MACHINE_TEMPLATE.key()) {
        Some(current) if current != wanted => {
            let message = format!("machines of {current} are replaced by machines of {wanted}");
            conditions.set(about, Status::True, "AsExpected", message);
        }
        Some(_) | None => conditions.off(about, "machines are as the platform's settings say"),
    }
}

#[cfg(test)]
mod tests;
