//! What requests through the tunnel meet when a part of it fails: which error, and for how long.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use testbed::hosted::{Cluster, Fixture, Guest, PODS};
use testbed::node::condition;
use testbed::wait::seconds;

use crate::tunnel::attempts::{Client, Request, while_doing};
use crate::tunnel::conditions::{self, DATA_PLANE};
use crate::tunnel::kubectl::Kubectl;
use crate::tunnel::proxy::Proxy;

/// The port of Routes.
const ROUTES: &str = "443";
/// How long agents are cut off, at least.
const CUT_OFF: Duration = Duration::from_mins(1);

/// One agent ends at once; the other one serves all nodes meanwhile.
pub(crate) async fn agent_dies(fixture: &Fixture, guest: &Guest, pods: &[String]) -> Result<()> {
    let requests = Request::in_each(pods);
    let client = Client::of(fixture, guest);
    let seen = while_doing(client, &requests, agent_is_deleted(fixture, guest)).await?;
    seen.show(fixture, "an agent is killed");
    seen.some_succeeded()?;
    works_again(fixture, client, &requests).await.map(drop)
}

async fn agent_is_deleted(fixture: &Fixture, guest: &Guest) -> Result<()> {
    let agents = agents(guest).await?;
    let victim = agents.first().context("there is no agent")?;
    let path = PODS.named("kube-system", text(victim, "name"));
    // With a period of zero, the pod would be replaced before its process has ended, and the next agent could not listen on
    // the ports of the node until its startup probe has given up after five minutes.
    let soon = format!("{path}?gracePeriodSeconds=1");
    guest.client.delete(&soon).await?;
    let what = "another agent takes the place of the killed one";
    fixture
        .stage(what, async || {
            let now = self::agents(guest).await?;
            ensure!(now.len() == agents.len(), "there are {} agents", now.len());
            let uid = text(victim, "uid");
            ensure!(now.iter().all(|agent| text(agent, "uid") != uid));
            now.iter().try_for_each(|agent| condition(agent, "Ready"))
        })
        .await
}

/// The konnectivity server ends, and then the pod of the API server with it.
pub(crate) async fn server_dies(
    fixture: &Fixture,
    cluster: &Cluster<'_>,
    guest: &Guest,
    pods: &[String],
) -> Result<()> {
    let requests = Request::in_each(pods);
    let client = Client::of(fixture, guest);
    let seen = while_doing(client, &requests, server_process_ends(fixture, cluster)).await?;
    seen.show(fixture, "the konnectivity server ends");
    seen.some_failed()?;
    let took = works_again(fixture, client, &requests).await?;
    note(fixture, "the konnectivity server is back", took);
    let seen = while_doing(client, &requests, server_is_deleted(fixture, cluster)).await?;
    seen.show(fixture, "the pod of the API server is killed");
    seen.some_failed()?;
    let took = works_again(fixture, client, &requests).await?;
    note(fixture, "the API server has another pod", took);
    conditions::are_true(cluster).await
}

async fn server_process_ends(fixture: &Fixture, cluster: &Cluster<'_>) -> Result<()> {
    let pod = server(fixture, cluster).await?;
    let before = restarts(&pod)?;
    let namespace = format!("--namespace={}", cluster.namespace());
    let words = [
        "exec",
        text(&pod, "name"),
        &namespace,
        "--container=konnectivity-server",
        "--",
        "/bin/sh",
        "-c",
        "kill 1",
    ];
    // The container may end before the command does.
    drop(Kubectl::of_management(fixture).says(&words).await);
    fixture
        .stage("the konnectivity server is started again", async || {
            let pod = server(fixture, cluster).await?;
            ensure!(restarts(&pod)? > before, "it was not");
            condition(&pod, "Ready")
        })
        .await
}

async fn server_is_deleted(fixture: &Fixture, cluster: &Cluster<'_>) -> Result<()> {
    let pod = server(fixture, cluster).await?;
    let path = PODS.named(&cluster.namespace(), text(&pod, "name"));
    let at_once = format!("{path}?gracePeriodSeconds=0");
    fixture.testbed.admin.delete(&at_once).await?;
    fixture
        .stage("another pod of the API server is ready", async || {
            let now = server(fixture, cluster).await?;
            ensure!(text(&now, "uid") != text(&pod, "uid"), "it is the same");
            condition(&now, "Ready")
        })
        .await
}

