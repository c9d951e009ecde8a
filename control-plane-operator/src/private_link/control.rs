//! The controller of the AWSEndpointServices of one control plane: creates them, asks AWS, and writes what has become of it.

use std::collections::BTreeMap;
use std::time::Duration;

use api::hypershift::v1beta1::platform::PlatformType;
use api::hypershift::v1beta1::{AwsEndpointService, AwsEndpointServiceStatus, HostedControlPlane};
use control_plane_component::Objects;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ObjectReference, Service};
use kube::api::ApiResource;
use kube::runtime::events::Recorder;
use kube::runtime::reflector::Store;
use kube::runtime::reflector::store::Writer;
use kube::{Api, Resource as _, ResourceExt as _};
use serde_json::{Value, json};
use support::apply::{Applier, Part, merge};
use support::controller::{
    Action, DEADLINE, Manager, ObjectKey, Reconciler, Settings, record_generation,
};
use support::error::chain;
use support::reconcile::is_missing;
use support::shutdown::Drain;
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;

use super::aws::Aws;
use super::endpoint::{self, Progress, Removal};
use super::error::{Error, failed_to};
use super::objects::{self, EXTERNALS, FINALIZER, LINKS};
use super::plan::{Cluster, Link, Problem, ROUTER};
use super::{requests, status};
use crate::hosted_control_plane::aws::access::Access;
use crate::hosted_control_plane::is_paused;
use crate::tool;

const MANAGER: &str = "control-plane-operator-private-link";
/// How AWSEndpointServices are reconciled.
const SETTINGS: Settings = Settings {
    controller: "awsendpointservice",
    kind: "AWSEndpointService",
    concurrency: 2,
    // Objects of a control plane change together.
    debounce: Duration::from_millis(500),
    deadline: DEADLINE,
};
/// When AWS is asked again whether all is as it is to be.
const RESYNC: Duration = Duration::from_mins(5);
/// When it is tried again after a problem, and when AWS gets too many requests.
const RETRY_INTERVAL: Duration = Duration::from_secs(20);
const THROTTLED_INTERVAL: Duration = Duration::from_mins(2);
/// When a deletion goes on.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// How long an AWSEndpointService that was deleted is not created again: the deletion of a cluster begins with them, and goes on
/// with the control plane when they are gone.
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

/// What is known of an AWSEndpointService beside its object.
#[derive(Debug, Default)]
struct Memory {
    /// What was reconciled, and until when AWS is not asked again about the same.
    settled: Option<(u64, Instant)>,
    /// When its finalizer was removed.
    deleted: Option<Instant>,
}

/// Reconciles AWSEndpointServices.
struct Controller<'a, H, O> {
    client: kube::Client,
    namespace: &'a str,
    applier: Applier,
    recorder: Recorder,
    store: Store<AwsEndpointService>,
    view: View<'a, H, O>,
    access: Mutex<Access>,
    memory: Mutex<BTreeMap<String, Memory>>,
}

/// Reconciles until the shutdown begins, if the control plane is on AWS.
pub(crate) async fn run<H, O>(
    client: &kube::Client,
    namespace: &str,
    view: View<'_, H, O>,
    manager: &Manager,
    mut drain: Drain,
) where
    H: Fn() -> Option<HostedControlPlane>,
    O: Fn() -> Objects,
{
    let mut changes = view.changes.clone();
    // The platform never changes; elsewhere, nothing is watched.
    while (view.hcp)().is_none_or(|hcp| hcp.spec.platform.type_ != PlatformType::Aws) {
        tokio::select! {
            next = changes.changed() => if next.is_err() { return },
            () = drain.begun() => return,
        }
    }
    let writer = Writer::<AwsEndpointService>::default();
    let store = writer.as_reader();
    let requests = requests::all(client, namespace, writer, changes);
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
        access: Mutex::new(Access::new(client.clone(), namespace)),
        memory: Mutex::default(),
    };
    manager
        .run(SETTINGS, &controller, requests, ready, drain)
        .await;
}

// === impl Controller ===

