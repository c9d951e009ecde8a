//! `AgentMachine`s: each binds an Agent, and releases it when its Machine is deleted.

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::agent::{self, UserData};
use crate::bootstrap::Bootstrap;
use crate::objects::{
    has_finalizer, is_going, name, owner, with_finalizer, within, without_finalizer,
};
use crate::provider::Provider;
use crate::selector::Selector;
use crate::{cluster, hook, node};

const FINALIZER: &str = "agentmachine.agent-install.openshift.io/deprovision";
/// Label of a Machine with the name of its Cluster.
const CLUSTER: &str = "cluster.x-k8s.io/cluster-name";
/// The key of user data in their Secret.
const USER_DATA: &str = "value";

/// An `AgentMachine`, and the Machine that it is for.
struct Pair<'a> {
    own: &'a Value,
    path: String,
    machine: Value,
    machine_path: String,
    /// The version by which the Machine is referred to.
    api_version: &'a str,
}

/// Reconciles one, and returns its progress.
pub(crate) async fn look(provider: &mut Provider, own: &Value) -> Result<String> {
    let path = format!("{}/{}", provider.own("agentmachines"), name(own));
    let Some(pair) = pair(provider, own, path.clone()).await? else {
        if is_going(own) && has_finalizer(own, FINALIZER) {
            let change = without_finalizer(own, FINALIZER);
            provider.objects.merge(&path, &change).await?;
        }
        return Ok("waits for its Machine".to_owned());
    };
    if guard(provider, &pair).await? {
        return Ok("is guarded".to_owned());
    }
    if hook::is_waited_for(&pair.machine) {
        return end(provider, &pair).await;
    }
    if is_going(own) {
        if !hook::is_set(&pair.machine) {
            unguard(provider, &pair).await?;
        }
        return Ok("is deleted when its Machine waits for it".to_owned());
    }
    if own["status"]["ready"] == true {
        return has_node(provider, own).await;
    }
    provision(provider, &pair).await
}

async fn pair<'a>(provider: &Provider, own: &'a Value, path: String) -> Result<Option<Pair<'a>>> {
    let Some((api_version, machine)) = owner(own, "Machine") else {
        return Ok(None);
    };
    let machine_path = format!("{}/{machine}", provider.core(api_version, "machines")?);
    let found = provider.objects.find(&machine_path).await?;
    Ok(found.map(|machine| Pair {
        own,
        path,
        machine,
        machine_path,
        api_version,
    }))
}

/// Neither object may go before the host has come to its end. Reports whether anything had to be done for it.
async fn guard(provider: &Provider, pair: &Pair<'_>) -> Result<bool> {
    if is_going(&pair.machine) || is_going(pair.own) {
        return Ok(false);
    }
    let objects = &provider.objects;
    let (hooked, held) = (
        hook::is_set(&pair.machine),
        has_finalizer(pair.own, FINALIZER),
    );
    if !hooked {
        objects.merge(&pair.machine_path, &hook::set()).await?;
    }
    if !held {
        let change = with_finalizer(pair.own, FINALIZER);
        objects.merge(&pair.path, &change).await?;
    }
    Ok(!hooked || !held)
}

async fn unguard(provider: &Provider, pair: &Pair<'_>) -> Result<()> {
    if hook::is_set(&pair.machine) {
        provider
            .objects
            .merge(&pair.machine_path, &hook::unset())
            .await?;
    }
    if has_finalizer(pair.own, FINALIZER) {
        let change = without_finalizer(pair.own, FINALIZER);
        provider.objects.merge(&pair.path, &change).await?;
    }
    Ok(())
}

/// Gives its Agent back, and lets the objects go when the host has come to its end.
async fn end(provider: &Provider, pair: &Pair<'_>) -> Result<String> {
    let taken = pair.own["status"]["agentRef"]["name"].as_str();
    let path = taken.map(|name| format!("{}/{name}", provider.agents()));
    let found = match &path {
        Some(path) => provider
            .objects
            .find(path)
            .await?
            .map(|found| (path, found)),
        None => None,
    };
    let Some((path, found)) = found else {
        unguard(provider, pair).await?;
        return Ok("has no Agent to give back".to_owned());
    };
    if let Some(free) = agent::given_back(&found) {
        provider.objects.replace(path, &free).await?;
        return Ok("gives its Agent back".to_owned());
    }
    if !agent::is_unbound(&found) {
        return Ok("waits for the end of its host".to_owned());
    }
    unguard(provider, pair).await?;
    Ok("has given its Agent back".to_owned())
}

async fn has_node(provider: &mut Provider, own: &Value) -> Result<String> {
    let uid = own["metadata"]["uid"].as_str().unwrap_or_default();
    if !provider.named.contains(uid) {
        if !node::name(provider, own).await? {
            return Ok("waits for its Node".to_owned());
        }
        provider.named.insert(uid.to_owned());
    }
    Ok("has its Node".to_owned())
}

