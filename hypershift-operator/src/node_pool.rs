//! The NodePool reconciler: dereference, validate, plan, write, update the status.
//!
//! ```text
//! NodePool, HostedCluster, release, ConfigMaps, Secrets, Cluster API's objects
//!    │ dereference (client)
//!    v
//! Facts ── validate (pure) ─> conditions, release, configuration, hashes, machine
//!    │                            │ plan (pure)
//!    │                            v
//!    │   token and user-data Secrets, template, MachineDeployment or MachineSet, MachineHealthChecks,
//!    │   ConfigMaps; or, if a check refuses the pool, what it has (held, pure)
//!    v                            │ write (client)
//! status (pure) <─────────────────┘
//! ```
//!
//! The configuration, the release and the names of what they refer to make a hash. It names the two Secrets, and with
//! them a new hash is a new machine; the template's name is a hash of its content for the same reason. Nothing that the
//! API server defaults is in either.

mod adoption;
mod autoscaling;
mod boot_image;
mod capacity;
mod cluster_config;
mod conditions;
mod config;
mod control;
mod core_config;
mod deletion;
mod dereference;
pub(crate) mod detached;
mod error;
mod facts;
#[cfg(test)]
mod fixtures;
mod haproxy;
mod health_check;
mod held;
mod manifest;
mod mirrored;
mod observed;
mod os_stream;
mod plan;
mod proxy;
mod secrets;
mod status;
pub(crate) mod token;
mod token_fields;
mod tuning;
mod unreadable;
mod validate;
mod workload;
mod write;

use std::sync::Arc;
use std::time::Duration;

use api::group::CapiTypes;
use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use api::hypershift::v1beta1::node_pool::NodePool;
use jiff::Timestamp;
use kube::api::DynamicObject;
use kube::{Api, ResourceExt as _};
use support::controller::{Action, ObjectKey};
use tokio::time::Instant;

use crate::cache::{self, Cache, Object, Part, Recheck, Snapshot};
use crate::cluster_ref::Id;
use crate::control_plane_namespace::{self, ControlPlaneNamespace, Namespace};
use crate::pause::{Pause, pause};
use conditions::Conditions;
use control::Pools;
pub(crate) use control::run;
pub(crate) use error::Error;
use facts::Facts;
use held::Held;
use plan::Plan;
use validate::{Blocked, Evaluation};

/// Requeue interval for registries and other things that are not watched.
const RETRY_INTERVAL: Duration = Duration::from_secs(30);
/// Shortest requeue interval while an image is being read.
const RETRY_SOON: Duration = Duration::from_secs(1);

/// Reconciles a NodePool: reads what it depends on, evaluates it, writes its machines and its status.
async fn reconcile(found: Arc<DynamicObject>, pools: Arc<Pools>) -> Result<Action, Error> {
    let key = ObjectKey::of(&found.metadata);
    let owner = unreadable::owner(&found);
    let cache = &pools.ctx.cache;
    if let Some(action) = cache.pools.unchanged(&key, &cache.index) {
        return Ok(action);
    }
    // client
    let _pass = pools.ctx.in_flight.begin(&owner).await;
    let snapshot = snapshot(&owner, cache);
    let Some(object) = read(&found, &pools).await? else {
        return Ok(Action::await_change());
    };
    let cluster = cluster(&owner, &pools).await?;
    let client = &pools.ctx.client;
    let namespace = control_plane_namespace::find(client, &owner.namespace, &owner.name).await;
    let namespace = namespace.map_err(Error::Owner)?;
    let types = match &cluster {
        Some(cluster) => {
            let types = pools.ctx.reconciled_types(cluster, &namespace).await;
            types.map_err(Error::Owner)?
        }
        None => None,
    };
    let pool: NodePool = match unreadable::typed(&object) {
        Ok(pool) => pool,
        Err(problem) if types.is_some() || cluster.is_none() => {
            if let Some(pool) = unreadable::for_deletion(&object) {
                let deleted = delete(&pool, cluster.is_some(), types, &namespace, &pools).await;
                // The API server may accept no change of an object that does not match its schema.
                if !deleted.as_ref().is_err_and(Error::is_invalid) {
                    return deleted;
                }
            }
            return unreadable::report(&object, "the NodePool", &problem, &pools).await;
        }
        // Another operator owns the cluster, and reports it.
        Err(_) => return Ok(Action::await_change()),
    };
    if pool.metadata.deletion_timestamp.is_some() {
        return delete(&pool, cluster.is_some(), types, &namespace, &pools).await;
    }
    let (Some(cluster), Some(types)) = (cluster, types) else {
        return Ok(Action::await_change());
    };
    let cluster: HostedCluster = match unreadable::typed(&cluster) {
        Ok(cluster) if is_live(&cluster) => cluster,
        Ok(_) => return Ok(Action::await_change()),
        Err(problem) => {
            let cluster = format!("HostedCluster {owner}");
            return unreadable::report(&object, &cluster, &problem, &pools).await;
        }
    };
    if let Some(message) = namespace.refusal(&owner.namespace, &owner.name) {
        deletion::explain(&pool, "ForeignNamespace", message, &pools.writer).await?;
        return Ok(Action::requeue(RETRY_INTERVAL));
    }
    let snapshot =
        snapshot.and_then(|snapshot| cache.index.also(snapshot, &inputs(&pool, &cluster)));
    let mut facts = dereference::facts(pool, cluster, types, &namespace, &pools.ctx).await?;
    let missing_image = boot_image::record(&mut facts, &pools).await?;
    // pure
    let before = facts.pool.status.clone().unwrap_or_default().conditions;
    let mut conditions = Conditions::new(before, facts.pool.metadata.generation, facts.now);
    unreadable::clear(&mut conditions);
    let (found, outcome) = validate::validate(&facts, &mut conditions);
    boot_image::report(missing_image.as_deref(), &found, &mut conditions);
    let plan = match outcome {
        Ok(()) if facts.has_kubeconfig() => {
            plan::plan(&facts, &found, &conditions, &token::fresh())
        }
        Ok(()) | Err(_) => None,
    };
    let held = match plan {
        Some(_) => None,
        None => held::held(&facts, &conditions),
    };
    status::observe(&facts, &mut conditions);
    // client
    let is_done = write(&facts, &found, plan.as_ref(), held.as_ref(), &pools).await?;
    let status = status::status(&facts, &found, &conditions, is_done);
    pools.writer.status(&facts.pool, &status).await?;
    let action = boot_image::retry(missing_image.is_some(), again(&facts, outcome));
    // After another write of this reconcile there is none: its event requests the next one.
    let watched = (cache::NODE_POOLS, &unreadable::resource());
    let manager = pools.writer.applier.manager();
    let metadata = &facts.pool.metadata;
    let snapshot = snapshot.and_then(|it| cache.after_own_status(it, watched, manager, metadata));
    if let Some((snapshot, again)) = snapshot.zip(settled(&facts, outcome, action)) {
        cache.pools.settle(key, snapshot, again);
    }
    Ok(action)
}

