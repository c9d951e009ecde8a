//! What a cluster's user and its platform see of it: none of that may be created again, or gone.

use anyhow::Result;
use serde_json::Value;
use testbed::hosted::{Cluster, Guest, Identities, PODS};

use super::machines::Machines;

/// The components that a migration stops and starts, by the beginning of their pods' names.
const STOPPED: [&str; 6] = [
    "control-plane-operator",
    "cluster-api",
    "capi-provider",
    "cluster-autoscaler",
    "machine-approver",
    "hosted-cluster-config-operator",
];

/// Components that end by themselves, and are started again, when a busy machine lets their lease run out.
const WITH_LEASE: [&str; 3] = [
    "kube-controller-manager",
    "kube-scheduler",
    "cluster-version-operator",
];

/// It, by names: the identity of each thing.
#[derive(Debug)]
pub(crate) struct Fabric(Identities);

// === impl Fabric ===

impl Fabric {
    /// What there is now.
    pub(crate) async fn of(
        cluster: &Cluster<'_>,
        guest: &Guest,
        machines: &impl Machines,
    ) -> Result<Self> {
        let admin = &cluster.fixture().testbed.admin;
        let mut all = Identities::of_workers(cluster, guest).await?;
        machines.identify(cluster, &mut all).await?;
        for pod in admin.list(&PODS.within(&cluster.namespace())).await? {
            let name = pod["metadata"]["name"].as_str().unwrap_or_default();
            let of_job = pod["metadata"]["ownerReferences"][0]["kind"] == "Job";
            let begins = |names: &[&str]| names.iter().any(|it| name.starts_with(it));
            if of_job || begins(&STOPPED) {
                continue;
            }
            let known = if begins(&WITH_LEASE) {
                pod["metadata"]["uid"].to_string()
            } else {
                identity(&pod)
            };
            all.add("pod", &pod, known);
        }
        for machine in cluster.machines().await? {
            let known = format!(
                "{} {}",
                machine["spec"]["providerID"], machine["status"]["nodeRef"]["name"]
            );
            all.add("machine", &machine, known);
        }
        for pod in guest.client.list(&PODS.within("default")).await? {
            all.add("the user's pod", &pod, identity(&pod));
        }
        Ok(Self(all))
    }

    /// Fails with all that is not as it was.
    pub(crate) fn is_the_same(&self, now: &Self) -> Result<()> {
        self.0.are_the_same(&now.0)
    }
}

/// Which pod it is, and how often its containers were started.
fn identity(pod: &Value) -> String {
    let containers = pod["status"]["containerStatuses"].as_array();
    let restarts = containers.into_iter().flatten();
    let restarts: u64 = restarts
        .filter_map(|one| one["restartCount"].as_u64())
        .sum();
    format!("{} restarted {restarts} times", pod["metadata"]["uid"])
}
