//! Platform None: machines that the user brings.

use clap::Args;
use serde_json::json;

use super::{EXAMPLE_DOMAIN, Parts, Platform, Pool};
use crate::create::cluster::args::{CommonArgs, UpgradeType};
use crate::create::cluster::services::Services;

/// Flags of platform None.
#[derive(Debug, Clone, Args)]
pub(crate) struct NoneArgs {
    /// Host name or IP address of the management cluster's nodes: services are published on their ports [default: that of
    /// a node of the management cluster]
    #[arg(
        long,
        value_name = "ADDRESS",
        conflicts_with = "expose_through_load_balancer"
    )]
    external_api_server_address: Option<String>,

    /// Publish the API server by a load balancer, and the other services by routes
    #[arg(long)]
    expose_through_load_balancer: bool,
}

impl Platform for NoneArgs {
    const ADDRESS_FLAG: &'static str =
        "--external-api-server-address, or --expose-through-load-balancer";

    fn parts(&self, common: &CommonArgs) -> anyhow::Result<Parts> {
        let services = if self.expose_through_load_balancer {
            Services::ingress(common.external_dns_domain.as_deref())
        } else {
            common.refuse_domain("pass --expose-through-load-balancer")?;
            Services::node_ports(self.external_api_server_address.clone())
        };
        let platform = json!({ "type": "None" });
        Ok(Parts {
            upgrade: UpgradeType::InPlace,
            base_domain: Some(EXAMPLE_DOMAIN.to_owned()),
            ..Parts::new(platform.clone(), services, Pool::only(platform))
        })
    }
}
