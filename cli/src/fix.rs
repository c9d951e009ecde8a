//! `fix`: what a hosted cluster needs outside of the management cluster, after a disaster.

use clap::Subcommand;

use crate::infra::aws;

/// What can be fixed.
#[derive(Debug, Subcommand)]
pub(crate) enum Fix {
    /// Create the OIDC documents and the identity provider of a cluster on AWS again, after they were lost
    DrOidcIam(Box<aws::RecoverIssuerArgs>),
}

/// Runs `fix`.
pub(crate) fn run(fix: &Fix) -> anyhow::Result<()> {
    match fix {
        Fix::DrOidcIam(args) => args.run(),
    }
}
