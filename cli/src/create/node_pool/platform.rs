//! Machines of each platform, for a hosted cluster that exists.

use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use clap::Args;
use serde_json::Value;

use crate::Usage;
use crate::create::cluster::{
    AgentNodeArgs, Arch, AwsNodeArgs, AzureNodeArgs, AzurePlace, KubevirtNodeArgs,
    OpenStackNodeArgs, PowerVsNodeArgs, UpgradeType,
};

/// The flags of a platform.
pub(super) trait Machines {
    /// The platform that the hosted cluster must have.
    const KIND: &'static str;
    /// How a new release reaches nodes, unless the user says otherwise.
    const UPGRADE: UpgradeType = UpgradeType::Replace;
    /// The architecture, if there is only one.
    const ARCH: Option<Arch> = None;

    /// Whether the hosted cluster has to say something that flags do not.
    fn needs_cluster(&self) -> bool {
        false
    }

    /// `spec.platform` of the NodePool; `cluster` is missing if it was not looked up.
    fn platform(&self, arch: Arch, cluster: Option<&HostedCluster>) -> anyhow::Result<Value>;
}

impl Machines for AgentNodeArgs {
    const KIND: &'static str = "Agent";
    const UPGRADE: UpgradeType = UpgradeType::InPlace;

    fn platform(&self, _: Arch, _: Option<&HostedCluster>) -> anyhow::Result<Value> {
        Self::platform(self)
    }
}

impl Machines for KubevirtNodeArgs {
    const KIND: &'static str = "KubeVirt";

    fn platform(&self, _: Arch, _: Option<&HostedCluster>) -> anyhow::Result<Value> {
        Self::platform(self)
    }
}

impl Machines for OpenStackNodeArgs {
    const KIND: &'static str = "OpenStack";

    fn platform(&self, arch: Arch, cluster: Option<&HostedCluster>) -> anyhow::Result<Value> {
        let openstack = cluster.and_then(|cluster| cluster.spec.platform.openstack.as_ref());
        let has_subnets = openstack.is_some_and(|openstack| !openstack.subnets.is_empty());
        if has_subnets && self.has_additional_ports() {
            return Err(Usage::new(
                &"--openstack-node-additional-port has no effect in a cluster with spec.platform.openstack.subnets: leave \
                  it out",
            )
            .into());
        }
        Ok(Self::platform(self, arch)?)
    }
}

impl Machines for PowerVsNodeArgs {
    const KIND: &'static str = "PowerVS";
    const ARCH: Option<Arch> = Some(Arch::Ppc64le);

    fn platform(&self, _: Arch, _: Option<&HostedCluster>) -> anyhow::Result<Value> {
        Ok(Self::platform(self))
    }
}

/// Flags of platform AWS.
#[derive(Debug, Clone, Args)]
pub(crate) struct AwsPoolArgs {
    /// Subnet of the instances [default: that of the cluster]
    #[arg(long, value_name = "ID")]
    subnet_id: Option<String>,

    /// Security group of the instances [default: that of the cluster]
    #[arg(long, value_name = "ID")]
    securitygroup_id: Option<String>,

    /// Instance profile of the instances [default: INFRA-ID-worker of the cluster]
    #[arg(long, value_name = "NAME")]
    instance_profile: Option<String>,

    #[command(flatten)]
    nodes: AwsNodeArgs,
}

impl Machines for AwsPoolArgs {
    const KIND: &'static str = "AWS";

    fn needs_cluster(&self) -> bool {
        self.subnet_id.is_none()
    }

    fn platform(&self, arch: Arch, cluster: Option<&HostedCluster>) -> anyhow::Result<Value> {
        let of_cluster = cluster.and_then(subnet_on_aws);
        let subnet = self.subnet_id.clone().or(of_cluster).ok_or_else(|| {
            Usage::new(
                &"--subnet-id is needed: the HostedCluster names no subnet in spec.platform.aws",
            )
        })?;
        let infra_id = cluster.and_then(|cluster| cluster.spec.infra_id.as_ref());
        let usual = infra_id.map(|id| format!("{id}-worker"));
        let profile = self.instance_profile.clone().or(usual);
        Ok(self.nodes.platform(
            arch,
            &subnet,
            profile.as_deref(),
            self.securitygroup_id.as_deref(),
        ))
    }
}

fn subnet_on_aws(cluster: &HostedCluster) -> Option<String> {
    let aws = cluster.spec.platform.aws.as_ref()?;
    let network = serde_json::to_value(aws.cloud_provider_config.as_ref()?).ok()?;
    Some(network["subnet"]["id"].as_str()?.to_owned())
}

/// Flags of platform Azure.
#[derive(Debug, Clone, Args)]
pub(crate) struct AzurePoolArgs {
    /// Resource ID of the subnet of the virtual machines [default: that of the cluster]
    #[arg(long, value_name = "ID")]
    nodepool_subnet_id: Option<String>,

    /// Availability zone [default: none]
    #[arg(long, value_name = "ZONE", value_parser = ["1", "2", "3"])]
    availability_zone: Option<String>,

    #[command(flatten)]
    nodes: AzureNodeArgs,
}

impl Machines for AzurePoolArgs {
    const KIND: &'static str = "Azure";

    fn needs_cluster(&self) -> bool {
        self.nodepool_subnet_id.is_none()
    }

    fn platform(&self, arch: Arch, cluster: Option<&HostedCluster>) -> anyhow::Result<Value> {
        let azure = cluster.and_then(|cluster| cluster.spec.platform.azure.as_ref());
        let of_cluster = azure.map(|azure| azure.subnet_id.as_str());
        let subnet = self.nodepool_subnet_id.as_deref().or(of_cluster);
        let subnet = subnet.ok_or_else(|| {
            Usage::new(
                &"--nodepool-subnet-id is needed: the HostedCluster names no subnet in spec.platform.azure",
            )
        })?;
        Ok(self.nodes.platform(&AzurePlace {
            arch,
            subnet,
            zone: self.availability_zone.as_deref(),
            boot_image: None,
        })?)
    }
}
