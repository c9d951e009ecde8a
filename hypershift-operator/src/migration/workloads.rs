//! Deployments of a control plane that use Cluster API, and whether they run. Pure.

use std::collections::BTreeMap;

use api::annotations::MIGRATION_PRIOR_REPLICAS;
use control_plane_component::{CapiUse, UnknownCapiUse, sidecar};
use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use serde_json::{Value, json};

use crate::names;

/// The control-plane-operator scales the others up again, so it is stopped first.
pub(super) const OPERATOR: &str = names::CONTROL_PLANE_OPERATOR;
/// Deployments that use Cluster API, rendered by older operators that do not label them.
const UNLABELED: [(&str, CapiUse); 5] = [
    (names::CLUSTER_API, CapiUse::Proxied),
    (names::CAPI_PROVIDER, CapiUse::Proxied),
    ("cluster-autoscaler", CapiUse::Proxied),
    ("machine-approver", CapiUse::Proxied),
    ("hosted-cluster-config-operator", CapiUse::Direct),
];

/// How a Deployment of a control plane namespace uses Cluster API.
///
/// Components have a label for it. Without one, a known name or the proxy in its pods decides. A label value that this
/// version does not know is an error: a Deployment that is not stopped would corrupt the migration.
pub(super) fn capi_use(deployment: &Deployment) -> Result<CapiUse, UnknownCapiUse> {
    let known = known_use(&deployment.metadata)?;
    let by_proxy = || {
        let spec = deployment.spec.as_ref();
        spec.is_some_and(has_proxy).then_some(CapiUse::Proxied)
    };
    Ok(known.or_else(by_proxy).unwrap_or_default())
}

fn known_use(metadata: &ObjectMeta) -> Result<Option<CapiUse>, UnknownCapiUse> {
    let labeled = CapiUse::from_labels(metadata.labels.as_ref())?;
    let name = metadata.name.as_deref().unwrap_or_default();
    let by_name = || UNLABELED.iter().find(|(known, _)| *known == name);
    Ok(labeled.or_else(|| by_name().map(|(_, capi)| *capi)))
}

/// Whether a migration stops a Deployment: the control-plane-operator, and all that use Cluster API.
pub(super) fn is_stopped(deployment: &Deployment) -> Result<bool, UnknownCapiUse> {
    let is_operator = deployment.metadata.name.as_deref() == Some(OPERATOR);
    Ok(is_operator || capi_use(deployment)? != CapiUse::None)
}

/// What is read of one Deployment and its pods.
#[derive(Debug, Clone)]
pub(super) struct ObservedDeployment {
    pub(super) deployment: Deployment,
    /// How it uses Cluster API.
    pub(super) capi: CapiUse,
    /// All that its selector finds, terminating ones included.
    pub(super) pods: Vec<Pod>,
}

// === impl ObservedDeployment ===

impl ObservedDeployment {
    pub(super) fn name(&self) -> &str {
        self.deployment.metadata.name.as_deref().unwrap_or_default()
    }

    fn replicas(&self) -> i32 {
        let spec = self.deployment.spec.as_ref();
        spec.and_then(|spec| spec.replicas).unwrap_or(1)
    }

    /// The replicas that it had before it was stopped, if it was.
    pub(super) fn prior(&self) -> Option<i32> {
        let annotations = self.deployment.metadata.annotations.as_ref()?;
        annotations.get(MIGRATION_PRIOR_REPLICAS)?.parse().ok()
    }

    /// The patch that scales it down, unless it is scaled down already.
    pub(super) fn stop(&self) -> Option<Value> {
        let prior = self.prior().unwrap_or_else(|| self.replicas());
        let is_scaled_down = self.replicas() == 0 && self.prior().is_some();
        (!is_scaled_down).then(|| self.patch(0, &json!(prior.to_string())))
    }

    /// The patch that scales it up to its prior replicas, unless it was not stopped.
    pub(super) fn start(&self) -> Option<Value> {
        let prior = self.prior()?;
        Some(self.patch(prior, &Value::Null))
    }

    /// The patch that removes its prior replicas.
    pub(super) fn forget(&self) -> Option<Value> {
        self.prior()?;
        Some(self.patch(self.replicas(), &Value::Null))
    }

    fn patch(&self, replicas: i32, prior: &Value) -> Value {
        let metadata = &self.deployment.metadata;
        json!({
            "metadata": {
                "uid": metadata.uid,
                "resourceVersion": metadata.resource_version,
                "annotations": { MIGRATION_PRIOR_REPLICAS: prior },
            },
            "spec": { "replicas": replicas },
        })
    }

    /// Why it still runs; `None` if no pod is left. The status of the Deployment is no proof: it
    /// does not count terminating pods.
    pub(super) fn still_running(&self) -> Option<String> {
        let name = self.name();
        if self.replicas() != 0 {
            return Some(format!(
                "Waiting for Deployment {name} to be scaled down from {} replicas",
                self.replicas()
            ));
        }
        let metadata = &self.deployment.metadata;
        let status = self.deployment.status.as_ref();
        let observed = status.and_then(|status| status.observed_generation);
        if observed < metadata.generation {
            return Some(format!(
                "Waiting for Deployment {name} to observe the new generation"
            ));
        }
        let pods: Vec<_> = self.pods.iter().map(describe_pod).collect();
        (!pods.is_empty()).then(|| {
            format!(
                "Waiting for Deployment {name} to stop: {}",
                pods.join(" and ")
            )
        })
    }

