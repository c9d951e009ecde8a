//! cloud-credential-operator: credentials of the guest's components for AWS.

use api::hypershift::v1beta1::platform::PlatformType;
use control_plane_component::declaration::ServiceAccountKubeconfig;
use control_plane_component::{Component, Context, Prober, Result, Workload, assets};

use super::edit;

/// The component's name.
const NAME: &str = "cloud-credential-operator";

pub(super) fn component() -> Component {
    Component::new(NAME, assets!("deployment.yaml"))
        .zone_spread()
        .depends_on(&["openshift-apiserver"])
        .enabled_if(|context| context.is_on(PlatformType::Aws))
        .service_account_kubeconfig(ServiceAccountKubeconfig {
            namespace: "openshift-cloud-credential-operator",
            name: NAME,
            mount_path: "/etc/kubernetes",
            containers: &[],
        })
        .prober(Prober {
            required_apis: &[("operator.openshift.io", "v1", "CloudCredential")],
            infrastructure: true,
            ..Prober::default()
        })
        .adapt(adapt)
}

fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    let operator = edit::container(edit::pod(workload), NAME)?;
    let version = context.release.version.as_str();
    edit::env(operator, "RELEASE_VERSION", version);
    context.settings.proxy.set_env(operator, []);
    Ok(())
}