impl<H, O> Reconciler for Controller<'_, H, O>
where
    H: Fn() -> Option<HostedControlPlane>,
    O: Fn() -> Objects,
{
    type Error = Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, Error> {
        let live = self.find(&key.name);
        record_generation(live.as_ref().and_then(|it| it.metadata.generation));
        let Some(hcp) = (self.view.hcp)() else {
            return Ok(Action::await_change());
        };
        if let Some(live) = live
            .as_ref()
            .filter(|it| it.metadata.deletion_timestamp.is_some())
        {
            return self.remove(&hcp, live).await;
        }
        if hcp.metadata.deletion_timestamp.is_some()
            || hcp.spec.release_image != self.view.operate_on
        {
            return Ok(Action::await_change());
        }
        if is_paused(&hcp, Timestamp::now()) {
            // The end of a pause is no change.
            return Ok(Action::requeue(RESYNC));
        }
        let objects = (self.view.objects)();
        if !objects::is_private(&hcp) {
            return self.retire(&objects, &key.name, live.as_deref()).await;
        }
        let balancer = objects::balancer(&objects, &key.name);
        if let Some(balancer) = &balancer
            && LINKS.contains(&key.name.as_str())
        {
            let desired = objects::link(&hcp, &key.name, balancer);
            if !live
                .as_ref()
                .is_some_and(|live| objects::has(live, &desired))
            {
                return self.apply(&key.name, live.is_some(), desired).await;
            }
        }
        match live {
            Some(live) if LINKS.contains(&key.name.as_str()) => self.ensure(&hcp, &live).await,
            Some(_) | None => Ok(Action::await_change()),
        }
    }

    fn events(&self, key: &ObjectKey) -> Option<(Recorder, ObjectReference)> {
        let found = self.find(&key.name)?;
        Some((self.recorder.clone(), found.object_ref(&())))
    }
}

