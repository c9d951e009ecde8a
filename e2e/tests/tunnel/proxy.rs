//! `konnectivity-https-proxy` with the real server and agents: a component of the control plane reaches a Service of the
//! hosted cluster by its name, through the sidecar in its pod.
//!
//! A forwarded port of the pod leads to its loopback address, where the component itself connects to.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::client::Resource;
use testbed::hosted::{Cluster, Fixture, Guest, PODS};
use testbed::node::condition;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::tunnel::commands;
use crate::tunnel::kubectl::Kubectl;

/// A component with the sidecar, and the sidecar's port.
const COMPONENT: &str = "openshift-apiserver";
const PORT: &str = ":8090";
/// A Service of the hosted cluster, and how clients call it.
const SERVICE: &str = "talker";
const TARGET: &str = "talker.default.svc:80";
const SERVICES: Resource<'_> = Resource::new("v1", "services");
/// For one answer. The proxy waits a minute for konnectivity-server.
const PATIENCE: Duration = Duration::from_secs(90);
/// What it answers without a tunnel: at once, or after it has waited.
const NO_TUNNEL: [u16; 2] = [503, 504];

/// The proxy in a pod of a control plane.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Proxy<'a> {
    fixture: &'a Fixture,
    cluster: &'a Cluster<'a>,
}

/// An answer to CONNECT.
#[derive(Debug)]
struct Answer {
    status: u16,
    /// What follows: of the Service, or why there is no connection.
    text: String,
}

/// Makes the Service, in front of the pods that serve a page.
pub(crate) async fn service(guest: &Guest) -> Result<()> {
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "namespace": "default", "name": SERVICE },
        "spec": { "selector": { "app": "talker" }, "ports": [{ "port": 80, "targetPort": 8080 }] },
    });
    let path = SERVICES.within("default");
    guest.client.create(&path, &service).await.map(drop)
}

// === impl Proxy ===

impl<'a> Proxy<'a> {
    /// That of a control plane.
    pub(crate) fn of(fixture: &'a Fixture, cluster: &'a Cluster<'a>) -> Self {
        Self { fixture, cluster }
    }

    /// Waits until a page comes from the Service.
    pub(crate) async fn reaches_a_service(self) -> Result<()> {
        let what = "konnectivity-https-proxy reaches a Service by its name";
        self.fixture
            .stage(what, async || {
                let answer = self.connect().await?;
                ensure!(answer.status == 200, "{answer:?}");
                ensure!(answer.text.ends_with(&commands::said()), "{answer:?}");
                Ok(())
            })
            .await
    }

    /// Waits until the answer is that there is no tunnel.
    pub(crate) async fn reports_a_missing_tunnel(self) -> Result<()> {
        let what = "konnectivity-https-proxy reports that there is no tunnel";
        let answer = self
            .fixture
            .stage(what, async || {
                let answer = self.connect().await?;
                ensure!(NO_TUNNEL.contains(&answer.status), "{answer:?}");
                Ok(answer)
            })
            .await?;
        let text = format!("{what}: {} {}", answer.status, answer.text.trim());
        self.fixture.testbed.progress.note(&text);
        Ok(())
    }

    /// Sends CONNECT, and a request after it if there is a connection.
    async fn connect(self) -> Result<Answer> {
        let pod = self.pod().await?;
        let namespace = format!("--namespace={}", self.cluster.namespace());
        let kubectl = Kubectl::of_management(self.fixture);
        let forwarding = kubectl.forward(&[&pod, PORT, &namespace]).await?;
        let answer = timeout(PATIENCE, ask(forwarding.port)).await;
        answer.context("the proxy did not answer in time")?
    }

    async fn pod(self) -> Result<String> {
        let path = PODS.within(&self.cluster.namespace());
        let path = format!("{path}?labelSelector=app%3D{COMPONENT}");
        let pods = self.fixture.testbed.admin.list(&path).await?;
        let is_ready = |pod: &&Value| condition(pod, "Ready").is_ok();
        let ready = pods.iter().find(is_ready);
        let name = ready.and_then(|pod| pod["metadata"]["name"].as_str());
        name.map(str::to_owned)
            .with_context(|| format!("no pod of {COMPONENT} is ready"))
    }
}

async fn ask(port: u16) -> Result<Answer> {
    let mut stream = BufReader::new(TcpStream::connect(("127.0.0.1", port)).await?);
    let connect = format!("CONNECT {TARGET} HTTP/1.1\r\nHost: {TARGET}\r\n\r\n");
    stream.write_all(connect.as_bytes()).await?;
    let status = head(&mut stream).await?;
    let mut text = String::new();
    if status == 200 {
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await?;
        stream.read_to_string(&mut text).await?;
    } else {
        // The connection stays open for other requests.
        stream.read_line(&mut text).await?;
    }
    Ok(Answer { status, text })
}

/// Reads the head of a response; gives its status.
async fn head(stream: &mut BufReader<TcpStream>) -> Result<u16> {
    let mut first = String::new();
    stream.read_line(&mut first).await?;
    let status = first
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let status = status.with_context(|| format!("the proxy said {first:?}"))?;
    let mut line = first;
    while !line.trim().is_empty() {
        line.clear();
        stream.read_line(&mut line).await?;
    }
    Ok(status)
}
