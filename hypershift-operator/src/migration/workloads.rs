//! Deployments that use Cluster API in a control plane: which they are, and whether one of them runs. Pure.

use std::collections::BTreeMap;

use api::annotations::MIGRATION_PRIOR_REPLICAS;
use control_plane_component::{CapiUse, UnknownCapiUse, sidecar};
use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use serde_json::{Value, json};

use crate::hosted_cluster::names;

/// Whoever brings the others back when they are stopped. It goes first, and comes first.
pub(super) const KEEPER: &str = names::CONTROL_PLANE_OPERATOR;
/// Deployments that use Cluster API in control planes of operators that do not label them: what those render is known.
const UNLABELED: [(&str, CapiUse); 5] = [
    (names::CLUSTER_API, CapiUse::Proxied),
    (names::CAPI_PROVIDER, CapiUse::Proxied),
    ("cluster-autoscaler", CapiUse::Proxied),
    ("machine-approver", CapiUse::Proxied),
    ("hosted-cluster-config-operator", CapiUse::Direct),
];

/// How a Deployment of a control plane namespace uses Cluster API.
///
/// Each component says so by a label. Without one, a known name or the proxy in its pods says the same. A label that this
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

/// Whether a migration stops a Deployment: the keeper, and all that use Cluster API.
pub(super) fn is_stopped(deployment: &Deployment) -> Result<bool, UnknownCapiUse> {
    let is_keeper = deployment.metadata.name.as_deref() == Some(KEEPER);
    Ok(is_keeper || capi_use(deployment)? != CapiUse::None)
}

/// What is read of one Deployment and its pods.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) deployment: Deployment,
    /// How it uses Cluster API.
    pub(super) capi: CapiUse,
    /// All that its selector finds, terminating ones included.
    pub(super) pods: Vec<Pod>,
}

// === impl Seen ===

impl Seen {
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

    /// What stops it, unless it is asked to stop already.
    pub(super) fn stop(&self) -> Option<Value> {
        let prior = self.prior().unwrap_or_else(|| self.replicas());
        let is_asked = self.replicas() == 0 && self.prior().is_some();
        (!is_asked).then(|| self.patch(0, &json!(prior.to_string())))
    }

    /// What lets it run as it did before, unless nothing has stopped it.
    pub(super) fn start(&self) -> Option<Value> {
        let prior = self.prior()?;
        Some(self.patch(prior, &Value::Null))
    }

    /// What forgets that it was ever stopped.
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

    /// Who still runs, in words; nobody if it is stopped for sure. That the Deployment says so is no proof: its status
    /// is silent about pods that are terminating.
    pub(super) fn runs(&self) -> Option<String> {
        let name = self.name();
        if self.replicas() != 0 {
            return Some(format!("{name} is asked for {} replicas", self.replicas()));
        }
        let metadata = &self.deployment.metadata;
        let status = self.deployment.status.as_ref();
        let observed = status.and_then(|status| status.observed_generation);
        if observed < metadata.generation {
            return Some(format!("nobody has seen yet that {name} is to stop"));
        }
        let pods: Vec<_> = self.pods.iter().map(told).collect();
        (!pods.is_empty()).then(|| format!("{name} has {}", pods.join(" and ")))
    }

