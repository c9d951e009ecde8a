//! Whether the configuration is valid.

use api::conditions::{PoolCondition, Status};

use super::{Blocked, Evaluation};
use crate::node_pool::conditions::Conditions;
use crate::node_pool::config::{self, Context, Sources};
use crate::node_pool::facts::Facts;
use crate::node_pool::{cluster_config, haproxy};

pub(super) fn manifests(
    facts: &Facts,
    found: &mut Evaluation,
    conditions: &mut Conditions,
) -> Result<(), Blocked> {
    let about = PoolCondition::ValidMachineConfig;
    let release = found.release.as_ref().ok_or(Blocked::Waiting)?;
    let proxy =
        haproxy::machine_config(&facts.pool, &facts.cluster, release).map_err(|message| {
            conditions.set(about, Status::False, "WaitingForAvailable", message);
            Blocked::Waiting
        })?;
    let mut made = cluster_config::manifests(&facts.cluster, facts.ssh_key.as_deref());
    made.extend(proxy);
    let sources = Sources {
        own: &facts.own,
        core: &facts.core,
        tuning: &facts.tuning,
        made: &made,
    };
    match sources.join() {
        Err(refused) => {
            conditions.set(
                about,
                Status::False,
                "ValidationFailed",
                refused.to_string(),
            );
            Err(Blocked::Waiting)
        }
        Ok(config) => {
            let spec = &facts.cluster.spec;
            let hashes = config.hashes(&Context {
                version: release.version.to_string(),
                pull_secret: spec.pull_secret.name.clone(),
                trust_bundle: spec
                    .additional_trust_bundle
                    .clone()
                    .map(|it| it.name)
                    .unwrap_or_default(),
                global: config::global(&facts.cluster),
            });
            if config.unapplied.is_empty() {
                conditions.good(about, format!("configuration {}", hashes.with_version));
            } else {
                let message = format!(
                    "nodes are configured without {}, which this version does not apply. Remove these settings, or use a boot image that has them",
                    config.unapplied.join(", ")
                );
                conditions.set(about, Status::False, "NotApplied", message);
            }
            found.config = Some(config);
            found.hashes = Some(hashes);
            Ok(())
        }
    }
}