/// Takes an Agent, and is ready when that is installed.
async fn provision(provider: &Provider, pair: &Pair<'_>) -> Result<String> {
    let taken = match pair.own["status"]["agentRef"]["name"].as_str() {
        Some(agent) => format!("{}/{agent}", provider.agents()),
        None => return take(provider, pair).await,
    };
    let found = provider.objects.find(&taken).await?;
    let found = found.with_context(|| format!("{taken} is gone"))?;
    if !agent::is_installed(&found) {
        return Ok("waits for its host to be installed".to_owned());
    }
    let ready = json!({ "status": { "ready": true } });
    provider
        .objects
        .merge(&format!("{}/status", pair.path), &ready)
        .await?;
    Ok("is ready".to_owned())
}

async fn take(provider: &Provider, pair: &Pair<'_>) -> Result<String> {
    let Some(deployment) = deployment(provider, pair).await? else {
        return Ok("waits for its AgentCluster".to_owned());
    };
    let Some(secret) = pair.machine["spec"]["bootstrap"]["dataSecretName"].as_str() else {
        return Ok("waits for its user data".to_owned());
    };
    let bootstrap = Bootstrap::read(&provider.secret(secret, USER_DATA).await?)?;
    let secret = format!("agent-{secret}");
    token(provider, &secret, &bootstrap).await?;
    let user_data = UserData {
        bootstrap: &bootstrap,
        secret: &secret,
    };
    let Some(agent) = find(provider, pair, &deployment, &user_data).await? else {
        return Ok("waits for an Agent".to_owned());
    };
    // The provider's name first: after a crash in between, the Agent is found by its label again.
    let id = json!({ "spec": { "providerID": format!("agent://{}", name(&agent)) } });
    provider.objects.merge(&pair.path, &id).await?;
    let status = json!({ "status": {
        "agentRef": { "namespace": provider.agent_namespace(), "name": name(&agent) },
        "addresses": agent::addresses(&agent),
        "ready": false,
    } });
    provider
        .objects
        .merge(&format!("{}/status", pair.path), &status)
        .await?;
    Ok(format!("has taken Agent {}", name(&agent)))
}

/// The name under which the Agent service knows its cluster.
async fn deployment(provider: &Provider, pair: &Pair<'_>) -> Result<Option<Value>> {
    let cluster = pair.machine["metadata"]["labels"][CLUSTER].as_str();
    let cluster = cluster.context("its Machine has no cluster")?;
    let path = format!("{}/{cluster}", provider.core(pair.api_version, "clusters")?);
    let Some(found) = provider.objects.find(&path).await? else {
        return Ok(None);
    };
    let infrastructure = found["spec"]["infrastructureRef"]["name"].as_str();
    let infrastructure = infrastructure.context("its Cluster has no infrastructure")?;
    let path = format!("{}/{infrastructure}", provider.own("agentclusters"));
    let found = provider.objects.find(&path).await?;
    Ok(found.and_then(|found| cluster::deployment(&found).cloned()))
}

/// The Agent service reads the token from a Secret of its own.
async fn token(provider: &Provider, secret: &str, bootstrap: &Bootstrap) -> Result<()> {
    let all = within("v1", &provider.namespace, "secrets");
    let object = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "namespace": provider.namespace,
            "name": secret,
            "labels": { "agent-install.openshift.io/watch": "true" },
        },
        "data": { "ignition-token": STANDARD.encode(&bootstrap.token) },
    });
    provider.objects.ensure(&all, &object).await?;
    let data = json!({ "data": object["data"] });
    provider
        .objects
        .merge(&format!("{all}/{secret}"), &data)
        .await
}

/// The Agent that it has taken already, or the first that it can take.
async fn find(
    provider: &Provider,
    pair: &Pair<'_>,
    deployment: &Value,
    user_data: &UserData<'_>,
) -> Result<Option<Value>> {
    let agents = provider.objects.list(&provider.agents()).await?;
    let uid = &pair.own["metadata"]["uid"];
    let is_ours = |agent: &&Value| agent["metadata"]["labels"][agent::TAKEN_BY] == *uid;
    if let Some(ours) = agents.iter().find(is_ours) {
        return Ok(Some(ours.clone()));
    }
    let selector = Selector::parse(&pair.own["spec"]["agentLabelSelector"]);
    let selector = selector.context("spec.agentLabelSelector")?;
    for free in agents.iter().filter(|one| agent::is_free(one, &selector)) {
        let path = format!("{}/{}", provider.agents(), name(free));
        let taken = agent::taken(free, pair.own, deployment, user_data);
        // If another writer was quicker, there is the next.
        if provider.objects.replace(&path, &taken).await? {
            return Ok(Some(taken));
        }
    }
    Ok(None)
}