/// The watched versions of what the pool reads of its cluster, and of the control plane namespace.
fn snapshot(owner: &Id, cache: &Cache) -> Option<Snapshot> {
    let cluster = (
        cache::POOL_INPUTS,
        owner.namespace.as_str(),
        owner.name.as_str(),
    );
    cache.snapshot(&owner.control_plane_namespace(), Part::All, &[cluster])
}

/// Objects that the pool and its cluster refer to.
fn inputs<'a>(pool: &'a NodePool, cluster: &'a HostedCluster) -> Vec<Object<'a>> {
    let home = cluster.metadata.namespace.as_deref().unwrap_or_default();
    let spec = &cluster.spec;
    let key = spec.ssh_key.iter().map(|it| &it.name);
    let kubevirt = spec.platform.kubevirt.as_ref();
    let credentials = kubevirt.and_then(|it| it.credentials.as_ref());
    let credentials = credentials.and_then(|it| it.infra_kube_config_secret.as_ref());
    let secrets = key.chain([&spec.pull_secret.name]);
    let secrets = secrets.chain(credentials.map(|it| &it.name));
    let bundle = spec.additional_trust_bundle.iter().map(|it| &it.name);
    let references = pool.spec.config.iter().chain(&pool.spec.tuning_config);
    let maps = bundle.chain(references.map(|it| &it.name));
    let secrets = secrets.map(|name| (cache::SECRETS, home, name.as_str()));
    let maps = maps.map(|name| (cache::CONFIG_MAPS, home, name.as_str()));
    secrets.chain(maps).collect()
}

/// When a pool whose watched inputs are unchanged is reconciled again.
fn settled(facts: &Facts, outcome: Result<(), Blocked>, action: Action) -> Option<Recheck> {
    let time = |rest| Recheck::At(Instant::now() + rest);
    match (&facts.release, outcome) {
        (Ok(_), Err(Blocked::Soon)) => None,
        (Ok(_), _) => Some(action.requeue_after().map_or(Recheck::OnChange, time)),
        (Err(unread), _) if unread.is_watched() => Some(Recheck::Every(RETRY_INTERVAL)),
        // The registry is contacted again.
        (Err(_), _) => None,
    }
}

/// Applies the plan, or goes on with what the pool has if there is none; returns whether the rollout is complete.
async fn write(
    facts: &Facts,
    found: &Evaluation,
    plan: Option<&Plan>,
    held: Option<&Held>,
    pools: &Pools,
) -> Result<bool, Error> {
    let writer = &pools.writer;
    let Some(before) = &facts.owned else {
        return Ok(false);
    };
    if found.is_paused {
        if let Some(running) = workload::running(facts.workload.as_ref()) {
            let namespace = confirm(facts, before, pools).await?;
            let kind = workload::kind(facts.capi(), facts.upgrade_type());
            writer.pause(&namespace, &kind, running).await?;
        }
        return Ok(false);
    }
    let Some(plan) = plan else {
        if let Some(held) = held {
            let namespace = confirm(facts, before, pools).await?;
            writer.ensure_finalizer(facts).await?;
            writer.hold(&namespace, facts, held).await?;
        }
        return Ok(false);
    };
    let namespace = confirm(facts, before, pools).await?;
    writer.ensure_finalizer(facts).await?;
    writer.apply(&namespace, facts, plan).await?;
    writer
        .mirror(&namespace, facts, &mirrored::maps(facts))
        .await?;
    // Based on what was read before: controllers have not observed the new objects yet.
    let is_done = status::is_rolled_out(facts, plan);
    let annotations = status::bookkeeping(facts, found, plan, is_done);
    writer.remember(&facts.pool, &annotations).await?;
    Ok(is_done)
}

