//! Validates the settings of the pool.

use api::conditions::{PoolCondition, Status};
use api::hypershift::v1beta1::node_pool::{UpgradeStrategy, UpgradeType};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::{Blocked, Evaluation};
use crate::node_pool::autoscaling;
use crate::node_pool::conditions::Conditions;
use crate::node_pool::facts::Facts;

/// The reason for a setting that the API should have rejected.
const INVALID: &str = "ValidationFailed";

pub(super) fn autoscaling(
    facts: &Facts,
    _: &mut Evaluation,
    conditions: &mut Conditions,
) -> Result<(), Blocked> {
    let about = PoolCondition::AutoscalingEnabled;
    let Some(bounds) = &facts.pool.spec.auto_scaling else {
        conditions.off(about, "spec.replicas sets the number of nodes");
        return Ok(());
    };
    let wrong = if facts.pool.spec.replicas.is_some() {
        Some("spec.replicas and spec.autoScaling are mutually exclusive: remove one of them")
    } else if bounds.max < bounds.min.max(1) {
        Some("autoScaling.max must be at least 1 and at least autoScaling.min")
    } else {
        None
    };
    if let Some(wrong) = wrong {
        conditions.set(about, Status::False, INVALID, wrong);
        return Err(Blocked::Waiting);
    }
    let from_zero = facts.templates.iter().any(|it| it.has_capacity);
    let least = autoscaling::minimum(bounds, from_zero);
    conditions.good(about, format!("between {least} and {} nodes", bounds.max));
    Ok(())
}

pub(super) fn update_management(
    facts: &Facts,
    _: &mut Evaluation,
    conditions: &mut Conditions,
) -> Result<(), Blocked> {
    let about = PoolCondition::UpdateManagementEnabled;
    let management = &facts.pool.spec.management;
    let wrong = match management.upgrade_type {
        UpgradeType::InPlace => management
            .in_place
            .as_ref()
            .and_then(|it| number(it.max_unavailable.as_ref(), 1).err()),
        UpgradeType::Replace => {
            let replace = management.replace.clone().unwrap_or_default();
            let update = replace.rolling_update.unwrap_or_default();
            match replace.strategy.unwrap_or(UpgradeStrategy::RollingUpdate) {
                UpgradeStrategy::OnDelete => None,
                UpgradeStrategy::RollingUpdate => {
                    rolling(update.max_unavailable.as_ref(), update.max_surge.as_ref()).err()
                }
            }
        }
    };
    if let Some(wrong) = wrong {
        conditions.set(about, Status::False, INVALID, wrong);
        return Err(Blocked::Waiting);
    }
    conditions.good(about, "");
    Ok(())
}

fn rolling(unavailable: Option<&IntOrString>, surge: Option<&IntOrString>) -> Result<(), String> {
    let (unavailable, surge) = (number(unavailable, 0)?, number(surge, 1)?);
    if unavailable == 0 && surge == 0 {
        return Err("maxUnavailable and maxSurge are both 0, so no machine can be replaced: raise one of them"
            .to_owned());
    }
    Ok(())
}

/// A number, or a percentage.
fn number(value: Option<&IntOrString>, otherwise: i32) -> Result<i32, String> {
    let number = match value {
        None => Some(otherwise),
        Some(IntOrString::Int(number)) => Some(*number),
        Some(IntOrString::String(text)) => text.strip_suffix('%').and_then(|it| it.parse().ok()),
    };
    number.filter(|it| *it >= 0).ok_or_else(|| {
        "maxUnavailable and maxSurge must be numbers (for example 1) or percentages (for example 25%)".to_owned()
    })
}
