//! Private links of hosted clusters, in the account of the management cluster.
//!
//! ```text
//!  link ── owner, Service, HostedCluster ──> desired (pure) ──> what leads to the load balancer ──> status
//!    ^ control-plane-operator: load balancer                        │ its name
//!    └── endpoint and DNS records in the network of the cluster <───┘
//! ```
//!
//! The control-plane-operator creates a link for the load balancer of a Service: an AWSEndpointService,
//! AzurePrivateLinkService or GCPPrivateServiceConnect. For each of them this operator makes what the network of the cluster
//! can connect to: a VPC endpoint service, a private link service, a service attachment.
//!
//! What is the same on all clouds is here; each cloud has a folder, where a [`control::Provider`] does its part.

mod aws;
mod azure;
mod control;
mod gcp;
mod inputs;
mod requests;

use std::sync::Arc;

use api::hypershift::v1beta1::platform::PlatformType;
use futures::future::join3;
use kube::api::ApiResource;
use support::problem;
use support::shutdown::Drain;

use crate::context::Context;

/// The private links of the clusters on a platform.
pub(crate) struct Links {
    pub(crate) resource: ApiResource,
    /// The finalizer of the control-plane-operator: the endpoint goes first.
    pub(crate) finalizer: &'static str,
}

/// Reconciles those of all clouds, until the shutdown begins. Reconciles in flight are completed.
pub(crate) async fn run(ctx: Arc<Context>, drain: Drain) {
    join3(
        control::run(&ctx, aws::Provider::new(&ctx), drain.clone()),
        control::run(&ctx, azure::Provider::new(&ctx), drain.clone()),
        control::run(&ctx, gcp::Provider::new(&ctx), drain.clone()),
    )
    .await;
}

/// The private links of the clusters on a platform. Other platforms have none, of any kind.
pub(crate) fn links(platform: PlatformType) -> Links {
    let (kind, finalizer) = match platform {
        PlatformType::Azure => (&azure::KIND, azure::CONTROL_PLANE_FINALIZER),
        PlatformType::Gcp => (&gcp::KIND, gcp::CONTROL_PLANE_FINALIZER),
        PlatformType::Aws
        | PlatformType::Agent
        | PlatformType::IbmCloud
        | PlatformType::KubeVirt
        | PlatformType::None
        | PlatformType::OpenStack
        | PlatformType::PowerVs => (&aws::KIND, aws::CONTROL_PLANE_FINALIZER),
    };
    Links {
        resource: (kind.resource)(),
        finalizer,
    }
}
