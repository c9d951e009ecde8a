//! `create infra aws`, `create iam aws`, `destroy infra aws`, `destroy iam aws`.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;
use support::files::set_mode;

use super::REGION;
use super::accounts::Accounts;
use super::bucket::Issuer;
use super::client::Aws;
use super::create_identity::IdentityRequest;
use super::create_network::{NetworkOutput, NetworkRequest};
use super::credentials::{CredentialArgs, OwnerArgs};
use super::destroy_network::DestroyRequest;
use super::executor::Executor;
use super::proxy::ProxyArgs;
use super::roles::{Form, MANAGED_TAGS, Resources};
use super::scope::Scope;
use super::signing_key::SigningKey;
use super::zones::Domain;
use crate::Usage;
use crate::create::ssh_key::SshKey;
use crate::create::text;
use crate::infra::private_file;
use crate::install::display::{Display, print};
use crate::install::runtime;

/// Flags of all commands.
#[derive(Debug, Args)]
pub(crate) struct ScopeArgs {
    /// Name of the infrastructure: of its resources, and in their tags
    #[arg(long, value_name = "ID")]
    infra_id: String,

    /// Region
    #[arg(long, value_name = "NAME", default_value = REGION)]
    region: String,

    #[command(flatten)]
    credentials: CredentialArgs,

    #[command(flatten)]
    owner: OwnerArgs,

    /// Report what there is and what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,

    /// Suppress progress output
    #[arg(long, short)]
    quiet: bool,
}

/// Flags that name a cluster and its domain.
#[derive(Debug, Args)]
pub(crate) struct ClusterArgs {
    /// Name of the cluster
    #[arg(long, value_name = "NAME", default_value = "example")]
    name: String,

    /// Base domain of the cluster, which has a public hosted zone
    #[arg(long, value_name = "DOMAIN")]
    base_domain: String,

    /// First part of the cluster's domain, if it is not the cluster's name; "none" for no such part
    #[arg(long, value_name = "NAME")]
    base_domain_prefix: Option<String>,
}

/// Flags of a network, which `create cluster aws` has, too.
#[derive(Debug, Clone, Args)]
pub(crate) struct VpcArgs {
    /// Availability zones, separated by commas [default: the first one of the region]
    #[arg(long, value_name = "ZONES", value_delimiter = ',')]
    pub(crate) zones: Vec<String>,

    /// Address range of the VPC, of 16 bits
    #[arg(long, value_name = "CIDR", default_value = "10.0.0.0/16")]
    pub(crate) vpc_cidr: String,

    /// Create one NAT gateway instead of one for each zone
    #[arg(long)]
    pub(crate) single_nat_gateway: bool,

    /// Have nodes in public subnets, and create no private ones
    #[arg(long)]
    pub(crate) public_only: bool,

    #[command(flatten)]
    pub(crate) proxy: ProxyArgs,
}

/// Flags of `create infra aws`.
#[derive(Debug, Args)]
pub(crate) struct CreateInfraArgs {
    #[command(flatten)]
    scope: ScopeArgs,

    #[command(flatten)]
    cluster: ClusterArgs,

    #[command(flatten)]
    network: VpcArgs,

    /// Tags of all resources, separated by commas
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',')]
    additional_tags: Vec<String>,

    /// File for the description of the network in JSON [default: standard output]
    #[arg(long, value_name = "FILE")]
    output_file: Option<PathBuf>,
}

/// Flags of `create iam aws`.
#[derive(Debug, Args)]
pub(crate) struct CreateIamArgs {
    #[command(flatten)]
    scope: ScopeArgs,

    /// Identifier of the public hosted zone of the base domain
    #[arg(long, value_name = "ID")]
    public_zone_id: String,

    /// Identifier of the private hosted zone of the cluster's domain
    #[arg(long, value_name = "ID")]
    private_zone_id: String,

    /// Identifier of the private hosted zone of endpoints
    #[arg(long, value_name = "ID")]
    local_zone_id: String,

    /// Bucket in the region for the documents of the issuer of tokens [default: one is created]
    #[arg(long, value_name = "NAME")]
    oidc_storage_provider_s3_bucket_name: Option<String>,

    /// URL of an issuer whose identity provider exists
    #[arg(
        long,
        value_name = "URL",
        conflicts_with = "oidc_storage_provider_s3_bucket_name"
    )]
    oidc_issuer_url: Option<String>,

    /// File with the private key (PEM) that signs tokens, whose documents are published; it is generated if the file does not
    /// exist [default: no documents are published]
    #[arg(long, value_name = "FILE", conflicts_with = "oidc_issuer_url")]
    sa_token_issuer_private_key_path: Option<PathBuf>,

    /// ARN of the KMS key for encrypting Secrets
    #[arg(long, value_name = "ARN")]
    kms_key_arn: Option<String>,

    /// Create the role of Karpenter, too, which makes nodes of a cluster with AutoNode
    #[arg(long)]
    auto_node: bool,

    #[command(flatten)]
    roles: RoleArgs,

    /// Base domain of the cluster, for --use-rosa-managed-policies
    #[arg(long, value_name = "DOMAIN")]
    base_domain: Option<String>,

    /// Tags of all resources, separated by commas
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',')]
    additional_tags: Vec<String>,

    /// File for the description of the roles in JSON [default: standard output]
    #[arg(long, value_name = "FILE")]
    output_file: Option<PathBuf>,
}

