//! Whose a control plane namespace is: the guard for everything that reads, writes or deletes in one.
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
use k8s_openapi::api::core::v1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{ListParams, PostParams};
use kube::{Api, Client};
use support::reconcile::is_conflict;

use crate::error::Error;
use crate::hosted_cluster::names::{CLUSTER, MANAGED_BY, OPERATOR};

/// Namespaces in one page of a list.
const PAGE: u32 = 500;

/// The namespace of a HostedCluster's control plane, as far as it is that HostedCluster's.
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

/// The namespaces of the management cluster, by name, each with its owner if it names one.
#[derive(Debug, Default)]
pub(crate) struct Namespaces(BTreeMap<String, ObjectMeta>);

// === impl Namespace ===

impl Namespace {
    /// Reads whose the namespace of a HostedCluster's control plane is.
    pub async fn find(client: &Client, namespace: &str, name: &str) -> Result<Self, Error> {
        let control_plane = control_plane_namespace(namespace, name);
        let api: Api<v1::Namespace> = Api::all(client.clone());
        let found = api.get_metadata_opt(&control_plane).await;
        let found = found.map_err(|source| Error::Read {
            what: format!("Namespace {control_plane}"),
            source,
        })?;
        let metadata = found.map(|found| found.metadata);
        Ok(Self::evaluate(namespace, name, metadata.as_ref()))
    }

    /// Finds the namespace, and creates it if it does not exist. It is created in one request that fails where another
    /// HostedCluster has been quicker: nothing is taken from its owner.
    pub(crate) async fn claim(
        client: &Client,
        namespace: &str,
        name: &str,
    ) -> Result<ControlPlaneNamespace, Error> {
        let found = match Self::find(client, namespace, name).await? {
            Self::Absent(control_plane) => {
                create(client, namespace, name, &control_plane).await?;
                Self::find(client, namespace, name).await?
            }
            found => found,
        };
        let refusal = found.refusal(namespace, name);
        match found {
            Self::Owned(owned) => Ok(owned),
            Self::Absent(_) | Self::Unclaimed(_) | Self::Foreign { .. } => {
                Err(Error::ForeignNamespace {
                    object: format!("{namespace}/{name}"),
                    message: refusal.unwrap_or_else(|| "it was deleted".to_owned()),
                })
            }
        }
    }

    /// Whose it is, from the metadata of the namespace.
    fn evaluate(namespace: &str, name: &str, found: Option<&ObjectMeta>) -> Self {
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

    /// The proof that it is the HostedCluster's.
    pub fn owned(&self) -> Option<&ControlPlaneNamespace> {
        match self {
            Self::Owned(owned) => Some(owned),
            Self::Absent(_) | Self::Unclaimed(_) | Self::Foreign { .. } => None,
        }
    }

    /// Whether the objects in it say anything about the HostedCluster. Those of another one do not.
    pub fn is_foreign(&self) -> bool {
        matches!(self, Self::Foreign { .. })
    }

    /// Whether the HostedCluster is reconciled: its namespace is its own, or can be.
    pub fn is_usable(&self) -> bool {
        matches!(self, Self::Absent(_) | Self::Owned(_))
    }

    /// Why the HostedCluster cannot have its control plane there, and what to do.
    pub fn refusal(&self, namespace: &str, cluster: &str) -> Option<String> {
        match self {
            Self::Absent(_) | Self::Owned(_) => None,
            Self::Unclaimed(name) => Some(format!(
                "Control plane namespace {name} exists and has no owner. Delete it, rename this HostedCluster, or \
                 annotate it with {CLUSTER}={namespace}/{cluster}."
            )),
            Self::Foreign { name, owner } => Some(format!(
                "Control plane namespace {name} belongs to HostedCluster {owner}. Rename this HostedCluster."
            )),
        }
    }

    /// The ownership annotations of the HostedCluster, as far as they count: in a namespace that is not its own there is
    /// no migration of it, so a lock says nothing.
    pub fn protocol(&self, claimed: Protocol) -> Protocol {
        if self.is_usable() {
            return claimed;
        }
        Protocol {
            in_progress: false,
            ..claimed
        }
    }

    /// Whether an object in the namespace is the HostedCluster's. One that names an owner is that one's; one that names
    /// none belongs to whom the namespace belongs to.
    pub(crate) fn has(&self, cluster: &str, object: &ObjectMeta) -> bool {
        owner(object).map_or(self.owned().is_some(), |owner| owner == cluster)
    }
}

// === impl ControlPlaneNamespace ===

impl ControlPlaneNamespace {
    /// Whether an object in it is its owner's: it names no other.
    pub(crate) fn has(&self, object: &ObjectMeta) -> bool {
        owner(object).is_none_or(|owner| owner == self.cluster)
    }

    /// The namespace object as it was found, for a deletion of that one and no other.
    pub(crate) fn metadata(&self) -> ObjectMeta {
        ObjectMeta {
            name: Some(self.name.clone()),
            uid: self.uid.clone(),
            ..ObjectMeta::default()
        }
    }

    /// A namespace that a test says is a HostedCluster's.
    #[cfg(test)]
    pub(crate) fn for_tests(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            cluster: "clusters/one".to_owned(),
            uid: Some("ns".to_owned()),
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
    /// Reads all of them.
    pub(crate) async fn list(client: &Client) -> Result<Self, Error> {
        let api: Api<v1::Namespace> = Api::all(client.clone());
        let mut params = ListParams::default().limit(PAGE);
        let mut all = BTreeMap::new();
        loop {
            let list = api.list_metadata(&params).await;
            let list = list.map_err(Error::list("Namespaces"))?;
            let items = list.items.into_iter();
            all.extend(items.filter_map(|one| Some((one.metadata.name.clone()?, one.metadata))));
            match list.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(Self(all)),
            }
        }
    }

    /// Whose the namespace of a HostedCluster's control plane is.
    pub(crate) fn of(&self, namespace: &str, name: &str) -> Namespace {
        let found = self.0.get(&control_plane_namespace(namespace, name));
        Namespace::evaluate(namespace, name, found)
    }
}

/// The HostedCluster that an object names as its owner.
pub(crate) fn owner(metadata: &ObjectMeta) -> Option<&str> {
    let annotations = metadata.annotations.as_ref()?;
    annotations.get(CLUSTER).map(String::as_str)
}

/// Creates the namespace with its owner. One that exists meanwhile is left as it is.
async fn create(
    client: &Client,
    namespace: &str,
    name: &str,
    control_plane: &str,
) -> Result<(), Error> {
    let wanted = v1::Namespace {
        metadata: ObjectMeta {
            name: Some(control_plane.to_owned()),
            annotations: Some([(CLUSTER.to_owned(), format!("{namespace}/{name}"))].into()),
            labels: Some([(MANAGED_BY.to_owned(), OPERATOR.to_owned())].into()),
            ..ObjectMeta::default()
        },
        ..v1::Namespace::default()
    };
    let params = PostParams {
        field_manager: Some(crate::hosted_cluster::MANAGER_OF_ALL.to_owned()),
        ..PostParams::default()
    };
    let api: Api<v1::Namespace> = Api::all(client.clone());
    match api.create(&params, &wanted).await {
        Ok(_) => Ok(()),
        Err(error) if is_conflict(&error) => Ok(()),
        Err(source) => Err(Error::Write {
            object: format!("Namespace {control_plane}"),
            source,
        }),
    }
}

#[cfg(test)]
mod tests;
