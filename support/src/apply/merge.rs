//! Changes of parts of an object.

use std::fmt::Debug;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Part;
use crate::reconcile::is_missing;

/// Merges a change into an object, if the object has not changed since it was read. Nothing is done if it does not exist any
/// more.
pub async fn merge<K>(
    api: &Api<K>,
    read: &ObjectMeta,
    part: Part,
    mut change: Value,
    manager: &str,
) -> kube::Result<()>
where
    K: Clone + DeserializeOwned + Debug,
{
    change["metadata"]["uid"] = json!(read.uid);
    change["metadata"]["resourceVersion"] = json!(read.resource_version);
    let name = read.name.as_deref().unwrap_or_default();
    let params = PatchParams {
        field_manager: Some(manager.to_owned()),
        ..PatchParams::default()
    };
    let patch = Patch::Merge(&change);
    let merged = match part {
        Part::Main => api.patch(name, &params, &patch).await,
        Part::Status => api.patch_status(name, &params, &patch).await,
    };
    match merged {
        Err(error) if !is_missing(&error) => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;
    use crate::testing::{Answer, Expect, Scenario};

    #[tokio::test]
    async fn parts_are_merged_into_the_object_that_was_read() {
        let path = "/api/v1/namespaces/a/configmaps/b";
        let status = format!("{path}/status");
        let precondition = json!({ "uid": "u", "resourceVersion": "7" });
        let scenario = Scenario::new([
            Expect::patch(path)
                .body(
                    json!({ "metadata": { "uid": "u", "resourceVersion": "7", "finalizers": [] } }),
                )
                .answer(Answer::ok(&json!({ "metadata": { "name": "b" } }))),
            Expect::patch(&status)
                .body(json!({ "metadata": precondition, "status": { "a": 1 } }))
                .answer(Answer::error(404, "NotFound")),
            Expect::patch(&status)
                .body(json!({ "metadata": precondition, "status": { "a": 1 } }))
                .answer(Answer::error(409, "Conflict")),
        ]);
        let api: Api<ConfigMap> = Api::namespaced(scenario.client(), "a");
        let read = ObjectMeta {
            name: Some("b".to_owned()),
            uid: Some("u".to_owned()),
            resource_version: Some("7".to_owned()),
            ..ObjectMeta::default()
        };
        let finalizers = json!({ "metadata": { "finalizers": [] } });
        let merged = merge(&api, &read, Part::Main, finalizers, "m").await;
        assert!(merged.is_ok(), "{merged:?}");
        let status = json!({ "status": { "a": 1 } });
        let gone = merge(&api, &read, Part::Status, status.clone(), "m").await;
        assert!(gone.is_ok(), "{gone:?}");
        let changed = merge(&api, &read, Part::Status, status, "m").await;
        assert!(changed.is_err());
        scenario.finish();
    }
}
