//! The release of a hosted cluster: from its ClusterVersion, or, without one, from the rollout of the control plane
//! components. Pure.

use api::conditions::{ClusterCondition, Status};
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::super::control_plane::DesiredCondition;

/// Conditions of a ClusterVersion, and their types in the HostedControlPlane.
const CONDITIONS: [(&str, ClusterCondition); 6] = [
    ("Available", ClusterCondition::ClusterVersionAvailable),
    ("Failing", ClusterCondition::ClusterVersionFailing),
    ("Progressing", ClusterCondition::ClusterVersionProgressing),
    (
        "ReleaseAccepted",
        ClusterCondition::ClusterVersionReleaseAccepted,
    ),
    (
        "RetrievedUpdates",
        ClusterCondition::ClusterVersionRetrievedUpdates,
    ),
    ("Upgradeable", ClusterCondition::ClusterVersionUpgradeable),
];
/// Reason of conditions that are derived from the components.
const COMPONENTS: &str = "FromControlPlaneComponents";

/// Returns the version status and its conditions.
pub(super) fn of(
    status: &Value,
    cluster_version: Option<&DynamicObject>,
    generation: Option<i64>,
) -> (Option<Value>, Vec<DesiredCondition>) {
    match cluster_version {
        Some(found) if has_history(&found.data["status"]) => (
            Some(reported(&found.data["status"])),
            copied(&found.data["status"]),
        ),
        _ => of_components(&status["controlPlaneVersion"], generation),
    }
}

/// Before the operator has started, the history is empty.
fn has_history(status: &Value) -> bool {
    status["history"]
        .as_array()
        .is_some_and(|history| !history.is_empty())
}

fn reported(status: &Value) -> Value {
    let mut versions = json!({
        "desired": status["desired"],
        "history": status["history"],
        "observedGeneration": status["observedGeneration"],
        "availableUpdates": status["availableUpdates"],
    });
    if status["conditionalUpdates"].is_array() {
        versions["conditionalUpdates"] = status["conditionalUpdates"].clone();
    }
    versions
}

fn copied(status: &Value) -> Vec<DesiredCondition> {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    conditions
        .filter_map(|condition| {
            let (_, type_) = CONDITIONS
                .iter()
                .find(|(name, _)| condition["type"] == *name)?;
            let text = |field: &str| condition[field].as_str().unwrap_or_default();
            Some(DesiredCondition {
                type_: *type_,
                status: Status::read(text("status")),
                reason: "FromClusterVersion",
                message: [text("reason"), text("message")]
                    .join(": ")
                    .trim_start_matches(": ")
                    .to_owned(),
            })
        })
        .collect()
}

fn of_components(
    version: &Value,
    generation: Option<i64>,
) -> (Option<Value>, Vec<DesiredCondition>) {
    let Some(history) = version["history"].as_array().filter(|it| !it.is_empty()) else {
        return (None, Vec::new());
    };
    let versions = json!({
        "desired": { "version": version["desired"]["version"], "image": version["desired"]["image"] },
        "history": history.iter().map(entry).collect::<Vec<_>>(),
        "observedGeneration": version["observedGeneration"].as_i64().or(generation).unwrap_or_default(),
        "availableUpdates": null,
    });
    let is_done = |entry: &Value| entry["state"] == "Completed";
    let release = version["desired"]["version"].as_str().unwrap_or_default();
    let progress = if is_done(&history[0]) {
        format!("All components run {release}")
    } else {
        format!("Rolling out {release} to the components")
    };
    let conditions = [
        (
            ClusterCondition::ClusterVersionAvailable,
            history.iter().any(is_done),
        ),
        (ClusterCondition::ClusterVersionFailing, false),
        (
            ClusterCondition::ClusterVersionProgressing,
            !is_done(&history[0]),
        ),
        (ClusterCondition::ClusterVersionReleaseAccepted, true),
    ];
    let conditions = conditions.map(|(type_, is_so)| DesiredCondition {
        type_,
        status: is_so.into(),
        reason: COMPONENTS,
        message: progress.clone(),
    });
    (Some(versions), conditions.to_vec())
}

fn entry(entry: &Value) -> Value {
    json!({
        "state": entry["state"],
        "startedTime": entry["startedTime"],
        "completionTime": entry["completionTime"],
        "version": entry["version"],
        "image": entry["image"],
        "verified": false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(state: &str) -> Value {
        json!({ "controlPlaneVersion": {
            "desired": { "version": "4.22.1", "image": "b" },
            "history": [
                { "state": state, "startedTime": "2030-01-02T00:00:00Z", "version": "4.22.1", "image": "b" },
                { "state": "Completed", "startedTime": "2030-01-01T00:00:00Z", "completionTime": "2030-01-01T00:05:00Z", "version": "4.22.0", "image": "a" },
            ],
            "observedGeneration": 4,
        }})
    }

    fn is(conditions: &[DesiredCondition], type_: ClusterCondition) -> Option<Status> {
        conditions
            .iter()
            .find(|it| it.type_ == type_)
            .map(|it| it.status)
    }

    #[test]
    fn version_status_falls_back_to_components() {
        for (state, progressing) in [("Partial", Status::True), ("Completed", Status::False)] {
            let (versions, conditions) = of(&status(state), None, Some(5));
            let versions = versions.unwrap();
            assert_eq!(versions["history"][0]["state"], state);
            assert_eq!(versions["history"][0]["completionTime"], Value::Null);
            assert_eq!(
                versions["history"][1]["completionTime"],
                "2030-01-01T00:05:00Z"
            );
            assert_eq!(versions["observedGeneration"], 4);
            assert!(versions["availableUpdates"].is_null());
            assert_eq!(
                is(&conditions, ClusterCondition::ClusterVersionProgressing),
                Some(progressing)
            );
            assert_eq!(
                is(&conditions, ClusterCondition::ClusterVersionAvailable),
                Some(Status::True)
            );
            // It deserializes to the API type.
            serde_json::from_value::<api::hypershift::v1beta1::versions::ClusterVersionStatus>(
                versions,
            )
            .unwrap();
        }
    }

    #[test]
    fn version_status_is_empty_without_history() {
        assert_eq!(of(&json!({}), None, Some(1)), (None, Vec::new()));
    }

    #[test]
    fn cluster_version_takes_precedence_once_it_has_history() {
        let found = |history: Value| -> DynamicObject {
            serde_json::from_value(json!({
                "metadata": { "name": "version" },
                "status": {
                    "desired": { "version": "4.22.2", "image": "c" }, "history": history,
                    "observedGeneration": 1, "availableUpdates": null,
                    "conditions": [{ "type": "Upgradeable", "status": "False", "reason": "Old", "message": "no" }],
                },
            }))
            .unwrap()
        };
        let (versions, _) = of(&status("Completed"), Some(&found(json!([]))), None);
        assert_eq!(versions.unwrap()["desired"]["version"], "4.22.1");
        let entry = json!([{ "state": "Partial", "startedTime": "2030-01-02T00:00:00Z", "completionTime": null, "image": "c", "verified": true }]);
        let (versions, conditions) = of(&status("Completed"), Some(&found(entry)), None);
        assert_eq!(versions.unwrap()["desired"]["version"], "4.22.2");
        assert_eq!(
            is(&conditions, ClusterCondition::ClusterVersionUpgradeable),
            Some(Status::False)
        );
        assert_eq!(conditions[0].message, "Old: no");
    }
}
