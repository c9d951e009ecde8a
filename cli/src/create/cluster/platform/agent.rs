//! Platform Agent: machines that an Agent service offers.

use clap::Args;
use serde_json::{Value, json};

use super::{EXAMPLE_DOMAIN, Parts, Platform, Pool};
use crate::create::cluster::args::{CommonArgs, UpgradeType};
use crate::create::cluster::services::Services;
use crate::create::label_selector;

/// Flags of platform Agent.
#[derive(Debug, Clone, Args)]
pub(crate) struct AgentArgs {
    /// Namespace of the Agents
    #[arg(long, value_name = "NAME")]
    agent_namespace: String,

    /// Host name or IP address of the management cluster's nodes: services are published on their ports [default: that of
    /// a node of the management cluster]
    #[arg(long, value_name = "ADDRESS")]
    api_server_address: Option<String>,

    #[command(flatten)]
    nodes: AgentNodeArgs,
}

/// Flags of its nodes.
#[derive(Debug, Clone, Args)]
pub(crate) struct AgentNodeArgs {
    /// Labels of the Agents to take, such as "size=large,zone in (a,b)". May be repeated
    #[arg(
        long = "agentLabelSelector",
        alias = "agent-label-selector",
        value_name = "SELECTOR"
    )]
    agent_label_selector: Vec<String>,
}

impl Platform for AgentArgs {
    fn parts(&self, common: &CommonArgs) -> anyhow::Result<Parts> {
        let domain = common.external_dns_domain.as_deref();
        let services = match (&self.api_server_address, domain) {
            (None, Some(domain)) => Services::ingress(Some(domain)),
            (address, _) => {
                common.refuse_domain("leave out --api-server-address")?;
                Services::node_ports(address.clone())
            }
        };
        let platform =
            json!({ "type": "Agent", "agent": { "agentNamespace": self.agent_namespace } });
        Ok(Parts {
            upgrade: UpgradeType::InPlace,
            base_domain: Some(EXAMPLE_DOMAIN.to_owned()),
            ..Parts::new(platform, services, Pool::only(self.nodes.platform()?))
        })
    }
}

// === impl AgentNodeArgs ===

impl AgentNodeArgs {
    /// `spec.platform` of a NodePool.
    pub(in crate::create) fn platform(&self) -> anyhow::Result<Value> {
        let mut agent = json!({});
        if !self.agent_label_selector.is_empty() {
            let text = self.agent_label_selector.join(",");
            agent["agentLabelSelector"] = label_selector::parse("--agentLabelSelector", &text)?;
        }
        Ok(json!({ "type": "Agent", "agent": agent }))
    }
}
