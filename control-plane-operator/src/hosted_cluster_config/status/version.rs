//! The release that a hosted cluster runs: as its cluster version operator says, or, where there is none, as far as the
//! components of its control plane are. Pure.

use api::conditions::{ClusterCondition, Status};
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::super::control_plane::Wanted;

/// Conditions of a ClusterVersion, and what they are called outside.
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
/// The reason of everything that no cluster version operator says.
const COMPONENTS: &str = "FromControlPlaneComponents";

/// The version status, and the conditions that go with it.
pub(super) fn of(
    status: &Value,
    cluster_version: Option<&DynamicObject>,
    generation: Option<i64>,
) -> (Option<Value>, Vec<Wanted>) {
    match cluster_version {
        Some(found) if has_history(&found.data["status"]) => (
            Some(reported(&found.data["status"])),
            copied(&found.data["status"]),
        ),
        _ => of_components(&status["controlPlaneVersion"], generation),
    }
}

/// An operator that has not begun says nothing.
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

fn copied(status: &Value) -> Vec<Wanted> {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    conditions
        .filter_map(|condition| {
            let (_, about) = CONDITIONS
                .iter()
                .find(|(name, _)| condition["type"] == *name)?;
            let text = |field: &str| condition[field].as_str().unwrap_or_default();
            Some(Wanted {
                about: *about,
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

fn of_components(version: &Value, generation: Option<i64>) -> (Option<Value>, Vec<Wanted>) {
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
        format!("all components run {release}")
    } else {
        format!("{release} is being rolled out to the components")
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
    let conditions = conditions.map(|(about, is_so)| Wanted {
        about,
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

    fn is(conditions: &[Wanted], about: ClusterCondition) -> Option<Status> {
        conditions
            .iter()
            .find(|it| it.about == about)
            .map(|it| it.status)
    }

    #[test]
    fn without_an_operator_the_components_tell() {
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
            // The API takes it as what it is.
            serde_json::from_value::<api::hypershift::v1beta1::versions::ClusterVersionStatus>(
                versions,
            )
            .unwrap();
        }
    }

    #[test]
    fn nothing_is_said_before_anything_is_known() {
        assert_eq!(of(&json!({}), None, Some(1)), (None, Vec::new()));
    }

    #[test]
    fn an_operator_is_believed_once_it_has_begun() {
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
