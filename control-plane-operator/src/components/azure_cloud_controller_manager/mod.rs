//! azure-cloud-controller-manager: nodes, routes and load balancers on Azure.

use api::hypershift::v1beta1::platform::PlatformType;
use control_plane_component::{Component, Context, Result, Workload, assets};
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use serde_json::Value;

use super::cloud::azure::{self, CloudConfig, Resource};
use super::cloud::health_probe::Modes;
use super::{cloud, edit, flags, kubeconfig};

/// The component's name, and that of its service account in the management cluster.
const NAME: &str = "azure-cloud-controller-manager";
/// Key of the configuration file.
const KEY: &str = "cloud.conf";
const PROBE: Modes = Modes {
    annotation: "hypershift.openshift.io/azure-load-balancer-health-probe-mode",
    shared: "shared",
    by_service: "servicenodeport",
};

pub(super) fn component() -> Component {
    Component::new(
        NAME,
        assets!(
            "cloud-config-secret.yaml",
            "config.yaml",
            "deployment.yaml",
            "secretproviderclass.yaml",
            "serviceaccount.yaml",
        ),
    )
    .zone_spread()
    .enabled_if(|context| context.is_on(PlatformType::Azure))
    .minter(cloud::minter("azure-cloud-provider", "kubeconfig"))
    .manifest("cloud-config-secret.yaml", config_of_controllers)
    .manifest("config.yaml", config_of_nodes)
    .manifest("secretproviderclass.yaml", secret_provider_class)
    .manifest_if("secretproviderclass.yaml", azure::uses_managed_identities)
    .manifest("serviceaccount.yaml", service_account)
    .manifest_if("serviceaccount.yaml", |context| {
        !azure::uses_managed_identities(context)
    })
    .adapt(adapt)
}

fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    let pod = edit::pod(workload);
    let manager = edit::container(pod, cloud::MANAGER)?;
    let name = format!("--cluster-name={}", context.spec().infra_id);
    edit::args(manager, [name]);
    edit::args(manager, flags::tls(context));
    if azure::uses_managed_identities(context) {
        let class = "managed-azure-cloud-provider";
        return azure::mount_certificate(pod, cloud::MANAGER, "cloud-provider-cert", class);
    }
    pod.service_account_name = Some(NAME.to_owned());
    Ok(())
}

fn secret_provider_class(context: &Context<'_>, class: &mut Value) -> Result<()> {
    let identity = &azure::managed_identities(context)?.cloud_provider;
    class["spec"] = azure::secret_provider_class(context, identity)?;
    Ok(())
}

/// Annotates the service account with the workload identity.
fn service_account(context: &Context<'_>, account: &mut ServiceAccount) -> Result<()> {
    let identity = &azure::workload_identities(context)?.cloud_provider;
    let tenant = &azure::platform(context)?.tenant_id;
    let annotations = account.metadata.annotations.get_or_insert_default();
    for (key, value) in [("client-id", &identity.client_id.0), ("tenant-id", tenant)] {
        annotations.insert(format!("azure.workload.identity/{key}"), value.clone());
    }
    Ok(())
}

/// What the controllers read: only they have the certificate of a managed identity.
fn config_of_controllers(context: &Context<'_>, secret: &mut Secret) -> Result<()> {
    let mut config = config(context)?;
    if azure::uses_managed_identities(context) {
        let identity = &azure::managed_identities(context)?.cloud_provider;
        config.aad_msi_data_plane_identity_path = azure::certificate(identity)?;
        config.use_managed_identity_extension = false;
        config.use_instance_metadata = false;
    }
    kubeconfig::put(secret, KEY, config.text());
    Ok(())
}

/// What nodes read: they have an identity of their own, which may pull images.
fn config_of_nodes(context: &Context<'_>, config_map: &mut ConfigMap) -> Result<()> {
    let mut config = config(context)?;
    let registry = azure::platform(context)?.container_registry.as_ref();
    let identity = registry.and_then(|registry| registry.credentials.managed_identity.as_ref());
    config.user_assigned_identity_id = identity.map(|identity| identity.resource_id.clone());
    cloud::put(config_map, KEY, config.text());
    Ok(())
}

/// What both have.
fn config(context: &Context<'_>) -> Result<CloudConfig> {
    let azure = azure::platform(context)?;
    let security_group = Resource::security_group(azure)?;
    let probe = PROBE.health_probe(context)?;
    let mut config = CloudConfig {
        subnet_name: Resource::subnet(azure)?.name.to_owned(),
        security_group_name: security_group.name.to_owned(),
        security_group_resource_group: security_group.group.to_owned(),
        cloud_provider_backoff: true,
        cloud_provider_backoff_duration: 6,
        use_instance_metadata: true,
        load_balancer_sku: "standard".to_owned(),
        disable_outbound_snat: true,
        load_balancer_name: context.spec().infra_id.clone(),
        cluster_service_load_balancer_health_probe_mode: probe.mode.to_owned(),
        cluster_service_shared_load_balancer_health_probe_path: probe.path.map(str::to_owned),
        cluster_service_shared_load_balancer_health_probe_port: probe.port,
        ..CloudConfig::of(azure)?
    };
    if azure::uses_managed_identities(context) {
        config.use_managed_identity_extension = true;
    } else {
        let identity = &azure::workload_identities(context)?.cloud_provider;
        config.federate(&identity.client_id.0);
    }
    Ok(config)
}
