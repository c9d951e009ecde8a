//! The condition of the HostedControlPlane about images that its release does not have. Pure.

use api::conditions::ClusterCondition;
use api::hypershift::v1beta1::HostedControlPlane;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// The condition about images that the release does not have; nothing if it is set already.
pub(super) fn condition(
    hcp: &HostedControlPlane,
    missing: &[&'static str],
    now: Timestamp,
) -> Option<Condition> {
    let (status, reason, message) = if missing.is_empty() {
        ("True", "AsExpected", "All is well".to_owned())
    } else {
        ("False", "MissingReleaseImages", missing.join(", "))
    };
    let type_ = ClusterCondition::IgnitionServerValidReleaseInfo.as_str();
    let mut conditions = hcp.status.iter().flat_map(|status| &status.conditions);
    let before = conditions.find(|before| before.type_ == type_);
    let since = before.filter(|before| before.status == status);
    if since.is_some_and(|before| before.reason == reason && before.message == message) {
        return None;
    }
    Some(Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
        observed_generation: hcp.metadata.generation,
        last_transition_time: since
            .map_or_else(|| Time(now), |before| before.last_transition_time.clone()),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_condition_names_missing_images_and_is_written_when_it_changes() {
        let hcp = |conditions: serde_json::Value| -> HostedControlPlane {
            serde_json::from_value(json!({
                "metadata": { "name": "dev", "namespace": "clusters-dev", "generation": 4 },
                "spec": {
                    "releaseImage": "images.example.com/release:4.22.0",
                    "infraID": "dev-x", "issuerURL": "https://kubernetes.default.svc",
                    "platform": { "type": "None" },
                    "dns": { "baseDomain": "example.com" },
                    "services": [], "etcd": { "managementType": "Managed" },
                    "pullSecret": { "name": "pull-secret" }, "sshKey": { "name": "" },
                },
                "status": { "ready": true, "initialized": true, "conditions": conditions },
            }))
            .unwrap()
        };
        let now: Timestamp = "2030-01-01T00:00:00Z".parse().unwrap();
        let missing = ["coredns", "pod"];
        let set = condition(&hcp(json!([])), &missing, now).unwrap();
        assert_eq!(
            (set.status.as_str(), set.message.as_str()),
            ("False", "coredns, pod")
        );
        assert_eq!(set.reason, "MissingReleaseImages");
        assert_eq!(set.observed_generation, Some(4));
        let known = hcp(json!([set]));
        assert_eq!(condition(&known, &missing, Timestamp::UNIX_EPOCH), None);
        let fewer = condition(&known, &missing[1..], Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(fewer.last_transition_time, Time(now));
        let none = condition(&known, &[], Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(
            (none.status.as_str(), none.reason.as_str()),
            ("True", "AsExpected")
        );
        assert_eq!(none.last_transition_time, Time(Timestamp::UNIX_EPOCH));
    }
}
