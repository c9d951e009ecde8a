//! kube-controller-manager: the guest's built-in controllers.

use api::hypershift::v1beta1::networking::AllocateNodeCidrs;
use api::hypershift::v1beta1::platform::PlatformType;
use control_plane_component::certificate::Usage::Client;
use control_plane_component::certificate::{CONTROL_PLANE, leaf, server};
use control_plane_component::names::service_and_localhost;
use control_plane_component::{
    Component, Context, Error, Leaf, Metrics, Prober, Result, Workload, assets,
};
use k8s_openapi::api::core::v1::{ConfigMap, PodSpec};
use serde_json::{Value, json};

use super::{edit, flags, kubeconfig};

/// The component's name.
const NAME: &str = "kube-controller-manager";
const METRICS: Metrics = Metrics {
    telemetry: Some(("keep", "pv_collector_total_pv_count")),
    sre: Some("kubeControllerManager"),
};
/// The image line of the volume recycler pod in the manifest.
const RECYCLER_IMAGE: &str = "image: tools";
const CONFIG_KEY: &str = "config.json";
/// The `ConfigMap` with the guest's service CA, once the guest has one.
const SERVICE_CA: &str = "service-serving-ca";
const SERVICE_CA_PATH: &str = "/etc/kubernetes/certs/service-ca";

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
    .manifest("config.yaml", config)
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
    if context.is_on(PlatformType::Azure) {
        edit::args(manager, ["--cloud-provider=external".to_owned()]);
    }
    edit::args(manager, [allocation(context)]);
    edit::args(manager, [grace_period(context)]);
    edit::args(manager, flags::tls(context));
    edit::args(manager, flags::profiling(context, NAME)?);
    edit::args(manager, flags::features(context)?);
    context.settings.proxy.set_env(manager, []);
    mount_service_ca(context, edit::pod(workload))
}

/// Mounts the authority of the guest's Services, once the guest has one: it goes into the Secrets of service accounts.
fn mount_service_ca(context: &Context<'_>, pod: &mut PodSpec) -> Result<()> {
    if !has_service_ca(context) {
        return Ok(());
    }
    let manager = edit::container(pod, NAME)?;
    let mounts = manager.volume_mounts.get_or_insert_default();
    mounts.push(edit::mount(SERVICE_CA, SERVICE_CA_PATH));
    let volumes = pod.volumes.get_or_insert_default();
    volumes.push(edit::config_volume(SERVICE_CA, SERVICE_CA));
    Ok(())
}

fn has_service_ca(context: &Context<'_>) -> bool {
    context.objects.config_map(SERVICE_CA).is_some()
}

fn config(context: &Context<'_>, config_map: &mut ConfigMap) -> Result<()> {
    if !has_service_ca(context) {
        return Ok(());
    }
    let missing = || Error::missing("manifest kcm-config", CONFIG_KEY);
    let data = config_map.data.get_or_insert_default();
    let text = data.get_mut(CONFIG_KEY).ok_or_else(missing)?;
    let mut config: Value = serde_saphyr::from_str(text).map_err(|_| missing())?;
    let file = format!("{SERVICE_CA_PATH}/service-ca.crt");
    config["serviceServingCert"]["certFile"] = json!(file);
    *text = config.to_string();
    Ok(())
}

/// The first CIDRs of pods and of Services.
fn network(context: &Context<'_>) -> [String; 2] {
    let first = |cidrs: Vec<&str>| cidrs.first().copied().unwrap_or_default().to_owned();
    [
        format!("--cluster-cidr={}", first(context.cluster_cidrs())),
        format!(
            "--service-cluster-ip-range={}",
            first(context.service_cidrs())
        ),
    ]
}

/// Whether nodes get pod CIDRs from this controller. Most network plugins allocate them themselves.
fn allocation(context: &Context<'_>) -> String {
    let allocates = context
        .networking()
        .and_then(|networking| networking.allocate_node_cidrs);
    let allocates = allocates == Some(AllocateNodeCidrs::Enabled);
    format!("--allocate-node-cidrs={allocates}")
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
