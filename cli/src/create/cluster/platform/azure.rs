//! Platform Azure: virtual machines of Azure, on infrastructure that exists.
//!
//! The network and the identities are described by the file of `--infra-json`, in the form in which HyperShift's
//! `create infra azure` writes it; what it says can also be given by flags.

mod encryption;
mod infrastructure;
mod nodes;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::{Parts, Platform, Pool, signing_key};
use crate::Usage;
use crate::create::cluster::args::{CommonArgs, name_of};
use crate::create::cluster::services::Services;
use crate::create::cluster::values::EndpointAccess;
use encryption::Key;
use infrastructure::{Account, Identities, Infrastructure, check_subnet};
pub(in crate::create) use nodes::{AzureNodeArgs, AzurePlace};

/// Where a cluster is without a region.
const LOCATION: &str = "eastus";

/// Flags of platform Azure.
#[derive(Debug, Clone, Args)]
pub(crate) struct AzureArgs {
    /// JSON file with subscriptionId and tenantId, as for other tools of Azure; its secrets are not used
    #[arg(long, value_name = "FILE")]
    azure_creds: PathBuf,

    /// YAML or JSON file that describes the infrastructure: resourceGroupName, vnetID, subnetID, securityGroupID, hosted
    /// zones, identities. Flags are used instead of what it says
    #[arg(long, value_name = "FILE")]
    infra_json: Option<PathBuf>,

    /// Region [default: that of --infra-json, or eastus]
    #[arg(long, value_name = "NAME")]
    location: Option<String>,

    /// Availability zones, separated by commas; each has a node pool [default: one node pool without a zone]
    #[arg(long, value_name = "ZONES", value_delimiter = ',', value_parser = ["1", "2", "3"])]
    availability_zones: Vec<String>,

    /// Resource group of the cluster
    #[arg(long, value_name = "NAME")]
    resource_group_name: Option<String>,

    /// Resource ID of the virtual network
    #[arg(long, value_name = "ID")]
    vnet_id: Option<String>,

    /// Resource ID of the subnet of the nodes
    #[arg(long, value_name = "ID")]
    subnet_id: Option<String>,

    /// Resource ID of the network security group
    #[arg(long, value_name = "ID")]
    network_security_group_id: Option<String>,

    /// URL of the key that encrypts Secrets: `https://VAULT.vault.azure.net/keys/NAME/VERSION` [default: a generated key]
    #[arg(long, value_name = "URL")]
    encryption_key_id: Option<String>,

    /// Object of the key vault with the credentials for --encryption-key-id, with managed identities
    #[arg(long, value_name = "NAME", requires = "encryption_key_id")]
    kms_credentials_secret_name: Option<String>,

    /// JSON file with the workload identities of the components, as create iam azure writes it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["managed_identities_file", "data_plane_identities_file"])]
    workload_identities_file: Option<PathBuf>,

    /// JSON file with the managed identities of the control plane
    #[arg(long, value_name = "FILE", requires = "data_plane_identities_file")]
    managed_identities_file: Option<PathBuf>,

    /// JSON file with the managed identities of components on the nodes
    #[arg(long, value_name = "FILE", requires = "managed_identities_file")]
    data_plane_identities_file: Option<PathBuf>,

    /// How the OAuth server is published
    #[arg(long, value_enum, default_value_t = OAuthPublishing::Route)]
    oauth_publishing_strategy: OAuthPublishing,

    /// URL of the issuer of tokens
    #[arg(
        long,
        value_name = "URL",
        requires = "sa_token_issuer_private_key_path"
    )]
    oidc_issuer_url: Option<String>,

    /// File with the private key (PEM) that signs service account tokens
    #[arg(long, value_name = "FILE", requires = "oidc_issuer_url")]
    sa_token_issuer_private_key_path: Option<PathBuf>,

    /// Access to the endpoints of the control plane
    #[arg(long, value_enum, default_value_t = EndpointAccess::Public)]
    endpoint_access: EndpointAccess,

    /// Resource ID of the subnet for the addresses of the private link, with private access [default: that of --infra-json]
    #[arg(long, value_name = "ID")]
    endpoint_access_private_nat_subnet_id: Option<String>,

    /// Subscriptions that may also use the private link, separated by commas
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    endpoint_access_private_additional_allowed_subscriptions: Vec<String>,

    #[command(flatten)]
    nodes: AzureNodeArgs,
}

