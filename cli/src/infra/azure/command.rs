//! `create infra azure`, `create iam azure`, `destroy infra azure`, `destroy iam azure`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;
use support::azure::Cloud;

use super::LOCATION;
use super::account::Account;
use super::client::Azure;
use super::create::{CreateRequest, Identities};
use super::create_identity::IdentityRequest;
use super::destroy_groups::DestroyRequest;
use super::executor::Executor;
use super::found::{NetworkRequest, check_group};
use super::identity_files::{IdentityFiles, Registry};
use super::roles::{Groups, RoleSet};
use super::scope::Scope;
use crate::crds::output::{Format, stream};
use crate::create::{Capability, text};
use crate::infra::aws::Domain;
use crate::install::display::{Display, print};
use crate::install::runtime;

/// Flags of all commands.
#[derive(Debug, Args)]
pub(crate) struct ScopeArgs {
    /// Name of the infrastructure: of its resources, and in their tags
    #[arg(long, value_name = "ID")]
    infra_id: String,

    /// Name of the cluster
    #[arg(long, value_name = "NAME")]
    name: String,

    /// JSON or YAML file with subscriptionId, tenantId, clientId and clientSecret; without a secret, credentials of the
    /// environment are used
    #[arg(long, value_name = "FILE")]
    azure_creds: PathBuf,

    #[arg(
        long,
        value_name = "NAME",
        default_value = "AzurePublicCloud",
        value_parser = cloud,
        help = "Cloud: AzurePublicCloud, AzureUSGovernmentCloud, AzureChinaCloud or AzureBleuCloud"
    )]
    cloud: Cloud,

    /// Report what there is and what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,

    /// Suppress progress output
    #[arg(long, short)]
    quiet: bool,
}

/// Flags of a network, which `create cluster azure` has, too.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct AzureNetworkArgs {
    /// Resource group that exists, for everything [default: groups are created]
    #[arg(long, value_name = "NAME")]
    pub(crate) resource_group_name: Option<String>,

    /// Tags of resource groups that are created, separated by commas
    #[arg(long, short = 't', value_name = "KEY=VALUE", value_delimiter = ',')]
    pub(crate) resource_group_tags: Vec<String>,

    /// Resource ID of a virtual network that exists [default: one is created]
    #[arg(long, value_name = "ID")]
    pub(crate) vnet_id: Option<String>,

    /// Resource ID of the subnet of the nodes in that network [default: its only subnet, or the one called default]
    #[arg(long, value_name = "ID")]
    pub(crate) subnet_id: Option<String>,

    /// Resource ID of a network security group that exists [default: one is created]
    #[arg(long, value_name = "ID")]
    pub(crate) network_security_group_id: Option<String>,

    /// Resource group of the public DNS zone [default: that of the only zone with the name of the base domain]
    #[arg(long, value_name = "NAME")]
    pub(crate) dns_zone_rg_name: Option<String>,
}

/// Flags of `create infra azure`.
#[derive(Debug, Args)]
pub(crate) struct CreateInfraArgs {
    #[command(flatten)]
    scope: ScopeArgs,

    /// Base domain of the cluster, which has a public DNS zone
    #[arg(long, value_name = "DOMAIN")]
    base_domain: String,

    /// Region
    #[arg(long, value_name = "NAME", default_value = LOCATION)]
    location: String,

    #[command(flatten)]
    network: AzureNetworkArgs,

    /// JSON file with the workload identities of the components, as create iam azure writes it
    #[arg(
        long,
        value_name = "FILE",
        required_unless_present = "managed_identities_file",
        conflicts_with_all = ["managed_identities_file", "data_plane_identities_file"]
    )]
    workload_identities_file: Option<PathBuf>,

    /// JSON file with the managed identities of the control plane
    #[arg(long, value_name = "FILE", requires = "data_plane_identities_file")]
    managed_identities_file: Option<PathBuf>,

    /// JSON file with the managed identities of components on the nodes
    #[arg(long, value_name = "FILE", requires = "managed_identities_file")]
    data_plane_identities_file: Option<PathBuf>,

    /// Assign roles to the identities; for some components this is Contributor
    #[arg(long)]
    assign_identity_roles: bool,

    /// Assign roles to the identities that permit no more than components need
    #[arg(long)]
    assign_custom_hcp_roles: bool,

    /// Cluster capabilities that are disabled, separated by commas: without an image registry, its identity gets no role
    #[arg(long, value_enum, value_delimiter = ',')]
    disable_cluster_capabilities: Vec<Capability>,

    /// File for the description of the infrastructure in YAML [default: standard output]
    #[arg(long, value_name = "FILE")]
    output_file: Option<PathBuf>,
}

