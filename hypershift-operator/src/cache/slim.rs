//! Trims the objects of the stores to the fields that are read, so that thousands fit into memory.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};

use api::conditions::PoolCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{ApiResource, DynamicObject};
use serde_json::{Value, json};
use support::controller::ObjectKey;

use crate::cluster_ref::Id;
use crate::names::CLUSTER;
use crate::owner_condition;

/// A large copy of the object that clients leave in its own annotations.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The field with the input of fleet metrics, as text: it takes a tenth of the memory of a tree.
const COUNTED: &str = "counted";
/// The field with the subnet of a NodePool on AWS.
const SUBNET: &str = "subnet";
/// The field with the version of what reconciles of NodePools read of a HostedCluster.
const POOL_INPUTS: &str = "poolInputs";
/// The fields of the status of a HostedCluster that its NodePools depend on.
const STATUS_OF_POOLS: [&str; 5] = [
    "controlPlaneEndpoint",
    "ignitionEndpoint",
    "kubeconfig",
    "platform",
    "version",
];

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
    let pool_inputs = pool_inputs_version(found);
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
    found.data = json!({
        "status": { "conditions": own },
        COUNTED: counted,
        POOL_INPUTS: pool_inputs,
    });
    trim(found);
}

/// Trims a HostedCluster to what reconciles of its NodePools may read of it: its metadata, its spec, and the fields of its
/// status that lead to [another version](with_pool_inputs_version) of it.
pub(crate) fn pool_inputs(found: &mut DynamicObject) {
    if let Some(status) = found.data["status"].as_object_mut() {
        status.retain(|field, _| STATUS_OF_POOLS.contains(&field.as_str()));
    }
}

/// The metadata of a trimmed HostedCluster, with the version of what reconciles of its NodePools read of it.
pub(super) fn with_pool_inputs_version(found: &DynamicObject) -> Cow<'_, ObjectMeta> {
    Cow::Owned(ObjectMeta {
        resource_version: found.data[POOL_INPUTS].as_str().map(str::to_owned),
        namespace: found.metadata.namespace.clone(),
        name: found.metadata.name.clone(),
        uid: found.metadata.uid.clone(),
        ..ObjectMeta::default()
    })
}

/// A hash of what reconciles of NodePools read of a HostedCluster. The generation stands for the spec.
fn pool_inputs_version(found: &DynamicObject) -> String {
    let mut metadata = found.metadata.clone();
    metadata.managed_fields = None;
    metadata.resource_version = None;
    let status = STATUS_OF_POOLS.map(|field| &found.data["status"][field]);
    let mut hasher = DefaultHasher::new();
    json!({ "metadata": metadata, "status": status })
        .to_string()
        .hash(&mut hasher);
    format!("{:x}", hasher.finish())
}

/// Trims a NodePool to its metadata, the fields that lead to it, and the input of fleet metrics.
pub(crate) fn pool(found: &mut DynamicObject) {
    let (spec, status) = (&found.data["spec"], &found.data["status"]);
    let kept = ["clusterName", "config", "tuningConfig"];
    let kept = kept.map(|field| (field.to_owned(), spec[field].clone()));
    let kept: serde_json::Map<_, _> = kept.into_iter().filter(|(_, it)| !it.is_null()).collect();
    let spec = json!({
        "clusterName": spec["clusterName"],
        "platform": { "type": spec["platform"]["type"] },
        "replicas": spec["replicas"],
    });
    let status = json!({ "replicas": status["replicas"], "version": status["version"] });
    let counted = text(found, &spec, status);
    let subnet = found.data["spec"]["platform"]["aws"]["subnet"]["id"].clone();
    found.data = json!({ "spec": kept, COUNTED: counted });
    if subnet.is_string() {
        found.data[SUBNET] = subnet;
    }
    trim(found);
}

/// The HostedCluster of a trimmed NodePool.
pub(super) fn cluster_of(found: &DynamicObject) -> Option<ObjectKey> {
    let namespace = found.metadata.namespace.as_deref()?;
    let name = found.data["spec"]["clusterName"].as_str()?;
    Some(ObjectKey::new(namespace, name))
}

