//! Metrics and webhooks of operators.

use control_plane_component::certificate::{Form, server};
use control_plane_component::names::{service, service_and_localhost};
use control_plane_component::{Component, Context, Leaf};

use super::pending;

pub(super) fn components() -> [Component; 7] {
    [
        pending("cluster-node-tuning-operator").with_certificates(|context| {
            let name = "node-tuning-operator";
            vec![by_service(context, "node-tuning-operator-tls", name)]
        }),
        pending("cluster-image-registry-operator").with_certificates(|_| {
            let name = "cluster-image-registry-operator";
            vec![by_localhost(name, name)]
        }),
        pending("cluster-storage-operator").with_certificates(|_| {
            let name = "cluster-storage-operator";
            vec![by_localhost("cluster-storage-operator-serving-cert", name)]
        }),
        pending("csi-snapshot-controller-operator").with_certificates(|_| {
            let secret = "csi-snapshot-controller-operator-serving-cert";
            vec![by_localhost(secret, "csi-snapshot-controller-operator")]
        }),
        pending("multus-admission-controller").with_certificates(|context| {
            let secret = "multus-admission-controller-secret";
            vec![tls(context, secret, "multus-admission-controller")]
        }),
        pending("network-node-identity").with_certificates(|context| {
            let secret = "network-node-identity-secret";
            vec![tls(context, secret, "network-node-identity")]
        }),
        pending("ovnkube-control-plane").with_certificates(|context| {
            let secret = "ovn-control-plane-metrics-cert";
            vec![tls(context, secret, "ovn-kubernetes-control-plane")]
        }),
    ]
}

fn by_service(context: &Context<'_>, secret: &str, name: &str) -> Leaf {
    server(secret, name).names(service(context, name))
}

fn by_localhost(secret: &str, name: &str) -> Leaf {
    server(secret, name).names([name, "localhost"].map(str::to_owned))
}

fn tls(context: &Context<'_>, secret: &str, name: &str) -> Leaf {
    let names = service_and_localhost(context, name);
    server(secret, name).names(names).form(Form::Tls)
}
