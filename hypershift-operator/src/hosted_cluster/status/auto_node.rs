//! `AutoNodeEnabled`: how far Karpenter has been added, or removed.

use api::conditions::{ClusterCondition, CommonReason, Status};
use api::hypershift::v1beta1::ControlPlaneComponentStatus;
use control_plane_component::status::{AVAILABLE, ROLLOUT_COMPLETE, is_true};

use super::ConditionUpdate;
use crate::facts::Facts;
use crate::facts::auto_node::{
    AutoNode, COMPONENTS, NOT_CONFIGURED, PROGRESSING, karpenter, may_remain,
};

/// The reason if something is not known.
const EVALUATION_FAILED: &str = "AutoNodeEvaluationFailed";
const ABOUT: ClusterCondition = ClusterCondition::AutoNodeEnabled;

/// The condition; none for a cluster that never had Karpenter.
pub(super) fn condition(facts: &Facts) -> Option<ConditionUpdate> {
    let is_on = karpenter(&facts.cluster).is_some();
    let Some(known) = &facts.auto_node else {
        // All of it was removed before.
        return super::conditions::unchanged(facts, ABOUT);
    };
    if let Some(problem) = &known.problem {
        return Some(ConditionUpdate::new(
            ABOUT,
            Status::Unknown,
            EVALUATION_FAILED,
            problem,
        ));
    }
    Some(if is_on {
        added(facts, known)
    } else {
        removed(facts)
    })
}

/// Whether it is still being added or removed: nothing reports when that ends.
pub(crate) fn is_in_progress(facts: &Facts) -> bool {
    let unfinished =
        |it: ConditionUpdate| it.reason == PROGRESSING || it.reason == EVALUATION_FAILED;
    let is_concerned = facts.auto_node.is_some() || may_remain(&facts.cluster);
    is_concerned && condition(facts).is_some_and(unfinished)
}

fn added(facts: &Facts, known: &AutoNode) -> ConditionUpdate {
    if facts.images.own.is_none() {
        let message = "the operator has no image for karpenter-operator: see condition SupportedHostedCluster";
        return ConditionUpdate::new(ABOUT, Status::False, PROGRESSING, message);
    }
    let waits = COMPONENTS
        .into_iter()
        .filter_map(|name| Some((name, lacking(known.components.get(name))?)));
    let waits: Vec<_> = waits
        .map(|(name, problem)| format!("{name}: {problem}"))
        .collect();
    if waits.is_empty() {
        let reason = CommonReason::AsExpected.as_str();
        return ConditionUpdate::new(ABOUT, Status::True, reason, "AutoNode is ready");
    }
    let message = format!("Waiting for the rollout of {}", waits.join("; "));
    ConditionUpdate::new(ABOUT, Status::False, PROGRESSING, message)
}

/// What a component lacks.
fn lacking(status: Option<&ControlPlaneComponentStatus>) -> Option<String> {
    let Some(status) = status else {
        return Some("it has not reported yet".to_owned());
    };
    let conditions = status.conditions.as_slice();
    let unmet = [AVAILABLE, ROLLOUT_COMPLETE]
        .into_iter()
        .find(|about| !is_true(conditions, about))?;
    let reported = conditions.iter().find(|it| it.type_ == unmet);
    let message = reported.map(|it| it.message.clone());
    Some(
        message
            .filter(|it| !it.is_empty())
            .unwrap_or_else(|| format!("its ControlPlaneComponent has no true condition {unmet}")),
    )
}

fn removed(facts: &Facts) -> ConditionUpdate {
    let left = COMPONENTS
        .into_iter()
        .filter(|name| facts.deployments.contains_key(*name));
    let left: Vec<_> = left.collect();
    if left.is_empty() {
        let message = "spec.autoNode is not set";
        return ConditionUpdate::new(ABOUT, Status::False, NOT_CONFIGURED, message);
    }
    let message = format!("Waiting for Deployments to be deleted: {}", left.join(", "));
    ConditionUpdate::new(ABOUT, Status::False, PROGRESSING, message)
}

#[cfg(test)]
mod tests {
    use api::group::CapiTypes;
    use k8s_openapi::api::apps::v1::Deployment;
    use serde_json::json;

    use super::*;
    use crate::facts::fixture;
    use crate::names::{KARPENTER, KARPENTER_OPERATOR};

