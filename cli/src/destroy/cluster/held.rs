//! A finalizer that keeps a HostedCluster until its infrastructure is gone: it says what an interrupted command has to
//! continue with.

use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::hosted::{FIELD_MANAGER, Hosted, refused};
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
    let clusters = hosted.clusters(namespace);
    let params = PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    };
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
        let patched = clusters
            .patch_metadata(name, &params, &Patch::Merge(&patch))
            .await;
        match patched {
            Err(error) if status_code(&error) == Some(404) => return Ok(()),
            Err(error) if status_code(&error) == Some(409) && attempt < ATTEMPTS => attempt += 1,
            Err(error) => {
                return Err(refused(&error).context(format!(
                    "failed to change the finalizers of HostedCluster {namespace}/{name}"
                )));
            }
            Ok(_) => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use support::testing::{Answer, Expect, Scenario};

    use super::*;

    const CLUSTER: &str =
        "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters/hostedclusters/a";

    fn cluster(finalizers: &[&str]) -> Value {
        json!({
            "apiVersion": "hypershift.openshift.io/v1beta1",
            "kind": "HostedCluster",
            "metadata": {
                "namespace": "clusters", "name": "a", "resourceVersion": "7", "finalizers": finalizers,
            },
            "spec": {
                "release": { "image": "registry.example.com/release:1" },
                "platform": { "type": "None" },
                "networking": {},
                "services": [],
                "etcd": { "managementType": "Managed" },
                "pullSecret": { "name": "a-pull-secret" },
            },
        })
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
