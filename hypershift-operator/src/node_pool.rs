//! What happens to one node pool: dereference, judge, plan, write, tell.
//!
//! ```text
//! NodePool, HostedCluster, release, ConfigMaps, Secrets, Cluster API's objects
//!    │ dereference (client)
//!    v
//! Facts ── judge (pure) ──> conditions, release, configuration, hashes, machine
//!    │                            │ plan (pure)
//!    │                            v
//!    │   token and user-data Secrets, template, MachineDeployment or MachineSet, MachineHealthChecks
//!    v                            │ write (client)
//! status (pure) <─────────────────┘
//! ```
//!
//! The configuration, the release and the names of what they refer to make a hash. It names the two Secrets, and with
//! them a new hash is a new machine; the template's name is a hash of its content for the same reason. Nothing that the
//! API server adds by itself is in either.

mod autoscaling;
pub(crate) mod canonical;
mod cluster_config;
mod conditions;
mod config;
mod control;
mod deletion;
mod dereference;
mod error;
mod facts;
#[cfg(test)]
mod fixtures;
mod haproxy;
mod health_check;
mod judge;
pub(crate) mod machines;
mod manifest;
pub(crate) mod names;
mod observed;
mod plan;
mod secrets;
mod status;
mod token;
mod unreadable;
mod workload;
mod write;

use std::sync::Arc;
use std::time::Duration;

use api::group::Side;
use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use api::hypershift::v1beta1::node_pool::NodePool;
use jiff::Timestamp;
use kube::api::DynamicObject;
use kube::{Api, ResourceExt as _};
use ownership::{Decision, capi_types, decide, evaluate, expected_types, may_reconcile};
use support::controller::Action;

use crate::control_plane_namespace::{self, Namespace};
use crate::hosted_cluster::{Id, protocol};
use crate::pause::{Pause, pause};
use conditions::Conditions;
use control::Pools;
pub(crate) use control::run;
use error::Error;
use facts::Facts;
use judge::{Found, Stop};
use plan::Plan;

/// When a registry, or something else that is not watched, is asked again.
const SOON: Duration = Duration::from_secs(30);

/// Reconciles a NodePool: reads what it depends on, evaluates it, writes its machines and its status.
async fn reconcile(found: Arc<DynamicObject>, pools: Arc<Pools>) -> Result<Action, Error> {
    // client
    let owner = unreadable::owner(&found);
    let _pass = pools.ctx.passes.begin(&owner).await;
    let Some(object) = read(&found, &pools).await? else {
        return Ok(Action::await_change());
    };
    let cluster = cluster(&owner, &pools).await?;
    let client = &pools.ctx.client;
    let namespace = control_plane_namespace::find(client, &owner.namespace, &owner.name).await;
    let namespace = namespace.map_err(Error::Owner)?;
    let side = match &cluster {
        Some(cluster) => side(cluster, &namespace, &pools).await?,
        None => None,
    };
    let pool: NodePool = match unreadable::typed(&object) {
        Ok(pool) => pool,
        Err(problem) if side.is_some() || cluster.is_none() => {
            return unreadable::report(&object, "the NodePool", &problem, &pools).await;
        }
        // Another operator owns the cluster, and reports it.
        Err(_) => return Ok(Action::await_change()),
    };
    if pool.metadata.deletion_timestamp.is_some() {
        return delete(&pool, cluster.is_some(), side, &namespace, &pools).await;
    }
    let (Some(cluster), Some(side)) = (cluster, side) else {
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
        // Namespaces are not watched here.
        deletion::explain(&pool, "ForeignNamespace", message, &pools.writer).await?;
        return Ok(Action::requeue(SOON));
    }
    let facts = dereference::facts(pool, cluster, side, &namespace, &pools.ctx).await?;
    // pure
    let before = facts.pool.status.clone().unwrap_or_default().conditions;
    let mut conditions = Conditions::new(before, facts.pool.metadata.generation, facts.now);
    unreadable::clear(&mut conditions);
    let (found, outcome) = judge::judge(&facts, &mut conditions);
    let plan = match outcome {
        Ok(()) if facts.has_kubeconfig() => {
            plan::plan(&facts, &found, &conditions, &token::fresh())
        }
        Ok(()) | Err(_) => None,
    };
    status::observe(&facts, &mut conditions);
    // client
    let is_done = write(&facts, &found, plan.as_ref(), &pools).await?;
    let status = status::status(&facts, &found, &conditions, is_done);
    pools.writer.status(&facts.pool, &status).await?;
    Ok(again(&facts, outcome))
}

