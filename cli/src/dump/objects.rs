//! Reads what is dumped: all kinds that an API server has, in all groups, and the logs of pods.

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DynamicObject, ListParams, LogParams};
use kube::discovery::{ApiCapabilities, ApiResource, Discovery, Scope as Reach, verbs};
use kube::{Api, Client};

use super::directory::Directory;
use crate::hosted::refused;
use crate::install::display::Step;

/// Questions that are asked side by side.
const AT_ONCE: usize = 4;
/// Objects of a page.
const PAGE: u32 = 250;
/// Lines of a log, from its end.
const LOG_LINES: i64 = 20_000;
/// Kinds that say nothing of a cluster, or the same again.
const LEFT_OUT: [&str; 3] = ["podmetrics", "nodemetrics", "componentstatuses"];

/// Which objects.
#[derive(Debug, Clone, Copy)]
pub(super) enum Scope<'n> {
    /// Those of a namespace.
    Namespace(&'n str),
    /// All.
    Everything,
}

/// Dumps objects; gives their number.
pub(super) async fn dump(
    client: &Client,
    scope: Scope<'_>,
    directory: &Directory,
    step: &mut Step<'_>,
) -> anyhow::Result<usize> {
    let discovery = Discovery::new(client.clone()).run().await;
    let discovery = discovery
        .map_err(|error| refused(&error).context("cannot find out which kinds there are"))?;
    let kinds: Vec<_> = discovery
        .groups()
        .flat_map(kube::discovery::ApiGroup::recommended_resources)
        .filter(|(resource, capabilities)| wanted(resource, capabilities, scope))
        .collect();
    let mut count = 0;
    let lists = stream::iter(kinds).map(async |(resource, _)| {
        let objects = list(client, scope, &resource).await;
        (resource, objects)
    });
    let mut lists = lists.buffer_unordered(AT_ONCE);
    while let Some((resource, objects)) = lists.next().await {
        let name = qualified(&resource);
        match objects {
            Ok(objects) => {
                count += objects.len();
                write(&objects, &resource, directory)?;
                step.update(&format!("{count} objects"));
            }
            // One kind that may not be read must not hide all others.
            Err(error) => step.update(&format!("left out: {name}: {}", refused(&error))),
        }
    }
    Ok(count)
}

/// Dumps the objects of one kind, as far as it is served and they may be read; gives their number.
pub(super) async fn dump_kind(
    client: &Client,
    scope: Scope<'_>,
    resource: &ApiResource,
    directory: &Directory,
    step: &mut Step<'_>,
) -> anyhow::Result<usize> {
    match list(client, scope, resource).await {
        Ok(objects) => {
            write(&objects, resource, directory)?;
            Ok(objects.len())
        }
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(0),
        Err(error) => {
            let name = qualified(resource);
            step.update(&format!("left out: {name}: {}", refused(&error)));
            Ok(0)
        }
    }
}

fn write(
    objects: &[DynamicObject],
    resource: &ApiResource,
    directory: &Directory,
) -> anyhow::Result<()> {
    let name = qualified(resource);
    for object in objects {
        let namespace = object.metadata.namespace.as_deref();
        let mut value = serde_json::to_value(object)?;
        value["apiVersion"] = resource.api_version.clone().into();
        value["kind"] = resource.kind.clone().into();
        directory.object(namespace, &name, &value)?;
    }
    Ok(())
}

fn wanted(resource: &ApiResource, capabilities: &ApiCapabilities, scope: Scope<'_>) -> bool {
    let reach = match scope {
        Scope::Namespace(_) => capabilities.scope == Reach::Namespaced,
        Scope::Everything => true,
    };
    reach
        && capabilities.supports_operation(verbs::LIST)
        && !LEFT_OUT.contains(&resource.plural.as_str())
}

/// `<plural>` of the core group, `<plural>.<group>` of any other: both groups of Cluster API have the same plurals.
fn qualified(resource: &ApiResource) -> String {
    match resource.group.as_str() {
        "" => resource.plural.clone(),
        group => format!("{}.{group}", resource.plural),
    }
}

async fn list(
    client: &Client,
    scope: Scope<'_>,
    resource: &ApiResource,
) -> kube::Result<Vec<DynamicObject>> {
    let api: Api<DynamicObject> = match scope {
        Scope::Namespace(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
        Scope::Everything => Api::all_with(client.clone(), resource),
    };
    let mut objects = Vec::new();
    let mut params = ListParams::default().limit(PAGE);
    loop {
        let page = api.list(&params).await?;
        objects.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(objects),
        }
    }
}

