//! Platform OpenStack: virtual machines of an OpenStack cloud. It is part of the technology preview.
//!
//! The cluster brings its credentials: one cloud of a `clouds.yaml`, and the certificates of its authorities. Networks are
//! created by the provider, so nothing is created in the cloud here.

mod clouds;
mod nodes;

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

pub(crate) use nodes::OpenStackNodeArgs;

use super::{Parts, Platform, Pool};
use crate::Usage;
use crate::create::cluster::args::CommonArgs;
use crate::create::cluster::services::Services;
use clouds::{CLOUD, Credentials};
use nodes::id;

/// Address range of the machines, if none is given: the provider creates a subnet of it.
const MACHINES: &str = "10.0.0.0/16";
/// How many name servers a subnet may have.
const MOST_NAMESERVERS: usize = 10;

/// Flags of platform OpenStack.
#[derive(Debug, Clone, Args)]
pub(crate) struct OpenStackArgs {
    /// File clouds.yaml with the credentials for the cloud; only those of one cloud are used [default: one of the usual
    /// places, which are listed below]
    #[arg(long = "openstack-credentials-file", value_name = "FILE")]
    credentials_file: Option<PathBuf>,

    /// Name of the cloud in that file [default: the one that the environment names, or openstack]
    #[arg(long = "openstack-cloud", value_name = "NAME")]
    cloud: Option<String>,

    /// File with the certificates (PEM) of the cloud's authorities, if they are not public [default: the file that cacert
    /// of the cloud names]
    #[arg(long = "openstack-ca-cert-file", value_name = "FILE")]
    ca_cert_file: Option<PathBuf>,

    /// ID of the external network, which has the floating IPs [default: the only external network of the project]
    #[arg(long = "openstack-external-network-id", value_name = "ID", value_parser = id)]
    external_network_id: Option<String>,

    /// Floating IP for the load balancer of the default ingress controller; it must exist and be free [default: a new one]
    #[arg(long = "openstack-ingress-floating-ip", value_name = "ADDRESS")]
    ingress_floating_ip: Option<IpAddr>,

    /// Addresses of name servers for the machines, separated by commas [default: those of the cloud]
    #[arg(
        long = "openstack-dns-nameservers",
        value_name = "ADDRESS",
        value_delimiter = ','
    )]
    dns_nameservers: Vec<IpAddr>,

    #[command(flatten)]
    nodes: OpenStackNodeArgs,
}

impl Platform for OpenStackArgs {
    fn parts(&self, common: &CommonArgs) -> anyhow::Result<Parts> {
        self.check(common)?;
        let pools = Pool::only(self.nodes.platform(common.arch)?);
        let credentials = Credentials::read(
            self.credentials_file.as_deref(),
            self.cloud.as_deref(),
            self.ca_cert_file.as_deref(),
            &|name| std::env::var(name).ok().filter(|value| !value.is_empty()),
        )?;
        let secret = format!("{}-cloud-credentials", common.name);
        let openstack = self.openstack(&secret);
        let platform = json!({ "type": "OpenStack", "openstack": openstack });
        Ok(Parts {
            objects: vec![json!({
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": { "namespace": common.namespace, "name": secret },
                "type": "Opaque",
                "stringData": credentials.data(),
            })],
            machine_cidrs: vec![MACHINES.to_owned()],
            ..Parts::new(platform, Services::ingress(None), pools)
        })
    }
}

// === impl OpenStackArgs ===

impl OpenStackArgs {
    fn check(&self, common: &CommonArgs) -> Result<(), Usage> {
        if common.external_dns_domain.is_some() {
            return Err(Usage::new(
                &"--external-dns-domain is not supported on OpenStack: leave it out; services get host names of the \
                  management cluster",
            ));
        }
        if common.base_domain.as_ref().is_none_or(String::is_empty) {
            return Err(Usage::new(
                &"--base-domain is needed: applications of the cluster get host names in it",
            ));
        }
        if self.dns_nameservers.len() > MOST_NAMESERVERS {
            return Err(Usage::new(&format!(
                "--openstack-dns-nameservers: a subnet has at most {MOST_NAMESERVERS} name servers, not {}",
                self.dns_nameservers.len()
            )));
        }
        Ok(())
    }

    /// `spec.platform.openstack` of the HostedCluster, with credentials in this Secret.
    fn openstack(&self, secret: &str) -> Value {
        let mut openstack = json!({ "identityRef": { "name": secret, "cloudName": CLOUD } });
        if !self.dns_nameservers.is_empty() {
            openstack["managedSubnets"] = json!([{ "dnsNameservers": self.dns_nameservers }]);
        }
        if let Some(id) = &self.external_network_id {
            openstack["externalNetwork"] = json!({ "id": id });
        }
        if let Some(address) = &self.ingress_floating_ip {
            openstack["ingressFloatingIP"] = json!(address);
        }
        openstack
    }
}
