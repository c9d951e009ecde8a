//! Platform None: machines that the user brings.

use clap::Args;
use serde_json::json;

use super::{Parts, Platform, Pool};
use crate::create::cluster::args::{CommonArgs, UpgradeType};
use crate::create::cluster::services::Services;

/// Flags of platform None.
#[derive(Debug, Clone, Args)]
pub(crate) struct NoneArgs {
    /// Host name or IP address of the management cluster's nodes: services are published on their ports
    #[arg(
        long,
        value_name = "ADDRESS",
        conflicts_with = "expose_through_load_balancer"
    )]
    external_api_server_address: Option<String>,

    /// Publish the API server by a load balancer, and the other services by routes
    #[arg(long, required_unless_present = "external_api_server_address")]
    expose_through_load_balancer: bool,
}

impl Platform for NoneArgs {
    fn parts(&self, common: &CommonArgs) -> anyhow::Result<Parts> {
        let services = match &self.external_api_server_address {
            Some(address) => Services::NodePorts {
                address: address.clone(),
            },
            None => Services::ingress(common.external_dns_domain.as_deref()),
        };
        let platform = json!({ "type": "None" });
        Ok(Parts {
            upgrade: UpgradeType::InPlace,
            ..Parts::new(platform.clone(), services, Pool::only(platform))
        })
    }
}
