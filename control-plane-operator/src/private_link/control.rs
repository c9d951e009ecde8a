//! The controller of the private links of one control plane: creates them, has the cloud's part done, and writes what has
//! become of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::hypershift::v1beta1::HostedControlPlane;
use control_plane_component::Objects;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ObjectReference, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ApiResource;
use kube::runtime::events::Recorder;
use kube::runtime::reflector::Store;
use kube::runtime::reflector::store::Writer;
use kube::{Api, Resource as _, ResourceExt as _};
use serde_json::{Value, json};
use support::apply::{Applier, Part, merge};
use support::controller::{Action, Manager, ObjectKey, Reconciler, record_generation};
use support::error::chain;
use support::reconcile::is_missing;
use support::shutdown::Drain;
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;

use super::error::{Error, failed_to};
use super::externals;
pub(super) use super::provider::{Next, Pass, Provider, Removed};
use super::requests;
use crate::hosted_control_plane::is_paused;
use crate::tool;

const MANAGER: &str = "control-plane-operator-private-link";
/// Objects of a control plane change together.
pub(super) const DEBOUNCE: Duration = Duration::from_millis(500);
/// When the cloud is asked again whether all is as it is to be.
pub(super) const RESYNC: Duration = Duration::from_mins(5);
/// When a deletion goes on.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// How long a link that was deleted is not created again: the deletion of a cluster begins with them, and goes on with the
/// control plane when they are gone.
const HOLD_OFF: Duration = Duration::from_mins(2);

/// What is read of the control plane.
pub(crate) struct View<'a, H, O> {
    pub(crate) hcp: H,
    pub(crate) objects: O,
    /// Changes of them.
    pub(crate) changes: watch::Receiver<u64>,
    /// The release that this operator is for.
    pub(crate) operate_on: &'a str,
}

/// What is known of a link beside its object.
#[derive(Debug, Default)]
struct Memory {
    /// What was reconciled, and until when the cloud is not asked again about the same.
    settled: Option<(u64, Instant)>,
    /// When its finalizer was removed.
    deleted: Option<Instant>,
}

/// Reconciles links.
struct Controller<'a, H, O, P: Provider> {
    client: kube::Client,
    namespace: &'a str,
    applier: Applier,
    recorder: Recorder,
    store: Store<P::Link>,
    view: View<'a, H, O>,
    provider: P,
    memory: Mutex<BTreeMap<String, Memory>>,
}

/// Reconciles until the shutdown begins.
pub(super) async fn run<H, O, P>(
    client: &kube::Client,
    namespace: &str,
    view: View<'_, H, O>,
    provider: P,
    manager: &Manager,
    drain: Drain,
) where
    H: Fn() -> Option<HostedControlPlane>,
    O: Fn() -> Objects,
    P: Provider,
{
    let writer = Writer::<P::Link>::default();
    let store = writer.as_reader();
    let changes = view.changes.clone();
    let requests = requests::all(client, namespace, writer, changes, P::SERVICES);
    let listed = store.clone();
    let ready = async move {
        // It fails only when the watch has ended.
        let _ = listed.wait_until_ready().await;
    };
    let controller = Controller {
        client: client.clone(),
        namespace,
        applier: Applier::new(client.clone(), MANAGER),
        recorder: tool::recorder(client, MANAGER),
        store,
        view,
        provider,
        memory: Mutex::default(),
    };
    manager
        .run(P::SETTINGS, &controller, requests, ready, drain)
        .await;
}

// === impl Controller ===

impl<H, O, P> Reconciler for Controller<'_, H, O, P>
where
    H: Fn() -> Option<HostedControlPlane>,
    O: Fn() -> Objects,
    P: Provider,
{
    type Error = Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, Error> {
        let live = self.find(&key.name);
        record_generation(live.as_ref().and_then(|it| it.meta().generation));
        let Some(hcp) = (self.view.hcp)() else {
            return Ok(Action::await_change());
        };
        let going = live.as_ref().filter(|it| is_deleting(it.meta()));
        if let Some(live) = going {
            return self.remove(&hcp, live).await;
        }
        if is_deleting(&hcp.metadata) {
            return self.release(&hcp, live.as_deref()).await;
        }
        if hcp.spec.release_image != self.view.operate_on {
            return Ok(Action::await_change());
        }
        if is_paused(&hcp, Timestamp::now()) {
            // The end of a pause is no change.
            return Ok(Action::requeue(RESYNC));
        }
        let objects = (self.view.objects)();
        let is_link = P::SERVICES.contains(&key.name.as_str());
        let desired = P::link(&hcp, &objects, &key.name).filter(|_| is_link);
        if !P::is_private(&hcp) {
            return self.retire(&hcp, desired.is_some(), live.as_deref()).await;
        }
        if let Some(desired) = desired
            && !live.as_ref().is_some_and(|live| P::has(live, &desired))
        {
            return self.apply(&hcp, &key.name, live.is_some(), desired).await;
        }
        match live {
            Some(live) if is_link => self.ensure(&hcp, &live).await,
            Some(_) | None => Ok(Action::await_change()),
        }
    }

    fn events(&self, key: &ObjectKey) -> Option<(Recorder, ObjectReference)> {
        let found = self.find(&key.name)?;
        Some((self.recorder.clone(), found.object_ref(&())))
    }
}

