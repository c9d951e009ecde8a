//! The release of a hosted cluster: from its ClusterVersion, or, without one, from the rollout of the control plane
//! components.

use api::conditions::{ClusterCondition, Status};
use jiff::Timestamp;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::super::control_plane::{self, DesiredCondition};

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
/// Reason of conditions whose ClusterVersion gives none.
const COPIED: &str = "FromClusterVersion";
/// The longest reason, and the longest version or image of a release that the API accepts, in bytes.
const LONGEST_REASON: usize = 1024;
const LONGEST_RELEASE: usize = 255;
/// Reason of conditions that are derived from the components.
const COMPONENTS: &str = "FromControlPlaneComponents";

/// Returns the version status, and the conditions that follow the components. Those of the ClusterVersion, whose reasons
/// are its own, are set in the status, and with them the version and the image of earlier APIs.
pub(super) fn of(
    status: &mut Value,
    cluster_version: Option<&DynamicObject>,
    generation: Option<i64>,
) -> (Option<Value>, Vec<DesiredCondition>) {
    let found = cluster_version.map(|it| &it.data["status"]);
    let (versions, of_components) = match found.filter(|it| has_history(it)) {
        Some(found) => (Some(reported(found)), Vec::new()),
        None => of_components(status.get("controlPlaneVersion"), generation),
    };
    // Before the first rollout there is nothing to report.
    if found.is_some() || versions.is_some() {
        let mut copied = copied(found.unwrap_or(&Value::Null));
        copied.retain(|it| of_components.iter().all(|other| other.type_ != it.type_));
        control_plane::set(status, &copied, generation, Timestamp::now());
    }
    if let Some(versions) = &versions {
        set_release(status, &versions["desired"]);
    }
    (versions, of_components)
}

