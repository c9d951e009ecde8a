//! Whether the tuning of the nodes is valid, and what the tuning operator reports about it.

use api::conditions::{PoolCondition, Status};

use super::{Blocked, Evaluation};
use crate::node_pool::conditions::Conditions;
use crate::node_pool::facts::Facts;
use crate::node_pool::tuning::{self, Tuning};

/// Invalid tuning blocks nothing: the nodes keep the tuning that they have.
#[expect(clippy::unnecessary_wraps, reason = "the form of checks")]
pub(super) fn manifests(
    facts: &Facts,
    found: &mut Evaluation,
    conditions: &mut Conditions,
) -> Result<(), Blocked> {
    let about = PoolCondition::ValidTuningConfig;
    if !tuning::is_enabled(&facts.cluster) {
        tuning::clear(conditions);
        if facts.pool.spec.tuning_config.is_empty() {
            conditions.clear(about);
        } else {
            let message = "the HostedCluster has the capability NodeTuning disabled, so nodes are not tuned: remove \
                           spec.tuningConfig, or use a HostedCluster with this capability";
            conditions.set(about, Status::False, "NotApplied", message);
        }
        return Ok(());
    }
    let inputs = &facts.tuning_inputs;
    let has_profile = match Tuning::read(facts) {
        Ok(tuning) => {
            conditions.good(about, "");
            let has_profile = tuning.has_profile();
            found.tuning = Some(tuning);
            has_profile
        }
        Err(refused) => {
            let message = refused.to_string();
            conditions.set(about, Status::False, "ValidationFailed", message);
            inputs.has_profile()
        }
    };
    if has_profile {
        tuning::report(&inputs.reports, conditions);
    } else {
        tuning::clear(conditions);
    }
    Ok(())
}