impl<H, O, P: Provider> Controller<'_, H, O, P> {
    fn find(&self, name: &str) -> Option<Arc<P::Link>> {
        self.store.find(|found| found.name_any() == name)
    }

    /// The other links, which are not being deleted.
    fn siblings(&self, name: &str) -> Vec<String> {
        let all = self.store.state();
        let others = all.iter().filter(|it| !is_deleting(it.meta()));
        let mut names: Vec<_> = others.map(|it| it.name_any()).collect();
        names.retain(|it| it != name);
        names.sort();
        names
    }

    /// Creates the link, or brings it up to date.
    async fn apply(
        &self,
        hcp: &HostedControlPlane,
        name: &str,
        exists: bool,
        desired: Value,
    ) -> Result<Action, Error> {
        if !exists {
            let memory = self.memory.lock().await;
            let deleted = memory.get(name).and_then(|it| it.deleted);
            let rest = deleted.map(|at| HOLD_OFF.saturating_sub(at.elapsed()));
            if let Some(rest) = rest.filter(|it| !it.is_zero()) {
                return Ok(Action::requeue(rest));
            }
        }
        if self.hold(hcp, true).await? {
            // The change of the control plane requests the next reconcile.
            return Ok(Action::requeue(POLL_INTERVAL));
        }
        self.applier.apply_value(&resource::<P>(), desired).await?;
        // Its event requests the next reconcile.
        Ok(Action::await_change())
    }

    /// A cluster that is public has no Services for private links any more: their load balancers are deleted after the endpoints.
    async fn retire(
        &self,
        hcp: &HostedControlPlane,
        is_published: bool,
        live: Option<&P::Link>,
    ) -> Result<Action, Error> {
        match live {
            Some(live) if !is_published => self.delete(live).await?,
            Some(_) => {}
            None if self.store.is_empty() => {
                self.hold(hcp, false).await?;
            }
            None => {}
        }
        Ok(Action::await_change())
    }

    /// A control plane that is being deleted: links go first, where their controllers have said so.
    async fn release(
        &self,
        hcp: &HostedControlPlane,
        live: Option<&P::Link>,
    ) -> Result<Action, Error> {
        if P::HOLD.is_some() {
            match live {
                Some(live) => self.delete(live).await?,
                None if self.store.is_empty() => {
                    self.hold(hcp, false).await?;
                }
                None => {}
            }
        }
        Ok(Action::await_change())
    }

    /// Adds the finalizer to the control plane or removes it, if there is one. Returns whether something has changed.
    async fn hold(&self, hcp: &HostedControlPlane, is_held: bool) -> Result<bool, Error> {
        let Some(finalizer) = P::HOLD else {
            return Ok(false);
        };
        let mut finalizers = hcp.finalizers().to_vec();
        if finalizers.iter().any(|it| it == finalizer) == is_held {
            return Ok(false);
        }
        finalizers.retain(|it| it != finalizer);
        if is_held {
            finalizers.push(finalizer.to_owned());
        }
        let api: Api<HostedControlPlane> = Api::namespaced(self.client.clone(), self.namespace);
        let change = json!({ "metadata": { "finalizers": finalizers } });
        let merged = merge(&api, &hcp.metadata, Part::Main, change, MANAGER).await;
        merged.map_err(failed_to("patch", "HostedControlPlane", &hcp.metadata))?;
        Ok(true)
    }

    async fn ensure(&self, hcp: &HostedControlPlane, live: &P::Link) -> Result<Action, Error> {
        if !P::is_offered(live) {
            // The hypershift-operator has not done its part yet.
            return Ok(Action::await_change());
        }
        let name = live.name_any();
        let siblings = self.siblings(&name);
        let input = P::digest(hcp, live, &siblings);
        if let Some(rest) = self.rest(&name, input).await {
            return Ok(Action::requeue(rest));
        }
        if self.hold(hcp, true).await? {
            return Ok(Action::requeue(POLL_INTERVAL));
        }
        let Pass {
            metadata,
            status,
            externals,
            further,
            next,
        } = self.provider.ensure(hcp, live, &siblings).await;
        if let Some(change) = metadata {
            self.merge(live, Part::Main, change).await?;
        }
        if let Some(change) = status {
            self.merge(live, Part::Status, change).await?;
        }
        if let Some(externals) = externals {
            self.externals(externals).await?;
        }
        for (resource, object) in further {
            if let Err(error) = self.applier.apply_value(&resource, object).await {
                let kind = resource.kind;
                tracing::debug!(kind, error = chain(&error), "Failed to apply");
            }
        }
        match next {
            // Its event requests the next reconcile.
            Next::Continue => Ok(Action::requeue(POLL_INTERVAL)),
            Next::Rest(pause) => Ok(self.settle(name, input, pause).await),
        }
    }

    async fn remove(&self, hcp: &HostedControlPlane, live: &P::Link) -> Result<Action, Error> {
        let mut finalizers = live.finalizers().to_vec();
        finalizers.retain(|it| it != P::FINALIZER);
        if finalizers.len() == live.finalizers().len() {
            return Ok(Action::await_change());
        }
        let name = live.name_any();
        let siblings = self.siblings(&name);
        let input = P::digest(hcp, live, &siblings);
        if let Some(rest) = self.rest(&name, input).await {
            return Ok(Action::requeue(rest));
        }
        match self.provider.remove(hcp, live, &siblings).await {
            Removed::Done => {
                if siblings.is_empty() {
                    // Without an endpoint, they lead nowhere, and hide the public names of a cluster that is public now.
                    self.externals(Vec::new()).await?;
                }
                let change = json!({ "metadata": { "finalizers": finalizers } });
                self.merge(live, Part::Main, change).await?;
                let deleted = Memory {
                    settled: None,
                    deleted: Some(Instant::now()),
                };
                self.memory.lock().await.insert(name, deleted);
                Ok(Action::await_change())
            }
            Removed::Waiting => Ok(self.settle(name, input, POLL_INTERVAL).await),
            Removed::Failed(status, pause) => {
                if let Some(change) = status {
                    self.merge(live, Part::Status, change).await?;
                }
                Ok(self.settle(name, input, pause).await)
            }
        }
    }

    /// The Services for names outside of the private zone.
    async fn externals(&self, desired: Vec<Value>) -> Result<(), Error> {
        let is_desired = |name: &str| desired.iter().any(|it| it["metadata"]["name"] == name);
        let names = externals::NAMES.map(|(name, _)| name);
        let others: Vec<_> = names.into_iter().filter(|name| !is_desired(name)).collect();
        let services = ApiResource::erase::<Service>(&());
        self.applier
            .prune(&services, self.namespace, &others, |it| {
                externals::is_external(it.labels.as_ref(), P::EXTERNAL)
            })
            .await?;
        for service in desired {
            self.applier.ensure_value(&services, service).await?;
        }
        Ok(())
    }

    /// How long the cloud is not asked again, if it was asked about the same: other things of the control plane change often.
    async fn rest(&self, name: &str, input: u64) -> Option<Duration> {
        let memory = self.memory.lock().await;
        let (settled, until) = memory.get(name)?.settled?;
        let rest = until.saturating_duration_since(Instant::now());
        (settled == input && !rest.is_zero()).then_some(rest)
    }

    async fn settle(&self, name: String, input: u64, pause: Duration) -> Action {
        let settled = Some((input, Instant::now() + pause));
        self.memory.lock().await.entry(name).or_default().settled = settled;
        Action::requeue(pause)
    }

    async fn delete(&self, live: &P::Link) -> Result<(), Error> {
        let deleted = support::apply::delete(&self.api(), live.meta()).await;
        match deleted {
            Err(error) if !is_missing(&error) => {
                Err(failed_to("delete", &resource::<P>().kind, live.meta())(
                    error,
                ))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Changes the object, if it is still as it was read.
    async fn merge(&self, live: &P::Link, part: Part, change: Value) -> Result<(), Error> {
        let merged = merge(&self.api(), live.meta(), part, change, MANAGER).await;
        merged.map_err(failed_to("patch", &resource::<P>().kind, live.meta()))
    }

    fn api(&self) -> Api<P::Link> {
        Api::namespaced(self.client.clone(), self.namespace)
    }
}

fn resource<P: Provider>() -> ApiResource {
    ApiResource::erase::<P::Link>(&())
}

fn is_deleting(metadata: &ObjectMeta) -> bool {
    metadata.deletion_timestamp.is_some()
}

#[cfg(test)]
mod tests;