/// Flags of `destroy infra aws`.
#[derive(Debug, Args)]
pub(crate) struct DestroyInfraArgs {
    #[command(flatten)]
    scope: ScopeArgs,

    #[command(flatten)]
    cluster: ClusterArgs,

    /// Time limit for the deletion, or 0 for no limit
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = text::time_or_zero)]
    aws_infra_grace_period: Duration,
}

/// Flags of `destroy iam aws`.
#[derive(Debug, Args)]
pub(crate) struct DestroyIamArgs {
    #[command(flatten)]
    scope: ScopeArgs,
}

/// Flags of roles, which `create cluster aws` has, too.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RoleArgs {
    /// Attach the policies that AWS manages for ROSA to roles, instead of policies of their own
    #[arg(long)]
    use_rosa_managed_policies: bool,

    /// Create one role for all components, instead of one for each
    #[arg(long)]
    shared_role: bool,
}

/// Makes calls for a scope.
struct Session {
    aws: Aws,
    /// For the account of the VPC, if it is another one.
    owner: Option<Aws>,
    owner_args: OwnerArgs,
    scope: Scope,
    display: Display,
}

// === impl ScopeArgs ===

impl ScopeArgs {
    fn session(
        &self,
        name: &str,
        tags: BTreeMap<String, String>,
        session: &str,
    ) -> anyhow::Result<Session> {
        let scope = Scope::new(&self.infra_id, name, &self.region, tags)?;
        Ok(Session {
            aws: self.credentials.connect(&self.region, session)?,
            owner: self.owner.connect(&self.region, session)?,
            owner_args: self.owner.clone(),
            scope,
            display: Display::new(self.quiet),
        })
    }
}

// === impl RoleArgs ===

impl RoleArgs {
    /// Whether a flag is given, for messages.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let flags = [
            (
                "--use-rosa-managed-policies",
                self.use_rosa_managed_policies,
            ),
            ("--shared-role", self.shared_role),
        ];
        flags
            .into_iter()
            .find_map(|(flag, given)| given.then_some(flag))
    }

    /// Tags that managed policies require, beside others.
    pub(crate) fn add_tags(&self, tags: &mut BTreeMap<String, String>) {
        if !self.use_rosa_managed_policies {
            return;
        }
        for (key, value) in MANAGED_TAGS {
            tags.insert(key.to_owned(), value.to_owned());
        }
    }

    /// What roles are like. Managed policies need the base domain.
    pub(crate) fn form(&self, base_domain: Option<&str>) -> Result<Form, Usage> {
        let base_domain = base_domain.filter(|domain| !domain.is_empty());
        if self.use_rosa_managed_policies && base_domain.is_none() {
            return Err(Usage::new(
                &"--use-rosa-managed-policies needs --base-domain: the policy of the ingress is for its names",
            ));
        }
        let managed = base_domain.filter(|_| self.use_rosa_managed_policies);
        Ok(Form {
            shared: self.shared_role,
            managed: managed.map(str::to_owned),
        })
    }
}

// === impl ClusterArgs ===

impl ClusterArgs {
    fn domain(&self) -> Result<Domain, Usage> {
        let prefix = self.base_domain_prefix.as_deref();
        Domain::new(&self.base_domain, prefix, &self.name)
    }
}

// === impl Session ===

impl Session {
    fn executor<'a>(&'a self, aws: &'a Aws) -> Executor<'a, Aws> {
        Executor {
            calls: aws,
            scope: &self.scope,
            display: &self.display,
        }
    }

    /// Makes calls for each account.
    fn executors(&self) -> (Executor<'_, Aws>, Option<Executor<'_, Aws>>) {
        let owner = self.owner.as_ref();
        (
            self.executor(&self.aws),
            owner.map(|owner| self.executor(owner)),
        )
    }

    fn accounts<'a>(
        &self,
        (cluster, owner): &'a (Executor<'_, Aws>, Option<Executor<'_, Aws>>),
    ) -> Accounts<'a, Aws> {
        Accounts::new(cluster, owner.as_ref(), self.owner_args.private_zones())
    }
}

// === impl CreateInfraArgs ===

