//! What a cluster on Power VS has in IBM Cloud: workspace, VPC, transit gateway, and the API keys of its components.

use anyhow::Context as _;
use clap::Args;
use serde_json::Value;

use super::ClusterArgs;
use super::cloud::CloudArgs;
use crate::Usage;
use crate::infra::aws::Domain;
use crate::infra::power_vs::{Place, Reused, Scope, Session, UnneededArgs};
use crate::install::display::Display;
use crate::install::runtime;

/// Flags of platform `PowerVS`.
#[derive(Debug, Args)]
pub(crate) struct PowerVsArgs {
    #[command(flatten)]
    cluster: ClusterArgs,

    /// Keep the infrastructure and the API keys; needs no API key of IBM Cloud
    #[arg(long)]
    preserve_infra: bool,

    /// Resource group, if the HostedCluster is gone
    #[arg(long, value_name = "NAME")]
    resource_group: Option<String>,

    /// Base domain, if the HostedCluster is gone
    #[arg(long, value_name = "DOMAIN")]
    base_domain: Option<String>,

    /// First part of the cluster's domain, if the HostedCluster is gone and it is not the cluster's name; "none" for no such
    /// part
    #[arg(long, value_name = "NAME")]
    base_domain_prefix: Option<String>,

    /// Region, if the HostedCluster is gone
    #[arg(long, value_name = "NAME")]
    region: Option<String>,

    /// Zone of the region, if the HostedCluster is gone
    #[arg(long, value_name = "NAME")]
    zone: Option<String>,

    /// Region of the VPC, if the HostedCluster is gone
    #[arg(long, value_name = "NAME")]
    vpc_region: Option<String>,

    /// Name of a VPC that is reused, if the HostedCluster is gone
    #[arg(long, value_name = "NAME")]
    vpc: Option<String>,

    /// Identifier (GUID) of a workspace that is reused, if the HostedCluster is gone
    #[arg(long, value_name = "GUID")]
    cloud_instance_id: Option<String>,

    #[command(flatten)]
    unneeded: UnneededArgs,
}

/// What is destroyed.
#[derive(Debug)]
pub(super) struct Cloud {
    session: Session,
    reused: Reused,
}

// === impl PowerVsArgs ===

impl PowerVsArgs {
    /// Destroys the cluster, and waits until it is gone.
    pub(super) fn run(&self) -> anyhow::Result<()> {
        self.unneeded.report(&Display::new(self.cluster.quiet));
        let cloud = Some(CloudArgs::PowerVs(self));
        runtime()?.block_on(Box::pin(self.cluster.destroy("PowerVS", cloud)))
    }

    /// What is destroyed of an infrastructure. `spec` of the HostedCluster is preferred to flags.
    pub(super) fn cloud(
        &self,
        infra_id: &str,
        name: &str,
        spec: &Value,
    ) -> anyhow::Result<Option<Cloud>> {
        if self.preserve_infra {
            return Ok(None);
        }
        let hint = "nothing was destroyed; --preserve-infra keeps the infrastructure";
        let scope = self.scope(infra_id, name, spec).context(hint)?;
        Ok(Some(Cloud {
            session: Session::from_env(scope).context(hint)?,
            reused: self.reused(spec),
        }))
    }

    fn scope(&self, infra_id: &str, name: &str, spec: &Value) -> Result<Scope, Usage> {
        let fields = &spec["platform"]["powervs"];
        let of = |flag: &str, described: &Value, given: &Option<String>| {
            let value = described.as_str().or(given.as_deref());
            let value = value.filter(|value| !value.is_empty()).map(str::to_owned);
            value.ok_or_else(|| {
                Usage::new(&format!(
                    "{flag} is needed: the HostedCluster, which would say it, is gone"
                ))
            })
        };
        let dns = &spec["dns"];
        let base = of("--base-domain", &dns["baseDomain"], &self.base_domain)?;
        let prefix = match dns["baseDomainPrefix"].as_str() {
            Some("") => Some("none"),
            None if !dns.is_object() => self.base_domain_prefix.as_deref(),
            prefix => prefix,
        };
        let vpc_region = &fields["vpc"]["region"];
        let place = Place {
            resource_group: of(
                "--resource-group",
                &fields["resourceGroup"],
                &self.resource_group,
            )?,
            region: of("--region", &fields["region"], &self.region)?,
            zone: of("--zone", &fields["zone"], &self.zone)?,
            vpc_region: of("--vpc-region", vpc_region, &self.vpc_region)?,
        };
        Scope::new(infra_id, name, Domain::new(&base, prefix, name)?, place)
    }

