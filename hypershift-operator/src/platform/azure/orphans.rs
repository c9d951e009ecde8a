//! Machines of a cluster that is being deleted which its identity cannot delete any more, such as one that was revoked.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

/// How long the provider may try.
const GRACE: Duration = Duration::from_mins(10);

/// Whether the provider has failed to delete a machine for a while.
pub(super) fn is_orphaned(metadata: &ObjectMeta, data: &Value, now: Timestamp) -> bool {
    let Some(deleted) = &metadata.deletion_timestamp else {
        return false;
    };
    let passed = Duration::try_from(now.duration_since(deleted.0)).unwrap_or_default();
    let conditions = data["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    passed >= GRACE
        && conditions.any(|it| {
            it["type"] == "Ready" && it["status"] == "False" && it["reason"] == "DeletionFailed"
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn machines_that_fail_to_be_deleted_for_ten_minutes_are_orphans() {
        let now = "2030-01-31T12:00:00Z";
        let failed = json!([{ "type": "Ready", "status": "False", "reason": "DeletionFailed" }]);
        let deleting = json!([{ "type": "Ready", "status": "False", "reason": "Deleting" }]);
        let ready = json!([{ "type": "Ready", "status": "True", "reason": "DeletionFailed" }]);
        let other = json!([{ "type": "VMRunning", "status": "False", "reason": "DeletionFailed" }]);
        for (name, deleted, conditions, expected) in [
            ("failed", Some("2030-01-31T11:50:00Z"), &failed, true),
            ("not for long", Some("2030-01-31T11:50:01Z"), &failed, false),
            ("not deleted", None, &failed, false),
            (
                "from the future",
                Some("2030-01-31T12:30:00Z"),
                &failed,
                false,
            ),
            ("deleting", Some("2030-01-31T11:00:00Z"), &deleting, false),
            ("ready", Some("2030-01-31T11:00:00Z"), &ready, false),
            (
                "another condition",
                Some("2030-01-31T11:00:00Z"),
                &other,
                false,
            ),
            (
                "no conditions",
                Some("2030-01-31T11:00:00Z"),
                &json!(null),
                false,
            ),
        ] {
            let metadata = json!({ "name": "one", "deletionTimestamp": deleted });
            let metadata: ObjectMeta = serde_json::from_value(metadata).unwrap();
            let data = json!({ "status": { "conditions": conditions } });
            let found = is_orphaned(&metadata, &data, now.parse().unwrap());
            assert_eq!(found, expected, "{name}");
        }
    }
}
