//! All certificates of a control plane: those that components declare, and those of components that are not here yet.

use control_plane_component::certificate::{CSR, Form, Leaf, ROOT, Usage, account, leaf, server};
use control_plane_component::names::{known, service, service_and_guest, service_and_localhost};
use control_plane_component::{Component, Context};

use super::{PlatformType, forwards_metrics, life};

use Usage::{Both, Client, Server};

/// The certificates that a hosted control plane with these components needs, as far as their names are known.
pub fn leaves(components: &[Component], context: &Context<'_>) -> Vec<Leaf> {
    let mut all: Vec<_> = components
        .iter()
        .flat_map(|component| component.certificates(context))
        .collect();
    all.extend(users());
    all.extend(openshift(context));
    all.extend(operators(context));
    all.extend(clouds(context));
    all.extend(metrics(context));
    let life = life(context);
    for leaf in &mut all {
        leaf.life = life;
    }
    all
}

/// Users of the guest that no component here is.
fn users() -> [Leaf; 2] {
    [
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

/// Servers of OpenShift's own.
fn openshift(context: &Context<'_>) -> Vec<Leaf> {
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
