//! The platforms of a hosted cluster's machines. Each platform is a file: its flags, and its resources of the cluster.

mod agent;
mod aws;
mod kubevirt;
mod none;

use anyhow::Result;

use super::Cluster;
use crate::agents::AgentService;
use crate::guest::Initialization;
use crate::hosts::Hosts;
use crate::virtual_machines::{ExternalInfra, VirtualMachines};

/// The platform of the machines.
#[derive(Debug, Clone, Copy)]
pub enum Platform<'a> {
    /// The fixture's fake cloud, with the stock provider, in a network that is there.
    Aws,
    /// The same, and the command makes network, roles and identity provider of its own, which have to go with the cluster.
    AwsFromNothing,
    /// The same with AutoNode: Karpenter makes machines, too.
    AwsAutoNode,
    /// An Agent service, with the stand-in for the provider.
    Agent(&'a AgentService),
    /// KubeVirt's stand-in, with the stock provider; machines are beside the control plane.
    Kubevirt(&'a VirtualMachines),
    /// The same with machines on another infrastructure cluster.
    ExternalKubevirt(&'a VirtualMachines, &'a ExternalInfra),
    /// Nowhere: the cluster's user brings them.
    None(&'a Hosts),
}

// === impl Platform ===

impl Platform<'_> {
    /// How commands call it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Aws | Self::AwsFromNothing | Self::AwsAutoNode => "aws",
            Self::Agent(_) => "agent",
            Self::Kubevirt(_) | Self::ExternalKubevirt(..) => "kubevirt",
            Self::None(_) => "none",
        }
    }

    /// The name of the pool of workers that the command makes for a cluster.
    pub(super) fn pool(self, cluster: &str) -> String {
        match self {
            Self::Aws | Self::AwsFromNothing | Self::AwsAutoNode => aws::pool(cluster),
            Self::Agent(_) | Self::Kubevirt(_) | Self::ExternalKubevirt(..) | Self::None(_) => {
                cluster.to_owned()
            }
        }
    }

    /// The flags that make a cluster one of its own; writes the files that they name.
    pub(super) fn flags(self, cluster: &Cluster<'_>) -> Result<Vec<String>> {
        match self {
            Self::Aws => aws::flags(cluster),
            Self::AwsFromNothing => Ok(aws::flags_from_nothing(cluster)),
            Self::AwsAutoNode => Ok(aws::flags_with_auto_node(cluster)),
            Self::Agent(_) => Ok(agent::flags(cluster)),
            Self::Kubevirt(machines) => kubevirt::flags(cluster, machines, None),
            Self::ExternalKubevirt(machines, infra) => {
                kubevirt::flags(cluster, machines, Some(infra))
            }
            Self::None(_) => Ok(none::flags(cluster)),
        }
    }

    /// Makes what must be there before the command.
    pub(super) async fn prepare(self, cluster: &Cluster<'_>) -> Result<()> {
        match self {
            Self::Aws => cluster.has_profile().await,
            Self::AwsFromNothing
            | Self::AwsAutoNode
            | Self::Agent(_)
            | Self::Kubevirt(_)
            | Self::ExternalKubevirt(..)
            | Self::None(_) => Ok(()),
        }
    }

    /// Has its provider find it, once the cluster is known.
    pub(super) async fn is_found(self, cluster: &Cluster<'_>) -> Result<()> {
        let last: &[&str] = match self {
            Self::Aws | Self::AwsFromNothing => &[],
            Self::AwsAutoNode => &["karpenter-operator", "karpenter"],
            Self::Agent(_) | Self::Kubevirt(_) | Self::ExternalKubevirt(..) | Self::None(_) => {
                return Ok(());
            }
        };
        // The operator creates the security group for which machines wait.
        let mut callers = vec!["capi-provider", "control-plane-operator"];
        // The others come with the hosted API server. This one is the first of them: it keeps its lease for minutes when it
        // is replaced, so it needs the endpoints before its first pod runs.
        if cluster.fixture.initialization() == Initialization::CloudController {
            callers.push("aws-cloud-controller-manager");
        }
        callers.extend(last);
        cluster.can_ask_the_cloud(&callers).await
    }

    /// Whether Cluster API makes its machines.
    pub(super) fn makes_machines(self) -> bool {
        match self {
            Self::Aws
            | Self::AwsFromNothing
            | Self::AwsAutoNode
            | Self::Agent(_)
            | Self::Kubevirt(_)
            | Self::ExternalKubevirt(..) => true,
            Self::None(_) => false,
        }
    }

    /// What runs for a cluster there, by its names.
    pub(super) async fn running(self, cluster: &Cluster<'_>) -> Result<Vec<String>> {
        match self {
            Self::Aws | Self::AwsFromNothing | Self::AwsAutoNode => aws::running(cluster).await,
            Self::Agent(service) => Ok(service.running(&cluster.namespace())),
            Self::Kubevirt(machines) => machines.running(&cluster.namespace()),
            Self::ExternalKubevirt(machines, infra) => machines.running(infra.namespace()),
            Self::None(hosts) => Ok(hosts.running(&cluster.namespace())),
        }
    }
}
