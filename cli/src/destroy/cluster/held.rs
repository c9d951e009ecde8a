//! A finalizer that keeps a HostedCluster until its infrastructure is gone: it says what an interrupted command has to
//! continue with.

use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use serde_json::json;

use crate::hosted::{Hosted, refused};
use crate::install::cluster::status_code;
use crate::waiting::HELD;

/// Attempts against other writers.
const ATTEMPTS: u32 = 5;

/// Adds the finalizer.
pub(super) async fn hold(hosted: &Hosted, cluster: &HostedCluster) -> anyhow::Result<()> {
    let namespace = cluster.metadata.namespace.as_deref().unwrap_or_default();
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    change(hosted, namespace, name, |finalizers| {
        if !finalizers.iter().any(|it| it == HELD) {
            finalizers.push(HELD.to_owned());
        }
    })
    .await
}

/// Removes the finalizer, if it is there.
pub(super) async fn release(hosted: &Hosted, namespace: &str, name: &str) -> anyhow::Result<()> {
    change(hosted, namespace, name, |finalizers| {
        finalizers.retain(|it| it != HELD);
    })
    .await
}

async fn change(
    hosted: &Hosted,
    namespace: &str,
    name: &str,
    edit: impl Fn(&mut Vec<String>),
) -> anyhow::Result<()> {
    let mut attempt = 1;
    loop {
        let Some(cluster) = hosted.find(namespace, name).await? else {
            return Ok(());
        };
        let before = cluster.metadata.finalizers.unwrap_or_default();
        let mut finalizers = before.clone();
        edit(&mut finalizers);
        if finalizers == before {
            return Ok(());
        }
        // With the version, so that finalizers of others are not lost.
        let patch = json!({ "metadata": {
            "resourceVersion": cluster.metadata.resource_version,
            "finalizers": finalizers,
        } });
        match hosted.patch_cluster(namespace, name, &patch).await {
            Err(error) if status_code(&error) == Some(404) => return Ok(()),
            Err(error) if status_code(&error) == Some(409) && attempt < ATTEMPTS => attempt += 1,
            Err(error) => {
                return Err(refused(&error).context(format!(
                    "failed to change the finalizers of HostedCluster {namespace}/{name}"
                )));
            }
            Ok(()) => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use support::testing::{Answer, Expect, Scenario};

    use super::*;
    use crate::hosted::bare_cluster;

    const CLUSTER: &str =
        "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters/hostedclusters/a";

    fn cluster(finalizers: &[&str]) -> Value {
        let mut cluster = bare_cluster("a");
        cluster["metadata"]["resourceVersion"] = json!("7");
        cluster["metadata"]["finalizers"] = json!(finalizers);
        cluster
    }

    #[tokio::test]
    async fn the_finalizer_is_removed_and_others_stay() {
        let patch = json!({ "metadata": { "resourceVersion": "7", "finalizers": ["other"] } });
        let scenario = Scenario::new([
            Expect::get(CLUSTER).answer(Answer::ok(&cluster(&["other", HELD]))),
            Expect::patch(CLUSTER)
                .body(patch)
                .answer(Answer::ok(&cluster(&["other"]))),
        ]);
        let hosted = Hosted::new(scenario.client());
        release(&hosted, "clusters", "a").await.unwrap();
        scenario.finish();
    }

    #[tokio::test]
    async fn a_cluster_without_it_is_not_written() {
        let answer = Answer::ok(&cluster(&["other"]));
        let scenario = Scenario::new([Expect::get(CLUSTER).answer(answer)]);
        let hosted = Hosted::new(scenario.client());
        release(&hosted, "clusters", "a").await.unwrap();
        scenario.finish();
    }
}
