//! What a cluster on AWS has in the cloud: its network and its IAM roles.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use serde_json::Value;

use super::ClusterArgs;
use super::cloud::CloudArgs;
use crate::create::text::time_or_zero;
use crate::hosted::Hosted;
use crate::infra::aws::{
    Accounts, Aws, CredentialArgs, DestroyRequest, Domain, Executor, OwnerArgs, REGION, Scope,
    SecretArgs, SecretValues,
};
use crate::install::display::Display;
use crate::install::runtime;

/// Flags of platform AWS.
#[derive(Debug, Args)]
pub(crate) struct AwsArgs {
    #[command(flatten)]
    cluster: ClusterArgs,

    /// Keep the identity provider, the IAM roles and the instance profile
    #[arg(long)]
    preserve_iam: bool,

    /// Keep the network, the hosted zones, and all that --preserve-iam keeps; needs no credentials for AWS
    #[arg(long)]
    preserve_infra: bool,

    /// Region, if the HostedCluster is gone [default: us-east-1]
    #[arg(long, value_name = "NAME")]
    region: Option<String>,

    /// Base domain, if the HostedCluster is gone; without it, the record of the ingress is kept
    #[arg(long, value_name = "DOMAIN")]
    base_domain: Option<String>,

    /// First part of the cluster's domain, if the HostedCluster is gone and it is not the cluster's name; "none" for no such
    /// part
    #[arg(long, value_name = "NAME")]
    base_domain_prefix: Option<String>,

    /// Time limit for the deletion in the cloud, or 0 for no limit
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = time_or_zero)]
    aws_infra_grace_period: Duration,

    #[command(flatten)]
    credentials: CredentialArgs,

    #[command(flatten)]
    secret: SecretArgs,

    #[command(flatten)]
    owner: OwnerArgs,
}

/// What is destroyed.
#[derive(Debug)]
pub(super) struct Cloud {
    aws: Aws,
    /// The account of the VPC, if it is another one.
    owner: Option<Aws>,
    owner_args: OwnerArgs,
    scope: Scope,
    network: DestroyRequest,
    preserve_iam: bool,
}

// === impl AwsArgs ===

impl AwsArgs {
    /// Destroys the cluster, and waits until it is gone.
    pub(super) fn run(&self) -> anyhow::Result<()> {
        runtime()?.block_on(Box::pin(async {
            let secret = self.secret().await?;
            let args = CloudArgs::Aws(self, secret.as_ref());
            self.cluster.destroy("AWS", Some(args)).await
        }))
    }

    /// The Secret with credentials, if one is named and needed.
    async fn secret(&self) -> anyhow::Result<Option<SecretValues>> {
        let Some(name) = self.secret.name().filter(|_| !self.preserve_infra) else {
            return Ok(None);
        };
        let hosted = Hosted::connect(&self.cluster.target.access()).await?;
        let read = SecretValues::read(&hosted, &self.cluster.namespace, name);
        read.await.map(Some)
    }

    /// What is destroyed of an infrastructure. `spec` of the HostedCluster is preferred to flags.
    pub(super) fn cloud(
        &self,
        infra_id: &str,
        name: &str,
        spec: &Value,
        secret: Option<&SecretValues>,
    ) -> anyhow::Result<Option<Cloud>> {
        if self.preserve_infra {
            return Ok(None);
        }
        let region = spec["platform"]["aws"]["region"].as_str();
        let region = region.or(self.region.as_deref()).unwrap_or(REGION);
        let network = self.domain(name, spec, secret)?;
        let network = DestroyRequest::new(network, self.aws_infra_grace_period);
        let hint = "nothing was destroyed; --preserve-infra keeps network and IAM roles";
        let scope = Scope::new(infra_id, name, region, BTreeMap::new()).context(hint)?;
        let aws = self
            .credentials
            .connect_with(region, "cli-destroy-cluster", secret);
        let owner = self.owner.connect(region, "cli-destroy-cluster");
        Ok(Some(Cloud {
            aws: aws.context(hint)?,
            owner: owner.context(hint)?,
            owner_args: self.owner.clone(),
            scope,
            network,
            preserve_iam: self.preserve_iam,
        }))
    }

