//! Scales down the controllers that write Cluster API objects, verifies that no pod is left, and scales them up again.

use control_plane_component::UnknownCapiUse;
use futures::future::try_join_all;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::Value;

use super::workloads::{OPERATOR, ObservedDeployment, capi_use, is_stopped, query};
use crate::context::Context;
use crate::control_plane_namespace::ControlPlaneNamespace;
use crate::error::Error;
use crate::handover::FIELD_MANAGER;

/// The Deployments of a control plane that a migration stops, with their pods; the control-plane-operator first.
pub(super) async fn list_deployments(
    ctx: &Context,
    namespace: &str,
) -> Result<Vec<ObservedDeployment>, Error> {
    let api: Api<Deployment> = Api::namespaced(ctx.client.clone(), namespace);
    // Without a limit and a resource version: a Deployment that is not in this list is not in the store.
    let list = api.list(&ListParams::default()).await;
    let list = list.map_err(Error::list(format!("Deployments in {namespace}")))?;
    let mut stopped = Vec::new();
    for deployment in list.items {
        let unreadable = |error: UnknownCapiUse| unreadable(namespace, &deployment, &error);
        if is_stopped(&deployment).map_err(unreadable)? {
            stopped.push(deployment);
        }
    }
    stopped.sort_by_key(|deployment| deployment.metadata.name.as_deref() != Some(OPERATOR));
    let looks = stopped
        .into_iter()
        .map(|deployment| with_pods(ctx, namespace, deployment));
    try_join_all(looks).await
}

async fn with_pods(
    ctx: &Context,
    namespace: &str,
    deployment: Deployment,
) -> Result<ObservedDeployment, Error> {
    let name = deployment.metadata.name.as_deref().unwrap_or_default();
    let capi = capi_use(&deployment).map_err(|error| unreadable(namespace, &deployment, &error))?;
    let selector = deployment
        .spec
        .as_ref()
        .and_then(|spec| query(&spec.selector));
    let Some(selector) = selector else {
        return Err(unreadable(
            namespace,
            &deployment,
            "its selector has expressions",
        ));
    };
    // Without a limit and a resource version: a pod that is not in this list is not in the store.
    let pods: Api<Pod> = Api::namespaced(ctx.client.clone(), namespace);
    let list = pods.list(&ListParams::default().labels(&selector)).await;
    let list = list.map_err(Error::list(format!("pods of {namespace}/{name}")))?;
    Ok(ObservedDeployment {
        deployment,
        capi,
        pods: list.items,
    })
}

fn unreadable(
    namespace: &str,
    deployment: &Deployment,
    problem: &(impl ToString + ?Sized),
) -> Error {
    let name = deployment.metadata.name.as_deref().unwrap_or_default();
    Error::Unreadable {
        object: format!("Deployment {namespace}/{name}"),
        problem: problem.to_string(),
    }
}

/// Scales down all Deployments that use Cluster API; returns one that still runs. The control-plane-operator stops before
/// the others are listed: it would scale them up again, and may create another one until then.
pub(super) async fn stop(
    ctx: &Context,
    namespace: &ControlPlaneNamespace,
) -> Result<Option<String>, Error> {
    if let Some(runs) = stop_operator(ctx, namespace).await? {
        return Ok(Some(runs));
    }
    let seen = list_deployments(ctx, namespace).await?;
    for one in &seen {
        patch(ctx, namespace, one, one.stop()).await?;
    }
    Ok(seen.iter().find_map(ObservedDeployment::still_running))
}

async fn stop_operator(
    ctx: &Context,
    namespace: &ControlPlaneNamespace,
) -> Result<Option<String>, Error> {
    let api: Api<Deployment> = Api::namespaced(ctx.client.clone(), namespace);
    let found = api.get_opt(OPERATOR).await;
    let found = found.map_err(|source| Error::Read {
        what: format!("Deployment {namespace}/{OPERATOR}"),
        source,
    })?;
    let Some(deployment) = found else {
        return Ok(None);
    };
    let operator = with_pods(ctx, namespace, deployment).await?;
    patch(ctx, namespace, &operator, operator.stop()).await?;
    Ok(operator.still_running())
}

/// Scales all stopped Deployments up to their prior replicas.
pub(super) async fn start(ctx: &Context, namespace: &ControlPlaneNamespace) -> Result<(), Error> {
    for one in list_deployments(ctx, namespace).await? {
        patch(ctx, namespace, &one, one.start()).await?;
    }
    Ok(())
}

/// Removes the annotations with prior replicas.
pub(super) async fn forget(ctx: &Context, namespace: &ControlPlaneNamespace) -> Result<(), Error> {
    for one in list_deployments(ctx, namespace).await? {
        patch(ctx, namespace, &one, one.forget()).await?;
    }
    Ok(())
}

