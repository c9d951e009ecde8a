//! Writes with a precondition: the object has not changed since it was read.
//!
//! A conflict means that the caller has to read and decide again. [`Applier`] is for whole objects that a controller
//! applies in each reconcile.

mod applier;
mod difference;
mod memory;
mod merge;

use std::collections::BTreeMap;
use std::fmt::Debug;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::core::PartialObjectMeta;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub use applier::{Applied, Applier, Change, Deletion, Error, own, owner};
pub use memory::{Desired, Known, Memory, Part};
pub use merge::merge;

/// Sets annotations in one write, if the object has not changed since it was read.
pub async fn annotate<K>(
    api: &Api<K>,
    read: &ObjectMeta,
    annotations: &BTreeMap<&str, &str>,
    manager: &str,
) -> kube::Result<PartialObjectMeta<K>>
where
    K: Clone + DeserializeOwned + Debug,
{
    let patch = json!({
        "metadata": {
            "uid": read.uid,
            "resourceVersion": read.resource_version,
            "annotations": annotations,
        },
    });
    let params = PatchParams {
        field_manager: Some(manager.to_owned()),
        ..PatchParams::default()
    };
    let name = read.name.as_deref().unwrap_or_default();
    api.patch_metadata(name, &params, &Patch::Merge(&patch))
        .await
}

/// Applies a status, if the object has not changed since it was read. `object` has `apiVersion`, `kind` and `status`.
pub async fn status<K>(
    api: &Api<K>,
    read: &ObjectMeta,
    mut object: Value,
    manager: &str,
) -> kube::Result<K>
where
    K: Clone + DeserializeOwned + Debug,
{
    let name = read.name.as_deref().unwrap_or_default();
    object["metadata"] = json!({
        "name": name,
        "namespace": read.namespace,
        "uid": read.uid,
        "resourceVersion": read.resource_version,
    });
    let params = PatchParams::apply(manager).force();
    api.patch_status(name, &params, &Patch::Apply(&object))
        .await
}

/// Deletes an object, if it has the same uid as when it was read.
pub async fn delete<K>(api: &Api<K>, read: &ObjectMeta) -> kube::Result<()>
where
    K: Clone + DeserializeOwned + Debug,
{
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: read.uid.clone(),
            resource_version: None,
        }),
        ..DeleteParams::background()
    };
    let name = read.name.as_deref().unwrap_or_default();
    api.delete(name, &params).await.map(drop)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;
    use crate::testing::{Answer, Expect, Scenario};

    fn read() -> ObjectMeta {
        ObjectMeta {
            namespace: Some("a".to_owned()),
            name: Some("b".to_owned()),
            uid: Some("u".to_owned()),
            resource_version: Some("7".to_owned()),
            ..ObjectMeta::default()
        }
    }

    #[tokio::test]
    async fn writes_have_the_version_that_was_read_as_precondition() {
        let path = "/api/v1/namespaces/a/configmaps/b";
        let object = json!({ "metadata": { "name": "b" } });
        let scenario = Scenario::new([
            Expect::patch(path)
                .body(json!({ "metadata": { "uid": "u", "resourceVersion": "7", "annotations": { "k": "v" } } }))
                .answer(Answer::ok(&object)),
            Expect::patch(&format!("{path}/status"))
                .body(json!({ "metadata": { "uid": "u", "resourceVersion": "7" } }))
                .answer(Answer::ok(&object)),
            Expect::delete(path)
                .body(json!({ "preconditions": { "uid": "u" } }))
                .answer(Answer::ok(&object)),
        ]);
        let api: Api<ConfigMap> = Api::namespaced(scenario.client(), "a");
        let annotations = BTreeMap::from([("k", "v")]);
        annotate(&api, &read(), &annotations, "m").await.unwrap();
        let object = json!({ "apiVersion": "v1", "kind": "ConfigMap" });
        status(&api, &read(), object, "m").await.unwrap();
        delete(&api, &read()).await.unwrap();
        scenario.finish();
    }
}
