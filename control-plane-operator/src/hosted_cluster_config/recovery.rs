//! Restarts the monitoring of a hosted cluster that was restored from a backup, if it does not come up by itself.
//!
//! Its volumes may be of machines that no longer exist. They are deleted once; condition
//! `HostedClusterRestoredFromBackup` reports when monitoring is complete. The condition is also the memory of what was done:
//! the annotation of a restore stays, and without the condition each restart of this program would delete the volumes of
//! a monitoring that is being upgraded.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use api::annotations::cluster::RESTORED_FROM_BACKUP;
use api::conditions::{ClusterCondition, Status};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::api::{DeleteParams, DynamicObject, ListParams, Preconditions};
use kube::{Api, ResourceExt as _};
use support::reconcile::{is_conflict, is_missing};

use super::context::Context;
use super::control_plane::{self, DesiredCondition};
use super::error::Error;
use crate::hosted_control_plane::is_paused;

/// How often it looks whether monitoring is complete.
pub(super) const PERIOD: Duration = Duration::from_mins(2);
const NAMESPACE: &str = "openshift-monitoring";
const MONITORING: &str = "prometheus-k8s";
const REASON: &str = "RecoveryFinished";

/// What is remembered until the condition is in the cache: whether the volumes were deleted.
#[derive(Debug, Default)]
pub(super) struct State(AtomicBool);

/// Restarts monitoring, and updates the condition.
pub(super) async fn pass(ctx: &Context) -> Result<(), Error> {
    let Some(object) = ctx.control_plane().await? else {
        return Ok(());
    };
    let is_restored = RESTORED_FROM_BACKUP.is_set(object.annotations());
    let is_paused =
        control_plane::typed(&object).is_ok_and(|hcp| is_paused(&hcp, Timestamp::now()));
    if !is_restored || is_paused || object.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    let reported = reported(&object);
    if reported == Some("True") {
        return Ok(());
    }
    let sets: Api<StatefulSet> = Api::namespaced(ctx.guest.clone(), NAMESPACE);
    let what = format!("get StatefulSet {NAMESPACE}/{MONITORING}");
    let set = sets.get(MONITORING).await.map_err(Error::client(what))?;
    let desired = condition(&set);
    let is_restarted = reported.is_some() || ctx.recovery.0.load(Ordering::Relaxed);
    if desired.status != Status::True && !is_restarted {
        restart(ctx, &set).await?;
        ctx.recovery.0.store(true, Ordering::Relaxed);
    }
    let generation = object.metadata.generation;
    control_plane::write(&ctx.control_planes(), &object, |status| {
        let desired = std::slice::from_ref(&desired);
        control_plane::set(status, desired, generation, Timestamp::now());
    })
    .await
}

/// The status of the condition, if it was written.
fn reported(object: &DynamicObject) -> Option<&str> {
    let kind = ClusterCondition::HostedClusterRestoredFromBackup.as_str();
    let mut conditions = object.data["status"]["conditions"].as_array()?.iter();
    conditions.find(|it| it["type"] == kind)?["status"].as_str()
}

fn condition(set: &StatefulSet) -> DesiredCondition {
    // The default of the API.
    let replicas = set
        .spec
        .as_ref()
        .and_then(|spec| spec.replicas)
        .unwrap_or(1);
    let status = set.status.as_ref();
    let available = status
        .and_then(|status| status.available_replicas)
        .unwrap_or(0);
    let is_complete = available >= replicas;
    DesiredCondition {
        type_: ClusterCondition::HostedClusterRestoredFromBackup,
        status: if is_complete {
            Status::True
        } else {
            Status::False
        },
        reason: REASON,
        message: if is_complete {
            "The hosted cluster was restored from a backup".to_owned()
        } else {
            format!(
                "Waiting for StatefulSet {NAMESPACE}/{MONITORING} to become available ({available}/{replicas})"
            )
        },
    }
}

/// Deletes the claims, then the pods, which are created again with new claims.
async fn restart(ctx: &Context, set: &StatefulSet) -> Result<(), Error> {
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(ctx.guest.clone(), NAMESPACE);
    delete_all(&claims, &ListParams::default()).await?;
    let pods: Api<Pod> = Api::namespaced(ctx.guest.clone(), NAMESPACE);
    let selector = set.spec.as_ref().map(|spec| &spec.selector);
    let labels = selector.and_then(|selector| selector.match_labels.clone());
    let labels: Vec<_> = labels
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    if labels.is_empty() {
        return Ok(());
    }
    delete_all(&pods, &ListParams::default().labels(&labels.join(","))).await
}

