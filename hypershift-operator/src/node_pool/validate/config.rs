//! Whether the configuration is valid.

use api::conditions::{PoolCondition, Status};

use super::{Blocked, Evaluation, kept};
use crate::node_pool::conditions::Conditions;
use crate::node_pool::config::{Context, Sources};
use crate::node_pool::facts::Facts;
use crate::node_pool::{adoption, cluster_config, core_config, haproxy, mirrored, os_stream};
use crate::platform::kubevirt;

pub(super) fn manifests(
    facts: &Facts,
    found: &mut Evaluation,
    conditions: &mut Conditions,
) -> Result<(), Blocked> {
    let about = PoolCondition::ValidMachineConfig;
    let release = found.release.as_ref().ok_or(Blocked::Waiting)?;
    if let Some(problem) = kubevirt::machines::problem(&facts.pool) {
        let message = kept(facts, &problem);
        conditions.set(about, Status::False, "ValidationFailed", message);
        return Err(Blocked::Waiting);
    }
    let operator = facts.operator_image.as_deref();
    let proxy = haproxy::machine_config(&facts.pool, &facts.cluster, release, operator).map_err(
        |message| {
            let message = kept(facts, &message);
            conditions.set(about, Status::False, "WaitingForAvailable", message);
            Blocked::Waiting
        },
    )?;
    let mut made = cluster_config::manifests(&facts.cluster, facts.ssh_key.as_deref());
    made.extend(proxy);
    let core = haproxy::published(&facts.core, &facts.capabilities);
    if let Some(waits) = core_config::missing(&core, &facts.cluster, &facts.capabilities) {
        let message = kept(facts, &waits);
        conditions.set(about, Status::False, "WaitingForAvailable", message);
        return Err(Blocked::Waiting);
    }
    let sources = Sources {
        own: &facts.own,
        core: &core,
        tuning: &facts.tuning,
        made: &made,
    };
    match sources.join() {
        Err(refused) => {
            let message = kept(facts, &refused.to_string());
            conditions.set(about, Status::False, "ValidationFailed", message);
            Err(Blocked::Waiting)
        }
        Ok(mut config) => {
            let release = os_stream::select(facts, release, &mut config, conditions)
                .ok_or(Blocked::Waiting)?;
            let context = Context::of(&facts.cluster, &release.version);
            let (config, hashes) = adoption::keep(facts, config, &context);
            let unmirrored = mirrored::conflicts(facts);
            // Whether nodes get FIPS mode or kernel arguments depends on the programs of the release, which the ignition
            // server knows: it refuses what it cannot apply, and `ValidGeneratedPayload` has its message.
            if unmirrored.is_empty() {
                conditions.good(about, format!("configuration {}", hashes.with_version));
            } else {
                let message = format!(
                    "nodes are configured, and operators of the hosted cluster do not see how: {}",
                    unmirrored.join("; ")
                );
                conditions.set(about, Status::False, "NotMirrored", message);
            }
            found.release = Some(release);
            found.config = Some(config);
            found.hashes = Some(hashes);
            Ok(())
        }
    }
}
