//! The status of a class, from that of its EC2NodeClass. Pure.

use api::karpenter::v1::OpenshiftEc2NodeClass;
use api::karpenter::v1::status::{CapacityReservation, SecurityGroup, Subnet};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::classes::{READY, SUPPORTED_SKEW, Update, VERSION_RESOLVED, is_false, is_true};

/// Condition: tags of the class have other values in the hosted cluster.
const TAG_CONFLICT: &str = "AWSResourceTagConflict";
/// The most entries of a list in a status.
const MOST: usize = 100;
/// The most conditions that are copied: others are added to them.
const MOST_CONDITIONS: usize = 90;
/// The longest message of a condition, in characters.
const LONGEST_MESSAGE: usize = 8192;

/// What is known of a class.
#[derive(Debug, Clone, Copy)]
pub(super) struct Observed<'a> {
    /// The status of its EC2NodeClass, if there is one.
    pub(super) status: Option<&'a Value>,
    /// Keys of tags that have other values in the hosted cluster.
    pub(super) conflicts: &'a [String],
    /// Why no EC2NodeClass is written.
    pub(super) waits: Option<&'a Waits>,
}

/// Why machines of a class cannot be made, as reason and message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Waits {
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// The status of the class, as far as it is not about versions.
pub(super) fn status(
    class: &OpenshiftEc2NodeClass,
    observed: Observed<'_>,
    now: Timestamp,
) -> Value {
    let source = observed.status.unwrap_or(&Value::Null);
    let mut conditions = copied(class, source, now);
    conditions.push(ready(class, source, observed.waits).condition(class, now));
    if !observed.conflicts.is_empty() {
        let keys = observed.conflicts.join(", ");
        let message = format!(
            "spec.platform.aws.resourceTags of the HostedCluster has other values of these tags, which are used: {keys}. \
             Remove them from the class, or allow other values there"
        );
        let conflict = Update::new(TAG_CONFLICT, true, "TagConflict", message);
        conditions.push(conflict.condition(class, now));
    }
    let mut status = json!({ "conditions": conditions });
    let lists = [
        ("subnets", list::<Subnet>(&source["subnets"], Value::clone)),
        (
            "securityGroups",
            list::<SecurityGroup>(&source["securityGroups"], Value::clone),
        ),
        (
            "capacityReservations",
            list::<CapacityReservation>(&source["capacityReservations"], reservation),
        ),
    ];
    for (field, items) in lists {
        // An empty list is not valid.
        if !items.is_empty() {
            status[field] = json!(items);
        }
    }
    status
}

/// Whether machines can be made. Karpenter does not know whether their version is the right one.
fn ready(class: &OpenshiftEc2NodeClass, source: &Value, waits: Option<&Waits>) -> Update {
    if let Some(Waits { reason, message }) = waits {
        return Update::new(READY, false, *reason, message);
    }
    if let Some((problem, about)) = version_problem(class) {
        let message = format!("the version of the nodes {problem}: see condition {about}");
        return Update::new(READY, false, "VersionNotResolved", message);
    }
    let mut conditions = source["conditions"].as_array().into_iter().flatten();
    let reported = conditions.find(|it| it["type"] == READY);
    let Some(reported) = reported else {
        let message = "Waiting for Karpenter to evaluate the class";
        return Update::new(READY, false, "WaitingForKarpenter", message);
    };
    let message = reported["message"].as_str().unwrap_or_default();
    Update::new(
        READY,
        reported["status"] == "True",
        reason(reported),
        message,
    )
}

/// What is wrong with the version of a class, and the condition that says so. A release that is found may be one that nodes
/// cannot have.
fn version_problem(class: &OpenshiftEc2NodeClass) -> Option<(&'static str, &'static str)> {
    if !is_true(class, VERSION_RESOLVED) {
        return Some(("is not known", VERSION_RESOLVED));
    }
    let is_refused = is_false(class, SUPPORTED_SKEW);
    is_refused.then_some(("does not go with the control plane", SUPPORTED_SKEW))
}

