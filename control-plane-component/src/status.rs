//! The status of a `ControlPlaneComponent`, from the live workload.

use api::hypershift::v1beta1::ControlPlaneComponentStatus;
use api::hypershift::v1beta1::control_plane_component::ComponentResource;
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde_json::Value;

/// Condition: whether the component is available.
pub const AVAILABLE: &str = "Available";
/// Condition: whether all replicas run the desired version.
pub const ROLLOUT_COMPLETE: &str = "RolloutComplete";

/// The observed state of a component.
#[derive(Debug, Clone)]
pub struct Observation<'a> {
    /// The component.
    pub name: &'a str,
    /// Its live workload.
    pub workload: Option<&'a Value>,
    /// Whether the live workload is the desired one.
    pub is_current: bool,
    /// Dependencies that are not rolled out yet.
    pub waiting_for: &'a [&'static str],
    /// What its operands lack.
    pub operands: &'a [String],
    /// Why reconciling it failed.
    pub error: Option<String>,
}

/// A condition without its times.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Evaluation {
    is_met: bool,
    reason: &'static str,
    message: String,
}

/// Returns the status of a component. Conditions with unchanged status keep their transition time.
pub fn status(
    observation: &Observation<'_>,
    resources: Vec<ComponentResource>,
    version: &str,
    generation: Option<i64>,
    before: &ControlPlaneComponentStatus,
    now: &Time,
) -> ControlPlaneComponentStatus {
    let complete = rollout(observation);
    let kept = before.version.clone();
    ControlPlaneComponentStatus {
        version: if complete.is_met {
            Some(version.to_owned())
        } else {
            kept
        },
        observed_generation: generation,
        resources,
        conditions: [
            (AVAILABLE, available(observation)),
            (ROLLOUT_COMPLETE, complete),
        ]
        .into_iter()
        .map(|(type_, evaluation)| evaluation.condition(type_, generation, before, now))
        .collect(),
    }
}

/// Whether a condition of a type is true.
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    conditions
        .iter()
        .any(|condition| condition.type_ == type_ && condition.status == "True")
}

// === impl Evaluation ===

impl Evaluation {
    fn yes(message: impl Into<String>) -> Self {
        Self {
            is_met: true,
            reason: "AsExpected",
            message: message.into(),
        }
    }

    fn no(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            is_met: false,
            reason,
            message: message.into(),
        }
    }

    fn condition(
        self,
        type_: &str,
        generation: Option<i64>,
        before: &ControlPlaneComponentStatus,
        now: &Time,
    ) -> Condition {
        let status = if self.is_met { "True" } else { "False" };
        let before = before
            .conditions
            .iter()
            .find(|condition| condition.type_ == type_ && condition.status == status);
        Condition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: self.reason.to_owned(),
            message: self.message,
            observed_generation: generation,
            last_transition_time: before
                .map_or_else(|| now.clone(), |before| before.last_transition_time.clone()),
        }
    }
}

fn available(observation: &Observation<'_>) -> Evaluation {
    let Some(workload) = observation.workload else {
        return Evaluation::no(
            "NotFound",
            format!(
                "Waiting for the workload of {} to be created",
                observation.name
            ),
        );
    };
    match workload["kind"].as_str() {
        Some("StatefulSet") => stateful_set_available(&read(workload), observation.name),
        Some("Job") => job_available(&read(workload), observation.name),
        Some("CronJob") => Evaluation::yes(format!("CronJob {} exists", observation.name)),
        _ => deployment_available(&read(workload), observation.name),
    }
}

fn read<K: serde::de::DeserializeOwned + Default>(object: &Value) -> K {
    K::deserialize(object).unwrap_or_default()
}

fn deployment_available(deployment: &Deployment, name: &str) -> Evaluation {
    let status = deployment.status.as_ref();
    let mut conditions = status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    let available = conditions.find(|condition| condition.type_ == AVAILABLE);
    let reason = match available {
        None => "NotFound",
        Some(condition) if condition.status == "True" => {
            return Evaluation::yes(format!("Deployment {name} is available"));
        }
        Some(_) => "WaitingForAvailable",
    };
    Evaluation::no(reason, waiting_for_deployment(deployment, name))
}

