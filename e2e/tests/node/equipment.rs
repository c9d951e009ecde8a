//! What a platform brings: volumes, addresses for Services, Routes with names, policies that hold.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::client::{Patch, Resource};
use e2e::equipment::{DOMAIN, Equipment};
use e2e::node::{NodeTestbed, condition};
use e2e::payload::stand_in_image;
use e2e::{fixtures, wait};
use serde_json::json;

use crate::can_run;

const NAMESPACE: &str = "equipment";
const PODS: Resource<'_> = Resource::new("v1", "pods");
const SERVICES: Resource<'_> = Resource::new("v1", "services");
/// Generous: a busy machine is no failure.
const WITHIN: Duration = Duration::from_mins(2);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn volumes_balancers_routes_and_policies_work() -> Result<()> {
    if !can_run() {
        return Ok(());
    }
    let testbed = NodeTestbed::builder("node-equipment").start().await?;
    let outcome = scenario(&testbed).await;
    testbed.finish(outcome)
}

async fn scenario(testbed: &NodeTestbed) -> Result<()> {
    let _equipment = Equipment::start(testbed).await?;
    let image = stand_in_image(testbed).await?;
    let values = [("NAMESPACE", NAMESPACE), ("IMAGE", image.as_str())];
    let objects = fixtures::render("node/equipment", &values)?;
    testbed.admin.apply(&objects).await?;
    for name in ["client", "server"] {
        wait::until(&format!("the pod {name}"), WITHIN, async || {
            let pod = testbed.admin.get(&PODS.named(NAMESPACE, name)).await?;
            condition(&pod, "Ready")
        })
        .await?;
    }
    wait::until("what was written to the volume", WITHIN, async || {
        let said = testbed
            .kubectl_says(["-n", NAMESPACE, "logs", "client"])
            .await?;
        ensure!(said.trim() == "kept", "{said:?}");
        Ok(())
    })
    .await?;
    let address = wait::until("an address", WITHIN, async || {
        let service = testbed
            .admin
            .get(&SERVICES.named(NAMESPACE, "server"))
            .await?;
        let address = service["status"]["loadBalancer"]["ingress"][0]["ip"].as_str();
        address.map(str::to_owned).context("there is none yet")
    })
    .await?;
    let route = format!("server-{NAMESPACE}.{DOMAIN}");
    let balancer = format!("{address}:443");
    for host in [balancer.as_str(), route.as_str()] {
        reaches(testbed, host).await?;
    }
    policies_hold(testbed, &balancer).await
}

/// The client gets an answer from a host, plain: its wget does not bear TLS.
async fn reaches(testbed: &NodeTestbed, host: &str) -> Result<()> {
    wait::until(&format!("an answer of {host}"), WITHIN, async || {
        let said = ask(testbed, host).await?;
        ensure!(said.trim() == "ok", "{said:?}");
        Ok(())
    })
    .await
}

async fn ask(testbed: &NodeTestbed, host: &str) -> Result<String> {
    let url = format!("http://{host}/");
    let exec = ["-n", NAMESPACE, "exec", "client", "--"];
    let wget = ["wget", "-T", "2", "-q", "-O", "-", &url];
    testbed.kubectl_says(exec.iter().chain(&wget)).await
}

async fn policies_hold(testbed: &NodeTestbed, host: &str) -> Result<()> {
    let policy = |app: &str| {
        json!({
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": { "namespace": NAMESPACE, "name": "server" },
            "spec": {
                "podSelector": { "matchLabels": { "app": "server" } },
                "ingress": [{
                    "from": [{ "podSelector": { "matchLabels": { "app": app } } }],
                    "ports": [{ "port": "https" }],
                }],
            },
        })
    };
    testbed.admin.apply(&[policy("nobody")]).await?;
    wait::until("a policy that keeps the client away", WITHIN, async || {
        ensure!(ask(testbed, host).await.is_err(), "it is let in");
        Ok(())
    })
    .await?;
    let path = testbed.admin.path_of(&policy("client")).await?;
    let patch = json!({ "spec": policy("client")["spec"] });
    testbed.admin.patch(&path, Patch::Merge, &patch).await?;
    reaches(testbed, host).await
}
