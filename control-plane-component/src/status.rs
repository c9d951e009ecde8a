//! How far a component is: the status of its `ControlPlaneComponent`, from what is live.

use api::hypershift::v1beta1::ControlPlaneComponentStatus;
use api::hypershift::v1beta1::control_plane_component::ComponentResource;
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde_json::Value;

/// Whether it works.
pub const AVAILABLE: &str = "Available";
/// Whether all of it runs in the desired version.
pub const ROLLOUT_COMPLETE: &str = "RolloutComplete";

/// What is found of a component.
#[derive(Debug, Clone)]
pub struct Observation<'a> {
    /// The component.
    pub name: &'a str,
    /// Its workload, as it is.
    pub workload: Option<&'a Value>,
    /// Whether the live workload is the desired one.
    pub is_current: bool,
    /// What it waits for.
    pub waits_for: &'a [&'static str],
    /// Why it could not be reconciled.
    pub problem: Option<String>,
}

/// Whether a condition is true, with its reason and message.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Verdict {
    holds: bool,
    reason: &'static str,
    message: String,
}

/// The status of a component. Conditions that have not changed keep their time.
pub fn status(
    seen: &Observation<'_>,
    resources: Vec<ComponentResource>,
    version: &str,
    generation: Option<i64>,
    before: &ControlPlaneComponentStatus,
    now: &Time,
) -> ControlPlaneComponentStatus {
    let complete = rollout(seen);
    let kept = before.version.clone();
    ControlPlaneComponentStatus {
        version: if complete.holds {
            Some(version.to_owned())
        } else {
            kept
        },
        observed_generation: generation,
        resources,
        conditions: [(AVAILABLE, available(seen)), (ROLLOUT_COMPLETE, complete)]
            .into_iter()
            .map(|(type_, verdict)| verdict.condition(type_, generation, before, now))
            .collect(),
    }
}

/// Whether a condition of a type is true.
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    conditions
        .iter()
        .any(|condition| condition.type_ == type_ && condition.status == "True")
}

// === impl Verdict ===

impl Verdict {
    fn yes(message: impl Into<String>) -> Self {
        Self {
            holds: true,
            reason: "AsExpected",
            message: message.into(),
        }
    }

