//! `AgentMachine`s: each takes an Agent, and gives it back when its Machine goes.

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::agent::{self, UserData};
use crate::bootstrap::Bootstrap;
use crate::objects::{
    has_finalizer, is_going, name, owner, with_finalizer, within, without_finalizer,
};
use crate::world::World;
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

/// Takes one as far as it goes, and reports how far that is.
pub(crate) async fn look(world: &mut World, own: &Value) -> Result<String> {
    let path = format!("{}/{}", world.own("agentmachines"), name(own));
    let Some(pair) = pair(world, own, path.clone()).await? else {
        if is_going(own) && has_finalizer(own, FINALIZER) {
            let change = without_finalizer(own, FINALIZER);
            world.objects.merge(&path, &change).await?;
        }
        return Ok("waits for its Machine".to_owned());
    };
    if guard(world, &pair).await? {
        return Ok("is guarded".to_owned());
    }
    if hook::is_waited_for(&pair.machine) {
        return end(world, &pair).await;
    }
    if is_going(own) {
        if !hook::is_set(&pair.machine) {
            unguard(world, &pair).await?;
        }
        return Ok("goes when its Machine waits for it".to_owned());
    }
    if own["status"]["ready"] == true {
        return has_node(world, own).await;
    }
    provision(world, &pair).await
}

async fn pair<'a>(world: &World, own: &'a Value, path: String) -> Result<Option<Pair<'a>>> {
    let Some((api_version, machine)) = owner(own, "Machine") else {
        return Ok(None);
    };
    let machine_path = format!("{}/{machine}", world.core(api_version, "machines")?);
    let found = world.objects.find(&machine_path).await?;
    Ok(found.map(|machine| Pair {
        own,
        path,
        machine,
        machine_path,
        api_version,
    }))
}

