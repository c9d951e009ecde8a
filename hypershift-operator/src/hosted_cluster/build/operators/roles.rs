//! RBAC of the operators of one control plane: in its namespace, and little outside.

use api::names::CONSTRAINTS;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use serde_json::{Value, json};

use crate::desired::Desired;
use crate::facts::Facts;
use crate::names;
use crate::platform::Infrastructure;

const ALL: [&str; 1] = ["*"];
const READ: [&str; 3] = ["get", "list", "watch"];
const WRITE: [&str; 7] = [
    "get", "list", "watch", "create", "update", "patch", "delete",
];
const HYPERSHIFT: &str = "hypershift.openshift.io";
/// Kinds of a control plane that the control-plane-operator reads and writes. HostedClusters and NodePools are not among
/// them: the operator acts on those with its own permissions, and `override` on them bypasses the tenant policy.
const CONTROL_PLANE: [&str; 6] = [
    "hostedcontrolplanes",
    "controlplanecomponents",
    "certificatesigningrequestapprovals",
    "awsendpointservices",
    "azureprivatelinkservices",
    "gcpprivateserviceconnects",
];

/// Rules of the Cluster API controllers: the groups of their types, and what the provider contract requires.
pub(super) fn cluster_api(facts: &Facts) -> Vec<Value> {
    vec![
        rule(&facts.capi.groups(), &ALL, &ALL),
        json!({
            "apiGroups": [HYPERSHIFT],
            "resources": ["hostedcontrolplanes", "hostedcontrolplanes/status"],
            "verbs": ["get", "list", "watch", "delete", "patch", "update"],
        }),
        // Owner references are set on Secrets with kubeconfigs and user data.
        json!({
            "apiGroups": [""],
            "resources": ["secrets", "configmaps"],
            "verbs": ["get", "list", "watch", "patch", "update"],
        }),
        events(),
        leases(),
        // The infrastructure object, if its provider has a group of its own.
        json!({
            "apiGroups": ["capi-provider.agent-install.openshift.io"],
            "resources": ALL,
            "verbs": ALL,
        }),
    ]
}

/// Rules of the platform's controllers.
pub(super) fn provider(facts: &Facts, platform: &dyn Infrastructure) -> Vec<Value> {
    let mut rules = vec![
        rule(&facts.capi.groups(), &ALL, &ALL),
        json!({ "apiGroups": [HYPERSHIFT], "resources": ALL, "verbs": READ }),
        json!({ "apiGroups": [""], "resources": ["secrets", "configmaps"], "verbs": ALL }),
        events(),
        leases(),
    ];
    rules.extend(platform.rules());
    rules
}

/// Rules of the control-plane-operator: the namespace is its own.
///
/// It creates the Roles of components, among them some with rules on Cluster API that it does not hold itself, so it has
/// `escalate` and `bind` on Roles. What they may grant is limited by the admission policy for control planes, which
/// `hypershift install` creates.
///
/// With `mounts_certificates` it writes which certificates the CSI driver reads from a key vault, and with `delegates_zones`
/// which zones of DNS names are delegated to the cluster.
pub(super) fn control_plane_operator(
    mounts_certificates: bool,
    delegates_zones: bool,
) -> Vec<Value> {
    let of_classes: &[&str] = if mounts_certificates { &WRITE } else { &READ };
    let all = |group: &str, resources: &[&str]| json!({ "apiGroups": [group], "resources": resources, "verbs": ALL });
    let mut rules = vec![
        control_plane_kinds(),
        all("certificates.hypershift.openshift.io", &ALL),
        all(
            "",
            &[
                "configmaps",
                "endpoints",
                "events",
                "persistentvolumeclaims",
                "pods",
                "pods/log",
                "secrets",
                "serviceaccounts",
                "services",
            ],
        ),
        all("apps", &["deployments", "replicasets", "statefulsets"]),
        all("batch", &["cronjobs", "jobs"]),
        all("coordination.k8s.io", &["leases"]),
        all("discovery.k8s.io", &["endpointslices"]),
        all("events.k8s.io", &["events"]),
        all(
            "monitoring.coreos.com",
            &["podmonitors", "prometheusrules", "servicemonitors"],
        ),
        all("policy", &["poddisruptionbudgets"]),
        all("rbac.authorization.k8s.io", &["rolebindings"]),
        json!({
            "apiGroups": ["rbac.authorization.k8s.io"],
            "resources": ["roles"],
            "verbs": ["get", "list", "watch", "create", "update", "patch", "delete", "escalate", "bind"],
        }),
        all(
            "route.openshift.io",
            &["routes", "routes/custom-host", "routes/status"],
        ),
        all("image.openshift.io", &["imagestreams"]),
        // It watches all kinds of its components. To write one is to choose the certificates that a CSI driver reads, so only
        // clusters of a managed service may.
        json!({
            "apiGroups": ["secrets-store.csi.x-k8s.io"],
            "resources": ["secretproviderclasses"],
            "verbs": of_classes,
        }),
        json!({
            "apiGroups": ["security.openshift.io"],
            "resources": ["securitycontextconstraints"],
            "resourceNames": CONSTRAINTS,
            "verbs": ["use"],
        }),
    ];
    if delegates_zones {
        rules.push(json!({
            "apiGroups": ["externaldns.k8s.io"],
            "resources": ["dnsendpoints"],
            "verbs": WRITE,
        }));
    }
    rules
}

/// Verbs are named, too: the author of a cluster chooses the image that has these rights.
fn control_plane_kinds() -> Value {
    let resources = CONTROL_PLANE
        .iter()
        .flat_map(|kind| ["", "/status", "/finalizers"].map(|part| format!("{kind}{part}")));
    json!({
        "apiGroups": [HYPERSHIFT],
        "resources": resources.collect::<Vec<_>>(),
        "verbs": ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"],
    })
}

