//! Clusters without a cloud: on machines of an Agent service, and on machines that a user brings.
//!
//! Cluster API's provider for Agent is not available here. Its kinds are stand-ins: they take any object, and no controller makes
//! machines of them. What is shown is what the operator makes, and that nothing is left of it.

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use testbed::agents::allow_consumer;
use testbed::client::{ApiClient, Resource};
use testbed::operator::SOON;
use testbed::service_account::ensure_namespace;
use testbed::{simulation, wait};

use crate::hosted_clusters_api::cluster::{
    CONTROL_PLANES, DEPLOYMENTS, HOSTED_CLUSTERS, NODE_POOLS, ROLES, SECRETS, gone, nothing_outside,
};
use crate::hosted_clusters_api::control_plane;
use crate::hosted_clusters_api::fixture::{Fixture, NAMESPACE};

/// Where the machines are that an Agent service has found.
const AGENTS: &str = "agents";
pub(crate) const AGENT_CLUSTERS: Resource<'_> = Resource::new(
    "capi-provider.agent-install.openshift.io/v1beta1",
    "agentclusters",
);
pub(crate) const AGENT_TEMPLATES: Resource<'_> = Resource::new(
    "capi-provider.agent-install.openshift.io/v1beta1",
    "agentmachinetemplates",
);
pub(crate) const CLUSTERS: Resource<'_> =
    Resource::new("cluster.hypershift.openshift.io/v1beta2", "clusters");
pub(crate) const MACHINE_SETS: Resource<'_> =
    Resource::new("cluster.hypershift.openshift.io/v1beta2", "machinesets");

/// One cluster of each kind, from its creation to its end.
pub(crate) async fn live(admin: &ApiClient, fixture: &Fixture) -> Result<()> {
    ensure_namespace(admin, AGENTS).await?;
    allow_consumer(admin, AGENTS, NAMESPACE).await?;
    agent(admin, fixture).await.context("the one on Agent")?;
    none(admin, fixture).await.context("the one on None")
}

async fn agent(admin: &ApiClient, fixture: &Fixture) -> Result<()> {
    let name = "metal";
    let platform = json!({ "type": "Agent", "agent": { "agentNamespace": AGENTS } });
    let machines = json!({ "platform": { "type": "Agent", "agent": {
        "agentLabelSelector": { "matchLabels": { "size": "large" } },
    } } });
    create(admin, &fixture.release, name, &platform, &machines).await?;
    let namespace = format!("{NAMESPACE}-{name}");
    let there = async |path: String| {
        let what = format!("{path} to be made");
        wait::until(&what, SOON, async || admin.get(&path).await).await
    };
    let provider = there(DEPLOYMENTS.named(&namespace, "capi-provider")).await?;
    ensure!(
        provider
            .to_string()
            .contains("images.example.com/capi-agent:v1"),
        "the provider has another image"
    );
    // Components of the control plane take it for a cluster without a platform.
    let control_plane = there(CONTROL_PLANES.named(&namespace, name)).await?;
    ensure!(control_plane["spec"]["platform"]["type"] == "None");
    let right = ROLES.named(AGENTS, &format!("capi-provider-role-{namespace}"));
    there(right.clone()).await?;
    let cluster = AGENT_CLUSTERS.named(&namespace, name);
    ensure!(
        admin.find(&cluster).await?.is_none(),
        "an AgentCluster is made before the ignition server has an address"
    );
    ignition_is_published(admin, &namespace).await?;
    control_plane::comes_up(admin, name).await?;
    // It is made when the ignition server has an address; the control plane's may be known later.
    wait::until("the AgentCluster to have all addresses", SOON, async || {
        let spec = admin.get(&cluster).await?["spec"].clone();
        let ignition = spec["ignitionEndpoint"]["url"].as_str().unwrap_or_default();
        ensure!(
            spec["controlPlaneEndpoint"] == json!({ "host": "api.example.com", "port": 6443 })
                && ignition.starts_with("https://192.0.2.10:")
                && ignition.ends_with("/ignition"),
            "{spec}"
        );
        Ok(())
    })
    .await?;
    // Its provider, which is not here, reconciles it and reports it as ready: nothing else may.
    let found = admin.get(&cluster).await?;
    let managed_by = &found["metadata"]["annotations"]["cluster.x-k8s.io/managed-by"];
    ensure!(
        managed_by.is_null() && found["status"]["ready"].is_null(),
        "the operator takes the place of the provider: {found}"
    );
    there(CLUSTERS.named(&namespace, &format!("{name}-x7k2p"))).await?;
    let machines = there(MACHINE_SETS.named(&namespace, &format!("{name}-workers"))).await?;
    let infrastructure = &machines["spec"]["template"]["spec"]["infrastructureRef"];
    let template = infrastructure["name"].as_str().unwrap_or_default();
    let template = there(AGENT_TEMPLATES.named(&namespace, template)).await?;
    let labels = &template["spec"]["template"]["spec"]["agentLabelSelector"]["matchLabels"];
    ensure!(labels["size"] == "large", "{}", template["spec"]);
    destroyed(admin, name).await?;
    ensure!(admin.find(&right).await?.is_none(), "{right} is left");
    Ok(())
}

