//! Identities of a hosted cluster are unknown to the management cluster: its users, its components, its nodes.

use std::fs;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use testbed::client::status_code;
use testbed::hosted::{Fixture, SECRETS};

use crate::side_by_side::Running;
use crate::side_by_side::isolation::as_user;

/// The first requests to any API server.
const ASKED: &str = "/api/v1/namespaces";
/// Where a node has its certificate and key, in one file.
const NODE: &str = "var/lib/kubelet/pki/kubelet-client-current.pem";

/// Tries the users of every kubeconfig that is kept for a cluster, and each of its nodes.
pub(crate) async fn have_no_rights(fixture: &Fixture, clusters: &[&Running<'_>]) -> Result<()> {
    let step = fixture
        .testbed
        .progress
        .step("users and nodes of a hosted cluster are unknown to the management cluster");
    let mut tried = 0;
    for one in clusters {
        let mut users = users(fixture, one).await?;
        ensure!(
            users.len() > 3,
            "there are only {} kubeconfigs",
            users.len()
        );
        users.extend(nodes(fixture, one).await?);
        tried += users.len();
        for (name, user) in &users {
            let response = as_user(fixture, user).await?.get(ASKED).await;
            let code = response.as_ref().err().and_then(status_code);
            ensure!(
                code == Some(401),
                "{}: {name} got {code:?}",
                one.cluster.name()
            );
        }
    }
    step.done_with(&format!("{tried} tried"));
    Ok(())
}

/// The users of kubeconfigs, by their Secrets.
async fn users(fixture: &Fixture, of: &Running<'_>) -> Result<Vec<(String, Value)>> {
    let secrets = SECRETS.within(&of.cluster.namespace());
    let mut users = Vec::new();
    for secret in fixture.testbed.admin.list(&secrets).await? {
        let Some(encoded) = secret["data"]["kubeconfig"].as_str() else {
            continue;
        };
        let text = String::from_utf8(STANDARD.decode(encoded)?)?;
        let mut config: Value = serde_saphyr::from_str(&text)?;
        let user = config["users"][0]["user"].take();
        // What it has in files is in a pod only.
        if user["client-key-data"].is_string() || user["token"].is_string() {
            users.push((secret["metadata"]["name"].to_string(), user));
        }
    }
    Ok(users)
}

/// Its nodes, by what their kubelets have been given.
async fn nodes(fixture: &Fixture, of: &Running<'_>) -> Result<Vec<(String, Value)>> {
    let mut nodes = Vec::new();
    for instance in of.cluster.instances().await? {
        let machine = fixture.testbed.path().join("machines").join(&instance.id);
        let path = machine.join(NODE);
        // A kubelet leads to its newest by a link that only the machine can follow.
        let path = match fs::read_link(&path) {
            Ok(link) => path.with_file_name(link.file_name().unwrap_or_default()),
            Err(_) => path,
        };
        let pem = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let encoded = STANDARD.encode(pem);
        let user = json!({ "client-certificate-data": encoded, "client-key-data": encoded });
        nodes.push((instance.name, user));
    }
    ensure!(!nodes.is_empty(), "there is no node to try");
    Ok(nodes)
}
