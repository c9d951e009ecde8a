//! All certificates of a control plane.

use super::names::{api_server, known, pods, service, service_and_guest, service_and_localhost};
use super::{Form, Leaf, PlatformType, Usage, forwards_metrics, is_on, life};
use crate::component::Context;

use Usage::{Both, Client, Server, Unsaid};

const ROOT: &str = "root-ca";
const KONNECTIVITY: &str = "konnectivity-signer";
const CSR: &str = "cluster-signer-ca";
const CONTROL_PLANE: &str = "kube-control-plane-signer";

/// The certificates that a hosted control plane needs, as far as their names are known.
pub fn leaves(context: &Context<'_>) -> Vec<Leaf> {
    let mut all = clients();
    all.extend(etcd(context));
    all.extend(api(context));
    all.extend(konnectivity(context));
    all.extend(openshift(context));
    all.extend(operators(context));
    all.extend(ignition(context));
    all.extend(clouds(context));
    all.extend(metrics(context));
    let life = life(context);
    for leaf in &mut all {
        leaf.life = life;
    }
    all
}

fn leaf(secret: &str, authority: &'static str, name: &str, group: &str, usage: Usage) -> Leaf {
    Leaf {
        secret: secret.to_owned(),
        authority,
        common_name: name.to_owned(),
        organizations: [group]
            .into_iter()
            .filter(|group| !group.is_empty())
            .map(str::to_owned)
            .collect(),
        usage,
        names: Vec::new(),
        form: Form::Leaf,
        life: super::LEAF_LIFE,
    }
}

impl Leaf {
    fn names(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.names.extend(names);
        self
    }

    fn form(mut self, form: Form) -> Self {
        self.form = form;
        self
    }

    fn group(mut self, group: &str) -> Self {
        self.organizations.push(group.to_owned());
        self
    }
}

/// Users of the guest.
fn clients() -> Vec<Leaf> {
    let account = |namespace: &str| format!("system:serviceaccounts:{namespace}");
    let nodes = "openshift-machine-config-operator";
    vec![
        leaf(
            "kas-aggregator-crt",
            "kas-aggregator-client-signer",
            "system:openshift-aggregator",
            "kubernetes",
            Client,
        ),
        leaf(
            "kube-scheduler-client",
            CONTROL_PLANE,
            "system:kube-scheduler",
            "kubernetes",
            Client,
        ),
        leaf(
            "kube-controller-manager",
            CONTROL_PLANE,
            "system:kube-controller-manager",
            "kubernetes",
            Client,
        ),
        leaf(
            "kas-kubelet-client-crt",
            "kube-apiserver-to-kubelet-signer",
            "system:kube-apiserver",
            "kubernetes",
            Client,
        ),
        leaf(
            "system-admin-client",
            "system-admin-signer",
            "system:admin",
            "system:masters",
            Client,
        ),
        leaf(
            "hcco-client",
            "hcco-signer",
            "system:hosted-cluster-config",
            "kubernetes",
            Client,
        )
        .group(&account("openshift")),
        leaf(
            "kas-bootstrap-container-client",
            "kas-bootstrap-container-signer",
            "system:kas-bootstrap-container",
            "kubernetes",
            Client,
        ),
        leaf(
            "kas-bootstrap-client",
            CSR,
            &format!("system:serviceaccount:{nodes}:node-bootstrapper"),
            &account(nodes),
            Client,
        )
        .group("system:serviceaccounts"),
        leaf(
            "openshift-authenticator-cert",
            CSR,
            "system:serviceaccount:openshift-oauth-apiserver:openshift-authenticator",
            "openshift",
            Client,
        ),
        leaf(
            "metrics-client",
            CSR,
            "system:serviceaccount:hypershift:prometheus",
            "kubernetes",
            Client,
        ),
    ]
}

fn etcd(context: &Context<'_>) -> Vec<Leaf> {
    if !context.is_etcd_managed() {
        return Vec::new();
    }
    let members = || pods(context, "etcd-discovery");
    let addresses = ["127.0.0.1", "::1"].map(str::to_owned);
    vec![
        leaf(
            "etcd-client-tls",
            "etcd-signer",
            "etcd-client",
            "kubernetes",
            Client,
        )
        .form(Form::Named("etcd-client")),
        leaf(
            "etcd-server-tls",
            "etcd-signer",
            "etcd-server",
            "kubernetes",
            Both,
        )
        .names(service_and_localhost(context, "etcd-client"))
        .names(members())
        .form(Form::Named("server")),
        leaf(
            "etcd-peer-tls",
            "etcd-signer",
            "etcd-discovery",
            "kubernetes",
            Both,
        )
        .names(members())
        .names(addresses)
        .form(Form::Named("peer")),
        leaf(
            "etcd-metrics-client-tls",
            "etcd-metrics-signer",
            "etcd-metrics-client",
            "kubernetes",
            Client,
        )
        .form(Form::Named("etcd-client")),
    ]
}

