//! Watches pools, and all that a pool is decided on: one reconciliation for each that something happened to.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use api::annotations::node_pool::NODE_POOL;
use api::group::Side;
use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use api::hypershift::v1beta1::node_pool::NodePool;
use api::names::control_plane_namespace;
use futures::stream::{self, BoxStream};
use futures::{FutureExt as _, StreamExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{ApiResource, DynamicObject};
use kube::core::PartialObjectMeta;
use kube::runtime::controller::{self, Action, ReconcileRequest, applier, trigger_self};
use kube::runtime::events::{Event, EventType};
use kube::runtime::reflector::{ObjectRef, Store, store};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use support::error::chain;
use support::health::Check;
use support::reconcile::{Backoff, Report as _, Retry, is_missing};
use support::shutdown::Drain;
use support::watch::is_blind;

use super::error::Error;
use super::names;
use super::write::Writer;
use crate::capi::Capi;
use crate::context::Context;
use crate::scope::Scope;
use crate::watches;

/// Pools that are dealt with at once.
const AT_ONCE: u16 = 8;

type Meta<K> = PartialObjectMeta<K>;
type Request = Result<ReconcileRequest<NodePool>, watcher::Error>;
type Requests = BoxStream<'static, Request>;

/// What all pools have in common.
pub(super) struct Pools {
    pub(super) ctx: Arc<Context>,
    pub(super) writer: Writer,
    failing: Mutex<HashMap<ObjectRef<NodePool>, Backoff>>,
}

/// Reconciles until the process is to end; what is under way then is finished.
pub(crate) async fn run(ctx: Arc<Context>, check: &Check, mut drain: Drain) {
    let client = ctx.client.clone();
    let (reader, writer) = store();
    let api: Api<NodePool> = Api::all(client.clone());
    let events = watcher(api, watches::config())
        .backoff(Backoff::default())
        .modify(slim)
        .reflect(writer)
        .inspect(|event| {
            if event.is_ok() {
                check.pass();
            }
        })
        .touched_objects();
    let mut requests: Vec<BoxStream<'_, Request>> = vec![trigger_self(events, ()).boxed()];
    requests.extend(others(&client, &reader, ctx.scope));
    let ending = drain.clone();
    let requests = stream::select_all(requests).take_until(async move { drain.begun().await });
    let mut unknown = std::pin::pin!(ends_unknown(reader.clone(), ending));
    let pools = Arc::new(Pools {
        writer: Writer::new(client),
        failing: Mutex::default(),
        ctx,
    });
    let config = controller::Config::default().concurrency(AT_ONCE);
    let mut done = std::pin::pin!(applier(
        |pool, pools: Arc<Pools>| reconciled(pool, pools).boxed(),
        |pool, error, pools| pools.failed(&pool, error),
        pools,
        reader,
        requests,
        config,
    ));
    loop {
        let done = tokio::select! {
            done = done.next() => done,
            () = &mut unknown => None,
        };
        let Some(done) = done else {
            return;
        };
        if let Err(controller::Error::QueueError(error)) = done {
            tracing::debug!(problem = chain(&error), "Watch of NodePools failed");
            if is_absent(&error) {
                check.pass();
            } else if is_blind(&error) {
                check.fail(chain(&error));
            }
        }
    }
}

/// When the process is to end and no pool was ever read: what waits for the first of them would wait for ever.
async fn ends_unknown(pools: Store<NodePool>, mut drain: Drain) {
    drain.begun().await;
    if pools.wait_until_ready().now_or_never().is_some() {
        std::future::pending::<()>().await;
    }
}

/// Where the kind is not, there is no pool to reconcile.
fn is_absent(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => is_missing(error),
        watcher::Error::WatchError(_) | watcher::Error::NoResourceVersion => false,
    }
}

/// Everything but pools. A watch that fails is begun anew, and fails nothing else: the kinds of one side may be absent.
fn others(client: &kube::Client, pools: &Store<NodePool>, scope: Scope) -> Vec<Requests> {
    let clusters: Api<Meta<HostedCluster>> = Api::all(client.clone());
    let maps: Api<Meta<ConfigMap>> = Api::all(client.clone());
    let secrets: Api<Meta<Secret>> = Api::all(client.clone());
    let (of_cluster, of_map) = (pools.clone(), pools.clone());
    let mut requests = vec![
        watched(clusters, move |it| of_clusters(&it.metadata, &of_cluster)),
        watched(maps, move |it| of_maps(&it.metadata, &of_map)),
        watched(secrets, |it| annotated(&it.metadata)),
    ];
    for kind in scope.sides().iter().copied().flat_map(kinds) {
        let api: Api<Meta<DynamicObject>> = Api::all_with(client.clone(), &kind);
        requests.push(watched(api, |it| annotated(&it.metadata)));
    }
    requests
}

