//! aws-cloud-controller-manager: nodes and load balancers on AWS.

use api::hypershift::v1beta1::platform::PlatformType;
use control_plane_component::{Component, Context, Result, Workload, assets};
use k8s_openapi::api::core::v1::ConfigMap;

use super::cloud::health_probe::{self, Modes};
use super::cloud::ini::Ini;
use super::{cloud, edit, flags};

const PROBE: Modes = Modes {
    annotation: "hypershift.openshift.io/aws-load-balancer-health-probe-mode",
    shared: "Shared",
    by_service: "ServiceNodePort",
};
const ZONE: &str = "spec.platform.aws.cloudProviderConfig.zone";
const VPC: &str = "spec.platform.aws.cloudProviderConfig.vpc";
const SUBNET: &str = "spec.platform.aws.cloudProviderConfig.subnet.id";

pub(super) fn component() -> Component {
    Component::new(
        "aws-cloud-controller-manager",
        assets!("config.yaml", "deployment.yaml"),
    )
    .zone_spread()
    .enabled_if(|context| context.is_on(PlatformType::Aws))
    .minter(cloud::minter("kube-controller-manager", "kubeconfig"))
    .manifest("config.yaml", |context, config: &mut ConfigMap| {
        cloud::put(config, "aws.conf", config_file(context)?);
        Ok(())
    })
    .adapt(adapt)
}

fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    let manager = edit::container(edit::pod(workload), cloud::MANAGER)?;
    context.settings.proxy.set_env(manager, []);
    edit::args(manager, flags::tls(context));
    Ok(())
}

fn config_file(context: &Context<'_>) -> Result<String> {
    let aws = cloud::section(context.spec().platform.aws.as_ref(), "aws")?;
    let network = aws.cloud_provider_config.as_ref();
    let vpc = network.map_or("", |network| network.vpc.as_str());
    let zone = network.and_then(|network| network.zone.as_deref());
    let subnet = network.and_then(|network| network.subnet.as_ref()?.id.as_deref());
    let infra_id = &context.spec().infra_id;
    let probe = PROBE.health_probe(context)?;
    let mut file = Ini::default()
        .section("Global")
        .set("Zone", (ZONE, zone.unwrap_or_default()))?
        .set("VPC", (VPC, vpc))?
        .set("KubernetesClusterID", (cloud::INFRA_ID, infra_id))?
        .set("SubnetID", (SUBNET, subnet.unwrap_or_default()))?
        .fixed("ClusterServiceLoadBalancerHealthProbeMode", probe.mode)
        .fixed("NLBSecurityGroupMode", "Managed");
    if let Some(path) = probe.path {
        let name = "ClusterServiceSharedLoadBalancerHealthProbePath";
        file = file.set(name, (health_probe::PATH, path))?;
    }
    if let Some(port) = probe.port {
        let name = "ClusterServiceSharedLoadBalancerHealthProbePort";
        file = file.fixed(name, &port.to_string());
    }
    Ok(file.text())
}
