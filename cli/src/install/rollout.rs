//! Whether a Deployment is rolled out, and if not, why. Pure.

use std::collections::BTreeSet;

use serde_json::Value;

use super::kind::text;

/// What keeps a Deployment from being available; nothing when it is rolled out.
pub(crate) fn missing(deployment: &Value) -> Option<String> {
    let number = |pointer: &str| {
        deployment
            .pointer(pointer)
            .and_then(Value::as_i64)
            .unwrap_or(0)
    };
    if number("/status/observedGeneration") < number("/metadata/generation") {
        return Some("not seen by its controller yet".to_owned());
    }
    let wanted = number("/spec/replicas");
    let counts = [
        ("/status/updatedReplicas", "made"),
        ("/status/readyReplicas", "ready"),
        ("/status/availableReplicas", "available"),
    ];
    for (pointer, what) in counts {
        let have = number(pointer);
        if have < wanted {
            return Some(format!("{have} of {wanted} pods {what}"));
        }
    }
    let rest = number("/status/replicas") - number("/status/updatedReplicas");
    (rest > 0).then(|| format!("{rest} pods of the release before are still there"))
}

/// Why a Deployment is not rolled out: which pod, which container, the reason, and what was said last.
pub(crate) fn explain(deployment: &Value, pods: &[Value], events: &[Value]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    if pods.is_empty() {
        lines.extend(conditions(deployment, "ReplicaFailure", "True"));
        if lines.is_empty() {
            lines.push("it has no pods".to_owned());
        }
    }
    for pod in pods {
        lines.extend(explain_pod(pod));
    }
    let concerned: BTreeSet<&str> = pods
        .iter()
        .chain([deployment])
        .map(|object| text(object, "/metadata/name"))
        .collect();
    if let Some(event) = last_warning(events, &concerned) {
        lines.push(event);
    }
    lines
}

fn explain_pod(pod: &Value) -> Vec<String> {
    let name = text(pod, "/metadata/name");
    let mut lines = conditions(pod, "PodScheduled", "False");
    for list in ["initContainerStatuses", "containerStatuses"] {
        let statuses = pod["status"][list].as_array();
        lines.extend(statuses.into_iter().flatten().filter_map(explain_container));
    }
    lines
        .into_iter()
        .map(|line| format!("pod {name}: {line}"))
        .collect()
}

/// Conditions of a type that have this status, as text.
fn conditions(object: &Value, kind: &str, status: &str) -> Vec<String> {
    let conditions = object["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .filter(|one| one["type"] == kind && one["status"] == status)
        .map(|one| format!("{}: {}", text(one, "/reason"), text(one, "/message")))
        .collect()
}

fn explain_container(status: &Value) -> Option<String> {
    let name = text(status, "/name");
    let restarts = status["restartCount"].as_i64().unwrap_or(0);
    let waiting = &status["state"]["waiting"];
    if waiting.is_object() {
        let last = &status["lastState"]["terminated"];
        let before = if last.is_object() {
            format!("; it ended {restarts} times, last with {}", end(last))
        } else {
            String::new()
        };
        return Some(format!(
            "container {name} waits: {}{before}",
            reason(waiting)
        ));
    }
    let ended = &status["state"]["terminated"];
    if ended.is_object() && ended["exitCode"] != 0 {
        return Some(format!("container {name} ended with {}", end(ended)));
    }
    let runs = status["state"]["running"].is_object();
    (runs && status["ready"] == false)
        .then(|| format!("container {name} runs and is not ready (restarts: {restarts})"))
}

fn reason(state: &Value) -> String {
    match (text(state, "/reason"), text(state, "/message").trim()) {
        (reason, "") => reason.to_owned(),
        (reason, message) => format!("{reason}: {message}"),
    }
}

fn end(state: &Value) -> String {
    format!("exit code {} ({})", state["exitCode"], reason(state))
}

/// The newest warning about one of these objects.
fn last_warning(events: &[Value], concerned: &BTreeSet<&str>) -> Option<String> {
    let of_them = |event: &&Value| {
        let name = text(event, "/involvedObject/name");
        // A ReplicaSet's name goes on from its Deployment's.
        concerned
            .iter()
            .any(|one| name == *one || name.starts_with(&format!("{one}-")))
    };
    let time = |event: &Value| {
        [
            "/lastTimestamp",
            "/eventTime",
            "/metadata/creationTimestamp",
        ]
        .map(|pointer| text(event, pointer))
        .into_iter()
        .find(|time| !time.is_empty())
        .unwrap_or_default()
        .to_owned()
    };
    let newest = events
        .iter()
        .filter(|event| event["type"] == "Warning")
        .filter(of_them)
        .max_by_key(|event| time(event))?;
    Some(format!(
        "last warning: {} {}: {}: {}",
        text(newest, "/involvedObject/kind"),
        text(newest, "/involvedObject/name"),
        text(newest, "/reason"),
        text(newest, "/message").trim()
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_deployment_is_rolled_out_when_all_its_pods_are_new_and_available() {
        let deployment = |status: Value| json!({"metadata": {"generation": 2}, "spec": {"replicas": 2}, "status": status});
        let table = [
            (json!({}), Some("not seen by its controller yet")),
            (json!({"observedGeneration": 2}), Some("0 of 2 pods made")),
            (
                json!({"observedGeneration": 2, "updatedReplicas": 2, "readyReplicas": 1}),
                Some("1 of 2 pods ready"),
            ),
            (
                json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 2, "readyReplicas": 3, "availableReplicas": 3}),
                Some("1 pods of the release before are still there"),
            ),
            (
                json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2}),
                None,
            ),
        ];
        for (status, expected) in table {
            assert_eq!(
                missing(&deployment(status.clone())).as_deref(),
                expected,
                "{status}"
            );
        }
    }

    #[test]
    fn failures_name_pod_container_reason_and_the_last_warning() {
        let deployment = json!({"metadata": {"name": "operator"}});
        let pod = json!({
            "metadata": {"name": "operator-1"},
            "status": {
                "initContainerStatuses": [{"name": "proxy", "ready": false, "restartCount": 3,
                    "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s"}},
                    "lastState": {"terminated": {"exitCode": 64, "reason": "Error", "message": "bad flag"}}}],
                "containerStatuses": [{"name": "operator", "ready": false, "restartCount": 0,
                    "state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}}}],
            },
        });
        let event = |kind: &str, time: &str, message: &str| {
            json!({"type": kind, "reason": "Failed", "message": message, "lastTimestamp": time,
                "involvedObject": {"kind": "Pod", "name": "operator-1"}})
        };
        let events = [
            event("Warning", "2026-01-01T00:00:02Z", "newest"),
            event("Warning", "2026-01-01T00:00:01Z", "older"),
            event("Normal", "2026-01-01T00:00:03Z", "no warning"),
        ];
        assert_eq!(
            explain(&deployment, &[pod], &events),
            [
                "pod operator-1: container proxy waits: CrashLoopBackOff: back-off 40s; it ended 3 times, last with \
                 exit code 64 (Error: bad flag)",
                "pod operator-1: container operator waits: ErrImagePull: not found",
                "last warning: Pod operator-1: Failed: newest",
            ]
        );
    }

    #[test]
    fn without_pods_the_deployment_itself_says_why() {
        let deployment = json!({"metadata": {"name": "operator"}, "status": {"conditions": [
            {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "violates PodSecurity"},
        ]}});
        assert_eq!(
            explain(&deployment, &[], &[]),
            ["FailedCreate: violates PodSecurity"]
        );
    }
}