    fn component(available: &str, complete: &str) -> ControlPlaneComponentStatus {
        let condition = |about: &str, status: &str| {
            json!({
                "type": about, "status": status, "reason": "r", "message": format!("{about} is {status}"),
                "lastTransitionTime": "2030-01-31T12:00:00Z",
            })
        };
        let conditions = [
            condition(AVAILABLE, available),
            condition(ROLLOUT_COMPLETE, complete),
        ];
        serde_json::from_value(json!({ "conditions": conditions })).unwrap()
    }

    fn facts(is_on: bool) -> Facts {
        let mut cluster = fixture::hosted_cluster("aws");
        if is_on {
            fixture::with_auto_node(&mut cluster);
        }
        let mut facts = fixture::facts(cluster, CapiTypes::Private);
        facts.auto_node = Some(AutoNode::default());
        facts
    }

    fn written(facts: &Facts) -> (Status, String, String) {
        let condition = condition(facts).unwrap();
        (condition.status, condition.reason, condition.message)
    }

    #[test]
    fn it_is_enabled_once_both_components_are_rolled_out() {
        let whole = || Some(component("True", "True"));
        for (operator, karpenter, expected) in [
            (
                None,
                None,
                Some("karpenter-operator: it has not reported yet"),
            ),
            (whole(), None, Some("of karpenter: it has not reported yet")),
            (
                whole(),
                Some(component("False", "True")),
                Some("karpenter: Available is False"),
            ),
            (
                Some(component("True", "False")),
                whole(),
                Some("karpenter-operator: RolloutComplete is False"),
            ),
            (whole(), whole(), None),
        ] {
            let mut facts = facts(true);
            let known = facts.auto_node.as_mut().unwrap();
            known
                .components
                .extend(operator.map(|it| (KARPENTER_OPERATOR, it)));
            known.components.extend(karpenter.map(|it| (KARPENTER, it)));
            let (status, reason, message) = written(&facts);
            assert_eq!(is_in_progress(&facts), expected.is_some(), "{message}");
            match expected {
                None => {
                    assert_eq!(
                        (status, reason.as_str(), message.as_str()),
                        (Status::True, "AsExpected", "AutoNode is ready")
                    );
                }
                Some(expected) => {
                    assert_eq!((status, reason.as_str()), (Status::False, PROGRESSING));
                    assert!(message.contains(expected), "{message}");
                }
            }
        }
    }

    #[test]
    fn it_is_not_configured_once_both_deployments_are_gone() {
        for (left, reason) in [
            (&[KARPENTER_OPERATOR, KARPENTER][..], PROGRESSING),
            (&[KARPENTER], PROGRESSING),
            (&[], NOT_CONFIGURED),
        ] {
            let mut facts = facts(false);
            let left = left.iter();
            facts
                .deployments
                .extend(left.map(|name| ((*name).to_owned(), Deployment::default())));
            let (status, found, _) = written(&facts);
            assert_eq!((status, found.as_str()), (Status::False, reason));
            assert_eq!(is_in_progress(&facts), reason == PROGRESSING);
        }
    }

    #[test]
    fn what_cannot_be_read_is_unknown() {
        let mut facts = facts(true);
        let known = facts.auto_node.as_mut().unwrap();
        known.problem = Some("forbidden".to_owned());
        let (status, reason, message) = written(&facts);
        assert_eq!(
            (status, reason.as_str(), message.as_str()),
            (Status::Unknown, EVALUATION_FAILED, "forbidden")
        );
        assert!(is_in_progress(&facts));
    }

    #[test]
    fn clusters_without_karpenter_have_no_condition() {
        let mut facts = facts(false);
        facts.auto_node = None;
        assert_eq!(condition(&facts), None);
        assert!(!is_in_progress(&facts));
        // The last one stays.
        let kept = json!({
            "type": "AutoNodeEnabled", "status": "False", "reason": NOT_CONFIGURED, "message": "m",
            "lastTransitionTime": "2030-01-31T12:00:00Z",
        });
        let status = json!({ "conditions": [kept] });
        facts.cluster.status = serde_json::from_value(status).unwrap();
        assert_eq!(written(&facts).1, NOT_CONFIGURED);
        assert!(!is_in_progress(&facts));
    }
}
