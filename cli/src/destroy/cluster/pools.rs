//! Node pools that are left of a cluster. They go before it, unless it is deleted before its operator has seen it.

use std::time::{Duration, Instant};

use anyhow::bail;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, DynamicObject, Preconditions};

use crate::hosted::{Hosted, refused};
use crate::install::cluster::status_code;
use crate::install::display::Display;

/// Between two looks.
const INTERVAL: Duration = Duration::from_secs(1);

/// Deletes the node pools of a cluster that is gone, and waits until they are gone as well.
pub(super) async fn delete(
    hosted: &Hosted,
    (namespace, cluster): (&str, &str),
    patience: Duration,
    display: &Display,
) -> anyhow::Result<()> {
    for pool in pools_of(hosted, namespace, cluster).await? {
        let name = pool.name_any();
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: pool.metadata.uid,
                resource_version: None,
            }),
            ..DeleteParams::background()
        };
        match hosted.pools(namespace).delete(&name, &params).await {
            Err(error) if status_code(&error) != Some(404) => {
                let problem = format!("cannot delete NodePool {namespace}/{name}");
                return Err(refused(&error).context(problem));
            }
            Ok(_) | Err(_) => {}
        }
    }
    let deadline = Instant::now() + patience;
    let mut step = display.step(&format!(
        "waiting until the NodePools of {namespace}/{cluster} are gone"
    ));
    loop {
        let left = pools_of(hosted, namespace, cluster).await?;
        let Some(first) = left.first() else {
            step.done("gone");
            return Ok(());
        };
        if Instant::now() >= deadline {
            bail!(
                "NodePool {namespace}/{} still exists after {} s. Its deletion continues: see `kubectl describe nodepool`",
                first.name_any(),
                patience.as_secs()
            );
        }
        step.update(&format!("{} are left", left.len()));
        tokio::time::sleep(INTERVAL).await;
    }
}

async fn pools_of(
    hosted: &Hosted,
    namespace: &str,
    cluster: &str,
) -> anyhow::Result<Vec<DynamicObject>> {
    let pools = hosted.pool_objects(namespace, cluster).await;
    pools.map_err(|error| {
        refused(&error).context(format!(
            "HostedCluster {namespace}/{cluster} is gone, but its NodePools cannot be listed"
        ))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use support::testing::{Answer, Expect, Scenario};

    use super::*;

    const PATH: &str = "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters/nodepools";

    fn pool(name: &str, cluster: &str) -> Value {
        json!({
            "apiVersion": "hypershift.openshift.io/v1beta1",
            "kind": "NodePool",
            "metadata": { "namespace": "clusters", "name": name, "uid": name },
            "spec": {
                "clusterName": cluster,
                "release": { "image": "registry.example.com/release:4.20.1" },
                "management": { "upgradeType": "Replace" },
                "platform": { "type": "None" },
            },
        })
    }

    #[tokio::test]
    async fn pools_of_the_cluster_are_deleted_and_no_others() {
        let all = [pool("a", "one"), pool("b", "two")];
        let list = |pools: &[Value]| Expect::get(PATH).answer(Answer::list(pools));
        let scenario = Scenario::new([
            list(&all),
            Expect::delete(&format!("{PATH}/a"))
                .body(json!({ "preconditions": { "uid": "a" } }))
                .answer(Answer::ok(&all[0])),
            list(&all[1..]),
        ]);
        let hosted = Hosted::new(scenario.client());
        let display = Display::new(true);
        delete(&hosted, ("clusters", "one"), INTERVAL, &display)
            .await
            .unwrap();
        scenario.finish();
    }
}
