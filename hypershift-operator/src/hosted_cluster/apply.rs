//! Applies the built objects, step by step. A failed step does not stop the others, unless they depend on it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ApiResource;
use support::apply::Applier;
use support::error::chain;

use super::build::{Class, Planned, Step};
use crate::control_plane_namespace::ControlPlaneNamespace;
use crate::desired::Desired;

/// The result of applying a plan.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    /// Objects that were written.
    pub(crate) written: usize,
    /// Failed steps.
    pub(crate) failures: Vec<Failure>,
}

/// A step that failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) step: Step,
    pub(crate) error: support::apply::Error,
}

// === impl Applied ===

impl Applied {
    /// Messages of failed steps: only the critical ones, if there are any.
    pub(crate) fn failure_messages(&self) -> Vec<String> {
        let is_critical = |it: &&Failure| it.step.class() == Class::Critical;
        let critical: Vec<_> = self.failures.iter().filter(is_critical).collect();
        let reported = if critical.is_empty() {
            self.failures.iter().collect()
        } else {
            critical
        };
        reported
            .iter()
            .map(|it| format!("{}: {}", it.step.as_str(), chain(&it.error)))
            .collect()
    }

    fn is_blocked(&self) -> bool {
        self.failures
            .iter()
            .any(|it| it.step.class() == Class::Critical)
    }
}

/// Applies the steps in order, in a control plane namespace that the HostedCluster owns.
pub(crate) async fn apply(
    applier: &Applier,
    namespace: &ControlPlaneNamespace,
    plan: Vec<Planned>,
) -> Applied {
    let mut done = Applied::default();
    for planned in plan {
        if planned.step.class() == Class::Blockable && done.is_blocked() {
            continue;
        }
        step(applier, namespace, planned, &mut done).await;
    }
    done
}

async fn step(
    applier: &Applier,
    namespace: &ControlPlaneNamespace,
    planned: Planned,
    done: &mut Applied,
) {
    let Planned {
        step,
        objects,
        obsolete,
        outdated,
    } = planned;
    for object in &objects {
        match write(applier, namespace, object).await {
            Ok(written) => done.written += usize::from(written),
            Err(error) => {
                done.failures.push(Failure { step, error });
                // Later objects of the step refer to it.
                return;
            }
        }
    }
    let is_ours = |found: &ObjectMeta| namespace.has(found);
    for (resource, names) in by_kind(&obsolete) {
        let pruned = applier.prune(resource, namespace, &names, is_ours).await;
        if let Err(error) = pruned {
            done.failures.push(Failure { step, error });
        }
    }
    // The namespace of another user: only what names the cluster is its.
    let is_named = |found: &ObjectMeta| namespace.has_outside(found);
    for object in &outdated {
        let (place, names) = (&object.namespace, [object.name.as_str()]);
        let pruned = applier.prune(&object.resource, place, &names, is_named);
        if let Err(error) = pruned.await {
            done.failures.push(Failure { step, error });
        }
    }
}

/// Objects by their kind.
fn by_kind(objects: &[(ApiResource, String)]) -> Vec<(&ApiResource, Vec<&str>)> {
    let mut kinds: Vec<(&ApiResource, Vec<&str>)> = Vec::new();
    for (resource, name) in objects {
        match kinds.iter_mut().find(|(kind, _)| *kind == resource) {
            Some((_, names)) => names.push(name),
            None => kinds.push((resource, vec![name])),
        }
    }
    kinds
}

