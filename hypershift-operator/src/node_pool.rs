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
mod workload;
mod write;

use std::sync::Arc;
use std::time::Duration;

use api::group::Side;
use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use api::hypershift::v1beta1::node_pool::NodePool;
use api::names::control_plane_namespace;
use jiff::Timestamp;
use kube::runtime::controller::Action;
use kube::{Api, Resource as _};

use crate::hosted_cluster::{Id, protocol};
use crate::pause::{Pause, pause};
use crate::scope::{self, Duty, duty, verdict};
use conditions::Conditions;
use control::Pools;
pub(crate) use control::run;
use error::Error;
use facts::Facts;
use judge::{Found, Stop};
use plan::Plan;

/// When a registry, or something else that is not watched, is asked again.
const SOON: Duration = Duration::from_secs(30);

/// Has a pool be as it is wanted.
async fn reconcile(pool: Arc<NodePool>, pools: Arc<Pools>) -> Result<Action, Error> {
    // client
    let owner = Id {
        namespace: pool.metadata.namespace.clone().unwrap_or_default(),
        name: pool.spec.cluster_name.clone(),
    };
    let _pass = pools.ctx.passes.begin(&owner).await;
    let Some(pool) = read(&pool, &pools).await? else {
        return Ok(Action::await_change());
    };
    let cluster = cluster(&pool, &pools).await?;
    let namespace = control_plane_namespace(
        pool.metadata.namespace.as_deref().unwrap_or_default(),
        &pool.spec.cluster_name,
    );
    let side = match &cluster {
        Some(cluster) => side(cluster, &namespace, &pools).await?,
        None => None,
    };
    if pool.metadata.deletion_timestamp.is_some() {
        return delete(&pool, cluster.is_some(), side, &namespace, &pools).await;
    }
    let (Some(cluster), Some(side)) = (cluster.filter(is_live), side) else {
        return Ok(Action::await_change());
    };
    let facts = dereference::facts(pool, cluster, side, namespace, &pools.ctx).await?;
    // pure
    let before = facts.pool.status.clone().unwrap_or_default().conditions;
    let mut conditions = Conditions::new(before, facts.pool.metadata.generation, facts.now);
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
    if found.is_paused {
        let kind = workload::kind(facts.capi(), facts.upgrade_type());
        writer.pause(&kind, facts).await?;
        return Ok(false);
    }
    let Some(plan) = plan else {
        return Ok(false);
    };
    writer.hold(facts).await?;
    writer.apply(facts, plan).await?;
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
    namespace: &str,
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
async fn orphan(namespace: &str, pools: &Pools) -> Result<Vec<Side>, Error> {
    let own = pools.ctx.scope.sides();
    let found = pools.ctx.evidence.of(namespace).await;
    let found = found.map_err(Error::Owner)?.sides();
    if found.iter().all(|side| own.contains(side)) {
        return Ok(own.to_vec());
    }
    Ok(Vec::new())
}

async fn read(pool: &NodePool, pools: &Pools) -> Result<Option<NodePool>, Error> {
    let namespace = pool.metadata.namespace.as_deref().unwrap_or_default();
    let api: Api<NodePool> = Api::namespaced(pools.ctx.client.clone(), namespace);
    let read = api.get_opt(names::of(pool)).await;
    read.map_err(Error::read(format!("NodePool {}", names::reference(pool))))
}

async fn cluster(pool: &NodePool, pools: &Pools) -> Result<Option<HostedCluster>, Error> {
    let namespace = pool.metadata.namespace.as_deref().unwrap_or_default();
    let api: Api<HostedCluster> = Api::namespaced(pools.ctx.client.clone(), namespace);
    let name = &pool.spec.cluster_name;
    let read = api.get_opt(name).await;
    read.map_err(Error::read(format!("HostedCluster {namespace}/{name}")))
}

/// On which side the cluster's objects are, if it is ours.
async fn side(
    cluster: &HostedCluster,
    namespace: &str,
    pools: &Pools,
) -> Result<Option<Side>, Error> {
    let ctx = &pools.ctx;
    let protocol = protocol(cluster.meta());
    if !scope::may_own(ctx.scope, &protocol) {
        return Ok(None);
    }
    let expected = scope::expected(&protocol);
    let evidence = ctx.evidence.of_marked(namespace, expected).await;
    let evidence = evidence.map_err(Error::Owner)?;
    Ok(match duty(ctx.scope, &verdict(&protocol, evidence)) {
        Duty::Own => Some(scope::side(ctx.scope, &protocol, evidence)),
        Duty::Leave | Duty::Mark(_) | Duty::Report => None,
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
