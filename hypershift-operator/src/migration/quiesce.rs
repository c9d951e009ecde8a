//! Stops whoever writes to a cluster's objects, proves that nobody is left, and starts them again.

use futures::future::try_join_all;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::Value;

use super::mark::MANAGER;
use super::workloads::{KEEPER, Seen, WRITERS, query};
use crate::context::Context;
use crate::control_plane_namespace::ControlPlaneNamespace;
use crate::error::Error;

/// The writers that a control plane has, with their pods.
pub(super) async fn look(ctx: &Context, namespace: &str) -> Result<Vec<Seen>, Error> {
    let looks = WRITERS.map(|name| one(ctx, namespace, name));
    let seen = try_join_all(looks).await?;
    Ok(seen.into_iter().flatten().collect())
}

async fn one(ctx: &Context, namespace: &str, name: &str) -> Result<Option<Seen>, Error> {
    let api: Api<Deployment> = Api::namespaced(ctx.client.clone(), namespace);
    let found = api.get_opt(name).await;
    let found = found.map_err(|source| Error::Read {
        what: format!("Deployment {namespace}/{name}"),
        source,
    })?;
    let Some(deployment) = found else {
        return Ok(None);
    };
    let selector = deployment
        .spec
        .as_ref()
        .and_then(|spec| query(&spec.selector));
    let Some(selector) = selector else {
        return Err(Error::Unreadable {
            object: format!("{namespace}/{name} (Deployment)"),
            problem: "its selector is more than labels".to_owned(),
        });
    };
    // Without a limit and a resource version: a pod that is not in this list is not in the store.
    let pods: Api<Pod> = Api::namespaced(ctx.client.clone(), namespace);
    let list = pods.list(&ListParams::default().labels(&selector)).await;
    let list = list.map_err(Error::list(format!("pods of {namespace}/{name}")))?;
    Ok(Some(Seen {
        deployment,
        pods: list.items,
    }))
}

/// Asks all writers to stop; tells who still runs. The keeper is gone before the others are asked, or it would bring
/// them back.
pub(super) async fn stop(
    ctx: &Context,
    namespace: &ControlPlaneNamespace,
) -> Result<Option<String>, Error> {
    let seen = look(ctx, namespace).await?;
    let keeper = seen.iter().find(|one| one.name() == KEEPER);
    if let Some(keeper) = keeper {
        ask(ctx, namespace, keeper, keeper.stop()).await?;
        if let Some(runs) = keeper.runs() {
            return Ok(Some(runs));
        }
    }
    for one in &seen {
        ask(ctx, namespace, one, one.stop()).await?;
    }
    Ok(seen.iter().find_map(Seen::runs))
}

/// Lets all that were stopped run as before.
pub(super) async fn start(ctx: &Context, namespace: &ControlPlaneNamespace) -> Result<(), Error> {
    for one in look(ctx, namespace).await? {
        ask(ctx, namespace, &one, one.start()).await?;
    }
    Ok(())
}

/// Forgets that they were ever stopped.
pub(super) async fn forget(ctx: &Context, namespace: &ControlPlaneNamespace) -> Result<(), Error> {
    for one in look(ctx, namespace).await? {
        ask(ctx, namespace, &one, one.forget()).await?;
    }
    Ok(())
}

/// Writes what is to change about a Deployment, if it is still as it was seen.
async fn ask(
    ctx: &Context,
    namespace: &ControlPlaneNamespace,
    seen: &Seen,
    patch: Option<Value>,
) -> Result<(), Error> {
    let Some(patch) = patch else {
        return Ok(());
    };
    let api: Api<Deployment> = Api::namespaced(ctx.client.clone(), namespace);
    let params = PatchParams {
        field_manager: Some(MANAGER.to_owned()),
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
        format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{name}")
    }

    /// What is read of one: it runs with two replicas, or is stopped.
    fn read(name: &str, is_stopped: bool, pods: &[serde_json::Value]) -> [Expect; 2] {
        let annotations =
            is_stopped.then(|| json!({ api::annotations::MIGRATION_PRIOR_REPLICAS: "2" }));
        let deployment = json!({
            "metadata": {
                "name": name, "uid": "u", "resourceVersion": "7", "generation": 1, "annotations": annotations,
            },
            "spec": {
                "replicas": if is_stopped { 0 } else { 2 },
                "selector": { "matchLabels": { "app": name } },
                "template": {},
            },
            "status": { "observedGeneration": 1 },
        });
        let query = format!("/api/v1/namespaces/{NAMESPACE}/pods?labelSelector=app%3D{name}");
        [
            Expect::get(&path(name)).answer(Answer::ok(&deployment)),
            Expect::get(&query).answer(Answer::list(pods)),
        ]
    }

    fn absent() -> Vec<Expect> {
        let names = WRITERS.iter().filter(|name| **name != KEEPER);
        let names = names.filter(|name| **name != "cluster-api");
        names
            .map(|name| Expect::get(&path(name)).answer(Answer::error(404, "NotFound")))
            .collect()
    }

    fn stop_of(name: &str) -> Expect {
        Expect::patch(&path(name)).body(json!({
            "metadata": {
                "uid": "u",
                "resourceVersion": "7",
                "annotations": { api::annotations::MIGRATION_PRIOR_REPLICAS: "2" },
            },
            "spec": { "replicas": 0 },
        }))
    }

    async fn stopped(reads: Vec<Expect>, writes: Vec<Expect>) -> Option<String> {
        let scenario = Scenario::new(writes).always(reads);
        let ctx = context(&scenario);
        let namespace = control_plane_namespace::for_tests(NAMESPACE);
        let runs = stop(&ctx, &namespace).await.unwrap();
        scenario.finish();
        runs
    }

    #[tokio::test]
    async fn m07_the_keeper_is_gone_before_the_others_are_stopped() {
        let pod =
            json!({ "metadata": { "name": "p", "deletionTimestamp": "2030-01-31T12:00:00Z" } });
        // Nobody but the keeper is written to while a pod of it is there.
        let mut reads = absent();
        reads.extend(read(KEEPER, true, std::slice::from_ref(&pod)));
        reads.extend(read("cluster-api", false, &[]));
        let runs = stopped(reads, vec![]).await.unwrap();
        assert!(
            runs.contains("pod p") && runs.contains("Terminating"),
            "{runs}"
        );
        // Then the next one is asked, once.
        let mut reads = absent();
        reads.extend(read(KEEPER, true, &[]));
        reads.extend(read("cluster-api", false, &[]));
        let runs = stopped(reads, vec![stop_of("cluster-api")]).await;
        assert!(runs.is_some(), "it was asked just now");
        // And it is waited for until its pods are gone.
        let mut reads = absent();
        reads.extend(read(KEEPER, true, &[]));
        reads.extend(read("cluster-api", true, &[pod]));
        assert!(stopped(reads, vec![]).await.is_some());
        let mut reads = absent();
        reads.extend(read(KEEPER, true, &[]));
        reads.extend(read("cluster-api", true, &[]));
        assert_eq!(stopped(reads, vec![]).await, None);
    }
}
