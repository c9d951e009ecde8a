//! ignition-server: serves Ignition to new machines.

use api::annotations::cluster::DISABLE_IGNITION_SERVER;
use api::hypershift::v1beta1::platform::PlatformType;
use api::hypershift::v1beta1::services::{PublishingStrategyType, ServiceType};
use control_plane_component::certificate::{Authority, Form, Usage, authority, leaf, server};
use control_plane_component::facts::Infra;
use control_plane_component::{
    Component, Context, Leaf, Publication, Result, Workload, assets, names,
};
use k8s_openapi::api::core::v1::{PodSpec, Service};
use serde_json::{Value, json};

use super::{edit, feature_gate};
use crate::infra::address::of;
use crate::infra::routes::{self, Reach, by_route, chosen};

/// The component's name.
const NAME: &str = "ignition-server";
/// Authority of the certificate that is served to machines.
const AUTHORITY: Authority =
    authority("ignition-server-ca-cert", "ignition-root-ca").form(Form::Tls);

pub(super) fn component() -> Component {
    Component::new(
        NAME,
        assets!(
            "ca-cert.yaml",
            "deployment.yaml",
            "podmonitor.yaml",
            "role.yaml",
            "rolebinding.yaml",
            "route.yaml",
            "service.yaml",
            "serviceaccount.yaml",
            "serving-cert.yaml",
        ),
    )
    .independent()
    .with_authorities(|_| vec![AUTHORITY])
    .with_certificates(certificates)
    .published_by(Publication {
        addresses,
        ..Publication::NONE
    })
    .zone_spread()
    .management_api()
    .enabled_if(is_enabled)
    .pki_managed("ca-cert.yaml")
    .manifest("route.yaml", route)
    .manifest_if("route.yaml", is_published_by_route)
    .manifest("service.yaml", service)
    .pki_managed("serving-cert.yaml")
    .adapt(adapt)
}

/// Serving certificates: for machines, and for the proxy in front of it.
fn certificates(context: &Context<'_>) -> Vec<Leaf> {
    let mut all = Vec::new();
    if !is_reached_directly(context) {
        all.push(server(NAME, NAME).names(names::service(context, NAME)));
    }
    // Machines connect to the published address.
    if let Some(host) = names::known(&context.infra.ignition.host) {
        let leaf = leaf(
            "ignition-server-serving-cert",
            AUTHORITY.secret,
            NAME,
            "openshift",
            Usage::Unrestricted,
        );
        all.push(leaf.names([host]).form(Form::Tls));
    }
    all
}

/// Whether the ignition server is enabled.
pub(super) fn is_enabled(context: &Context<'_>) -> bool {
    !DISABLE_IGNITION_SERVER.is_set(context.annotations())
}

/// Whether machines connect without a proxy in between.
fn is_reached_directly(context: &Context<'_>) -> bool {
    context.is_on(PlatformType::IbmCloud)
}

fn is_published_by_route(context: &Context<'_>) -> bool {
    let strategy = context.strategy(ServiceType::Ignition);
    strategy.is_some_and(|strategy| strategy.type_ == PublishingStrategyType::Route)
}

fn service(context: &Context<'_>, service: &mut Service) -> Result<()> {
    if is_reached_directly(context) {
        publish(context, service)?;
    }
    Ok(())
}

/// Makes it a `NodePort` Service if that is the publishing strategy.
#[expect(clippy::unnecessary_wraps, reason = "the form of adapt functions")]
pub(super) fn publish(context: &Context<'_>, service: &mut Service) -> Result<()> {
    let strategy = context
        .strategy(ServiceType::Ignition)
        .filter(|strategy| strategy.type_ == PublishingStrategyType::NodePort);
    let Some(strategy) = strategy else {
        return Ok(());
    };
    let spec = service.spec.get_or_insert_default();
    spec.type_ = Some("NodePort".to_owned());
    let port = strategy.node_port.as_ref().and_then(|node| node.port);
    for published in spec.ports.iter_mut().flatten() {
        published.node_port = port.filter(|port| *port != 0);
    }
    Ok(())
}

#[expect(clippy::unnecessary_wraps, reason = "the form of adapt functions")]
fn route(context: &Context<'_>, route: &mut Value) -> Result<()> {
    let wildcards = route["spec"]["wildcardPolicy"].clone();
    // Only machines connect to it, and those of a private cluster do so in its network, also if its API server is public.
    let (host, reach) = if context.access().is_private() {
        let host = format!("{NAME}.apps.{}.hypershift.local", context.name());
        (Some(host), Reach::Internal)
    } else {
        let host = by_route(context, ServiceType::Ignition).flatten();
        (chosen(context, NAME, host), Reach::External)
    };
    *route = routes::route(context, (NAME, published_service(context)), host, reach);
    route["spec"]["wildcardPolicy"] = wildcards;
    Ok(())
}

/// The Service that machines connect to.
fn published_service(context: &Context<'_>) -> &'static str {
    if is_reached_directly(context) {
        NAME
    } else {
        "ignition-server-proxy"
    }
}

fn addresses(context: &Context<'_>, infra: &mut Infra) {
    let service = published_service(context);
    infra.ignition = of(context, ServiceType::Ignition, service, NAME);
}

fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    let pod = edit::pod(workload);
    let gates = edit::container(pod, "fetch-feature-gate")?;
    edit::env(gates, "FEATURE_GATE_YAML", feature_gate::requested(context));
    let server = edit::container(pod, NAME)?;
    let settings = context.settings;
    edit::args(
        server,
        edit::pairs("--registry-overrides", &settings.registry_overrides),
    );
    let platform = json!(context.platform());
    let platform = platform.as_str().unwrap_or_default().to_owned();
    edit::args(server, ["--platform".to_owned(), platform]);
    let name = format!("--hosted-control-plane={}", context.name());
    edit::args(server, [name]);
    let mirrors = settings.openshift_img_overrides.to_string();
    edit::env(server, "OPENSHIFT_IMG_OVERRIDES", mirrors);
    if !settings.insecure_registries.is_empty() {
        let registries = settings.insecure_registries.join(",");
        edit::env(server, "INSECURE_REGISTRIES", registries);
    }
    settings.proxy.set_env(server, []);
    edit::mount_trust_bundle(context, pod, NAME)?;
    if is_reached_directly(context) {
        use_public_certificate(pod);
    }
    Ok(())
}

/// Without a proxy, the server itself serves the certificate that machines trust.
fn use_public_certificate(pod: &mut PodSpec) {
    let volumes = pod.volumes.iter_mut().flatten();
    let serving = volumes.filter(|volume| volume.name == "serving-cert");
    for secret in serving.filter_map(|volume| volume.secret.as_mut()) {
        secret.secret_name = Some("ignition-server-serving-cert".to_owned());
    }
}
