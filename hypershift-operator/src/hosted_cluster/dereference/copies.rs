//! Whether the names that copies would have in the control plane's namespace are free: an object that another program made
//! there is never overwritten by what a user refers to.

use api::annotations::node_pool::NODE_POOL;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{ApiResource, DynamicObject};

use crate::context::Context;
use crate::error::Error;
use crate::facts::references::{Kind, Reference};
use crate::facts::{Facts, Found};
use crate::names;

/// Annotation of Secrets that hold the token of a service account.
const SERVICE_ACCOUNT: &str = "kubernetes.io/service-account.name";

/// The references whose copy would overwrite an object that is not a copy.
pub(super) async fn occupied(facts: &Facts, ctx: &Context) -> Result<Vec<Reference>, Error> {
    let mut occupied = Vec::new();
    for (reference, found) in &facts.referenced {
        if !reference.purpose.keeps_name() || matches!(found, Found::Missing) {
            continue;
        }
        let there = metadata(reference, &facts.namespace, ctx).await?;
        if there.is_some_and(|it| is_foreign(&it, &facts.id.to_string())) {
            occupied.push(reference.clone());
        }
    }
    Ok(occupied)
}

async fn metadata(
    reference: &Reference,
    namespace: &str,
    ctx: &Context,
) -> Result<Option<ObjectMeta>, Error> {
    let resource = match reference.kind {
        Kind::Secret => ApiResource::erase::<Secret>(&()),
        Kind::ConfigMap => ApiResource::erase::<ConfigMap>(&()),
    };
    let name = &reference.name;
    let api: Api<DynamicObject> = Api::namespaced_with(ctx.client.clone(), namespace, &resource);
    let found = api.get_metadata_opt(name).await;
    let found = found.map_err(|source| Error::Read {
        what: format!("{} {namespace}/{name}", resource.kind),
        source,
    })?;
    Ok(found.map(|it| it.metadata))
}

/// Whether another program made the object. Copies have no owner: those of this operator name the cluster, and those of
/// the operator that it takes over from have no annotation.
fn is_foreign(there: &ObjectMeta, cluster: &str) -> bool {
    let annotation = |key: &str| there.annotations.as_ref().and_then(|it| it.get(key));
    let is_owned = there
        .owner_references
        .as_ref()
        .is_some_and(|it| !it.is_empty());
    is_owned
        || annotation(names::CLUSTER).is_some_and(|it| it != cluster)
        || annotation(NODE_POOL.key()).is_some()
        || annotation(SERVICE_ACCOUNT).is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Check T09.
    #[test]
    fn copies_are_distinguished_from_other_objects() {
        let owner = json!([{ "apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "1" }]);
        for (metadata, expected) in [
            (json!({}), false),
            (
                json!({ "annotations": { names::CLUSTER: "clusters/one" } }),
                false,
            ),
            (
                json!({ "annotations": { names::CLUSTER: "clusters/two" } }),
                true,
            ),
            (
                json!({ "annotations": { NODE_POOL.key(): "clusters/workers" } }),
                true,
            ),
            (
                json!({ "annotations": { SERVICE_ACCOUNT: "default" } }),
                true,
            ),
            (json!({ "ownerReferences": owner }), true),
            (json!({ "ownerReferences": [] }), false),
        ] {
            let there = serde_json::from_value(metadata.clone()).unwrap();
            assert_eq!(is_foreign(&there, "clusters/one"), expected, "{metadata}");
        }
    }
}
