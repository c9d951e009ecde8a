//! cluster-storage-operator: runs the guest's storage drivers, with their controllers in the management cluster.

mod azure_config;
mod drivers;

use api::hypershift::v1beta1::platform::PlatformType;
use control_plane_component::certificate::server;
use control_plane_component::{
    Component, Context, Leaf, Operands, Prober, Result, Workload, assets,
};

use super::cloud::azure;
use super::{controller_config, edit};
use azure_config::{DISK, FILE};

/// The component's name.
const NAME: &str = "cluster-storage-operator";
/// Manifests of the classes of the drivers' certificates.
const DISK_CLASS: &str = "azure-disk-secretproviderclass.yaml";
const FILE_CLASS: &str = "azure-file-secretproviderclass.yaml";

pub(super) fn component() -> Component {
    Component::new(
        NAME,
        assets!(
            "azure-disk-config.yaml",
            "azure-disk-secretproviderclass.yaml",
            "azure-file-config.yaml",
            "azure-file-secretproviderclass.yaml",
            "config.yaml",
            "deployment.yaml",
            "role.yaml",
            "rolebinding.yaml",
            "serviceaccount.yaml",
        ),
    )
    .with_certificates(certificates)
    .operands(Operands::Named(drivers::operands))
    .management_api()
    .depends_on(&["openshift-apiserver"])
    .enabled_if(is_storage_managed)
    .prober(Prober {
        kubeconfig_volume: Some("guest-kubeconfig"),
        required_apis: &[("operator.openshift.io", "v1", "Storage")],
        ..Prober::default()
    })
    .manifest("azure-disk-config.yaml", |context, secret| {
        DISK.config(context, secret)
    })
    .manifest_if("azure-disk-config.yaml", is_on_azure)
    .manifest(DISK_CLASS, |context, class| DISK.class(context, class))
    .manifest_if(DISK_CLASS, azure::uses_managed_identities)
    .manifest("azure-file-config.yaml", |context, secret| {
        FILE.config(context, secret)
    })
    .manifest_if("azure-file-config.yaml", is_on_azure)
    .manifest(FILE_CLASS, |context, class| FILE.class(context, class))
    .manifest_if(FILE_CLASS, azure::uses_managed_identities)
    .manifest("config.yaml", controller_config::adapt)
    .adapt(adapt)
}

/// Whether the control plane manages the guest's storage. On the clouds of IBM, operators in the guest do.
pub(super) fn is_storage_managed(context: &Context<'_>) -> bool {
    match context.platform() {
        PlatformType::IbmCloud | PlatformType::PowerVs => false,
        PlatformType::Aws
        | PlatformType::Azure
        | PlatformType::Gcp
        | PlatformType::KubeVirt
        | PlatformType::Agent
        | PlatformType::OpenStack
        | PlatformType::None => true,
    }
}

fn is_on_azure(context: &Context<'_>) -> bool {
    context.is_on(PlatformType::Azure)
}

fn certificates(context: &Context<'_>) -> Vec<Leaf> {
    let own = server("cluster-storage-operator-serving-cert", NAME);
    let mut all = vec![own.names([NAME, "localhost"].map(str::to_owned))];
    all.extend(drivers::certificates(context));
    all
}

fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    let operator = edit::container(edit::pod(workload), NAME)?;
    drivers::images(context, operator);
    let version = &context.user_release.version;
    edit::env(operator, "OPERATOR_IMAGE_VERSION", version);
    edit::env(operator, "OPERAND_IMAGE_VERSION", version);
    context.settings.proxy.set_env(operator, []);
    edit::run_as_user(context, operator);
    azure_config::classes(context, operator);
    Ok(())
}
