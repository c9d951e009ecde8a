//! What a cluster on Google Cloud has there: its network and its service accounts.

use anyhow::Context as _;
use clap::Args;
use serde_json::Value;

use super::ClusterArgs;
use super::cloud::CloudArgs;
use crate::Usage;
use crate::infra::gcp::{Executor, GoogleCloud, Scope, check_region, connect};
use crate::install::display::Display;
use crate::install::runtime;

/// Flags of platform GCP.
#[derive(Debug, Args)]
pub(crate) struct GcpArgs {
    #[command(flatten)]
    cluster: ClusterArgs,

    /// Keep the workload identity pool and the service accounts
    #[arg(long)]
    preserve_iam: bool,

    /// Keep the network, and all that --preserve-iam keeps; needs no credentials for Google Cloud
    #[arg(long)]
    preserve_infra: bool,

    /// ID of the project, if the HostedCluster is gone
    #[arg(long, value_name = "ID")]
    project: Option<String>,

    /// Region, if the HostedCluster is gone
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
}

/// What is destroyed.
#[derive(Debug)]
pub(super) struct Cloud {
    client: GoogleCloud,
    scope: Scope,
    region: String,
    preserve_iam: bool,
}

// === impl GcpArgs ===

impl GcpArgs {
    /// Destroys the cluster, and waits until it is gone.
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let destroyed = self.cluster.destroy("GCP", Some(CloudArgs::Gcp(self)));
        runtime()?.block_on(Box::pin(destroyed))
    }

    /// What is destroyed of an infrastructure. `spec` of the HostedCluster is preferred to flags.
    pub(super) fn cloud(&self, infra_id: &str, spec: &Value) -> anyhow::Result<Option<Cloud>> {
        if self.preserve_infra {
            return Ok(None);
        }
        let hint = "nothing was destroyed; --preserve-infra keeps network and service accounts";
        let (scope, region) = self.place(infra_id, spec).context(hint)?;
        // Service accounts of longer names cannot have been created.
        let has_identities = scope.check_identities().is_ok();
        Ok(Some(Cloud {
            client: connect().context(hint)?,
            preserve_iam: self.preserve_iam || !has_identities,
            scope,
            region,
        }))
    }

    /// Where the infrastructure is.
    fn place(&self, infra_id: &str, spec: &Value) -> Result<(Scope, String), Usage> {
        let gcp = &spec["platform"]["gcp"];
        let of = |field: &str, flag: &str, given: Option<&String>| {
            let described = gcp[field].as_str();
            let value = described.or(given.map(String::as_str)).map(str::to_owned);
            value.ok_or_else(|| {
                Usage::new(&format!(
                    "--{flag} is needed to destroy the infrastructure of a HostedCluster that is gone"
                ))
            })
        };
        let project = of("project", "project", self.project.as_ref())?;
        let region = of("region", "region", self.region.as_ref())?;
        check_region(&region)?;
        Ok((Scope::new(infra_id, &project)?, region))
    }
}

// === impl Cloud ===

impl Cloud {
    fn executor<'a>(&'a self, display: &'a Display) -> Executor<'a, GoogleCloud> {
        Executor {
            calls: &self.client,
            scope: &self.scope,
            display,
        }
    }

    /// Destroys the network, which components of the cluster may still use, and then their service accounts.
    pub(super) async fn destroy(&self, display: &Display) -> anyhow::Result<()> {
        let executor = self.executor(display);
        executor.destroy_network(&self.region).await?;
        if self.preserve_iam {
            return Ok(());
        }
        executor.destroy_identity().await
    }

    /// Says what would be destroyed.
    pub(super) async fn report(&self, display: &Display) -> anyhow::Result<()> {
        let executor = self.executor(display);
        executor.report_network_destruction(&self.region).await?;
        if self.preserve_iam {
            return Ok(());
        }
        executor.report_identity_destruction().await
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        args: GcpArgs,
    }

    fn parse(flags: &[&str]) -> GcpArgs {
        let words = ["destroy", "--name=a"];
        Command::parse_from(words.iter().chain(flags)).args
    }

    #[test]
    fn the_place_is_that_of_the_cluster_or_of_flags() {
        let both = ["--project=project-2", "--region=us-east1"];
        let there =
            json!({ "platform": { "gcp": { "project": "project-1", "region": "us-central1" } } });
        for (flags, spec, expected) in [
            (&both[..], &Value::Null, Some(("project-2", "us-east1"))),
            (&both[..], &there, Some(("project-1", "us-central1"))),
            (&[][..], &there, Some(("project-1", "us-central1"))),
            (&both[..1], &Value::Null, None),
            (&[][..], &Value::Null, None),
            (
                &["--project=project-2", "--region=x/y"][..],
                &Value::Null,
                None,
            ),
        ] {
            let found = parse(flags).place("a-x1", spec).ok();
            let found = found
                .as_ref()
                .map(|(scope, region)| (scope.project.as_str(), region.as_str()));
            assert_eq!(found, expected, "{flags:?}");
        }
    }

    #[test]
    fn infrastructure_is_kept_only_if_that_is_asked_for() {
        let args = parse(&["--preserve-infra"]);
        assert!(args.cloud("a-x1", &Value::Null).unwrap().is_none());
        let error = parse(&[]).cloud("a-x1", &Value::Null).unwrap_err();
        assert!(error.to_string().contains("--preserve-infra"), "{error}");
    }
}
