//! What a platform brings: volumes, addresses for Services, Routes with names, policies that hold.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use http::Request;
use serde_json::json;
use testbed::add_ons::{AddOns, DOMAIN};
use testbed::client::{Patch, Resource};
use testbed::node::{NodeTestbed, condition};
use testbed::payload::stand_in_image;
use testbed::raw::RawClient;
use testbed::{fixtures, wait};

use crate::node::can_run;

const NAMESPACE: &str = "add-ons";
const PODS: Resource<'_> = Resource::new("v1", "pods");
const SERVICES: Resource<'_> = Resource::new("v1", "services");
/// Generous: a busy machine is no failure.
const WITHIN: Duration = Duration::from_mins(2);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn volumes_balancers_routes_and_policies_work() -> Result<()> {
    if !can_run() {
        return Ok(());
    }
    let testbed = NodeTestbed::builder("node-add-ons").start().await?;
    let outcome = scenario(&testbed).await;
    testbed.finish(outcome)
}

async fn scenario(testbed: &NodeTestbed) -> Result<()> {
    let _add_ons = AddOns::start(testbed).await?;
    let image = stand_in_image(testbed).await?;
    let values = [("NAMESPACE", NAMESPACE), ("IMAGE", image.as_str())];
    let objects = fixtures::render("node/add-ons", &values)?;
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
    let router = testbed.namespaces().subnets().router();
    reaches(&format!("{address}:443"), &address).await?;
    reaches(&format!("{router}:80"), &route).await?;
    policies_hold(testbed, &address).await
}

/// An address responds for a host name: requested from outside, without TLS, which the server also supports.
async fn reaches(address: &str, host: &str) -> Result<()> {
    wait::until(&format!("a response of {host}"), WITHIN, async || {
        ask(address, host).await
    })
    .await
}

async fn ask(address: &str, host: &str) -> Result<()> {
    let client = RawClient::new(&format!("http://{address}"), None)?;
    let request = Request::get("/").header("host", host).body(Vec::new())?;
    let response = client.send(request).await?;
    ensure!(response.status.is_success(), "{}", response.status);
    Ok(())
}

async fn policies_hold(testbed: &NodeTestbed, host: &str) -> Result<()> {
    let server = format!("{host}:443");
    let policy = |block: &str| {
        json!({
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": { "namespace": NAMESPACE, "name": "server" },
            "spec": {
                "podSelector": { "matchLabels": { "app": "server" } },
                "ingress": [{
                    "from": [{ "ipBlock": { "cidr": block } }],
                    "ports": [{ "port": "https" }],
                }],
            },
        })
    };
    testbed.admin.apply(&[policy("192.0.2.0/24")]).await?;
    wait::until("a policy that keeps others away", WITHIN, async || {
        ensure!(ask(&server, host).await.is_err(), "we are let in");
        Ok(())
    })
    .await?;
    let open_policy = policy("0.0.0.0/0");
    let path = testbed.admin.path_of(&open_policy).await?;
    let change = json!({ "spec": open_policy["spec"] });
    testbed.admin.patch(&path, Patch::Merge, &change).await?;
    reaches(&server, host).await
}
