//! hosted-cluster-config-operator: reconciles resources in the hosted cluster.

use api::group::CapiTypes;
use api::hypershift::v1beta1::capabilities::OptionalCapability;
use api::hypershift::v1beta1::platform::PlatformType;
use control_plane_component::certificate::Usage::Client;
use control_plane_component::certificate::{Authority, authority, leaf};
use control_plane_component::{
    CapiUse, Component, Context, Leaf, Prober, Result, Workload, assets,
};
use k8s_openapi::api::core::v1::Container;
use k8s_openapi::api::rbac::v1::Role;
use serde_json::json;

use super::cloud::kubevirt::{external_infra, mount_infra_kubeconfig};
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
];
/// Kinds that only a guest with the capability serves.
const OPTIONAL: &[(OptionalCapability, (&str, &str, &str))] = &[(
    OptionalCapability::Ingress,
    (OPERATOR, "v1", "IngressController"),
)];
/// The controllers on IBM Cloud, which approves certificates and labels nodes by itself.
const ON_IBM_CLOUD: &str =
    "--controllers=controller-manager-ca,resources,inplaceupgrader,drainer,hcpstatus";
/// The volume with the kubeconfig of another cluster that runs the virtual machines, and its path.
const INFRA_KUBECONFIG: (&str, &str) = (
    "kubevirt-infra-kubeconfig",
    "/etc/kubernetes/kubevirt-infra-kubeconfig",
);

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
        optional_apis: OPTIONAL,
        ..Prober::default()
    })
    .manifest("role.yaml", role)
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

/// On KubeVirt it publishes the ingress of the guest in the cluster that runs the virtual machines.
fn role(context: &Context<'_>, role: &mut Role) -> Result<()> {
    capi::role(context, role)?;
    if !context.is_on(PlatformType::KubeVirt) {
        return Ok(());
    }
    let all = [
        "get", "list", "watch", "create", "update", "patch", "delete",
    ];
    let rules = [
        json!({ "apiGroups": ["route.openshift.io"], "resources": ["routes", "routes/custom-host"], "verbs": all }),
        json!({ "apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices", "endpointslices/restricted"], "verbs": all }),
        json!({ "apiGroups": [""], "resources": ["services"], "verbs": all }),
        json!({ "apiGroups": ["kubevirt.io"], "resources": ["virtualmachines"], "verbs": ["get", "list", "watch"] }),
    ];
    let rules = rules.map(edit::from_json);
    role.rules.get_or_insert_default().extend(rules);
    Ok(())
}

fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    let pod = edit::pod(workload);
    if external_infra(context).is_some() {
        mount_infra_kubeconfig(pod, NAME, INFRA_KUBECONFIG)?;
    }
    let operator = edit::container(pod, NAME)?;
    let command = operator.command.get_or_insert_default();
    command.extend(flags(context));
    variables(context, operator)
}

fn variables(context: &Context<'_>, operator: &mut Container) -> Result<()> {
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
    context.settings.proxy.set_env(operator, []);
    if let Some(service) = &context.settings.managed_service {
        edit::env(operator, "MANAGED_SERVICE", service);
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
    if context.is_on(PlatformType::IbmCloud) {
        flags.push(ON_IBM_CLOUD.to_owned());
    }
    if external_infra(context).is_some() {
        let (_, path) = INFRA_KUBECONFIG;
        flags.push(format!("--kubevirt-infra-kubeconfig={path}/kubeconfig"));
    }
    flags
}
