//! The policy for control planes: which permissions they may grant in their namespaces.
//!
//! The control-plane-operator has `escalate` and `bind` on Roles, and the author of a cluster chooses its image. Without
//! limits it could grant itself writes of the Namespace, which carries the level of pod security, of the network policies
//! around it, or of an object that another operator of the management cluster acts on with its own permissions.
//!
//! The policy evaluates writes by service accounts of the namespace. They cannot pass their permissions on to other users:
//! a `RoleBinding` of theirs has no subject outside of the namespace. Only added rules and subjects count, so what exists
//! stays editable.

use api::group::{self, CapiTypes};
use api::names::{CONSTRAINTS, HOSTED_CONTROL_PLANE};
use serde_json::{Value, json};

/// API groups that control planes may grant writes in. Those with conditions are in [`allows`].
///
/// Another group may belong to an operator of the management cluster, which acts with more permissions than a namespace
/// has: an object of an operator's catalog or of a secret store reaches the whole cluster.
const GROUPS: [&str; 16] = [
    "apps",
    "autoscaling",
    "batch",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "image.openshift.io",
    "route.openshift.io",
    "certificates.hypershift.openshift.io",
    "capi-provider.agent-install.openshift.io",
    // Where a pod cannot be privileged, a virtual machine does not start.
    "kubevirt.io",
    "subresources.kubevirt.io",
    "cdi.kubevirt.io",
    "snapshot.storage.k8s.io",
];

/// Service accounts outside that read metrics, as bindings of the storage operators of OpenShift name them.
const READERS_OF_METRICS: [[&str; 2]; 2] = [
    ["openshift-monitoring", "prometheus-k8s"],
    [
        "openshift-user-workload-monitoring",
        "prometheus-user-workload",
    ],
];

/// Name of the policy and its binding.
pub(super) fn name(namespace: &str) -> String {
    format!("{namespace}-control-plane-policy")
}

/// Spec of the policy.
pub(super) fn spec() -> Value {
    json!({
        "failurePolicy": "Fail",
        "matchConstraints": {
            "namespaceSelector": {
                "matchExpressions": [{ "key": HOSTED_CONTROL_PLANE, "operator": "Exists" }],
            },
            "resourceRules": [{
                "apiGroups": ["rbac.authorization.k8s.io"],
                "apiVersions": ["*"],
                "operations": ["CREATE", "UPDATE"],
                "resources": ["roles", "rolebindings"],
            }],
        },
        "matchConditions": [{
            "name": "by-the-control-plane",
            "expression": format!("request.userInfo.username.startsWith({OWN_USERS})"),
        }],
        "variables": variables(),
        "validations": [rules(), cluster_roles(), subjects()],
    })
}

/// The beginning of the names of the namespace's service accounts as users.
const OWN_USERS: &str = "'system:serviceaccount:' + request.namespace + ':'";

fn variables() -> Value {
    let variable =
        |name: &str, expression: String| json!({ "name": name, "expression": expression });
    json!([
        variable("rules", list("object", "rules")),
        variable(
            "oldRules",
            format!("oldObject == null ? [] : {}", list("oldObject", "rules"))
        ),
        variable(
            "forbiddenRules",
            format!(
                "variables.rules.filter(rule, !(rule in variables.oldRules) && \
                 rule.verbs.exists(verb, !(verb in ['get', 'list', 'watch'])) && \
                 !rule.?apiGroups.orValue([]).all(group, {}))",
                allows()
            ),
        ),
        variable("subjects", list("object", "subjects")),
        variable(
            "oldSubjects",
            format!("oldObject == null ? [] : {}", list("oldObject", "subjects")),
        ),
        variable(
            "newSubjects",
            "variables.subjects.filter(subject, !(subject in variables.oldSubjects))".to_owned(),
        ),
        variable(
            "foreignSubjects",
            format!(
                "variables.newSubjects.filter(subject, !({}))",
                own_subject()
            ),
        ),
    ])
}

/// A list that may be absent or null.
fn list(object: &str, field: &str) -> String {
    format!("({object}.?{field}.orValue(null) == null ? [] : {object}.{field})")
}

/// Whether a rule may grant writes of its resources in `group`.
fn allows() -> String {
    let capi = [CapiTypes::Standard, CapiTypes::Private]
        .into_iter()
        .flat_map(group::served);
    let groups = quoted(GROUPS.into_iter().map(str::to_owned).chain(capi));
    let constraints = quoted(CONSTRAINTS.into_iter().map(str::to_owned));
    let resources = "rule.?resources.orValue([])";
    let kind = "resource.split('/')[0]";
    format!(
        "group == '' ? !{resources}.exists(resource, {kind} in ['*', 'namespaces', 'resourcequotas', 'limitranges']) : \
         group == 'hypershift.openshift.io' ? \
         !{resources}.exists(resource, {kind} in ['*', 'hostedclusters', 'nodepools']) : \
         group == 'networking.k8s.io' ? {resources}.all(resource, {kind} == 'ingresses') : \
         group == 'security.openshift.io' ? rule.?resourceNames.orValue([]).size() > 0 && \
         rule.resourceNames.all(name, name in {constraints}) : \
         group in ['monitoring.coreos.com', 'monitoring.rhobs'] ? \
         {resources}.all(resource, resource in ['podmonitors', 'prometheusrules', 'servicemonitors']) : \
         group in {groups}"
    )
}

/// Whether `subject` is in the namespace, or reads metrics.
fn own_subject() -> String {
    let readers = READERS_OF_METRICS.map(|[namespace, name]| {
        format!("subject.name == '{name}' && subject.?namespace.orValue('') == '{namespace}'")
    });
    format!(
        "subject.kind == 'ServiceAccount' && (subject.?namespace.orValue('') == request.namespace || {}) || \
         subject.kind == 'User' && subject.name.startsWith({OWN_USERS}) || \
         subject.kind == 'Group' && subject.name == 'system:serviceaccounts:' + request.namespace",
        readers.join(" || ")
    )
}

fn rules() -> Value {
    validation(
        "variables.forbiddenRules.size() == 0",
        "'the rule with the verbs ' + variables.forbiddenRules[0].verbs.join(', ') + ' on ' + \
         variables.forbiddenRules[0].?resources.orValue([]).join(', ') + ' of the API groups \"' + \
         variables.forbiddenRules[0].?apiGroups.orValue([]).join('\", \"') + '\" reaches beyond a control plane'",
    )
}

/// What they grant is not limited by this policy.
fn cluster_roles() -> Value {
    validation(
        "variables.newSubjects.size() == 0 || object.roleRef.kind == 'Role'",
        "'roleRef is ClusterRole ' + object.roleRef.name + ', and control planes may bind Roles only'",
    )
}

fn subjects() -> Value {
    validation(
        "variables.foreignSubjects.size() == 0",
        "'subject ' + variables.foreignSubjects[0].kind + ' ' + \
         variables.foreignSubjects[0].?namespace.orValue('') + ' ' + variables.foreignSubjects[0].name + \
         ' is outside of namespace ' + request.namespace",
    )
}

fn validation(expression: &str, message: &str) -> Value {
    json!({
        "expression": expression,
        "messageExpression": format!(
            "{message} + ': only a management cluster administrator can grant this, see SECURITY.md'"
        ),
        "reason": "Forbidden",
    })
}

fn quoted(texts: impl Iterator<Item = String>) -> String {
    let texts: Vec<String> = texts.map(|text| format!("'{text}'")).collect();
    format!("[{}]", texts.join(", "))
}