/// Returns the condition message of a Deployment that is not available yet.
pub fn waiting_for_deployment(deployment: &Deployment, name: &str) -> String {
    let spec = deployment.spec.as_ref();
    let desired = spec.and_then(|spec| spec.replicas).unwrap_or(1);
    let status = deployment.status.as_ref();
    let available = status.and_then(|status| status.available_replicas);
    let available = available.unwrap_or(0);
    format!("Waiting for Deployment {name} to become available ({available}/{desired})")
}

fn stateful_set_available(set: &StatefulSet, name: &str) -> Evaluation {
    let desired = set
        .spec
        .as_ref()
        .and_then(|spec| spec.replicas)
        .unwrap_or(1);
    let available = set
        .status
        .as_ref()
        .and_then(|status| status.available_replicas)
        .unwrap_or(0);
    if desired == 0 || available > 0 {
        return Evaluation::yes(format!(
            "StatefulSet {name} is available ({available}/{desired})"
        ));
    }
    Evaluation::no(
        "WaitingForAvailable",
        format!("Waiting for StatefulSet {name} to become available (0/{desired})"),
    )
}

fn job_available(job: &Job, name: &str) -> Evaluation {
    let status = job.status.clone().unwrap_or_default();
    if is_job_complete(job) {
        return Evaluation {
            reason: "JobComplete",
            ..Evaluation::yes(format!("Job {name} is complete"))
        };
    }
    if status.active.unwrap_or(0) > 0 {
        return Evaluation {
            reason: "JobActive",
            ..Evaluation::yes(format!("Job {name} is running"))
        };
    }
    Evaluation::no("Unknown", format!("Waiting for Job {name} to start"))
}

fn is_job_complete(job: &Job) -> bool {
    let conditions = job
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    conditions
        .into_iter()
        .any(|condition| condition.type_ == "Complete" && condition.status == "True")
}

/// Whether the component, and then its operands are rolled out.
fn rollout(observation: &Observation<'_>) -> Evaluation {
    let own = own_rollout(observation);
    if !own.is_met || observation.operands.is_empty() {
        return own;
    }
    let lacking = observation.operands.join("; ");
    Evaluation::no(
        "WaitingForOperands",
        format!("Waiting for operands: {lacking}"),
    )
}

fn own_rollout(observation: &Observation<'_>) -> Evaluation {
    if let Some(error) = &observation.error {
        return Evaluation::no("ReconciliationError", error.clone());
    }
    if !observation.waiting_for.is_empty() {
        let names = observation.waiting_for.join(", ");
        return Evaluation::no(
            "WaitingForDependencies",
            format!("Waiting for rollout of dependencies: {names}"),
        );
    }
    let waiting = |detail: String| Evaluation::no("WaitingForRolloutComplete", detail);
    let Some(workload) = observation
        .workload
        .filter(|workload| observation.is_current || workload["kind"] == "Job")
    else {
        return waiting(format!(
            "Waiting for the workload of {} to be updated",
            observation.name
        ));
    };
    match workload["kind"].as_str() {
        Some("StatefulSet") => stateful_set_rollout(&read(workload)),
        Some("Job") => {
            let job: Job = read(workload);
            if is_job_complete(&job) {
                return Evaluation::yes(String::new());
            }
            Evaluation::no(
                "Unknown",
                format!("Waiting for Job {} to complete", observation.name),
            )
        }
        Some("CronJob") => Evaluation::yes(String::new()),
        _ => deployment_rollout(&read(workload)),
    }
}

fn deployment_rollout(deployment: &Deployment) -> Evaluation {
    replicas(lacking(deployment))
}

/// Returns what a Deployment lacks; `None` once it is rolled out.
pub(crate) fn lacking(deployment: &Deployment) -> Option<String> {
    let desired = deployment
        .spec
        .as_ref()
        .and_then(|spec| spec.replicas)
        .unwrap_or(1);
    let status = deployment.status.clone().unwrap_or_default();
    let counts = [
        ("created", status.replicas),
        ("updated", status.updated_replicas),
        ("ready", status.ready_replicas),
        ("available", status.available_replicas),
    ];
    let observed = status.observed_generation >= deployment.metadata.generation;
    let none_unavailable = status.unavailable_replicas.unwrap_or(0) == 0;
    lacking_replicas(desired, observed && none_unavailable, counts)
}

fn stateful_set_rollout(set: &StatefulSet) -> Evaluation {
    let desired = set
        .spec
        .as_ref()
        .and_then(|spec| spec.replicas)
        .unwrap_or(1);
    let status = set.status.clone().unwrap_or_default();
    let counts = [
        ("created", Some(status.replicas)),
        ("updated", status.updated_replicas),
        ("ready", status.ready_replicas),
        ("available", status.available_replicas),
    ];
    let observed = status.observed_generation >= set.metadata.generation;
    replicas(lacking_replicas(desired, observed, counts))
}

