//! The infrastructure object that the live Cluster of Cluster API refers to.

use api::hypershift::v1beta1::platform::PlatformType;
use kube::Api;
use kube::api::DynamicObject;
use serde_json::Value;
use support::reconcile::is_missing;

use crate::context::Context;
use crate::error::Error;
use crate::facts::Facts;

/// Its name. Only on KubeVirt have earlier versions of this operator given it another one.
pub(super) async fn infrastructure_name(
    facts: &Facts,
    ctx: &Context,
) -> Result<Option<String>, Error> {
    let infra_id = facts.infra_id();
    let is_kubevirt = facts.cluster.spec.platform.type_ == PlatformType::KubeVirt;
    if !is_kubevirt || infra_id.is_empty() {
        return Ok(None);
    }
    let (resource, client) = (facts.capi.cluster(), ctx.client.clone());
    let api: Api<DynamicObject> = Api::namespaced_with(client, &facts.namespace, &resource);
    let found = match api.get_opt(infra_id).await {
        Ok(found) => found,
        Err(error) if is_missing(&error) => None,
        Err(source) => {
            let what = format!("Cluster {}/{infra_id}", facts.namespace);
            return Err(Error::Read { what, source });
        }
    };
    let kind = facts.capi.kubevirt_cluster().kind;
    Ok(found.and_then(|it| referred(&it.data, &kind)))
}

/// The name of the object of this kind that a Cluster refers to.
fn referred(cluster: &Value, kind: &str) -> Option<String> {
    let reference = &cluster["spec"]["infrastructureRef"];
    let name = reference["name"].as_str().filter(|it| !it.is_empty())?;
    (reference["kind"] == kind).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_references_to_the_kind_count() {
        for (reference, expected) in [
            (
                json!({ "kind": "KubevirtCluster", "name": "one" }),
                Some("one"),
            ),
            (json!({ "kind": "KubevirtCluster", "name": "" }), None),
            (json!({ "kind": "KubevirtCluster" }), None),
            (json!({ "kind": "AWSCluster", "name": "one" }), None),
            (Value::Null, None),
        ] {
            let cluster = json!({ "spec": { "infrastructureRef": reference } });
            let found = referred(&cluster, "KubevirtCluster");
            assert_eq!(found.as_deref(), expected, "{cluster}");
        }
    }
}
