//! A replacement of an Agent service on a testbed, and the hosts that it has discovered.
//!
//! Platform Agent needs three parts besides Cluster API, and none of them is available here. Two are stand-ins: the
//! infrastructure provider, which runs as a pod of the control plane (`agent-stand-in`, an image that is pushed here),
//! and the Agent service, which is this module. The hosts are real as far as machines of a testbed are ([`crate::guest`]).
//!
//! ```text
//! provider: Agent, bound to a ClusterDeployment ──> service: its AgentClusterInstall says where, a Secret says the token
//!           <── installed, in use                            ──> host: boots, requests its configuration, joins
//! provider: Agent, given back ──> service: the host ends ──> known-unbound, and free for the next
//! ```
//!
//! The service installs nothing and discovers nothing: a host is there from the beginning, is installed when it has
//! booted, and is empty when it has ended.

pub mod kinds;
mod plan;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::client::{ApiClient, Patch, Resource};
use crate::hosts::Hosts;
use crate::images::{Archive, Contents, File, StaticProgram, build_static};
use crate::node::NodeTestbed;
use crate::service_account::ensure_namespace;
use crate::{crds, wait};
use plan::{Endpoint, Step};

/// Where the Agents are.
pub const NAMESPACE: &str = "agents";
/// Hosts.
pub const AGENTS: Resource<'_> = Resource::new("agent-install.openshift.io/v1beta1", "agents");
/// The provider's program, and the name of its image.
const PROVIDER: &str = "agent-stand-in";
const INSTALLS: Resource<'_> = Resource::new(
    "extensions.hive.openshift.io/v1beta1",
    "agentclusterinstalls",
);
const SECRETS: Resource<'_> = Resource::new("v1", "secrets");
/// How often the service looks at its Agents.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The service, at work. Dropped, its hosts are gone.
#[derive(Debug)]
pub struct AgentService {
    /// The image of the stand-in for the provider.
    pub provider: String,
    hosts: Arc<Hosts>,
    watcher: JoinHandle<()>,
}

// === impl AgentService ===

impl AgentService {
    /// Starts it, with a host of each of these sizes, which is the Agents' label `size`.
    pub async fn start(testbed: &NodeTestbed, sizes: &[&str]) -> Result<Self> {
        let provider = provider_image(testbed).await?;
        let (admin, hosts) = (&testbed.admin, Arc::new(Hosts::new(testbed).await?));
        crds::install(admin, &kinds::definitions()).await?;
        ensure_namespace(admin, NAMESPACE).await?;
        allow_consumer(admin, NAMESPACE, crate::hosted::NAMESPACE).await?;
        for (number, size) in (1_u8..).zip(sizes) {
            discover(admin, &hosts, number, size).await?;
        }
        let watcher = tokio::spawn(watch(admin.clone(), Arc::clone(&hosts)));
        Ok(Self {
            provider,
            hosts,
            watcher,
        })
    }

    /// The hosts that run for a cluster, by the namespace of its control plane.
    pub fn running(&self, cluster: &str) -> Vec<String> {
        self.hosts.running(cluster)
    }

    /// The first processes of those hosts, by the ids that this machine knows them by.
    pub fn pids(&self, cluster: &str) -> BTreeMap<String, u32> {
        self.hosts.pids(cluster)
    }

    /// Waits until every Agent is free, and its host is not in use.
    pub async fn is_idle(&self, admin: &ApiClient, within: Duration) -> Result<()> {
        wait::until("all Agents to be free", within, async || {
            for agent in admin.list(&AGENTS.within(NAMESPACE)).await? {
                plan::is_free(&agent)?;
            }
            Ok(())
        })
        .await
    }

    /// The output of the hosts, for diagnosis.
    pub fn said(&self) -> String {
        self.hosts.said()
    }
}

impl Drop for AgentService {
    fn drop(&mut self) {
        self.watcher.abort();
    }
}

/// Lets HostedClusters of a namespace use the Agents of another one.
pub async fn allow_consumer(admin: &ApiClient, agents: &str, consumer: &str) -> Result<()> {
    let annotations = json!({ "hypershift.openshift.io/agent-consumer-namespaces": consumer });
    let change = json!({ "metadata": { "annotations": annotations } });
    let path = format!("/api/v1/namespaces/{agents}");
    admin.patch(&path, Patch::Merge, &change).await?;
    Ok(())
}

