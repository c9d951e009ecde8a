//! One reconciliation of a hosted cluster that is ours: dereference, validate, build, apply, tell.

use std::time::Duration;

use api::conditions::{ClusterCondition, ReadCondition as _, Status, find};
use api::group::Side;
use api::hypershift::v1beta1::HostedCluster;
use jiff::Timestamp;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use support::apply::Applier;
use support::controller::Action;

use super::apply::{Applied, apply, write};
use super::build::{build, capi_cluster, paused_control_plane};
use super::deletion::{self, Progress};
use super::dereference::{bare, dereference};
use super::facts::Facts;
use super::names::{FINALIZER, HAS_BEEN_AVAILABLE};
use super::status::{Outcome, Told, status};
use super::validate::{Verdicts, validate};
use super::{Id, defaults};
use crate::capi::Capi;
use crate::context::Context;
use crate::control_plane_namespace::{self, Namespace};
use crate::error::Error;
use crate::pause::{Pause, pause};

/// Field manager of what a HostedCluster gets once and then keeps.
const DEFAULTS: &str = "hypershift-operator-defaults";
/// The reason of a condition about a HostedCluster that does not deserialize.
const INVALID: &str = "InvalidConfiguration";
/// When a deletion is looked at again.
const POLL: Duration = Duration::from_secs(5);
/// When something is looked at again that a user may have mended beside the HostedCluster.
const MENDED: Duration = Duration::from_secs(15);

/// Has the cluster be as it is wanted, as far as it goes.
pub(super) async fn reconcile(
    object: DynamicObject,
    side: Side,
    namespace: &Namespace,
    ctx: &Context,
) -> Result<Action, Error> {
    let cluster: HostedCluster = match read(&object) {
        Ok(cluster) => cluster,
        Err(problem) => return unreadable(&object, &problem, ctx).await,
    };
    let capi = Capi::new(side);
    if object.metadata.deletion_timestamp.is_some() {
        return delete(object, cluster, capi, namespace, ctx).await;
    }
    let id = Id::of(&object.metadata);
    if let Some(message) = namespace.refusal(&id.namespace, &id.name) {
        return refuse(&object, message, ctx).await;
    }
    // client
    let cluster = with_defaults(cluster, ctx).await?;
    let releases = ctx.releases.for_tenant(&id.namespace);
    let facts = dereference(cluster, capi, &releases, ctx).await?;
    // pure
    let pause = pause(facts.cluster.spec.paused_until.as_deref(), Timestamp::now());
    if let Some(retry) = deferred(&facts, &pause) {
        return Ok(Action::requeue(retry));
    }
    let verdicts = validate(&facts);
    // client
    let applied = change(&facts, &pause, &verdicts, namespace, ctx).await?;
    let settled = tell(&facts, &pause, &verdicts, &applied, ctx).await?;
    ctx.metrics.wrote(applied.written);
    if let Some(error) = facts.in_progress() {
        return Ok(Action::requeue(error.retry_after().unwrap_or(MENDED)));
    }
    next(applied, &pause, &verdicts, settled, ctx)
}

/// When to come back to a cluster whose images are being read. Its status says what was known of this generation; it is
/// left as it is, so that a restart of the operator shows in no condition.
fn deferred(facts: &Facts, pause: &Pause) -> Option<Duration> {
    let error = facts.in_progress()?;
    let generation = facts.cluster.metadata.generation;
    let status = facts.cluster.status.as_ref()?;
    let known = find(&status.conditions, ClusterCondition::ValidReleaseImage)?;
    let is_known = known.observed_generation == generation && known.status() != Status::Unknown;
    (is_known && !pause.is_paused()).then(|| error.retry_after().unwrap_or(MENDED))
}

