//! dns-operator: runs the guest's DNS.

use control_plane_component::declaration::ServiceAccountKubeconfig;
use control_plane_component::{Component, Context, Prober, Result, Workload, assets};

use super::edit;

/// The component's name.
const NAME: &str = "dns-operator";
/// Images that it runs in the guest.
const IMAGES: [(&str, &str); 3] = [
    ("IMAGE", "coredns"),
    ("OPENSHIFT_CLI_IMAGE", "cli"),
    ("KUBE_RBAC_PROXY_IMAGE", "kube-rbac-proxy"),
];

pub(super) fn component() -> Component {
    Component::new(NAME, assets!("deployment.yaml"))
        .zone_spread()
        .depends_on(&["openshift-apiserver"])
        .service_account_kubeconfig(ServiceAccountKubeconfig {
            namespace: "openshift-dns-operator",
            name: NAME,
            mount_path: "/etc/kubernetes",
            containers: &[],
        })
        .prober(Prober {
            required_apis: &[("operator.openshift.io", "v1", "DNS")],
            // Older releases ran it in the guest.
            pods_gone: Some("openshift-dns-operator/name=dns-operator"),
            ..Prober::default()
        })
        .adapt(adapt)
}

fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    let operator = edit::container(edit::pod(workload), NAME)?;
    let release = context.user_release;
    edit::env(operator, "RELEASE_VERSION", &release.version);
    edit::images(operator, release, &IMAGES)
}