    fn domain(
        &self,
        name: &str,
        spec: &Value,
        secret: Option<&SecretValues>,
    ) -> anyhow::Result<Option<Domain>> {
        let dns = &spec["dns"];
        let described = dns["baseDomain"].as_str();
        let base = described.or(self.base_domain.as_deref());
        let base = base.or_else(|| secret?.base_domain());
        let Some(base) = base.filter(|base| !base.is_empty()) else {
            return Ok(None);
        };
        let prefix = match dns["baseDomainPrefix"].as_str() {
            Some("") => Some("none"),
            None if described.is_none() => self.base_domain_prefix.as_deref(),
            prefix => prefix,
        };
        Ok(Some(Domain::new(base, prefix, name)?))
    }
}

// === impl Cloud ===

impl Cloud {
    fn executor<'a>(&'a self, aws: &'a Aws, display: &'a Display) -> Executor<'a, Aws> {
        Executor {
            calls: aws,
            scope: &self.scope,
            display,
        }
    }

    /// Destroys the network, which components of the cluster may still use, and then their roles.
    pub(super) async fn destroy(&self, display: &Display) -> anyhow::Result<()> {
        let cluster = self.executor(&self.aws, display);
        let owner = self.owner.as_ref();
        let owner = owner.map(|owner| self.executor(owner, display));
        let zones = self.owner_args.private_zones();
        let accounts = Accounts::new(&cluster, owner.as_ref(), zones);
        Box::pin(accounts.destroy_network(&self.network)).await?;
        if self.preserve_iam {
            return Ok(());
        }
        Box::pin(accounts.destroy_identity(self.network.grace_period)).await
    }

    /// Says what would be destroyed.
    pub(super) async fn report(&self, display: &Display) -> anyhow::Result<()> {
        let cluster = self.executor(&self.aws, display);
        let owner = self.owner.as_ref();
        let owner = owner.map(|owner| self.executor(owner, display));
        let zones = self.owner_args.private_zones();
        let accounts = Accounts::new(&cluster, owner.as_ref(), zones);
        Box::pin(accounts.report_destruction()).await?;
        if self.preserve_iam {
            return Ok(());
        }
        Box::pin(accounts.report_identity_destruction()).await
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
        args: AwsArgs,
    }

    /// The domain whose record is deleted.
    #[test]
    fn domains_are_those_of_the_cluster_or_of_flags() {
        let gone = Value::Null;
        let there = json!({ "dns": { "baseDomain": "b.example.com" } });
        let bare = json!({ "dns": { "baseDomain": "b.example.com", "baseDomainPrefix": "" } });
        let other = json!({ "dns": { "baseDomain": "b.example.com", "baseDomainPrefix": "p" } });
        for (flags, spec, expected) in [
            (&[][..], &gone, None),
            (&["--base-domain=c.d"][..], &gone, Some("a.c.d")),
            (
                &["--base-domain=c.d", "--base-domain-prefix=none"][..],
                &gone,
                Some("c.d"),
            ),
            (&["--base-domain=c.d"][..], &there, Some("a.b.example.com")),
            (
                &["--base-domain-prefix=x"][..],
                &there,
                Some("a.b.example.com"),
            ),
            (&[][..], &bare, Some("b.example.com")),
            (&[][..], &other, Some("p.b.example.com")),
        ] {
            let words = ["destroy", "--name=a"];
            let args = Command::parse_from(words.iter().chain(flags)).args;
            let domain = args.domain("a", spec, None).unwrap();
            let domain = domain.map(|domain| domain.cluster());
            assert_eq!(domain.as_deref(), expected, "{flags:?}");
        }
    }

    #[test]
    fn infrastructure_is_kept_without_credentials_only_if_that_is_asked_for() {
        let words = ["destroy", "--name=a", "--preserve-infra"];
        let args = Command::parse_from(words).args;
        assert!(
            args.cloud("a-x1", "a", &Value::Null, None)
                .unwrap()
                .is_none()
        );
        let words = ["destroy", "--name=a", "--aws-creds=/no/such/file"];
        let args = Command::parse_from(words).args;
        let error = args.cloud("a-x1", "a", &Value::Null, None).unwrap_err();
        assert!(error.to_string().contains("--preserve-infra"), "{error}");
    }
}