/// Writes what is wanted, unless something speaks against it.
async fn change(
    facts: &Facts,
    pause: &Pause,
    verdicts: &Verdicts,
    namespace: &Namespace,
    ctx: &Context,
) -> Result<Applied, Error> {
    let applier = ctx.applier();
    if pause.is_paused() {
        return hold(facts, namespace, &applier).await;
    }
    if !verdicts.allow_changes() {
        return Ok(Applied::default());
    }
    let plan = build(facts).map_err(|source| Error::Build {
        object: facts.id.to_string(),
        source: Box::new(source),
    })?;
    // What was read may have taken a while: whose the namespace is now is what counts.
    let Id { namespace, name } = &facts.id;
    let namespace = control_plane_namespace::claim(&ctx.client, namespace, name).await?;
    Ok(apply(&applier, &namespace, plan).await)
}

/// Pauses what works for the cluster, and changes nothing else.
async fn hold(facts: &Facts, namespace: &Namespace, applier: &Applier) -> Result<Applied, Error> {
    let mut held = Applied::default();
    if let Some(namespace) = namespace.owned()
        && let Some(control_plane) = paused_control_plane(facts)
    {
        held.written += usize::from(write(applier, namespace, &control_plane).await?);
        if let Some(cluster) = capi_cluster(facts, true) {
            held.written += usize::from(write(applier, namespace, &cluster).await?);
        }
    }
    Ok(held)
}

/// Writes the status, and once the annotation of a cluster that became available. Gives whether nothing is waited for.
async fn tell(
    facts: &Facts,
    pause: &Pause,
    verdicts: &Verdicts,
    applied: &Applied,
    ctx: &Context,
) -> Result<bool, Error> {
    let failures = applied.told();
    let outcome = Outcome {
        facts,
        verdicts,
        pause,
        failures: &failures,
        now: Timestamp::now(),
    };
    let status = status(&outcome);
    let settled = is_settled(&status);
    publish(&facts.id, status.clone(), ctx).await?;
    crate::events::send(&facts.cluster, &status, ctx).await;
    keep(&facts.cluster, is_available(facts), &ctx.applier()).await?;
    Ok(settled)
}

/// Whether the cluster is in use: what is not yet there is not always watched.
fn is_settled(status: &Value) -> bool {
    let conditions = status["conditions"].as_array();
    let is = |about: ClusterCondition, wanted: Status| {
        let mut found = conditions.into_iter().flatten();
        found.any(|it| it["type"] == about.as_str() && it["status"] == wanted.as_str())
    };
    is(ClusterCondition::Available, Status::True)
        && !is(ClusterCondition::IgnitionEndpointAvailable, Status::False)
}

async fn publish(id: &Id, status: Value, ctx: &Context) -> Result<(), Error> {
    let body = json!({
        "metadata": { "namespace": id.namespace, "name": id.name },
        "status": status,
    });
    ctx.applier().apply_status(&super::resource(), body).await?;
    Ok(())
}

/// When to come back.
fn next(
    applied: Applied,
    pause: &Pause,
    verdicts: &Verdicts,
    settled: bool,
    ctx: &Context,
) -> Result<Action, Error> {
    if let Some(failure) = applied.failures.into_iter().next() {
        return Err(Error::Apply(failure.error));
    }
    if let Pause::Until(until) = pause {
        let rest = until.duration_since(Timestamp::now());
        let rest = Duration::try_from(rest).unwrap_or_default();
        return Ok(Action::requeue(rest + Duration::from_secs(1)));
    }
    if verdicts.allow_changes() && settled {
        return Ok(Action::requeue(ctx.review));
    }
    Ok(Action::requeue(MENDED))
}

/// Gives the cluster what its author left out, before anything is named by it.
async fn with_defaults(cluster: HostedCluster, ctx: &Context) -> Result<HostedCluster, Error> {
    let Some(missing) = defaults::missing(&cluster) else {
        return Ok(cluster);
    };
    let once = Applier::new(ctx.client.clone(), DEFAULTS);
    keep(&cluster, false, &ctx.applier()).await?;
    if missing["spec"]
        .as_object()
        .is_none_or(serde_json::Map::is_empty)
    {
        return Ok(cluster);
    }
    let id = Id::of(&cluster.metadata);
    let body = json!({
        "metadata": { "namespace": id.namespace, "name": id.name },
        "spec": missing["spec"],
    });
    let written = once.apply_value(&super::resource(), body).await?;
    read(&written.object).map_err(|problem| Error::Unreadable {
        object: id.to_string(),
        problem,
    })
}