/// Neither object may go before the host has come to its end. Reports whether anything had to be done for it.
async fn guard(world: &World, pair: &Pair<'_>) -> Result<bool> {
    if is_going(&pair.machine) || is_going(pair.own) {
        return Ok(false);
    }
    let objects = &world.objects;
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

async fn unguard(world: &World, pair: &Pair<'_>) -> Result<()> {
    if hook::is_set(&pair.machine) {
        world
            .objects
            .merge(&pair.machine_path, &hook::unset())
            .await?;
    }
    if has_finalizer(pair.own, FINALIZER) {
        let change = without_finalizer(pair.own, FINALIZER);
        world.objects.merge(&pair.path, &change).await?;
    }
    Ok(())
}

/// Gives its Agent back, and lets the objects go when the host has come to its end.
async fn end(world: &World, pair: &Pair<'_>) -> Result<String> {
    let taken = pair.own["status"]["agentRef"]["name"].as_str();
    let path = taken.map(|name| format!("{}/{name}", world.agents()));
    let found = match &path {
        Some(path) => world.objects.find(path).await?.map(|found| (path, found)),
        None => None,
    };
    let Some((path, found)) = found else {
        unguard(world, pair).await?;
        return Ok("has no Agent to give back".to_owned());
    };
    if let Some(free) = agent::given_back(&found) {
        world.objects.replace(path, &free).await?;
        return Ok("gives its Agent back".to_owned());
    }
    if !agent::is_unbound(&found) {
        return Ok("waits for the end of its host".to_owned());
    }
    unguard(world, pair).await?;
    Ok("has given its Agent back".to_owned())
}

async fn has_node(world: &mut World, own: &Value) -> Result<String> {
    let uid = own["metadata"]["uid"].as_str().unwrap_or_default();
    if !world.named.contains(uid) {
        if !node::name(world, own).await? {
            return Ok("waits for its Node".to_owned());
        }
        world.named.insert(uid.to_owned());
    }
    Ok("has its Node".to_owned())
}

/// Takes an Agent, and is ready when that is installed.
async fn provision(world: &World, pair: &Pair<'_>) -> Result<String> {
    let taken = match pair.own["status"]["agentRef"]["name"].as_str() {
        Some(agent) => format!("{}/{agent}", world.agents()),
        None => return take(world, pair).await,
    };
    let found = world.objects.find(&taken).await?;
    let found = found.with_context(|| format!("{taken} is gone"))?;
    if !agent::is_installed(&found) {
        return Ok("waits for its host to be installed".to_owned());
    }
    let ready = json!({ "status": { "ready": true } });
    world
        .objects
        .merge(&format!("{}/status", pair.path), &ready)
        .await?;
    Ok("is ready".to_owned())
}

async fn take(world: &World, pair: &Pair<'_>) -> Result<String> {
    let Some(deployment) = deployment(world, pair).await? else {
        return Ok("waits for its AgentCluster".to_owned());
    };
    let Some(secret) = pair.machine["spec"]["bootstrap"]["dataSecretName"].as_str() else {
        return Ok("waits for its user data".to_owned());
    };
    let bootstrap = Bootstrap::read(&world.secret(secret, USER_DATA).await?)?;
    let secret = format!("agent-{secret}");
    token(world, &secret, &bootstrap).await?;
    let user_data = UserData {
        bootstrap: &bootstrap,
        secret: &secret,
    };
    let Some(agent) = find(world, pair, &deployment, &user_data).await? else {
        return Ok("waits for an Agent".to_owned());
    };
    // The provider's name first: after a crash in between, the Agent is found by its label again.
    let id = json!({ "spec": { "providerID": format!("agent://{}", name(&agent)) } });
    world.objects.merge(&pair.path, &id).await?;
    let status = json!({ "status": {
        "agentRef": { "namespace": world.agent_namespace(), "name": name(&agent) },
        "addresses": agent::addresses(&agent),
        "ready": false,
    } });
    world
        .objects
        .merge(&format!("{}/status", pair.path), &status)
        .await?;
    Ok(format!("has taken Agent {}", name(&agent)))
}

/// The name under which the Agent service knows its cluster.
async fn deployment(world: &World, pair: &Pair<'_>) -> Result<Option<Value>> {
    let cluster = pair.machine["metadata"]["labels"][CLUSTER].as_str();
    let cluster = cluster.context("its Machine has no cluster")?;
    let path = format!("{}/{cluster}", world.core(pair.api_version, "clusters")?);
    let Some(found) = world.objects.find(&path).await? else {
        return Ok(None);
    };
    let infrastructure = found["spec"]["infrastructureRef"]["name"].as_str();
    let infrastructure = infrastructure.context("its Cluster has no infrastructure")?;
    let path = format!("{}/{infrastructure}", world.own("agentclusters"));
    let found = world.objects.find(&path).await?;
    Ok(found.and_then(|found| cluster::deployment(&found).cloned()))
}

/// The Agent service reads the token from a Secret of its own.
async fn token(world: &World, secret: &str, bootstrap: &Bootstrap) -> Result<()> {
    let all = within("v1", &world.namespace, "secrets");
    let object = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "namespace": world.namespace,
            "name": secret,
            "labels": { "agent-install.openshift.io/watch": "true" },
        },
        "data": { "ignition-token": STANDARD.encode(&bootstrap.token) },
    });
    world.objects.ensure(&all, &object).await?;
    let data = json!({ "data": object["data"] });
    world.objects.merge(&format!("{all}/{secret}"), &data).await
}

/// The Agent that it has taken already, or the first that it can take.
async fn find(
    world: &World,
    pair: &Pair<'_>,
    deployment: &Value,
    user_data: &UserData<'_>,
) -> Result<Option<Value>> {
    let agents = world.objects.list(&world.agents()).await?;
    let uid = &pair.own["metadata"]["uid"];
    let is_ours = |agent: &&Value| agent["metadata"]["labels"][agent::TAKEN_BY] == *uid;
    if let Some(ours) = agents.iter().find(is_ours) {
        return Ok(Some(ours.clone()));
    }
    let selector = &pair.own["spec"]["agentLabelSelector"];
    for free in agents.iter().filter(|one| agent::is_free(one, selector)) {
        let path = format!("{}/{}", world.agents(), name(free));
        let taken = agent::taken(free, pair.own, deployment, user_data);
        // If another writer was quicker, there is the next.
        if world.objects.replace(&path, &taken).await? {
            return Ok(Some(taken));
        }
    }
    Ok(None)
}