/// Flags of `create iam azure`.
#[derive(Debug, Args)]
pub(crate) struct CreateIamArgs {
    #[command(flatten)]
    scope: ScopeArgs,

    /// Region
    #[arg(long, value_name = "NAME", default_value = LOCATION)]
    location: String,

    /// Resource group for the identities, which is created if it does not exist
    #[arg(long, value_name = "NAME")]
    resource_group_name: String,

    /// URL of the issuer of the cluster's tokens
    #[arg(long, value_name = "URL")]
    oidc_issuer_url: String,

    /// Also create an identity that encrypts Secrets by a key of a key vault
    #[arg(long)]
    enable_kms: bool,

    /// File for the description of the identities in JSON
    #[arg(long, value_name = "FILE")]
    output_file: PathBuf,
}

/// Flags of `destroy infra azure`.
#[derive(Debug, Args)]
pub(crate) struct DestroyInfraArgs {
    #[command(flatten)]
    scope: ScopeArgs,

    /// Region; resources are found without it
    #[arg(long, value_name = "NAME", default_value = LOCATION)]
    location: String,

    /// Resource group of the cluster, if it was not created for it: only resources of the cluster are deleted
    #[arg(long, value_name = "NAME")]
    resource_group_name: Option<String>,

    /// Keep the resource group of the cluster, and delete only resources of the cluster
    #[arg(long)]
    preserve_resource_group: bool,
}

/// Flags of `destroy iam azure`.
#[derive(Debug, Args)]
pub(crate) struct DestroyIamArgs {
    #[command(flatten)]
    scope: ScopeArgs,

    /// Resource group of the identities
    #[arg(long, value_name = "NAME")]
    resource_group_name: String,

    /// JSON file with the identities, as create iam azure writes it: identities without a tag are deleted only if it has them
    #[arg(long, value_name = "FILE")]
    workload_identities_file: PathBuf,

    /// Resource group of the public DNS zone, whose role assignments are deleted, too, if the identities are gone
    #[arg(long, value_name = "NAME")]
    dns_zone_rg_name: Option<String>,
}

/// Makes calls for a scope.
struct Session {
    azure: Azure,
    scope: Scope,
    display: Display,
}

// === impl ScopeArgs ===

impl ScopeArgs {
    fn session(&self, location: &str, tags: &[String]) -> anyhow::Result<Session> {
        let tags = text::pairs("--resource-group-tags", tags)?;
        let account = Account::read(&self.azure_creds)?;
        let (infra_id, name) = (&self.infra_id, &self.name);
        let scope = Scope::new(infra_id, name, location, &account, self.cloud, tags)?;
        Ok(Session {
            azure: account.connect(self.cloud)?,
            scope,
            display: Display::new(self.quiet),
        })
    }
}

fn cloud(name: &str) -> Result<Cloud, String> {
    Cloud::of_name(name).ok_or_else(|| match name {
        "AzureGermanCloud" => {
            "this cloud was closed in 2021: use AzurePublicCloud, which has regions in Germany"
                .to_owned()
        }
        _ => "use AzurePublicCloud, AzureUSGovernmentCloud, AzureChinaCloud or AzureBleuCloud"
            .to_owned(),
    })
}

// === impl AzureNetworkArgs ===

impl AzureNetworkArgs {
    /// Whether all of an existing network is named, so that nothing has to be looked up.
    pub(crate) fn is_complete(&self) -> bool {
        self.resource_group_name.is_some()
            && self.vnet_id.is_some()
            && self.subnet_id.is_some()
            && self.network_security_group_id.is_some()
    }
}

// === impl Session ===

impl Session {
    fn executor(&self) -> Executor<'_, Azure> {
        Executor {
            calls: &self.azure,
            scope: &self.scope,
            display: &self.display,
        }
    }
}

// === impl CreateInfraArgs ===