    /// The VPC and the workspace of the cluster. Those with names of the infrastructure are not reused, but its own.
    fn reused(&self, spec: &Value) -> Reused {
        let fields = &spec["platform"]["powervs"];
        let of = |described: &Value, given: &Option<String>| {
            let described = described.as_str().map(str::to_owned);
            described.or_else(|| given.clone())
        };
        Reused {
            workspace: of(&fields["serviceInstanceID"], &self.cloud_instance_id),
            vpc: of(&fields["vpc"]["name"], &self.vpc),
            gateway: None,
        }
    }
}

// === impl Cloud ===

impl Cloud {
    /// Destroys the infrastructure, which components of the cluster do not use any more.
    pub(super) async fn destroy(&self, display: &Display) -> anyhow::Result<()> {
        let executor = self.session.executor(display);
        Box::pin(executor.destroy(&self.reused)).await
    }

    /// Says what would be destroyed.
    pub(super) async fn report(&self, display: &Display) -> anyhow::Result<()> {
        let executor = self.session.executor(display);
        Box::pin(executor.report_destruction(&self.reused)).await
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
        args: PowerVsArgs,
    }

    const FLAGS: [&str; 6] = [
        "--resource-group=flag-group",
        "--base-domain=example.org",
        "--region=dal",
        "--zone=dal10",
        "--vpc-region=us-south",
        "--vpc=shared",
    ];

    fn args(flags: &[&str]) -> PowerVsArgs {
        let words = ["destroy", "--name=a"];
        Command::parse_from(words.iter().chain(flags)).args
    }

    #[test]
    fn places_are_those_of_the_cluster_or_of_flags() {
        let spec = json!({
            "dns": { "baseDomain": "example.com", "baseDomainPrefix": "p" },
            "platform": { "powervs": {
                "resourceGroup": "group",
                "region": "lon",
                "zone": "lon06",
                "serviceInstanceID": "guid",
                "vpc": { "name": "a-x1-vpc", "region": "eu-gb" },
            } },
        });
        for (flags, spec, expected) in [
            (
                &FLAGS[..],
                &spec,
                "group lon lon06 eu-gb p.example.com a-x1-vpc",
            ),
            (
                &[][..],
                &spec,
                "group lon lon06 eu-gb p.example.com a-x1-vpc",
            ),
            (
                &FLAGS[..],
                &Value::Null,
                "flag-group dal dal10 us-south a.example.org shared",
            ),
        ] {
            let args = args(flags);
            let scope = args.scope("a-x1", "a", spec).unwrap();
            let Place {
                resource_group,
                region,
                zone,
                vpc_region,
            } = &scope.place;
            let domain = scope.domain.cluster();
            let vpc = args.reused(spec).vpc.unwrap();
            let found = format!("{resource_group} {region} {zone} {vpc_region} {domain} {vpc}");
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn without_the_cluster_flags_are_needed_unless_infrastructure_is_kept() {
        for missing in 0..5 {
            let mut flags = FLAGS.to_vec();
            let flag = flags.remove(missing);
            let flag = flag.split('=').next().unwrap();
            let error = args(&flags).cloud("a-x1", "a", &Value::Null).unwrap_err();
            let error = format!("{error:#}");
            assert!(error.contains(flag), "{error}");
            assert!(error.contains("--preserve-infra"), "{error}");
        }
        let args = args(&["--preserve-infra"]);
        assert!(args.cloud("a-x1", "a", &Value::Null).unwrap().is_none());
    }
}
