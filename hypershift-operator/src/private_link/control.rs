//! The controller of the private links of one cloud: finds out whose a link is, has the cloud's part done, and writes what
//! has become of it.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::events::Recorder;
use kube::runtime::reflector::Store;
use kube::runtime::reflector::store::Writer;
use kube::{Api, Resource as _, ResourceExt as _};
use serde_json::{Map, Value, json};
use support::apply::{self, Part, merge};
use support::controller::{
    Action, DEADLINE, Failure, ObjectKey, Reconciler, Settings, record_generation,
};
use support::reconcile::is_missing;
use support::shutdown::Drain;

use super::inputs::{self, Owner};
use super::requests;
use crate::cache;
use crate::context::Context;
use crate::error::{Error, step};
use crate::names::CLUSTER;

const MANAGER: &str = "hypershift-operator-private-link";
/// Objects of a control plane change together.
const DEBOUNCE: Duration = Duration::from_millis(100);
/// When the cloud is asked again whether all is as it is to be.
pub(super) const RESYNC: Duration = Duration::from_mins(5);
/// When a deletion goes on.
pub(super) const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// A kind of private links.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kind {
    /// The name of its controller.
    pub(super) controller: &'static str,
    pub(super) name: &'static str,
    pub(super) resource: fn() -> ApiResource,
    /// The name of its watch.
    pub(super) watch: &'static str,
    /// Links that are reconciled at the same time.
    pub(super) concurrency: usize,
    /// The finalizer of this operator: what leads to the load balancer goes first.
    pub(super) finalizer: &'static str,
    /// Fields of the status that are read. Others may change without a reconcile.
    pub(super) recorded: &'static [&'static str],
}

/// What is done for a link.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// It is not a link of the Services that have one.
    Ignore,
    /// Its metadata or specification is changed first. That requests the next pass.
    Change(Value),
    /// The status is changed, if there is a change, and the cloud is asked again after this time.
    Report(Option<Value>, Duration),
    /// Another link has taken its place: it is deleted.
    Delete,
    /// Nothing is left in the cloud.
    Removed,
}

/// The part of a cloud.
pub(super) trait Provider {
    /// Its links.
    fn kind(&self) -> &'static Kind;

    /// Makes what a link is to lead to.
    async fn ensure(&self, found: &DynamicObject, owner: &Owner) -> Result<Step, Error>;

    /// Deletes it.
    async fn remove(&self, found: &DynamicObject, owner: &Owner) -> Result<Step, Error>;
}

/// Reconciles links.
struct Controller<'a, P> {
    ctx: &'a Arc<Context>,
    kind: &'static Kind,
    store: Store<DynamicObject>,
    provider: P,
}

/// Reconciles until the shutdown begins. Reconciles in flight are completed.
pub(super) async fn run<P: Provider>(ctx: &Arc<Context>, provider: P, drain: Drain) {
    let kind = provider.kind();
    let writer = Writer::new((kind.resource)());
    let store = writer.as_reader();
    let requests = requests::all(ctx, kind, writer);
    let synced = Arc::clone(&ctx.cache);
    let ready = async { synced.until_synced().await };
    let settings = Settings {
        controller: kind.controller,
        kind: kind.name,
        concurrency: kind.concurrency,
        debounce: DEBOUNCE,
        deadline: DEADLINE,
    };
    let controller = Controller {
        ctx,
        kind,
        store,
        provider,
    };
    ctx.controllers
        .run(settings, &controller, requests, ready, drain)
        .await;
}

// === impl Controller ===