/// The finalizer, and the mark of a cluster that was available once: all that is this manager's of the object itself.
async fn keep(cluster: &HostedCluster, available: bool, applier: &Applier) -> Result<(), Error> {
    let id = Id::of(&cluster.metadata);
    let annotations = cluster.metadata.annotations.as_ref();
    let marked = annotations.is_some_and(|it| it.contains_key(HAS_BEEN_AVAILABLE));
    let mut body = json!({ "metadata": {
        "namespace": id.namespace,
        "name": id.name,
        "finalizers": [FINALIZER],
    }});
    if available || marked {
        body["metadata"]["annotations"] = json!({ HAS_BEEN_AVAILABLE: "true" });
    }
    applier.apply_value(&super::resource(), body).await?;
    Ok(())
}

fn is_available(facts: &Facts) -> bool {
    let status = facts
        .control_plane
        .as_ref()
        .and_then(|it| it.status.as_ref());
    let conditions = status
        .map(|it| it.conditions.as_slice())
        .unwrap_or_default();
    find(conditions, ClusterCondition::Available).is_some_and(|it| it.status() == Status::True)
}

pub(super) fn read(object: &DynamicObject) -> Result<HostedCluster, String> {
    let value = serde_json::to_value(object).map_err(|error| error.to_string())?;
    serde_json::from_value(value).map_err(|error| error.to_string())
}

/// Reports a HostedCluster that does not deserialize, and leaves it alone: by a condition, or, where the API server
/// refuses it because the object does not match its schema, by an Event and a log line.
async fn unreadable(object: &DynamicObject, problem: &str, ctx: &Context) -> Result<Action, Error> {
    let id = Id::of(&object.metadata);
    let message = format!(
        "failed to read the HostedCluster: {problem}. Correct the field, or upgrade the operator to a version that knows it."
    );
    let about = ClusterCondition::ValidConfiguration;
    let told = Told::new(about, Status::False, INVALID, &message);
    match publish(&id, changed(object, &[told]), ctx).await {
        Ok(()) => {}
        Err(error) if is_refused(&error) => {
            let (namespace, name) = (&id.namespace, &id.name);
            tracing::warn!(namespace, name, error = message, "Skipping HostedCluster");
            crate::events::warn(object, INVALID, &message, ctx).await;
        }
        Err(error) => return Err(error),
    }
    Ok(Action::requeue(MENDED))
}

/// The control plane namespace is not the cluster's: nothing is written but that, and nothing holds the cluster.
async fn refuse(object: &DynamicObject, message: String, ctx: &Context) -> Result<Action, Error> {
    let about = ClusterCondition::ValidConfiguration;
    let told = Told::new(about, Status::False, "InvalidConfiguration", message);
    publish(&Id::of(&object.metadata), changed(object, &[told]), ctx).await?;
    Ok(Action::requeue(MENDED))
}

/// Whether the API server will not take a status, however often it is asked.
fn is_refused(error: &Error) -> bool {
    match error.client() {
        Some(kube::Error::Api(status)) => matches!(status.code, 400 | 422 | 500),
        Some(_) => false,
        None => matches!(error, Error::Apply(_)),
    }
}

