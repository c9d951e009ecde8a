//! Servers in the hosted cluster that its API server calls: an admission webhook, and an aggregated API.

use anyhow::{Result, bail, ensure};
use serde_json::{Value, json};
use testbed::certs::encoded;
use testbed::client::Resource;
use testbed::fixtures;
use testbed::hosted::{DEPLOYMENTS, Fixture, Guest};
use testbed::images::{Archive, Contents, File, StaticProgram, build_static};
use testbed::node::condition;

use crate::tunnel::kubectl::Kubectl;

const CONFIG_MAPS: Resource<'_> = Resource::new("v1", "configmaps");
const API_SERVICES: Resource<'_> = Resource::new("apiregistration.k8s.io/v1", "apiservices");
const NAME: &str = "extension";

/// Both are called.
pub(crate) async fn is_called(fixture: &Fixture, guest: &Guest) -> Result<()> {
    install(fixture, guest).await?;
    webhook_is_called(fixture, guest).await?;
    top_works(fixture, guest).await
}

async fn install(fixture: &Fixture, guest: &Guest) -> Result<()> {
    let (package, name) = ("pod-tools", NAME);
    let program = StaticProgram { package, name };
    let built = build_static(&program, &fixture.testbed.progress).await?;
    let archive = Archive::of(&Contents {
        entrypoint: format!("/{NAME}"),
        command: &[],
        files: vec![File::program(format!("/{NAME}"), built)],
    })?;
    let image = fixture.testbed.registry.push(NAME, &archive).await?;
    let authority = &fixture.testbed.control_plane.authority;
    let host = format!("{NAME}.default.svc");
    let certificate = authority.server_at(NAME, &[host])?;
    let objects = fixtures::render(
        "hosted_cluster/extension",
        &[
            ("IMAGE", &image),
            ("CERTIFICATE", &encoded(&certificate.certificate)?),
            ("KEY", &encoded(&certificate.key)?),
            ("AUTHORITY", &encoded(&authority.certificate())?),
        ],
    )?;
    guest.client.apply(&objects).await?;
    let path = DEPLOYMENTS.named("default", NAME);
    fixture
        .stage("the extension runs in the hosted cluster", async || {
            condition(&guest.client.get(&path).await?, "Available")
        })
        .await
}

/// A ConfigMap in namespace `default`, whose objects are reviewed.
pub(crate) fn config_map(name: &str, labels: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "namespace": "default", "name": name, "labels": labels },
    })
}

/// It refuses what it is to refuse, and nothing else; it fails closed, so that each answer is its own.
async fn webhook_is_called(fixture: &Fixture, guest: &Guest) -> Result<()> {
    let path = CONFIG_MAPS.within("default");
    let refused = config_map("refused", &json!({ "refuse": "" }));
    fixture
        .stage("the webhook in the hosted cluster is called", async || {
            let answer = guest.client.create(&path, &refused).await;
            let Err(error) = answer else {
                bail!("it was not asked");
            };
            let text = format!("{error:#}");
            ensure!(
                text.contains("the webhook in the hosted cluster refuses it"),
                "{text}"
            );
            Ok(())
        })
        .await?;
    let allowed = config_map("allowed", &json!({}));
    guest.client.create(&path, &allowed).await?;
    Ok(())
}

/// The aggregated API asks the API server for figures of kubelets, so that there are two ways through the tunnel.
async fn top_works(fixture: &Fixture, guest: &Guest) -> Result<()> {
    let kubectl = Kubectl::of(fixture, guest);
    let path = format!("{}/v1beta1.metrics.k8s.io", API_SERVICES.all());
    fixture
        .stage("the aggregated API is available", async || {
            condition(&guest.client.get(&path).await?, "Available")
        })
        .await?;
    fixture
        .stage("kubectl top shows nodes and pods", async || {
            let nodes = guest.nodes().await?;
            let shown = kubectl.says(&["top", "nodes", "--no-headers"]).await?;
            ensure!(shown.lines().count() == nodes.len(), "{shown}");
            for node in &nodes {
                let name = node["metadata"]["name"].as_str().unwrap_or_default();
                ensure!(!name.is_empty() && shown.contains(name), "{shown}");
            }
            let shown = kubectl
                .says(&["top", "pods", "--all-namespaces", "--no-headers"])
                .await?;
            ensure!(shown.contains("konnectivity-agent-"), "{shown}");
            Ok(())
        })
        .await
}