impl<H, O> Controller<'_, H, O> {
    fn find(&self, name: &str) -> Option<std::sync::Arc<AwsEndpointService>> {
        self.store.find(|found| found.name_any() == name)
    }

    /// Creates the AWSEndpointService, or brings it up to date.
    async fn apply(&self, name: &str, exists: bool, desired: Value) -> Result<Action, Error> {
        if !exists {
            let memory = self.memory.lock().await;
            let deleted = memory.get(name).and_then(|it| it.deleted);
            let rest = deleted.map(|at| HOLD_OFF.saturating_sub(at.elapsed()));
            if let Some(rest) = rest.filter(|it| !it.is_zero()) {
                return Ok(Action::requeue(rest));
            }
        }
        self.applier.apply_value(&resource(), desired).await?;
        // Its event requests the next reconcile.
        Ok(Action::await_change())
    }

    /// A cluster that is public has no Services for private links any more: their load balancers are deleted after the endpoints.
    async fn retire(
        &self,
        objects: &Objects,
        name: &str,
        live: Option<&AwsEndpointService>,
    ) -> Result<Action, Error> {
        if let Some(live) = live
            && objects::balancer(objects, name).is_none()
        {
            let deleted = support::apply::delete(&self.api(), &live.metadata).await;
            match deleted {
                Err(error) if !is_missing(&error) => {
                    return Err(failed_to("delete", live)(error));
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(Action::await_change())
    }

    async fn ensure(
        &self,
        hcp: &HostedControlPlane,
        live: &AwsEndpointService,
    ) -> Result<Action, Error> {
        let (name, link) = (live.name_any(), status::link(live));
        if link.service.is_empty() {
            // The hypershift-operator has not made the VPC endpoint service yet.
            return Ok(Action::await_change());
        }
        let input = status::digest(hcp, live);
        if let Some(rest) = self.rest(&name, input).await {
            return Ok(Action::requeue(rest));
        }
        let made = self.try_ensure(hcp, &link).await;
        self.report(live, &made).await?;
        match &made {
            // Its event requests the next reconcile.
            Ok(Progress::Record(_)) => Ok(Action::requeue(POLL_INTERVAL)),
            Ok(Progress::Done(done)) => {
                if name == ROUTER {
                    self.externals(hcp, done).await?;
                }
                Ok(self.settle(name, input, RESYNC).await)
            }
            Err(problem) => Ok(self.settle(name, input, pause(problem)).await),
        }
    }

    async fn try_ensure(&self, hcp: &HostedControlPlane, link: &Link) -> Result<Progress, Problem> {
        let cluster = Cluster::of(hcp)?;
        let aws = Aws::of(hcp, &mut *self.access.lock().await).await?;
        endpoint::ensure(&aws, &cluster, link).await
    }

    async fn remove(
        &self,
        hcp: &HostedControlPlane,
        live: &AwsEndpointService,
    ) -> Result<Action, Error> {
        let mut finalizers = live.finalizers().to_vec();
        finalizers.retain(|it| it != FINALIZER);
        if finalizers.len() == live.finalizers().len() {
            return Ok(Action::await_change());
        }
        let (name, input) = (live.name_any(), status::digest(hcp, live));
        if let Some(rest) = self.rest(&name, input).await {
            return Ok(Action::requeue(rest));
        }
        let removed = self.try_remove(hcp, &status::link(live)).await;
        match removed {
            Ok(Removal::Done) => {
                let patch = json!({ "metadata": { "finalizers": finalizers } });
                self.merge(live, Part::Main, patch).await?;
                let deleted = Memory {
                    settled: None,
                    deleted: Some(Instant::now()),
                };
                self.memory.lock().await.insert(name, deleted);
                Ok(Action::await_change())
            }
            Ok(Removal::Waiting) => Ok(self.settle(name, input, POLL_INTERVAL).await),
            Err(problem) => {
                let pause = pause(&problem);
                self.report(live, &Err(problem)).await?;
                Ok(self.settle(name, input, pause).await)
            }
        }
    }

    async fn try_remove(&self, hcp: &HostedControlPlane, link: &Link) -> Result<Removal, Problem> {
        let cluster = Cluster::of(hcp)?;
        let aws = Aws::of(hcp, &mut *self.access.lock().await).await?;
        endpoint::remove(&aws, &cluster, link).await
    }

    /// The Services for names outside of the private zone.
    async fn externals(
        &self,
        hcp: &HostedControlPlane,
        status: &AwsEndpointServiceStatus,
    ) -> Result<(), Error> {
        let host = status.dns_names.first().map(String::as_str);
        let desired = objects::externals(hcp, host.unwrap_or_default());
        let is_desired = |name: &str| desired.iter().any(|it| it["metadata"]["name"] == name);
        let names = EXTERNALS.map(|(name, _)| name);
        let others: Vec<_> = names.into_iter().filter(|name| !is_desired(name)).collect();
        let services = ApiResource::erase::<Service>(&());
        self.applier
            .prune(&services, self.namespace, &others, |it| {
                objects::is_external(it.labels.as_ref())
            })
            .await?;
        for service in desired {
            self.applier.ensure_value(&services, service).await?;
        }
        Ok(())
    }

    /// Writes the status, if it is another one.
    async fn report(
        &self,
        live: &AwsEndpointService,
        made: &Result<Progress, Problem>,
    ) -> Result<(), Error> {
        if let Err(Problem::Aws(error)) = made {
            tracing::warn!(error = chain(error), "Failed to reconcile a VPC endpoint");
        }
        let before = live.status.clone().unwrap_or_default();
        let after = status::status(&before, made, live.metadata.generation, Timestamp::now());
        match status::patch(&before, &after) {
            Some(patch) => self.merge(live, Part::Status, patch).await,
            None => Ok(()),
        }
    }

    /// How long AWS is not asked again, if it was asked about the same: other things of the control plane change often.
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

    /// Changes the object, if it is still as it was read.
    async fn merge(
        &self,
        live: &AwsEndpointService,
        part: Part,
        change: Value,
    ) -> Result<(), Error> {
        let merged = merge(&self.api(), &live.metadata, part, change, MANAGER).await;
        merged.map_err(failed_to("patch", live))
    }

    fn api(&self) -> Api<AwsEndpointService> {
        Api::namespaced(self.client.clone(), self.namespace)
    }
}

fn resource() -> ApiResource {
    ApiResource::erase::<AwsEndpointService>(&())
}

fn pause(problem: &Problem) -> Duration {
    if problem.is_throttled() {
        return THROTTLED_INTERVAL;
    }
    RETRY_INTERVAL
}
