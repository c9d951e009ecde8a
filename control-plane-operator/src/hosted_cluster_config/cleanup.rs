//! Deletes what the hosted cluster has made in the cloud, before the cluster is deleted.
//!
//! It could not be found once its API server is deleted. The creation of more is blocked meanwhile by a webhook whose
//! Service does not exist. It begins when the cluster version operator is stopped, which would bring things back.

mod report;
mod skip;
mod steps;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use api::annotations::cluster::CLEANUP_CLOUD_RESOURCES;
use api::conditions::ClusterCondition;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::DynamicObject;
use kube::{Api, ResourceExt as _};

use super::context::Context;
use super::control_plane::{self, DesiredCondition};
use super::error::Error;
use skip::{Failures, Skip};

/// Polling interval for the remaining resources.
pub(super) const PERIOD: Duration = Duration::from_secs(5);
const API_SERVER: &str = "kube-apiserver";

/// What is remembered between passes: consecutive failures to connect.
#[derive(Debug, Default)]
pub(super) struct State(Mutex<Failures>);

// === impl State ===

impl State {
    fn skip(&self) -> Option<Skip> {
        self.failures().skip(Timestamp::now())
    }

    fn record(&self, is_failure: bool) {
        self.failures().record(is_failure, Timestamp::now());
    }

    fn failures(&self) -> std::sync::MutexGuard<'_, Failures> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Cleans up if the cluster is being deleted and requests it.
pub(super) async fn pass(ctx: &Context) -> Result<(), Error> {
    // Of any release: a deletion does not wait for the end of an upgrade.
    let found = ctx.any_control_plane().await?;
    let Some(object) = found.filter(|it| it.metadata.deletion_timestamp.is_some()) else {
        return Ok(());
    };
    if !is_due(&object) {
        return steps::release_registry(ctx, &object).await;
    }
    let desired = clean_up(ctx, &object).await?;
    let generation = object.metadata.generation;
    control_plane::write(&ctx.control_planes(), &object, |status| {
        control_plane::set(
            status,
            std::slice::from_ref(&desired),
            generation,
            Timestamp::now(),
        );
    })
    .await
}

/// Runs the steps unless the cluster cannot be reached, and returns what is to be reported.
async fn clean_up(ctx: &Context, object: &DynamicObject) -> Result<DesiredCondition, Error> {
    if let Some(skip) = skip(ctx).await? {
        return Ok(report::skipped(skip));
    }
    let done = steps::run(ctx, object).await;
    ctx.cleanup
        .record(done.errors.iter().any(skip::is_connection));
    Ok(report::condition(&done))
}

/// Why the cluster cannot be cleaned up.
async fn skip(ctx: &Context) -> Result<Option<Skip>, Error> {
    let skip = ctx.cleanup.skip();
    if skip.is_none() && !has_api_server(ctx).await? {
        return Ok(Some(Skip::KubeApiServerUnavailable));
    }
    Ok(skip)
}

/// Whether a cluster that is being deleted asks for the cleanup, and its cluster version operator is stopped.
fn is_due(object: &DynamicObject) -> bool {
    let desired = CLEANUP_CLOUD_RESOURCES.get(object.annotations());
    let conditions = object.data["status"]["conditions"].as_array();
    let is_stopped = conditions.into_iter().flatten().any(|condition| {
        condition["type"] == ClusterCondition::CvoScaledDown.as_str()
            && condition["status"] == "True"
    });
    matches!(desired, Ok(Some(true))) && is_stopped
}

async fn has_api_server(ctx: &Context) -> Result<bool, Error> {
    let api: Api<Deployment> = Api::namespaced(ctx.management.clone(), &ctx.namespace);
    let found = api.get_metadata_opt(API_SERVER).await;
    let found = found.map_err(Error::client(format!("get Deployment {API_SERVER}")))?;
    Ok(found.is_some())
}

#[cfg(test)]
mod tests;