/// Builds and pushes the stand-in for the provider; returns its reference.
async fn provider_image(testbed: &NodeTestbed) -> Result<String> {
    let program = StaticProgram {
        package: PROVIDER,
        name: PROVIDER,
    };
    let entrypoint = format!("/{PROVIDER}");
    let built = build_static(&program, &testbed.progress).await?;
    let archive = Archive::of(&Contents {
        files: vec![File::program(&entrypoint, built)],
        entrypoint,
        command: &[],
    })?;
    testbed.registry.push(PROVIDER, &archive).await
}

/// Makes the Agent of a host, as its own agent would.
async fn discover(admin: &ApiClient, hosts: &Hosts, number: u8, size: &str) -> Result<()> {
    let name = format!("host-{number}");
    let agent = json!({
        "apiVersion": AGENTS.api_version,
        "kind": "Agent",
        "metadata": { "namespace": NAMESPACE, "name": name, "labels": { "size": size } },
        "spec": { "approved": true, "role": "worker" },
    });
    admin.apply(std::slice::from_ref(&agent)).await?;
    let mut status = plan::free();
    status["status"]["inventory"] = json!({
        "hostname": name,
        "interfaces": [{
            "name": "eth0",
            "hasCarrier": true,
            "ipV4Addresses": [format!("{}/24", hosts.address(&name)?)],
        }],
    });
    write_status(admin, &name, &status).await
}

async fn write_status(admin: &ApiClient, agent: &str, status: &Value) -> Result<()> {
    let path = format!("{}/status", AGENTS.named(NAMESPACE, agent));
    admin.patch(&path, Patch::Merge, status).await.map(drop)
}

/// Boots the host of each Agent that is bound, and ends those of others.
async fn watch(admin: ApiClient, hosts: Arc<Hosts>) {
    loop {
        if let Err(error) = look(&admin, &hosts).await {
            eprintln!("the Agent service: {error:#}");
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn look(admin: &ApiClient, hosts: &Hosts) -> Result<()> {
    for agent in admin.list(&AGENTS.within(NAMESPACE)).await? {
        let name = agent["metadata"]["name"].as_str().unwrap_or_default();
        match plan::step(&agent, hosts.runs(name)) {
            Step::Rest => {}
            Step::Boot { cluster } => {
                let user_data = user_data(admin, &agent).await;
                let user_data = user_data.with_context(|| format!("Agent {name}"))?;
                hosts.start(name, cluster, user_data)?;
            }
            Step::End => hosts.end(name),
            Step::WriteStatus(status) => write_status(admin, name, &status).await?,
        }
    }
    Ok(())
}

/// What the host of a bound Agent learns: where its configuration is, and the token for it.
async fn user_data(admin: &ApiClient, agent: &Value) -> Result<Vec<u8>> {
    let spec = &agent["spec"];
    let (namespace, name) = reference(&spec["clusterDeploymentName"])?;
    let install = admin.get(&INSTALLS.named(namespace, name)).await?;
    let endpoint = &install["spec"]["ignitionEndpoint"];
    let authority = secret(admin, &endpoint["caCertificateReference"], "tls.crt").await?;
    let token = secret(
        admin,
        &spec["ignitionEndpointTokenReference"],
        "ignition-token",
    )
    .await?;
    let endpoint = Endpoint {
        url: endpoint["url"].as_str().context("it has no endpoint")?,
        pool: spec["machineConfigPool"].as_str().unwrap_or_default(),
        headers: &spec["ignitionEndpointHTTPHeaders"],
        token: &String::from_utf8(token).context("the token is no text")?,
        authority: &authority,
    };
    Ok(endpoint.user_data().to_string().into_bytes())
}

async fn secret(admin: &ApiClient, of: &Value, key: &str) -> Result<Vec<u8>> {
    let (namespace, name) = reference(of)?;
    admin
        .secret_value(&SECRETS.named(namespace, name), key)
        .await
}

fn reference(object: &Value) -> Result<(&str, &str)> {
    let field = |field: &str| {
        let text = object[field].as_str();
        text.with_context(|| format!("a reference has no {field}"))
    };
    Ok((field("namespace")?, field("name")?))
}