/// Reading may have taken a while: the current owner of the namespace counts.
async fn confirm(
    facts: &Facts,
    before: &ControlPlaneNamespace,
    pools: &Pools,
) -> Result<ControlPlaneNamespace, Error> {
    let Id { namespace, name } = &Id::of(&facts.cluster.metadata);
    let client = &pools.ctx.client;
    let found = control_plane_namespace::confirm(client, namespace, name, before).await;
    found.map_err(Error::Owner)
}

async fn delete(
    pool: &NodePool,
    has_cluster: bool,
    types: Option<CapiTypes>,
    namespace: &Namespace,
    pools: &Pools,
) -> Result<Action, Error> {
    let has_finalizer = pool
        .metadata
        .finalizers
        .iter()
        .flatten()
        .any(|it| it == write::FINALIZER);
    if !has_finalizer {
        return Ok(Action::await_change());
    }
    let all_types = match types {
        Some(types) => vec![types],
        None if has_cluster => return Ok(Action::await_change()),
        None => orphan(namespace, pools).await?,
    };
    if all_types.is_empty() {
        return Ok(Action::requeue(RETRY_INTERVAL));
    }
    let pause = deletion::delete(pool, &all_types, namespace, &pools.writer).await?;
    Ok(pause.map_or_else(Action::await_change, Action::requeue))
}

/// The types to clean up after a pool whose cluster does not exist: all of this operator's, or none while there are
/// objects on another one.
async fn orphan(namespace: &Namespace, pools: &Pools) -> Result<Vec<CapiTypes>, Error> {
    let own = pools.ctx.scope.capi_types();
    let found = pools.ctx.observed_groups.of(namespace).await;
    let found = found
        .map_err(|error| Error::Owner(error.into()))?
        .capi_types();
    if found.iter().all(|types| own.contains(types)) {
        return Ok(own.to_vec());
    }
    Ok(Vec::new())
}

async fn read(pool: &DynamicObject, pools: &Pools) -> Result<Option<DynamicObject>, Error> {
    let (namespace, name) = (pool.namespace().unwrap_or_default(), pool.name_any());
    let client = pools.ctx.client.clone();
    let api: Api<DynamicObject> = Api::namespaced_with(client, &namespace, &unreadable::resource());
    let read = api.get_opt(&name).await;
    read.map_err(Error::read(format!("NodePool {namespace}/{name}")))
}

async fn cluster(id: &Id, pools: &Pools) -> Result<Option<DynamicObject>, Error> {
    if id.name.is_empty() {
        return Ok(None);
    }
    let read = pools.ctx.hosted_clusters(id).get_opt(&id.name).await;
    let mut read = read.map_err(Error::read(format!("HostedCluster {id}")))?;
    if let Some(cluster) = &mut read {
        // A change of what is left requests a reconcile.
        cache::pool_inputs(cluster);
    }
    Ok(read)
}

/// Whether machines can be created for the cluster: it is not being deleted, and has an infrastructure ID.
fn is_live(cluster: &HostedCluster) -> bool {
    cluster.metadata.deletion_timestamp.is_none() && cluster.spec.infra_id.is_some()
}

/// The requeue interval of the pool.
fn again(facts: &Facts, outcome: Result<(), Blocked>) -> Action {
    let paused = match pause(facts.pool.spec.paused_until.as_deref(), facts.now) {
        Pause::Until(time) => Some(time),
        Pause::Active | Pause::Over | Pause::Indefinite | Pause::Unreadable(_) => None,
    };
    let times = paused.into_iter().chain(token::expiries(&facts.tokens));
    let times = times.map(|time| until(time, facts.now));
    let next = times.chain(capacity::retry(facts)).min();
    match (outcome, next) {
        (Err(Blocked::Soon), _) => Action::requeue(retry_interval(facts)),
        (_, Some(next)) => Action::requeue(next),
        (_, None) => Action::await_change(),
    }
}

/// Images are read within seconds as a rule; what fails is not fixed as soon.
fn retry_interval(facts: &Facts) -> Duration {
    let in_progress = facts.release.as_ref().err().and_then(|it| it.retry_after);
    in_progress.map_or(RETRY_INTERVAL, |it| it.clamp(RETRY_SOON, RETRY_INTERVAL))
}

fn until(time: Timestamp, now: Timestamp) -> Duration {
    let rest = Duration::try_from(time.duration_since(now)).unwrap_or_default();
    rest + Duration::from_secs(1)
}

#[cfg(test)]
mod tests;
