//! Pods of our own image on two nodes: as an ordinary user, on a file system that they cannot write, under `restricted`.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use testbed::client::Resource;
use testbed::fixtures;
use testbed::images::Image;
use testbed::node::{NodeTestbed, condition};
use testbed::wait;

use crate::node::can_run;

const NAMESPACE: &str = "pods";
const PODS: Resource<'_> = Resource::new("v1", "pods");
/// Generous: a busy machine is no failure.
const WITHIN: Duration = Duration::from_mins(2);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_run_our_image_and_find_each_other_by_name() -> Result<()> {
    if !can_run() {
        return Ok(());
    }
    let testbed = NodeTestbed::builder("node-pods")
        .nodes(2)
        .images(&[Image::CapiProxy])
        .start()
        .await?;
    let outcome = scenario(&testbed).await;
    testbed.finish(outcome)
}

async fn scenario(testbed: &NodeTestbed) -> Result<()> {
    let values = [
        ("NAMESPACE", NAMESPACE),
        ("PROXY_IMAGE", testbed.image(Image::CapiProxy)?),
        ("RESOLVE_IMAGE", &testbed.resolve_image()),
    ];
    testbed
        .admin
        .apply(&fixtures::render("node/pods", &values)?)
        .await?;
    let proxy = wait::until("the proxy's pod to be ready", WITHIN, async || {
        let pod = testbed.admin.get(&PODS.named(NAMESPACE, "proxy")).await?;
        condition(&pod, "Ready")?;
        Ok(pod)
    })
    .await?;
    ensure!(proxy["status"]["containerStatuses"][0]["restartCount"] == 0);
    logs_and_exec(testbed).await?;
    privileged_is_refused(testbed).await?;
    for node in ["node-1", "node-2"] {
        names_are_resolved(testbed, node).await?;
    }
    Ok(())
}

async fn logs_and_exec(testbed: &NodeTestbed) -> Result<()> {
    let logs = testbed
        .kubectl_says(["-n", NAMESPACE, "logs", "proxy"])
        .await?;
    ensure!(logs.contains("Serving clients"), "{logs:?}");
    let command = [
        "-n",
        NAMESPACE,
        "exec",
        "proxy",
        "--",
        "/capi-proxy",
        "--version",
    ];
    let version = testbed.kubectl_says(command).await?;
    ensure!(version.starts_with("capi-proxy "), "{version:?}");
    Ok(())
}

/// The namespace is `restricted`: the pods above fit, and this one does not.
async fn privileged_is_refused(testbed: &NodeTestbed) -> Result<()> {
    let mut pod = testbed.admin.get(&PODS.named(NAMESPACE, "proxy")).await?;
    let mut copy = serde_json::json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "namespace": NAMESPACE, "name": "privileged" },
    });
    copy["spec"] = pod["spec"].take();
    copy["spec"]["nodeName"] = Value::Null;
    copy["spec"]["containers"][0]["securityContext"]["privileged"] = Value::Bool(true);
    copy["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = Value::Null;
    let refused = testbed.admin.create(&PODS.within(NAMESPACE), &copy).await;
    let error = refused.err().context("a privileged pod was taken")?;
    ensure!(format!("{error:#}").contains("PodSecurity"), "{error:#}");
    Ok(())
}

async fn names_are_resolved(testbed: &NodeTestbed, node: &str) -> Result<()> {
    let name = format!("resolve-{node}");
    let path = PODS.named(NAMESPACE, &name);
    wait::until(&format!("the look-up on {node}"), WITHIN, async || {
        let pod = testbed.admin.get(&path).await?;
        let phase = pod["status"]["phase"].as_str().unwrap_or_default();
        ensure!(
            ["Succeeded", "Failed"].contains(&phase),
            "the pod is {phase:?}"
        );
        Ok(())
    })
    .await?;
    let said = testbed
        .kubectl_says(["-n", NAMESPACE, "logs", &name])
        .await?;
    let expected = testbed.namespaces().subnets().api_service().to_string();
    ensure!(said.trim() == expected, "on {node}: {said:?}");
    Ok(())
}
