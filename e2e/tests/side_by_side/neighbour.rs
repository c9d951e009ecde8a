//! What a cluster consists of while another one changes: none of it may be made anew, or gone.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use e2e::hosted::{Cluster, Guest, PODS};
use serde_json::Value;

/// It, by names: the identity of each thing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Neighbour(BTreeMap<String, String>);

// === impl Neighbour ===

impl Neighbour {
    /// What there is now.
    pub(crate) async fn of(cluster: &Cluster<'_>, guest: &Guest) -> Result<Self> {
        let admin = &cluster.ground().testbed.admin;
        let mut all = BTreeMap::new();
        for pod in admin.list(&PODS.within(&cluster.namespace())).await? {
            if stays(&pod) {
                all.insert(named("pod", &pod), uid(&pod));
            }
        }
        for machine in cluster.machines().await? {
            all.insert(named("machine", &machine), uid(&machine));
        }
        for node in guest.nodes().await? {
            all.insert(named("node", &node), uid(&node));
        }
        for instance in cluster.instances().await? {
            all.insert(format!("instance {}", instance.id), instance.state);
        }
        Ok(Self(all))
    }

    /// Fails if anything is not as it was.
    pub(crate) async fn is_untouched(&self, cluster: &Cluster<'_>, guest: &Guest) -> Result<()> {
        let now = Self::of(cluster, guest).await?;
        let changed: Vec<_> = self
            .0
            .iter()
            .filter(|(name, before)| now.0.get(*name) != Some(before))
            .map(|(name, before)| format!("{name}: {before} -> {:?}", now.0.get(name)))
            .collect();
        let added: Vec<_> = now
            .0
            .keys()
            .filter(|name| !self.0.contains_key(*name))
            .collect();
        ensure!(
            changed.is_empty() && added.is_empty(),
            "{}: changed are {changed:#?}, new are {added:?}",
            cluster.name()
        );
        Ok(())
    }
}

fn named(kind: &str, object: &Value) -> String {
    format!("{kind} {}", object["metadata"]["name"])
}

fn uid(object: &Value) -> String {
    object["metadata"]["uid"].to_string()
}

/// A job's pod ends, and another day there is another one; and what is being deleted has no future.
fn stays(pod: &Value) -> bool {
    let metadata = &pod["metadata"];
    metadata["ownerReferences"][0]["kind"] != "Job" && metadata["deletionTimestamp"].is_null()
}
