//! The number of machines, and the annotations for the cluster autoscaler: pure.

use std::collections::BTreeMap;

use api::hypershift::v1beta1::common::{Taint, TaintEffect};
use api::hypershift::v1beta1::node_pool::{NodePool, NodePoolAutoScaling};
use serde_json::json;

use super::capacity::FromZero;

/// The bounds, as annotations of the autoscaler.
const MIN: &str = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size";
const MAX: &str = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size";
/// The labels and taints of future nodes.
const LABELS: &str = "capacity.cluster-autoscaler.kubernetes.io/labels";
const TAINTS: &str = "capacity.cluster-autoscaler.kubernetes.io/taints";
/// The label of a node with its processor architecture.
const ARCHITECTURE: &str = "kubernetes.io/arch";

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
pub(crate) fn annotations(pool: &NodePool, from_zero: FromZero<'_>) -> BTreeMap<String, String> {
    let Some(bounds) = &pool.spec.auto_scaling else {
        return [MIN, MAX]
            .map(|key| (key.to_owned(), "0".to_owned()))
            .into();
    };
    let min = minimum(bounds, from_zero.is_possible());
    let mut annotations = from_zero.annotations();
    annotations.insert(MIN.to_owned(), min.to_string());
    annotations.insert(MAX.to_owned(), bounds.max.to_string());
    annotations.insert(LABELS.to_owned(), labels(pool));
    if !pool.spec.taints.is_empty() {
        let taints = pool.spec.taints.iter().map(taint);
        annotations.insert(TAINTS.to_owned(), sorted(taints));
    }
    annotations
}

/// The labels of future nodes that a pod may select.
fn labels(pool: &NodePool) -> String {
    let mut labels = pool.spec.node_labels.clone();
    // As the API has it.
    let architecture = json!(pool.spec.arch);
    let architecture = architecture.as_str().unwrap_or_default();
    labels.insert(ARCHITECTURE.to_owned(), architecture.to_owned());
    sorted(labels.iter().map(|(key, value)| format!("{key}={value}")))
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
    match value.as_deref() {
        Some(value) if !value.is_empty() => format!("{key}={value}:{effect}"),
        Some(_) | None => format!("{key}:{effect}"),
    }
}

/// The effect as Kubernetes has it.
pub(crate) fn effect_name(effect: TaintEffect) -> &'static str {
    match effect {
        TaintEffect::NoSchedule => "NoSchedule",
        TaintEffect::PreferNoSchedule => "PreferNoSchedule",
        TaintEffect::NoExecute => "NoExecute",
    }
}

fn sorted(items: impl Iterator<Item = String>) -> String {
    let mut items: Vec<_> = items.collect();
    items.sort();
    items.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node_pool::fixtures;
    use crate::platform::capacity::Capacity;

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
        let capacity = FromZero::Known(Capacity {
            processors: 2,
            memory: 8192,
            gpus: 0,
        });
        let found = annotations(&pool, FromZero::Impossible);
        assert_eq!(found[MIN], "1");
        assert_eq!(found[LABELS], "kubernetes.io/arch=amd64");
        assert_eq!(found.len(), 3);
        for (key, value) in [("zone", "a"), ("example.com/b", "")] {
            let labels = &mut pool.spec.node_labels;
            labels.insert(key.to_owned(), value.to_owned());
        }
        for (key, value) in [
            ("team", Some("a")),
            ("dedicated", None),
            ("empty", Some("")),
        ] {
            pool.spec.taints.push(Taint {
                key: key.to_owned(),
                value: value.map(str::to_owned),
                effect: TaintEffect::NoSchedule,
            });
        }
        let found = annotations(&pool, capacity);
        let expected = [
            (LABELS, "example.com/b=,kubernetes.io/arch=amd64,zone=a"),
            (
                TAINTS,
                "dedicated:NoSchedule,empty:NoSchedule,team=a:NoSchedule",
            ),
            (MAX, "3"),
            (MIN, "0"),
            ("machine.openshift.io/memoryMb", "8192"),
            ("machine.openshift.io/vCPU", "2"),
        ];
        let found: Vec<_> = found
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect();
        assert_eq!(found, expected);
        pool.spec.auto_scaling = None;
        let found = annotations(&pool, capacity);
        assert_eq!(
            (found[MIN].as_str(), found[MAX].as_str(), found.len()),
            ("0", "0", 2)
        );
    }
}
