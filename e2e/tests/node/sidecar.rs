//! The proxy as a native sidecar, next to a program that sends it ten requests a second.
//!
//! It is restarted alone when it crashes, continues without an error when the kubelet replaces its token, trusts a new
//! authority as soon as its pod does, and leaves last.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use control_plane_component::sidecar::{self, Sidecar, config_map};
use k8s_openapi::api::apps::v1::Deployment;
use rustix::process::{Pid, Signal};
use serde_json::{Value, json};
use testbed::client::{Patch, Resource};
use testbed::fixtures;
use testbed::images::{Archive, Contents, File, Image, StaticProgram, build_static};
use testbed::node::{NodeTestbed, condition};
use testbed::wait;

use crate::node::{authority, can_run, processes};

const NAMESPACE: &str = "sidecar";
const POD: &str = "controller";
const PODS: Resource<'_> = Resource::new("v1", "pods");
const ACCOUNT: &str = "system:serviceaccount:sidecar:controller";
/// Where audit events have the identity of a token.
const CREDENTIAL: &str = "/user/extra/authentication.kubernetes.io~1credential-id/0";
/// Generous: a busy machine is no failure, and the kubelet looks at volumes once a minute.
const WITHIN: Duration = Duration::from_mins(4);

/// Checks F07 and S14.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sidecar_survives_crashes_and_credential_rotation() -> Result<()> {
    if !can_run() {
        return Ok(());
    }
    let mut testbed = NodeTestbed::builder("node-sidecar")
        .images(&[Image::CapiProxy])
        .start()
        .await?;
    let outcome = scenario(&mut testbed).await;
    testbed.finish(outcome)
}

async fn scenario(testbed: &mut NodeTestbed) -> Result<()> {
    create(testbed).await?;
    ready(testbed, 0).await?;
    crashes_alone(testbed).await?;
    takes_a_new_token(testbed).await?;
    trusts_a_new_authority(testbed).await?;
    leaves_last(testbed).await
}

/// A pod of the template that the operator would make; a finalizer keeps its status readable after its end.
async fn create(testbed: &NodeTestbed) -> Result<()> {
    let ask = testbed
        .registry
        .push("ask", &ask_image(testbed).await?)
        .await?;
    let values = [("NAMESPACE", NAMESPACE), ("ASK_IMAGE", ask.as_str())];
    let mut objects = fixtures::render("node/sidecar", &values)?;
    let deployment = objects.pop().context("no template")?;
    objects.push(serde_json::to_value(config_map(NAMESPACE))?);
    let last = objects.len() - 1;
    objects[last]["apiVersion"] = json!("v1");
    objects[last]["kind"] = json!("ConfigMap");
    testbed.admin.apply(&objects).await?;
    let mut deployment: Deployment = serde_json::from_value(deployment)?;
    let image = testbed.image(Image::CapiProxy)?.to_owned();
    Sidecar { image }.add_to(&mut deployment)?;
    let spec = deployment.spec.context("no spec")?.template.spec;
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "namespace": NAMESPACE, "name": POD, "finalizers": ["testbed.test/look"] },
        "spec": spec,
    });
    testbed.admin.create(&PODS.within(NAMESPACE), &pod).await?;
    Ok(())
}

async fn ask_image(testbed: &NodeTestbed) -> Result<Archive> {
    let program = StaticProgram {
        package: "pod-tools",
        name: "ask",
    };
    let built = build_static(&program, &testbed.progress).await?;
    Archive::of(&Contents {
        entrypoint: "/ask".to_owned(),
        command: &[],
        files: vec![File::program("/ask", built)],
    })
}

async fn pod(testbed: &NodeTestbed) -> Result<Value> {
    testbed.admin.get(&PODS.named(NAMESPACE, POD)).await
}

/// Waits until the pod is ready, and the proxy has been restarted so many times. The controller never is.
async fn ready(testbed: &NodeTestbed, restarts: u64) -> Result<()> {
    wait::until("the pod to be ready", WITHIN, async || {
        let pod = pod(testbed).await?;
        let status = &pod["status"];
        let proxy = &status["initContainerStatuses"][0];
        ensure!(proxy["name"] == sidecar::NAME, "{proxy}");
        ensure!(
            proxy["restartCount"] == restarts,
            "{}",
            proxy["restartCount"]
        );
        ensure!(status["containerStatuses"][0]["restartCount"] == 0);
        condition(&pod, "Ready")?;
        let said = said(testbed).await?;
        let last = said.last().map(String::as_str).unwrap_or_default();
        ensure!(
            last == "answered 200",
            "the controller's last line is {last:?}"
        );
        Ok(())
    })
    .await
}

