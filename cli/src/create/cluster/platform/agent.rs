//! Platform Agent: machines that an Agent service offers.

use clap::Args;
use serde_json::{Value, json};

use super::{Parts, Platform, Pool};
use crate::create::cluster::args::{CommonArgs, UpgradeType};
use crate::create::cluster::services::Services;
use crate::create::text;

/// Flags of platform Agent.
#[derive(Debug, Clone, Args)]
pub(crate) struct AgentArgs {
    /// Namespace of the Agents
    #[arg(long, value_name = "NAME")]
    agent_namespace: String,

    /// Host name or IP address of the management cluster's nodes: services are published on their ports; without it, the
    /// API server gets a load balancer
    #[arg(long, value_name = "ADDRESS")]
    api_server_address: Option<String>,

    #[command(flatten)]
    nodes: AgentNodeArgs,
}

/// Flags of its nodes.
#[derive(Debug, Clone, Args)]
pub(crate) struct AgentNodeArgs {
    /// Label of the Agents to take, such as size=large. May be repeated
    #[arg(
        long = "agentLabelSelector",
        alias = "agent-label-selector",
        value_name = "KEY=VALUE"
    )]
    agent_label_selector: Vec<String>,
}

impl Platform for AgentArgs {
    fn parts(&self, common: &CommonArgs) -> anyhow::Result<Parts> {
        let services = match &self.api_server_address {
            Some(address) => Services::NodePorts {
                address: address.clone(),
            },
            None => Services::ingress(common.external_dns_domain.as_deref()),
        };
        let platform =
            json!({ "type": "Agent", "agent": { "agentNamespace": self.agent_namespace } });
        Ok(Parts {
            upgrade: UpgradeType::InPlace,
            ..Parts::new(platform, services, Pool::only(self.nodes.platform()?))
        })
    }
}

// === impl AgentNodeArgs ===

impl AgentNodeArgs {
    /// `spec.platform` of a NodePool.
    pub(in crate::create) fn platform(&self) -> anyhow::Result<Value> {
        let labels = text::pairs("--agentLabelSelector", &self.agent_label_selector)?;
        let mut agent = json!({});
        if !labels.is_empty() {
            agent["agentLabelSelector"] = json!({ "matchLabels": labels });
        }
        Ok(json!({ "type": "Agent", "agent": agent }))
    }
}
