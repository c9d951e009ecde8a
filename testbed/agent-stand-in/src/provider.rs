//! The reconcile loop: reconciles all objects every second, and logs changes.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::time::sleep;

use crate::objects::{Objects, name, within};
use crate::{cluster, machine};

/// The group of Cluster API's own kinds, as every provider knows it.
const CORE: &str = "cluster.x-k8s.io";
/// The provider's kinds.
const PROVIDER: &str = "capi-provider.agent-install.openshift.io/v1beta1";
/// The kind of the Agent service.
const AGENTS: &str = "agent-install.openshift.io/v1beta1";
/// Between two looks.
const EVERY: Duration = Duration::from_secs(1);

/// The provider's client, namespaces and state.
pub(crate) struct Provider {
    pub(crate) objects: Objects,
    pub(crate) namespace: String,
    agents: String,
    /// Machines whose Nodes have the provider's name.
    pub(crate) named: HashSet<String>,
    reported: HashMap<String, String>,
}

// === impl Provider ===

impl Provider {
    pub(crate) async fn new(namespace: String, agents: String) -> Result<Self> {
        Ok(Self {
            objects: Objects::own().await?,
            namespace,
            agents,
            named: HashSet::new(),
            reported: HashMap::new(),
        })
    }

    /// Reconciles until the process ends.
    pub(crate) async fn live(mut self) -> Result<()> {
        loop {
            if let Err(error) = self.look().await {
                self.report("everything", &format!("{error:#}"));
            }
            sleep(EVERY).await;
        }
    }

    async fn look(&mut self) -> Result<()> {
        for one in self.objects.list(&self.own("agentclusters")).await? {
            let found = cluster::look(self, &one).await;
            self.report_object("AgentCluster", &one, found);
        }
        for one in self.objects.list(&self.own("agentmachines")).await? {
            let found = machine::look(self, &one).await;
            self.report_object("AgentMachine", &one, found);
        }
        Ok(())
    }

    fn report_object(&mut self, kind: &str, object: &Value, found: Result<String>) {
        let text = found.unwrap_or_else(|error| format!("failed: {error:#}"));
        self.report(&format!("{kind} {}", name(object)), &text);
    }

    fn report(&mut self, what: &str, text: &str) {
        let before = self.reported.insert(what.to_owned(), text.to_owned());
        if before.as_deref() != Some(text) {
            println!("{what}: {text}");
        }
    }

    /// The path of the objects of a kind of the provider's.
    pub(crate) fn own(&self, plural: &str) -> String {
        within(PROVIDER, &self.namespace, plural)
    }

    /// The path of the Agents.
    pub(crate) fn agents(&self) -> String {
        within(AGENTS, &self.agents, "agents")
    }

    /// The namespace of the Agents.
    pub(crate) fn agent_namespace(&self) -> &str {
        &self.agents
    }

    /// The path of the objects of a kind of Cluster API's, of the version in a reference to one.
    pub(crate) fn core(&self, api_version: &str, plural: &str) -> Result<String> {
        let group = api_version.split('/').next();
        ensure!(
            group == Some(CORE),
            "it is referred to as {api_version}, and this provider knows only {CORE}"
        );
        Ok(within(api_version, &self.namespace, plural))
    }

    /// A value of a Secret of the namespace.
    pub(crate) async fn secret(&self, name: &str, key: &str) -> Result<Vec<u8>> {
        use base64::Engine as _;
        use base64::engine::general_purpose::STANDARD;
        let path = format!("{}/{name}", within("v1", &self.namespace, "secrets"));
        let found = self.objects.find(&path).await?;
        let found = found.with_context(|| format!("there is no Secret {name}"))?;
        let encoded = found["data"][key].as_str();
        let encoded = encoded.with_context(|| format!("Secret {name} has no {key}"))?;
        let decoded = STANDARD.decode(encoded);
        decoded.with_context(|| format!("{key} of Secret {name} is not in base64"))
    }
}