    fn no(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            holds: false,
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
        let status = if self.holds { "True" } else { "False" };
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

fn available(seen: &Observation<'_>) -> Verdict {
    let Some(workload) = seen.workload else {
        return Verdict::no(
            "NotFound",
            format!("the workload of {} is not there yet", seen.name),
        );
    };
    match workload["kind"].as_str() {
        Some("StatefulSet") => stateful_set_available(&read(workload), seen.name),
        Some("Job") => job_available(&read(workload), seen.name),
        Some("CronJob") => Verdict::yes(format!("CronJob {} is there", seen.name)),
        _ => deployment_available(&read(workload), seen.name),
    }
}

fn read<K: serde::de::DeserializeOwned + Default>(object: &Value) -> K {
    K::deserialize(object).unwrap_or_default()
}

fn deployment_available(deployment: &Deployment, name: &str) -> Verdict {
    let status = deployment.status.as_ref();
    let mut conditions = status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    match conditions.find(|condition| condition.type_ == AVAILABLE) {
        None => Verdict::no(
            "NotFound",
            format!("Deployment {name} does not tell whether it is available"),
        ),
        Some(found) if found.status == "True" => {
            Verdict::yes(format!("Deployment {name} is available"))
        }
        Some(found) => Verdict::no(
            "WaitingForAvailable",
            format!(
                "Deployment {name} is not available: {}",
                found.message.as_deref().unwrap_or("no reason is given")
            ),
        ),
    }
}

fn stateful_set_available(set: &StatefulSet, name: &str) -> Verdict {
    let wanted = set
        .spec
        .as_ref()
        .and_then(|spec| spec.replicas)
        .unwrap_or(1);
    let available = set
        .status
        .as_ref()
        .and_then(|status| status.available_replicas)
        .unwrap_or(0);
    if wanted == 0 || available > 0 {
        return Verdict::yes(format!(
            "{available} of {wanted} replicas of {name} are available"
        ));
    }
    Verdict::no(
        "WaitingForAvailable",
        format!("no replica of StatefulSet {name} is available"),
    )
}

fn job_available(job: &Job, name: &str) -> Verdict {
    let status = job.status.clone().unwrap_or_default();
    if is_job_complete(job) {
        return Verdict {
            reason: "JobComplete",
            ..Verdict::yes(format!("Job {name} is complete"))
        };
    }
    if status.active.unwrap_or(0) > 0 {
        return Verdict {
            reason: "JobActive",
            ..Verdict::yes(format!("Job {name} runs"))
        };
    }
    Verdict::no(
        "Unknown",
        format!("Job {name} neither runs nor is complete"),
    )
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

fn rollout(seen: &Observation<'_>) -> Verdict {
    if let Some(problem) = &seen.problem {
        return Verdict::no("ReconciliationError", problem.clone());
    }
    if !seen.waits_for.is_empty() {
        let names = seen.waits_for.join(", ");
        return Verdict::no(
            "WaitingForDependencies",
            format!("{names}: not yet available and rolled out in this version"),
        );
    }
    let waiting = |detail: String| Verdict::no("WaitingForRolloutComplete", detail);
    let Some(workload) = seen
        .workload
        .filter(|workload| seen.is_current || workload["kind"] == "Job")
    else {
        return waiting(format!(
            "the workload of {} has just been written",
            seen.name
        ));
    };
    match workload["kind"].as_str() {
        Some("StatefulSet") => stateful_set_rollout(&read(workload)),
        Some("Job") => {
            let job: Job = read(workload);
            if is_job_complete(&job) {
                return Verdict::yes(String::new());
            }
            Verdict::no("Unknown", format!("Job {} is not complete", seen.name))
        }
        Some("CronJob") => Verdict::yes(String::new()),
        _ => deployment_rollout(&read(workload)),
    }
}

fn deployment_rollout(deployment: &Deployment) -> Verdict {
    let wanted = deployment
        .spec
        .as_ref()
        .and_then(|spec| spec.replicas)
        .unwrap_or(1);
    let status = deployment.status.clone().unwrap_or_default();
    let counts = [
        ("exist", status.replicas),
        ("are updated", status.updated_replicas),
        ("are ready", status.ready_replicas),
        ("are available", status.available_replicas),
    ];
    let observed = status.observed_generation >= deployment.metadata.generation;
    let none_left = status.unavailable_replicas.unwrap_or(0) == 0;
    replicas(wanted, observed && none_left, counts)
}

fn stateful_set_rollout(set: &StatefulSet) -> Verdict {
    let wanted = set
        .spec
        .as_ref()
        .and_then(|spec| spec.replicas)
        .unwrap_or(1);
    let status = set.status.clone().unwrap_or_default();
    let counts = [
        ("exist", Some(status.replicas)),
        ("are updated", status.updated_replicas),
        ("are ready", status.ready_replicas),
        ("are available", status.available_replicas),
    ];
    replicas(
        wanted,
        status.observed_generation >= set.metadata.generation,
        counts,
    )
}

fn replicas(wanted: i32, settled: bool, counts: [(&str, Option<i32>); 4]) -> Verdict {
    let short = counts
        .into_iter()
        .find(|(_, count)| count.unwrap_or(0) != wanted);
    match short {
        None if settled => Verdict::yes(String::new()),
        None => Verdict::no(
            "WaitingForRolloutComplete",
            "the change is being rolled out".to_owned(),
        ),
        Some((what, count)) => Verdict::no(
            "WaitingForRolloutComplete",
            format!("{} of {wanted} replicas {what}", count.unwrap_or(0)),
        ),
    }
}