async fn delete_all<K>(api: &Api<K>, params: &ListParams) -> Result<(), Error>
where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let kind = K::kind(&());
    let found = api.list(params).await;
    let found = found.map_err(Error::client(format!("list {kind}s of {NAMESPACE}")))?;
    for object in found.items {
        let name = object.name_any();
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: object.uid(),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        match api.delete(&name, &params).await {
            Ok(_) => tracing::info!(%kind, name, "Deleted object of monitoring after a restore"),
            Err(error) if is_missing(&error) || is_conflict(&error) => {}
            Err(error) => {
                return Err(Error::client(format!("delete {kind} {NAMESPACE}/{name}"))(
                    error,
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use support::testing::{Answer, Expect, Scenario};

    use super::super::context::testing::{Cached, context, control_plane, refused, status_put};
    use super::*;

    const SET: &str = "/apis/apps/v1/namespaces/openshift-monitoring/statefulsets/prometheus-k8s";
    const CLAIMS: &str = "/api/v1/namespaces/openshift-monitoring/persistentvolumeclaims";
    const PODS: &str = "/api/v1/namespaces/openshift-monitoring/pods";

    /// A control plane that was restored from a backup.
    fn restored(spec: &Value) -> Value {
        let mut object = control_plane(spec);
        object["metadata"]["annotations"] =
            json!({ "hypershift.openshift.io/restored-from-backup": "" });
        object
    }

    fn set(available: u32) -> Answer {
        Answer::ok(&json!({
            "metadata": { "name": "prometheus-k8s" },
            "spec": {
                "replicas": 2, "serviceName": "", "template": {},
                "selector": { "matchLabels": { "app": "prometheus" } },
            },
            "status": { "availableReplicas": available, "replicas": 2 },
        }))
    }

    fn named(name: &str) -> Value {
        json!({ "metadata": { "name": name, "uid": format!("uid-{name}") } })
    }

    /// A deletion of just this object.
    fn deletion(collection: &str, name: &str) -> Expect {
        let body = json!({ "preconditions": { "uid": format!("uid-{name}") } });
        Expect::delete(&format!("{collection}/{name}")).body(body)
    }

    fn reported(status: &str) -> Expect {
        let kind = "HostedClusterRestoredFromBackup";
        status_put(json!([{ "type": kind, "status": status, "reason": REASON }]))
    }

    async fn passes(object: Value, calls: Vec<Expect>, count: usize) -> Vec<Result<(), Error>> {
        let scenario = Scenario::new(calls);
        let ctx = context(&scenario, Cached::of(object)).await;
        let mut results = Vec::new();
        for _ in 0..count {
            results.push(pass(&ctx).await);
        }
        scenario.finish();
        results
    }

    #[tokio::test]
    async fn monitoring_that_is_down_is_restarted_once() {
        let calls = vec![
            Expect::get(SET).answer(set(1)),
            Expect::get(CLAIMS).answer(Answer::list(&[named("a"), named("b")])),
            deletion(CLAIMS, "a"),
            // It is gone already.
            deletion(CLAIMS, "b").answer(Answer::error(404, "NotFound")),
            Expect::get(&format!("{PODS}?labelSelector=app%3Dprometheus"))
                .answer(Answer::list(&[named("p")])),
            deletion(PODS, "p"),
            reported("False"),
            // The second pass only looks.
            Expect::get(SET).answer(set(1)),
            reported("False"),
            Expect::get(SET).answer(set(2)),
            reported("True"),
        ];
        for result in passes(restored(&json!({})), calls, 3).await {
            result.unwrap();
        }
    }

    #[tokio::test]
    async fn restart_that_fails_is_tried_again() {
        let list = || Expect::get(CLAIMS).answer(Answer::list(&[named("a")]));
        let calls = vec![
            Expect::get(SET).answer(set(0)),
            list(),
            deletion(CLAIMS, "a").answer(refused()),
            Expect::get(SET).answer(set(0)),
            list(),
            deletion(CLAIMS, "a"),
            Expect::get(PODS).answer(Answer::list(&[])),
            reported("False"),
        ];
        let results = passes(restored(&json!({})), calls, 2).await;
        let error = results[0].as_ref().unwrap_err().to_string();
        let object = "PersistentVolumeClaim openshift-monitoring/a";
        assert_eq!(error, format!("failed to delete {object}"));
        assert!(results[1].is_ok());
    }

    /// Another process, or another term of leader election, finds the condition.
    #[tokio::test]
    async fn monitoring_is_not_restarted_again_by_another_process() {
        let mut object = restored(&json!({}));
        let of = |status: &str| {
            json!([{
                "type": "HostedClusterRestoredFromBackup", "status": status, "reason": REASON,
                "message": "", "lastTransitionTime": "2030-01-01T00:00:00Z",
            }])
        };
        object["status"]["conditions"] = of("False");
        let calls = vec![Expect::get(SET).answer(set(1)), reported("False")];
        assert!(passes(object.clone(), calls, 1).await[0].is_ok());
        // It was complete once: what happens later is no recovery.
        object["status"]["conditions"] = of("True");
        assert!(passes(object, vec![], 1).await[0].is_ok());
    }

    #[tokio::test]
    async fn missing_monitoring_is_an_error_without_a_condition() {
        let calls = vec![Expect::get(SET).answer(Answer::error(404, "NotFound"))];
        let results = passes(restored(&json!({})), calls, 1).await;
        assert!(results[0].is_err());
    }

    #[tokio::test]
    async fn nothing_is_restarted_without_a_restore() {
        let mut deleted = restored(&json!({}));
        deleted["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z");
        let paused = restored(&json!({ "pausedUntil": "true" }));
        for object in [control_plane(&json!({})), deleted, paused] {
            assert!(passes(object, vec![], 1).await[0].is_ok());
        }
    }

    #[test]
    fn monitoring_is_complete_with_all_replicas() {
        for (replicas, available, status) in [
            (json!(2), json!(2), Status::True),
            (json!(2), json!(1), Status::False),
            (json!(2), Value::Null, Status::False),
            (Value::Null, json!(1), Status::True),
            (json!(0), Value::Null, Status::True),
        ] {
            let set = json!({
                "spec": { "replicas": replicas, "selector": {}, "template": {}, "serviceName": "" },
                "status": { "availableReplicas": available, "replicas": 0 },
            });
            let found = condition(&serde_json::from_value(set).unwrap());
            assert_eq!((found.status, found.reason), (status, REASON));
        }
    }
}
