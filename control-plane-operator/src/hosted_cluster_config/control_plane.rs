//! Reads the HostedControlPlane, and writes its status.
//!
//! Its status has other writers, and fields that must be `null`. Therefore it is replaced with a resource version
//! precondition, and only when something differs.

use api::conditions::{ClusterCondition, Status};
use api::hypershift::v1beta1::HostedControlPlane;
use jiff::Timestamp;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, PostParams};
use serde_json::{Value, json};
use support::reconcile::is_conflict;

use super::error::Error;

/// Maximum attempts after conflicts.
const ATTEMPTS: usize = 5;
/// The longest message of a condition that the API accepts, in characters; here in bytes.
const MESSAGE: usize = 32_768;
/// Field manager.
const MANAGER: &str = "hosted-cluster-config-operator";

/// The desired state of a condition. Its reason is text of this program, or copied from the hosted cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DesiredCondition<R = &'static str> {
    pub(super) type_: ClusterCondition,
    pub(super) status: Status,
    pub(super) reason: R,
    pub(super) message: String,
}

/// Returns the API resource.
pub(super) fn resource() -> ApiResource {
    ApiResource::erase::<HostedControlPlane>(&())
}

/// Converts the object to its type.
pub(super) fn typed(object: &DynamicObject) -> Result<HostedControlPlane, Error> {
    let unusable = |error: serde_json::Error| Error::Form {
        object: "the HostedControlPlane".to_owned(),
        problem: error.to_string(),
    };
    let value = serde_json::to_value(object).map_err(unusable)?;
    serde_json::from_value(value).map_err(unusable)
}

/// Writes the status if `change` changes it. `known` may be outdated.
pub(super) async fn write(
    api: &Api<DynamicObject>,
    known: &DynamicObject,
    change: impl Fn(&mut Value),
) -> Result<(), Error> {
    let mut object = known.clone();
    let name = object.metadata.name.clone().unwrap_or_default();
    let what = || format!("update status of HostedControlPlane {name}");
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
        "a status update of the HostedControlPlane without a conflict",
    ))
}

/// Sets conditions. The transition time changes only with the status.
pub(super) fn set<R: AsRef<str>>(
    status: &mut Value,
    desired: &[DesiredCondition<R>],
    generation: Option<i64>,
    now: Timestamp,
) {
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    let Some(conditions) = status["conditions"].as_array_mut() else {
        return;
    };
    for condition in desired {
        let type_ = condition.type_.as_str();
        let known = conditions.iter().position(|it| it["type"] == type_);
        let index = known.unwrap_or_else(|| {
            conditions.push(json!({ "type": type_ }));
            conditions.len() - 1
        });
        condition.write(&mut conditions[index], generation, now);
    }
}

/// A text in at most `length` bytes.
pub(super) fn limited(text: &str, length: usize) -> String {
    const DOTS: &str = "...";
    if text.len() <= length {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(length.saturating_sub(DOTS.len()));
    format!("{}{DOTS}", &text[..end])
}

// === impl DesiredCondition ===

impl<R: AsRef<str>> DesiredCondition<R> {
    fn write(&self, known: &mut Value, generation: Option<i64>, now: Timestamp) {
        let status = self.status.as_str();
        if known["status"] != status || !known["lastTransitionTime"].is_string() {
            // Condition times have a resolution of one second.
            let seconds = Timestamp::from_second(now.as_second()).unwrap_or(now);
            known["lastTransitionTime"] = json!(seconds.to_string());
        }
        known["status"] = json!(status);
        known["reason"] = json!(self.reason.as_ref());
        known["message"] = json!(limited(&self.message, MESSAGE));
        if let Some(generation) = generation {
            known["observedGeneration"] = json!(generation);
        }
    }
}

#[cfg(test)]
mod tests {
    use support::testing::{Answer, Expect, Scenario};

    use super::*;

    fn desired(status: Status) -> DesiredCondition {
        DesiredCondition {
            type_: ClusterCondition::DataPlaneConnectionAvailable,
            status,
            reason: "AsExpected",
            message: "all is well".to_owned(),
        }
    }

    #[test]
    fn transition_time_changes_only_with_status() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let mut status = json!({ "conditions": [{ "type": "Available", "status": "True" }] });
        set(
            &mut status,
            &[desired(Status::True)],
            Some(3),
            at("2030-01-01T00:00:00.5Z"),
        );
        let first = status.clone();
        set(
            &mut status,
            &[desired(Status::True)],
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
            &[desired(Status::False)],
            Some(3),
            at("2030-01-03T00:00:00Z"),
        );
        assert_eq!(
            status["conditions"][1]["lastTransitionTime"],
            "2030-01-03T00:00:00Z"
        );
        assert_eq!(status["conditions"].as_array().unwrap().len(), 2);
    }

    /// One condition that is too long would make the API server reject the whole status.
    #[test]
    fn messages_are_as_long_as_the_api_accepts() {
        let message = |text: String| {
            let desired = DesiredCondition {
                message: text,
                ..desired(Status::False)
            };
            let mut status = json!({});
            set(&mut status, &[desired], None, Timestamp::UNIX_EPOCH);
            let message = &status["conditions"][0]["message"];
            message.as_str().unwrap().to_owned()
        };
        let longest = "a".repeat(MESSAGE);
        assert_eq!(message(longest.clone()), longest);
        let cut = message(format!("{longest}a"));
        assert_eq!(cut, format!("{}...", &longest[3..]));
        // A character is not cut.
        let cut = message(format!("a{}", "ä".repeat(MESSAGE)));
        assert!(cut.len() <= MESSAGE && cut.ends_with("ä..."));
    }

    #[tokio::test]
    async fn status_is_written_on_change_and_retried_on_conflict() {
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
