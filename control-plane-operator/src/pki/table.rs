//! All authorities and all certificates of a control plane, as data.

mod leaves;

use std::time::Duration;

use api::hypershift::v1beta1::platform::PlatformType;
use control_plane_component::Context;
use control_plane_component::certificate::{Form, LIFE};

pub use leaves::leaves;

const DAY: Duration = Duration::from_hours(24);
/// How long an authority lives.
pub const AUTHORITY_LIFE: Duration = DAY.saturating_mul(3650);
/// Says otherwise.
const VALIDITY: &str = "hypershift.openshift.io/certificate-validity";

/// An authority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    /// Name of its Secret.
    pub secret: &'static str,
    /// Its common name.
    pub common_name: &'static str,
    /// Its organizational unit.
    pub unit: &'static str,
    /// Type and keys of its Secret.
    pub form: Form,
}

const fn openshift(secret: &'static str, common_name: &'static str) -> Authority {
    Authority {
        secret,
        common_name,
        unit: "openshift",
        form: Form::Authority,
    }
}

const fn component(secret: &'static str, common_name: &'static str) -> Authority {
    Authority {
        form: Form::Tls,
        ..openshift(secret, common_name)
    }
}

const AUTHORITIES: [Authority; 12] = [
    openshift("root-ca", "root-ca"),
    openshift("etcd-signer", "etcd-signer"),
    openshift("etcd-metrics-signer", "etcd-metrics-signer"),
    openshift("kas-aggregator-client-signer", "aggregator-signer"),
    openshift("kube-control-plane-signer", "kube-control-plane-signer"),
    openshift(
        "kube-apiserver-to-kubelet-signer",
        "kube-apiserver-to-kubelet-signer",
    ),
    openshift("system-admin-signer", "admin-kubeconfig-signer"),
    openshift("hcco-signer", "hcco-signer"),
    openshift(
        "kas-bootstrap-container-signer",
        "kas-bootstrap-container-signer",
    ),
    openshift("cluster-signer-ca", "kube-csr-signer"),
    Authority {
        unit: "kubernetes",
        ..openshift("konnectivity-signer", "konnectivity-signer")
    },
    component("ignition-server-ca-cert", "ignition-root-ca"),
];
/// Authorities of components that forward metrics.
const METRICS: [Authority; 2] = [
    component("endpoint-resolver-ca", "endpoint-resolver-ca"),
    component("metrics-proxy-ca-cert", "metrics-proxy-ca"),
];

/// The authorities that a hosted control plane needs.
pub fn authorities(context: &Context<'_>) -> Vec<Authority> {
    let mut all = AUTHORITIES.to_vec();
    if !context.is_etcd_managed() {
        all.retain(|authority| !authority.secret.starts_with("etcd-"));
    }
    if forwards_metrics(context) {
        all.extend(METRICS);
    }
    all
}

/// Whether metrics of the control plane are forwarded to the guest.
fn forwards_metrics(context: &Context<'_>) -> bool {
    let monitoring = serde_json::json!(context.spec().monitoring);
    monitoring["metricsForwarding"]["mode"] == "Forward"
}

/// How long leaves live.
fn life(context: &Context<'_>) -> Duration {
    let wish = context.annotation(VALIDITY);
    let wish = wish.and_then(|text| text.parse::<support::args::Time>().ok());
    wish.map_or(LIFE, |time| time.0)
}
