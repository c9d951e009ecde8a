//! Status of operators that run in the management cluster, or not at all. The cluster version operator waits for them.

use serde_json::{Value, json};

use super::input::Input;
use super::object::{Desired, Object, with_spec};

const API: &str = "config.openshift.io/v1";
const CONDITIONS: [(&str, &str); 4] = [
    ("Available", "True"),
    ("Progressing", "False"),
    ("Degraded", "False"),
    ("Upgradeable", "True"),
];
const REASON: &str = "AsExpected";
/// Group of operators' configuration.
const OPERATOR: &str = "operator.openshift.io";
/// Operators: name, versions that they report, related objects.
const OPERATORS: [(&str, &[Version], &[Related]); 6] = [
    (
        "openshift-apiserver",
        &[
            Version::Release("openshift-apiserver"),
            Version::Release("operator"),
        ],
        &[
            (OPERATOR, "openshiftapiservers", "cluster"),
            ("", "namespaces", "openshift-config"),
            ("", "namespaces", "openshift-config-managed"),
            ("", "namespaces", "openshift-apiserver-operator"),
            ("", "namespaces", "openshift-apiserver"),
            (APIS, "apiservices", "v1.apps.openshift.io"),
            (APIS, "apiservices", "v1.authorization.openshift.io"),
            (APIS, "apiservices", "v1.build.openshift.io"),
            (APIS, "apiservices", "v1.image.openshift.io"),
            (APIS, "apiservices", "v1.oauth.openshift.io"),
            (APIS, "apiservices", "v1.project.openshift.io"),
            (APIS, "apiservices", "v1.quota.openshift.io"),
            (APIS, "apiservices", "v1.route.openshift.io"),
            (APIS, "apiservices", "v1.security.openshift.io"),
            (APIS, "apiservices", "v1.template.openshift.io"),
            (APIS, "apiservices", "v1.user.openshift.io"),
        ],
    ),
    (
        "openshift-controller-manager",
        &[
            Version::Release("openshift-controller-manager"),
            Version::Release("operator"),
        ],
        &[
            (OPERATOR, "openshiftcontrollermanagers", "cluster"),
            ("", "namespaces", "openshift-config"),
            ("", "namespaces", "openshift-config-managed"),
            ("", "namespaces", "openshift-controller-manager-operator"),
            ("", "namespaces", "openshift-controller-manager"),
        ],
    ),
    (
        "kube-apiserver",
        &[
            Version::Kubernetes("kube-apiserver"),
            Version::Release("operator"),
            Version::Release("raw-internal"),
        ],
        &[
            (OPERATOR, "kubeapiservers", "cluster"),
            ("apiextensions.k8s.io", "customresourcedefinitions", ""),
            ("", "namespaces", "openshift-config"),
            ("", "namespaces", "openshift-config-managed"),
            ("", "namespaces", "openshift-kube-apiserver-operator"),
            ("", "namespaces", "openshift-kube-apiserver"),
        ],
    ),
    (
        "kube-controller-manager",
        &[
            Version::Kubernetes("kube-controller-manager"),
            Version::Release("operator"),
            Version::Release("raw-internal"),
        ],
        &[
            ("", "namespaces", "openshift-config"),
            ("", "namespaces", "openshift-config-managed"),
            ("", "namespaces", "openshift-kube-controller-manager"),
            (
                "",
                "namespaces",
                "openshift-kube-controller-manager-operator",
            ),
            (OPERATOR, "kubecontrollermanagers", "cluster"),
        ],
    ),
    (
        "kube-scheduler",
        &[
            Version::Kubernetes("kube-scheduler"),
            Version::Release("operator"),
            Version::Release("raw-internal"),
        ],
        &[
            (OPERATOR, "kubeschedulers", "cluster"),
            ("", "namespaces", "openshift-config"),
            ("", "namespaces", "openshift-kube-scheduler"),
            ("", "namespaces", "openshift-kube-scheduler-operator"),
        ],
    ),
    (
        "operator-lifecycle-manager-packageserver",
        &[Version::Release("operator")],
        &[("", "namespaces", "openshift-operator-lifecycle-manager")],
    ),
];
const APIS: &str = "apiregistration.k8s.io";

/// Group, resource and name.
type Related = (&'static str, &'static str, &'static str);

/// The name of a version, and where its value is from.
enum Version {
    Release(&'static str),
    Kubernetes(&'static str),
}

pub(super) fn build(input: &Input<'_>, desired: &mut Desired) {
    for (name, versions, related) in OPERATORS {
        let versions = versions.iter().map(|version| match version {
            Version::Release(name) => json!({ "name": name, "version": input.release.version }),
            Version::Kubernetes(name) => {
                json!({ "name": name, "version": input.release.kubernetes() })
            }
        });
        let related = related.iter().map(
            |(group, resource, name)| json!({ "group": group, "resource": resource, "name": name }),
        );
        let mut operator = with_spec(API, "ClusterOperator", "", name, json!({}));
        operator["status"] = json!({
            "versions": versions.collect::<Vec<_>>(),
            "conditions": conditions(input, name),
            "relatedObjects": related.collect::<Vec<_>>(),
        });
        desired.add(Object::enforce(operator));
    }
}

fn conditions(input: &Input<'_>, operator: &str) -> Vec<Value> {
    let live = input.live(API, "ClusterOperator", "", operator);
    let live = live.and_then(|live| live["status"]["conditions"].as_array());
    let condition = |(type_, status): &(&str, &str)| {
        let found = live.and_then(|live| live.iter().find(|it| it["type"] == *type_));
        match found {
            // Its transition time and message stay.
            Some(found) if found["status"] == *status && found["reason"] == REASON => found.clone(),
            _ => json!({
                "type": type_,
                "status": status,
                "reason": REASON,
                "lastTransitionTime": seconds(input),
            }),
        }
    };
    CONDITIONS.iter().map(condition).collect()
}

/// Condition times have a resolution of one second.
fn seconds(input: &Input<'_>) -> String {
    let now = jiff::Timestamp::from_second(input.now.as_second());
    now.unwrap_or(input.now).to_string()
}
