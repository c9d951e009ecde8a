//! Private links of a hosted cluster, in its own account.
//!
//! ```text
//! Service with a load balancer ──> link ── hypershift-operator ──> what can be connected to
//!                                   │                                        │ its name
//!               DNS records <── endpoint in the network of the nodes <───────┘
//! ```
//!
//! Nodes reach the private router by an endpoint in their own network, under names of the private zone
//! `<cluster>.hypershift.local`. A link is an AWSEndpointService, AzurePrivateLinkService or GCPPrivateServiceConnect, with the
//! name of its Service. What is the same on all clouds is here; each cloud has a folder, where a [`provider::Provider`] does its
//! part.

mod aws;
mod azure;
mod control;
mod error;
mod externals;
mod gcp;
mod identity;
mod link;
mod outcome;
mod problem;
mod provider;
mod requests;

use api::hypershift::v1beta1::HostedControlPlane;
use api::hypershift::v1beta1::platform::PlatformType;
use control_plane_component::Objects;
use support::controller::Manager;
use support::shutdown::Drain;

pub(crate) use control::View;

/// Reconciles until the shutdown begins, if the control plane is on a platform with private links.
pub(crate) async fn run<H, O>(
    client: &kube::Client,
    namespace: &str,
    view: View<'_, H, O>,
    manager: &Manager,
    mut drain: Drain,
) where
    H: Fn() -> Option<HostedControlPlane>,
    O: Fn() -> Objects,
{
    let mut changes = view.changes.clone();
    // The platform never changes; elsewhere, nothing is watched.
    let platform = loop {
        if let Some(hcp) = (view.hcp)() {
            break hcp.spec.platform.type_;
        }
        tokio::select! {
            next = changes.changed() => if next.is_err() { return },
            () = drain.begun() => return,
        }
    };
    match platform {
        PlatformType::Aws => {
            let aws = aws::Provider::new(client, namespace);
            control::run(client, namespace, view, aws, manager, drain).await;
        }
        PlatformType::Azure => {
            let azure = azure::Provider::new(client, namespace);
            control::run(client, namespace, view, azure, manager, drain).await;
        }
        PlatformType::Gcp => {
            let gcp = gcp::Provider::new(client, namespace);
            control::run(client, namespace, view, gcp, manager, drain).await;
        }
        PlatformType::Agent
        | PlatformType::IbmCloud
        | PlatformType::KubeVirt
        | PlatformType::None
        | PlatformType::OpenStack
        | PlatformType::PowerVs => {}
    }
}
