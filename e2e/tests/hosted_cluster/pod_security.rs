//! The pods of a control plane run at the pod security level `restricted`, as the API server enforces it.

use anyhow::{Result, ensure};
use serde_json::Value;
use testbed::client::Resource;
use testbed::hosted::{Cluster, Fixture, PODS};

const EVENTS: Resource<'_> = Resource::new("v1", "events");
/// Fewer pods are no control plane.
const PODS_AT_LEAST: usize = 8;

/// The namespace has the level, and no pod was rejected for it. Check T05.
pub(crate) async fn is_restricted(fixture: &Fixture, cluster: &Cluster<'_>) -> Result<()> {
    let admin = &fixture.testbed.admin;
    let namespace = cluster.namespace();
    let labels = &admin
        .get(&format!("/api/v1/namespaces/{namespace}"))
        .await?["metadata"]["labels"];
    let level = &labels["pod-security.kubernetes.io/enforce"];
    ensure!(level == "restricted", "the level of {namespace} is {level}");
    let pods = admin.list(&PODS.within(&namespace)).await?;
    ensure!(pods.len() >= PODS_AT_LEAST, "there are {} pods", pods.len());
    for pod in &pods {
        let (name, phase) = (&pod["metadata"]["name"], &pod["status"]["phase"]);
        let runs = phase == "Running" || phase == "Succeeded";
        ensure!(runs, "{name} is {phase}: {}", pod["status"]);
    }
    let events = admin.list(&EVENTS.within(&namespace)).await?;
    let violates = |event: &&Value| {
        let message = event["message"].as_str().unwrap_or_default();
        message.contains("violates PodSecurity")
    };
    let rejected = events.iter().find(violates);
    ensure!(rejected.is_none(), "a pod was rejected: {rejected:?}");
    let step = format!("{} pods run at level restricted", pods.len());
    fixture.testbed.progress.note(&step);
    Ok(())
}
