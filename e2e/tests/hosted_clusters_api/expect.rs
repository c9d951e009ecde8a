//! What tests expect of objects: parts that are equal, fields that are there, and conditions.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testbed::client::{ApiClient, Resource};
use testbed::operator::SOON;
use testbed::{conditions, wait};

use crate::hosted_clusters_api::cluster::{Cluster, SECRETS};
use crate::hosted_clusters_api::fixture::NAMESPACE;
use crate::hosted_clusters_api::other_platforms::CLUSTERS;

/// Waits until a part of an object is as expected.
pub(crate) async fn is(
    admin: &ApiClient,
    path: &str,
    pointer: &str,
    expected: &Value,
) -> Result<Value> {
    wait::until(&format!("{path} to be made"), SOON, async || {
        let found = admin.get(path).await?;
        let part = found.pointer(pointer).cloned().unwrap_or_default();
        ensure!(part == *expected, "{pointer} is {part}, not {expected}");
        Ok(found)
    })
    .await
}

/// Waits until the provider's object for a cluster has this specification, and Cluster API's refers to it. The operator manages
/// it in the place of the provider.
pub(crate) async fn is_managed(
    admin: &ApiClient,
    cluster: &Cluster,
    (resource, kind): (Resource<'_>, &str),
    spec: &Value,
) -> Result<()> {
    let namespace = cluster.namespace();
    let path = resource.named(&namespace, cluster.name);
    let found = is(admin, &path, "/spec", spec).await?;
    let managed_by = &found["metadata"]["annotations"]["cluster.x-k8s.io/managed-by"];
    ensure!(managed_by == "external", "it is managed by {managed_by}");
    is(admin, &path, "/status/ready", &json!(true)).await?;
    let reference = json!({
        "apiGroup": "infrastructure.cluster.hypershift.openshift.io",
        "kind": kind,
        "name": cluster.name,
    });
    let path = CLUSTERS.named(&namespace, &cluster.infra());
    is(admin, &path, "/spec/infrastructureRef", &reference)
        .await
        .map(drop)
}

/// The object, once its specification has all these fields.
pub(crate) async fn made(admin: &ApiClient, path: &str, expected: &Value) -> Result<Value> {
    wait::until(&format!("{path} as it should be"), SOON, async || {
        let found = admin.get(path).await?;
        fields("spec", &found["spec"], expected)?;
        Ok(found)
    })
    .await
}

/// Fails at the first field that is not as expected. Other fields may have defaults of the API.
pub(crate) fn fields(place: &str, found: &Value, expected: &Value) -> Result<()> {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => {
            for (field, expected) in expected {
                let place = format!("{place}.{field}");
                fields(&place, found.get(field).unwrap_or(&Value::Null), expected)?;
            }
        }
        (Value::Array(found), Value::Array(expected)) if found.len() == expected.len() => {
            for (found, expected) in found.iter().zip(expected) {
                fields(place, found, expected)?;
            }
        }
        _ => ensure!(found == expected, "{place} is {found}, not {expected}"),
    }
    Ok(())
}

/// The item of a list with a name.
pub(crate) fn named<'a>(list: &'a Value, name: &str) -> Option<&'a Value> {
    let mut items = list.as_array().into_iter().flatten();
    items.find(|it| it["name"] == name)
}

/// Waits until a condition of an object is true: a status is written after the objects that it is about.
pub(crate) async fn is_true(admin: &ApiClient, path: &str, kind: &str) -> Result<()> {
    wait::until(&format!("{kind} of {path}"), SOON, async || {
        let object = admin.get(path).await?;
        let is_true = conditions::is_true(&object, kind);
        ensure!(is_true, "{}", conditions::untrue(&object));
        Ok(())
    })
    .await
}

/// Waits until the control plane's namespace has a copy of a Secret beside the HostedCluster, under the same name.
pub(crate) async fn is_copied(admin: &ApiClient, namespace: &str, name: &str) -> Result<()> {
    let original = admin.get(&SECRETS.named(NAMESPACE, name)).await?;
    let copy = SECRETS.named(namespace, name);
    is(admin, &copy, "/data", &original["data"]).await.map(drop)
}