/// Whether a trimmed NodePool is one of this HostedCluster. All pools are asked for each cluster, so nothing is copied.
pub(super) fn is_of(found: &DynamicObject, cluster: &Id) -> bool {
    found.metadata.namespace.as_ref() == Some(&cluster.namespace)
        && found.data["spec"]["clusterName"] == cluster.name.as_str()
}

/// Whether the virtual machines of a trimmed NodePool can be migrated live, if it reports that.
pub(super) fn live_migration(found: &DynamicObject) -> Option<bool> {
    let about = PoolCondition::KubeVirtNodesLiveMigratable.as_str();
    let counted = found.data[COUNTED].as_str();
    // Only pools of virtual machines have the condition.
    let counted = counted.filter(|text| text.contains(about))?;
    let counted: Value = serde_json::from_str(counted).ok()?;
    let mut conditions = counted["status"]["conditions"].as_array()?.iter();
    match conditions.find(|it| it["type"] == about)?["status"].as_str()? {
        "True" => Some(true),
        "False" => Some(false),
        _ => None,
    }
}

/// The metadata of a trimmed NodePool as an object of its HostedCluster, with the version of what is read of it there.
/// NodePools of which nothing is read belong to none.
pub(super) fn with_cluster_inputs_version(found: &DynamicObject) -> Cow<'_, ObjectMeta> {
    let migratable = live_migration(found).map(|it| it.to_string());
    let subnet = found.data[SUBNET].as_str().map(str::to_owned);
    let read = migratable.or(subnet);
    let cluster = read.as_ref().and_then(|_| cluster_of(found));
    let owner = cluster.map(|it| format!("{}/{}", it.namespace, it.name));
    Cow::Owned(ObjectMeta {
        resource_version: read,
        annotations: owner.map(|it| BTreeMap::from([(CLUSTER.to_owned(), it)])),
        namespace: found.metadata.namespace.clone(),
        name: found.metadata.name.clone(),
        uid: found.metadata.uid.clone(),
        ..ObjectMeta::default()
    })
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

    /// A NodePool is reconciled if what it reads of its HostedCluster changes, and not with its progress.
    #[test]
    fn pool_inputs_have_a_version() {
        type Change = fn(&mut Value);

        let cluster = |change: Change| {
            let mut object = json!({
                "metadata": {
                    "name": "one", "namespace": "clusters", "uid": "u", "resourceVersion": "1", "generation": 1,
                },
                "spec": {},
                "status": {
                    "conditions": [],
                    "kubeconfig": { "name": "k" },
                    "version": { "history": [{ "state": "Partial" }] },
                },
            });
            change(&mut object);
            serde_json::from_value::<DynamicObject>(object).unwrap()
        };
        let version = |change| {
            let mut cluster = cluster(change);
            super::cluster(&mut cluster);
            with_pool_inputs_version(&cluster)
                .resource_version
                .clone()
                .unwrap()
        };
        let read = |change| {
            let mut cluster = cluster(change);
            pool_inputs(&mut cluster);
            cluster.metadata.resource_version = None;
            serde_json::to_value(cluster).unwrap()
        };
        let changes: [(Change, bool); 6] = [
            (|it| it["metadata"]["resourceVersion"] = json!("2"), false),
            (
                |it| it["status"]["conditions"] = json!([{ "type": "Available" }]),
                false,
            ),
            (|it| it["metadata"]["generation"] = json!(2), true),
            (
                |it| it["metadata"]["annotations"] = json!({ "a": "b" }),
                true,
            ),
            (|it| it["status"]["kubeconfig"] = Value::Null, true),
            (
                |it| it["status"]["version"]["history"][0]["state"] = json!("Completed"),
                true,
            ),
        ];
        let unchanged: Change = |_| {};
        for (number, (change, is_new)) in changes.into_iter().enumerate() {
            assert_eq!(version(change) != version(unchanged), is_new, "{number}");
            assert_eq!(read(change) != read(unchanged), is_new, "{number}");
        }
    }
}
