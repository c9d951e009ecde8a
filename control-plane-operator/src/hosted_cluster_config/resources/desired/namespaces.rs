//! Namespaces that OpenShift components expect, and that no operator in the cluster creates.

use super::input::Input;
use super::object::{Desired, Object, namespace};

const ENFORCE: &str = "pod-security.kubernetes.io/enforce";
const AUDIT: &str = "pod-security.kubernetes.io/audit";
const WARN: &str = "pod-security.kubernetes.io/warn";
/// Labels of namespaces with privileged pods.
pub(super) const PRIVILEGED: [(&str, &str); 3] = [
    (ENFORCE, "privileged"),
    (AUDIT, "privileged"),
    (WARN, "privileged"),
];
const MONITORED: (&str, &str) = ("openshift.io/cluster-monitoring", "true");

pub(super) fn build(input: &Input<'_>, desired: &mut Desired) {
    let mut add = |name, labels: &[_]| desired.add(Object::merge(namespace(name, labels)));
    add("openshift-apiserver", &[]);
    add("openshift-infra", &PRIVILEGED);
    add("openshift-cloud-controller-manager", &[]);
    add("openshift-controller-manager", &[]);
    add("openshift-kube-apiserver", &[MONITORED]);
    add("openshift-kube-controller-manager", &[]);
    add("openshift-kube-scheduler", &[]);
    add("openshift-etcd", &[]);
    if input.has_capability("Ingress") {
        let policies = ("network.openshift.io/policy-group", "ingress");
        add("openshift-ingress", &[policies, MONITORED]);
    }
    add("openshift-authentication", &[]);
    add("openshift-route-controller-manager", &[]);
}
