//! How well a hosted cluster is, to be compared with how it was: pure. A cluster that was unwell before may stay so.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Conditions of Cluster API's kinds and of the control plane that are good when they are true.
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
/// Phases that are good.
const WELL: [&str; 4] = ["Running", "Provisioned", "ScalingUp", "ScalingDown"];
/// Counts in a status that are good when they are high.
const COUNTS: [&str; 4] = [
    "replicas",
    "readyReplicas",
    "availableReplicas",
    "upToDateReplicas",
];

/// What is well, counted over all objects of a kind: by kind, then by what. It stays small, however large the cluster.
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
            for (what, count) in marks(object) {
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

    /// What is worse than it was, in words; nothing if all is as well as it was, or better.
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

/// What of one object is well.
fn marks(object: &Value) -> Vec<(String, i64)> {
    let status = &object["status"];
    let mut marks = vec![("exist".to_owned(), 1)];
    let phase = status["phase"].as_str();
    if phase.is_some_and(|phase| WELL.contains(&phase)) {
        marks.push(("are in a good phase".to_owned(), 1));
    }
    for count in COUNTS {
        if let Some(value) = status[count].as_i64() {
            marks.push((count.to_owned(), value));
        }
    }
    if status["nodeRef"].is_object() {
        marks.push(("have a Node".to_owned(), 1));
    }
    let conditions = status["conditions"].as_array();
    for condition in conditions.into_iter().flatten() {
        let kind = condition["type"].as_str().unwrap_or_default();
        if GOOD.contains(&kind) && condition["status"] == "True" {
            marks.push((format!("{kind} is true"), 1));
        }
    }
    marks
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
    fn m14_who_was_unwell_before_may_stay_so() {
        let before = [machine("Running", "True"), machine("Failed", "False")];
        let before = Health::of(&before);
        assert_eq!(before.worse_than(&before), None);
        let mended = [machine("Running", "True"), machine("Running", "True")];
        assert_eq!(Health::of(&mended).worse_than(&before), None);
        assert_eq!(before.count("Machine"), 2);
    }

    #[test]
    fn what_is_worse_is_named() {
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
    fn replicas_that_were_ready_have_to_be_ready() {
        let set = |ready: i64| json!({ "kind": "MachineSet", "status": { "replicas": 3, "readyReplicas": ready } });
        let before = Health::of(&[set(2)]);
        assert_eq!(Health::of(&[set(3)]).worse_than(&before), None);
        assert!(Health::of(&[set(1)]).worse_than(&before).is_some());
    }

    #[test]
    fn a_snapshot_is_small_and_is_read_as_it_was_written() {
        let fleet: Vec<_> = (0..5000).map(|_| machine("Running", "True")).collect();
        let health = Health::of(&fleet);
        let text = serde_json::to_string(&health).unwrap();
        assert!(text.len() < 500, "{text}");
        assert_eq!(serde_json::from_str::<Health>(&text).unwrap(), health);
    }
}
