//! All authorities and all certificates of a control plane, as data.

mod leaves;
mod names;

use std::time::Duration;

use api::hypershift::v1beta1::platform::PlatformType;

use crate::component::Context;
pub use leaves::leaves;

const DAY: Duration = Duration::from_hours(24);
/// How long an authority lives.
pub const AUTHORITY_LIFE: Duration = DAY.saturating_mul(3650);
/// How long a leaf lives, if nothing else is said.
pub const LEAF_LIFE: Duration = DAY.saturating_mul(365);
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

/// Keys of a Secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `ca.crt` and `ca.key`, and the same as `tls.crt` and `tls.key`.
    Authority,
    /// `tls.crt` and `tls.key`, of type kubernetes.io/tls.
    Tls,
    /// `tls.crt`, `tls.key` and `ca.crt`.
    Leaf,
    /// A prefix of our own in place of `tls`.
    Named(&'static str),
    /// As `Leaf`, and a kubeconfig made of it.
    Kubeconfig,
}

/// What a certificate is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usage {
    /// To say who one is.
    Client,
    /// To be found under a name.
    Server,
    /// Both.
    Both,
    /// Nothing is said.
    Unsaid,
}

/// A certificate, and the Secret that it is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf {
    /// Name of the Secret.
    pub secret: String,
    /// Secret of the authority that signs it.
    pub authority: &'static str,
    /// Common name: of a client, the user.
    pub common_name: String,
    /// Organizations: of a client, the groups.
    pub organizations: Vec<String>,
    /// What it is for.
    pub usage: Usage,
    /// Names and addresses that it is good for.
    pub names: Vec<String>,
    /// Type and keys of the Secret.
    pub form: Form,
    /// How long it lives.
    pub life: Duration,
}

// === impl Form ===

impl Form {
    /// Keys of the certificate and of its key.
    pub fn pair(self) -> (String, String) {
        let of = |prefix: &str| (format!("{prefix}.crt"), format!("{prefix}.key"));
        match self {
            Self::Authority => of("ca"),
            Self::Tls | Self::Leaf | Self::Kubeconfig => of("tls"),
            Self::Named(prefix) => of(prefix),
        }
    }

    /// Type of the Secret.
    pub fn secret_type(self) -> &'static str {
        match self {
            Self::Tls => "kubernetes.io/tls",
            Self::Authority | Self::Leaf | Self::Named(_) | Self::Kubeconfig => "Opaque",
        }
    }
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
    wish.map_or(LEAF_LIFE, |time| time.0)
}

fn is_on(context: &Context<'_>, platform: PlatformType) -> bool {
    context.is_on(platform)
}
