//! cluster-network-operator: runs the guest's network, with its control plane in the management cluster.

mod environment;
mod operands;
mod role;

use api::hypershift::v1beta1::networking::NetworkType;
use control_plane_component::{
    Component, Context, Konnectivity, Operands, Prober, Publication, Result, Workload, assets,
};
use k8s_openapi::api::core::v1::{Container, PodSpec};
use serde_json::{Value, json};

use super::cloud::azure;
use super::edit;

/// The component's name.
const NAME: &str = "cluster-network-operator";
/// The volume with the guest's kubeconfig.
const KUBECONFIG: &str = "hosted-etc-kube";
/// Where init containers mount it.
const KUBECONFIG_FILE: &str = "/etc/hosted-kubernetes/kubeconfig";
/// Containers that request tokens of its service account in the guest.
const MINTERS: [&str; 2] = ["client-token-minter", "init-client-token-minter"];
const REQUIRED: &[(&str, &str, &str)] = &[
    ("operator.openshift.io", "v1", "Network"),
    ("network.operator.openshift.io", "v1", "EgressRouter"),
    ("network.operator.openshift.io", "v1", "OperatorPKI"),
];

pub(super) fn component() -> Component {
    Component::new(
        NAME,
        assets!(
            "deployment.yaml",
            "role.yaml",
            "rolebinding.yaml",
            "secretproviderclass.yaml",
            "serviceaccount.yaml",
        ),
    )
    .with_certificates(operands::certificates)
    .operands(Operands::Named(operands::all))
    .published_by(OLDER_RELEASES)
    .management_api()
    .depends_on(&["openshift-apiserver"])
    .konnectivity(Konnectivity {
        kubeconfig_volume: Some(KUBECONFIG),
        https: None,
        socks5: Some(&["--disable-resolver=true"]),
    })
    .prober(Prober {
        kubeconfig_volume: Some(KUBECONFIG),
        required_apis: REQUIRED,
        infrastructure: true,
        cluster_role_binding: Some(NAME),
        ..Prober::default()
    })
    .manifest("role.yaml", role::adapt)
    .manifest("secretproviderclass.yaml", secret_provider_class)
    .manifest_if("secretproviderclass.yaml", azure::uses_managed_identities)
    .adapt(adapt)
}

/// What published the network's control plane in older releases: it is deleted.
const OLDER_RELEASES: Publication = Publication {
    services: &["ovnkube-master-external", "ovnkube-master-internal"],
    routes: &["ovnkube-sbdb"],
    ..Publication::NONE
};

fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    let pod = edit::pod(workload);
    let operator = edit::container(pod, NAME)?;
    environment::set(context, operator)?;
    for name in MINTERS {
        let minter = edit::container(pod, name)?;
        let audience = context.spec().issuer_url.clone();
        edit::args(minter, ["--token-audience".to_owned(), audience]);
    }
    if context.user_release.version.starts_with("4.12.") {
        remove_old_webhook(pod);
    }
    Ok(())
}

/// Removes the webhook of Multus in release 4.12: the operator of this release creates another one.
fn remove_old_webhook(pod: &mut PodSpec) {
    let container: Container = edit::from_json(json!({
        "name": "remove-old-multus-validating-webhook-configuration",
        "image": "cli",
        "command": ["/usr/bin/kubectl"],
        "args": [
            format!("--kubeconfig={KUBECONFIG_FILE}"), "delete", "--ignore-not-found=true",
            "validatingwebhookconfiguration", "multus.openshift.io",
        ],
        "resources": { "requests": { "cpu": "10m", "memory": "50Mi" } },
        "volumeMounts": [{ "name": KUBECONFIG, "mountPath": "/etc/hosted-kubernetes" }],
    }));
    pod.init_containers.get_or_insert_default().push(container);
}

fn secret_provider_class(context: &Context<'_>, class: &mut Value) -> Result<()> {
    let identity = &azure::managed_identities(context)?.network;
    class["spec"] = azure::secret_provider_class(context, identity)?;
    Ok(())
}

/// Whether the network is OVN-Kubernetes.
fn is_ovn(context: &Context<'_>) -> bool {
    let networking = context.networking();
    networking.is_none_or(|networking| networking.network_type == NetworkType::OvnKubernetes)
}