/// Patches a Deployment, if it has not changed since it was read.
async fn patch(
    ctx: &Context,
    namespace: &ControlPlaneNamespace,
    seen: &ObservedDeployment,
    patch: Option<Value>,
) -> Result<(), Error> {
    let Some(patch) = patch else {
        return Ok(());
    };
    let api: Api<Deployment> = Api::namespaced(ctx.client.clone(), namespace);
    let params = PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let name = seen.name();
    let written = api.patch(name, &params, &Patch::Merge(&patch)).await;
    written.map(drop).map_err(|source| Error::Write {
        object: format!("Deployment {namespace}/{name}"),
        source,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use control_plane_component::USES_CAPI;
    use ownership::Scope;
    use payload::Releases;
    use prometheus_client::registry::Registry;
    use serde_json::json;
    use support::testing::{Answer, Expect, Scenario};

    use super::*;
    use crate::config::Config;
    use crate::control_plane_namespace;
    use crate::metrics::Metrics;

    const NAMESPACE: &str = "clusters-one";

    fn context(scenario: &Scenario) -> Context {
        let config = Config::for_tests(Scope::Private);
        let releases = Releases::new(config.releases.clone()).unwrap();
        let metrics: Arc<Metrics> = Metrics::new(&mut Registry::default());
        Context::for_tests(&config, scenario.client(), releases, &metrics)
    }

    fn path(name: &str) -> String {
        format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments{name}")
    }

    /// A Deployment that runs with two replicas, or is stopped.
    fn deployment(name: &str, is_stopped: bool, labels: &Value) -> Value {
        let annotations =
            is_stopped.then(|| json!({ api::annotations::MIGRATION_PRIOR_REPLICAS: "2" }));
        json!({
            "metadata": {
                "name": name, "uid": "u", "resourceVersion": "7", "generation": 1,
                "annotations": annotations, "labels": labels,
            },
            "spec": {
                "replicas": if is_stopped { 0 } else { 2 },
                "selector": { "matchLabels": { "app": name } },
                "template": {},
            },
            "status": { "observedGeneration": 1 },
        })
    }

    fn pods(name: &str, pods: &[Value]) -> Expect {
        let query = format!("/api/v1/namespaces/{NAMESPACE}/pods?labelSelector=app%3D{name}");
        Expect::get(&query).answer(Answer::list(pods))
    }

    /// What is read: a stopped control-plane-operator, and others, with their pods.
    fn reads(operator_pods: &[Value], others: &[(Value, Vec<Value>)]) -> Vec<Expect> {
        let operator = deployment(OPERATOR, true, &json!({}));
        let mut list: Vec<_> = others.iter().map(|(other, _)| other.clone()).collect();
        // Pods of Deployments that do not use Cluster API are not listed.
        list.push(deployment("kube-scheduler", false, &json!({})));
        list.push(operator.clone());
        let mut all = vec![
            Expect::get(&path(&format!("/{OPERATOR}"))).answer(Answer::ok(&operator)),
            Expect::get(&path("")).answer(Answer::list(&list)),
            pods(OPERATOR, operator_pods),
        ];
        all.extend(others.iter().map(|(other, found)| {
            let name = other["metadata"]["name"].as_str().unwrap();
            pods(name, found)
        }));
        all
    }

    fn stop_of(name: &str) -> Expect {
        Expect::patch(&path(&format!("/{name}"))).body(json!({
            "metadata": {
                "uid": "u",
                "resourceVersion": "7",
                "annotations": { api::annotations::MIGRATION_PRIOR_REPLICAS: "2" },
            },
            "spec": { "replicas": 0 },
        }))
    }

    async fn stopped(reads: Vec<Expect>, writes: Vec<Expect>) -> Result<Option<String>, Error> {
        let scenario = Scenario::new(writes).always(reads);
        let ctx = context(&scenario);
        let namespace = control_plane_namespace::for_tests(NAMESPACE);
        let runs = stop(&ctx, &namespace).await;
        scenario.finish();
        runs
    }

    fn terminating_pod() -> Value {
        json!({ "metadata": { "name": "p", "deletionTimestamp": "2030-01-31T12:00:00Z" } })
    }

    /// Check M07.
    #[tokio::test]
    async fn the_control_plane_operator_is_stopped_first() {
        let pod = terminating_pod();
        let other = |is_stopped| deployment("cluster-api", is_stopped, &json!({}));
        // Only the control-plane-operator is patched while one of its pods exists.
        let all = reads(std::slice::from_ref(&pod), &[(other(false), vec![])]);
        let runs = stopped(all, vec![]).await.unwrap().unwrap();
        assert!(
            runs.contains("pod p") && runs.contains("Terminating"),
            "{runs}"
        );
        // Then the next one is patched, once.
        let all = reads(&[], &[(other(false), vec![])]);
        let runs = stopped(all, vec![stop_of("cluster-api")]).await.unwrap();
        assert!(runs.is_some(), "it was asked just now");
        // Then its pods have to be gone.
        let all = reads(&[], &[(other(true), vec![pod])]);
        assert!(stopped(all, vec![]).await.unwrap().is_some());
        let all = reads(&[], &[(other(true), vec![])]);
        assert_eq!(stopped(all, vec![]).await.unwrap(), None);
    }

    /// A component is stopped because of its label, whatever its name is.
    #[tokio::test]
    async fn a_component_with_the_label_is_stopped_by_a_migration() {
        let component = |is_stopped| {
            let labels = json!({ USES_CAPI: "direct" });
            deployment("new-component", is_stopped, &labels)
        };
        let all = reads(&[], &[(component(false), vec![])]);
        let runs = stopped(all, vec![stop_of("new-component")]).await.unwrap();
        assert!(runs.is_some(), "it was asked just now");
        let all = reads(&[], &[(component(true), vec![terminating_pod()])]);
        assert!(stopped(all, vec![]).await.unwrap().is_some());
        let all = reads(&[], &[(component(true), vec![])]);
        assert_eq!(stopped(all, vec![]).await.unwrap(), None);
    }

    #[tokio::test]
    async fn an_unknown_capi_label_blocks_quiescence() {
        let unknown = deployment("new-component", false, &json!({ USES_CAPI: "sometimes" }));
        let list = Answer::list(&[deployment("cluster-api", true, &json!({})), unknown]);
        let reads = vec![
            Expect::get(&path(&format!("/{OPERATOR}"))).answer(Answer::error(404, "NotFound")),
            Expect::get(&path("")).answer(list),
        ];
        let error = stopped(reads, vec![]).await.unwrap_err().to_string();
        assert!(error.contains("new-component"), "{error}");
    }
}
