//! Records ignition requests of machines: an annotation once, and an Event each time.

use std::collections::{BTreeMap, HashSet};

use api::annotations::node_pool::IGNITION_REACHED;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Api;
use kube::api::PostParams;
use kube::core::PartialObjectMeta;
use support::apply;
use support::error::chain;
use support::reconcile::{is_conflict, is_missing};
use tokio::sync::mpsc;

use super::token::Token;

/// Source component of Events.
const COMPONENT: &str = "ignition-server";

/// Records each received Secret name, until all senders are dropped.
pub(super) async fn run(
    client: kube::Client,
    namespace: String,
    mut names: mpsc::Receiver<String>,
) {
    let mut annotated = HashSet::new();
    while let Some(name) = names.recv().await {
        match record(&client, &namespace, &name, annotated.contains(&name)).await {
            Ok(()) => {
                annotated.insert(name);
            }
            Err(error) => {
                let problem = chain(&error);
                tracing::warn!(secret = name, problem, "Failed to record ignition request");
            }
        }
    }
}

async fn record(
    client: &kube::Client,
    namespace: &str,
    name: &str,
    is_annotated: bool,
) -> kube::Result<()> {
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let Some(found) = api.get_metadata_opt(name).await? else {
        return Ok(());
    };
    let metadata = found.metadata;
    if !is_annotated && !Token::is_reached(&metadata) {
        annotate_reached(&api, &metadata).await?;
    }
    let events: Api<Event> = Api::namespaced(client.clone(), namespace);
    events
        .create(&PostParams::default(), &event(namespace, &metadata))
        .await
        .map(drop)
}

/// Annotates the Secret; retried after a conflict with a token rotation.
async fn annotate_reached(api: &Api<Secret>, read: &ObjectMeta) -> kube::Result<()> {
    let annotations = BTreeMap::from([(IGNITION_REACHED.key(), "True")]);
    let mut read = read.clone();
    loop {
        match apply::annotate(api, &read, &annotations, COMPONENT).await {
            Err(error) if is_conflict(&error) => {
                let name = read.name.unwrap_or_default();
                let found: PartialObjectMeta<Secret> = api.get_metadata(&name).await?;
                read = found.metadata;
            }
            Err(error) if is_missing(&error) => return Ok(()),
            done => return done.map(drop),
        }
    }
}

fn event(namespace: &str, secret: &ObjectMeta) -> Event {
    let now = Some(Time(Timestamp::now()));
    Event {
        metadata: ObjectMeta {
            generate_name: Some("ignition-".to_owned()),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        },
        involved_object: ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Secret".to_owned()),
            name: secret.name.clone(),
            namespace: Some(namespace.to_owned()),
            uid: secret.uid.clone(),
            ..ObjectReference::default()
        },
        type_: Some("Normal".to_owned()),
        reason: Some("GetPayload".to_owned()),
        message: Some("Machine fetched its Ignition config".to_owned()),
        source: Some(EventSource {
            component: Some(COMPONENT.to_owned()),
            ..EventSource::default()
        }),
        first_timestamp: now.clone(),
        last_timestamp: now,
        count: Some(1),
        ..Event::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use support::testing::{Answer, Expect, Scenario};

    use super::*;

    #[tokio::test]
    async fn reached_annotation_is_written_once() {
        let one = "/api/v1/namespaces/a/secrets/token-x";
        let fresh =
            json!({ "metadata": { "name": "token-x", "uid": "u", "resourceVersion": "1" } });
        let newer =
            json!({ "metadata": { "name": "token-x", "uid": "u", "resourceVersion": "2" } });
        let event = || {
            Expect::post("/api/v1/namespaces/a/events")
                .body(json!({ "reason": "GetPayload", "involvedObject": { "name": "token-x", "uid": "u" } }))
                .answer(Answer::ok(&json!({ "metadata": {}, "involvedObject": {} })))
        };
        let scenario = Scenario::new([
            Expect::get(one).answer(Answer::ok(&fresh)),
            Expect::patch(one).answer(Answer::error(409, "Conflict")),
            Expect::get(one).answer(Answer::ok(&newer)),
            Expect::patch(one)
                .body(json!({ "metadata": {
                    "resourceVersion": "2",
                    "annotations": { "hypershift.openshift.io/ignition-reached": "True" },
                } }))
                .answer(Answer::ok(&newer)),
            event(),
            Expect::get(one).answer(Answer::ok(&newer)),
            event(),
        ]);
        let (sender, receiver) = mpsc::channel(2);
        for _ in 0..2 {
            sender.send("token-x".to_owned()).await.unwrap();
        }
        drop(sender);
        run(scenario.client(), "a".to_owned(), receiver).await;
        scenario.finish();
    }
}
