//! The HostedControlPlane: what is read of it, and how its status is written.
//!
//! Its status has writers beside this program, and fields that have to be `null`. So it is written as a whole, under the
//! condition that it is still the one that was read, and only when something differs.

use api::conditions::{ClusterCondition, Status};
use api::hypershift::v1beta1::HostedControlPlane;
use jiff::Timestamp;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, PostParams};
use serde_json::{Value, json};
use support::reconcile::is_conflict;

use super::error::Error;

/// Attempts after conflicts with other writers.
const ATTEMPTS: usize = 5;
/// Who writes, as the API server keeps it.
const MANAGER: &str = "hosted-cluster-config-operator";

/// A condition as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) about: ClusterCondition,
    pub(super) status: Status,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// The kind.
pub(super) fn resource() -> ApiResource {
    ApiResource::erase::<HostedControlPlane>(&())
}

/// The object with the fields that its type knows.
pub(super) fn typed(object: &DynamicObject) -> Result<HostedControlPlane, Error> {
    let unusable = |error: serde_json::Error| Error::Form {
        object: "the HostedControlPlane".to_owned(),
        problem: error.to_string(),
    };
    let value = serde_json::to_value(object).map_err(unusable)?;
    serde_json::from_value(value).map_err(unusable)
}

/// Writes a status, if `change` changes any of it. `known` may be old.
pub(super) async fn write(
    api: &Api<DynamicObject>,
    known: &DynamicObject,
    change: impl Fn(&mut Value),
) -> Result<(), Error> {
    let mut object = known.clone();
    let name = object.metadata.name.clone().unwrap_or_default();
    let what = || format!("write the status of HostedControlPlane {name}");
    for _ in 0..ATTEMPTS {
        let before = object.data["status"].clone();
        let mut status = match &before {
            Value::Null => json!({}),
            status => status.clone(),
        };
        change(&mut status);
        if status == before {
            return Ok(());
        }
        object.data["status"] = status;
        let params = PostParams {
            field_manager: Some(MANAGER.to_owned()),
            ..PostParams::default()
        };
        match api.replace_status(&name, &params, &object).await {
            Err(error) if is_conflict(&error) => {
                object = api.get(&name).await.map_err(Error::client(what()))?;
            }
            done => return done.map(drop).map_err(Error::client(what())),
        }
    }
    Err(Error::waiting(
        "a quiet moment to write the HostedControlPlane's status",
    ))
}

/// Sets conditions. The transition time changes only with the status.
pub(super) fn set(status: &mut Value, wanted: &[Wanted], generation: Option<i64>, now: Timestamp) {
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    let Some(conditions) = status["conditions"].as_array_mut() else {
        return;
    };
    for condition in wanted {
        let about = condition.about.as_str();
        let known = conditions.iter().position(|it| it["type"] == about);
        let index = known.unwrap_or_else(|| {
            conditions.push(json!({ "type": about }));
            conditions.len() - 1
        });
        condition.write(&mut conditions[index], generation, now);
    }
}

// === impl Wanted ===

impl Wanted {
    fn write(&self, known: &mut Value, generation: Option<i64>, now: Timestamp) {
        let status = self.status.as_str();
        if known["status"] != status || !known["lastTransitionTime"].is_string() {
            // Conditions have no parts of seconds.
            let seconds = Timestamp::from_second(now.as_second()).unwrap_or(now);
            known["lastTransitionTime"] = json!(seconds.to_string());
        }
        known["status"] = json!(status);
        known["reason"] = json!(self.reason);
        known["message"] = json!(self.message);
        if let Some(generation) = generation {
            known["observedGeneration"] = json!(generation);
        }
    }
}

#[cfg(test)]
mod tests {
    use support::testing::{Answer, Expect, Scenario};

    use super::*;

    fn wanted(status: Status) -> Wanted {
        Wanted {
            about: ClusterCondition::DataPlaneConnectionAvailable,
            status,
            reason: "AsExpected",
            message: "all is well".to_owned(),
        }
    }

    #[test]
    fn a_time_changes_with_the_status_only() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let mut status = json!({ "conditions": [{ "type": "Available", "status": "True" }] });
        set(
            &mut status,
            &[wanted(Status::True)],
            Some(3),
            at("2030-01-01T00:00:00.5Z"),
        );
        let first = status.clone();
        set(
            &mut status,
            &[wanted(Status::True)],
            Some(3),
            at("2030-01-02T00:00:00Z"),
        );
        assert_eq!(status, first);
        assert_eq!(
            status["conditions"][1]["lastTransitionTime"],
            "2030-01-01T00:00:00Z"
        );
        set(
            &mut status,
            &[wanted(Status::False)],
            Some(3),
            at("2030-01-03T00:00:00Z"),
        );
        assert_eq!(
            status["conditions"][1]["lastTransitionTime"],
            "2030-01-03T00:00:00Z"
        );
        assert_eq!(status["conditions"].as_array().unwrap().len(), 2);
    }

    #[tokio::test]
    async fn o05_only_a_change_is_written_and_a_conflict_decided_anew() {
        let one = "/apis/hypershift.openshift.io/v1beta1/namespaces/a/hostedcontrolplanes/b";
        let object = |version: &str, count: i64| {
            json!({
                "apiVersion": "hypershift.openshift.io/v1beta1", "kind": "HostedControlPlane",
                "metadata": { "name": "b", "namespace": "a", "resourceVersion": version },
                "status": { "nodeCount": count, "other": version },
            })
        };
        let put = Expect::put(&format!("{one}/status"));
        let scenario = Scenario::new([
            put.clone().answer(Answer::error(409, "Conflict")),
            Expect::get(one).answer(Answer::ok(&object("2", 1))),
            put.body(json!({ "metadata": { "resourceVersion": "2" }, "status": { "nodeCount": 2, "other": "2" } }))
                .answer(Answer::ok(&object("3", 2))),
        ]);
        let api: Api<DynamicObject> = Api::namespaced_with(scenario.client(), "a", &resource());
        let known = serde_json::from_value(object("1", 1)).unwrap();
        write(&api, &known, |status| status["nodeCount"] = json!(2))
            .await
            .unwrap();
        let known = serde_json::from_value(object("3", 2)).unwrap();
        write(&api, &known, |status| status["nodeCount"] = json!(2))
            .await
            .unwrap();
        scenario.finish();
    }
}
