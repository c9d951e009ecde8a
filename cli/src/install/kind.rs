//! The kinds of object that an installation consists of, in the order in which they are made.

use serde_json::Value;

/// A kind. The order of variants is the order of creation; removal goes the other way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    Crd,
    Namespace,
    PriorityClass,
    ServiceAccount,
    Secret,
    ConfigMap,
    ClusterRole,
    ClusterRoleBinding,
    Role,
    RoleBinding,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
    NetworkPolicy,
    PodDisruptionBudget,
    Service,
    ServiceMonitor,
    PodMonitor,
    PrometheusRule,
    Deployment,
}

/// Where the API server serves a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Resource {
    /// Empty for the core group.
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) plural: &'static str,
    pub(crate) scope: Scope,
}

/// Whether objects live in namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Cluster,
    Namespace,
}

/// What is made together. The next stage begins once this one is done, and its CRDs are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// CRDs: what operators watch has to be there before they start.
    Definitions,
    /// Namespace, permissions, configuration.
    Ground,
    /// What runs.
    Workloads,
}

// === impl Kind ===

impl Kind {
    pub(crate) const ALL: [Self; 19] = [
        Self::Crd,
        Self::Namespace,
        Self::PriorityClass,
        Self::ServiceAccount,
        Self::Secret,
        Self::ConfigMap,
        Self::ClusterRole,
        Self::ClusterRoleBinding,
        Self::Role,
        Self::RoleBinding,
        Self::ValidatingAdmissionPolicy,
        Self::ValidatingAdmissionPolicyBinding,
        Self::NetworkPolicy,
        Self::PodDisruptionBudget,
        Self::Service,
        Self::ServiceMonitor,
        Self::PodMonitor,
        Self::PrometheusRule,
        Self::Deployment,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Crd => "CustomResourceDefinition",
            Self::Namespace => "Namespace",
            Self::PriorityClass => "PriorityClass",
            Self::ServiceAccount => "ServiceAccount",
            Self::Secret => "Secret",
            Self::ConfigMap => "ConfigMap",
            Self::ClusterRole => "ClusterRole",
            Self::ClusterRoleBinding => "ClusterRoleBinding",
            Self::Role => "Role",
            Self::RoleBinding => "RoleBinding",
            Self::ValidatingAdmissionPolicy => "ValidatingAdmissionPolicy",
            Self::ValidatingAdmissionPolicyBinding => "ValidatingAdmissionPolicyBinding",
            Self::NetworkPolicy => "NetworkPolicy",
            Self::PodDisruptionBudget => "PodDisruptionBudget",
            Self::Service => "Service",
            Self::ServiceMonitor => "ServiceMonitor",
            Self::PodMonitor => "PodMonitor",
            Self::PrometheusRule => "PrometheusRule",
            Self::Deployment => "Deployment",
        }
    }

    pub(crate) fn resource(self) -> Resource {
        let (group, version, plural) = match self {
            Self::Crd => ("apiextensions.k8s.io", "v1", "customresourcedefinitions"),
            Self::Namespace => ("", "v1", "namespaces"),
            Self::PriorityClass => ("scheduling.k8s.io", "v1", "priorityclasses"),
            Self::ServiceAccount => ("", "v1", "serviceaccounts"),
            Self::Secret => ("", "v1", "secrets"),
            Self::ConfigMap => ("", "v1", "configmaps"),
            Self::ClusterRole => (RBAC, "v1", "clusterroles"),
            Self::ClusterRoleBinding => (RBAC, "v1", "clusterrolebindings"),
            Self::Role => (RBAC, "v1", "roles"),
            Self::RoleBinding => (RBAC, "v1", "rolebindings"),
            Self::ValidatingAdmissionPolicy => (ADMISSION, "v1", "validatingadmissionpolicies"),
            Self::ValidatingAdmissionPolicyBinding => {
                (ADMISSION, "v1", "validatingadmissionpolicybindings")
            }
            Self::NetworkPolicy => ("networking.k8s.io", "v1", "networkpolicies"),
            Self::PodDisruptionBudget => ("policy", "v1", "poddisruptionbudgets"),
            Self::Service => ("", "v1", "services"),
            Self::ServiceMonitor => (MONITORING, "v1", "servicemonitors"),
            Self::PodMonitor => (MONITORING, "v1", "podmonitors"),
            Self::PrometheusRule => (MONITORING, "v1", "prometheusrules"),
            Self::Deployment => ("apps", "v1", "deployments"),
        };
        Resource {
            group,
            version,
            plural,
            scope: self.scope(),
        }
    }

    fn scope(self) -> Scope {
        match self {
            Self::Crd
            | Self::Namespace
            | Self::PriorityClass
            | Self::ClusterRole
            | Self::ClusterRoleBinding
            | Self::ValidatingAdmissionPolicy
            | Self::ValidatingAdmissionPolicyBinding => Scope::Cluster,
            Self::ServiceAccount
            | Self::Secret
            | Self::ConfigMap
            | Self::Role
            | Self::RoleBinding
            | Self::NetworkPolicy
            | Self::PodDisruptionBudget
            | Self::Service
            | Self::ServiceMonitor
            | Self::PodMonitor
            | Self::PrometheusRule
            | Self::Deployment => Scope::Namespace,
        }
    }

    pub(crate) fn stage(self) -> Stage {
        match self {
            Self::Crd => Stage::Definitions,
            Self::Namespace
            | Self::PriorityClass
            | Self::ServiceAccount
            | Self::Secret
            | Self::ConfigMap
            | Self::ClusterRole
            | Self::ClusterRoleBinding
            | Self::Role
            | Self::RoleBinding
            | Self::ValidatingAdmissionPolicy
            | Self::ValidatingAdmissionPolicyBinding
            | Self::NetworkPolicy
            | Self::PodDisruptionBudget
            | Self::Service
            | Self::ServiceMonitor
            | Self::PodMonitor
            | Self::PrometheusRule => Stage::Ground,
            Self::Deployment => Stage::Workloads,
        }
    }

    /// Kinds of operators that a cluster may lack.
    pub(crate) fn is_optional(self) -> bool {
        matches!(
            self,
            Self::ServiceMonitor | Self::PodMonitor | Self::PrometheusRule
        )
    }
}

