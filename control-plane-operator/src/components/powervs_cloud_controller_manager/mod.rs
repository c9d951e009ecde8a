//! powervs-cloud-controller-manager: nodes and load balancers on IBM Power Virtual Server.

use api::hypershift::v1beta1::platform::PlatformType;
use api::hypershift::v1beta1::platform::power_vs::PowerVsPlatformSpec;
use control_plane_component::{Component, Context, Error, Result, Workload, assets};
use k8s_openapi::api::core::v1::ConfigMap;

use super::cloud::ini::Ini;
use super::{cloud, edit, flags};

pub(super) fn component() -> Component {
    Component::new(
        "powervs-cloud-controller-manager",
        assets!("config.yaml", "deployment.yaml"),
    )
    .zone_spread()
    .enabled_if(|context| context.is_on(PlatformType::PowerVs))
    .manifest("config.yaml", |context, config: &mut ConfigMap| {
        cloud::put(config, "ccm-config", config_file(context)?);
        Ok(())
    })
    .adapt(adapt)
}

fn platform<'a>(context: &Context<'a>) -> Result<&'a PowerVsPlatformSpec> {
    cloud::section(context.spec().platform.powervs.as_ref(), "powervs")
}

fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    let credentials = &platform(context)?.kube_cloud_controller_creds;
    let pod = edit::pod(workload);
    let mut volumes = pod.volumes.iter_mut().flatten();
    let volume = volumes.find(|volume| volume.name == "cloud-creds");
    let source = volume.and_then(|volume| volume.secret.as_mut());
    let source = source.ok_or_else(|| Error::missing("volume cloud-creds", "in the manifest"))?;
    source.secret_name = Some(credentials.name.clone());
    let manager = edit::container(pod, cloud::MANAGER)?;
    edit::args(manager, flags::tls(context));
    Ok(())
}

fn config_file(context: &Context<'_>) -> Result<String> {
    let powervs = platform(context)?;
    let vpc = &powervs.vpc;
    let subnet = vpc.subnet.as_deref().unwrap_or_default();
    let account = (
        "spec.platform.powervs.accountID",
        powervs.account_id.as_str(),
    );
    let group = (
        "spec.platform.powervs.resourceGroup",
        powervs.resource_group.as_str(),
    );
    let instance = &powervs.service_instance_id;
    let file = Ini::default()
        .section("global")
        .fixed("version", "1.1.0")
        .section("kubernetes")
        .fixed("config-file", "/etc/kubernetes/kubeconfig")
        .section("provider")
        .fixed("cluster-default-provider", "g2")
        .fixed("g2Credentials", "/etc/vpc/ibmcloud_api_key")
        .set("g2workerServiceAccountID", account)?
        .set("g2ResourceGroupName", group)?
        .set(
            "g2VpcSubnetNames",
            ("spec.platform.powervs.vpc.subnet", subnet),
        )?
        .set("g2VpcName", ("spec.platform.powervs.vpc.name", &vpc.name))?
        .set("accountID", account)?
        .set("clusterID", ("metadata.name", context.name()))?
        .set("region", ("spec.platform.powervs.vpc.region", &vpc.region))?
        .set(
            "powerVSCloudInstanceID",
            ("spec.platform.powervs.serviceInstanceID", instance),
        )?
        .set(
            "powerVSRegion",
            ("spec.platform.powervs.region", &powervs.region),
        )?
        .set("powerVSZone", ("spec.platform.powervs.zone", &powervs.zone))?;
    Ok(file.text())
}
