//! konnectivity-agent: lets the guest's API server reach aggregated API servers in the control plane.

use control_plane_component::certificate::Usage::Client;
use control_plane_component::certificate::{KONNECTIVITY, leaf};
use control_plane_component::{Component, Context, Leaf, Result, Workload, assets};

use super::edit;

/// The component's name.
const NAME: &str = "konnectivity-agent";
/// Annotation: overrides the image.
const IMAGE: &str = "hypershift.openshift.io/konnectivity-agent-image";
/// Services that the guest's API server reaches through the agent.
const SERVERS: [&str; 3] = ["openshift-apiserver", "packageserver", OAUTH];
/// The one that exists only with the guest's own OAuth server.
const OAUTH: &str = "openshift-oauth-apiserver";

pub(super) fn component() -> Component {
    Component::new(NAME, assets!("deployment.yaml", "serviceaccount.yaml",))
        .with_certificates(certificates)
        .zone_spread()
        .adapt(adapt)
}

fn certificates(_: &Context<'_>) -> Vec<Leaf> {
    vec![leaf(NAME, KONNECTIVITY, NAME, "kubernetes", Client)]
}

fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    let agent = edit::container(edit::pod(workload), NAME)?;
    edit::image_by(context, agent, IMAGE);
    edit::args(
        agent,
        ["--agent-identifiers".to_owned(), identifiers(context)],
    );
    Ok(())
}

/// The addresses that the agent serves.
fn identifiers(context: &Context<'_>) -> String {
    let servers = SERVERS
        .into_iter()
        .filter(|name| *name != OAUTH || context.is_oauth_enabled());
    let addresses = servers.map(|name| {
        let service = context.objects.get("", "Service", name);
        let address = service.and_then(|service| service["spec"]["clusterIP"].as_str());
        let address = address.unwrap_or_default();
        let family = if address.contains(':') {
            "ipv6"
        } else {
            "ipv4"
        };
        format!("{family}={address}")
    });
    addresses.collect::<Vec<_>>().join("&")
}
