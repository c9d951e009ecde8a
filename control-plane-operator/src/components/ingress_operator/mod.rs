//! ingress-operator: runs the guest's routers, and publishes their names.

use api::hypershift::v1beta1::capabilities::OptionalCapability::Ingress;
use control_plane_component::certificate::server;
use control_plane_component::declaration::{ServiceAccountKubeconfig, TokenFor};
use control_plane_component::{
    Component, Context, Konnectivity, Leaf, Minter, Prober, Result, TokenFrom, Workload, assets,
};

use super::cloud::azure;
use super::cluster_image_registry_operator::METRICS;
use super::edit;
use super::managed_identity::Certificate;

/// The component's name, and that of its service account in the guest.
const NAME: &str = "ingress-operator";
/// The namespace of the service account.
const NAMESPACE: &str = "openshift-ingress-operator";
/// The volume with the kubeconfig of its helpers.
const KUBECONFIG: &str = "admin-kubeconfig";
/// Images that it runs in the guest.
const IMAGES: [(&str, &str); 4] = [
    ("IMAGE", "haproxy-router"),
    ("HAPROXY_28_IMAGE", "haproxy-router-haproxy28"),
    ("HAPROXY_32_IMAGE", "haproxy-router-haproxy32"),
    ("CANARY_IMAGE", "cluster-ingress-operator"),
];

/// The certificate with which it manages DNS records on Azure.
const CERTIFICATE: Certificate = Certificate {
    class: "managed-azure-ingress",
    volume: "ingress-cert",
    field: "ingress",
    identity: |identities| Some(&identities.ingress),
};

pub(super) fn component() -> Component {
    let assets = assets!(
        "deployment.yaml",
        "podmonitor.yaml",
        "secretproviderclass.yaml",
    );
    Component::new(NAME, assets)
        .with_certificates(certificates)
        .metrics(METRICS)
        .depends_on(&["openshift-apiserver"])
        .enabled_if(|context| context.has_capability(Ingress))
        .service_account_kubeconfig(ServiceAccountKubeconfig {
            namespace: NAMESPACE,
            name: NAME,
            mount_path: "/etc/kubernetes",
            containers: &[NAME],
        })
        // Its canary checks connect to routers in the guest, and its DNS records are at the cloud.
        .konnectivity(Konnectivity {
            kubeconfig_volume: Some(KUBECONFIG),
            https: Some(&[Konnectivity::DIRECT_TO_CLOUD]),
            socks5: None,
        })
        .minter(Minter {
            for_: TokenFor::Cloud,
            namespace: NAMESPACE,
            name: NAME,
            kubeconfig: TokenFrom::Volume(KUBECONFIG),
            oneshot: false,
        })
        .prober(Prober {
            required_apis: &[("route.openshift.io", "v1", "Route")],
            ..Prober::default()
        })
        .manifest("secretproviderclass.yaml", |context, class| {
            CERTIFICATE.class(context, class)
        })
        .manifest_if("secretproviderclass.yaml", azure::uses_managed_identities)
        .adapt(adapt)
}

/// The default certificate of the guest's Routes.
fn certificates(context: &Context<'_>) -> Vec<Leaf> {
    let domain = context.apps_domain();
    vec![server("ingress-crt", "openshift-ingress").names([format!("*.{domain}")])]
}

fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    let pod = edit::pod(workload);
    CERTIFICATE.mount(context, pod, NAME)?;
    let operator = edit::container(pod, NAME)?;
    let release = context.user_release;
    edit::env(operator, "RELEASE_VERSION", &release.version);
    edit::images(operator, release, &IMAGES)?;
    if context.spec().fips == Some(true) {
        edit::env(operator, "FIPS_ENABLED", "true");
    }
    Ok(())
}