/// What the controller has printed.
async fn said(testbed: &NodeTestbed) -> Result<Vec<String>> {
    let args = ["-n", NAMESPACE, "logs", POD, "-c", "controller"];
    let text = testbed.kubectl_says(args).await?;
    Ok(text.lines().map(str::to_owned).collect())
}

async fn crashes_alone(testbed: &NodeTestbed) -> Result<()> {
    let step = testbed.progress.step("the proxy is killed");
    let proxy = process(testbed).await?;
    rustix::process::kill_process(proxy, Signal::KILL)?;
    ready(testbed, 1).await?;
    step.done();
    Ok(())
}

/// The proxy's process, as it is outside of the pod.
async fn process(testbed: &NodeTestbed) -> Result<Pid> {
    let pod = pod(testbed).await?;
    let uid = pod["metadata"]["uid"]
        .as_str()
        .context("the pod has no uid")?;
    processes::in_pod(uid, "/capi-proxy")
}

/// A kubelet that is restarted requests a new token: the proxy takes it, and no client notices.
async fn takes_a_new_token(testbed: &mut NodeTestbed) -> Result<()> {
    let step = testbed.progress.step("the kubelet replaces the token");
    let (before, lines) = (credentials(testbed)?, said(testbed).await?);
    ensure!(
        !before.is_empty(),
        "the audit log has no token of {ACCOUNT}"
    );
    testbed.nodes[0].kubelet.restart().await?;
    wait::until("a new token in use", WITHIN, async || {
        let now = credentials(testbed)?;
        ensure!(now.len() > before.len(), "only {before:?}");
        Ok(())
    })
    .await?;
    let after = said(testbed).await?;
    ensure!(lines == after, "the controller noticed: {after:?}");
    ready(testbed, 1).await?;
    step.done();
    Ok(())
}

/// The tokens with which the account has been seen, by their identities.
fn credentials(testbed: &NodeTestbed) -> Result<BTreeSet<String>> {
    let log: PathBuf = testbed.path().join("logs/audit.log");
    let text = std::fs::read_to_string(&log).context("the audit log")?;
    // The last line may not be complete.
    let events = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    Ok(events
        .filter(|event| event["user"]["username"] == ACCOUNT)
        .filter_map(|event| Some(event.pointer(CREDENTIAL)?.as_str()?.to_owned()))
        .collect())
}

/// S14: the API server gets a certificate of another authority. While it starts, there are no responses; then all is as before,
/// with the same proxy.
async fn trusts_a_new_authority(testbed: &mut NodeTestbed) -> Result<()> {
    let step = testbed
        .progress
        .step("the API server changes its authority");
    let proxy = process(testbed).await?;
    authority::change(testbed, NAMESPACE, proxy.as_raw_nonzero().get()).await?;
    ready(testbed, 1).await?;
    ensure!(process(testbed).await? == proxy, "the proxy was restarted");
    step.done();
    Ok(())
}

/// F07: after SIGTERM, the controller continues for seconds and gets responses; then the proxy ends without an error.
async fn leaves_last(testbed: &NodeTestbed) -> Result<()> {
    let step = testbed.progress.step("the pod ends");
    let path = PODS.named(NAMESPACE, POD);
    testbed.admin.delete(&path).await?;
    let (controller, proxy) = wait::until("both containers to end", WITHIN, async || {
        let status = pod(testbed).await?["status"].take();
        let ended = |container: &Value| {
            let state = container["state"]["terminated"].clone();
            ensure!(!state.is_null(), "{} runs", container["name"]);
            Ok(state)
        };
        Ok((
            ended(&status["containerStatuses"][0])?,
            ended(&status["initContainerStatuses"][0])?,
        ))
    })
    .await?;
    ensure!(controller["exitCode"] == 0, "{controller}");
    let words = controller["message"].as_str().unwrap_or_default();
    ensure!(
        words.contains(" 0 failures") && !words.starts_with("0 "),
        "{words:?}"
    );
    ensure!(proxy["exitCode"] == 0, "{proxy}");
    let at = |state: &Value| state["finishedAt"].as_str().map(str::to_owned);
    // Times of one form sort as texts.
    ensure!(
        at(&proxy) >= at(&controller),
        "{proxy} ended before {controller}"
    );
    let release = json!({ "metadata": { "finalizers": null } });
    testbed.admin.patch(&path, Patch::Merge, &release).await?;
    step.done();
    Ok(())
}