/// The fields that `versionStatus` replaces. Clients of earlier APIs read them.
fn set_release(status: &mut Value, desired: &Value) {
    for (field, source) in [("version", "version"), ("releaseImage", "image")] {
        let value = desired[source].as_str();
        // The API has a limit, which what is copied from the hosted cluster must not exceed.
        if let Some(value) = value.filter(|value| value.len() <= LONGEST_RELEASE) {
            status[field] = json!(value);
        }
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

/// All conditions of a ClusterVersion, also those that it does not have.
fn copied(status: &Value) -> Vec<DesiredCondition<String>> {
    let conditions = status["conditions"].as_array();
    let found = |name: &str| {
        let mut conditions = conditions.into_iter().flatten();
        conditions.find(|it| it["type"] == name)
    };
    let copied = CONDITIONS.iter().map(|(name, type_)| match found(name) {
        Some(condition) => copy(*type_, condition),
        None => missing(*type_, name, status),
    });
    copied.collect()
}

fn copy(type_: ClusterCondition, condition: &Value) -> DesiredCondition<String> {
    let text = |field: &str| condition[field].as_str().unwrap_or_default();
    let reason = text("reason");
    DesiredCondition {
        type_,
        status: Status::read(text("status")),
        reason: if is_reason(reason) {
            reason.to_owned()
        } else {
            COPIED.to_owned()
        },
        message: text("message").to_owned(),
    }
}

/// Whether the HostedControlPlane may have the reason. A ClusterVersion may have any.
fn is_reason(text: &str) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"_,:".contains(byte);
    let is_end = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let bytes = text.as_bytes();
    bytes.len() <= LONGEST_REASON
        && bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.iter().all(is_part)
        && bytes.last().is_some_and(is_end)
}

/// A condition that the ClusterVersion does not have. Nothing prevents an upgrade then.
fn missing(type_: ClusterCondition, name: &str, status: &Value) -> DesiredCondition<String> {
    let message = if status.is_object() {
        format!("The ClusterVersion has no condition {name}")
    } else {
        "The hosted cluster has no ClusterVersion".to_owned()
    };
    let is_upgradeable = type_ == ClusterCondition::ClusterVersionUpgradeable && status.is_object();
    let (status, reason) = if is_upgradeable {
        (Status::True, COPIED)
    } else {
        (Status::Unknown, "StatusUnknown")
    };
    DesiredCondition {
        type_,
        status,
        reason: reason.to_owned(),
        message,
    }
}

fn of_components(
    version: Option<&Value>,
    generation: Option<i64>,
) -> (Option<Value>, Vec<DesiredCondition>) {
    let version = version.unwrap_or(&Value::Null);
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

    #[expect(clippy::needless_pass_by_value, reason = "calls are shorter")]
    fn cluster_version(status: Value) -> DynamicObject {
        serde_json::from_value(json!({ "metadata": { "name": "version" }, "status": status }))
            .unwrap()
    }

    /// Status, reason and message of a condition in the status.
    fn written<'a>(status: &'a Value, type_: &str) -> [&'a str; 3] {
        let conditions = status["conditions"].as_array().unwrap();
        let found = conditions.iter().find(|it| it["type"] == type_).unwrap();
        ["status", "reason", "message"].map(|field| found[field].as_str().unwrap())
    }

    #[test]
    fn version_status_falls_back_to_components() {
        for (state, progressing) in [("Partial", Status::True), ("Completed", Status::False)] {
            let (versions, conditions) = of(&mut status(state), None, Some(5));
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
        let mut status = json!({});
        assert_eq!(of(&mut status, None, Some(1)), (None, Vec::new()));
        assert_eq!(status, json!({}));
    }

    #[test]
    fn cluster_version_takes_precedence_once_it_has_history() {
        let found = |history: Value| {
            cluster_version(json!({
                "desired": { "version": "4.22.2", "image": "c" }, "history": history,
                "observedGeneration": 1, "availableUpdates": null,
                "conditions": [{ "type": "Upgradeable", "status": "False", "reason": "Old", "message": "no" }],
            }))
        };
        let mut status = status("Completed");
        let (versions, conditions) = of(&mut status, Some(&found(json!([]))), None);
        assert_eq!(versions.unwrap()["desired"]["version"], "4.22.1");
        assert_eq!(conditions.len(), 4, "{conditions:?}");
        // Components do not know what operators in the hosted cluster require.
        assert_eq!(
            written(&status, "ClusterVersionUpgradeable"),
            ["False", "Old", "no"]
        );
        assert_eq!(
            (&status["version"], &status["releaseImage"]),
            (&json!("4.22.1"), &json!("b"))
        );
        let entry = json!([{ "state": "Partial", "startedTime": "2030-01-02T00:00:00Z", "completionTime": null, "image": "c", "verified": true }]);
        let (versions, conditions) = of(&mut status, Some(&found(entry)), None);
        assert_eq!(versions.unwrap()["desired"]["version"], "4.22.2");
        assert_eq!(conditions, []);
        assert_eq!(
            (&status["version"], &status["releaseImage"]),
            (&json!("4.22.2"), &json!("c"))
        );
    }

    #[test]
    fn conditions_keep_the_reason_of_the_cluster_version() {
        let long = "a".repeat(LONGEST_REASON + 1);
        for (reason, expected) in [
            ("MultipleErrors", "MultipleErrors"),
            ("PayloadLoaded,Verified:A_", "PayloadLoaded,Verified:A_"),
            // The API of the HostedControlPlane would refuse them.
            ("", COPIED),
            ("not a reason", COPIED),
            ("1st", COPIED),
            ("Ends:", COPIED),
            (long.as_str(), COPIED),
        ] {
            let found = json!({ "status": "True", "reason": reason, "message": "text" });
            let condition = copy(ClusterCondition::ClusterVersionFailing, &found);
            assert_eq!(condition.reason, expected, "{reason:.20}");
            assert_eq!(condition.message, "text");
        }
    }

    #[test]
    fn conditions_that_disappear_become_unknown() {
        let history = json!([{ "state": "Completed", "version": "4.22.1", "image": "b" }]);
        let before = json!({ "history": history, "conditions": [
            { "type": "Failing", "status": "True", "reason": "Broken", "message": "it fails" },
            { "type": "Upgradeable", "status": "False", "reason": "Old", "message": "no" },
        ] });
        let mut status = json!({});
        of(&mut status, Some(&cluster_version(before)), Some(1));
        assert_eq!(written(&status, "ClusterVersionFailing")[0], "True");
        assert_eq!(written(&status, "ClusterVersionUpgradeable")[0], "False");
        let after = json!({ "history": history });
        of(&mut status, Some(&cluster_version(after)), Some(1));
        for (_, type_) in CONDITIONS {
            let expected = match type_ {
                ClusterCondition::ClusterVersionUpgradeable => ["True", COPIED],
                _ => ["Unknown", "StatusUnknown"],
            };
            assert_eq!(written(&status, type_.as_str())[..2], expected, "{type_:?}");
        }
    }

    #[test]
    fn upgrades_are_unknown_without_a_cluster_version() {
        let mut status = status("Completed");
        of(&mut status, None, Some(1));
        let found = written(&status, "ClusterVersionUpgradeable");
        assert_eq!(found[..2], ["Unknown", "StatusUnknown"]);
    }

    #[test]
    fn releases_beyond_the_limit_of_the_api_are_left_out() {
        let mut status = json!({ "version": "4.22.0" });
        let image = "a".repeat(LONGEST_RELEASE + 1);
        set_release(&mut status, &json!({ "version": null, "image": image }));
        assert_eq!(status, json!({ "version": "4.22.0" }));
    }
}