/// Writes what is planned, and tells whether the nodes are what they should be.
async fn write(
    facts: &Facts,
    found: &Found,
    plan: Option<&Plan>,
    pools: &Pools,
) -> Result<bool, Error> {
    let writer = &pools.writer;
    let Some(namespace) = &facts.owned else {
        return Ok(false);
    };
    if found.is_paused {
        let kind = workload::kind(facts.capi(), facts.upgrade_type());
        writer.pause(namespace, &kind, facts).await?;
        return Ok(false);
    }
    let Some(plan) = plan else {
        return Ok(false);
    };
    writer.hold(facts).await?;
    writer.apply(namespace, facts, plan).await?;
    // Judged by what was read before: what is new has not been seen by anybody yet.
    let is_done = status::is_rolled_out(facts, plan);
    let annotations = status::bookkeeping(facts, found, plan, is_done);
    writer.remember(&facts.pool, &annotations).await?;
    Ok(is_done)
}

async fn delete(
    pool: &NodePool,
    has_cluster: bool,
    side: Option<Side>,
    namespace: &Namespace,
    pools: &Pools,
) -> Result<Action, Error> {
    let is_held = pool
        .metadata
        .finalizers
        .iter()
        .flatten()
        .any(|it| it == write::FINALIZER);
    if !is_held {
        return Ok(Action::await_change());
    }
    let sides = match side {
        Some(side) => vec![side],
        None if has_cluster => return Ok(Action::await_change()),
        None => orphan(namespace, pools).await?,
    };
    if sides.is_empty() {
        return Ok(Action::requeue(SOON));
    }
    let pause = deletion::delete(pool, &sides, namespace, &pools.writer).await?;
    Ok(pause.map_or_else(Action::await_change, Action::requeue))
}

/// The sides to be cleaned up after a pool whose cluster is gone: all of this operator's, or none while there are
/// objects on another one.
async fn orphan(namespace: &Namespace, pools: &Pools) -> Result<Vec<Side>, Error> {
    let own = pools.ctx.scope.sides();
    let found = pools.ctx.evidence.of(namespace).await;
    let found = found.map_err(|error| Error::Owner(error.into()))?.sides();
    if found.iter().all(|side| own.contains(side)) {
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
    read.map_err(Error::read(format!("HostedCluster {id}")))
}

/// On which side the cluster's objects are, if it is ours.
async fn side(
    cluster: &DynamicObject,
    namespace: &Namespace,
    pools: &Pools,
) -> Result<Option<Side>, Error> {
    let ctx = &pools.ctx;
    let protocol = namespace.protocol(protocol(&cluster.metadata));
    if !may_reconcile(ctx.scope, &protocol) {
        return Ok(None);
    }
    let expected = expected_types(&protocol);
    let evidence = ctx.evidence.of_annotated(namespace, expected).await;
    let evidence = evidence.map_err(|error| Error::Owner(error.into()))?;
    Ok(match decide(ctx.scope, &evaluate(&protocol, evidence)) {
        Decision::Reconcile => Some(capi_types(ctx.scope, &protocol, evidence)),
        Decision::Skip | Decision::Annotate(_) | Decision::ReportInvalid => None,
    })
}

/// Whether machines can be made for the cluster: it stays, and its infrastructure has an id.
fn is_live(cluster: &HostedCluster) -> bool {
    cluster.metadata.deletion_timestamp.is_none() && cluster.spec.infra_id.is_some()
}

/// When the pool is looked at again, if nothing happens meanwhile.
fn again(facts: &Facts, outcome: Result<(), Stop>) -> Action {
    let paused = match pause(facts.pool.spec.paused_until.as_deref(), facts.now) {
        Pause::Until(time) => Some(time),
        Pause::Active | Pause::Over | Pause::Indefinite | Pause::Unreadable(_) => None,
    };
    let times = paused.into_iter().chain(token::expiries(&facts.tokens));
    let next = times.map(|time| until(time, facts.now)).min();
    match (outcome, next) {
        (Err(Stop::Soon), _) => Action::requeue(SOON),
        (_, Some(next)) => Action::requeue(next),
        (_, None) => Action::await_change(),
    }
}

fn until(time: Timestamp, now: Timestamp) -> Duration {
    let rest = Duration::try_from(time.duration_since(now)).unwrap_or_default();
    rest + Duration::from_secs(1)
}
