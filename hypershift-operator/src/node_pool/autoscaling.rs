//! The number of machines, and the annotations for the cluster autoscaler: pure.

use api::hypershift::v1beta1::common::{Taint, TaintEffect};
use api::hypershift::v1beta1::node_pool::{NodePool, NodePoolAutoScaling};
use std::collections::BTreeMap;

/// The bounds, as annotations of the autoscaler.
const MIN: &str = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size";
const MAX: &str = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size";
/// The labels and taints of future nodes.
const LABELS: &str = "capacity.cluster-autoscaler.kubernetes.io/labels";
const TAINTS: &str = "capacity.cluster-autoscaler.kubernetes.io/taints";

/// The replicas to set; `None` if the autoscaler owns the number.
pub(crate) fn replicas(pool: &NodePool, now: Option<i32>, from_zero: bool) -> Option<i32> {
    match (&pool.spec.auto_scaling, pool.spec.replicas, now) {
        (Some(bounds), _, Some(now)) => {
            let (min, max) = (minimum(bounds, from_zero), bounds.max);
            Some(now.clamp(min, max.max(min))).filter(|desired| *desired != now)
        }
        (Some(bounds), _, None) => Some(minimum(bounds, from_zero)),
        (None, Some(desired), _) => Some(desired),
        (None, None, Some(_)) => None,
        (None, None, None) => Some(0),
    }
}

/// The annotations for the autoscaler.
pub(crate) fn annotations(pool: &NodePool, from_zero: bool) -> BTreeMap<String, String> {
    let (min, max) = pool
        .spec
        .auto_scaling
        .as_ref()
        .map_or((0, 0), |bounds| (minimum(bounds, from_zero), bounds.max));
    let mut annotations = BTreeMap::from([(MIN, min.to_string()), (MAX, max.to_string())]);
    if pool.spec.auto_scaling.is_some() {
        let labels = pool.spec.node_labels.iter();
        annotations.insert(
            LABELS,
            joined(labels.map(|(key, value)| format!("{key}={value}"))),
        );
        annotations.insert(TAINTS, joined(pool.spec.taints.iter().map(taint)));
    }
    let annotations = annotations
        .into_iter()
        .filter(|(_, value)| !value.is_empty());
    annotations
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}

/// The minimum of the autoscaler. Zero only if it knows the capacity of a machine.
pub(crate) fn minimum(bounds: &NodePoolAutoScaling, from_zero: bool) -> i32 {
    if from_zero {
        bounds.min.max(0)
    } else {
        bounds.min.max(1)
    }
}

fn taint(taint: &Taint) -> String {
    let Taint { key, value, effect } = taint;
    let effect = effect_name(*effect);
    format!("{key}={}:{effect}", value.as_deref().unwrap_or_default())
}

/// The effect as Kubernetes has it.
pub(crate) fn effect_name(effect: TaintEffect) -> &'static str {
    match effect {
        TaintEffect::NoSchedule => "NoSchedule",
        TaintEffect::PreferNoSchedule => "PreferNoSchedule",
        TaintEffect::NoExecute => "NoExecute",
    }
}

fn joined(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node_pool::fixtures;

    fn pool(min: i32, max: i32) -> NodePool {
        let mut pool = fixtures::pool();
        pool.spec.replicas = None;
        pool.spec.auto_scaling = Some(NodePoolAutoScaling { min, max });
        pool
    }

    #[test]
    fn autoscaling_changes_replicas_only_outside_its_bounds() {
        for (min, max, now, from_zero, expected) in [
            (1, 3, None, false, Some(1)),
            (1, 3, Some(2), false, None),
            (1, 3, Some(5), false, Some(3)),
            (2, 3, Some(1), false, Some(2)),
            (0, 3, None, false, Some(1)),
            (0, 3, Some(0), false, Some(1)),
            (0, 3, Some(0), true, None),
            (0, 3, None, true, Some(0)),
        ] {
            let found = replicas(&pool(min, max), now, from_zero);
            assert_eq!(
                found, expected,
                "{min}..{max} now {now:?} from zero {from_zero}"
            );
        }
    }

    #[test]
    fn unset_replicas_keep_the_current_count() {
        let mut pool = fixtures::pool();
        pool.spec.replicas = Some(3);
        assert_eq!(replicas(&pool, Some(1), false), Some(3));
        pool.spec.replicas = None;
        assert_eq!(replicas(&pool, Some(4), false), None);
        assert_eq!(replicas(&pool, None, false), Some(0));
    }

    #[test]
    fn autoscaler_annotations_describe_future_nodes() {
        let mut pool = pool(0, 3);
        pool.spec
            .node_labels
            .insert("zone".to_owned(), "a".to_owned());
        pool.spec.taints.push(Taint {
            key: "dedicated".to_owned(),
            value: None,
            effect: TaintEffect::NoSchedule,
        });
        let found = annotations(&pool, true);
        assert_eq!(found[MIN], "0");
        assert_eq!(found[MAX], "3");
        assert_eq!(found[LABELS], "zone=a");
        assert_eq!(found[TAINTS], "dedicated=:NoSchedule");
        pool.spec.auto_scaling = None;
        let found = annotations(&pool, true);
        assert_eq!(
            (found[MIN].as_str(), found[MAX].as_str(), found.len()),
            ("0", "0", 2)
        );
    }
}
