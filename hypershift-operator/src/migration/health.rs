//! The health of a HostedCluster, compared with its health before the migration: pure. What was unhealthy before may stay
//! so. The journal has the texts of the criteria, so they must not change.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Conditions of Cluster API kinds and of the control plane that are healthy when true.
const GOOD: [&str; 17] = [
    "Available",
    "Ready",
    "InfrastructureReady",
    "BootstrapConfigReady",
    "NodeReady",
    "NodeHealthy",
    "MachinesReady",
    "MachinesUpToDate",
    "ControlPlaneAvailable",
    "ControlPlaneInitialized",
    "ControlPlaneReady",
    "WorkersAvailable",
    "RemoteConnectionProbe",
    "UpToDate",
    "KubeAPIServerAvailable",
    "EtcdAvailable",
    "ValidHostedControlPlaneConfiguration",
];
/// Healthy phases.
const WELL: [&str; 4] = ["Running", "Provisioned", "ScalingUp", "ScalingDown"];
/// Status counts that must not decrease.
const COUNTS: [&str; 4] = [
    "replicas",
    "readyReplicas",
    "availableReplicas",
    "upToDateReplicas",
];

/// Numbers of healthy objects by kind, then by criterion. Its size does not depend on the size of the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Health(BTreeMap<String, BTreeMap<String, i64>>);

// === impl Health ===

impl Health {
    /// Counts.
    pub(super) fn of<'a>(objects: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut health = Self::default();
        for object in objects {
            let kind = object["kind"].as_str().unwrap_or("Object");
            let counts = health.0.entry(kind.to_owned()).or_default();
            for (what, count) in criteria(object) {
                *counts.entry(what).or_default() += count;
            }
        }
        health
    }

    /// How many objects of a kind there are.
    pub(super) fn count(&self, kind: &str) -> usize {
        let count = self.0.get(kind).and_then(|counts| counts.get("exist"));
        usize::try_from(count.copied().unwrap_or_default()).unwrap_or_default()
    }

    /// What is less healthy than before; `None` if nothing is.
    pub(super) fn worse_than(&self, before: &Self) -> Option<String> {
        let mut worse = Vec::new();
        for (kind, counts) in &before.0 {
            for (what, before) in counts {
                let now = self.0.get(kind).and_then(|counts| counts.get(what));
                let now = now.copied().unwrap_or_default();
                if now < *before {
                    worse.push(format!("{kind}: {what} {now}, was {before}"));
                }
            }
        }
        (!worse.is_empty()).then(|| worse.join("; "))
    }
}

/// The healthy criteria of one object.
fn criteria(object: &Value) -> Vec<(String, i64)> {
    let status = &object["status"];
    let mut criteria = vec![("exist".to_owned(), 1)];
    let phase = status["phase"].as_str();
    if phase.is_some_and(|phase| WELL.contains(&phase)) {
        criteria.push(("are in a good phase".to_owned(), 1));
    }
    for count in COUNTS {
        if let Some(value) = status[count].as_i64() {
            criteria.push((count.to_owned(), value));
        }
    }
    if status["nodeRef"].is_object() {
        criteria.push(("have a Node".to_owned(), 1));
    }
    let conditions = status["conditions"].as_array();
    for condition in conditions.into_iter().flatten() {
        let kind = condition["type"].as_str().unwrap_or_default();
        if GOOD.contains(&kind) && condition["status"] == "True" {
            criteria.push((format!("{kind} is true"), 1));
        }
    }
    criteria
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn machine(phase: &str, ready: &str) -> Value {
        json!({
            "kind": "Machine",
            "status": {
                "phase": phase,
                "nodeRef": { "name": "n" },
                "conditions": [
                    { "type": "Ready", "status": ready },
                    { "type": "Paused", "status": "True" },
                ],
            },
        })
    }

    #[test]
    fn unhealthy_before_may_stay_unhealthy() {
        let before = [machine("Running", "True"), machine("Failed", "False")];
        let before = Health::of(&before);
        assert_eq!(before.worse_than(&before), None);
        let recovered = [machine("Running", "True"), machine("Running", "True")];
        assert_eq!(Health::of(&recovered).worse_than(&before), None);
        assert_eq!(before.count("Machine"), 2);
    }

    #[test]
    fn health_regressions_are_named() {
        let before = Health::of(&[machine("Running", "True"), machine("Running", "True")]);
        for (after, expected) in [
            (vec![machine("Running", "True")], "exist 1, was 2"),
            (
                vec![machine("Running", "True"), machine("Failed", "True")],
                "are in a good phase 1, was 2",
            ),
            (
                vec![machine("Running", "True"), machine("Running", "Unknown")],
                "Ready is true 1, was 2",
            ),
            (vec![], "Machine: Ready is true 0, was 2"),
        ] {
            let worse = Health::of(&after).worse_than(&before).unwrap();
            assert!(worse.contains(expected), "{worse}");
        }
    }

    #[test]
    fn ready_replicas_must_be_ready_again() {
        let set = |ready: i64| json!({ "kind": "MachineSet", "status": { "replicas": 3, "readyReplicas": ready } });
        let before = Health::of(&[set(2)]);
        assert_eq!(Health::of(&[set(3)]).worse_than(&before), None);
        assert!(Health::of(&[set(1)]).worse_than(&before).is_some());
    }

    #[test]
    fn health_snapshots_are_small_and_round_trip() {
        let fleet: Vec<_> = (0..5000).map(|_| machine("Running", "True")).collect();
        let health = Health::of(&fleet);
        let text = serde_json::to_string(&health).unwrap();
        assert!(text.len() < 500, "{text}");
        assert_eq!(serde_json::from_str::<Health>(&text).unwrap(), health);
    }
}
