//! What a cluster consists of while another one changes: none of it may be created again, or gone.

use anyhow::{Context, Result};
use serde_json::Value;
use testbed::hosted::{Cluster, Guest, Identities, PODS};

/// It, by names: the identity of each thing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Neighbour(Identities);

// === impl Neighbour ===

impl Neighbour {
    /// What there is now.
    pub(crate) async fn of(cluster: &Cluster<'_>, guest: &Guest) -> Result<Self> {
        let admin = &cluster.fixture().testbed.admin;
        let mut all = Identities::of_workers(cluster, guest).await?;
        for pod in admin.list(&PODS.within(&cluster.namespace())).await? {
            if stays(&pod) {
                all.add("pod", &pod, uid(&pod));
            }
        }
        for machine in cluster.machines().await? {
            all.add("machine", &machine, uid(&machine));
        }
        Ok(Self(all))
    }

    /// Fails if anything is not as it was.
    pub(crate) async fn is_untouched(&self, cluster: &Cluster<'_>, guest: &Guest) -> Result<()> {
        let now = Self::of(cluster, guest).await?;
        let same = self.0.are_the_same(&now.0);
        same.with_context(|| cluster.name().to_owned())
    }
}

fn uid(object: &Value) -> String {
    object["metadata"]["uid"].to_string()
}

/// A job's pod ends, and another day there is another one; and what is being deleted has no future.
fn stays(pod: &Value) -> bool {
    let metadata = &pod["metadata"];
    metadata["ownerReferences"][0]["kind"] != "Job" && metadata["deletionTimestamp"].is_null()
}