impl CreateInfraArgs {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let domain = Domain::new(&self.base_domain, None, &self.scope.name)?;
        let request = CreateRequest::new(
            NetworkRequest::new(domain, &self.network)?,
            Identities::Existing(self.identities()?),
            role_set(self.assign_identity_roles, self.assign_custom_hcp_roles),
            registry(&self.disable_cluster_capabilities),
        )?;
        let tags = &self.network.resource_group_tags;
        let session = self.scope.session(&self.location, tags)?;
        runtime()?.block_on(async {
            let executor = session.executor();
            if self.scope.dry_run {
                return Box::pin(executor.report(&request)).await;
            }
            let output = Box::pin(executor.create(&request)).await?;
            let text = stream(&[serde_json::to_value(&output)?], Format::Yaml)?;
            write(&text, self.output_file.as_deref())
        })
    }

    fn identities(&self) -> anyhow::Result<IdentityFiles> {
        let managed = self.managed_identities_file.as_deref();
        let managed = managed.zip(self.data_plane_identities_file.as_deref());
        let read = IdentityFiles::read(self.workload_identities_file.as_deref(), managed)?;
        read.context("--workload-identities-file is needed")
    }
}

// === impl CreateIamArgs ===

impl CreateIamArgs {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let mut request = IdentityRequest::new(&self.resource_group_name, &self.oidc_issuer_url)?;
        if self.enable_kms {
            request = request.with_kms();
        }
        let session = self.scope.session(&self.location, &[])?;
        runtime()?.block_on(async {
            let executor = session.executor();
            if self.scope.dry_run {
                return Box::pin(executor.report_identity(&request)).await;
            }
            let output = Box::pin(executor.create_identity(&request)).await?;
            write(&pretty(&output.document())?, Some(&self.output_file))
        })
    }
}

// === impl DestroyInfraArgs ===

impl DestroyInfraArgs {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let session = self.scope.session(&self.location, &[])?;
        let group = self.resource_group_name.as_deref();
        let request = DestroyRequest::new(&session.scope, group, self.preserve_resource_group)?;
        runtime()?.block_on(async {
            let executor = session.executor();
            if self.scope.dry_run {
                return Box::pin(executor.report_groups(&request)).await;
            }
            Box::pin(executor.destroy_groups(&request)).await
        })
    }
}

// === impl DestroyIamArgs ===

impl DestroyIamArgs {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let group = &self.resource_group_name;
        check_group("--resource-group-name", Some(group))?;
        check_group("--dns-zone-rg-name", self.dns_zone_rg_name.as_deref())?;
        let identities = IdentityFiles::read(Some(&self.workload_identities_file), None)?;
        let clients = identities.map(|it| it.client_ids()).unwrap_or_default();
        let session = self.scope.session(LOCATION, &[])?;
        let dns = self.dns_zone_rg_name.as_deref();
        let groups = [
            Groups::created(&session.scope, dns),
            Groups::given(&session.scope, group, dns),
        ];
        runtime()?.block_on(async {
            let executor = session.executor();
            if self.scope.dry_run {
                let report = executor.report_identity_destruction(group, &clients, &groups);
                return Box::pin(report).await;
            }
            Box::pin(executor.destroy_identity(group, &clients, &groups)).await
        })
    }
}

/// Which roles are assigned, if any are.
pub(crate) fn role_set(usual: bool, custom: bool) -> Option<RoleSet> {
    match (usual, custom) {
        (_, true) => Some(RoleSet::Custom),
        (true, false) => Some(RoleSet::Usual),
        (false, false) => None,
    }
}

/// Whether the image registry is among the capabilities that are disabled.
pub(crate) fn registry(disabled: &[Capability]) -> Registry {
    if disabled.contains(&Capability::ImageRegistry) {
        return Registry::Disabled;
    }
    Registry::Enabled
}

fn pretty(output: &impl Serialize) -> anyhow::Result<String> {
    let mut text = serde_json::to_string_pretty(output)?;
    text.push('\n');
    Ok(text)
}

fn write(text: &str, path: Option<&Path>) -> anyhow::Result<()> {
    match path {
        Some(path) => {
            fs::write(path, text).with_context(|| format!("failed to write {}", path.display()))
        }
        None => print(text),
    }
}
