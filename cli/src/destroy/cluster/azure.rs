//! What a cluster on Azure has in the cloud: role assignments, and resource groups with its network and its identities.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::Value;
use support::azure;

use super::{CloudArgs, ClusterArgs};
use crate::infra::azure::{
    Account, Azure, DestroyRequest, Executor, Groups, LOCATION, ResourceId, Scope,
};
use crate::install::display::Display;
use crate::install::runtime;

/// Flags of platform Azure.
#[derive(Debug, Args)]
pub(crate) struct AzureArgs {
    #[command(flatten)]
    cluster: ClusterArgs,

    /// JSON or YAML file with subscriptionId, tenantId, clientId and clientSecret; without a secret, credentials of the
    /// environment are used
    #[arg(long, value_name = "FILE", required_unless_present = "preserve_infra")]
    azure_creds: Option<PathBuf>,

    /// Keep resource groups and role assignments; needs no credentials for Azure
    #[arg(long)]
    preserve_infra: bool,

    /// Keep the resource group of the cluster, and delete only resources of the cluster. Groups that were not created for a
    /// cluster are always kept
    #[arg(long)]
    preserve_resource_group: bool,

    /// Resource group of the cluster, if the HostedCluster is gone and the group was not created for it
    #[arg(long, value_name = "NAME")]
    resource_group_name: Option<String>,

    /// Resource group of the public DNS zone, if the HostedCluster is gone; without it, role assignments for it are kept
    #[arg(long, value_name = "NAME")]
    dns_zone_rg_name: Option<String>,

    /// Region, if the HostedCluster is gone; resources are found without it
    #[arg(long, value_name = "NAME", default_value = LOCATION)]
    location: String,
}

/// What is destroyed.
#[derive(Debug)]
pub(super) struct Cloud {
    azure: Azure,
    scope: Scope,
    request: DestroyRequest,
    /// The groups in which the cluster has roles.
    roles: Vec<Groups>,
}

// === impl AzureArgs ===

impl AzureArgs {
    /// Destroys the cluster, and waits until it is gone.
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let args = Some(CloudArgs::Azure(self));
        runtime()?.block_on(Box::pin(self.cluster.destroy("Azure", args)))
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
        let hint =
            "nothing was destroyed; --preserve-infra keeps resource groups and role assignments";
        self.cloud_of(infra_id, name, spec).map(Some).context(hint)
    }

    fn cloud_of(&self, infra_id: &str, name: &str, spec: &Value) -> anyhow::Result<Cloud> {
        let path = self.azure_creds.as_deref();
        let account = Account::read(path.context("--azure-creds is needed")?)?;
        let described = &spec["platform"]["azure"];
        if let Some(subscription) = described["subscriptionID"].as_str()
            && !subscription.eq_ignore_ascii_case(&account.subscription_id)
        {
            bail!(
                "the cluster is in subscription {subscription}, and --azure-creds names {}",
                account.subscription_id
            );
        }
        let cloud = described["cloud"].as_str().unwrap_or("AzurePublicCloud");
        let cloud = azure::Cloud::of_name(cloud)
            .with_context(|| format!("cloud {cloud} is not supported"))?;
        let location = described["location"].as_str().unwrap_or(&self.location);
        let scope = Scope::new(infra_id, name, location, &account, cloud, BTreeMap::new())?;
        let group = described["resourceGroup"].as_str();
        let group = group.or(self.resource_group_name.as_deref());
        Ok(Cloud {
            azure: account.connect(cloud)?,
            request: DestroyRequest::new(&scope, group, self.preserve_resource_group)?,
            roles: self.roles(&scope, group, spec),
            scope,
        })
    }

    fn roles(&self, scope: &Scope, group: Option<&str>, spec: &Value) -> Vec<Groups> {
        let described = &spec["platform"]["azure"];
        let id = |id: &Value| ResourceId::parse(id.as_str()?);
        let zone = id(&spec["dns"]["publicZoneID"]);
        let dns = zone.as_ref().map(ResourceId::group_name);
        let dns = dns.or(self.dns_zone_rg_name.as_deref());
        let mut roles = vec![Groups::created(scope, dns)];
        roles.extend(group.map(|group| Groups::given(scope, group, dns)));
        let of_network = id(&described["vnetID"]).zip(id(&described["securityGroupID"]));
        if let Some((network, security_group)) = of_network {
            let main = Groups::given(scope, group.unwrap_or(&scope.main_name()), dns).main;
            roles.push(Groups {
                main,
                network: network.group,
                security_group: security_group.group,
                dns: None,
            });
        }
        roles
    }
}

