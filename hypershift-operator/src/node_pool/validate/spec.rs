//! Validates the settings of the pool.

use api::conditions::{PoolCondition, Status};
use api::hypershift::v1beta1::node_pool::{NodePool, UpgradeStrategy, UpgradeType};
use api::hypershift::v1beta1::platform::PlatformType;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::{Blocked, Evaluation, kept};
use crate::node_pool::conditions::Conditions;
use crate::node_pool::facts::Facts;
use crate::node_pool::{autoscaling, capacity};

/// The reason for a setting that the API should have rejected.
const INVALID: &str = "ValidationFailed";

pub(super) fn autoscaling(
    facts: &Facts,
    _: &mut Evaluation,
    conditions: &mut Conditions,
) -> Result<(), Blocked> {
    let about = PoolCondition::AutoscalingEnabled;
    if let Some(wrong) = autoscaling_problem(&facts.pool) {
        conditions.set(about, Status::False, INVALID, kept(facts, wrong));
        return Err(Blocked::Waiting);
    }
    let Some(bounds) = &facts.pool.spec.auto_scaling else {
        conditions.off(about, "spec.replicas sets the number of nodes");
        return Ok(());
    };
    let from_zero = capacity::is_possible(facts);
    if bounds.min == 0 && !from_zero && !may_start_from_zero(facts.pool.spec.platform.type_) {
        let message = "autoScaling.min is 0, and machines of this platform cannot be scaled up from zero, so one node is \
                       kept: set autoScaling.min to 1";
        conditions.set(about, Status::False, INVALID, message);
        return Ok(());
    }
    let least = autoscaling::minimum(bounds, from_zero);
    let mut message = format!("between {least} and {} nodes", bounds.max);
    if let Some(problem) = capacity::problem(facts) {
        message = format!("{message}; {problem}");
    }
    conditions.good(about, message);
    Ok(())
}

/// Why the number of machines is not clear.
pub(crate) fn autoscaling_problem(pool: &NodePool) -> Option<&'static str> {
    let bounds = pool.spec.auto_scaling.as_ref()?;
    if pool.spec.replicas.is_some() {
        Some("spec.replicas and spec.autoScaling are mutually exclusive: remove one of them")
    } else if bounds.max < bounds.min.max(1) {
        Some("autoScaling.max must be at least 1 and at least autoScaling.min")
    } else {
        None
    }
}

/// Whether the capacity of a machine can be known before there is one.
fn may_start_from_zero(platform: PlatformType) -> bool {
    match platform {
        PlatformType::Aws | PlatformType::Azure => true,
        PlatformType::Agent
        | PlatformType::Gcp
        | PlatformType::IbmCloud
        | PlatformType::KubeVirt
        | PlatformType::None
        | PlatformType::OpenStack
        | PlatformType::PowerVs => false,
    }
}

pub(super) fn update_management(
    facts: &Facts,
    _: &mut Evaluation,
    conditions: &mut Conditions,
) -> Result<(), Blocked> {
    let about = PoolCondition::UpdateManagementEnabled;
    if let Some(wrong) = update_problem(&facts.pool) {
        conditions.set(about, Status::False, INVALID, kept(facts, &wrong));
        return Err(Blocked::Waiting);
    }
    conditions.good(about, "");
    Ok(())
}

/// Why no node could ever be replaced or upgraded.
pub(crate) fn update_problem(pool: &NodePool) -> Option<String> {
    let management = &pool.spec.management;
    match management.upgrade_type {
        UpgradeType::InPlace => {
            let in_place = management.in_place.as_ref()?;
            number(in_place.max_unavailable.as_ref(), 1).err()
        }
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
    }
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
