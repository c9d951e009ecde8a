//! machine-approver: approves certificates of kubelets whose Node has a Machine.

use api::group;
use api::group::CapiTypes;
use control_plane_component::{CapiUse, Component, Context, Prober, Result, Workload, assets};

use super::{capi, edit, flags};

/// The component's name.
const NAME: &str = "machine-approver";

pub(super) fn component() -> Component {
    Component::new(
        NAME,
        assets!(
            "config.yaml",
            "deployment.yaml",
            "role.yaml",
            "rolebinding.yaml",
            "serviceaccount.yaml",
        ),
    )
    .management_api()
    .uses_capi(CapiUse::Proxied)
    .enabled_if(capi::manages_machines)
    .prober(Prober::default())
    .manifest("role.yaml", capi::role)
    .adapt(adapt)
}

fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    let template = workload.template().metadata.get_or_insert_default();
    template.name = Some(NAME.to_owned());
    let approver = edit::container(edit::pod(workload), NAME)?;
    // The program supports only the standard group; with private types the proxy translates it.
    let group = group::core(CapiTypes::Standard);
    edit::args(
        approver,
        [
            format!("--apigroup={group}"),
            "--workload-cluster-kubeconfig=/etc/kubernetes/kubeconfig/kubeconfig".to_owned(),
            "--disable-status-controller".to_owned(),
            format!("--machine-namespace={}", context.namespace()),
        ],
    );
    edit::args(approver, flags::tls(context));
    let management = "--management-cluster-kubeconfig";
    edit::args(approver, capi::management_kubeconfig(context, management));
    Ok(())
}
