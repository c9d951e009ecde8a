//! The end of a hosted cluster, and the proof that nothing of it is left.

use anyhow::{Result, bail, ensure};
use serde_json::Value;

use super::{Cluster, NAMESPACE, Platform};
use crate::conditions;

/// What is kept of events about objects that are gone is no remainder.
const EVENTS: &str = "/registry/events/";

// === impl Cluster ===

impl Cluster<'_> {
    /// Destroys it by the command that users have, after what holds of every cluster held of it to the end; nothing of it
    /// is left, here or where its machines were.
    pub async fn destroy(&self) -> Result<()> {
        self.holds_invariants(&self.guest().await?, true).await?;
        self.is_destroyed().await
    }

    /// The same of a cluster in which a test has killed things, so that containers have restarted.
    pub async fn is_destroyed(&self) -> Result<()> {
        let word = self.platform().word();
        let mut words = ["destroy", "cluster", word, "--name", self.name()]
            .map(str::to_owned)
            .to_vec();
        if matches!(self.platform(), Platform::Aws) {
            // The network is the fixture's, and other clusters use it.
            words.push("--preserve-infra".to_owned());
        }
        let what = format!("{}: hcp destroy cluster", self.name());
        let step = self.fixture.testbed.progress.step(what);
        self.fixture.hcp(&words, &[]).await?;
        step.done();
        self.is_gone().await
    }

    /// Waits until it is gone, and proves that nothing of it is left, here or where its machines were.
    pub async fn is_gone(&self) -> Result<()> {
        let admin = &self.fixture.testbed.admin;
        let own = format!("/api/v1/namespaces/{}", self.namespace());
        self.stage("it is gone", async || {
            for path in [self.path(), self.pool_path(), own.clone()] {
                if let Some(left) = admin.find(&path).await? {
                    bail!("{path} is there, {}", held(&left));
                }
            }
            Ok(())
        })
        .await?;
        self.stage("no machine runs for it", async || {
            let left = self.platform().running(self).await?;
            ensure!(left.is_empty(), "{left:?}");
            Ok(())
        })
        .await?;
        // Volumes are given back by their provisioner, and what others own is collected, after the namespace has gone.
        self.stage("nothing of it is left in etcd", async || {
            let left = self.left().await?;
            ensure!(left.is_empty(), "{left:?}");
            Ok(())
        })
        .await?;
        self.metrics_are_gone().await
    }

    /// The keys in etcd that are of this cluster by their names, and the volumes that its namespace has claimed.
    async fn left(&self) -> Result<Vec<String>> {
        let testbed = &self.fixture.testbed;
        let mut left = testbed.control_plane.etcd.keys("/registry/").await?;
        let names = [self.namespace(), self.infra()];
        left.retain(|key| is_of(key, &names, self.name()));
        let volumes = testbed.admin.list("/api/v1/persistentvolumes").await?;
        let claimed = volumes
            .iter()
            .filter(|volume| volume["spec"]["claimRef"]["namespace"] == self.namespace());
        left.extend(claimed.map(|volume| volume["metadata"]["name"].to_string()));
        Ok(left)
    }
}

fn is_of(key: &str, names: &[String; 2], cluster: &str) -> bool {
    if key.starts_with(EVENTS) {
        return false;
    }
    let in_users_namespace = key
        .split_once(&format!("/{NAMESPACE}/"))
        .is_some_and(|(_, name)| name == cluster || name.starts_with(&format!("{cluster}-")));
    in_users_namespace || names.iter().any(|name| key.contains(name))
}

/// By whom an object is held, and what it says about it.
fn held(object: &Value) -> String {
    let finalizers = &object["metadata"]["finalizers"];
    format!("held by {finalizers}: {}", conditions::untrue(object))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_of_a_cluster_are_found_by_its_name() {
        let names = ["clusters-one".to_owned(), "one-x7k2p".to_owned()];
        for (key, expected) in [
            ("/registry/secrets/clusters/one-pull-secret", true),
            ("/registry/pods/clusters-one/etcd-0", true),
            ("/registry/clusterroles/clusters-one-cpo", true),
            ("/registry/namespaces/clusters-one", true),
            (
                "/registry/hypershift.openshift.io/hostedclusters/clusters/one",
                true,
            ),
            ("/registry/events/clusters/one.18a", false),
            ("/registry/events/default/clusters-one.18a", false),
            ("/registry/secrets/clusters/other-pull-secret", false),
            ("/registry/pods/clusters-other/etcd-0", false),
        ] {
            assert_eq!(is_of(key, &names, "one"), expected, "{key}");
        }
    }
}
