//! The Node that a host has become: it gets the provider's name of its machine.

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::objects::Objects;
use crate::provider::Provider;

/// Secret with the way into the hosted cluster.
const ADMIN_KUBECONFIG: (&str, &str) = ("admin-kubeconfig", "kubeconfig");

/// Gives it its name, if the Node is there. Reports whether it has it.
pub(crate) async fn name(provider: &Provider, machine: &Value) -> Result<bool> {
    let (name, id) = (host(machine), &machine["spec"]["providerID"]);
    let name = name.context("the AgentMachine has no host name")?;
    let (secret, key) = ADMIN_KUBECONFIG;
    let kubeconfig = provider.secret(secret, key).await?;
    let guest = Objects::at(&String::from_utf8_lossy(&kubeconfig))
        .await
        .with_context(|| format!("{key} of Secret {secret} is no kubeconfig"))?;
    let path = format!("/api/v1/nodes/{name}");
    let Some(node) = guest.find(&path).await? else {
        return Ok(false);
    };
    match &node["spec"]["providerID"] {
        found if found == id => {}
        Value::Null => {
            let change = json!({ "spec": { "providerID": id } });
            guest.merge(&path, &change).await?;
        }
        other => bail!("Node {name} is {other}, and its machine is {id}"),
    }
    Ok(true)
}

fn host(machine: &Value) -> Option<&str> {
    let all = machine["status"]["addresses"].as_array()?;
    let found = all.iter().find(|one| one["type"] == "InternalDNS")?;
    found["address"].as_str()
}
