//! Platform GCP: virtual machines of Google Cloud. It is part of the technology preview.
//!
//! Network and identities are described by flags, or by two files, `--infra-json` and `--iam-json`, which `create infra gcp`
//! and `create iam gcp` write. What neither describes is created.

mod from_nothing;
mod infrastructure;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::{Parts, Platform, Pool, issuer_parts};
use crate::Usage;
use crate::create::cluster::args::{CommonArgs, RunArgs, name_of};
use crate::create::cluster::options::{Options, SUFFIX, made_infra_id};
use crate::create::cluster::services::Services;
use crate::create::cluster::values::EndpointAccess;
use crate::create::text;
use crate::infra::gcp::{CIDR, LONGEST_WITH_IDENTITIES};
use infrastructure::{Identity, IdentityArgs, Network};

/// Regions without a zone a, whose first zone is b.
const WITHOUT_ZONE_A: [&str; 2] = ["europe-west1", "us-east1"];

/// Flags of platform GCP.
#[derive(Debug, Clone, Args)]
pub(crate) struct GcpArgs {
    /// JSON file that describes the network, as create infra gcp writes it [default: the flags of the network, or one is
    /// created]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["network", "vpc_cidr"])]
    infra_json: Option<PathBuf>,

    /// JSON file that describes the workload identity pool and the service accounts, as create iam gcp writes it [default:
    /// the flags of the identities, or they are created]
    #[arg(long, value_name = "FILE")]
    iam_json: Option<PathBuf>,

    /// ID of the project [default: that of --infra-json or --iam-json]
    #[arg(long, value_name = "ID")]
    project: Option<String>,

    /// Region [default: that of --infra-json]
    #[arg(long, value_name = "NAME")]
    region: Option<String>,

    /// Network of the nodes, in the project
    #[arg(long, value_name = "NAME", requires = "private_service_connect_subnet")]
    network: Option<String>,

    /// Subnet for the endpoint of Private Service Connect, through which nodes reach the control plane
    #[arg(long, value_name = "NAME", requires = "network")]
    private_service_connect_subnet: Option<String>,

    /// Address range of the subnet, if the network is created [default: 10.0.0.0/24]
    #[arg(long, value_name = "CIDR", conflicts_with = "network")]
    vpc_cidr: Option<String>,

    #[command(flatten)]
    identity: IdentityArgs,

    /// File with the private key (PEM) that signs service account tokens [default: one is generated if identities are
    /// created]
    #[arg(long, value_name = "FILE")]
    service_account_signing_key_path: Option<PathBuf>,

    /// URL of the issuer of tokens [default: that of --iam-json, or one without a server if identities are created]
    #[arg(long, value_name = "URL")]
    oidc_issuer_url: Option<String>,

    /// Access to the endpoints of the control plane
    #[arg(long, value_enum, default_value_t = Access::Private)]
    endpoint_access: Access,

    /// Labels of all resources of the cluster on Google Cloud, separated by commas
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',')]
    resource_labels: Vec<String>,

    #[command(flatten)]
    nodes: NodeArgs,
}

/// Flags of its nodes.
#[derive(Debug, Clone, Args)]
struct NodeArgs {
    /// Type of the machines
    #[arg(long, value_name = "TYPE", default_value = "n2-standard-4")]
    machine_type: String,

    /// Zone of the machines [default: the first one of the region]
    #[arg(long, value_name = "NAME")]
    zone: Option<String>,

    /// Subnet of the machines [default: that of Private Service Connect]
    #[arg(long, value_name = "NAME")]
    subnet: Option<String>,

    /// Image that machines start from [default: that of the release]
    #[arg(long, value_name = "IMAGE")]
    boot_image: Option<String>,
}

/// From where the control plane is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
enum Access {
    /// From the internet, and by nodes through a private endpoint
    PublicAndPrivate,
    /// From the network of the nodes alone
    Private,
}

impl Platform for GcpArgs {
    fn parts(&self, common: &CommonArgs) -> anyhow::Result<Parts> {
        let network = self.known_network()?;
        let identity = self.known_identity()?;
        let infra_id = Self::infra_id(common, network.as_ref(), identity.as_ref())?;
        let network = match network {
            Some(network) => network,
            None => self.future_network(&infra_id, identity.as_ref())?,
        };
        let identity = match identity {
            Some(identity) => identity,
            None => self.future_identity(&infra_id, &network)?,
        };
        if let Some(project) = identity.project.as_ref()
            && *project != network.project
        {
            return Err(Usage::new(&format!(
                "--iam-json is for project {project}, and the network is in project {}: use identities and a network of one \
                 project",
                network.project
            ))
            .into());
        }
        let path = self.service_account_signing_key_path.as_deref();
        let key = path.map(signing_key).transpose()?;
        let parts = self.parts_of(common, &network, &identity, key.as_deref())?;
        Ok(Parts {
            infra_id: Some(infra_id),
            ..parts
        })
    }

    async fn provide(
        &self,
        common: &CommonArgs,
        options: &Options,
        run: &RunArgs,
    ) -> anyhow::Result<Option<Parts>> {
        Box::pin(self.create(common, options, run)).await
    }
}

// === impl GcpArgs ===

impl GcpArgs {
    /// The network that flags or a file describe.
    fn known_network(&self) -> anyhow::Result<Option<Network>> {
        if let Some(path) = &self.infra_json {
            let network = Network::read(path)?;
            let (project, region) = (self.project.as_ref(), self.region.as_ref());
            refuse_other("--project", project, "--infra-json", &network.project)?;
            refuse_other("--region", region, "--infra-json", &network.region)?;
            return Ok(Some(network));
        }
        let Some((name, subnet)) = self
            .network
            .as_ref()
            .zip(self.private_service_connect_subnet.as_ref())
        else {
            return Ok(None);
        };
        Ok(Some(Network {
            project: self.required_project()?,
            region: self.required_region()?,
            name: name.clone(),
            subnet: subnet.clone(),
            cidr: None,
            infra_id: None,
        }))
    }