    /// What it waits for until it runs as it should, in words.
    pub(super) fn waits(&self, with_proxy: bool) -> Option<String> {
        let name = self.name();
        let wanted = self.replicas();
        if let Some(prior) = self.prior().filter(|prior| wanted == 0 && *prior > 0) {
            return Some(format!(
                "nobody has started {name} again ({prior} replicas)"
            ));
        }
        let has_proxy = self.deployment.spec.as_ref().is_some_and(has_proxy);
        if with_proxy != has_proxy && self.capi == CapiUse::Proxied {
            let what = if with_proxy { "no" } else { "still a" };
            return Some(format!("{name} has {what} container {}", sidecar::NAME));
        }
        let status = self.deployment.status.clone().unwrap_or_default();
        let is_seen = status.observed_generation >= self.deployment.metadata.generation;
        let counts = [
            ("updated", status.updated_replicas),
            ("available", status.available_replicas),
        ];
        for (what, count) in counts {
            let count = count.unwrap_or_default();
            if !is_seen || count < wanted {
                return Some(format!("{count} of {wanted} replicas of {name} are {what}"));
            }
        }
        // Those of the old template are gone, too.
        (status.replicas.unwrap_or_default() > wanted)
            .then(|| format!("{name} still has pods of its old template"))
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

/// A pod, and why it is still there.
fn told(pod: &Pod) -> String {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    let node = node.unwrap_or("no node");
    match &pod.metadata.deletion_timestamp {
        Some(since) => format!("pod {name} on {node}, Terminating since {:.0}", since.0),
        None => format!("pod {name} on {node}"),
    }
}

/// A selector as a query; none if it selects by more than labels, which no Deployment of ours does.
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
pub(super) fn counts(seen: &[Seen]) -> BTreeMap<String, i32> {
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

    fn seen(replicas: i32, prior: Option<&str>, status: impl Into<Value>, pods: &[Value]) -> Seen {
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
        Seen {
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

    /// A component that is not known here by name is found by its label, or by the proxy beside it.
    #[test]
    fn deployments_that_use_capi_are_found_whoever_rendered_them() {
        use CapiUse::{Direct, None as Not, Proxied};
        for (name, label, container, expected) in [
            ("new-component", Some("proxied"), "init", Proxied),
            ("new-component", Some("direct"), "init", Direct),
            ("new-component", None, sidecar::NAME, Proxied),
            ("kube-scheduler", None, "init", Not),
            // Rendered by an operator without the label, on standard types: nothing but the name says it.
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
        assert_eq!(is_stopped(&deployment(KEEPER, None, "init")), Ok(true));
        // Nothing is moved while it is not known who writes.
        let unknown = deployment("new-component", Some("sometimes"), "init");
        assert!(is_stopped(&unknown).is_err());
    }

    #[test]
    fn what_is_stopped_is_remembered_once_and_started_as_it_was() {
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
        // Somebody has started it meanwhile: what it had before is not forgotten for that.
        let started = seen(5, Some("2"), json!({}), &[]);
        let patch = started.stop().unwrap();
        assert_eq!(
            patch["metadata"]["annotations"][MIGRATION_PRIOR_REPLICAS],
            "2"
        );
        // One that nobody wanted to run is left stopped.
        let unwanted = seen(0, None, json!({}), &[]);
        assert_eq!(
            unwanted.stop().unwrap()["metadata"]["annotations"][MIGRATION_PRIOR_REPLICAS],
            "0"
        );
        assert_eq!(
            counts(&[stopped]),
            BTreeMap::from([("cluster-api".to_owned(), 2)])
        );
    }

    #[test]
    fn m07_a_pod_that_is_terminating_runs() {
        let observed = json!({ "observedGeneration": 3 });
        let stuck = json!({
            "metadata": { "name": "p", "deletionTimestamp": "2030-01-31T12:00:00Z" },
            "spec": { "nodeName": "n", "containers": [] },
        });
        for (seen, expected) in [
            (
                seen(1, None, observed.clone(), &[]),
                Some("asked for 1 replicas"),
            ),
            (
                seen(0, Some("1"), json!({ "observedGeneration": 2 }), &[]),
                Some("nobody has seen"),
            ),
            (seen(0, Some("1"), json!({}), &[]), Some("nobody has seen")),
            (
                seen(0, Some("1"), observed.clone(), &[stuck]),
                Some("pod p on n, Terminating since 2030-01-31T12:00:00Z"),
            ),
            (seen(0, Some("1"), observed.clone(), &[]), None),
        ] {
            let found = seen.runs();
            let is_told = match (&found, expected) {
                (Some(found), Some(expected)) => found.contains(expected),
                (found, expected) => found.is_none() && expected.is_none(),
            };
            assert!(is_told, "{found:?} {expected:?}");
        }
    }

    #[test]
    fn a_deployment_runs_when_all_its_pods_are_new_and_available() {
        let status = |updated: i32, available: i32, all: i32| {
            json!({
                "observedGeneration": 3, "updatedReplicas": updated, "availableReplicas": available, "replicas": all,
            })
        };
        for (seen, expected) in [
            (
                seen(0, Some("1"), status(0, 0, 0), &[]),
                Some("nobody has started"),
            ),
            (
                seen(1, None, status(0, 1, 1), &[]),
                Some("0 of 1 replicas of cluster-api are updated"),
            ),
            (
                seen(1, None, status(1, 0, 1), &[]),
                Some("0 of 1 replicas of cluster-api are available"),
            ),
            (seen(1, None, status(1, 1, 2), &[]), Some("old template")),
            (seen(1, None, status(1, 1, 1), &[]), None),
            (seen(0, Some("0"), status(0, 0, 0), &[]), None),
        ] {
            let found = seen.waits(false);
            let is_told = match (&found, expected) {
                (Some(found), Some(expected)) => found.contains(expected),
                (found, expected) => found.is_none() && expected.is_none(),
            };
            assert!(is_told, "{found:?} {expected:?}");
        }
        let without = seen(1, None, status(1, 1, 1), &[]);
        assert!(without.waits(true).is_some(), "it lacks the proxy");
    }
}
