//! Trims the objects of the stores to the fields that are read, so that thousands fit into memory.

use kube::api::{ApiResource, DynamicObject};
use serde_json::{Value, json};

use crate::owner_condition;

/// A large copy of the object that clients leave in its own annotations.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The field with the input of fleet metrics, as text: it takes a tenth of the memory of a tree.
const COUNTED: &str = "counted";

/// The resource of NodePools.
pub(super) fn node_pools() -> ApiResource {
    ApiResource {
        kind: "NodePool".to_owned(),
        plural: "nodepools".to_owned(),
        ..crate::cluster_ref::resource()
    }
}

/// Trims a HostedCluster to its metadata, the condition about its owner, and the input of fleet metrics.
pub(crate) fn cluster(found: &mut DynamicObject) {
    let spec = &found.data["spec"];
    let configuration = &spec["configuration"];
    let providers = configuration["oauth"]["identityProviders"].as_array();
    let providers = providers.into_iter().flatten();
    let providers: Vec<_> = providers.map(|it| json!({ "type": it["type"] })).collect();
    let spec = json!({
        "clusterID": spec["clusterID"],
        "platform": { "type": spec["platform"]["type"] },
        "configuration": {
            "oauth": { "identityProviders": providers },
            "proxy": configuration["proxy"],
        },
    });
    let history = found.data["status"]["version"]["history"].as_array();
    let history = history.into_iter().flatten().map(release);
    let status = json!({ "version": { "history": history.collect::<Vec<_>>() } });
    let counted = text(found, &spec, status);
    let own = Vec::from_iter(owner_condition::find(found).cloned());
    found.data = json!({ "status": { "conditions": own }, COUNTED: counted });
    trim(found);
}

/// Trims a NodePool to its metadata, the fields that lead to it, and the input of fleet metrics.
pub(crate) fn pool(found: &mut DynamicObject) {
    let (spec, status) = (&found.data["spec"], &found.data["status"]);
    let kept = json!({ "clusterName": spec["clusterName"], "config": spec["config"] });
    let spec = json!({
        "clusterName": spec["clusterName"],
        "platform": { "type": spec["platform"]["type"] },
        "replicas": spec["replicas"],
    });
    let status = json!({ "replicas": status["replicas"], "version": status["version"] });
    let counted = text(found, &spec, status);
    found.data = json!({ "spec": kept, COUNTED: counted });
    trim(found);
}

/// The input of fleet metrics: the fields of the object that they read.
pub(crate) fn counted(found: &DynamicObject) -> Value {
    let text = found.data[COUNTED].as_str().unwrap_or_default();
    let mut counted: Value = serde_json::from_str(text).unwrap_or_default();
    counted["metadata"] = json!(found.metadata);
    counted
}

fn text(found: &DynamicObject, spec: &Value, mut status: Value) -> String {
    let conditions = found.data["status"]["conditions"].as_array();
    let conditions = conditions.into_iter().flatten().map(condition);
    status["conditions"] = conditions.collect();
    json!({ "spec": spec, "status": status }).to_string()
}

fn condition(found: &Value) -> Value {
    json!({
        "type": found["type"],
        "status": found["status"],
        "lastTransitionTime": found["lastTransitionTime"],
    })
}

fn release(found: &Value) -> Value {
    json!({
        "state": found["state"],
        "version": found["version"],
        "startedTime": found["startedTime"],
    })
}

fn trim(found: &mut DynamicObject) {
    found.metadata.managed_fields = None;
    if let Some(annotations) = &mut found.metadata.annotations {
        annotations.remove(LAST_APPLIED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_of_a_cluster_is_kept() {
        let own = json!({ "type": "PrivateCAPITypes", "status": "True", "message": "m" });
        let object = json!({
            "metadata": {
                "name": "one",
                "managedFields": [{ "manager": "m" }],
                "annotations": { LAST_APPLIED: "{}", "a": "b" },
            },
            "spec": { "clusterID": "i", "release": { "image": "x" } },
            "status": { "conditions": [{ "type": "Available", "status": "True", "message": "m" }, own] },
        });
        let mut cluster: DynamicObject = serde_json::from_value(object).unwrap();
        super::cluster(&mut cluster);
        assert_eq!(cluster.metadata.managed_fields, None);
        let annotations = cluster.metadata.annotations.clone().unwrap();
        assert_eq!(annotations.keys().collect::<Vec<_>>(), ["a"]);
        assert_eq!(cluster.data["status"], json!({ "conditions": [own] }));
        let counted = counted(&cluster);
        assert_eq!(counted["metadata"]["name"], "one");
        assert_eq!(counted["spec"]["clusterID"], "i");
        assert_eq!(counted["spec"]["release"], Value::Null);
        let available = &counted["status"]["conditions"][0];
        assert_eq!(available["status"], "True");
        assert_eq!(available.get("message"), None);
    }
}
