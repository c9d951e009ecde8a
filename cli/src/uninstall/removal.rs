//! What is removed, and what stays. Pure.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use crate::install::conversion;
use crate::install::kind::{Kind, text};
use crate::install::object::{FIELD_MANAGER, Object, is_ours, managers};

/// `ConfigMap`s that the cluster itself puts into every namespace, and the one that the operator writes.
const WITHOUT_OWNER: [&str; 3] = [
    "kube-root-ca.crt",
    "openshift-service-ca.crt",
    "supported-versions",
];
/// Managers that may have written to our namespace without owning it.
const BYSTANDERS: [&str; 3] = [
    FIELD_MANAGER,
    "kube-controller-manager",
    "cluster-policy-controller",
];

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// What carries the label of the installation.
    pub(super) objects: Vec<Object>,
    /// CRDs that have objects, by name.
    pub(super) in_use: BTreeSet<String>,
    /// Hosted clusters, by `namespace/name`.
    pub(super) hosted_clusters: Vec<String>,
    /// What else is in the operator's namespace.
    pub(super) others: Vec<String>,
}

/// What becomes of one object.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Decision {
    pub(super) object: Object,
    pub(super) action: Action,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    Remove,
    Keep {
        why: String,
        /// How it can be removed all the same.
        way: String,
    },
}

/// Decides about everything, in the order of removal: what runs first, CRDs last.
pub(super) fn decide(found: &Found) -> Vec<Decision> {
    let mut decisions: Vec<Decision> = found
        .objects
        .iter()
        .map(|object| Decision {
            object: object.clone(),
            action: found.action(object),
        })
        .collect();
    decisions.sort_by_key(|decision| Reverse(decision.object.id.kind));
    decisions
}

/// Whether an object in the operator's namespace is neither ours nor the cluster's.
pub(super) fn is_somebodys(object: &Value) -> bool {
    let name = text(object, "/metadata/name");
    let token = text(object, "/type") == "kubernetes.io/service-account-token"
        || text(object, "/type") == "kubernetes.io/dockercfg";
    let owned = object["metadata"]["ownerReferences"].is_array();
    !is_ours(object) && !token && !owned && !WITHOUT_OWNER.contains(&name)
}

/// What keeps an object that is being removed.
pub(super) fn holders(live: &Value) -> String {
    let finalizers = live["metadata"]["finalizers"].as_array();
    let names = finalizers.into_iter().flatten().filter_map(Value::as_str);
    // A namespace says what is left in it.
    let conditions = live["status"]["conditions"].as_array();
    let messages = conditions
        .into_iter()
        .flatten()
        .filter(|one| one["status"] == "True")
        .map(|one| text(one, "/message"))
        .filter(|message| !message.is_empty());
    let all: Vec<&str> = names.chain(messages).collect();
    if all.is_empty() {
        return "no finalizer or condition says why".to_owned();
    }
    all.join("; ")
}

// === impl Found ===

impl Found {
    fn action(&self, object: &Object) -> Action {
        let id = &object.id;
        if !is_ours(&object.body) {
            let by = managers(&object.body).collect::<Vec<_>>().join(", ");
            return keep(
                format!("it carries our label, and its fields were written by {by}"),
                remove_by_hand(object),
            );
        }
        match id.kind {
            Kind::Crd if self.in_use.contains(&id.name) => keep(
                "it has objects, which would be deleted with it".to_owned(),
                format!(
                    "remove its objects (kubectl get {} --all-namespaces), then uninstall again",
                    id.name
                ),
            ),
            Kind::PriorityClass if !self.hosted_clusters.is_empty() => keep(
                format!(
                    "pods of hosted clusters name it, for example those of {}",
                    self.a_hosted_cluster()
                ),
                "destroy the hosted clusters, then uninstall again".to_owned(),
            ),
            Kind::Namespace => self.namespace(object),
            _ if conversion::is_part(object) && self.converted().is_some() => keep(
                format!(
                    "objects of {} cannot be read in all versions without it",
                    self.converted().unwrap_or_default()
                ),
                "remove those objects, then uninstall again".to_owned(),
            ),
            Kind::Crd
            | Kind::PriorityClass
            | Kind::ServiceAccount
            | Kind::Secret
            | Kind::ConfigMap
            | Kind::ClusterRole
            | Kind::ClusterRoleBinding
            | Kind::Role
            | Kind::RoleBinding
            | Kind::ValidatingAdmissionPolicy
            | Kind::ValidatingAdmissionPolicyBinding
            | Kind::NetworkPolicy
            | Kind::PodDisruptionBudget
            | Kind::Service
            | Kind::ServiceMonitor
            | Kind::PodMonitor
            | Kind::PrometheusRule
            | Kind::Deployment => Action::Remove,
        }
    }