    /// What it waits for until it is ready.
    pub(super) fn waiting_for(&self, with_proxy: bool) -> Option<String> {
        let name = self.name();
        let desired = self.replicas();
        if let Some(prior) = self.prior().filter(|prior| desired == 0 && *prior > 0) {
            return Some(format!(
                "Waiting for Deployment {name} to be scaled up again ({prior} replicas)"
            ));
        }
        let has_proxy = self.deployment.spec.as_ref().is_some_and(has_proxy);
        if with_proxy != has_proxy && self.capi == CapiUse::Proxied {
            let what = if with_proxy { "no" } else { "still a" };
            return Some(format!(
                "Waiting for Deployment {name} to be updated: it has {what} container {}",
                sidecar::NAME
            ));
        }
        let status = self.deployment.status.clone().unwrap_or_default();
        let is_seen = status.observed_generation >= self.deployment.metadata.generation;
        let counts = [
            ("updated", status.updated_replicas),
            ("available", status.available_replicas),
        ];
        for (what, count) in counts {
            let count = count.unwrap_or_default();
            if !is_seen || count < desired {
                return Some(format!(
                    "Waiting for Deployment {name} to become available ({count}/{desired} replicas {what})"
                ));
            }
        }
        // Pods of the old template must be gone, too.
        (status.replicas.unwrap_or_default() > desired)
            .then(|| format!("Waiting for Deployment {name} to remove old pods"))
    }
}

/// Whether a Deployment's pods have the proxy.
fn has_proxy(spec: &DeploymentSpec) -> bool {
    let pod = spec.template.spec.as_ref();
    let mut containers = pod.into_iter().flat_map(|pod| {
        let init = pod.init_containers.iter().flatten();
        init.chain(&pod.containers)
    });
    containers.any(|container| container.name == sidecar::NAME)
}

/// Describes a pod and its termination.
fn describe_pod(pod: &Pod) -> String {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    let node = node.unwrap_or("no node");
    match &pod.metadata.deletion_timestamp {
        Some(since) => format!("pod {name} on {node}, Terminating since {:.0}", since.0),
        None => format!("pod {name} on {node}"),
    }
}

/// A selector as a query; `None` if it has expressions, which no rendered Deployment has.
pub(super) fn query(selector: &LabelSelector) -> Option<String> {
    if selector
        .match_expressions
        .as_ref()
        .is_some_and(|it| !it.is_empty())
    {
        return None;
    }
    let labels = selector.match_labels.as_ref()?;
    let labels = labels.iter().map(|(key, value)| format!("{key}={value}"));
    Some(labels.collect::<Vec<_>>().join(","))
}

/// The replicas before the migration, by Deployment, for the journal.
pub(super) fn counts(seen: &[ObservedDeployment]) -> BTreeMap<String, i32> {
    let counts = seen.iter().map(|one| {
        let replicas = one.prior().unwrap_or_else(|| one.replicas());
        (one.name().to_owned(), replicas)
    });
    counts.collect()
}

#[cfg(test)]
mod tests {
    use control_plane_component::USES_CAPI;

    use super::*;

    fn seen(
        replicas: i32,
        prior: Option<&str>,
        status: impl Into<Value>,
        pods: &[Value],
    ) -> ObservedDeployment {
        let annotations = prior.map(|prior| json!({ MIGRATION_PRIOR_REPLICAS: prior }));
        let deployment = json!({
            "metadata": {
                "name": "cluster-api", "uid": "u", "resourceVersion": "7", "generation": 3, "annotations": annotations,
            },
            "spec": { "replicas": replicas, "selector": {}, "template": { "spec": {
                "containers": [{ "name": "manager" }],
            }}},
            "status": status.into(),
        });
        let pods = pods.iter().cloned().map(serde_json::from_value);
        ObservedDeployment {
            deployment: serde_json::from_value(deployment).unwrap(),
            capi: CapiUse::Proxied,
            pods: pods.collect::<Result<_, _>>().unwrap(),
        }
    }

    fn deployment(name: &str, label: Option<&str>, container: &str) -> Deployment {
        let labels = label.map(|value| json!({ USES_CAPI: value }));
        let deployment = json!({
            "metadata": { "name": name, "labels": labels },
            "spec": { "selector": {}, "template": { "spec": {
                "containers": [{ "name": "manager" }], "initContainers": [{ "name": container }],
            }}},
        });
        serde_json::from_value(deployment).unwrap()
    }

