//! Classes of machines as this program takes them: in order, no more than a control plane has room for, and the names of what
//! it makes for them. Pure.

use api::karpenter::v1::OpenshiftEc2NodeClass;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::ResourceExt as _;

use crate::names;
use crate::names::node_pool::joined;

/// Classes that get configuration. Users of the hosted cluster make classes, and each takes Secrets of the control plane.
pub(super) const MOST: usize = 100;
/// The suffix of the pool of a class, which no NodePool has: NodePools are in another namespace.
const POOL: &str = "-karpenter";
/// The longest name of an object.
const LONGEST: usize = 253;
/// The longest message of a condition, in characters.
const LONGEST_MESSAGE: usize = 8192;
/// Label of Secrets that are of machines of Karpenter.
pub(super) const MANAGED: (&str, &str) = ("hypershift.openshift.io/managed-by-karpenter", "true");
/// Labels of such Secrets: the image that machines boot, on x86 and on ARM.
pub(super) const AMIS: [&str; 2] = [
    "hypershift.openshift.io/ami",
    "hypershift.openshift.io/ami-arm64",
];
/// Annotation of a class: the hash of the configuration that new machines get.
pub(super) const CURRENT: &str = "hypershift.openshift.io/nodeClassCurrentConfigVersion";
/// Condition: the release of the nodes is known.
pub(super) const VERSION_RESOLVED: &str = "VersionResolved";
/// Condition: the release of the nodes is compatible with the control plane.
pub(super) const SUPPORTED_SKEW: &str = "SupportedVersionSkew";
/// Condition: machines can be made.
pub(super) const READY: &str = "Ready";

/// A condition without its times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Update {
    pub(super) about: String,
    pub(super) is_met: bool,
    pub(super) reason: String,
    pub(super) message: String,
}

/// The oldest first, so that a new class takes the place of none.
pub(super) fn in_order(mut classes: Vec<OpenshiftEc2NodeClass>) -> Vec<OpenshiftEc2NodeClass> {
    classes.sort_by_cached_key(|class| {
        let created = class.metadata.creation_timestamp.as_ref();
        (created.map(|it| it.0), class.name_any())
    });
    classes
}

/// The classes that get configuration.
pub(super) fn taken(
    classes: &[OpenshiftEc2NodeClass],
) -> impl Iterator<Item = &OpenshiftEc2NodeClass> {
    let live = classes
        .iter()
        .filter(|it| it.metadata.deletion_timestamp.is_none());
    live.take(MOST)
}

/// The name of the pool of a class.
pub(super) fn pool_name(class: &str) -> String {
    format!("{class}{POOL}")
}

/// The class of a pool, from its reference, if it is one of Karpenter in the namespace.
pub(super) fn of_pool<'a>(reference: &'a str, namespace: &str) -> Option<&'a str> {
    let (place, name) = reference.split_once('/')?;
    name.strip_suffix(POOL).filter(|_| place == namespace)
}

/// The ConfigMap with the settings of the kubelets of a class.
pub(super) fn kubelet_map(class: &str) -> String {
    joined(
        names::KARPENTER_KUBELET.trim_end_matches('-'),
        class,
        LONGEST,
    )
}

// === impl Update ===

impl Update {
    pub(super) fn new(
        about: impl Into<String>,
        is_met: bool,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            about: about.into(),
            is_met,
            reason: reason.into(),
            message: message.into(),
        }
    }

    /// As it is written: the time is that of the last change of the status.
    pub(super) fn condition(&self, class: &OpenshiftEc2NodeClass, now: Timestamp) -> Condition {
        let status = if self.is_met { "True" } else { "False" };
        let before = conditions(class)
            .iter()
            .find(|it| it.type_ == self.about && it.status == status);
        let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
        Condition {
            type_: self.about.clone(),
            status: status.to_owned(),
            reason: self.reason.clone(),
            message: self.message.chars().take(LONGEST_MESSAGE).collect(),
            observed_generation: class.metadata.generation,
            last_transition_time: before
                .map_or(Time(now), |before| before.last_transition_time.clone()),
        }
    }
}

/// The conditions of a class.
pub(super) fn conditions(class: &OpenshiftEc2NodeClass) -> &[Condition] {
    let status = class.status.as_ref();
    status
        .map(|it| it.conditions.as_slice())
        .unwrap_or_default()
}

/// Whether a condition of a class is true.
pub(super) fn is_true(class: &OpenshiftEc2NodeClass, about: &str) -> bool {
    has(class, about, "True")
}

/// Whether a condition of a class is false. One that it does not have is not.
pub(super) fn is_false(class: &OpenshiftEc2NodeClass, about: &str) -> bool {
    has(class, about, "False")
}

fn has(class: &OpenshiftEc2NodeClass, about: &str, status: &str) -> bool {
    conditions(class)
        .iter()
        .any(|it| it.type_ == about && it.status == status)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::karpenter_operator::fixtures;

    #[test]
    fn classes_are_taken_in_the_order_of_their_age() {
        let class = |name: &str, created: &str| {
            let mut class = fixtures::class(name, &json!({}));
            class.metadata.creation_timestamp = Some(Time(created.parse().unwrap()));
            class
        };
        let classes = vec![
            class("c", "2030-01-02T00:00:00Z"),
            class("b", "2030-01-01T00:00:00Z"),
            class("a", "2030-01-02T00:00:00Z"),
        ];
        let names: Vec<_> = in_order(classes)
            .iter()
            .map(kube::ResourceExt::name_any)
            .collect();
        assert_eq!(names, ["b", "a", "c"]);
    }

    #[test]
    fn names_of_classes_fit_and_are_read_back() {
        let longest = "c".repeat(LONGEST);
        for class in ["default", "with.dots", longest.as_str()] {
            let reference = format!("clusters-one/{}", pool_name(class));
            assert_eq!(of_pool(&reference, "clusters-one"), Some(class));
            assert_eq!(of_pool(&reference, "clusters"), None);
            assert!(kubelet_map(class).len() <= LONGEST);
            assert!(kubelet_map(class).starts_with(names::KARPENTER_KUBELET));
        }
        assert_eq!(kubelet_map("default"), "karpenter-kubelet-default");
        assert_eq!(of_pool("clusters-one/workers", "clusters-one"), None);
    }

    #[test]
    fn a_condition_keeps_its_time_until_its_status_changes() {
        let mut class = fixtures::class("a", &json!({}));
        let status = json!({ "conditions": [{
            "type": READY, "status": "True", "reason": "r", "message": "",
            "lastTransitionTime": "2030-01-01T00:00:00Z",
        }] });
        class.status = serde_json::from_value(status).unwrap();
        let at = |is_met: bool| {
            let update = Update::new(READY, is_met, "r", "m");
            update
                .condition(&class, fixtures::now())
                .last_transition_time
                .0
        };
        assert_eq!(at(true).to_string(), "2030-01-01T00:00:00Z");
        assert_eq!(at(false), fixtures::now());
        assert!(is_true(&class, READY) && !is_true(&class, VERSION_RESOLVED));
    }
}
