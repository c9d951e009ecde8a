//! How many machines there are to be, and what the cluster autoscaler is told: pure.

use api::hypershift::v1beta1::common::{Taint, TaintEffect};
use api::hypershift::v1beta1::node_pool::{NodePool, NodePoolAutoScaling};
use std::collections::BTreeMap;

/// The bounds, where the autoscaler looks for them.
const MIN: &str = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size";
const MAX: &str = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size";
/// What the nodes of an empty pool would have.
const LABELS: &str = "capacity.cluster-autoscaler.kubernetes.io/labels";
const TAINTS: &str = "capacity.cluster-autoscaler.kubernetes.io/taints";

/// How many machines to ask for; nothing where the number is not ours to change.
pub(crate) fn replicas(pool: &NodePool, now: Option<i32>, from_zero: bool) -> Option<i32> {
    match (&pool.spec.auto_scaling, pool.spec.replicas, now) {
        (Some(bounds), _, Some(now)) => {
            let (min, max) = (minimum(bounds, from_zero), bounds.max);
            Some(now.clamp(min, max.max(min))).filter(|wanted| *wanted != now)
        }
        (Some(bounds), _, None) => Some(minimum(bounds, from_zero)),
        (None, Some(wanted), _) => Some(wanted),
        (None, None, Some(_)) => None,
        (None, None, None) => Some(0),
    }
}

/// What the autoscaler is told.
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

/// The least that the autoscaler may go to. To none only if it can tell what a machine would have.
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
    fn the_autoscaler_is_interfered_with_at_the_edges_only() {
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
    fn a_number_of_nodes_is_kept_where_nobody_says_one() {
        let mut pool = fixtures::pool();
        pool.spec.replicas = Some(3);
        assert_eq!(replicas(&pool, Some(1), false), Some(3));
        pool.spec.replicas = None;
        assert_eq!(replicas(&pool, Some(4), false), None);
        assert_eq!(replicas(&pool, None, false), Some(0));
    }

    #[test]
    fn the_autoscaler_learns_what_nodes_would_have() {
        let mut pool = pool(0, 3);
        pool.spec
            .node_labels
            .insert("zone".to_owned(), "a".to_owned());
        pool.spec.taints.push(Taint {
            key: "dedicated".to_owned(),
            value: None,
            effect: TaintEffect::NoSchedule,
        });
        let told = annotations(&pool, true);
        assert_eq!(told[MIN], "0");
        assert_eq!(told[MAX], "3");
        assert_eq!(told[LABELS], "zone=a");
        assert_eq!(told[TAINTS], "dedicated=:NoSchedule");
        pool.spec.auto_scaling = None;
        let told = annotations(&pool, true);
        assert_eq!(
            (told[MIN].as_str(), told[MAX].as_str(), told.len()),
            ("0", "0", 2)
        );
    }
}
