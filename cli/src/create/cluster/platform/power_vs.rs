//! Platform `PowerVS`: IBM Power Virtual Servers.
//!
//! Infrastructure is described by the file of `--infra-json`, in the form in which `create infra powervs` writes it. Without
//! the file it is created.

mod from_nothing;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Parts, Platform, Pool};
use crate::Usage;
use crate::create::cluster::args::{Arch, CommonArgs, RunArgs, name_of};
use crate::create::cluster::options::Options;
use crate::create::cluster::services::Services;
use crate::create::text;
use crate::infra::power_vs::{ReuseArgs, TransitArgs};

/// The network of the machines.
const MACHINES: &str = "10.0.0.0/16";
/// Fields with credentials, and what follows the cluster's name in that of their Secret.
const CREDENTIALS: [(&str, &str); 5] = [
    ("kubeCloudControllerCreds", "cloud-controller-creds"),
    ("nodePoolManagementCreds", "node-management-creds"),
    ("ingressOperatorCloudCreds", "ingress-creds"),
    ("storageOperatorCloudCreds", "storage-creds"),
    ("imageRegistryOperatorCloudCreds", "image-registry-creds"),
];

/// Flags of platform `PowerVS`.
#[derive(Debug, Clone, Args)]
pub(crate) struct PowerVsArgs {
    /// JSON file that describes the infrastructure: account, workspace, networks, and Secrets with credentials
    /// [default: it is created]
    #[arg(long, value_name = "FILE")]
    infra_json: Option<PathBuf>,

    /// Resource group [default: that of --infra-json]
    #[arg(long, value_name = "NAME")]
    resource_group: Option<String>,

    /// Region [default: that of --infra-json, or us-south]
    #[arg(long, value_name = "NAME")]
    region: Option<String>,

    /// Zone of the region [default: that of --infra-json, or us-south]
    #[arg(long, value_name = "NAME")]
    zone: Option<String>,

    /// Region of the VPC [default: that of --infra-json, or us-south]
    #[arg(long, value_name = "NAME")]
    vpc_region: Option<String>,

    #[command(flatten)]
    reuse: ReuseArgs,

    #[command(flatten)]
    transit: TransitArgs,

    #[command(flatten)]
    nodes: PowerVsNodeArgs,
}

/// Flags of its nodes.
#[derive(Debug, Clone, Args)]
pub(crate) struct PowerVsNodeArgs {
    /// Type of the servers' host
    #[arg(long, value_name = "TYPE", default_value = "s922")]
    sys_type: String,

    /// How processors are shared
    #[arg(long, value_enum, default_value_t = ProcessorType::Shared)]
    proc_type: ProcessorType,

    /// Processors of each server, for example 0.5
    #[arg(long, value_name = "N", default_value = "0.5", value_parser = processors)]
    processors: String,

    /// Memory of each server in GiB
    #[arg(long, value_name = "GIB", default_value_t = 32, value_parser = clap::value_parser!(i32).range(2..))]
    memory: i32,
}

/// How processors are shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lowercase")]
enum ProcessorType {
    /// With other servers, and more when they are idle
    Shared,
    /// With other servers, and never more
    Capped,
    /// With none
    Dedicated,
}

/// The infrastructure. Fields that are not listed are for other tools.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Infrastructure {
    id: Option<String>,
    region: String,
    zone: String,
    vpc_region: String,
    #[serde(rename = "accountID")]
    account_id: String,
    base_domain: Option<String>,
    cis_crn: String,
    #[serde(rename = "cisDomainID")]
    cis_domain_id: String,
    resource_group: String,
    #[serde(rename = "cloudInstanceID")]
    cloud_instance_id: String,
    dhcp_subnet: String,
    #[serde(rename = "dhcpSubnetID")]
    dhcp_subnet_id: String,
    vpc_name: String,
    vpc_subnet_name: String,
    /// Complete Secrets.
    #[serde(default)]
    secrets: BTreeMap<String, Value>,
}

impl Platform for PowerVsArgs {
    fn parts(&self, common: &CommonArgs) -> anyhow::Result<Parts> {
        let infra = match &self.infra_json {
            Some(path) => {
                self.check()?;
                Infrastructure::read(path)?
            }
            None => self.future(common)?,
        };
        self.parts_of(common, &infra)
    }

    async fn provide(
        &self,
        common: &CommonArgs,
        options: &Options,
        run: &RunArgs,
    ) -> anyhow::Result<Option<Parts>> {
        if self.infra_json.is_some() {
            return Ok(None);
        }
        Box::pin(self.create(common, options, run)).await
    }
}

// === impl PowerVsArgs ===

