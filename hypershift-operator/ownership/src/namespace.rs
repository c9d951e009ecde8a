//! Which HostedCluster a control plane namespace belongs to: the guard for all code that reads, writes or deletes in one.
//!
//! The name of a namespace proves nothing: HostedClusters `clusters/a-b` and `clusters-a/b` share `clusters-a-b`. Only
//! the annotation of the namespace decides. A [`ControlPlaneNamespace`] is the proof that it names the HostedCluster, and
//! only this module makes one: code that writes into a namespace takes it as an argument.
//!
//! Owners are compared by namespace and name, not by UID: a HostedCluster that is restored from a backup, or created
//! again after its namespace was kept, gets its control plane back. It is the same tenant, since tenants have
//! namespaces of their own.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;

use api::annotations::Protocol;
use api::names::control_plane_namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// Annotation: the HostedCluster that an object belongs to, as `<namespace>/<name>`.
pub const CLUSTER_ANNOTATION: &str = "hypershift.openshift.io/cluster";

/// The namespace of a HostedCluster's control plane, and whether it belongs to that HostedCluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Namespace {
    /// It does not exist.
    Absent(String),
    /// It belongs to this HostedCluster.
    Owned(ControlPlaneNamespace),
    /// It exists and names no owner.
    Unclaimed(String),
    /// It belongs to another HostedCluster.
    Foreign {
        /// Its name.
        name: String,
        /// Its owner, as `<namespace>/<name>`.
        owner: String,
    },
}

/// The proof that a namespace belongs to a HostedCluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlPlaneNamespace {
    name: String,
    cluster: String,
    uid: Option<String>,
}

/// The metadata of the management cluster's namespaces, by name.
#[derive(Debug, Default)]
pub struct Namespaces(BTreeMap<String, ObjectMeta>);

// === impl Namespace ===

impl Namespace {
    /// Evaluates the metadata of the control plane namespace of a HostedCluster; none if there is no such namespace.
    ///
    /// ```
    /// use ownership::Namespace;
    ///
    /// let namespace = Namespace::evaluate("clusters", "one", None);
    /// assert_eq!(namespace.name(), "clusters-one");
    /// assert!(namespace.is_usable() && namespace.owned().is_none());
    /// ```
    pub fn evaluate(namespace: &str, name: &str, found: Option<&ObjectMeta>) -> Self {
        let control_plane = control_plane_namespace(namespace, name);
        let Some(metadata) = found else {
            return Self::Absent(control_plane);
        };
        match owner(metadata) {
            None => Self::Unclaimed(control_plane),
            Some(owner) if owner == format!("{namespace}/{name}") => {
                Self::Owned(ControlPlaneNamespace {
                    name: control_plane,
                    cluster: owner.to_owned(),
                    uid: metadata.uid.clone(),
                })
            }
            Some(owner) => Self::Foreign {
                name: control_plane,
                owner: owner.to_owned(),
            },
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Absent(name) | Self::Unclaimed(name) | Self::Foreign { name, .. } => name,
            Self::Owned(owned) => owned,
        }
    }

    /// The proof that it belongs to the HostedCluster.
    pub fn owned(&self) -> Option<&ControlPlaneNamespace> {
        match self {
            Self::Owned(owned) => Some(owned),
            Self::Absent(_) | Self::Unclaimed(_) | Self::Foreign { .. } => None,
        }
    }

    /// Whether it belongs to another HostedCluster. The objects in it then count for nothing.
    pub fn is_foreign(&self) -> bool {
        matches!(self, Self::Foreign { .. })
    }

    /// Whether the HostedCluster is reconciled: its namespace belongs to it, or can be created.
    pub fn is_usable(&self) -> bool {
        matches!(self, Self::Absent(_) | Self::Owned(_))
    }

    /// Why the HostedCluster cannot have its control plane there, and what to do.
    pub fn refusal(&self, namespace: &str, cluster: &str) -> Option<String> {
        match self {
            Self::Absent(_) | Self::Owned(_) => None,
            Self::Unclaimed(name) => Some(format!(
                "Control plane namespace {name} exists and has no owner. Delete it, rename this HostedCluster, or \
                 annotate it with {CLUSTER_ANNOTATION}={namespace}/{cluster}."
            )),
            Self::Foreign { name, owner } => Some(format!(
                "Control plane namespace {name} belongs to HostedCluster {owner}. Rename this HostedCluster."
            )),
        }
    }

    /// The ownership annotations of the HostedCluster that count. In a namespace that does not belong to it there is no
    /// migration of it, so its lock does not count.
    pub fn protocol(&self, claimed: Protocol) -> Protocol {
        if self.is_usable() {
            return claimed;
        }
        Protocol {
            in_progress: false,
            ..claimed
        }
    }

    /// Whether an object in the namespace belongs to the HostedCluster: it names the cluster as its owner, or it names
    /// none and the namespace belongs to the cluster.
    pub fn has(&self, cluster: &str, object: &ObjectMeta) -> bool {
        owner(object).map_or(self.owned().is_some(), |owner| owner == cluster)
    }
}

// === impl ControlPlaneNamespace ===

impl ControlPlaneNamespace {
    /// Whether an object in it belongs to its owner: it names no other.
    pub fn has(&self, object: &ObjectMeta) -> bool {
        owner(object).is_none_or(|owner| owner == self.cluster)
    }

    /// Whether an object that is not in it belongs to its owner: it names it.
    pub fn has_outside(&self, object: &ObjectMeta) -> bool {
        owner(object) == Some(self.cluster.as_str())
    }

    /// The namespace object as it was found, for the deletion of that one and no other.
    pub fn metadata(&self) -> ObjectMeta {
        ObjectMeta {
            name: Some(self.name.clone()),
            uid: self.uid.clone(),
            ..ObjectMeta::default()
        }
    }
}

impl fmt::Display for ControlPlaneNamespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Deref for ControlPlaneNamespace {
    type Target = str;

    fn deref(&self) -> &str {
        &self.name
    }
}

// === impl Namespaces ===

impl Namespaces {
    /// The control plane namespace of a HostedCluster.
    pub fn of(&self, namespace: &str, name: &str) -> Namespace {
        let found = self.0.get(&control_plane_namespace(namespace, name));
        Namespace::evaluate(namespace, name, found)
    }
}

impl FromIterator<ObjectMeta> for Namespaces {
    fn from_iter<I: IntoIterator<Item = ObjectMeta>>(all: I) -> Self {
        let named = all.into_iter();
        Self(
            named
                .filter_map(|one| Some((one.name.clone()?, one)))
                .collect(),
        )
    }
}

/// The HostedCluster that an object names as its owner.
pub fn owner(metadata: &ObjectMeta) -> Option<&str> {
    let annotations = metadata.annotations.as_ref()?;
    annotations.get(CLUSTER_ANNOTATION).map(String::as_str)
}

#[cfg(test)]
mod tests;
