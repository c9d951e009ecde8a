//! What the operator creates in the control plane, and the certificates of it.

use api::hypershift::v1beta1::platform::PlatformType;
use control_plane_component::certificate::{Form, server};
use control_plane_component::names::service_and_localhost;
use control_plane_component::{Context, Leaf, Operand};

const OVN: &str = "ovn-kubernetes";
const MULTUS: &str = "multus-admission-controller";
const IDENTITY: &str = "network-node-identity";
const CLOUD: &str = "cloud-network-config-controller";
/// Secret and Service of each serving certificate.
const CERTIFICATES: [(&str, &str); 3] = [
    ("multus-admission-controller-secret", MULTUS),
    ("network-node-identity-secret", IDENTITY),
    (
        "ovn-control-plane-metrics-cert",
        "ovn-kubernetes-control-plane",
    ),
];
/// Annotation of a Service: the management cluster issues a certificate for it.
const SERVICE_CA: &str = "service.beta.openshift.io/serving-cert-secret-name";

/// The Deployments.
pub(super) fn all(context: &Context<'_>) -> Vec<Operand> {
    let mut all = Vec::new();
    if super::is_ovn(context) {
        all.push(Operand::new("ovnkube-control-plane", OVN));
        all.push(Operand::new(IDENTITY, OVN).container("approver"));
        if assigns_addresses(context) {
            all.push(Operand::new(CLOUD, CLOUD).container("controller"));
        }
    }
    if has_multiple_networks(context) {
        all.push(Operand::new(MULTUS, MULTUS));
    }
    all
}

/// Whether a controller assigns addresses of the cloud to nodes.
fn assigns_addresses(context: &Context<'_>) -> bool {
    match context.platform() {
        PlatformType::Aws | PlatformType::Azure | PlatformType::Gcp | PlatformType::OpenStack => {
            true
        }
        PlatformType::IbmCloud
        | PlatformType::KubeVirt
        | PlatformType::Agent
        | PlatformType::PowerVs
        | PlatformType::None => false,
    }
}

/// Whether pods may have several networks.
fn has_multiple_networks(context: &Context<'_>) -> bool {
    let configuration = context.spec().operator_configuration.as_ref();
    let network = configuration.and_then(|it| it.cluster_network_operator.as_ref());
    network.is_none_or(|network| !network.disable_multi_network)
}

/// Serving certificates, unless the management cluster issues them.
pub(super) fn certificates(context: &Context<'_>) -> Vec<Leaf> {
    CERTIFICATES
        .into_iter()
        .filter(|(_, service)| !is_issued_elsewhere(context, service))
        .map(|(secret, service)| {
            let names = service_and_localhost(context, service);
            server(secret, service).names(names).form(Form::Tls)
        })
        .collect()
}

fn is_issued_elsewhere(context: &Context<'_>, service: &str) -> bool {
    let service = context.objects.get("", "Service", service);
    service.is_some_and(|service| service["metadata"]["annotations"][SERVICE_CA].is_string())
}
