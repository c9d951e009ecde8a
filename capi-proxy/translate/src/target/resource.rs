//! The part of a path below a group version, read as the API server reads it.

use crate::place::{Action, Shape};

const APIEXTENSIONS: &str = "apiextensions.k8s.io";
const APIREGISTRATION: &str = "apiregistration.k8s.io";

/// Plurals that may be metric labels. Everything else is `other`, so that no path can grow the set.
const KNOWN: &[&str] = &[
    "apiservices",
    "awsclusters",
    "awsmachines",
    "awsmachinetemplates",
    "certificatesigningrequests",
    "clusterclasses",
    "clusterresourcesetbindings",
    "clusterresourcesets",
    "clusterrolebindings",
    "clusterroles",
    "clusters",
    "configmaps",
    "controllerrevisions",
    "cronjobs",
    "customresourcedefinitions",
    "daemonsets",
    "deployments",
    "devclusters",
    "devclustertemplates",
    "devmachinepools",
    "devmachines",
    "devmachinetemplates",
    "dockerclusters",
    "dockermachines",
    "dockermachinetemplates",
    "endpoints",
    "endpointslices",
    "events",
    "extensionconfigs",
    "flowschemas",
    "gcpclusters",
    "gcpmachines",
    "gcpmachinetemplates",
    "horizontalpodautoscalers",
    "ingresses",
    "ipaddressclaims",
    "ipaddresses",
    "jobs",
    "kubeadmconfigs",
    "kubeadmconfigtemplates",
    "kubeadmcontrolplanes",
    "kubeadmcontrolplanetemplates",
    "leases",
    "limitranges",
    "localsubjectaccessreviews",
    "machinedeployments",
    "machinedrainrules",
    "machinehealthchecks",
    "machinepools",
    "machines",
    "machinesets",
    "mutatingwebhookconfigurations",
    "namespaces",
    "networkpolicies",
    "nodes",
    "persistentvolumeclaims",
    "persistentvolumes",
    "poddisruptionbudgets",
    "pods",
    "podtemplates",
    "priorityclasses",
    "replicasets",
    "replicationcontrollers",
    "resourcequotas",
    "rolebindings",
    "roles",
    "secrets",
    "selfsubjectaccessreviews",
    "selfsubjectreviews",
    "selfsubjectrulesreviews",
    "serviceaccounts",
    "services",
    "statefulsets",
    "storageclasses",
    "subjectaccessreviews",
    "tokenreviews",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "validatingwebhookconfigurations",
];

/// One resource, perhaps one object of it, perhaps a subresource.
#[derive(Debug, Clone)]
pub(super) struct Resource {
    pub(super) group: String,
    pub(super) plural: String,
    pub(super) name: Option<String>,
    pub(super) subresource: Option<String>,
    /// The old form `/watch/...`.
    pub(super) watch_prefix: bool,
    /// The group is one of the table's, by either name.
    pub(super) in_table: bool,
}

// === impl Resource ===

impl Resource {
    /// Reads the segments behind the version.
    pub(super) fn parse(group: &str, parts: &[&str]) -> Self {
        let (watch_prefix, parts) = match parts {
            ["watch", rest @ ..] => (true, rest),
            _ => (false, parts),
        };
        let parts = match parts {
            // A namespace's own subresources; anything else behind a namespace is a resource in it.
            ["namespaces", _, "status" | "finalize", ..] | ["namespaces"] | ["namespaces", _] => {
                parts
            }
            ["namespaces", _, rest @ ..] => rest,
            _ => parts,
        };
        let at = |index: usize| parts.get(index).map(|part| (*part).to_owned());
        Self {
            group: group.to_owned(),
            plural: at(0).unwrap_or_default(),
            name: at(1),
            subresource: at(2),
            watch_prefix,
            in_table: false,
        }
    }

    pub(super) fn has_subresource(&self, among: &[&str]) -> bool {
        self.group.is_empty()
            && self
                .subresource
                .as_deref()
                .is_some_and(|found| among.contains(&found))
    }

    pub(super) fn shape(&self) -> Shape {
        match (self.group.as_str(), self.plural.as_str()) {
            (_, "clusters" | "clusterclasses") if self.in_table => Shape::Topology,
            ("", "secrets" | "configmaps") if self.subresource.is_none() => Shape::Data,
            ("", "resourcequotas") => Shape::Quota,
            (APIEXTENSIONS, "customresourcedefinitions") => Shape::Crd,
            (APIREGISTRATION, "apiservices") => Shape::ApiService,
            ("rbac.authorization.k8s.io", "roles" | "clusterroles") => Shape::Rbac,
            ("authorization.k8s.io", "selfsubjectrulesreviews") => Shape::RulesReview,
            ("authorization.k8s.io", _) => Shape::AccessReview,
            (
                "admissionregistration.k8s.io",
                "validatingwebhookconfigurations" | "mutatingwebhookconfigurations",
            ) => Shape::Webhooks,
            ("admissionregistration.k8s.io", _) => Shape::AdmissionPolicy,
            ("flowcontrol.apiserver.k8s.io", "flowschemas") => Shape::FlowSchema,
            ("storagemigration.k8s.io", _) => Shape::StorageMigration,
            _ => Shape::Plain,
        }
    }

    /// The field selectors that hold a group.
    pub(super) fn selector_places(&self) -> &'static [(&'static str, Action)] {
        match (self.group.as_str(), self.plural.as_str()) {
            (APIEXTENSIONS, "customresourcedefinitions") | (APIREGISTRATION, "apiservices") => {
                &[("metadata.name", Action::Qualified)]
            }
            ("", "events") => &[("involvedObject.apiVersion", Action::ApiVersion)],
            ("events.k8s.io", "events") => &[("regarding.apiVersion", Action::ApiVersion)],
            _ => &[],
        }
    }

    pub(super) fn label(&self) -> &'static str {
        KNOWN
            .binary_search(&self.plural.as_str())
            .map_or("other", |index| KNOWN[index])
    }
}

#[cfg(test)]
mod tests {
    use super::KNOWN;

    #[test]
    fn known_plurals_are_sorted() {
        assert!(KNOWN.is_sorted());
    }
}