fn api(context: &Context<'_>) -> Vec<Leaf> {
    vec![
        leaf("kas-server-crt", ROOT, "kubernetes", "kubernetes", Server).names(api_server(context)),
        leaf(
            "kas-server-private-crt",
            ROOT,
            "kubernetes-private",
            "kubernetes",
            Server,
        )
        .names(service(context, "kube-apiserver")),
    ]
}

fn konnectivity(context: &Context<'_>) -> Vec<Leaf> {
    vec![
        leaf(
            "konnectivity-server",
            KONNECTIVITY,
            "konnectivity-server-local",
            "kubernetes",
            Server,
        )
        .names(service_and_localhost(context, "konnectivity-server-local"))
        .names(["127.0.0.1".to_owned()]),
        leaf(
            "konnectivity-cluster",
            KONNECTIVITY,
            "konnectivity-server",
            "kubernetes",
            Server,
        )
        .names(service(context, "konnectivity-server"))
        .names(known(&context.infra.konnectivity.host)),
        leaf(
            "konnectivity-client",
            KONNECTIVITY,
            "konnectivity-client",
            "kubernetes",
            Client,
        ),
        leaf(
            "konnectivity-agent",
            KONNECTIVITY,
            "konnectivity-agent",
            "kubernetes",
            Client,
        ),
    ]
}

/// Servers of OpenShift's own.
fn openshift(context: &Context<'_>) -> Vec<Leaf> {
    let server = |secret: &str, name: &str| leaf(secret, ROOT, name, "openshift", Both);
    let mut all: Vec<_> = [
        "openshift-apiserver",
        "openshift-oauth-apiserver",
        "packageserver",
    ]
    .map(|name| server(&format!("{name}-cert"), name).names(service_and_guest(context, name)))
    .into();
    let managers = [
        "openshift-controller-manager",
        "openshift-route-controller-manager",
        "cluster-policy-controller",
    ];
    all.extend(managers.map(|name| {
        let of = managers[0];
        server(&format!("{name}-cert"), of).names(service(context, of))
    }));
    let oauth = format!("oauth-openshift.{}.svc.cluster.local", context.namespace());
    all.push(
        server("oauth-server-crt", "openshift-oauth")
            .names([oauth])
            .names(known(&context.infra.oauth.host)),
    );
    all.push(
        server("ingress-crt", "openshift-ingress")
            .names([format!("*.{}", ingress_domain(context))]),
    );
    let pool = format!(
        "*.machine-config-server.{}.svc.cluster.local",
        context.namespace()
    );
    all.push(
        leaf(
            "mcs-crt",
            ROOT,
            "machine-config-server",
            "openshift",
            Server,
        )
        .names([pool]),
    );
    all
}

/// The domain of the guest's routes.
fn ingress_domain(context: &Context<'_>) -> String {
    let dns = &context.spec().dns;
    match dns.base_domain_prefix.as_deref() {
        Some("") => format!("apps.{}", dns.base_domain),
        Some(prefix) => format!("apps.{prefix}.{}", dns.base_domain),
        None => format!("apps.{}.{}", context.name(), dns.base_domain),
    }
}