/// No agent reaches the server for a minute, and until that is reported.
pub(crate) async fn agents_are_cut_off(
    fixture: &Fixture,
    cluster: &Cluster<'_>,
    guest: &Guest,
    pods: &[String],
) -> Result<()> {
    let client = Client::of(fixture, guest);
    let mut requests = Request::in_each(pods);
    requests.extend([Request::Webhook, Request::Top]);
    // The only Route that workers use once they have joined is konnectivity's.
    firewall(fixture, "--insert")?;
    let seen = while_doing(client, &requests, is_reported(cluster)).await?;
    seen.show(fixture, "all agents are cut off");
    seen.each_failed()?;
    let proxy = Proxy::of(fixture, cluster);
    proxy.reports_a_missing_tunnel().await?;
    for request in &requests {
        let outcome = client.send(*request).await;
        ensure!(outcome.is_err(), "{request} succeeded without an agent");
    }
    nodes_are_ready(fixture, guest).await?;
    firewall(fixture, "--delete")?;
    let took = works_again(fixture, client, &requests).await?;
    note(fixture, "the agents are no longer cut off", took);
    proxy.reaches_a_service().await?;
    conditions::are_true(cluster).await
}

/// The condition turns, and the time is over.
async fn is_reported(cluster: &Cluster<'_>) -> Result<()> {
    let reason = "KonnectivityAgentPodsNotFound";
    let reported = conditions::is(cluster, DATA_PLANE, "False", reason);
    let (reported, ()) = tokio::join!(reported, tokio::time::sleep(CUT_OFF));
    reported
}

/// The way from nodes to the API server is another one.
async fn nodes_are_ready(fixture: &Fixture, guest: &Guest) -> Result<()> {
    fixture
        .stage("nodes are ready without the tunnel", async || {
            let nodes = guest.nodes().await?;
            nodes.iter().try_for_each(|node| condition(node, "Ready"))
        })
        .await
}

/// Adds or removes the rule that drops what machines send to Routes.
fn firewall(fixture: &Fixture, what: &str) -> Result<()> {
    let namespaces = fixture.testbed.namespaces();
    let subnets = namespaces.subnets();
    let (machines, router) = (subnets.machines(), subnets.router().to_string());
    let rule = [
        what,
        "INPUT",
        "--source",
        &machines,
        "--destination",
        &router,
        "--protocol",
        "tcp",
        "--dport",
        ROUTES,
        "--jump",
        "DROP",
    ];
    namespaces.run("iptables", rule).map(drop)
}

/// Waits until each request succeeds; gives how long that took.
async fn works_again(
    fixture: &Fixture,
    client: Client<'_>,
    requests: &[Request<'_>],
) -> Result<Duration> {
    let begin = Instant::now();
    fixture
        .stage("requests succeed again", async || {
            for request in requests {
                client.send(*request).await?;
            }
            Ok(())
        })
        .await?;
    Ok(begin.elapsed())
}

fn note(fixture: &Fixture, what: &str, took: Duration) {
    let text = format!("{what}: requests succeed after {}", seconds(took));
    fixture.testbed.progress.note(&text);
}

async fn agents(guest: &Guest) -> Result<Vec<Value>> {
    let path = PODS.within("kube-system");
    let path = format!("{path}?labelSelector=app%3Dkonnectivity-agent");
    guest.client.list(&path).await
}

/// The pod of the API server and of the konnectivity server.
async fn server(fixture: &Fixture, cluster: &Cluster<'_>) -> Result<Value> {
    let path = PODS.within(&cluster.namespace());
    let path = format!("{path}?labelSelector=app%3Dkube-apiserver");
    let pods = fixture.testbed.admin.list(&path).await?;
    let mut alive = pods
        .into_iter()
        .filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
    alive.next().context("the API server has no pod")
}

fn restarts(pod: &Value) -> Result<u64> {
    let all = pod["status"]["containerStatuses"].as_array();
    let mut all = all.into_iter().flatten();
    let server = all.find(|one| one["name"] == "konnectivity-server");
    let count = server.and_then(|one| one["restartCount"].as_u64());
    count.context("it has no konnectivity server")
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}