// === impl Cloud ===

impl Cloud {
    fn executor<'a>(&'a self, display: &'a Display) -> Executor<'a, Azure> {
        Executor {
            calls: &self.azure,
            scope: &self.scope,
            display,
        }
    }

    /// Destroys the role assignments, which have the names of groups in theirs, and then the groups.
    pub(super) async fn destroy(&self, display: &Display) -> anyhow::Result<()> {
        let executor = self.executor(display);
        Box::pin(executor.destroy_roles(&self.roles)).await?;
        Box::pin(executor.destroy_groups(&self.request)).await
    }

    /// Says what would be destroyed.
    pub(super) async fn report(&self, display: &Display) -> anyhow::Result<()> {
        let executor = self.executor(display);
        Box::pin(executor.report_roles(&self.roles)).await?;
        Box::pin(executor.report_groups(&self.request)).await
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::json;

    use super::*;

    const SUBSCRIPTION: &str = "00000000-0000-0000-0000-000000000001";

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        args: AzureArgs,
    }

    fn args(flags: &[&str]) -> Result<AzureArgs, clap::Error> {
        let words = ["destroy", "--name=a"];
        Ok(Command::try_parse_from(words.iter().chain(flags))?.args)
    }

    fn credentials() -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = json!({ "subscriptionId": SUBSCRIPTION, "tenantId": "t", "clientId": "c", "clientSecret": "s3cret" });
        std::fs::write(file.path(), text.to_string()).unwrap();
        file
    }

    fn group(name: &str) -> String {
        format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/{name}")
    }

    #[test]
    fn infrastructure_is_kept_without_credentials_only_if_that_is_asked_for() {
        args(&[]).unwrap_err();
        let kept = args(&["--preserve-infra"]).unwrap();
        assert!(kept.cloud("a-x1", "a", &Value::Null).unwrap().is_none());
        let missing = args(&["--azure-creds=/no/such/file"]).unwrap();
        let error = missing.cloud("a-x1", "a", &Value::Null).unwrap_err();
        assert!(error.to_string().contains("--preserve-infra"), "{error}");
    }

    #[test]
    fn groups_are_those_of_the_cluster_or_of_flags() {
        let file = credentials();
        let flag = format!("--azure-creds={}", file.path().display());
        let id = |group_name: &str, kind: &str| {
            format!("{}/providers/Microsoft.Network/{kind}/n", group(group_name))
        };
        let spec = json!({
            "dns": { "publicZoneID": id("zones", "dnszones") },
            "platform": { "azure": {
                "subscriptionID": SUBSCRIPTION,
                "cloud": "AzurePublicCloud",
                "location": "westeurope",
                "resourceGroup": "given",
                "vnetID": id("networks", "virtualNetworks"),
                "securityGroupID": id("security", "networkSecurityGroups"),
            } },
        });
        let there = args(&[
            &flag,
            "--resource-group-name=other",
            "--dns-zone-rg-name=other",
        ]);
        let cloud = there.unwrap().cloud("a-x1", "a", &spec).unwrap().unwrap();
        assert_eq!(cloud.request.main, "given");
        assert_eq!(cloud.scope.location, "westeurope");
        assert!(cloud.roles.iter().any(|it| it.dns == Some(group("zones"))));
        assert!(cloud.roles.iter().all(|it| it.dns != Some(group("other"))));
        assert!(cloud.roles.iter().any(|it| {
            it.network == group("networks") && it.security_group == group("security")
        }));
        let gone = args(&[&flag, "--dns-zone-rg-name=other"]).unwrap();
        let cloud = gone.cloud("a-x1", "a", &Value::Null).unwrap().unwrap();
        assert_eq!(cloud.request.main, "a-a-x1");
        let [created] = cloud.roles.as_slice() else {
            panic!("{:?}", cloud.roles);
        };
        assert_eq!(created.network, group("a-vnet-a-x1"));
        assert_eq!(created.dns, Some(group("other")));
        assert!(!format!("{cloud:?}").contains("s3cret"));
    }

    #[test]
    fn the_subscription_must_be_that_of_the_cluster() {
        let file = credentials();
        let flag = format!("--azure-creds={}", file.path().display());
        let spec = json!({ "platform": { "azure": { "subscriptionID": "other" } } });
        let error = args(&[&flag])
            .unwrap()
            .cloud("a-x1", "a", &spec)
            .unwrap_err();
        let error = format!("{error:#}");
        assert!(error.contains("is in subscription other"), "{error}");
        assert!(!error.contains("s3cret"), "{error}");
    }
}