async fn none(admin: &ApiClient, fixture: &Fixture) -> Result<()> {
    let name = "own";
    let platform = json!({ "type": "None" });
    let machines = json!({ "platform": platform });
    create(admin, &fixture.release, name, &platform, &machines).await?;
    let namespace = format!("{NAMESPACE}-{name}");
    let control_plane = CONTROL_PLANES.named(&namespace, name);
    wait::until("the HostedControlPlane", SOON, async || {
        admin.get(&control_plane).await.map(drop)
    })
    .await?;
    ignition_is_published(admin, &namespace).await?;
    control_plane::comes_up(admin, name).await?;
    control_plane::is_handed_over(admin, name).await?;
    user_data(admin, name, None).await?;
    // There is nothing to make machines with.
    for path in [CLUSTERS.within(&namespace), MACHINE_SETS.within(&namespace)] {
        ensure!(admin.list(&path).await?.is_empty(), "{path} is not empty");
    }
    for deployment in ["cluster-api", "capi-provider"] {
        let path = DEPLOYMENTS.named(&namespace, deployment);
        ensure!(admin.find(&path).await?.is_none(), "{path} is there");
    }
    destroyed(admin, name).await
}

/// The name of the only Secret with user data of a cluster's pool, once it is another one than `not`. Machines of the pool
/// are made by others.
pub(crate) async fn user_data(admin: &ApiClient, name: &str, not: Option<&str>) -> Result<String> {
    let secrets = SECRETS.within(&format!("{NAMESPACE}-{name}"));
    let prefix = format!("user-data-{name}-workers-");
    wait::until("user data for machines", SOON, async || {
        let listed = admin.list(&secrets).await?;
        let names = listed
            .iter()
            .filter_map(|it| it["metadata"]["name"].as_str());
        let names: Vec<_> = names.filter(|it| it.starts_with(&prefix)).collect();
        match *names {
            [found] if Some(found) != not => Ok(found.to_owned()),
            _ => bail!("there are {names:?}"),
        }
    })
    .await
}

/// The Service by which nodes find their configuration on a port of the management cluster's nodes, as the control plane
/// would make it.
pub(crate) async fn ignition_is_published(admin: &ApiClient, namespace: &str) -> Result<()> {
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "namespace": namespace, "name": "ignition-server-proxy" },
        "spec": { "type": "NodePort", "ports": [{ "name": "https", "port": 443 }] },
    });
    admin.apply(&[service]).await
}

/// Creates a cluster with a pool, on a platform, whose services are on ports of nodes. The pool has the settings of `machines`.
pub(crate) async fn create(
    admin: &ApiClient,
    release: &str,
    name: &str,
    platform: &Value,
    machines: &Value,
) -> Result<()> {
    let mut objects = simulation::desired(name, release)?;
    for object in &mut objects {
        if object["kind"] == "HostedCluster" {
            object["spec"]["platform"] = platform.clone();
            let ports = json!({ "type": "NodePort", "nodePort": { "address": "192.0.2.10" } });
            for service in object["spec"]["services"]
                .as_array_mut()
                .into_iter()
                .flatten()
            {
                service["servicePublishingStrategy"] = ports.clone();
            }
        }
        if object["kind"] == "NodePool" {
            for (field, value) in machines.as_object().into_iter().flatten() {
                object["spec"][field] = value.clone();
            }
            object["spec"]["management"] = json!({ "upgradeType": "InPlace" });
        }
    }
    admin.apply(&objects).await
}

/// Deletes a cluster and waits until nothing of it is left.
pub(crate) async fn destroyed(admin: &ApiClient, name: &str) -> Result<()> {
    let cluster = HOSTED_CLUSTERS.named(NAMESPACE, name);
    admin.delete(&cluster).await?;
    let pool = NODE_POOLS.named(NAMESPACE, &format!("{name}-workers"));
    let control_plane = format!("{NAMESPACE}-{name}");
    let namespace = format!("/api/v1/namespaces/{control_plane}");
    gone(admin, [cluster, pool, namespace]).await?;
    nothing_outside(admin, &control_plane).await
}