/// Metrics and webhooks of operators.
fn operators(context: &Context<'_>) -> Vec<Leaf> {
    let server = |secret: &str, name: &str| leaf(secret, ROOT, name, "openshift", Both);
    let mut all = Vec::new();
    for (secret, name) in [
        ("catalog-operator-serving-cert", "catalog-operator-metrics"),
        ("olm-operator-serving-cert", "olm-operator-metrics"),
        ("node-tuning-operator-tls", "node-tuning-operator"),
    ] {
        all.push(server(secret, name).names(service(context, name)));
    }
    for (secret, name) in [
        (
            "cluster-image-registry-operator",
            "cluster-image-registry-operator",
        ),
        (
            "cluster-storage-operator-serving-cert",
            "cluster-storage-operator",
        ),
        (
            "csi-snapshot-controller-operator-serving-cert",
            "csi-snapshot-controller-operator",
        ),
    ] {
        all.push(server(secret, name).names([name, "localhost"].map(str::to_owned)));
    }
    for (secret, name) in [
        ("kcm-server", "kube-controller-manager"),
        ("scheduler-server", "kube-scheduler"),
        ("cvo-server", "cluster-version-operator"),
    ] {
        all.push(server(secret, name).names(service_and_localhost(context, name)));
    }
    for (secret, name) in [
        (
            "multus-admission-controller-secret",
            "multus-admission-controller",
        ),
        ("network-node-identity-secret", "network-node-identity"),
        (
            "ovn-control-plane-metrics-cert",
            "ovn-kubernetes-control-plane",
        ),
    ] {
        all.push(
            server(secret, name)
                .names(service_and_localhost(context, name))
                .form(Form::Tls),
        );
    }
    all
}

fn ignition(context: &Context<'_>) -> Vec<Leaf> {
    let mut all = Vec::new();
    if !is_on(context, PlatformType::IbmCloud) {
        let name = "ignition-server";
        all.push(leaf(name, ROOT, name, "openshift", Both).names(service(context, name)));
    }
    // Nodes ask for it by the address that it is published at.
    if let Some(host) = known(&context.infra.ignition.host) {
        let leaf = leaf(
            "ignition-server-serving-cert",
            "ignition-server-ca-cert",
            "ignition-server",
            "openshift",
            Unsaid,
        );
        all.push(leaf.names([host]).form(Form::Tls));
    }
    all
}

/// Webhooks and drivers of clouds.
fn clouds(context: &Context<'_>) -> Vec<Leaf> {
    let metrics = |driver: &str, secret: &str, name: &str| {
        let name = format!("{driver}-{name}");
        let names = service_and_localhost(context, &name);
        leaf(
            &format!("{driver}-{secret}-serving-cert"),
            ROOT,
            &name,
            "openshift",
            Both,
        )
        .names(names)
    };
    let webhook =
        |secret: &str| leaf(secret, ROOT, "127.0.0.1", "", Both).names(["127.0.0.1".to_owned()]);
    match context.platform() {
        PlatformType::Aws => {
            let driver = "aws-ebs-csi-driver";
            vec![
                webhook("aws-pod-identity-webhook-serving-cert"),
                metrics(driver, "operator", "operator-metrics"),
                metrics(driver, "controller-metrics", "controller-metrics"),
                account(
                    "aws-pod-identity-webhook-kubeconfig",
                    "openshift-authentication",
                    "aws-pod-identity-webhook",
                ),
                account(
                    "cloud-credential-operator-service-account-kubeconfig",
                    "openshift-cloud-credential-operator",
                    "cloud-credential-operator",
                ),
            ]
        }
        PlatformType::Azure => {
            let drivers = ["azure-disk-csi-driver", "azure-file-csi-driver"];
            let mut all: Vec<_> = drivers
                .into_iter()
                .flat_map(|driver| {
                    [
                        metrics(driver, "operator", "operator"),
                        metrics(driver, "controller-metrics", "controller"),
                    ]
                })
                .collect();
            all.push(webhook("azure-workload-identity-webhook-serving-cert"));
            all
        }
        PlatformType::IbmCloud
        | PlatformType::KubeVirt
        | PlatformType::Agent
        | PlatformType::PowerVs
        | PlatformType::None => Vec::new(),
    }
}

/// A service account of the guest, with a kubeconfig.
fn account(secret: &str, namespace: &str, name: &str) -> Leaf {
    let user = format!("system:serviceaccount:{namespace}:{name}");
    leaf(
        secret,
        CSR,
        &user,
        &format!("system:serviceaccounts:{namespace}"),
        Client,
    )
    .group("system:serviceaccounts")
    .form(Form::Kubeconfig)
}

fn metrics(context: &Context<'_>) -> Vec<Leaf> {
    if !forwards_metrics(context) {
        return Vec::new();
    }
    [
        ("endpoint-resolver", "endpoint-resolver-ca"),
        ("metrics-proxy", "metrics-proxy-ca-cert"),
    ]
    .map(|(name, authority)| {
        leaf(
            &format!("{name}-serving-cert"),
            authority,
            name,
            "openshift",
            Server,
        )
        .names(service(context, name))
        .form(Form::Tls)
    })
    .into()
}
