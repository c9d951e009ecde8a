//! Which HostedCluster an object belongs to, and what the annotations of a HostedCluster say.

use std::collections::BTreeMap;
use std::fmt;

use api::annotations::Protocol;
use api::names::control_plane_namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ApiResource;

/// Namespace and name of a HostedCluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Id {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// The API resource of HostedClusters.
pub(crate) fn resource() -> ApiResource {
    ApiResource {
        group: "hypershift.openshift.io".to_owned(),
        version: "v1beta1".to_owned(),
        api_version: "hypershift.openshift.io/v1beta1".to_owned(),
        kind: "HostedCluster".to_owned(),
        plural: "hostedclusters".to_owned(),
    }
}

/// The ownership annotations.
pub(crate) fn protocol(metadata: &ObjectMeta) -> Protocol {
    Protocol::read(metadata.annotations.as_ref().unwrap_or(&BTreeMap::new()))
}

// === impl Id ===

impl Id {
    pub(crate) fn of(metadata: &ObjectMeta) -> Self {
        Self {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
        }
    }

    /// The namespace of its control plane, where its Cluster API objects are.
    pub(crate) fn control_plane_namespace(&self) -> String {
        control_plane_namespace(&self.namespace, &self.name)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
