//! The CA of kubelets, for clients in the cluster.

use serde_json::json;

use super::input::Input;
use super::object::{Desired, Object, config_map, secret};

pub(super) fn build(input: &Input<'_>, desired: &mut Desired) {
    let ca = &input.settings.signer_ca;
    let namespace = "openshift-kube-apiserver-operator";
    let signer = secret(
        namespace,
        "kube-control-plane-signer",
        &[("tls.crt", ca.as_bytes())],
    );
    desired.add(Object::enforce(signer).owned_by_component("kube-apiserver"));
    let bundle = config_map(
        "openshift-config-managed",
        "kubelet-serving-ca",
        json!({ "ca-bundle.crt": ca }),
    );
    desired.add(Object::enforce(bundle).owned_by_component("kube-controller-manager"));
}
