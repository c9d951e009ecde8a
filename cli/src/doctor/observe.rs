//! Asks the cluster what the checks need. It only reads, but for access reviews, which leave nothing behind.

mod certificates;
mod clusters;
mod permissions;
mod webhooks;

use api::group::GroupTable;
use http::Request;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::ListParams;
use kube::{Api, Client};
use serde_json::Value;

use super::observation::{CrdFacts, DeploymentFacts, Found, Observation};
use crate::crds::source::SourceError;
use crate::crds::source::cluster::{self, Access, ClusterError};
use crate::install::tenant_policy::{self, Mode};

/// The group of our own API, and what its other groups end with.
const OWN_GROUP: &str = "hypershift.openshift.io";

/// Looks at everything.
pub(super) async fn observe(
    access: &Access,
    namespace: &str,
    table: &GroupTable,
) -> anyhow::Result<Observation> {
    let client = cluster::connect(access).await.map_err(SourceError::from)?;
    let failed = |error| SourceError::from(ClusterError::Request(Box::new(error)));
    let server_version = client
        .apiserver_version()
        .await
        .map_err(failed)?
        .git_version;
    let all = cluster::list(&client).await.map_err(failed)?;
    let crds: Vec<Value> = all
        .into_iter()
        .map(Value::Object)
        .filter(|crd| is_of_interest(crd, table))
        .collect();
    Ok(Observation {
        server_version,
        namespace: namespace.to_owned(),
        clusters: clusters::observe(&client, table).await?,
        deployments: found(deployments(&client, namespace).await)?,
        permissions: found(permissions::observe(&client, namespace, table).await)?,
        webhooks: found(webhooks::observe(&client, &crds, table).await)?,
        certificates: found(certificates::observe(&client, namespace).await)?,
        tenant_policy: found(tenant_policy(&client, namespace).await)?,
        crds: crds.iter().map(crd).collect(),
    })
}

/// An answer that is missing or refused is a fact like others; anything else is a failure.
fn found<T>(result: kube::Result<T>) -> kube::Result<Found<T>> {
    match result {
        Ok(value) => Ok(Found::Read(value)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Found::Unknown),
        Err(kube::Error::Api(status)) if status.code == 403 => Ok(Found::Refused(status.message)),
        Err(error) => Err(error),
    }
}

fn is_of_interest(crd: &Value, table: &GroupTable) -> bool {
    let group = crd["spec"]["group"].as_str().unwrap_or_default();
    table.find(group.as_bytes()).is_some() || is_ours(group)
}

fn is_ours(group: &str) -> bool {
    group
        .strip_suffix(OWN_GROUP)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

fn crd(crd: &Value) -> CrdFacts {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let versions = || crd["spec"]["versions"].as_array().into_iter().flatten();
    let named = |key: &'static str| {
        versions()
            .filter(move |version| version[key] == true)
            .map(|version| text(&version["name"]))
    };
    let marks = ["labels", "annotations"]
        .into_iter()
        .filter_map(|kind| crd["metadata"][kind].as_object());
    let mut managers: Vec<String> = crd["metadata"]["managedFields"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|entry| text(&entry["manager"]))
        .collect();
    managers.sort();
    managers.dedup();
    // The API server writes the status of every CRD itself.
    managers.retain(|manager| manager != "kube-apiserver");
    CrdFacts {
        name: text(&crd["metadata"]["name"]),
        group: text(&crd["spec"]["group"]),
        served: named("served").collect(),
        storage: named("storage").next().unwrap_or_default(),
        stored: crd["status"]["storedVersions"]
            .as_array()
            .into_iter()
            .flatten()
            .map(text)
            .collect(),
        marks: marks
            .flatten()
            .map(|(key, value)| (key.clone(), text(value)))
            .collect(),
        managers,
        established: crd["status"]["conditions"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|condition| condition["type"] == "Established" && condition["status"] == "True"),
    }
}

async fn tenant_policy(client: &Client, namespace: &str) -> kube::Result<Mode> {
    let path = tenant_policy::binding(namespace).path();
    Ok(Mode::of(&get(client, &path).await?))
}

async fn deployments(client: &Client, namespace: &str) -> kube::Result<Vec<DeploymentFacts>> {
    let api: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let list = api.list(&ListParams::default()).await?;
    Ok(list.items.into_iter().map(deployment).collect())
}

fn deployment(deployment: Deployment) -> DeploymentFacts {
    let spec = deployment.spec.unwrap_or_default();
    let pod = spec.template.spec.unwrap_or_default();
    let containers = pod
        .init_containers
        .into_iter()
        .flatten()
        .chain(pod.containers);
    DeploymentFacts {
        name: deployment.metadata.name.unwrap_or_default(),
        wanted: spec.replicas.unwrap_or(1),
        available: deployment
            .status
            .and_then(|status| status.available_replicas)
            .unwrap_or_default(),
        images: containers.filter_map(|container| container.image).collect(),
    }
}

/// A JSON answer to a GET.
async fn get(client: &Client, path: &str) -> kube::Result<Value> {
    let request = Request::get(path)
        .body(Vec::new())
        .map_err(kube::Error::HttpError)?;
    client.request(request).await
}