const ADMISSION: &str = "admissionregistration.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";
const MONITORING: &str = "monitoring.coreos.com";

// === impl Resource ===

impl Resource {
    /// `group/version`, or the version alone in the core group.
    pub(crate) fn api_version(self) -> String {
        if self.group.is_empty() {
            return self.version.to_owned();
        }
        format!("{}/{}", self.group, self.version)
    }

    /// `plural.group`, as CRDs and rules of RBAC are named.
    pub(crate) fn qualified(self) -> String {
        if self.group.is_empty() {
            return self.plural.to_owned();
        }
        format!("{}.{}", self.plural, self.group)
    }

    /// The path of a collection.
    pub(crate) fn path(self, namespace: Option<&str>) -> String {
        let root = if self.group.is_empty() {
            "/api"
        } else {
            "/apis"
        };
        let base = format!("{root}/{}", self.api_version());
        match namespace {
            Some(namespace) => format!("{base}/namespaces/{namespace}/{}", self.plural),
            None => format!("{base}/{}", self.plural),
        }
    }
}

/// A string at a JSON pointer, empty when there is none.
pub(crate) fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_listed_in_their_order_of_creation() {
        assert!(Kind::ALL.is_sorted());
        assert!(Kind::ALL.map(Kind::stage).is_sorted());
    }

    #[test]
    fn paths_are_those_of_the_api_server() {
        let deployments = Kind::Deployment.resource();
        assert_eq!(
            deployments.path(Some("hypershift")),
            "/apis/apps/v1/namespaces/hypershift/deployments"
        );
        let namespaces = Kind::Namespace.resource();
        assert_eq!(namespaces.path(None), "/api/v1/namespaces");
    }
}
