//! `create infra gcp`, `create iam gcp`, `destroy infra gcp`, `destroy iam gcp`.

use std::path::PathBuf;

use clap::Args;

use super::CIDR;
use super::client::{GoogleCloud, connect};
use super::create_identity::IdentityRequest;
use super::executor::Executor;
use super::identity::issuer_of;
use super::jwks::Jwks;
use super::network::{NetworkRequest, check_region};
use super::scope::Scope;
use crate::Usage;
use crate::create::text;
use crate::infra::aws::write;
use crate::install::display::Display;
use crate::install::runtime;

/// Flags of all commands.
#[derive(Debug, Args)]
pub(crate) struct ScopeArgs {
    /// Name of the infrastructure: of its resources, and in their descriptions
    #[arg(long, value_name = "ID")]
    infra_id: String,

    /// ID of the project
    #[arg(long, value_name = "ID")]
    project_id: String,

    /// Report what there is and what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,

    /// Suppress progress output
    #[arg(long, short)]
    quiet: bool,
}

/// Flags of `create infra gcp`.
#[derive(Debug, Args)]
pub(crate) struct CreateInfraArgs {
    #[command(flatten)]
    scope: ScopeArgs,

    /// Region
    #[arg(long, value_name = "NAME")]
    region: String,

    /// Address range of the subnet
    #[arg(long, value_name = "CIDR", default_value = CIDR)]
    vpc_cidr: String,

    /// File for the description of the network in JSON [default: standard output]
    #[arg(long, value_name = "FILE")]
    output_file: Option<PathBuf>,
}

/// Flags of `create iam gcp`.
#[derive(Debug, Args)]
pub(crate) struct CreateIamArgs {
    #[command(flatten)]
    scope: ScopeArgs,

    /// File with the public keys that verify tokens (JWKS) [default: the issuer publishes them]
    #[arg(long, value_name = "FILE", required_unless_present = "oidc_issuer_url")]
    oidc_jwks_file: Option<PathBuf>,

    /// URL of the issuer of tokens [default: one that is made of the infra ID and needs no server]
    #[arg(long, value_name = "URL")]
    oidc_issuer_url: Option<String>,

    /// File for the description of the service accounts in JSON [default: standard output]
    #[arg(long, value_name = "FILE")]
    output_file: Option<PathBuf>,
}

/// Flags of `destroy infra gcp`.
#[derive(Debug, Args)]
pub(crate) struct DestroyInfraArgs {
    #[command(flatten)]
    scope: ScopeArgs,

    /// Region
    #[arg(long, value_name = "NAME")]
    region: String,
}

/// Flags of `destroy iam gcp`.
#[derive(Debug, Args)]
pub(crate) struct DestroyIamArgs {
    #[command(flatten)]
    scope: ScopeArgs,
}

/// Makes calls for a scope.
struct Session {
    google_cloud: GoogleCloud,
    scope: Scope,
    display: Display,
}

// === impl ScopeArgs ===

impl ScopeArgs {
    fn scope(&self) -> Result<Scope, Usage> {
        Scope::new(&self.infra_id, &self.project_id)
    }

    fn session(&self, scope: Scope) -> anyhow::Result<Session> {
        Ok(Session {
            google_cloud: connect()?,
            scope,
            display: Display::new(self.quiet),
        })
    }
}

// === impl Session ===

impl Session {
    fn executor(&self) -> Executor<'_, GoogleCloud> {
        Executor {
            calls: &self.google_cloud,
            scope: &self.scope,
            display: &self.display,
        }
    }
}

// === impl CreateInfraArgs ===

impl CreateInfraArgs {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let request = NetworkRequest::new(&self.region, &self.vpc_cidr)?;
        let session = self.scope.session(self.scope.scope()?)?;
        runtime()?.block_on(async {
            let executor = session.executor();
            if self.scope.dry_run {
                return executor.report_network(&request).await;
            }
            let output = Box::pin(executor.create_network(&request)).await?;
            write(&output, self.output_file.as_deref())
        })
    }
}

// === impl CreateIamArgs ===

impl CreateIamArgs {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let scope = self.scope.scope()?;
        scope.check_identities()?;
        let request = IdentityRequest {
            issuer: issuer_of(&scope, self.oidc_issuer_url.as_deref())?,
            jwks: self.jwks()?,
        };
        let session = self.scope.session(scope)?;
        runtime()?.block_on(async {
            let executor = session.executor();
            if self.scope.dry_run {
                return executor.report_identity(&request).await;
            }
            let output = Box::pin(executor.create_identity(&request)).await?;
            write(&output, self.output_file.as_deref())
        })
    }

    fn jwks(&self) -> anyhow::Result<Option<Jwks>> {
        let Some(path) = &self.oidc_jwks_file else {
            return Ok(None);
        };
        let read = text::file("--oidc-jwks-file", path)?;
        let jwks = Jwks::parse(&read).map_err(|problem| {
            Usage::new(&format!("--oidc-jwks-file {}: {problem}", path.display()))
        })?;
        Ok(Some(jwks))
    }
}

// === impl DestroyInfraArgs ===

impl DestroyInfraArgs {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        check_region(&self.region)?;
        let session = self.scope.session(self.scope.scope()?)?;
        runtime()?.block_on(async {
            let executor = session.executor();
            if self.scope.dry_run {
                return executor.report_network_destruction(&self.region).await;
            }
            Box::pin(executor.destroy_network(&self.region)).await
        })
    }
}

// === impl DestroyIamArgs ===

impl DestroyIamArgs {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let scope = self.scope.scope()?;
        scope.check_identities()?;
        let session = self.scope.session(scope)?;
        runtime()?.block_on(async {
            let executor = session.executor();
            if self.scope.dry_run {
                return executor.report_identity_destruction().await;
            }
            Box::pin(executor.destroy_identity()).await
        })
    }
}
