//! How components authenticate to Google Cloud: the settings, and the files that are made from them.

use api::conditions::{ClusterCondition, CommonReason, Status};
use api::hypershift::v1beta1::platform::PlatformType;

use super::conditions::unchanged;
use super::{ConditionUpdate, Outcome};
use crate::platform::infrastructure;

/// The conditions; none on other platforms.
pub(super) fn conditions(outcome: &Outcome<'_>) -> Vec<ConditionUpdate> {
    let platform = &outcome.facts.cluster.spec.platform;
    if platform.type_ != PlatformType::Gcp {
        return Vec::new();
    }
    let has_section = platform.gcp.is_some();
    let problems = infrastructure(platform.type_).credentials(outcome.facts);
    let problems = problems.unwrap_or_default();
    vec![
        identity(has_section, &problems),
        credentials(outcome, has_section && problems.is_empty()),
    ]
}

/// `ValidGCPWorkloadIdentity`.
fn identity(has_section: bool, problems: &[String]) -> ConditionUpdate {
    let about = ClusterCondition::ValidGcpWorkloadIdentity;
    if !has_section {
        let message = "spec.platform.gcp is required on platform GCP: set it";
        return ConditionUpdate::new(about, Status::False, "MissingGCPConfiguration", message);
    }
    if problems.is_empty() {
        return ConditionUpdate::new(about, Status::True, "ValidWIFConfiguration", "");
    }
    let message = problems.join("; ");
    ConditionUpdate::new(about, Status::False, "InvalidWIFConfiguration", message)
}

/// `ValidGCPCredentials`: the Secrets are written if all was applied.
fn credentials(outcome: &Outcome<'_>, is_complete: bool) -> ConditionUpdate {
    let about = ClusterCondition::ValidGcpCredentials;
    if !is_complete {
        let message = "credentials cannot be made: see condition ValidGCPWorkloadIdentity";
        return ConditionUpdate::new(about, Status::False, "CredentialsError", message);
    }
    let is_applied = !outcome.pause.is_paused() && outcome.findings.allow_changes();
    if is_applied && outcome.failures.is_empty() {
        return ConditionUpdate::new(about, Status::True, "WIFReady", "");
    }
    let waiting = || {
        let reason = CommonReason::StatusUnknown.as_str();
        let message = "Waiting for the credentials to be applied";
        ConditionUpdate::new(about, Status::Unknown, reason, message)
    };
    // What was applied before stays. An incomplete setting that is complete now was not applied.
    let before = unchanged(outcome.facts, about);
    let before = before.filter(|it| it.status == Status::True);
    before.unwrap_or_else(waiting)
}

#[cfg(test)]
mod tests {
    use api::group::CapiTypes;
    use serde_json::json;

    use super::*;
    use crate::facts::{Facts, ReleaseIs, fixture};
    use crate::hosted_cluster::validate::{Findings, Gate, validate};
    use crate::pause::Pause;

    fn facts(platform: &str) -> Facts {
        fixture::facts(fixture::hosted_cluster(platform), CapiTypes::Private)
    }

    fn found(
        facts: &Facts,
        findings: &Findings,
        pause: &Pause,
        failures: &[String],
    ) -> Vec<String> {
        let outcome = Outcome {
            facts,
            findings,
            pause,
            failures,
            now: "2030-01-31T12:00:00Z".parse().unwrap(),
        };
        let conditions = conditions(&outcome).into_iter();
        conditions
            .map(|it| format!("{} {} {}", it.about, it.status.as_str(), it.reason))
            .collect()
    }

    /// Findings with which everything is applied.
    fn good(facts: &Facts) -> Findings {
        use crate::hosted_cluster::validate::Finding::Good;
        Findings {
            configuration: Good,
            supported: Good,
            release: Good,
            gate: Gate::Open,
            ..validate(facts)
        }
    }

    #[test]
    fn conditions_follow_settings_and_what_is_applied() {
        type Change = fn(&mut Facts);
        /// Its name, the change, whether it is paused, failures, and what both conditions are.
        type Row<'a> = (&'a str, Change, &'a Pause, &'a [String], &'a str, &'a str);
        let identity = |about: &str| format!("ValidGCPWorkloadIdentity {about}");
        let credentials = |about: &str| format!("ValidGCPCredentials {about}");
        let before = |facts: &mut Facts| {
            let condition = json!({
                "type": "ValidGCPCredentials", "status": "True", "reason": "WIFReady", "message": "",
                "lastTransitionTime": "2030-01-31T11:00:00Z",
            });
            let status = json!({ "conditions": [condition] });
            facts.cluster.status = serde_json::from_value(status).unwrap();
        };
        let failure = ["failed to apply Secret a/b".to_owned()];
        let table: [Row<'_>; 6] = [
            (
                "complete",
                |_| {},
                &Pause::Active,
                &[],
                "True ValidWIFConfiguration",
                "True WIFReady",
            ),
            (
                "a failure",
                |_| {},
                &Pause::Active,
                &failure,
                "True ValidWIFConfiguration",
                "Unknown StatusUnknown",
            ),
            (
                "a failure afterwards",
                before,
                &Pause::Active,
                &failure,
                "True ValidWIFConfiguration",
                "True WIFReady",
            ),
            (
                "paused",
                |_| {},
                &Pause::Indefinite,
                &[],
                "True ValidWIFConfiguration",
                "Unknown StatusUnknown",
            ),
            (
                "incomplete",
                |facts| {
                    let gcp = facts.cluster.spec.platform.gcp.as_mut().unwrap();
                    gcp.workload_identity.pool_id.clear();
                },
                &Pause::Active,
                &[],
                "False InvalidWIFConfiguration",
                "False CredentialsError",
            ),
            (
                "no section",
                |facts| facts.cluster.spec.platform.gcp = None,
                &Pause::Active,
                &[],
                "False MissingGCPConfiguration",
                "False CredentialsError",
            ),
        ];
        for (name, change, pause, failures, of_identity, of_credentials) in table {
            let mut facts = facts("gcp");
            change(&mut facts);
            let found = found(&facts, &good(&facts), pause, failures);
            let expected = [identity(of_identity), credentials(of_credentials)];
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn nothing_is_applied_while_the_cluster_is_invalid() {
        let mut facts = facts("gcp");
        facts.release = ReleaseIs::NoPullSecret;
        let findings = validate(&facts);
        let found = found(&facts, &findings, &Pause::Active, &[]);
        assert_eq!(found[1], "ValidGCPCredentials Unknown StatusUnknown");
    }

    #[test]
    fn other_platforms_have_no_such_conditions() {
        let facts = facts("aws");
        let found = found(&facts, &good(&facts), &Pause::Active, &[]);
        assert!(found.is_empty(), "{found:?}");
    }
}