fn replicas(lacking: Option<String>) -> Evaluation {
    match lacking {
        None => Evaluation::yes(String::new()),
        Some(lacking) => Evaluation::no(
            "WaitingForRolloutComplete",
            format!("Waiting for rollout: {lacking}"),
        ),
    }
}

fn lacking_replicas(
    desired: i32,
    is_observed: bool,
    counts: [(&str, Option<i32>); 4],
) -> Option<String> {
    let mismatch = counts
        .into_iter()
        .find(|(_, count)| count.unwrap_or(0) != desired);
    match mismatch {
        None if is_observed => None,
        None => Some("the new generation is not observed yet".to_owned()),
        Some((what, count)) => Some(format!("{}/{desired} replicas {what}", count.unwrap_or(0))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn conditions(workload: Option<&Value>) -> Vec<Condition> {
        let observation = Observation {
            name: "capi-provider",
            workload,
            is_current: true,
            waiting_for: &[],
            operands: &[],
            error: None,
        };
        conditions_of(&observation)
    }

    fn conditions_of(observation: &Observation<'_>) -> Vec<Condition> {
        let before = ControlPlaneComponentStatus::default();
        let now = Time(jiff::Timestamp::UNIX_EPOCH);
        status(observation, Vec::new(), "4.20.0", Some(1), &before, &now).conditions
    }

    /// Operands are compared with the release only once the component runs it.
    #[test]
    fn operands_are_waited_for_after_the_component() {
        let deployment = |ready: i32| {
            json!({
                "kind": "Deployment", "spec": { "replicas": 1 },
                "status": {
                    "replicas": 1, "updatedReplicas": 1, "readyReplicas": ready, "availableReplicas": 1,
                },
            })
        };
        let lacking = [
            "Deployment a does not exist",
            "Deployment b: 0/1 replicas ready",
        ];
        let lacking = lacking.map(str::to_owned);
        for (case, ready, operands, reason, message) in [
            ("complete", 1, &lacking[..0], "AsExpected", ""),
            (
                "without operands",
                1,
                &lacking[..],
                "WaitingForOperands",
                "Waiting for operands: Deployment a does not exist; Deployment b: 0/1 replicas ready",
            ),
            (
                "rolling out",
                0,
                &lacking[..],
                "WaitingForRolloutComplete",
                "Waiting for rollout: 0/1 replicas ready",
            ),
        ] {
            let complete = conditions_of(&Observation {
                name: "cluster-network-operator",
                workload: Some(&deployment(ready)),
                is_current: true,
                waiting_for: &[],
                operands,
                error: None,
            })
            .swap_remove(1);
            assert_eq!(
                (complete.reason.as_str(), complete.message.as_str()),
                (reason, message),
                "{case}"
            );
        }
    }

    /// Check F03: a workload that has not started yet is reported as such, and not as an error.
    #[test]
    fn unavailable_workloads_are_waited_for_with_replicas() {
        let message = "Deployment does not have minimum availability.";
        let condition = json!({ "type": "Available", "status": "False", "message": message });
        let deployment = |status: Value| json!({ "kind": "Deployment", "spec": { "replicas": 2 }, "status": status });
        let created = deployment(json!({}));
        let started = deployment(json!({ "availableReplicas": 1, "conditions": [condition] }));
        let set = json!({ "kind": "StatefulSet", "spec": { "replicas": 3 } });
        for (workload, reason, expected) in [
            (
                None,
                "NotFound",
                "Waiting for the workload of capi-provider to be created",
            ),
            (
                Some(&created),
                "NotFound",
                "Waiting for Deployment capi-provider to become available (0/2)",
            ),
            (
                Some(&started),
                "WaitingForAvailable",
                "Waiting for Deployment capi-provider to become available (1/2)",
            ),
            (
                Some(&set),
                "WaitingForAvailable",
                "Waiting for StatefulSet capi-provider to become available (0/3)",
            ),
        ] {
            let available = conditions(workload).swap_remove(0);
            assert_eq!(available.type_, AVAILABLE);
            assert_eq!(available.status, "False");
            assert_eq!(
                (available.reason.as_str(), available.message.as_str()),
                (reason, expected)
            );
        }
    }
}