impl<P: Provider> Reconciler for Controller<'_, P> {
    type Error = Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, Error> {
        let Some(found) = cache::get(&self.store, (self.kind.resource)(), key) else {
            return Ok(Action::await_change());
        };
        record_generation(found.metadata.generation);
        let Some(id) = inputs::id(&found, self.ctx) else {
            // Not an object of a control plane, or its namespace has not been seen yet: when it is, that requests a reconcile.
            return Ok(Action::requeue(RESYNC));
        };
        let _pass = self.ctx.in_flight.begin(&id).await;
        let Some(owner) = inputs::owner(id, &found, self.ctx).await? else {
            return Ok(Action::requeue(RESYNC));
        };
        let step = if found.metadata.deletion_timestamp.is_none() {
            self.provider.ensure(&found, &owner).await?
        } else if has(&found, self.kind.finalizer) {
            self.provider.remove(&found, &owner).await?
        } else {
            Step::Ignore
        };
        self.carry_out(&found, step).await
    }

    async fn failed(&self, _: &ObjectKey, failure: &Failure<Error>) {
        self.ctx.metrics.error(step(failure), failure.reason());
    }

    fn events(&self, key: &ObjectKey) -> Option<(Recorder, ObjectReference)> {
        let resource = (self.kind.resource)();
        let found = cache::get(&self.store, resource.clone(), key)?;
        let object = found.object_ref(&resource);
        Some((self.ctx.recorder.clone(), object))
    }
}

impl<P> Controller<'_, P> {
    async fn carry_out(&self, found: &DynamicObject, step: Step) -> Result<Action, Error> {
        match step {
            Step::Ignore => Ok(Action::await_change()),
            Step::Change(change) => {
                self.merge(found, Part::Main, change).await?;
                // The change requests the next reconcile.
                Ok(Action::requeue(POLL_INTERVAL))
            }
            Step::Report(change, again) => {
                if let Some(change) = change {
                    self.merge(found, Part::Status, change).await?;
                }
                Ok(Action::requeue(again))
            }
            Step::Delete => {
                self.delete(found).await?;
                // Its event requests the next reconcile.
                Ok(Action::await_change())
            }
            Step::Removed => {
                let mut finalizers = found.finalizers().to_vec();
                finalizers.retain(|it| it != self.kind.finalizer);
                let change = json!({ "metadata": { "finalizers": finalizers } });
                self.merge(found, Part::Main, change).await?;
                Ok(Action::await_change())
            }
        }
    }

    /// Changes the object, if it is still as it was read.
    async fn merge(&self, found: &DynamicObject, part: Part, change: Value) -> Result<(), Error> {
        let merged = merge(&self.api(found), &found.metadata, part, change, MANAGER).await;
        merged.map_err(|source| Error::Write {
            object: self.object(found),
            source,
        })
    }

    /// Deletes the object, unless another one has its name now.
    async fn delete(&self, found: &DynamicObject) -> Result<(), Error> {
        match apply::delete(&self.api(found), &found.metadata).await {
            Err(error) if is_missing(&error) => Ok(()),
            deleted => deleted.map_err(|source| Error::Delete {
                object: self.object(found),
                source,
            }),
        }
    }

    fn api(&self, found: &DynamicObject) -> Api<DynamicObject> {
        let namespace = found.namespace().unwrap_or_default();
        let (client, resource) = (self.ctx.client.clone(), (self.kind.resource)());
        Api::namespaced_with(client, &namespace, &resource)
    }

    fn object(&self, found: &DynamicObject) -> String {
        let namespace = found.namespace().unwrap_or_default();
        format!("{} {namespace}/{}", self.kind.name, found.name_any())
    }
}

/// The change of metadata and specification, if there is one. Pure.
pub(super) fn change(
    found: &DynamicObject,
    owner: &Owner,
    finalizer: &str,
    spec: &Map<String, Value>,
) -> Option<Value> {
    let cluster = owner.id.to_string();
    let is_annotated = found.annotations().get(CLUSTER) == Some(&cluster);
    let none = json!([]);
    let is_same = |(field, wanted): (&String, &Value)| {
        let live = &found.data["spec"][field.as_str()];
        live == wanted || live.is_null() && *wanted == none
    };
    if has(found, finalizer) && is_annotated && spec.iter().all(is_same) {
        return None;
    }
    let mut finalizers = found.finalizers().to_vec();
    if !has(found, finalizer) {
        finalizers.push(finalizer.to_owned());
    }
    let mut change = json!({
        "metadata": { "finalizers": finalizers, "annotations": { CLUSTER: cluster } },
    });
    if !spec.is_empty() {
        change["spec"] = json!(spec);
    }
    Some(change)
}

fn has(found: &DynamicObject, finalizer: &str) -> bool {
    found.finalizers().iter().any(|it| it == finalizer)
}

#[cfg(test)]
mod tests;