/// The conditions of Karpenter besides `Ready`.
fn copied(class: &OpenshiftEc2NodeClass, source: &Value, now: Timestamp) -> Vec<Condition> {
    const OWN: [&str; 4] = [READY, TAG_CONFLICT, VERSION_RESOLVED, SUPPORTED_SKEW];
    let conditions = source["conditions"].as_array().into_iter().flatten();
    let copied = conditions.filter_map(|it| {
        let text = |field: &str| it[field].as_str();
        let about = text("type").filter(|about| !about.is_empty() && !OWN.contains(about))?;
        let status = text("status").filter(|it| ["True", "False", "Unknown"].contains(it))?;
        let changed = text("lastTransitionTime").and_then(|it| it.parse().ok());
        let message = text("message").unwrap_or_default();
        Some(Condition {
            type_: about.to_owned(),
            status: status.to_owned(),
            reason: reason(it).to_owned(),
            message: message.chars().take(LONGEST_MESSAGE).collect(),
            observed_generation: class.metadata.generation,
            last_transition_time: Time(changed.unwrap_or(now)),
        })
    });
    let mut conditions: Vec<Condition> = copied.take(MOST_CONDITIONS).collect();
    conditions.sort_by(|one, other| one.type_.cmp(&other.type_));
    conditions.dedup_by(|one, other| one.type_ == other.type_);
    conditions
}

/// The reason of a condition, which must not be empty.
fn reason(condition: &Value) -> &str {
    let reason = condition["reason"].as_str();
    reason.filter(|it| !it.is_empty()).unwrap_or("AsReported")
}

/// The items of a list that have the form of the API.
fn list<T: DeserializeOwned + Serialize>(
    items: &Value,
    convert: impl Fn(&Value) -> Value,
) -> Vec<Value> {
    let items = items.as_array().into_iter().flatten();
    let converted = items.filter_map(|it| serde_json::from_value::<T>(convert(it)).ok());
    converted.take(MOST).map(|it| json!(it)).collect()
}

