//! hosted-cluster-config-operator: reconciles resources in the hosted cluster.

use api::group::CapiTypes;
use control_plane_component::certificate::Usage::Client;
use control_plane_component::certificate::{Authority, authority, leaf};
use control_plane_component::{
    CapiUse, Component, Context, Leaf, Prober, Result, Workload, assets,
};
use serde_json::json;

use super::{capi, edit};

/// The component's name, and that of its image.
const NAME: &str = "hosted-cluster-config-operator";
const SIGNER: Authority = authority("hcco-signer", "hcco-signer").trusted_in(&["client-ca"]);
const CONFIG: &str = "config.openshift.io";
const OPERATOR: &str = "operator.openshift.io";
/// Kinds that the guest must serve before the operator starts, because it writes them.
const REQUIRED: &[(&str, &str, &str)] = &[
    ("imageregistry.operator.openshift.io", "v1", "Config"),
    (CONFIG, "v1", "Infrastructure"),
    (CONFIG, "v1", "DNS"),
    (CONFIG, "v1", "Ingress"),
    (CONFIG, "v1", "Network"),
    (CONFIG, "v1", "Proxy"),
    (CONFIG, "v1", "Build"),
    (CONFIG, "v1", "Image"),
    (CONFIG, "v1", "Project"),
    (CONFIG, "v1", "ClusterVersion"),
    (CONFIG, "v1", "FeatureGate"),
    (CONFIG, "v1", "ClusterOperator"),
    (CONFIG, "v1", "OperatorHub"),
    (OPERATOR, "v1", "Network"),
    (OPERATOR, "v1", "CloudCredential"),
    (OPERATOR, "v1", "Storage"),
    (OPERATOR, "v1", "CSISnapshotController"),
    (OPERATOR, "v1", "ClusterCSIDriver"),
    (OPERATOR, "v1", "IngressController"),
];

pub(super) fn component() -> Component {
    Component::new(
        NAME,
        assets!(
            "deployment.yaml",
            "podmonitor.yaml",
            "proxy-podmonitor.yaml",
            "role.yaml",
            "rolebinding.yaml",
            "serviceaccount.yaml",
        ),
    )
    .with_authorities(|_| vec![SIGNER])
    .with_certificates(certificates)
    .management_api()
    // It annotates MachineSets for in-place upgrades.
    .uses_capi(CapiUse::Direct)
    .prober(Prober {
        kubeconfig_volume: Some("kubeconfig"),
        required_apis: REQUIRED,
        ..Prober::default()
    })
    .manifest("role.yaml", capi::role)
    .manifest_if("proxy-podmonitor.yaml", |context| {
        context.settings.capi_types == CapiTypes::Private
    })
    .adapt(adapt)
}

fn certificates(_: &Context<'_>) -> Vec<Leaf> {
    let user = "system:hosted-cluster-config";
    let client = leaf("hcco-client", SIGNER.secret, user, "kubernetes", Client);
    vec![client.group("system:serviceaccounts:openshift")]
}

fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    let operator = edit::container(edit::pod(workload), NAME)?;
    let command = operator.command.get_or_insert_default();
    command.extend(flags(context));
    let variables = [
        (
            "OPENSHIFT_RELEASE_VERSION",
            context.user_release.version.clone(),
        ),
        (
            "KUBERNETES_VERSION",
            context.user_release.kubernetes().to_owned(),
        ),
        (
            "OPERATE_ON_RELEASE_IMAGE",
            context.spec().release_image.clone(),
        ),
        (
            "OPENSHIFT_IMG_OVERRIDES",
            context.settings.openshift_img_overrides.to_string(),
        ),
        (
            "HOSTED_CLUSTER_CONFIG_OPERATOR_IMAGE",
            context.release.image(NAME)?,
        ),
    ];
    for (name, value) in variables {
        edit::env(operator, name, value);
    }
    let insecure = &context.settings.insecure_registries;
    if !insecure.is_empty() {
        edit::env(operator, "INSECURE_REGISTRIES", insecure.join(","));
    }
    // Optional: only in-place upgrades need it.
    if let Ok(image) = context.release.image("machine-config-operator") {
        edit::env(operator, "IMAGE_MACHINE_CONFIG_OPERATOR", image);
    }
    Ok(())
}

fn flags(context: &Context<'_>) -> Vec<String> {
    let platform = json!(context.platform());
    let (konnectivity, oauth) = (&context.infra.konnectivity, &context.infra.oauth);
    let mut flags = vec![
        "--platform-type".to_owned(),
        platform.as_str().unwrap_or_default().to_owned(),
        "--enable-ci-debug-output=false".to_owned(),
        format!("--hosted-control-plane={}", context.name()),
        format!("--konnectivity-address={}", konnectivity.host),
        format!("--konnectivity-port={}", konnectivity.port),
        format!("--oauth-address={}", oauth.host),
        format!("--oauth-port={}", oauth.port),
    ];
    flags.extend(edit::pairs(
        "--registry-overrides",
        &context.settings.registry_overrides,
    ));
    if context.settings.capi_types == CapiTypes::Private {
        flags.push("--capi-types=private".to_owned());
    }
    flags
}