impl PowerVsArgs {
    /// Refuses flags of infrastructure that is created.
    fn check(&self) -> Result<(), Usage> {
        let (reuse, transit) = (&self.reuse, &self.transit);
        for (flag, given) in [
            ("--cloud-instance-id", reuse.cloud_instance_id.is_some()),
            ("--vpc", reuse.vpc.is_some()),
            ("--transit-gateway", transit.transit_gateway.is_some()),
            (
                "--transit-gateway-global-routing",
                transit.transit_gateway_global_routing,
            ),
            ("--recreate-secrets", transit.recreate_secrets),
        ] {
            if given {
                return Err(Usage::new(&format!(
                    "{flag} is for infrastructure that is created, and --infra-json describes one that exists: leave out one \
                     of them"
                )));
            }
        }
        Ok(())
    }

    /// The parts of an infrastructure.
    fn parts_of(&self, common: &CommonArgs, infra: &Infrastructure) -> anyhow::Result<Parts> {
        let platform = json!({ "type": "PowerVS", "powervs": self.power_vs(common, infra) });
        let services = Services::ingress(common.external_dns_domain.as_deref());
        let zone = infra.cis_domain_id.clone();
        Ok(Parts {
            objects: infra.credentials(common)?,
            zones: vec![("publicZoneID", zone.clone()), ("privateZoneID", zone)],
            infra_id: infra.id.clone(),
            base_domain: infra.base_domain.clone(),
            machine_cidrs: vec![MACHINES.to_owned()],
            // There are no servers of another architecture.
            arch: Some(Arch::Ppc64le),
            ..Parts::new(platform, services, Pool::only(self.nodes.platform()))
        })
    }

    /// `spec.platform.powervs` of the HostedCluster.
    fn power_vs(&self, common: &CommonArgs, infra: &Infrastructure) -> Value {
        let mut power_vs = json!({
            "accountID": infra.account_id,
            "cisInstanceCRN": infra.cis_crn,
            "resourceGroup": self.resource_group.as_ref().unwrap_or(&infra.resource_group),
            "region": self.region.as_ref().unwrap_or(&infra.region),
            "zone": self.zone.as_ref().unwrap_or(&infra.zone),
            "serviceInstanceID": infra.cloud_instance_id,
            "subnet": { "name": infra.dhcp_subnet, "id": infra.dhcp_subnet_id },
            "vpc": {
                "name": infra.vpc_name,
                "region": self.vpc_region.as_ref().unwrap_or(&infra.vpc_region),
                "subnet": infra.vpc_subnet_name,
            },
        });
        for (field, suffix) in CREDENTIALS {
            power_vs[field] = json!({ "name": format!("{}-{suffix}", common.name) });
        }
        power_vs
    }
}

// === impl Infrastructure ===

impl Infrastructure {
    fn read(path: &Path) -> anyhow::Result<Self> {
        let text = text::file("--infra-json", path)?;
        // Without the parser's message, which may quote a secret.
        serde_json::from_str(&text).map_err(|error| {
            anyhow::anyhow!(
                "--infra-json {}, line {}: this is not what create infra powervs writes",
                path.display(),
                error.line()
            )
        })
    }

    /// The Secrets with credentials, under the names that the HostedCluster has for them.
    fn credentials(&self, common: &CommonArgs) -> Result<Vec<Value>, Usage> {
        let found = CREDENTIALS.iter().map(|(_, suffix)| {
            let mut secrets = self.secrets.values();
            let secret = secrets.find(|secret| {
                let name = secret["metadata"]["name"].as_str();
                name.is_some_and(|name| name.ends_with(suffix))
            });
            let secret = secret.ok_or_else(|| {
                Usage::new(&format!(
                    "the file of --infra-json has no Secret *-{suffix} under secrets: create the infrastructure with its \
                     service IDs"
                ))
            })?;
            let mut object = json!({
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {
                    "namespace": common.namespace,
                    "name": format!("{}-{suffix}", common.name),
                },
                "type": "Opaque",
            });
            for field in ["data", "stringData"] {
                if secret[field].is_object() {
                    object[field] = secret[field].clone();
                }
            }
            Ok::<_, Usage>(object)
        });
        found.collect()
    }
}

// === impl PowerVsNodeArgs ===

impl PowerVsNodeArgs {
    /// `spec.platform` of a NodePool.
    pub(in crate::create) fn platform(&self) -> Value {
        let processors = match self.processors.parse::<u32>() {
            Ok(whole) => json!(whole),
            Err(_) => json!(self.processors),
        };
        json!({
            "type": "PowerVS",
            "powervs": {
                "systemType": self.sys_type,
                "processorType": name_of(self.proc_type),
                "processors": processors,
                "memoryGiB": self.memory,
            },
        })
    }
}

/// A number of processors, with parts of one.
fn processors(text: &str) -> Result<String, String> {
    let is_number = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    match text.parse::<f64>() {
        Ok(number) if is_number && number > 0.0 => Ok(text.to_owned()),
        _ => Err("write a number above zero, for example 0.5".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_numbers_above_zero() {
        for (text, expected) in [
            ("0.5", true),
            ("2", true),
            ("0", false),
            ("-1", false),
            ("1e3", false),
            ("inf", false),
            ("", false),
        ] {
            assert_eq!(processors(text).is_ok(), expected, "{text}");
        }
    }
}
