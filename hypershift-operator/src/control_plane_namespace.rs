//! Claims control plane namespaces: creates one with its owner, and takes none from another HostedCluster. The crate
//! `ownership` decides which HostedCluster a namespace belongs to.

use k8s_openapi::api::core::v1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::{Api, Client};
pub(crate) use ownership::{ControlPlaneNamespace, Namespace, owner};
use ownership_reader::find_namespace;
use support::reconcile::is_conflict;

use crate::error::Error;
use crate::names::{CLUSTER, MANAGED_BY, OPERATOR};

/// Reads the control plane namespace of a HostedCluster.
pub(crate) async fn find(client: &Client, namespace: &str, name: &str) -> Result<Namespace, Error> {
    Ok(find_namespace(client, namespace, name).await?)
}

/// Finds the namespace, and creates it if it does not exist. It is created in one request, which fails if another
/// HostedCluster was quicker: a namespace is never taken from its owner.
pub(crate) async fn claim(
    client: &Client,
    namespace: &str,
    name: &str,
) -> Result<ControlPlaneNamespace, Error> {
    let found = match find(client, namespace, name).await? {
        Namespace::Absent(control_plane) => {
            create(client, namespace, name, &control_plane).await?;
            find(client, namespace, name).await?
        }
        found => found,
    };
    let refusal = found.refusal(namespace, name);
    match found {
        Namespace::Owned(owned) => Ok(owned),
        Namespace::Absent(_) | Namespace::Unclaimed(_) | Namespace::Foreign { .. } => {
            Err(Error::ForeignNamespace {
                object: format!("{namespace}/{name}"),
                message: refusal.unwrap_or_else(|| "it was deleted".to_owned()),
            })
        }
    }
}

/// Reads a namespace again before something is written there: it is still the one that was found, with the same owner.
pub(crate) async fn confirm(
    client: &Client,
    namespace: &str,
    name: &str,
    before: &ControlPlaneNamespace,
) -> Result<ControlPlaneNamespace, Error> {
    let found = find(client, namespace, name).await?;
    match &found {
        Namespace::Owned(owned) if owned == before => return Ok(owned.clone()),
        Namespace::Owned(_)
        | Namespace::Absent(_)
        | Namespace::Unclaimed(_)
        | Namespace::Foreign { .. } => {}
    }
    let refusal = found.refusal(namespace, name);
    Err(Error::ForeignNamespace {
        object: format!("{namespace}/{name}"),
        message: refusal.unwrap_or_else(|| "it was deleted".to_owned()),
    })
}

/// Creates the namespace with its owner. An existing one is not changed.
async fn create(
    client: &Client,
    namespace: &str,
    name: &str,
    control_plane: &str,
) -> Result<(), Error> {
    let desired = v1::Namespace {
        metadata: ObjectMeta {
            name: Some(control_plane.to_owned()),
            annotations: Some([(CLUSTER.to_owned(), format!("{namespace}/{name}"))].into()),
            labels: Some([(MANAGED_BY.to_owned(), OPERATOR.to_owned())].into()),
            ..ObjectMeta::default()
        },
        ..v1::Namespace::default()
    };
    let params = PostParams {
        field_manager: Some(crate::names::FIELD_MANAGER.to_owned()),
        ..PostParams::default()
    };
    let api: Api<v1::Namespace> = Api::all(client.clone());
    match api.create(&params, &desired).await {
        Ok(_) => Ok(()),
        Err(error) if is_conflict(&error) => Ok(()),
        Err(source) => Err(Error::Write {
            object: format!("Namespace {control_plane}"),
            source,
        }),
    }
}

/// The namespace `clusters-<cluster>`, which belongs to HostedCluster `clusters/<cluster>`.
#[cfg(test)]
pub(crate) fn for_tests(name: &str) -> ControlPlaneNamespace {
    let cluster = name.strip_prefix("clusters-").unwrap();
    let metadata = ObjectMeta {
        uid: Some("ns".to_owned()),
        annotations: Some([(CLUSTER.to_owned(), format!("clusters/{cluster}"))].into()),
        ..ObjectMeta::default()
    };
    let namespace = Namespace::evaluate("clusters", cluster, Some(&metadata));
    namespace.owned().unwrap().clone()
}

#[cfg(test)]
mod tests;
