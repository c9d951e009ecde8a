//! packageserver: serves the packages of catalogs as an API of the guest.

use api::hypershift::v1beta1::platform::PlatformType;
use control_plane_component::certificate::server;
use control_plane_component::names::service_and_guest;
use control_plane_component::{Component, Context, Leaf, Publication, Result, Workload, assets};

use super::{edit, flags, olm, readiness};
use crate::infra::services::Service;

/// The component's name.
const NAME: &str = "packageserver";

pub(super) fn component() -> Component {
    let component = Component::new(NAME, assets!("deployment.yaml", "pdb.yaml",));
    olm::common(component, &[olm::CATALOG_SOURCE])
        .with_certificates(certificates)
        .published_by(Publication {
            services: &[NAME],
            objects: |_| vec![Service::internal(NAME, 5443).object()],
            ..Publication::NONE
        })
        .api_critical()
        .zone_spread()
        .mounts_token()
        .manifest("pdb.yaml", edit::disruption_budget)
        .adapt(adapt)
}

fn certificates(context: &Context<'_>) -> Vec<Leaf> {
    vec![server("packageserver-cert", NAME).names(service_and_guest(context, NAME))]
}

fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    if context.is_on(PlatformType::IbmCloud)
        && !context.is_single_replica()
        && let Some(replicas) = workload.replicas()
    {
        *replicas = Some(2);
    }
    let pod = edit::pod(workload);
    let packages = edit::container(pod, NAME)?;
    olm::environment(context, packages);
    edit::args(packages, flags::tls(context));
    readiness::add_check(context, pod);
    Ok(())
}
