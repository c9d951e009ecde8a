//! Where pods run, as which user, and what they may preempt.

use serde_json::{Value, json};

use crate::{Finding, Invariant, Observed, items, text};

/// The priority of etcd.
const HIGHEST: i64 = 100_002_000;
const CONTROL_PLANE: &str = "hypershift.openshift.io/control-plane";
const CLUSTER: &str = "hypershift.openshift.io/cluster";
const HOSTED_CONTROL_PLANE: &str = "hypershift.openshift.io/hosted-control-plane";
/// Annotation of a control plane's namespace: the user of its pods, if no other controller chooses one.
const USER: &str = "hypershift.openshift.io/default-security-context-uid";

/// A pod has a priority of its own once it is admitted; a template has the name of its class.
pub(crate) fn priorities(observed: &Observed) -> Vec<Finding> {
    observed.each_pod(Invariant::Priorities, |pod| {
        let class = text(&pod.spec["priorityClassName"]);
        let priority = if pod.is_template() {
            let mut classes = observed.priority_classes.iter();
            let found = classes.find(|it| it["metadata"]["name"] == class);
            match found {
                Some(found) => found["value"].as_i64(),
                None if class.is_empty() || observed.priority_classes.is_empty() => None,
                None => return Some(format!("there is no PriorityClass {class}")),
            }
        } else {
            pod.spec["priority"].as_i64()
        };
        let priority = priority.filter(|priority| *priority > HIGHEST)?;
        Some(format!("its priority is {priority}, above {HIGHEST}"))
    })
}

pub(crate) fn placement(observed: &Observed) -> Vec<Finding> {
    let namespace = observed.namespace();
    let tolerated = [(CONTROL_PLANE, "true"), (CLUSTER, namespace)].map(
        |(key, value)| json!({ "key": key, "operator": "Equal", "value": value, "effect": "NoSchedule" }),
    );
    observed.each_pod(Invariant::Scheduling, |pod| {
        let tolerations = items(&pod.spec["tolerations"]);
        let mut missing: Vec<_> = tolerated
            .iter()
            .filter(|toleration| !tolerations.contains(toleration))
            .map(|toleration| format!("the toleration of {}", text(&toleration["key"])))
            .collect();
        let affinity = &pod.spec["affinity"];
        if !prefers_nodes(affinity) {
            missing.push(format!("the preference for nodes with {CONTROL_PLANE}"));
        }
        if !prefers_pods(affinity, namespace) {
            missing.push(format!(
                "the preference for pods with {HOSTED_CONTROL_PLANE}"
            ));
        }
        (!missing.is_empty()).then(|| format!("it lacks {}", missing.join(", ")))
    })
}

fn preferred<'a>(affinity: &'a Value, kind: &str) -> &'a [Value] {
    items(&affinity[kind]["preferredDuringSchedulingIgnoredDuringExecution"])
}

fn prefers_nodes(affinity: &Value) -> bool {
    preferred(affinity, "nodeAffinity").iter().any(|term| {
        let expressions = items(&term["preference"]["matchExpressions"]);
        term["weight"] == 50 && expressions.iter().any(|it| it["key"] == CONTROL_PLANE)
    })
}

fn prefers_pods(affinity: &Value, namespace: &str) -> bool {
    preferred(affinity, "podAffinity").iter().any(|term| {
        let labels = &term["podAffinityTerm"]["labelSelector"]["matchLabels"];
        term["weight"] == 100 && labels[HOSTED_CONTROL_PLANE] == namespace
    })
}

pub(crate) fn users(observed: &Observed) -> Vec<Finding> {
    let annotations = &observed.namespace["metadata"]["annotations"];
    let Ok(user) = text(&annotations[USER]).parse::<i64>() else {
        return Vec::new();
    };
    observed.each_pod(Invariant::Users, |pod| {
        let found = &pod.spec["securityContext"]["runAsUser"];
        (*found != user).then(|| format!("it runs as user {found}, not {user}"))
    })
}
