//! kube-controller-manager: the guest's built-in controllers.

use api::hypershift::v1beta1::networking::AllocateNodeCidrs;
use api::hypershift::v1beta1::platform::PlatformType;
use control_plane_component::certificate::Usage::Client;
use control_plane_component::certificate::{CONTROL_PLANE, leaf, server};
use control_plane_component::names::service_and_localhost;
use control_plane_component::{
    Component, Context, Error, Leaf, Metrics, Prober, Result, Workload, assets,
};
use k8s_openapi::api::core::v1::ConfigMap;

use super::{edit, flags, kubeconfig};

/// The component's name.
const NAME: &str = "kube-controller-manager";
const METRICS: Metrics = Metrics {
    telemetry: Some(("keep", "pv_collector_total_pv_count")),
    sre: Some("kubeControllerManager"),
};
/// The image line of the volume recycler pod in the manifest.
const RECYCLER_IMAGE: &str = "image: tools";

pub(super) fn component() -> Component {
    Component::new(
        NAME,
        assets!(
            "config.yaml",
            "deployment.yaml",
            "kubeconfig.yaml",
            "recycler-config.yaml",
            "service.yaml",
            "servicemonitor.yaml",
        ),
    )
    .with_certificates(certificates)
    .metrics(METRICS)
    .zone_spread()
    .prober(Prober::default())
    .manifest("kubeconfig.yaml", kubeconfig::service(NAME))
    .manifest("recycler-config.yaml", recycler)
    .adapt(adapt)
}

fn certificates(context: &Context<'_>) -> Vec<Leaf> {
    let user = "system:kube-controller-manager";
    vec![
        leaf(NAME, CONTROL_PLANE, user, "kubernetes", Client),
        server("kcm-server", NAME).names(service_and_localhost(context, NAME)),
    ]
}

fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    let manager = edit::container(edit::pod(workload), NAME)?;
    edit::args(manager, network(context));
    edit::args(manager, [grace_period(context)]);
    edit::args(manager, flags::tls(context));
    edit::args(manager, flags::profiling(context, NAME)?);
    edit::args(manager, flags::features(context)?);
    Ok(())
}

/// CIDRs, and whether nodes get pod CIDRs from this controller. Most network plugins allocate them themselves.
fn network(context: &Context<'_>) -> [String; 3] {
    let allocates = context
        .networking()
        .and_then(|networking| networking.allocate_node_cidrs);
    let allocates = allocates == Some(AllocateNodeCidrs::Enabled);
    [
        format!("--cluster-cidr={}", context.cluster_cidrs().join(",")),
        format!(
            "--service-cluster-ip-range={}",
            context.service_cidrs().join(",")
        ),
        format!("--allocate-node-cidrs={allocates}"),
    ]
}

/// How long a node may miss heartbeats until it is marked as unreachable.
fn grace_period(context: &Context<'_>) -> String {
    let seconds = if context.is_on(PlatformType::IbmCloud) {
        55
    } else {
        50
    };
    format!("--node-monitor-grace-period={seconds}s")
}

/// Sets the release's image in the volume recycler pod.
fn recycler(context: &Context<'_>, config_map: &mut ConfigMap) -> Result<()> {
    let image = format!("image: {}", context.release.image("tools")?);
    let data = config_map.data.get_or_insert_default();
    let pod = data
        .get_mut("recycler-pod.yaml")
        .ok_or_else(|| Error::missing("manifest recycler-config", "recycler-pod.yaml"))?;
    *pod = pod.replace(RECYCLER_IMAGE, &image);
    Ok(())
}