    /// The identities that flags or a file describe.
    fn known_identity(&self) -> anyhow::Result<Option<Identity>> {
        let described = self.identity.describe()?;
        let Some(path) = &self.iam_json else {
            return Ok(described);
        };
        if described.is_some() {
            let message = "--iam-json describes all identities: leave out the flags with service accounts and pools";
            return Err(Usage::new(&message).into());
        }
        let identity = Identity::read(path)?;
        if let Some(project) = &identity.project {
            refuse_other("--project", self.project.as_ref(), "--iam-json", project)?;
        }
        Ok(Some(identity))
    }

    fn infra_id(
        common: &CommonArgs,
        network: Option<&Network>,
        identity: Option<&Identity>,
    ) -> anyhow::Result<String> {
        let described = network.and_then(|network| network.infra_id.as_ref());
        let described = described.or(identity.and_then(|identity| identity.infra_id.as_ref()));
        if let Some(infra_id) = common.infra_id.as_ref().or(described) {
            return Ok(infra_id.clone());
        }
        // Names of service accounts are short.
        made_infra_id(&common.name, LONGEST_WITH_IDENTITIES - SUFFIX - 1)
    }

    fn required_project(&self) -> Result<String, Usage> {
        self.project.clone().ok_or_else(|| {
            Usage::new(&"--project is needed, unless --infra-json names the project")
        })
    }

    fn required_region(&self) -> Result<String, Usage> {
        let missing = || Usage::new(&"--region is needed, unless --infra-json names the region");
        self.region.clone().ok_or_else(missing)
    }

    /// The parts of a network and of identities; `key` signs tokens.
    fn parts_of(
        &self,
        common: &CommonArgs,
        network: &Network,
        identity: &Identity,
        key: Option<&str>,
    ) -> anyhow::Result<Parts> {
        let platform = json!({ "type": "GCP", "gcp": self.gcp(network, identity)? });
        // Nodes reach the other services by a name of their network, whatever the access is.
        let access = EndpointAccess::PublicAndPrivate;
        let services = Services::cloud(common.external_dns_domain.as_deref(), access);
        let issuer = self.oidc_issuer_url.as_ref();
        let issuer = issuer.or(identity.issuer_url.as_ref());
        let (spec, objects) = issuer_parts(common, issuer, key);
        let pools = Pool::only(self.nodes.platform(network)?);
        Ok(Parts {
            spec,
            objects,
            machine_cidrs: network.cidr.iter().cloned().collect(),
            ..Parts::new(platform, services, pools)
        })
    }

    /// `spec.platform.gcp` of the HostedCluster.
    fn gcp(&self, network: &Network, identity: &Identity) -> anyhow::Result<Value> {
        let labels = text::pairs("--resource-labels", &self.resource_labels)?;
        let labels: Vec<_> = labels
            .iter()
            .map(|(key, value)| json!({ "key": key, "value": value }))
            .collect();
        let mut gcp = json!({
            "project": network.project,
            "region": network.region,
            "networkConfig": {
                "network": { "name": network.name },
                "privateServiceConnectSubnet": { "name": network.subnet },
            },
            "endpointAccess": name_of(self.endpoint_access),
            "workloadIdentity": {
                "projectNumber": identity.project_number,
                "poolID": identity.pool_id,
                "providerID": identity.provider_id,
                "serviceAccountsEmails": identity.emails,
            },
        });
        if !labels.is_empty() {
            gcp["resourceLabels"] = json!(labels);
        }
        Ok(gcp)
    }

    /// The address range of a network that is created.
    fn cidr(&self) -> &str {
        self.vpc_cidr.as_deref().unwrap_or(CIDR)
    }
}

// === impl NodeArgs ===

impl NodeArgs {
    /// `spec.platform` of a NodePool.
    fn platform(&self, network: &Network) -> Result<Value, Usage> {
        let region = &network.region;
        let zone = match &self.zone {
            Some(zone) if !zone.starts_with(&format!("{region}-")) => {
                return Err(Usage::new(&format!(
                    "--zone {zone:?} is not in region {region}: use one such as {}",
                    first_zone(region)
                )));
            }
            Some(zone) => zone.clone(),
            None => first_zone(region),
        };
        let mut gcp = json!({
            "machineType": self.machine_type,
            "zone": zone,
            "subnet": self.subnet.as_ref().unwrap_or(&network.subnet),
        });
        if let Some(image) = &self.boot_image {
            gcp["image"] = json!(image);
        }
        Ok(json!({ "type": "GCP", "gcp": gcp }))
    }
}

fn first_zone(region: &str) -> String {
    let letter = if WITHOUT_ZONE_A.contains(&region) {
        'b'
    } else {
        'a'
    };
    format!("{region}-{letter}")
}

fn signing_key(path: &Path) -> anyhow::Result<String> {
    text::file("--service-account-signing-key-path", path)
}

/// Refuses a flag that contradicts a file.
fn refuse_other(
    flag: &str,
    given: Option<&String>,
    file: &str,
    described: &str,
) -> Result<(), Usage> {
    match given {
        Some(given) if given != described => Err(Usage::new(&format!(
            "{flag} is {given}, and {file} says {described}: leave out {flag}"
        ))),
        _ => Ok(()),
    }
}
