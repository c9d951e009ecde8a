//! The condition that tells who owns a hosted cluster: pure.

use api::annotations::MIGRATION_FAILED;
use jiff::Timestamp;
use kube::api::DynamicObject;
use ownership::{Evaluation, Owner, Scope};
use serde_json::{Value, json};

use super::{INVALID_STATE, resource};

/// The condition's type.
const TYPE: &str = "PrivateCAPITypes";

/// The condition as it should be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    status: &'static str,
    reason: &'static str,
    message: String,
}

/// The condition as it is.
pub(super) fn find(cluster: &DynamicObject) -> Option<&Value> {
    let conditions = cluster.data.pointer("/status/conditions")?.as_array()?;
    conditions
        .iter()
        .find(|condition| condition["type"] == TYPE)
}

// === impl Condition ===

impl Condition {
    /// What is to be told; `told` is whether something is told already, `failure` the reason of a failed migration.
    pub(super) fn of(
        scope: Scope,
        verdict: Evaluation,
        failure: Option<&str>,
        told: bool,
    ) -> Option<Self> {
        if let Some(invalid) = verdict.invalid {
            return Some(Self {
                status: status(verdict.owner),
                reason: invalid.reason(),
                message: format!("{INVALID_STATE}: {invalid}"),
            });
        }
        // With one operator for everything there is nothing to tell apart.
        if scope == Scope::All && !told {
            return None;
        }
        let (reason, message) = match (verdict.owner, failure) {
            (Owner::New, _) => (
                "PrivateTypes",
                "private types; reconciled by operator".to_owned(),
            ),
            (Owner::Legacy, None) => (
                "LegacyTypes",
                "standard types; reconciled by operator-legacy until it is migrated".to_owned(),
            ),
            (Owner::Legacy, Some(failure)) => (
                "MigrationFailed",
                format!(
                    "standard types; reconciled by operator-legacy, since its migration failed ({failure}): remove the \
                     annotation {MIGRATION_FAILED} to have it tried again"
                ),
            ),
            // The migration tells of its own progress, and a cluster that is nobody's is in an invalid state.
            (Owner::Migration | Owner::Undecided, _) => return None,
        };
        Some(Self {
            status: status(verdict.owner),
            reason,
            message,
        })
    }

    /// Whether the found one says the same.
    pub(super) fn is(&self, found: &Value) -> bool {
        found["status"] == self.status
            && found["reason"] == self.reason
            && found["message"] == self.message.as_str()
    }

    /// The object to apply as status.
    pub(super) fn object(&self, found: Option<&Value>) -> Value {
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

    fn verdict(owner: Owner, invalid: Option<Invalid>) -> Evaluation {
        Evaluation {
            owner,
            annotation: None,
            invalid,
        }
    }

    #[test]
    fn the_condition_tells_who_owns_the_cluster() {
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
            let found = Condition::of(scope, verdict(owner, invalid), None, false);
            let found = found.map(|condition| (condition.status, condition.reason));
            assert_eq!(found, expected, "{scope:?} {owner:?} {invalid:?}");
        }
    }

    #[test]
    fn a_failed_migration_is_told_with_the_way_out() {
        let legacy = verdict(Owner::Legacy, None);
        let failure = Some("quiesce-timeout");
        let condition = Condition::of(Scope::Legacy, legacy, failure, true).unwrap();
        assert_eq!(condition.reason, "MigrationFailed");
        assert!(condition.message.contains("quiesce-timeout"));
        assert!(condition.message.contains(MIGRATION_FAILED));
    }

    #[test]
    fn the_time_changes_with_the_status_only() {
        let condition =
            Condition::of(Scope::Private, verdict(Owner::New, None), None, false).unwrap();
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