/// Rules of the program that has Karpenter make nodes: what it writes of the control plane, and the Deployment of Karpenter,
/// which has no rights on the management cluster.
pub(super) fn karpenter_operator(facts: &Facts) -> Vec<Value> {
    vec![
        json!({
            "apiGroups": [HYPERSHIFT],
            "resources": ["hostedcontrolplanes"],
            "verbs": ["get", "list", "watch", "patch"],
        }),
        json!({
            "apiGroups": [HYPERSHIFT],
            "resources": ["hostedcontrolplanes/status", "controlplanecomponents/status"],
            "verbs": ["patch"],
        }),
        // A Deployment that names its owner blocks the deletion of the owner.
        json!({
            "apiGroups": [HYPERSHIFT],
            "resources": ["hostedcontrolplanes/finalizers"],
            "verbs": ["update"],
        }),
        json!({
            "apiGroups": [HYPERSHIFT],
            "resources": ["controlplanecomponents"],
            "verbs": WRITE,
        }),
        json!({
            "apiGroups": [""],
            "resources": ["configmaps", "secrets", "serviceaccounts"],
            "verbs": WRITE,
        }),
        json!({ "apiGroups": ["apps"], "resources": ["deployments"], "verbs": WRITE }),
        json!({
            "apiGroups": ["monitoring.coreos.com"],
            "resources": ["podmonitors"],
            "verbs": WRITE,
        }),
        // It says which HostedCluster the namespace is of.
        json!({
            "apiGroups": [""],
            "resources": ["namespaces"],
            "resourceNames": [facts.namespace],
            "verbs": ["get"],
        }),
        // Karpenter deletes its machines when this one is deleted.
        json!({
            "apiGroups": [facts.capi.cluster().group],
            "resources": ["clusters"],
            "verbs": READ,
        }),
        events(),
        leases(),
    ]
}

/// What managers read cluster-wide: the served versions of each kind.
pub(super) fn cluster_wide(facts: &Facts) -> Vec<Desired> {
    let rules = json!({ "rules": [{
        "apiGroups": ["apiextensions.k8s.io"],
        "resources": ["customresourcedefinitions"],
        "verbs": READ,
    }]});
    let subject = |name: &str| json!({ "kind": "ServiceAccount", "name": name, "namespace": facts.namespace });
    let binding = json!({
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": names::CRD_READER },
        "subjects": [subject(names::CLUSTER_API), subject(names::CAPI_PROVIDER)],
    });
    let name = names::crd_reader_binding(&facts.namespace);
    vec![
        Desired::new::<ClusterRole>("", names::CRD_READER, rules),
        Desired::new::<ClusterRoleBinding>("", &name, binding),
    ]
}

/// What the PKI operator may do outside of its namespace: approve and sign for the two signers of its hosted cluster.
pub(super) fn pki_operator(facts: &Facts) -> Vec<Desired> {
    let signers = ["customer-break-glass", "sre-break-glass"];
    let signers = signers.map(|class| format!("{HYPERSHIFT}/{}.{class}", facts.namespace));
    let binding = |role: &str| {
        json!({
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role },
            "subjects": [{
                "kind": "ServiceAccount",
                "name": names::PKI_OPERATOR,
                "namespace": facts.namespace,
            }],
        })
    };
    let requests = binding(names::PKI_OPERATOR_ROLE);
    let name = names::pki_operator_binding(&facts.namespace);
    let mut objects = vec![Desired::new::<ClusterRoleBinding>("", &name, requests)];
    for (name, verb) in names::signer_roles(&facts.namespace)
        .iter()
        .zip(["approve", "sign"])
    {
        let rules = json!({ "rules": [{
            "apiGroups": ["certificates.k8s.io"],
            "resources": ["signers"],
            "resourceNames": signers,
            "verbs": [verb],
        }]});
        objects.push(Desired::new::<ClusterRole>("", name, rules));
        objects.push(Desired::new::<ClusterRoleBinding>("", name, binding(name)));
    }
    let labelled = |desired: Desired| desired.labelled_with_owner(&facts.id);
    objects.into_iter().map(labelled).collect()
}

fn rule(groups: &[String], resources: &[&str], verbs: &[&str]) -> Value {
    json!({ "apiGroups": groups, "resources": resources, "verbs": verbs })
}

fn events() -> Value {
    json!({ "apiGroups": ["", "events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch", "update"] })
}

fn leases() -> Value {
    json!({ "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ALL })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check T16: to write a class is to choose what is read as the identity of the operator.
    #[test]
    fn classes_of_certificates_are_written_for_managed_identities_only() {
        for (mounts_certificates, expected) in [(true, &WRITE[..]), (false, &READ[..])] {
            let rules = control_plane_operator(mounts_certificates, false).into_iter();
            let mut rules = rules.filter(|it| it["resources"][0] == "secretproviderclasses");
            assert_eq!(rules.next().unwrap()["verbs"], json!(expected));
            assert_eq!(rules.next(), None);
        }
    }

    /// T05: a rule without names would let pods run under `privileged`.
    #[test]
    fn constraints_are_granted_by_name() {
        let rules = control_plane_operator(true, true);
        let mut seen = 0;
        for rule in rules {
            if rule["apiGroups"][0] == "security.openshift.io" {
                assert_eq!(rule["verbs"], json!(["use"]), "{rule}");
                assert_eq!(rule["resourceNames"], json!(CONSTRAINTS), "{rule}");
                seen += 1;
            }
        }
        assert_eq!(seen, 1);
    }
}