/// How the OAuth server is published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
enum OAuthPublishing {
    /// By a route
    Route,
    /// By a load balancer of its own
    LoadBalancer,
}

impl Platform for AzureArgs {
    fn parts(&self, common: &CommonArgs) -> anyhow::Result<Parts> {
        let account = Account::read(&self.azure_creds)?;
        let infra = Infrastructure::read(self.infra_json.as_deref())?;
        let identities = self.identities(&infra)?;
        let subnet = check_subnet("--subnet-id", self.subnet(&infra)?)?;
        let pools = self.pools(common, &infra, &subnet)?;
        let platform = json!({
            "type": "Azure",
            "azure": self.azure(&account, &infra, &identities, &subnet)?,
        });
        let mut spec = Vec::new();
        let mut objects = vec![credentials(common, &account)];
        let key = self.sa_token_issuer_private_key_path.as_deref();
        if let (Some(url), Some(path)) = (&self.oidc_issuer_url, key) {
            let (reference, secret) = signing_key(common, path)?;
            spec.push(("issuerURL", json!(url)));
            spec.push(("serviceAccountSigningKey", reference));
            objects.push(secret);
        }
        if let Some(url) = &self.encryption_key_id {
            let key = Key::read(url)?;
            let secret = self.kms_credentials_secret_name.as_deref();
            spec.push(("secretEncryption", key.encryption(&identities, secret)?));
        }
        Ok(Parts {
            spec,
            objects,
            zones: infra.hosted_zones(),
            infra_id: infra.infra_id.clone(),
            base_domain: infra.base_domain.clone(),
            ..Parts::new(platform, self.services(common, &infra, &identities)?, pools)
        })
    }
}

// === impl AzureArgs ===

impl AzureArgs {
    fn identities(&self, infra: &Infrastructure) -> anyhow::Result<Identities> {
        let managed = self
            .managed_identities_file
            .as_deref()
            .zip(self.data_plane_identities_file.as_deref());
        Identities::read(self.workload_identities_file.as_deref(), managed, infra)
    }

    fn subnet<'a>(&'a self, infra: &'a Infrastructure) -> Result<&'a str, Usage> {
        needed(
            "--subnet-id",
            "subnetID",
            self.subnet_id.as_ref(),
            infra.subnet_id.as_ref(),
        )
    }

    /// `spec.platform.azure` of the HostedCluster.
    fn azure(
        &self,
        account: &Account,
        infra: &Infrastructure,
        identities: &Identities,
        subnet: &str,
    ) -> Result<Value, Usage> {
        let group = needed(
            "--resource-group-name",
            "resourceGroupName",
            self.resource_group_name.as_ref(),
            infra.resource_group_name.as_ref(),
        )?;
        let network = needed(
            "--vnet-id",
            "vnetID",
            self.vnet_id.as_ref(),
            infra.vnet_id.as_ref(),
        )?;
        let security_group = needed(
            "--network-security-group-id",
            "securityGroupID",
            self.network_security_group_id.as_ref(),
            infra.security_group_id.as_ref(),
        )?;
        let location = self.location.as_ref().or(infra.region.as_ref());
        let mut azure = json!({
            "location": location.map_or(LOCATION, String::as_str),
            "subscriptionID": account.subscription_id,
            "tenantID": account.tenant_id,
            "resourceGroup": group,
            "vnetID": network,
            "subnetID": subnet,
            "securityGroupID": security_group,
            "azureAuthenticationConfig": identities.config(),
        });
        let private = self.private(infra)?;
        if private.is_some() || identities.are_workload() {
            azure["topology"] = json!(name_of(self.endpoint_access));
        }
        if let Some(private) = private {
            azure["private"] = private;
        }
        Ok(azure)
    }

