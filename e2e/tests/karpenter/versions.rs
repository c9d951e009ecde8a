//! Nodes have the release of their control plane once that is rolled out, and versions that do not go with it are refused.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testbed::conditions;
use testbed::hosted::CONTROL_PLANES;
use testbed::wait;

use super::auto_node::{AutoNode, Machine};
use crate::hosted_cluster::control_plane;
use crate::hosted_cluster::observe::meanwhile;

/// The release of the upgrade.
const NEWER: &str = "4.22.1";
/// Versions that nodes must not have then: too old, and newer than the control plane.
const REFUSED: [&str; 2] = ["4.10.0", "4.99.0"];
/// How long a response may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a node is watched that must stay.
const WATCHED: Duration = Duration::from_secs(30);

/// The control plane is upgraded; its node stays until then, and is replaced. Gives the new one.
pub(super) async fn follow_the_control_plane(
    auto_node: &AutoNode<'_>,
    before: &Machine,
) -> Result<Machine> {
    let AutoNode {
        fixture,
        cluster,
        guest,
    } = auto_node;
    let registry = &fixture.testbed.registry;
    let newer = fixture.pushed.release(registry, NEWER).await?;
    let upgraded = control_plane::upgrades(fixture, cluster, guest, &newer);
    meanwhile(upgraded, async || {
        stays_until_completed(auto_node, before).await
    })
    .await?;
    let what = "the node is replaced after the upgrade of the control plane";
    let machine = auto_node.has_a_node(what, Some(before)).await?;
    auto_node.runs_pods(2).await?;
    fixture
        .stage("the class has the release of the cluster", async || {
            let class = auto_node.class().await?;
            let version = &class["status"]["version"];
            ensure!(*version == NEWER, "it has {version}");
            Ok(())
        })
        .await?;
    auto_node.class_is_ready().await?;
    Ok(machine)
}

/// A class with a version that does not go with the control plane is not ready, and its node stays as it is.
pub(super) async fn of_classes_are_refused(
    auto_node: &AutoNode<'_>,
    machine: &Machine,
) -> Result<()> {
    let before = auto_node.ec2_class().await?;
    for version in REFUSED {
        let change = json!({ "spec": { "version": version } });
        auto_node.changes_class(&change).await?;
        is_refused(auto_node, version).await?;
    }
    wait::throughout(
        "a node whose class is not ready stays",
        WATCHED,
        async || {
            let now = auto_node.ec2_class().await?;
            ensure!(now["spec"] == before["spec"], "{}", now["spec"]);
            has_only(&auto_node.claims().await?, machine)
        },
    )
    .await?;
    auto_node.runs_pods(2).await?;
    let change = json!({ "spec": { "version": null } });
    auto_node.changes_class(&change).await?;
    auto_node.class_is_ready().await?;
    has_only(&auto_node.claims().await?, machine)
}

async fn is_refused(auto_node: &AutoNode<'_>, version: &str) -> Result<()> {
    let what = format!("version {version} of a class is refused");
    auto_node
        .fixture
        .stage(&what, async || {
            let class = auto_node.class().await?;
            let generation = &class["metadata"]["generation"];
            for (kind, reason) in [
                ("SupportedVersionSkew", "UnsupportedSkew"),
                ("Ready", "VersionNotResolved"),
            ] {
                let found = conditions::find(&class, kind).unwrap_or(&Value::Null);
                ensure!(
                    found["status"] == "False"
                        && found["reason"] == reason
                        && found["observedGeneration"] == *generation,
                    "{kind} is {found} at generation {generation}"
                );
            }
            Ok(())
        })
        .await
}

/// The control plane is the first: while it has another release, no node is replaced.
async fn stays_until_completed(auto_node: &AutoNode<'_>, machine: &Machine) -> Result<()> {
    let AutoNode {
        fixture, cluster, ..
    } = auto_node;
    let path = CONTROL_PLANES.named(&cluster.namespace(), cluster.name());
    let requested = async {
        let claims = auto_node.claims().await?;
        // After them: what is not complete now was not complete then.
        let control_plane = fixture.testbed.admin.get(&path).await?;
        anyhow::Ok((claims, control_plane))
    };
    // While the API server is away, nothing can be seen.
    let Ok(Ok((claims, control_plane))) = tokio::time::timeout(PATIENCE, requested).await else {
        return Ok(());
    };
    if has_completed(&control_plane) {
        return Ok(());
    }
    has_only(&claims, machine)
}

/// Whether a control plane has rolled out the newer release.
fn has_completed(control_plane: &Value) -> bool {
    let history = control_plane["status"]["versionStatus"]["history"].as_array();
    let mut history = history.into_iter().flatten();
    history.any(|entry| entry["version"] == NEWER && entry["state"] == "Completed")
}

/// That there is no NodeClaim but that of a machine.
fn has_only(claims: &[Value], machine: &Machine) -> Result<()> {
    let uids: Vec<_> = claims
        .iter()
        .map(|claim| &claim["metadata"]["uid"])
        .collect();
    let is_only = uids.iter().all(|uid| **uid == machine.uid.as_str());
    ensure!(
        uids.len() == 1 && is_only,
        "the NodeClaims are {uids:?}, and {} was the only one",
        machine.uid
    );
    Ok(())
}