/// Dumps the logs of a namespace's pods, also of containers that have ended; gives their number.
pub(super) async fn logs(
    client: &Client,
    namespace: &str,
    directory: &Directory,
    step: &mut Step<'_>,
) -> anyhow::Result<usize> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let found = pods.list(&ListParams::default()).await;
    let found = found
        .map_err(|error| refused(&error).context(format!("cannot list pods of {namespace}")))?;
    let wanted: Vec<_> = found.items.iter().flat_map(logs_of).collect();
    step.update(&format!("{} logs", wanted.len()));
    let written: Vec<bool> = stream::iter(wanted)
        .map(async |log| {
            let Ok(text) = pods.logs(&log.pod, &log.params()).await else {
                // It has not started, or its node has forgotten it.
                return Ok::<_, anyhow::Error>(false);
            };
            directory.write(Some(namespace), "logs", &log.file(), text.as_bytes())?;
            Ok(true)
        })
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await?;
    Ok(written.into_iter().filter(|written| *written).count())
}

/// A log.
#[derive(Debug)]
struct Log {
    pod: String,
    container: String,
    previous: bool,
}

/// The logs of a pod: of each container, and of what it was before it was restarted.
fn logs_of(pod: &Pod) -> Vec<Log> {
    let name = pod.metadata.name.clone().unwrap_or_default();
    let status = pod.status.clone().unwrap_or_default();
    let containers = [status.init_container_statuses, status.container_statuses];
    containers
        .into_iter()
        .flatten()
        .flatten()
        .flat_map(|container| {
            let runs: &[bool] = if container.restart_count > 0 {
                &[false, true]
            } else {
                &[false]
            };
            let log = |previous: &bool| Log {
                pod: name.clone(),
                container: container.name.clone(),
                previous: *previous,
            };
            runs.iter().map(log).collect::<Vec<_>>()
        })
        .collect()
}

// === impl Log ===

impl Log {
    fn params(&self) -> LogParams {
        LogParams {
            container: Some(self.container.clone()),
            previous: self.previous,
            tail_lines: Some(LOG_LINES),
            timestamps: true,
            ..LogParams::default()
        }
    }

    fn file(&self) -> String {
        let previous = if self.previous { "-previous" } else { "" };
        format!("{}-{}{previous}.log", self.pod, self.container)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Node;
    use serde_json::json;
    use support::testing::{Answer, Expect, Scenario};

    use super::*;
    use crate::install::display::Display;

    #[test]
    fn containers_that_were_restarted_have_two_logs() {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": { "name": "p" },
            "status": {
                "initContainerStatuses": [status("init", 0)],
                "containerStatuses": [status("main", 2)],
            },
        }))
        .unwrap();
        let files: Vec<_> = logs_of(&pod).iter().map(Log::file).collect();
        assert_eq!(files, ["p-init.log", "p-main.log", "p-main-previous.log"]);
    }

    #[tokio::test]
    async fn kinds_that_may_not_be_read_are_left_out() {
        let parent = tempfile::tempdir().unwrap();
        let root = parent.path().join("dump");
        let directory = Directory::create(&root).unwrap();
        let resource = ApiResource::erase::<Node>(&());
        let display = Display::new(true);
        let node = json!({ "metadata": { "name": "n" } });
        for (answer, expected) in [
            (Answer::error(404, "NotFound"), 0),
            (Answer::error(403, "Forbidden"), 0),
            (Answer::list(&[node]), 1),
        ] {
            let scenario = Scenario::new([Expect::get("/api/v1/nodes").answer(answer)]);
            let (client, mut step) = (scenario.client(), display.step("nodes"));
            let scope = Scope::Everything;
            let dumped = dump_kind(&client, scope, &resource, &directory, &mut step).await;
            assert_eq!(dumped.unwrap(), expected);
            assert_eq!(root.join("cluster/nodes/n.yaml").exists(), expected == 1);
            scenario.finish();
        }
    }

    fn status(name: &str, restarts: i32) -> serde_json::Value {
        json!({ "name": name, "restartCount": restarts, "image": "", "imageID": "", "ready": true })
    }
}
