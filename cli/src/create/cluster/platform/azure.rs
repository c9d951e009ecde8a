//! Platform Azure: virtual machines of Azure.
//!
//! The infrastructure is described by the file of `--infra-json`, in the form in which `create infra azure` writes it; what it
//! says can also be given by flags. Without the file, what flags do not name is created.

mod encryption;
mod from_nothing;
mod infrastructure;
mod nodes;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::{Parts, Platform, Pool, signing_key};
use crate::Usage;
use crate::create::cluster::args::{CommonArgs, RunArgs, name_of};
use crate::create::cluster::options::Options;
use crate::create::cluster::services::Services;
use crate::create::cluster::values::EndpointAccess;
use crate::infra::azure::{Account, AzureNetworkArgs, IdentityFiles, LOCATION, check_subnet};
use encryption::Key;
use infrastructure::{Infrastructure, are_workload, config, future_identities};
pub(in crate::create) use nodes::{AzureNodeArgs, AzurePlace};

/// Flags of platform Azure.
#[derive(Debug, Clone, Args)]
pub(crate) struct AzureArgs {
    /// JSON or YAML file with subscriptionId and tenantId, and with clientId and clientSecret for what is created; without a
    /// secret, credentials of the environment are used
    #[arg(long, value_name = "FILE")]
    azure_creds: PathBuf,

    /// YAML or JSON file that describes the infrastructure: resourceGroupName, vnetID, subnetID, securityGroupID, hosted
    /// zones, identities. Flags are used instead of what it says [default: what flags do not name is created]
    #[arg(long, value_name = "FILE")]
    infra_json: Option<PathBuf>,

    /// Region [default: that of --infra-json, or eastus]
    #[arg(long, value_name = "NAME")]
    location: Option<String>,

    /// Availability zones, separated by commas; each has a node pool [default: one node pool without a zone]
    #[arg(long, value_name = "ZONES", value_delimiter = ',', value_parser = ["1", "2", "3"])]
    availability_zones: Vec<String>,

    #[command(flatten)]
    network: AzureNetworkArgs,

    /// Assign roles to the identities of files; for some components this is Contributor. Identities that are created always
    /// have roles
    #[arg(long, alias = "auto-assign-roles")]
    assign_service_principal_roles: bool,

    /// Assign roles to the identities that permit no more than components need
    #[arg(long)]
    assign_custom_hcp_roles: bool,

    /// URL of the key that encrypts Secrets: `https://VAULT.vault.azure.net/keys/NAME/VERSION` [default: a generated key]
    #[arg(long, value_name = "URL")]
    encryption_key_id: Option<String>,

    /// Object of the key vault with the credentials for --encryption-key-id, with managed identities
    #[arg(long, value_name = "NAME", requires = "encryption_key_id")]
    kms_credentials_secret_name: Option<String>,

    /// JSON file with the workload identities of the components, as create iam azure writes it [default: they are created for
    /// --oidc-issuer-url]
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
        self.check()?;
        let infra = match &self.infra_json {
            Some(path) => Infrastructure::read(path)?,
            None => self.future_infrastructure(common, &account)?,
        };
        let identities = match self.identities(&infra)? {
            Some(identities) => identities,
            None if self.creates_identities() => future_identities(),
            None => return Err(no_identities().into()),
        };
        self.parts_of(common, &account, &infra, &identities)
    }

    async fn provide(
        &self,
        common: &CommonArgs,
        options: &Options,
        run: &RunArgs,
    ) -> anyhow::Result<Option<Parts>> {
        if self.infra_json.is_some() || run.renders() && self.is_described() {
            return Ok(None);
        }
        Box::pin(self.create(common, options, run)).await
    }
}

// === impl AzureArgs ===

impl AzureArgs {
    /// Refuses flags for what is created if all exists.
    fn check(&self) -> Result<(), Usage> {
        for (flag, given) in [
            (
                "--resource-group-tags",
                !self.network.resource_group_tags.is_empty(),
            ),
            (
                "--dns-zone-rg-name",
                self.network.dns_zone_rg_name.is_some(),
            ),
            (
                "--assign-service-principal-roles",
                self.assign_service_principal_roles,
            ),
            ("--assign-custom-hcp-roles", self.assign_custom_hcp_roles),
        ] {
            if given && self.infra_json.is_some() {
                return Err(Usage::new(&format!(
                    "{flag} is for infrastructure that is created, and --infra-json describes one that exists: leave out \
                     one of them"
                )));
            }
        }
        Ok(())
    }

    /// The parts on an infrastructure.
    fn parts_of(
        &self,
        common: &CommonArgs,
        account: &Account,
        infra: &Infrastructure,
        identities: &IdentityFiles,
    ) -> anyhow::Result<Parts> {
        let subnet = check_subnet("--subnet-id", self.subnet(infra)?)?.text;
        let pools = self.pools(common, infra, &subnet)?;
        let platform = json!({
            "type": "Azure",
            "azure": self.azure(account, infra, identities, &subnet)?,
        });
        let mut spec = Vec::new();
        let mut objects = vec![credentials(common, account)];
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
            spec.push(("secretEncryption", key.encryption(identities, secret)?));
        }
        Ok(Parts {
            spec,
            objects,
            zones: infra.hosted_zones(),
            infra_id: infra.infra_id.clone(),
            base_domain: infra.base_domain.clone(),
            ..Parts::new(platform, self.services(common, infra, identities)?, pools)
        })
    }

    /// The identities of files, or of the infrastructure.
    fn identities(&self, infra: &Infrastructure) -> anyhow::Result<Option<IdentityFiles>> {
        let managed = self.managed_identities_file.as_deref();
        let managed = managed.zip(self.data_plane_identities_file.as_deref());
        infra.identities(self.workload_identities_file.as_deref(), managed)
    }

    fn subnet<'a>(&'a self, infra: &'a Infrastructure) -> Result<&'a str, Usage> {
        needed(
            "--subnet-id",
            "subnetID",
            self.network.subnet_id.as_ref(),
            infra.subnet_id.as_ref(),
        )
    }

    /// `spec.platform.azure` of the HostedCluster.
    fn azure(
        &self,
        account: &Account,
        infra: &Infrastructure,
        identities: &IdentityFiles,
        subnet: &str,
    ) -> Result<Value, Usage> {
        let group = needed(
            "--resource-group-name",
            "resourceGroupName",
            self.network.resource_group_name.as_ref(),
            infra.resource_group_name.as_ref(),
        )?;
        let network = needed(
            "--vnet-id",
            "vnetID",
            self.network.vnet_id.as_ref(),
            infra.vnet_id.as_ref(),
        )?;
        let security_group = needed(
            "--network-security-group-id",
            "securityGroupID",
            self.network.network_security_group_id.as_ref(),
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
            "azureAuthenticationConfig": config(identities),
        });
        let private = self.private(infra)?;
        if private.is_some() || are_workload(identities) {
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
            link["natSubnetID"] = json!(check_subnet(flag, subnet)?.text);
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
        identities: &IdentityFiles,
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
            OAuthPublishing::LoadBalancer if are_workload(identities) => {
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
            "{flag} is needed: pass it, or {field} in the file of --infra-json; without this file, it is created"
        ))
    })
}

fn no_identities() -> Usage {
    Usage::new(
        &"--workload-identities-file is needed: pass it, or workloadIdentities in the file of --infra-json; without both, \
          identities are created for --oidc-issuer-url",
    )
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