    /// Components with unknown names are found by label, or by their proxy.
    #[test]
    fn deployments_that_use_capi_are_found() {
        use CapiUse::{Direct, None as Not, Proxied};
        for (name, label, container, expected) in [
            ("new-component", Some("proxied"), "init", Proxied),
            ("new-component", Some("direct"), "init", Direct),
            ("new-component", None, sidecar::NAME, Proxied),
            ("kube-scheduler", None, "init", Not),
            // Rendered by an operator without the label, on standard types: only the name is known.
            ("cluster-api", None, "init", Proxied),
            ("capi-provider", None, "init", Proxied),
            ("cluster-autoscaler", None, "init", Proxied),
            ("machine-approver", None, "init", Proxied),
            ("hosted-cluster-config-operator", None, "init", Direct),
        ] {
            let deployment = deployment(name, label, container);
            assert_eq!(capi_use(&deployment), Ok(expected), "{name} {label:?}");
            assert_eq!(is_stopped(&deployment), Ok(expected != Not), "{name}");
        }
        assert_eq!(is_stopped(&deployment(OPERATOR, None, "init")), Ok(true));
        // Nothing is migrated while the writers are unknown.
        let unknown = deployment("new-component", Some("sometimes"), "init");
        assert!(is_stopped(&unknown).is_err());
    }

    #[test]
    fn prior_replicas_are_recorded_once_and_restored() {
        let running = seen(2, None, json!({}), &[]);
        let patch = running.stop().unwrap();
        assert_eq!(patch["spec"]["replicas"], 0);
        assert_eq!(patch["metadata"]["resourceVersion"], "7");
        assert_eq!(
            patch["metadata"]["annotations"][MIGRATION_PRIOR_REPLICAS],
            "2"
        );
        assert_eq!(running.start(), None);
        let stopped = seen(0, Some("2"), json!({}), &[]);
        assert_eq!(stopped.stop(), None);
        assert_eq!(stopped.start().unwrap()["spec"]["replicas"], 2);
        // It was scaled up meanwhile: the prior replicas are kept.
        let started = seen(5, Some("2"), json!({}), &[]);
        let patch = started.stop().unwrap();
        assert_eq!(
            patch["metadata"]["annotations"][MIGRATION_PRIOR_REPLICAS],
            "2"
        );
        // One that was scaled to zero before stays so.
        let obsolete = seen(0, None, json!({}), &[]);
        assert_eq!(
            obsolete.stop().unwrap()["metadata"]["annotations"][MIGRATION_PRIOR_REPLICAS],
            "0"
        );
        assert_eq!(
            counts(&[stopped]),
            BTreeMap::from([("cluster-api".to_owned(), 2)])
        );
    }

    #[test]
    fn terminating_pods_count_as_running() {
        let observed = json!({ "observedGeneration": 3 });
        let stuck = json!({
            "metadata": { "name": "p", "deletionTimestamp": "2030-01-31T12:00:00Z" },
            "spec": { "nodeName": "n", "containers": [] },
        });
        for (seen, expected) in [
            (
                seen(1, None, observed.clone(), &[]),
                Some("to be scaled down from 1 replicas"),
            ),
            (
                seen(0, Some("1"), json!({ "observedGeneration": 2 }), &[]),
                Some("to observe the new generation"),
            ),
            (
                seen(0, Some("1"), json!({}), &[]),
                Some("to observe the new generation"),
            ),
            (
                seen(0, Some("1"), observed.clone(), &[stuck]),
                Some("pod p on n, Terminating since 2030-01-31T12:00:00Z"),
            ),
            (seen(0, Some("1"), observed.clone(), &[]), None),
        ] {
            let found = seen.still_running();
            let matches = match (&found, expected) {
                (Some(found), Some(expected)) => found.contains(expected),
                (found, expected) => found.is_none() && expected.is_none(),
            };
            assert!(matches, "{found:?} {expected:?}");
        }
    }

    #[test]
    fn a_deployment_is_ready_when_all_pods_are_updated() {
        let status = |updated: i32, available: i32, all: i32| {
            json!({
                "observedGeneration": 3, "updatedReplicas": updated, "availableReplicas": available, "replicas": all,
            })
        };
        for (seen, expected) in [
            (
                seen(0, Some("1"), status(0, 0, 0), &[]),
                Some("to be scaled up again"),
            ),
            (
                seen(1, None, status(0, 1, 1), &[]),
                Some("to become available (0/1 replicas updated)"),
            ),
            (
                seen(1, None, status(1, 0, 1), &[]),
                Some("to become available (0/1 replicas available)"),
            ),
            (
                seen(1, None, status(1, 1, 2), &[]),
                Some("to remove old pods"),
            ),
            (seen(1, None, status(1, 1, 1), &[]), None),
            (seen(0, Some("0"), status(0, 0, 0), &[]), None),
        ] {
            let found = seen.waiting_for(false);
            let matches = match (&found, expected) {
                (Some(found), Some(expected)) => found.contains(expected),
                (found, expected) => found.is_none() && expected.is_none(),
            };
            assert!(matches, "{found:?} {expected:?}");
        }
        let without = seen(1, None, status(1, 1, 1), &[]);
        assert!(without.waiting_for(true).is_some(), "it lacks the proxy");
    }
}