    /// A CRD that stays, and whose objects our webhook converts.
    fn converted(&self) -> Option<&str> {
        let mut stays = self.objects.iter().filter(|object| {
            object.id.kind == Kind::Crd
                && (self.in_use.contains(&object.id.name) || !is_ours(&object.body))
        });
        let crd = stays.find(|object| conversion::names_ours(&object.body))?;
        Some(&crd.id.name)
    }

    fn namespace(&self, object: &Object) -> Action {
        if let Some(crd) = self.converted() {
            return keep(
                format!("it holds the webhook that converts objects of {crd}"),
                "remove those objects, then uninstall again".to_owned(),
            );
        }
        if !self.hosted_clusters.is_empty() {
            return keep(
                format!(
                    "there are hosted clusters, for example {}",
                    self.a_hosted_cluster()
                ),
                "install again, destroy the hosted clusters, then uninstall".to_owned(),
            );
        }
        if let Some(other) = self.others.first() {
            return keep(
                format!(
                    "it holds {} objects of others, for example {other}",
                    self.others.len()
                ),
                remove_by_hand(object),
            );
        }
        let other = managers(&object.body).find(|name| !BYSTANDERS.contains(name));
        match other {
            Some(name) => keep(
                format!("{name} has written to it, too"),
                remove_by_hand(object),
            ),
            None => Action::Remove,
        }
    }

    fn a_hosted_cluster(&self) -> &str {
        self.hosted_clusters.first().map_or("none", String::as_str)
    }
}

fn keep(why: String, way: String) -> Action {
    Action::Keep { why, way }
}

fn remove_by_hand(object: &Object) -> String {
    let kind = object.id.kind.resource().qualified();
    let namespace = match &object.id.namespace {
        Some(namespace) => format!(" --namespace {namespace}"),
        None => String::new(),
    };
    format!("kubectl delete {kind} {}{namespace}", object.id.name)
}

