//! What users do with pods: logs, exec, attach, port-forward. All of it goes from the API server to a kubelet.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use testbed::client::ApiClient;
use testbed::fixtures;
use testbed::hosted::{Fixture, Guest, PODS};
use testbed::node::condition;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::tunnel::kubectl::Kubectl;

/// What pods say.
const GREETING: &str = "a pod on a node";
/// For one answer. Generous: a busy machine is no failure.
const PATIENCE: Duration = Duration::from_mins(1);

/// Waits until a pod runs on each of so many nodes; gives their names.
pub(crate) async fn pods(
    fixture: &Fixture,
    client: &ApiClient,
    nodes: usize,
) -> Result<Vec<String>> {
    let image = fixture.pushed.components.get("cli").context("cli")?;
    let values = [("IMAGE", image.as_str()), ("GREETING", GREETING)];
    let objects = fixtures::render("hosted_cluster/talkers", &values)?;
    client.apply(&objects).await?;
    let path = format!("{}?labelSelector=app%3Dtalker", PODS.within("default"));
    fixture
        .stage("a pod of the user's runs on each node", async || {
            let pods = client.list(&path).await?;
            ensure!(pods.len() == nodes, "there are {} pods", pods.len());
            pods.iter().try_for_each(|pod| condition(pod, "Ready"))?;
            let names = pods.iter().map(|pod| pod["metadata"]["name"].as_str());
            let names = names.map(|name| name.map(str::to_owned).context("no name"));
            names.collect()
        })
        .await
}

/// Each command works with each pod.
pub(crate) async fn work(fixture: &Fixture, guest: &Guest, pods: &[String]) -> Result<()> {
    let kubectl = Kubectl::of(fixture, guest);
    for pod in pods {
        // Agents connect when they are ready, and not before; on a busy machine, an answer may be late.
        let what = format!("logs and exec work with {pod}");
        fixture
            .stage(&what, async || prints(kubectl, pod).await)
            .await?;
        // After the log was read, in which the line of this one is from now on.
        let what = format!("attach works with {pod}");
        fixture
            .stage(&what, async || attach(kubectl, pod).await)
            .await?;
        let what = format!("port-forward works with {pod}");
        fixture
            .stage(&what, async || forward(kubectl, pod).await)
            .await?;
    }
    Ok(())
}

/// A pod's log is as it should be, and so is what a command in it prints.
async fn prints(kubectl: Kubectl<'_>, pod: &str) -> Result<()> {
    let log = kubectl.says(&["logs", pod, "--container=echo"]).await?;
    ensure!(log == said(), "the log is {log:?}");
    let answer = kubectl.exec(pod, &["echo", "through the tunnel"]).await?;
    ensure!(answer == "through the tunnel\n", "{answer:?}");
    Ok(())
}

/// The line that each pod writes to its log, and serves as its page.
pub(crate) fn said() -> String {
    format!("this is {GREETING}\n")
}

/// Has a pod repeat a line.
async fn attach(kubectl: Kubectl<'_>, pod: &str) -> Result<()> {
    let words = ["attach", pod, "--container=echo", "--stdin"];
    let mut attached = kubectl.command(&words).stdin(Stdio::piped()).spawn()?;
    let mut input = attached.stdin.take().context("no input")?;
    let mut output = BufReader::new(attached.stdout.take().context("no output")?);
    input.write_all(b"repeat this\n").await?;
    let mut line = String::new();
    timeout(PATIENCE, output.read_line(&mut line)).await??;
    ensure!(line == "repeat this\n", "it said {line:?}");
    Ok(())
}

/// Reads a pod's page through a forwarded port.
async fn forward(kubectl: Kubectl<'_>, pod: &str) -> Result<()> {
    let forwarding = kubectl.forward(&[pod, ":8080"]).await?;
    let mut stream = TcpStream::connect(("127.0.0.1", forwarding.port)).await?;
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await?;
    let mut page = String::new();
    timeout(PATIENCE, stream.read_to_string(&mut page)).await??;
    ensure!(page.ends_with(&said()), "the page is {page:?}");
    Ok(())
}