async fn delete(
    object: DynamicObject,
    cluster: HostedCluster,
    capi: Capi,
    namespace: &Namespace,
    ctx: &Context,
) -> Result<Action, Error> {
    let facts = bare(cluster, capi, ctx);
    let is_ours = object
        .metadata
        .finalizers
        .iter()
        .flatten()
        .any(|it| it == FINALIZER);
    if !is_ours {
        return Ok(Action::await_change());
    }
    let progress = deletion::advance(&facts, namespace, ctx).await?;
    let about = [
        ClusterCondition::Progressing,
        ClusterCondition::HostedClusterDestroyed,
    ];
    match progress {
        Progress::Waiting(waiting) => {
            let (reason, message) = (waiting.reason(), waiting.message());
            let told = [
                Told::new(about[0], Status::True, &reason, &message),
                Told::new(about[1], Status::False, &reason, &message),
            ];
            publish(&facts.id, changed(&object, &told), ctx).await?;
            Ok(Action::requeue(POLL))
        }
        Progress::Gone(grace) => {
            // A cluster that was refused has nothing that its object would have to outlive.
            let rest = if namespace.is_usable() {
                remaining(&facts, grace)
            } else {
                Duration::ZERO
            };
            if rest.is_zero() {
                deletion::let_go(&object, ctx).await?;
                return Ok(Action::await_change());
            }
            let message =
                format!("all is gone; the object stays for {grace:?}, as its annotation asks");
            let told = Told::new(about[1], Status::True, "WaitingForGracePeriod", message);
            publish(&facts.id, changed(&object, &[told]), ctx).await?;
            Ok(Action::requeue(rest))
        }
    }
}

/// How long the object still stays.
fn remaining(facts: &Facts, grace: Duration) -> Duration {
    let status = facts.cluster.status.as_ref();
    let conditions = status
        .map(|it| it.conditions.as_slice())
        .unwrap_or_default();
    let destroyed = find(conditions, ClusterCondition::HostedClusterDestroyed);
    let since = destroyed.filter(|it| it.status() == Status::True);
    let Some(since) = since else {
        return grace;
    };
    let passed = Timestamp::now().duration_since(since.last_transition_time.0);
    grace.saturating_sub(Duration::try_from(passed).unwrap_or_default())
}

/// The status as it is, with some conditions replaced. The condition about the owner has a writer of its own.
fn changed(object: &DynamicObject, told: &[Told]) -> Value {
    let mut status = object
        .data
        .get("status")
        .cloned()
        .unwrap_or_else(|| json!({}));
    let old = status["conditions"].take();
    let typed = serde_json::from_value::<Vec<_>>(old.clone()).unwrap_or_default();
    let generation = object.metadata.generation.unwrap_or_default();
    let old = old.as_array().cloned().unwrap_or_default();
    let kept = old.into_iter().filter(|it| {
        it["type"] != ClusterCondition::PrivateCapiTypes.as_str()
            && told.iter().all(|new| it["type"] != new.about)
    });
    let new = told
        .iter()
        .map(|it| it.condition(&typed, generation, Timestamp::now()));
    status["conditions"] = kept.chain(new).collect();
    status
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosted_cluster::facts::ReleaseIs;
    use crate::hosted_cluster::fixture;

    fn reading(status: &str, observed: i64) -> Facts {
        let mut facts = fixture::facts(fixture::hosted_cluster("none"), Side::Private);
        let reason = payload::Reason::InProgress;
        let error = payload::Error::new(fixture::RELEASE, reason, "it is read");
        facts.release = ReleaseIs::Unreadable(error);
        facts.cluster.metadata.generation = Some(2);
        let condition = json!({
            "type": "ValidReleaseImage", "status": status, "reason": "r", "message": "",
            "lastTransitionTime": "2030-01-31T12:00:00Z", "observedGeneration": observed,
        });
        let status = json!({ "conditions": [condition] });
        facts.cluster.status = serde_json::from_value(status).unwrap();
        facts
    }

    /// Check T02.
    #[test]
    fn a_known_cluster_keeps_its_status_while_its_release_is_read() {
        for (name, (status, observed), pause, expected) in [
            ("known", ("True", 2), Pause::Active, true),
            ("known to be bad", ("False", 2), Pause::Active, true),
            ("not known yet", ("Unknown", 2), Pause::Active, false),
            ("changed since", ("True", 1), Pause::Active, false),
            ("paused", ("True", 2), Pause::Indefinite, false),
        ] {
            let facts = reading(status, observed);
            assert_eq!(deferred(&facts, &pause).is_some(), expected, "{name}");
        }
        let mut read = reading("True", 2);
        read.release = ReleaseIs::NoPullSecret;
        assert_eq!(deferred(&read, &Pause::Active), None);
    }
}
