//! The configuration of nodes: for each class, a token and user data as a NodePool has them, which are written by the same
//! code. The pool of a class is no object.
//!
//! Classes are taken in the order of their age, and no more than [`MOST`](super::classes::MOST). A class that cannot be
//! configured keeps what it has, so that its nodes can be replaced.

mod class;
#[cfg(test)]
mod fixtures;
mod kubelet_maps;
mod release;
mod shared;

use std::time::Duration;

use api::karpenter::v1::OpenshiftEc2NodeClass;
use jiff::Timestamp;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use support::apply::{Applier, Part, merge};
use support::controller::Action;
use support::error::chain;
use support::reconcile::is_missing;

use super::classes::{CURRENT, Update, taken};
use super::context::{Context, MANAGER};
use super::control_plane::is_active;
use super::error::Error;
use super::kinds;
use crate::node_pool::token;
use release::{Resolved, resolve};
use shared::Shared;

/// Field manager of the part of a class's status that is about versions: another controller writes the rest.
const STATUS_MANAGER: &str = "karpenter-operator-versions";
/// When all classes are evaluated again: tokens of older configurations expire, and channels get releases.
const REVIEW: Duration = Duration::from_mins(10);
/// The same while a class waits for something that no watch reports.
const AGAIN: Duration = Duration::from_secs(30);

/// What new nodes of a class get.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Nodes {
    /// The hash of their configuration.
    hash: String,
    image: String,
    version: String,
}

/// Writes what differs.
pub(super) async fn pass(ctx: &Context) -> Result<Action, Error> {
    let now = Timestamp::now();
    let control_plane = ctx.control_plane().await?;
    let Some(hcp) = control_plane.filter(|it| is_active(it, now)) else {
        return Ok(Action::await_change());
    };
    let namespace = ctx.owned(&hcp).await?;
    let all = ctx.classes().await?;
    let mut failed = Vec::new();
    failed.extend(kubelet_maps::sweep(ctx, &namespace, &all).await.err());
    failed.extend(class::sweep(ctx, &namespace, &all).await.err());
    if taken(&all).next().is_none() {
        Error::all(failed)?;
        return Ok(Action::await_change());
    }
    let shared = Shared::read(ctx, &hcp, namespace, now).await?;
    let mut is_settled = true;
    for class in taken(&all) {
        match configure(ctx, class, &shared).await {
            Ok(is_done) => is_settled &= is_done,
            Err(error) => {
                // Users of the hosted cluster have to do something about some of them.
                tracing::warn!(
                    class = class.name_any(),
                    error = chain(&error),
                    "Failed to configure class"
                );
                failed.push(error);
            }
        }
    }
    Error::all(failed)?;
    Ok(Action::requeue(if is_settled { REVIEW } else { AGAIN }))
}

/// Configures the nodes of a class, and reports it. Returns whether nothing is waited for.
async fn configure(
    ctx: &Context,
    class: &OpenshiftEc2NodeClass,
    shared: &Shared,
) -> Result<bool, Error> {
    let Resolved { release, updates } = resolve(ctx, class, shared).await;
    let is_resolved = release.is_some();
    let written = match release {
        Some(release) => {
            let written = class::write(ctx, class, shared, release, &token::fresh()).await;
            written.map(Some)
        }
        None => Ok(None),
    };
    // New nodes have a configuration once the class names it.
    let named = match written {
        Ok(Some(nodes)) => {
            let named = set_current(ctx, class, &nodes.hash).await;
            named.map(|()| Some(nodes))
        }
        Ok(None) => Ok(None),
        Err(error) => Err(error),
    };
    // The status is written in any case: it says what to change.
    let (nodes, failed) = match named {
        Ok(nodes) => (nodes, None),
        Err(error) => (None, Some(error)),
    };
    let status = status(class, nodes.as_ref(), &updates, shared.now);
    let status = json!({ "metadata": { "name": class.name_any() }, "status": status });
    let applier = Applier::new(ctx.guest.clone(), STATUS_MANAGER);
    applier.ensure_status(&kinds::node_class(), status).await?;
    failed.map_or(Ok(is_resolved), Err)
}

/// Names the configuration that new nodes get.
async fn set_current(
    ctx: &Context,
    class: &OpenshiftEc2NodeClass,
    hash: &str,
) -> Result<(), Error> {
    if class
        .annotations()
        .get(CURRENT)
        .is_some_and(|it| it == hash)
    {
        return Ok(());
    }
    let api: Api<DynamicObject> = Api::all_with(ctx.guest.clone(), &kinds::node_class());
    let params = PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let patched = api
        .patch(
            &class.name_any(),
            &params,
            &Patch::Merge(&current(class, hash)),
        )
        .await;
    match patched {
        Err(error) if is_missing(&error) => Ok(()),
        patched => patched.map(drop).map_err(Error::write(object(class))),
    }
}

/// The change that names the configuration. It is about no other field, and the finalizer of the class may have changed in
/// this pass, so it holds for any version of the object.
fn current(class: &OpenshiftEc2NodeClass, hash: &str) -> Value {
    json!({ "metadata": { "uid": class.uid(), "annotations": { CURRENT: hash } } })
}

fn object(class: &OpenshiftEc2NodeClass) -> String {
    format!("OpenshiftEC2NodeClass {}", class.name_any())
}

/// Changes the metadata of a class.
async fn change_class(
    ctx: &Context,
    class: &OpenshiftEc2NodeClass,
    change: Value,
) -> Result<(), Error> {
    let api: Api<DynamicObject> = Api::all_with(ctx.guest.clone(), &kinds::node_class());
    let merged = merge(&api, &class.metadata, Part::Main, change, MANAGER).await;
    merged.map_err(Error::write(object(class)))
}

/// What the status says of versions. Without new nodes, it is about those that there may be.
fn status(
    class: &OpenshiftEc2NodeClass,
    nodes: Option<&Nodes>,
    updates: &[Update; 2],
    now: Timestamp,
) -> Value {
    let before = class.status.as_ref();
    let image = nodes
        .map(|it| it.image.clone())
        .or_else(|| before.and_then(|it| it.release_image.clone()));
    let version = nodes
        .map(|it| it.version.clone())
        .or_else(|| before.and_then(|it| it.version.clone()));
    let mut status = json!({
        "conditions": updates.each_ref().map(|it| it.condition(class, now)),
    });
    for (field, value) in [("releaseImage", image), ("version", version)] {
        if let Some(value) = value {
            status[field] = json!(value);
        }
    }
    status
}

/// A problem with a class.
fn problem(class: &OpenshiftEc2NodeClass, problem: String) -> Error {
    Error::Unreadable {
        object: object(class),
        problem,
    }
}

#[cfg(test)]
mod tests;