/// A reservation with the names that the API has for its values.
fn reservation(item: &Value) -> Value {
    let mut item = item.clone();
    for (field, names) in [
        (
            "instanceMatchCriteria",
            [("open", "Open"), ("targeted", "Targeted")],
        ),
        (
            "reservationType",
            [("default", "Default"), ("capacity-block", "CapacityBlock")],
        ),
        ("state", [("active", "Active"), ("expiring", "Expiring")]),
    ] {
        let mut names = names.into_iter();
        if let Some((_, name)) = names.find(|(name, _)| item[field] == *name) {
            item[field] = json!(name);
        }
    }
    item
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::karpenter_operator::fixtures;

    fn class(is_resolved: bool) -> OpenshiftEc2NodeClass {
        let mut class = fixtures::class("a", &json!({}));
        let status = if is_resolved { "True" } else { "False" };
        let status = json!({ "conditions": [{
            "type": VERSION_RESOLVED, "status": status, "reason": "r", "message": "",
            "lastTransitionTime": "2030-01-01T00:00:00Z",
        }] });
        class.status = serde_json::from_value(status).unwrap();
        class
    }

    fn condition(about: &str, status: &str, reason: &str) -> Value {
        json!({
            "type": about, "status": status, "reason": reason, "message": format!("{about} {status}"),
            "lastTransitionTime": "2030-01-02T00:00:00Z",
        })
    }

    fn observed(status: Option<&Value>) -> Observed<'_> {
        Observed {
            status,
            conflicts: &[],
            waits: None,
        }
    }

    fn found(status: &Value) -> Vec<(String, String, String)> {
        let conditions = status["conditions"].as_array().unwrap().iter();
        let text = |it: &Value, field: &str| it[field].as_str().unwrap().to_owned();
        conditions
            .map(|it| (text(it, "type"), text(it, "status"), text(it, "reason")))
            .collect()
    }

    #[test]
    fn a_class_is_ready_once_its_version_is_known_and_karpenter_agrees() {
        let waits = Waits {
            reason: "TooManyClasses",
            message: "m".to_owned(),
        };
        let yes = json!({ "conditions": [condition(READY, "True", "Ready")] });
        let no = json!({ "conditions": [condition(READY, "Unknown", "")] });
        for (is_resolved, source, waits, expected) in [
            (true, Some(&yes), None, ("True", "Ready")),
            (true, Some(&no), None, ("False", "AsReported")),
            (true, None, None, ("False", "WaitingForKarpenter")),
            (false, Some(&yes), None, ("False", "VersionNotResolved")),
            (true, Some(&yes), Some(&waits), ("False", "TooManyClasses")),
        ] {
            let observed = Observed {
                waits,
                ..observed(source)
            };
            let status = status(&class(is_resolved), observed, fixtures::now());
            let expected = (
                READY.to_owned(),
                expected.0.to_owned(),
                expected.1.to_owned(),
            );
            assert_eq!(found(&status), [expected]);
        }
    }

    /// Nodes keep the release that they have: the class does not say that it has what was requested.
    #[test]
    fn a_class_is_not_ready_while_its_version_is_refused() {
        let mut class = class(true);
        let refused = serde_json::from_value(condition(SUPPORTED_SKEW, "False", "r")).unwrap();
        class.status.as_mut().unwrap().conditions.push(refused);
        let source = json!({ "conditions": [condition(READY, "True", "Ready")] });
        let written = status(&class, observed(Some(&source)), fixtures::now());
        let expected = [READY, "False", "VersionNotResolved"].map(str::to_owned);
        let [about, status, reason] = expected;
        assert_eq!(found(&written), [(about, status, reason)]);
        let message = written["conditions"][0]["message"].as_str().unwrap();
        assert!(message.contains(SUPPORTED_SKEW), "{message}");
    }

    #[test]
    fn other_conditions_are_copied_and_own_ones_are_not() {
        let source = json!({ "conditions": [
            condition("SubnetsReady", "False", "SubnetsNotFound"),
            condition("AMIsReady", "True", ""),
            condition("AMIsReady", "True", "twice"),
            condition(VERSION_RESOLVED, "True", "forged"),
            condition("Odd", "Perhaps", "r"),
            "nothing",
        ] });
        let written = status(&class(true), observed(Some(&source)), fixtures::now());
        let types: Vec<_> = found(&written).into_iter().map(|it| (it.0, it.2)).collect();
        let expected = [
            ("AMIsReady", "AsReported"),
            ("SubnetsReady", "SubnetsNotFound"),
            (READY, "WaitingForKarpenter"),
        ];
        assert_eq!(
            types,
            expected.map(|(about, reason)| (about.to_owned(), reason.to_owned()))
        );
        assert_eq!(
            written["conditions"][0]["lastTransitionTime"],
            "2030-01-02T00:00:00Z"
        );
    }

    #[test]
    fn conflicts_of_tags_are_named() {
        let conflicts = ["team".to_owned()];
        let observed = Observed {
            conflicts: &conflicts,
            ..observed(None)
        };
        let written = status(&class(true), observed, fixtures::now());
        let conflict = &written["conditions"][1];
        assert_eq!(
            (&conflict["type"], &conflict["status"]),
            (&json!(TAG_CONFLICT), &json!("True"))
        );
        assert!(
            conflict["message"]
                .as_str()
                .unwrap()
                .contains("are used: team.")
        );
    }

    #[test]
    fn what_karpenter_has_found_is_mirrored() {
        let source = json!({
            "subnets": [{ "id": "subnet-1", "zone": "us-east-1a", "zoneID": "use1-az1" }, { "id": 1 }],
            "securityGroups": [],
            "capacityReservations": [{
                "id": "cr-1", "availabilityZone": "us-east-1a", "instanceMatchCriteria": "targeted",
                "instanceType": "m6a.large", "ownerID": "123456789012", "reservationType": "capacity-block",
                "state": "active", "endTime": "2030-02-01T00:00:00Z",
            }],
        });
        let written = status(&class(true), observed(Some(&source)), fixtures::now());
        assert_eq!(
            written["subnets"],
            json!([{ "id": "subnet-1", "zone": "us-east-1a", "zoneID": "use1-az1" }])
        );
        assert_eq!(written["securityGroups"], Value::Null);
        let reservation = &written["capacityReservations"][0];
        for (field, expected) in [
            ("instanceMatchCriteria", "Targeted"),
            ("reservationType", "CapacityBlock"),
            ("state", "Active"),
            ("endTime", "2030-02-01T00:00:00Z"),
        ] {
            assert_eq!(reservation[field], expected, "{field}");
        }
    }
}