/// Applies an object, and its status if this operator owns it. Returns whether anything was written.
///
/// The namespace argument proves that the HostedCluster owns its control plane namespace.
pub(crate) async fn write(
    applier: &Applier,
    _namespace: &ControlPlaneNamespace,
    object: &Desired,
) -> Result<bool, support::apply::Error> {
    let change = applier
        .ensure_value(&object.resource, object.body.clone())
        .await?;
    let mut written = change.is_written();
    if let Some(status) = &object.status {
        let body = serde_json::json!({ "metadata": {
            "name": object.name(),
            "namespace": object.namespace(),
        }, "status": status });
        let change = applier.ensure_status(&object.resource, body).await?;
        written |= change.is_written();
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use k8s_openapi::api::networking::v1::NetworkPolicy;
    use k8s_openapi::api::rbac::v1::Role;
    use serde_json::{Value, json};
    use support::testing::{Answer, Expect, Scenario};

    use super::*;
    use crate::cache::Cache;
    use crate::control_plane_namespace;
    use crate::names;
    use crate::platform::Outside;

    async fn pruned(annotations: Value, is_deleted: bool) {
        let path = "/apis/networking.k8s.io/v1/namespaces/clusters-one/networkpolicies/old";
        let old = json!({ "metadata": {
            "namespace": "clusters-one", "name": "old", "uid": "u", "annotations": annotations,
        } });
        let mut calls = vec![Expect::get(path).answer(Answer::ok(&old))];
        if is_deleted {
            calls.push(Expect::delete(path).body(json!({ "preconditions": { "uid": "u" } })));
        }
        let scenario = Scenario::new(calls);
        let applier = Applier::new(scenario.client(), "m");
        let namespace = control_plane_namespace::for_tests("clusters-one");
        let plan = vec![Planned {
            step: Step::NetworkPolicies,
            objects: Vec::new(),
            obsolete: vec![(ApiResource::erase::<NetworkPolicy>(&()), "old".to_owned())],
            outdated: Vec::new(),
        }];
        let done = apply(&applier, &namespace, plan).await;
        scenario.finish();
        assert!(done.failures.is_empty(), "{:?}", done.failures);
    }

    /// Several objects of a kind take one request, and the next time none.
    #[tokio::test]
    async fn obsolete_objects_are_listed_once() {
        let path = "/apis/networking.k8s.io/v1/namespaces/clusters-one/networkpolicies";
        let policy = |name: &str, owner: &str| {
            json!({ "metadata": {
                "namespace": "clusters-one", "name": name, "uid": name, "annotations": { names::CLUSTER: owner },
            } })
        };
        let policies = [
            policy("own", "clusters/one"),
            policy("foreign", "clusters-x/one"),
            policy("desired", "clusters/one"),
        ];
        let scenario = Scenario::new([
            Expect::get(path).answer(Answer::list(&policies)),
            Expect::delete(&format!("{path}/own"))
                .body(json!({ "preconditions": { "uid": "own" } })),
        ]);
        let cache = Arc::new(Cache::new());
        cache.sync(&[]);
        let applier = Applier::new(scenario.client(), "m").with_memory(cache.clone());
        let namespace = control_plane_namespace::for_tests("clusters-one");
        let obsolete = ["own", "foreign", "absent"];
        let kind = || ApiResource::erase::<NetworkPolicy>(&());
        let plan = |names: &[&str]| {
            let obsolete = names.iter().map(|it| (kind(), (*it).to_owned()));
            vec![Planned {
                step: Step::NetworkPolicies,
                objects: Vec::new(),
                obsolete: obsolete.collect(),
                outdated: Vec::new(),
            }]
        };
        let done = apply(&applier, &namespace, plan(&obsolete)).await;
        assert!(done.failures.is_empty(), "{:?}", done.failures);
        let done = apply(&applier, &namespace, plan(&["foreign", "absent"])).await;
        assert!(done.failures.is_empty(), "{:?}", done.failures);
        scenario.finish();
    }

    /// Check T01: the namespace of the Agents may be another tenant's.
    #[tokio::test]
    async fn outdated_objects_outside_are_deleted_if_they_name_the_cluster() {
        let role = || ApiResource::erase::<Role>(&());
        let path = "/apis/rbac.authorization.k8s.io/v1/namespaces/agents/roles";
        for (annotations, is_deleted) in [
            (json!({ names::CLUSTER: "clusters/one" }), true),
            (json!({ names::CLUSTER: "clusters-x/one" }), false),
            (json!({}), false),
        ] {
            let old = json!({ "metadata": {
                "namespace": "agents", "name": "old", "uid": "u", "annotations": annotations,
            } });
            let new = json!({ "metadata": {
                "namespace": "agents", "name": "new", "uid": "v", "resourceVersion": "1",
            } });
            let (old_path, new_path) = (format!("{path}/old"), format!("{path}/new"));
            // The new one exists before the old one is deleted.
            let mut calls = vec![
                Expect::get(&new_path).answer(Answer::error(404, "NotFound")),
                Expect::patch(&new_path).answer(Answer::ok(&new)),
                Expect::get(&old_path).answer(Answer::ok(&old)),
            ];
            if is_deleted {
                calls.push(
                    Expect::delete(&old_path).body(json!({ "preconditions": { "uid": "u" } })),
                );
            }
            let scenario = Scenario::new(calls);
            let applier = Applier::new(scenario.client(), "m");
            let namespace = control_plane_namespace::for_tests("clusters-one");
            let plan = vec![Planned {
                step: Step::Rbac,
                objects: vec![Desired::of(role(), "agents", "new", json!({ "rules": [] }))],
                obsolete: Vec::new(),
                outdated: vec![Outside {
                    resource: role(),
                    namespace: "agents".to_owned(),
                    name: "old".to_owned(),
                }],
            }];
            let done = apply(&applier, &namespace, plan).await;
            scenario.finish();
            assert!(done.failures.is_empty(), "{:?}", done.failures);
        }
    }

    /// Check F10.
    #[tokio::test]
    async fn a_step_without_objects_is_pruned() {
        pruned(json!({}), true).await;
        pruned(json!({ names::CLUSTER: "clusters/one" }), true).await;
        // Check T01: an object of another HostedCluster is kept.
        pruned(json!({ names::CLUSTER: "clusters-x/one" }), false).await;
    }
}