impl CreateInfraArgs {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        if self.network.proxy.has_machine() && self.output_file.is_none() && !self.scope.dry_run {
            return Err(Usage::new(
                &"a proxy that is created needs --output-file: the description has the private key of the proxy's user",
            )
            .into());
        }
        let earlier = self.output_file.as_deref();
        let key = earlier.and_then(|path| earlier_key(path, &self.scope.infra_id));
        let request = NetworkRequest::new(self.cluster.domain()?, &self.network, key)?;
        let name = &self.cluster.name;
        let tags = text::pairs("--additional-tags", &self.additional_tags)?;
        let session = self.scope.session(name, tags, "cli-create-infra")?;
        let executors = session.executors();
        let accounts = session.accounts(&executors);
        runtime()?.block_on(async {
            if self.scope.dry_run {
                return Box::pin(accounts.report_network(&request)).await;
            }
            let output = Box::pin(accounts.create_network(&request)).await?;
            match self.output_file.as_deref() {
                Some(path) if !output.proxy_private_ssh_key.is_empty() => {
                    private_file::write(path, &json(&output)?)
                }
                path => write(&output, path),
            }
        })
    }
}

// === impl CreateIamArgs ===

impl CreateIamArgs {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let ScopeArgs {
            infra_id,
            region,
            dry_run,
            ..
        } = &self.scope;
        let mut tags = text::pairs("--additional-tags", &self.additional_tags)?;
        self.roles.add_tags(&mut tags);
        let session = self.scope.session(infra_id, tags, "cli-create-iam")?;
        let bucket = self.oidc_storage_provider_s3_bucket_name.as_deref();
        let url = self.oidc_issuer_url.as_deref();
        let path = self.sa_token_issuer_private_key_path.as_deref();
        let request = IdentityRequest {
            issuer: Issuer::new(infra_id, region, bucket, url)?,
            resources: Resources {
                public_zone: self.public_zone_id.clone(),
                private_zone: self.private_zone_id.clone(),
                local_zone: self.local_zone_id.clone(),
                kms_key: self.kms_key_arn.clone(),
                auto_node: self.auto_node,
                shared_vpc: self.scope.owner.is_given(),
            },
            form: self.roles.form(self.base_domain.as_deref())?,
            key: path.filter(|_| !dry_run).map(signing_key).transpose()?,
        };
        let executors = session.executors();
        let accounts = session.accounts(&executors);
        runtime()?.block_on(async {
            if *dry_run {
                return Box::pin(accounts.report_identity(&request)).await;
            }
            let output = Box::pin(accounts.create_identity(&request)).await?;
            write(&output, self.output_file.as_deref())
        })
    }
}

// === impl DestroyInfraArgs ===

impl DestroyInfraArgs {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let domain = self.cluster.domain()?;
        let request = DestroyRequest::new(Some(domain), self.aws_infra_grace_period);
        let name = &self.cluster.name;
        let session = self
            .scope
            .session(name, BTreeMap::new(), "cli-destroy-infra")?;
        let executors = session.executors();
        let accounts = session.accounts(&executors);
        runtime()?.block_on(async {
            if self.scope.dry_run {
                return accounts.report_destruction().await;
            }
            Box::pin(accounts.destroy_network(&request)).await
        })
    }
}

// === impl DestroyIamArgs ===

impl DestroyIamArgs {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let name = &self.scope.infra_id;
        let session = self
            .scope
            .session(name, BTreeMap::new(), "cli-destroy-iam")?;
        let executors = session.executors();
        let accounts = session.accounts(&executors);
        runtime()?.block_on(async {
            if self.scope.dry_run {
                return accounts.report_identity_destruction().await;
            }
            Box::pin(accounts.destroy_identity(None)).await
        })
    }
}

/// The key of a file, which is generated if there is none. Only its owner may read it; on Windows, the file has the
/// permissions of its directory.
fn signing_key(path: &Path) -> anyhow::Result<SigningKey> {
    if path.exists() {
        let pem = text::file("--sa-token-issuer-private-key-path", path)?;
        return SigningKey::parse(&pem)
            .with_context(|| format!("failed to read {}", path.display()));
    }
    let key = SigningKey::generate()?;
    let mut options = OpenOptions::new();
    let options = options.write(true).create_new(true);
    let opened = set_mode(options, 0o600).open(path);
    let written = opened.and_then(|mut file| file.write_all(key.private.as_bytes()));
    written.with_context(|| format!("failed to write {}", path.display()))?;
    Ok(key)
}

/// The key of the proxy in the description that an earlier run has written, if there is one.
fn earlier_key(path: &Path, infra_id: &str) -> Option<SshKey> {
    let text = fs::read_to_string(path).ok()?;
    let output: NetworkOutput = serde_json::from_str(&text).ok()?;
    (output.infra_id == infra_id).then(|| output.proxy_private_ssh_key.key())?
}

/// A description in JSON.
fn json(output: &impl Serialize) -> anyhow::Result<String> {
    let mut text = serde_json::to_string_pretty(output)?;
    text.push('\n');
    Ok(text)
}

/// Writes a description in JSON to a file, or to standard output.
pub(crate) fn write(output: &impl Serialize, path: Option<&Path>) -> anyhow::Result<()> {
    let text = json(output)?;
    match path {
        Some(path) => {
            fs::write(path, text).with_context(|| format!("failed to write {}", path.display()))
        }
        None => print(&text),
    }
}