fn kinds(side: Side) -> [ApiResource; 4] {
    let capi = Capi::new(side);
    [
        capi.machine_deployment(),
        capi.machine_set(),
        capi.machine(),
        capi.machine_health_check(),
    ]
}

/// The pools that something happened to, seen by metadata: no more of it is read or kept.
fn watched<K>(
    api: Api<Meta<K>>,
    pools: impl Fn(&Meta<K>) -> Vec<ObjectRef<NodePool>> + Send + 'static,
) -> Requests
where
    K: Clone + Debug + DeserializeOwned + Send + 'static,
    Meta<K>: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    watcher(api, watches::config())
        .backoff(Backoff::default())
        .touched_objects()
        .flat_map(move |event| {
            let pools = event.map(|it| pools(&it)).unwrap_or_default();
            stream::iter(
                pools
                    .into_iter()
                    .map(|pool| Ok(ReconcileRequest::from(pool))),
            )
        })
        .boxed()
}

fn annotated(found: &ObjectMeta) -> Vec<ObjectRef<NodePool>> {
    let reference = found
        .annotations
        .as_ref()
        .and_then(|it| it.get(NODE_POOL.key()));
    let pool = reference.and_then(|it| it.split_once('/'));
    pool.map(|(namespace, name)| ObjectRef::new(name).within(namespace))
        .into_iter()
        .collect()
}

fn of_clusters(found: &ObjectMeta, pools: &Store<NodePool>) -> Vec<ObjectRef<NodePool>> {
    let name = found.name.as_deref().unwrap_or_default();
    of(pools, |pool| {
        pool.metadata.namespace == found.namespace && pool.spec.cluster_name == name
    })
}

/// ConfigMaps that pools name, and all of the control plane's that bear one of our labels.
fn of_maps(found: &ObjectMeta, pools: &Store<NodePool>) -> Vec<ObjectRef<NodePool>> {
    let namespace = found.namespace.as_deref().unwrap_or_default();
    let name = found.name.as_deref().unwrap_or_default();
    let mut labels = found.labels.iter().flatten();
    let is_put_forward = labels.any(|(key, _)| key.starts_with("hypershift.openshift.io/"));
    of(pools, |pool| {
        let home = pool.metadata.namespace.as_deref().unwrap_or_default();
        let is_named = home == namespace && pool.spec.config.iter().any(|it| it.name == name);
        is_named
            || is_put_forward && control_plane_namespace(home, &pool.spec.cluster_name) == namespace
    })
}

fn of(pools: &Store<NodePool>, is_meant: impl Fn(&NodePool) -> bool) -> Vec<ObjectRef<NodePool>> {
    let pools = pools.state();
    let meant = pools.iter().filter(|pool| is_meant(pool));
    meant
        .map(|pool| ObjectRef::from_obj(pool.as_ref()))
        .collect()
}

/// What is not looked at is not kept.
fn slim(pool: &mut NodePool) {
    pool.metadata.managed_fields = None;
    pool.status = None;
}

async fn reconciled(pool: Arc<NodePool>, pools: Arc<Pools>) -> Result<Action, Error> {
    let reference = ObjectRef::from_obj(pool.as_ref());
    let action = super::reconcile(pool, Arc::clone(&pools)).await?;
    pools.succeeded(&reference);
    Ok(action)
}

// === impl Pools ===

impl Pools {
    fn succeeded(&self, pool: &ObjectRef<NodePool>) {
        self.failing
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(pool);
    }

    /// What to do after an error.
    fn failed(&self, pool: &NodePool, error: &Error) -> Action {
        self.ctx.metrics.error(error.step(), error.reason());
        let retry = error.retry();
        let reference = ObjectRef::from_obj(pool);
        let mut failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        let pause = failing.entry(reference).or_default().pause(retry);
        if retry == Retry::Backoff {
            let (namespace, name) = (pool.namespace(), names::of(pool));
            tracing::warn!(namespace, name, error = chain(error), "NodePool failed");
            self.ctx.evidence.doubt();
            self.tell(pool, error);
        }
        Action::requeue(pause)
    }

    /// Sends an Event. Whether it arrives changes nothing.
    fn tell(&self, pool: &NodePool, error: &Error) {
        let event = Event {
            type_: EventType::Warning,
            reason: "ReconcileError".to_owned(),
            note: Some(chain(error).chars().take(1000).collect()),
            action: "Reconcile".to_owned(),
            secondary: None,
        };
        let (recorder, regarding) = (self.ctx.recorder.clone(), pool.object_ref(&()));
        tokio::spawn(async move { recorder.publish(&event, &regarding).await });
    }
}
