//! The Deployments that write to a cluster's Cluster API objects: which they are, and whether one of them runs. Pure.

use std::collections::BTreeMap;

use api::annotations::MIGRATION_PRIOR_REPLICAS;
use control_plane_component::{handover, sidecar};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::{Value, json};

use crate::hosted_cluster::names;

/// Whoever brings the others back when they are stopped. It goes first, and comes first.
pub(super) const KEEPER: &str = names::CONTROL_PLANE_OPERATOR;
/// The two Deployments of Cluster API itself, with the proxy beside them on private types.
const MANAGERS: [&str; 2] = [names::CLUSTER_API, names::CAPI_PROVIDER];
/// Every Deployment with the proxy beside it on private types.
pub(super) const PROXIED: [&str; MANAGERS.len() + handover::PROXIED.len()] =
    concat([&MANAGERS, &handover::PROXIED]);
/// Every Deployment that works on Cluster API objects, the keeper included. Which of them a cluster has depends on its
/// platform.
pub(super) const WRITERS: [&str; 1 + PROXIED.len() + handover::DIRECT.len()] =
    concat([&[KEEPER], &PROXIED, &handover::DIRECT]);

/// The lists as one. It does not compile unless the length is that of all of them.
const fn concat<const L: usize, const N: usize>(lists: [&[&'static str]; L]) -> [&'static str; N] {
    let mut all = [""; N];
    let (mut list, mut next) = (0, 0);
    while list < L {
        let mut place = 0;
        while place < lists[list].len() {
            all[next] = lists[list][place];
            place += 1;
            next += 1;
        }
        list += 1;
    }
    assert!(next == N, "the length is that of all lists");
    all
}

/// What is read of one Deployment and its pods.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) deployment: Deployment,
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
        let has_proxy = has_proxy(&self.deployment);
        if with_proxy != has_proxy && PROXIED.contains(&name) {
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
fn has_proxy(deployment: &Deployment) -> bool {
    let pod = deployment.spec.as_ref();
    let pod = pod.and_then(|spec| spec.template.spec.as_ref());
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
            pods: pods.collect::<Result<_, _>>().unwrap(),
        }
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
