//! How the connections of both directions are reported, up to the HostedCluster.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::jiff::Timestamp;
use serde_json::json;
use testbed::client::{Patch, Resource};
use testbed::conditions::find;
use testbed::hosted::{Cluster, Fixture, Guest};

/// From the control plane to nodes.
pub(crate) const DATA_PLANE: &str = "DataPlaneConnectionAvailable";
/// From nodes to the control plane.
const CONTROL_PLANE: &str = "ControlPlaneConnectionAvailable";
/// Longer than a success of the checker counts.
const LONG_AGO: Duration = Duration::from_mins(6);
const CONFIG_MAPS: Resource<'_> = Resource::new("v1", "configmaps");
const DAEMON_SETS: Resource<'_> = Resource::new("apps/v1", "daemonsets");

/// Waits until both are true.
pub(crate) async fn are_true(cluster: &Cluster<'_>) -> Result<()> {
    for kind in [DATA_PLANE, CONTROL_PLANE] {
        is(cluster, kind, "True", "AsExpected").await?;
    }
    Ok(())
}

/// Waits for a condition of the HostedCluster.
pub(crate) async fn is(
    cluster: &Cluster<'_>,
    kind: &str,
    status: &str,
    reason: &str,
) -> Result<()> {
    let what = format!("{kind} is {status}, because of {reason}");
    cluster
        .fixture()
        .stage(&what, async || has(cluster, kind, status, reason).await)
        .await
}

async fn has(cluster: &Cluster<'_>, kind: &str, status: &str, reason: &str) -> Result<()> {
    let seen = cluster.seen().await?;
    let condition = find(&seen, kind).context("it is absent")?;
    ensure!(
        condition["status"] == status && condition["reason"] == reason,
        "{condition}"
    );
    Ok(())
}

/// Without names in the hosted cluster, its pods do not reach the API server, and the last success gets old. Time is
/// moved, and not waited for.
pub(crate) async fn follow_the_report(
    fixture: &Fixture,
    cluster: &Cluster<'_>,
    guest: &Guest,
) -> Result<()> {
    name_service_runs_on(guest, json!({ "testbed.test/nowhere": "" })).await?;
    let report = CONFIG_MAPS.named("kube-system", "control-plane-connectivity-check");
    let what = format!("{CONTROL_PLANE} is False, because the last success is old");
    fixture
        .stage(&what, async || {
            let last = Timestamp::now() - LONG_AGO;
            let last = Timestamp::from_second(last.as_second())?;
            let old = json!({ "data": { "lastSucceeded": last.to_string() } });
            // A checker that was on its way may have written its success.
            guest.client.patch(&report, Patch::Merge, &old).await?;
            has(cluster, CONTROL_PLANE, "False", "ConnectionCheckStale").await
        })
        .await?;
    // The other direction does not depend on it.
    is(cluster, DATA_PLANE, "True", "AsExpected").await?;
    name_service_runs_on(guest, json!({ "testbed.test/nowhere": null })).await?;
    is(cluster, CONTROL_PLANE, "True", "AsExpected").await
}

async fn name_service_runs_on(guest: &Guest, labels: serde_json::Value) -> Result<()> {
    let change = json!({ "spec": { "template": { "spec": { "nodeSelector": labels } } } });
    let path = DAEMON_SETS.named("openshift-dns", "dns-default");
    guest.client.patch(&path, Patch::Merge, &change).await?;
    Ok(())
}