    /// How nodes reach a control plane that is not public only.
    fn private(&self, infra: &Infrastructure) -> Result<Option<Value>, Usage> {
        let flag = "--endpoint-access-private-nat-subnet-id";
        let given = self.endpoint_access_private_nat_subnet_id.as_ref();
        let subscriptions = &self.endpoint_access_private_additional_allowed_subscriptions;
        if self.endpoint_access == EndpointAccess::Public {
            if given.is_some() || !subscriptions.is_empty() {
                return Err(Usage::new(&format!(
                    "{flag} and --endpoint-access-private-additional-allowed-subscriptions need \
                     --endpoint-access=PublicAndPrivate or Private"
                )));
            }
            return Ok(None);
        }
        let subnet = given.or(infra.nat_subnet_id.as_ref());
        let mut link = json!({});
        if let Some(subnet) = subnet {
            link["natSubnetID"] = json!(check_subnet(flag, subnet)?);
        }
        if !subscriptions.is_empty() {
            link["additionalAllowedSubscriptions"] = json!(subscriptions);
        }
        if link == json!({}) {
            return Err(Usage::new(&format!(
                "--endpoint-access={} needs {flag}, or natSubnetID in the file of --infra-json",
                name_of(self.endpoint_access)
            )));
        }
        Ok(Some(json!({ "type": "PrivateLink", "privateLink": link })))
    }

    fn services(
        &self,
        common: &CommonArgs,
        infra: &Infrastructure,
        identities: &Identities,
    ) -> Result<Services, Usage> {
        let domain = common.external_dns_domain.as_deref();
        let base = common.base_domain.as_ref().or(infra.base_domain.as_ref());
        if let (Some(domain), Some(base)) = (domain, base) {
            let own = format!("{}.{base}", common.name);
            if own == domain || own.ends_with(&format!(".{domain}")) {
                return Err(Usage::new(&format!(
                    "--external-dns-domain {domain} contains the domain of the cluster, {own}: use another domain, since \
                     names in it would be those of the cluster's applications"
                )));
            }
        }
        let services = Services::cloud(domain, self.endpoint_access);
        match self.oauth_publishing_strategy {
            OAuthPublishing::Route => Ok(services),
            OAuthPublishing::LoadBalancer if identities.are_workload() => {
                Ok(services.with_oauth_load_balancer())
            }
            OAuthPublishing::LoadBalancer => Err(Usage::new(
                &"--oauth-publishing-strategy=LoadBalancer is not possible with managed identities: leave it out, or use \
                  --workload-identities-file",
            )),
        }
    }

    fn pools(
        &self,
        common: &CommonArgs,
        infra: &Infrastructure,
        subnet: &str,
    ) -> Result<Vec<Pool>, Usage> {
        let platform = |zone: Option<&str>| {
            self.nodes.platform(&AzurePlace {
                arch: common.arch,
                subnet,
                zone,
                boot_image: infra.boot_image_id.as_deref(),
            })
        };
        if self.availability_zones.is_empty() {
            return Ok(Pool::only(platform(None)?));
        }
        let zones = self.availability_zones.iter();
        zones
            .map(|zone| {
                Ok::<_, Usage>(Pool {
                    suffix: Some(zone.clone()),
                    platform: platform(Some(zone))?,
                })
            })
            .collect()
    }
}

/// What a flag or the file must say.
fn needed<'a>(
    flag: &str,
    field: &str,
    given: Option<&'a String>,
    read: Option<&'a String>,
) -> Result<&'a str, Usage> {
    let value = given.or(read).filter(|value| !value.is_empty());
    value.map(String::as_str).ok_or_else(|| {
        Usage::new(&format!(
            "{flag} is needed: this command creates no infrastructure on Azure; pass it, or {field} in the file of \
             --infra-json"
        ))
    })
}

/// The account, where tools of HyperShift look for it.
fn credentials(common: &CommonArgs, account: &Account) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "namespace": common.namespace,
            "name": format!("{}-cloud-credentials", common.name),
        },
        "type": "Opaque",
        "stringData": {
            "AZURE_SUBSCRIPTION_ID": account.subscription_id,
            "AZURE_TENANT_ID": account.tenant_id,
        },
    })
}