// === impl Decision ===

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = &self.object.id;
        match &self.action {
            Action::Remove => write!(f, "{id}: remove"),
            Action::Keep { why, way } => write!(f, "{id}: keep: {why}; to remove it: {way}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::install::object::{MANAGED_BY, OURS};

    fn object(kind: Kind, name: &str, managers: &[&str]) -> Object {
        let managers: Vec<Value> = managers
            .iter()
            .map(|name| json!({"manager": name}))
            .collect();
        Object::live(
            kind,
            json!({"metadata": {"name": name, "labels": {MANAGED_BY: OURS}, "managedFields": managers}}),
        )
    }

    fn kept(found: &Found) -> Vec<(String, String)> {
        decide(found)
            .into_iter()
            .filter_map(|decision| match decision.action {
                Action::Remove => None,
                Action::Keep { why, .. } => Some((decision.object.id.name, why)),
            })
            .collect()
    }

    fn installed() -> Found {
        Found {
            objects: Kind::ALL
                .map(|kind| object(kind, kind.name(), &[FIELD_MANAGER]))
                .to_vec(),
            ..Found::default()
        }
    }

    #[test]
    fn without_anybodys_objects_nothing_is_kept() {
        let found = installed();
        assert_eq!(kept(&found), []);
        let order: Vec<_> = decide(&found)
            .iter()
            .map(|decision| decision.object.id.kind)
            .collect();
        assert_eq!(order.first(), Some(&Kind::Deployment));
        assert_eq!(order.last(), Some(&Kind::Crd));
    }

    #[test]
    fn with_hosted_clusters_all_that_they_need_is_kept() {
        let mut found = installed();
        found.hosted_clusters = vec!["clusters/one".to_owned()];
        found.in_use.insert(Kind::Crd.name().to_owned());
        let kept = kept(&found);
        let names: Vec<_> = kept.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            ["PriorityClass", "Namespace", "CustomResourceDefinition"]
        );
        assert!(kept[1].1.contains("clusters/one"), "{kept:?}");
    }

    /// Check C06.
    #[test]
    fn the_webhook_of_kept_objects_is_kept() {
        let parts = [
            (Kind::Deployment, "capi-conversion-webhook-shim"),
            (Kind::Service, "capi-conversion-webhook-shim"),
            (Kind::Secret, "capi-conversion-webhook-shim-serving"),
            (Kind::ConfigMap, "kube-apiserver-proxy"),
            (Kind::ClusterRole, "hypershift-capi-conversion-cluster"),
            (Kind::RoleBinding, "hypershift-capi-conversion"),
            (Kind::Namespace, "hypershift"),
        ];
        let others = [
            (Kind::Deployment, "operator"),
            (Kind::ClusterRole, "operator"),
        ];
        let mut crd = object(Kind::Crd, "clusters", &[FIELD_MANAGER]);
        crd.body["spec"]["conversion"] = json!({
            "strategy": "Webhook",
            "webhook": { "clientConfig": { "service": { "name": "capi-conversion-webhook-shim" } } },
        });
        let all = parts.iter().chain(&others);
        let mut found = Found {
            objects: all
                .map(|(kind, name)| object(*kind, name, &[FIELD_MANAGER]))
                .collect(),
            ..Found::default()
        };
        found.objects.push(crd);
        assert_eq!(kept(&found), [], "nothing is converted any more");
        found.in_use.insert("clusters".to_owned());
        let kept: BTreeSet<String> = kept(&found).into_iter().map(|(name, _)| name).collect();
        let expected = parts.iter().map(|(_, name)| *name).chain(["clusters"]);
        assert_eq!(kept, expected.map(str::to_owned).collect());
    }

    #[test]
    fn objects_with_other_managers_are_kept() {
        let mut found = Found {
            objects: vec![
                object(Kind::Service, "taken", &["kubectl"]),
                object(
                    Kind::Namespace,
                    "shared",
                    &[FIELD_MANAGER, "kubectl-create"],
                ),
            ],
            ..Found::default()
        };
        assert_eq!(kept(&found).len(), 2);
        found.objects = vec![object(
            Kind::Namespace,
            "ours",
            &[FIELD_MANAGER, "kube-controller-manager"],
        )];
        assert_eq!(kept(&found), []);
        found.others = vec!["Secret hypershift/mine".to_owned()];
        assert_eq!(kept(&found).len(), 1);
    }

    #[test]
    fn objects_of_the_cluster_are_nobodys() {
        let table = [
            (json!({"metadata": {"name": "kube-root-ca.crt"}}), false),
            (json!({"metadata": {"name": "supported-versions"}}), false),
            (
                json!({"metadata": {"name": "t"}, "type": "kubernetes.io/service-account-token"}),
                false,
            ),
            (
                json!({"metadata": {"name": "o", "ownerReferences": [{}]}}),
                false,
            ),
            (json!({"metadata": {"name": "mine"}}), true),
        ];
        for (object, expected) in table {
            assert_eq!(is_somebodys(&object), expected, "{object}");
        }
    }
}
