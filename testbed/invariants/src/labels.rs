//! Labels of pods and of Routes, and what users add to pods.

use serde_json::Map;

use crate::{Finding, Invariant, Observed, items, text};

const HOSTED_CONTROL_PLANE: &str = "hypershift.openshift.io/hosted-control-plane";

pub(crate) fn app(observed: &Observed) -> Vec<Finding> {
    observed.each_pod(Invariant::AppLabels, |pod| {
        pod.label("app")
            .is_empty()
            .then(|| "it has no label app".to_owned())
    })
}

/// Pods have the labels and tolerations of their HostedCluster.
pub(crate) fn of_users(observed: &Observed) -> Vec<Finding> {
    let Some(cluster) = &observed.hosted_cluster else {
        return Vec::new();
    };
    let labels = cluster["spec"]["labels"].as_object();
    let tolerations = items(&cluster["spec"]["tolerations"]);
    observed.each_pod(Invariant::UserSettings, |pod| {
        let lacks = labels.into_iter().flat_map(Map::iter);
        let lacks = lacks.filter(|(key, value)| pod.label(key) != text(value));
        let mut missing: Vec<_> = lacks.map(|(key, _)| format!("the label {key}")).collect();
        let own = items(&pod.spec["tolerations"]);
        let lacks = tolerations.iter().filter(|it| !own.contains(it));
        missing.extend(lacks.map(|it| format!("the toleration {it}")));
        (!missing.is_empty()).then(|| format!("it lacks {}", missing.join(", ")))
    })
}

/// If the API is published by a Route, a router of the control plane serves all of its Routes.
pub(crate) fn routes(observed: &Observed) -> Vec<Finding> {
    let Some(cluster) = &observed.hosted_cluster else {
        return Vec::new();
    };
    let by_route = items(&cluster["spec"]["services"]).iter().any(|service| {
        service["service"] == "APIServer" && service["servicePublishingStrategy"]["type"] == "Route"
    });
    if !by_route {
        return Vec::new();
    }
    let namespace = observed.namespace();
    let unlabelled = observed
        .of_kind("Route")
        .filter(|route| route["metadata"]["labels"][HOSTED_CONTROL_PLANE] != namespace);
    let findings = unlabelled.map(|route| {
        let name = text(&route["metadata"]["name"]);
        let problem = format!("it has no label {HOSTED_CONTROL_PLANE}={namespace}");
        Finding::new(Invariant::RouteLabels, format!("Route {name}"), problem)
    });
    findings.collect()
}
