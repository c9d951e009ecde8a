//! Authorities and certificates of the API server, of the konnectivity server in its pods, and of the users of its
//! kubeconfigs.

use api::hypershift::v1beta1::platform::PlatformType;
use control_plane_component::Context;
use control_plane_component::certificate::Usage::{Both, Client, Server};
use control_plane_component::certificate::{
    Authority, CSR, Form, KONNECTIVITY, Leaf, ROOT, account, authority, leaf,
};
use control_plane_component::names::{first_address, known, service, service_and_localhost};

const AGGREGATOR: Authority = authority("kas-aggregator-client-signer", "aggregator-signer")
    .trusted_in(&["aggregator-client-ca"]);
const KUBELET: Authority = authority(
    "kube-apiserver-to-kubelet-signer",
    "kube-apiserver-to-kubelet-signer",
)
.trusted_in(&["client-ca", "kubelet-client-ca"]);
const ADMIN: Authority =
    authority("system-admin-signer", "admin-kubeconfig-signer").trusted_in(&["client-ca"]);
const BOOTSTRAP: Authority = authority(
    "kas-bootstrap-container-signer",
    "kas-bootstrap-container-signer",
)
.trusted_in(&["client-ca"]);

/// Authorities for clients of the API server, and for konnectivity.
pub(super) const AUTHORITIES: [Authority; 5] = [
    AGGREGATOR,
    KUBELET,
    ADMIN,
    BOOTSTRAP,
    authority(KONNECTIVITY, KONNECTIVITY)
        .unit("kubernetes")
        .trusted_in(&["konnectivity-ca-bundle"]),
];

/// All certificates.
pub(super) fn all(context: &Context<'_>) -> Vec<Leaf> {
    let mut all = clients();
    all.extend(api(context));
    all.extend(konnectivity(context));
    all.extend(webhooks(context));
    all
}

/// Certificates of the cloud webhooks in the API server's pods, and of their clients.
fn webhooks(context: &Context<'_>) -> Vec<Leaf> {
    let serving =
        |secret: &str| leaf(secret, ROOT, "127.0.0.1", "", Both).names(["127.0.0.1".to_owned()]);
    match context.platform() {
        PlatformType::Aws => vec![
            account(
                "aws-pod-identity-webhook-kubeconfig",
                "openshift-authentication",
                "aws-pod-identity-webhook",
            ),
            serving("aws-pod-identity-webhook-serving-cert"),
        ],
        PlatformType::Azure => vec![
            account(
                "azure-workload-identity-webhook-kubeconfig",
                "openshift-authentication",
                "azure-workload-identity-webhook",
            )
            .form(Form::LocalKubeconfig),
            serving("azure-workload-identity-webhook-serving-cert"),
        ],
        PlatformType::Gcp
        | PlatformType::IbmCloud
        | PlatformType::KubeVirt
        | PlatformType::Agent
        | PlatformType::OpenStack
        | PlatformType::PowerVs
        | PlatformType::None => Vec::new(),
    }
}

/// Client certificates for the guest.
fn clients() -> Vec<Leaf> {
    let account = |namespace: &str| format!("system:serviceaccounts:{namespace}");
    let nodes = "openshift-machine-config-operator";
    vec![
        leaf(
            "kas-aggregator-crt",
            AGGREGATOR.secret,
            "system:openshift-aggregator",
            "kubernetes",
            Client,
        ),
        leaf(
            "kas-kubelet-client-crt",
            KUBELET.secret,
            "system:kube-apiserver",
            "kubernetes",
            Client,
        ),
        leaf(
            "system-admin-client",
            ADMIN.secret,
            "system:admin",
            "system:masters",
            Client,
        ),
        leaf(
            "kas-bootstrap-container-client",
            BOOTSTRAP.secret,
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
        // Prometheus scrapes control plane metrics with it.
        leaf(
            "metrics-client",
            CSR,
            "system:serviceaccount:hypershift:prometheus",
            "kubernetes",
            Client,
        ),
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

/// Names of the API server: in the guest, external, and IP addresses.
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
