//! A NodePool that does not deserialize: it is reported on itself, and all others are reconciled.
//!
//! Reading is done untyped for that reason; an object becomes typed here, one at a time.

use api::conditions::{CommonReason, PoolCondition, Status, find};
use api::hypershift::v1beta1::node_pool::{NodePool, UpgradeType};
use jiff::Timestamp;
use kube::api::{ApiResource, DynamicObject};
use kube::{Resource as _, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use support::controller::Action;

use super::conditions::Conditions;
use super::control::Pools;
use super::error::Error;
use super::write::FINALIZER;
use crate::cluster_ref::Id;

/// The condition that reports it: nothing is reconciled until the object is corrected.
const ABOUT: PoolCondition = PoolCondition::ReconciliationActive;
const REASON: CommonReason = CommonReason::InvalidConfiguration;

/// Where NodePools are.
pub(super) fn resource() -> ApiResource {
    ApiResource::erase::<NodePool>(&())
}

/// The HostedCluster of a pool.
pub(super) fn owner(pool: &DynamicObject) -> Id {
    Id {
        namespace: pool.namespace().unwrap_or_default(),
        name: cluster_name(pool).to_owned(),
    }
}

/// The name of that HostedCluster.
pub(super) fn cluster_name(pool: &DynamicObject) -> &str {
    pool.data["spec"]["clusterName"]
        .as_str()
        .unwrap_or_default()
}

/// The object with its Rust type, or why it has none.
pub(super) fn typed<K: DeserializeOwned>(object: &DynamicObject) -> Result<K, String> {
    serde_json::from_value(json!(object)).map_err(|error| error.to_string())
}

/// A pool that is being deleted, reduced to what its deletion needs. Nothing of it is written but its conditions.
pub(super) fn for_deletion(pool: &DynamicObject) -> Option<NodePool> {
    pool.metadata.deletion_timestamp.as_ref()?;
    let spec = json!({
        "clusterName": cluster_name(pool),
        "platform": { "type": pool.data["spec"]["platform"]["type"] },
        "release": { "image": "" },
        "management": { "upgradeType": UpgradeType::Replace },
    });
    let mut reduced: NodePool = serde_json::from_value(json!({
        "apiVersion": NodePool::api_version(&()),
        "kind": NodePool::kind(&()),
        "metadata": pool.metadata,
        "spec": spec,
    }))
    .ok()?;
    reduced.status = serde_json::from_value(pool.data["status"].clone()).ok();
    Some(reduced)
}

/// Reports on the pool that an object does not deserialize: by a condition, an Event and a log line. Where the API
/// server refuses the condition, because the pool does not match its schema, the Event and the log line remain.
pub(super) async fn report(
    pool: &DynamicObject,
    object: &str,
    problem: &str,
    pools: &Pools,
) -> Result<Action, Error> {
    let (namespace, name) = (pool.namespace(), pool.name_any());
    let message = message(object, problem, pool);
    let desired = json!({
        "metadata": { "namespace": namespace, "name": name },
        "status": status(pool, &message, Timestamp::now()),
    });
    let applied = pools
        .writer
        .applier
        .apply_status(&resource(), desired)
        .await
        .map(|applied| applied.change.is_written());
    let is_news = match applied {
        Err(error) if error.is_invalid() => true,
        applied => applied?,
    };
    if is_news {
        tracing::warn!(namespace, name, error = message, "Skipping NodePool");
        pools.warn(pool, REASON.as_str(), &message);
    }
    Ok(Action::await_change())
}

/// Forgets the report once the pool is readable again.
pub(super) fn clear(conditions: &mut Conditions) {
    let found = find(conditions.list(), ABOUT);
    if found.is_some_and(|it| it.reason.as_deref() == Some(REASON.as_str())) {
        conditions.clear(ABOUT);
    }
}

fn message(object: &str, problem: &str, pool: &DynamicObject) -> String {
    let consequence = if pool.metadata.deletion_timestamp.is_some() {
        format!(" The deletion waits for that: finalizer {FINALIZER} stays.")
    } else {
        String::new()
    };
    format!(
        "failed to read {object}: {problem}. Correct the field, or upgrade the operator to a version that knows \
         it.{consequence}"
    )
}

/// The current status, with the condition set.
fn status(pool: &DynamicObject, message: &str, now: Timestamp) -> Value {
    let mut status = pool.data.get("status").cloned().unwrap_or_default();
    let before = serde_json::from_value(status["conditions"].take()).unwrap_or_default();
    let mut conditions = Conditions::new(before, pool.metadata.generation, now);
    conditions.set(ABOUT, Status::False, REASON.as_str(), message);
    status["conditions"] = json!(conditions.list());
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(spec: &Value) -> DynamicObject {
        let pool = json!({
            "apiVersion": "hypershift.openshift.io/v1beta1",
            "kind": "NodePool",
            "metadata": { "namespace": "clusters", "name": "workers", "generation": 2 },
            "spec": spec,
            "status": {
                "replicas": 2,
                "conditions": [
                    { "type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z" },
                ],
            },
        });
        serde_json::from_value(pool).unwrap()
    }

    fn replicas(replicas: i64) -> DynamicObject {
        let mut spec = json!(crate::node_pool::fixtures::pool().spec);
        spec["replicas"] = json!(replicas);
        pool(&spec)
    }

    #[test]
    fn objects_are_deserialized_one_by_one() {
        assert!(typed::<NodePool>(&replicas(3)).is_ok());
        let problem = typed::<NodePool>(&replicas(1 << 31)).unwrap_err();
        assert!(problem.contains("2147483648"), "{problem}");
        let odd = pool(&json!({ "clusterName": 5 }));
        assert_eq!(owner(&odd).to_string(), "clusters/");
        assert!(typed::<NodePool>(&odd).is_err());
    }

    #[test]
    fn a_pool_that_does_not_deserialize_is_deleted_by_its_metadata() {
        let mut pool = replicas(1 << 31);
        assert!(for_deletion(&pool).is_none(), "it is not being deleted");
        let report = message("the NodePool", "why", &pool);
        assert!(!report.contains("finalizer"), "{report}");
        pool.metadata.deletion_timestamp =
            serde_json::from_value(json!("2026-01-01T00:00:00Z")).ok();
        let reduced = for_deletion(&pool).unwrap();
        let whole = crate::node_pool::fixtures::pool();
        assert_eq!(reduced.metadata, pool.metadata);
        assert_eq!(reduced.spec.cluster_name, whole.spec.cluster_name);
        assert_eq!(reduced.spec.platform.type_, whole.spec.platform.type_);
        assert_eq!(reduced.status.unwrap().replicas, Some(2));
        let report = message("the NodePool", "why", &pool);
        assert!(report.contains(FINALIZER), "{report}");

        // What was made for a pool depends on the platform.
        pool.data["spec"]["platform"]["type"] = json!("Abacus");
        assert!(for_deletion(&pool).is_none());
    }

    #[test]
    fn the_report_preserves_the_rest_of_the_status() {
        let now = "2026-11-22T00:00:00Z".parse().unwrap();
        let status = status(&replicas(1 << 31), "why", now);
        assert_eq!(status["replicas"], 2);
        let types: Vec<_> = status["conditions"].as_array().unwrap().iter().collect();
        assert_eq!(types[0]["type"], "Ready");
        assert_eq!(types[0]["lastTransitionTime"], "2026-01-01T00:00:00Z");
        assert_eq!(types[1]["type"], "ReconciliationActive");
        assert_eq!(types[1]["reason"], "InvalidConfiguration");
        assert_eq!(types[1]["message"], "why");
    }

    #[test]
    fn clearing_the_report_keeps_a_pause() {
        for (reason, expected) in [("InvalidConfiguration", 0), ("Paused", 1)] {
            let now = "2026-11-22T00:00:00Z".parse().unwrap();
            let mut conditions = Conditions::new(Vec::new(), None, now);
            conditions.set(ABOUT, Status::False, reason, "");
            clear(&mut conditions);
            assert_eq!(conditions.list().len(), expected, "{reason}");
        }
    }
}
