//! The condition that reports the owner of a HostedCluster: pure.

use api::annotations::MIGRATION_FAILED;
use jiff::Timestamp;
use kube::api::DynamicObject;
use ownership::{Decision, Evaluation, Owner, Scope, decide};
use serde_json::{Value, json};

use crate::cluster_ref::{protocol, resource};

/// The log message for an invalid state. Alerts match it.
pub(crate) const INVALID_STATE: &str = "Invalid annotation state detected";
/// The condition's type.
const TYPE: &str = "PrivateCAPITypes";

/// The desired condition.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    status: &'static str,
    reason: &'static str,
    message: String,
}

/// The existing condition.
pub(crate) fn find(cluster: &DynamicObject) -> Option<&Value> {
    let conditions = cluster.data.pointer("/status/conditions")?.as_array()?;
    conditions
        .iter()
        .find(|condition| condition["type"] == TYPE)
}

/// The condition that this operator has to write; `None` if it is up to date.
pub(crate) fn due(
    scope: Scope,
    cluster: &DynamicObject,
    evaluation: Evaluation,
) -> Option<Condition> {
    match decide(scope, &evaluation) {
        Decision::Skip | Decision::Annotate(_) => return None,
        Decision::Reconcile | Decision::ReportInvalid => {}
    }
    let found = find(cluster);
    let failure = protocol(&cluster.metadata).failed;
    let desired = Condition::of(scope, evaluation, failure.as_deref(), found.is_some())?;
    let is_published = found.is_some_and(|found| desired.is(found));
    (!is_published).then_some(desired)
}

/// Drops all fields of a cluster that are not used, to save memory.
pub(crate) fn trim(mut cluster: DynamicObject) -> DynamicObject {
    cluster.metadata.managed_fields = None;
    let found = find(&cluster).cloned();
    cluster.data = json!({ "status": { "conditions": Vec::from_iter(found) } });
    cluster
}

// === impl Condition ===

impl Condition {
    /// The condition to publish; `exists` is whether there is one already, `failure` the reason of a failed migration.
    pub(crate) fn of(
        scope: Scope,
        evaluation: Evaluation,
        failure: Option<&str>,
        exists: bool,
    ) -> Option<Self> {
        if let Some(invalid) = evaluation.invalid {
            return Some(Self {
                status: status(evaluation.owner),
                reason: invalid.reason(),
                message: format!("{INVALID_STATE}: {invalid}"),
            });
        }
        // With a single operator for all clusters there is nothing to distinguish.
        if scope == Scope::All && !exists {
            return None;
        }
        let (reason, message) = match (evaluation.owner, failure) {
            (Owner::New, _) => (
                "PrivateTypes",
                "uses private types; reconciled by operator".to_owned(),
            ),
            (Owner::Legacy, None) => (
                "LegacyTypes",
                "uses standard types; reconciled by operator-legacy until it is migrated"
                    .to_owned(),
            ),
            (Owner::Legacy, Some(failure)) => (
                "MigrationFailed",
                format!(
                    "uses standard types; reconciled by operator-legacy because its migration failed ({failure}): remove annotation {MIGRATION_FAILED} to retry"
                ),
            ),
            // The migration reports its own progress, and a cluster without an owner is in an invalid state.
            (Owner::Migration | Owner::Undecided, _) => return None,
        };
        Some(Self {
            status: status(evaluation.owner),
            reason,
            message,
        })
    }

    /// Whether the found condition is up to date.
    pub(crate) fn is(&self, found: &Value) -> bool {
        found["status"] == self.status
            && found["reason"] == self.reason
            && found["message"] == self.message.as_str()
    }

    /// The object to apply as status.
    pub(crate) fn object(&self, found: Option<&Value>) -> Value {
        let kept = found
            .filter(|found| found["status"] == self.status)
            .and_then(|found| found["lastTransitionTime"].as_str());
        let since = kept.map_or_else(|| format!("{:.0}", Timestamp::now()), str::to_owned);
        let resource = resource();
        json!({
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "status": {
                "conditions": [{
                    "type": TYPE,
                    "status": self.status,
                    "reason": self.reason,
                    "message": self.message,
                    "lastTransitionTime": since,
                }],
            },
        })
    }
}

fn status(owner: Owner) -> &'static str {
    match owner {
        Owner::New => "True",
        Owner::Legacy => "False",
        Owner::Migration | Owner::Undecided => "Unknown",
    }
}

#[cfg(test)]
mod tests {
    use ownership::Invalid;

    use super::*;

    fn evaluation(owner: Owner, invalid: Option<Invalid>) -> Evaluation {
        Evaluation {
            owner,
            annotation: None,
            invalid,
        }
    }

    #[test]
    fn the_condition_reports_the_owner() {
        let both = Some(Invalid::ObjectsInBothGroups);
        let table = [
            (
                Scope::Private,
                Owner::New,
                None,
                Some(("True", "PrivateTypes")),
            ),
            (
                Scope::Legacy,
                Owner::Legacy,
                None,
                Some(("False", "LegacyTypes")),
            ),
            (Scope::Private, Owner::Migration, None, None),
            (
                Scope::Private,
                Owner::Undecided,
                both,
                Some(("Unknown", "ObjectsInBothGroups")),
            ),
            (Scope::All, Owner::Legacy, None, None),
            (
                Scope::All,
                Owner::Undecided,
                both,
                Some(("Unknown", "ObjectsInBothGroups")),
            ),
        ];
        for (scope, owner, invalid, expected) in table {
            let found = Condition::of(scope, evaluation(owner, invalid), None, false);
            let found = found.map(|condition| (condition.status, condition.reason));
            assert_eq!(found, expected, "{scope:?} {owner:?} {invalid:?}");
        }
    }

    #[test]
    fn a_failed_migration_is_reported_with_a_fix() {
        let legacy = evaluation(Owner::Legacy, None);
        let failure = Some("quiesce-timeout");
        let condition = Condition::of(Scope::Legacy, legacy, failure, true).unwrap();
        assert_eq!(condition.reason, "MigrationFailed");
        assert!(condition.message.contains("quiesce-timeout"));
        assert!(condition.message.contains(MIGRATION_FAILED));
    }

    #[test]
    fn the_transition_time_changes_with_the_status_only() {
        let condition =
            Condition::of(Scope::Private, evaluation(Owner::New, None), None, false).unwrap();
        let time = |object: Value| {
            object["status"]["conditions"][0]["lastTransitionTime"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        let old = "2020-01-01T00:00:00Z";
        let same = json!({ "status": "True", "reason": "Other", "lastTransitionTime": old });
        let other = json!({ "status": "False", "lastTransitionTime": old });
        assert!(!condition.is(&same));
        assert_eq!(time(condition.object(Some(&same))), old);
        assert_ne!(time(condition.object(Some(&other))), old);
        let new = time(condition.object(None));
        assert!(
            new.parse::<Timestamp>().is_ok() && !new.contains('.'),
            "{new}"
        );
    }
}
