//! cluster-image-registry-operator: runs the image registry in the guest.

use api::hypershift::v1beta1::capabilities::OptionalCapability::ImageRegistry;
use control_plane_component::certificate::server;
use control_plane_component::declaration::TokenFor;
use control_plane_component::{
    Component, Context, Leaf, Metrics, Minter, Result, TokenFrom, Workload, assets,
};

use super::cloud::azure;
use super::managed_identity::Certificate;
use super::{controller_config, edit};

/// The component's name, and that of its image and of its service account in the guest.
const NAME: &str = "cluster-image-registry-operator";
/// Images that it runs in the guest.
const IMAGES: [(&str, &str); 2] = [("IMAGE", "docker-registry"), ("IMAGE_PRUNER", "cli")];
/// The rules for this operator are also those for the ingress operator.
pub(super) const METRICS: Metrics = Metrics {
    telemetry: Some(("drop", "(.*)")),
    sre: Some("registryOperator"),
};

/// The certificate with which it manages storage accounts on Azure.
const CERTIFICATE: Certificate = Certificate {
    class: "managed-azure-image-registry",
    volume: "image-registry-cert",
    field: "imageRegistry",
    identity: |identities| identities.image_registry.as_ref(),
};

pub(super) fn component() -> Component {
    Component::new(
        NAME,
        assets!(
            "config.yaml",
            "deployment.yaml",
            "podmonitor.yaml",
            "secretproviderclass.yaml",
        ),
    )
    .with_certificates(certificates)
    .metrics(METRICS)
    .zone_spread()
    .depends_on(&["openshift-apiserver"])
    .enabled_if(|context| context.has_capability(ImageRegistry))
    .minter(minter(TokenFor::Cloud))
    // It has no kubeconfig: it acts like a pod of the guest.
    .minter(minter(TokenFor::ApiServer))
    .manifest("config.yaml", controller_config::adapt)
    .manifest("secretproviderclass.yaml", |context, class| {
        CERTIFICATE.class(context, class)
    })
    .manifest_if("secretproviderclass.yaml", azure::uses_managed_identities)
    .adapt(adapt)
}

fn minter(audience: TokenFor) -> Minter {
    Minter {
        for_: audience,
        namespace: "openshift-image-registry",
        name: NAME,
        kubeconfig: TokenFrom::Volume("kubeconfig"),
        oneshot: false,
    }
}

fn certificates(_: &Context<'_>) -> Vec<Leaf> {
    vec![server(NAME, NAME).names([NAME, "localhost"].map(str::to_owned))]
}

fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    let pod = edit::pod(workload);
    CERTIFICATE.mount(context, pod, NAME)?;
    let operator = edit::container(pod, NAME)?;
    context.settings.proxy.set_env(operator, []);
    let release = context.user_release;
    edit::env(operator, "RELEASE_VERSION", &release.version);
    edit::env(operator, "OPERATOR_IMAGE_VERSION", &release.version);
    edit::images(operator, context.release, &[("OPERATOR_IMAGE", NAME)])?;
    edit::images(operator, release, &IMAGES)
}
