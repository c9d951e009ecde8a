//! The certificates of the API server, of konnectivity's server beside it, and of the users that it makes kubeconfigs for.

use api::hypershift::v1beta1::platform::PlatformType;
use control_plane_component::Context;
use control_plane_component::certificate::Usage::{Client, Server};
use control_plane_component::certificate::{CSR, KONNECTIVITY, Leaf, ROOT, account, leaf};
use control_plane_component::names::{first_address, known, service, service_and_localhost};

/// All of them.
pub(super) fn all(context: &Context<'_>) -> Vec<Leaf> {
    let mut all = clients();
    all.extend(api(context));
    all.extend(konnectivity(context));
    if context.is_on(PlatformType::Aws) {
        all.push(account(
            "aws-pod-identity-webhook-kubeconfig",
            "openshift-authentication",
            "aws-pod-identity-webhook",
        ));
    }
    all
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
    ]
}

/// The API server: by its names in the guest and from outside, and by its addresses.
fn api_server(context: &Context<'_>) -> Vec<String> {
    let mut names = vec!["localhost".to_owned()];
    for name in ["kubernetes", "openshift"] {
        for end in ["", ".default", ".default.svc", ".default.svc.cluster.local"] {
            names.push(format!("{name}{end}"));
        }
    }
    names.extend(known(&context.infra.api.host));
    names.extend(
        context
            .spec()
            .kube_api_server_dns_name
            .clone()
            .filter(|name| !name.is_empty()),
    );
    names.push(context.api_internal_host());
    names.extend(["127.0.0.1", "::1"].map(str::to_owned));
    names.extend(
        context
            .service_cidrs()
            .into_iter()
            .filter_map(first_address),
    );
    names.push(context.api_advertise_address().to_owned());
    names
}
