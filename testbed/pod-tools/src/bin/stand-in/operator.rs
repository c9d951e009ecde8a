//! The part of an operator that the control plane waits for: it creates its operands, and creates them again when one is
//! deleted.
//!
//! It uses what the operator has: the kubeconfig of the management cluster that its command line names, or the token of
//! its service account.

use std::error::Error;
use std::time::Duration;

use futures::{StreamExt as _, pin_mut};
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{
    Api, ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, WatchEvent,
    WatchParams,
};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use pod_tools::operands;
use serde_json::{Value, json};

/// Flag with the kubeconfig of the management cluster: `--extra-clusters=management=FILE`.
const MANAGEMENT: &str = "--extra-clusters=management=";
/// Before the next attempt after a failure.
const AGAIN: Duration = Duration::from_secs(2);

type Failure = Box<dyn Error>;

/// Creates the operands of an operator until the process ends.
pub(crate) async fn run(name: &str, args: &[String]) {
    loop {
        if let Err(error) = ensure(name, args).await {
            eprintln!("error: the stand-in of {name}: {error}");
            tokio::time::sleep(AGAIN).await;
        }
    }
}

/// Creates or updates the operands, and returns when one is deleted or a watch has ended.
async fn ensure(name: &str, args: &[String]) -> Result<(), Failure> {
    let config = config(args).await?;
    let namespace = config.default_namespace.clone();
    let client = Client::try_from(config)?;
    let desired = operands::of(
        name,
        &|variable| std::env::var(variable).ok(),
        &control_plane(&client, &namespace).await?,
    );
    let deployments: Api<Deployment> = Api::namespaced(client, &namespace);
    let params = PatchParams::apply(name).force();
    for deployment in &desired {
        let operand = deployment["metadata"]["name"].as_str().unwrap_or_default();
        let patch = Patch::Apply(deployment);
        deployments.patch(operand, &params, &patch).await?;
        println!("{name}: this is a stand-in; it has applied Deployment {operand}");
    }
    let own = format!("{}={name}", operands::STAND_IN);
    let params = WatchParams::default().labels(&own);
    let events = deployments.watch(&params, "0").await?;
    pin_mut!(events);
    while let Some(event) = events.next().await {
        if matches!(event?, WatchEvent::Deleted(_)) {
            break;
        }
    }
    Ok(())
}

/// The client of the management cluster.
async fn config(args: &[String]) -> Result<Config, Failure> {
    let Some(file) = args.iter().find_map(|arg| arg.strip_prefix(MANAGEMENT)) else {
        return Ok(Config::incluster()?);
    };
    let kubeconfig = Kubeconfig::read_from(file)?;
    let options = KubeConfigOptions::default();
    Ok(Config::from_custom_kubeconfig(kubeconfig, &options).await?)
}

/// The HostedControlPlane of the namespace.
async fn control_plane(client: &Client, namespace: &str) -> Result<Value, Failure> {
    let kind = GroupVersionKind::gvk("hypershift.openshift.io", "v1beta1", "HostedControlPlane");
    let resource = ApiResource::from_gvk(&kind);
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
    let mut all = api.list(&ListParams::default()).await?.items;
    let only = all.pop().ok_or("there is no HostedControlPlane")?;
    Ok(json!(only))
}
