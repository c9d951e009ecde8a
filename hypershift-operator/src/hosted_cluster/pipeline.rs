//! One reconcile of a HostedCluster that this operator owns: dereference, validate, build, apply, update status.

use std::time::Duration;

use api::conditions::{ClusterCondition, ReadCondition as _, Status, find};
use api::group::CapiTypes;
use api::hypershift::v1beta1::HostedCluster;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::DynamicObject;
use serde_json::Value;
use support::apply::Applier;
use support::controller::{Action, ObjectKey};
use tokio::time::Instant;

use super::apply::{Applied, apply, write};
use super::build::{build, capi_cluster, paused_control_plane};
use super::deletion::{self, Progress};
use super::dereference::{dereference, empty_facts};
use super::own_object::{
    changed, ensure_finalizer, is_held, publish, read, refuse, set_base_domain, unreadable,
    with_defaults,
};
use super::status::{ConditionUpdate, Outcome, is_auto_node_in_progress, status};
use super::validate::{Findings, validate};
use super::{Id, auto_node, encryption_key, infra_policy, inputs, oidc};
use crate::cache::{self, Recheck, Snapshot};
use crate::capi::Capi;
use crate::context::Context;
use crate::control_plane_namespace::{self, Namespace};
use crate::error::Error;
use crate::facts::{Facts, InfraPolicy, OidcDocuments, Virtualization};
use crate::names::FIELD_MANAGER;
use crate::pause::{Pause, pause};

/// The interval between two reconciles of a HostedCluster that is being deleted.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// The interval between two reconciles while a problem remains that a user can fix outside of the HostedCluster.
const RECHECK_INTERVAL: Duration = Duration::from_secs(15);

/// A reconcile that has ended.
pub(super) struct Done {
    action: Action,
    /// The versions of what it has read, if nothing was left to do.
    settled: Option<(Snapshot, Recheck)>,
}

/// Reconciles a HostedCluster: reads what it references, validates it, applies the desired objects, updates its status.
///
/// The steps are boxed: together, their futures are too large for a stack.
pub(super) async fn reconcile(
    object: DynamicObject,
    types: CapiTypes,
    namespace: &Namespace,
    snapshot: Option<Snapshot>,
    ctx: &Context,
) -> Result<Done, Error> {
    let cluster: HostedCluster = match read(&object) {
        Ok(cluster) => cluster,
        Err(problem) => {
            unreadable(&object, &problem, ctx).await?;
            let again = Recheck::Every(RECHECK_INTERVAL);
            return Ok(Done::new(&object.metadata, snapshot, again, ctx));
        }
    };
    let capi = Capi::new(types);
    if object.metadata.deletion_timestamp.is_some() {
        let action = Box::pin(delete(object, cluster, capi, namespace, ctx)).await?;
        return Ok(Done::unsettled(action));
    }
    let id = Id::of(&object.metadata);
    if let Some(message) = namespace.refusal(&id.namespace, &id.name) {
        refuse(&object, message, ctx).await?;
        let again = Recheck::Every(RECHECK_INTERVAL);
        return Ok(Done::new(&object.metadata, snapshot, again, ctx));
    }
    // client
    let cluster = Box::pin(with_defaults(cluster, ctx)).await?;
    let snapshot =
        snapshot.and_then(|snapshot| inputs::of_cluster(&cluster, snapshot, &ctx.cache.index));
    let releases = ctx.releases.for_tenant(&id.namespace);
    let (mut facts, snapshot) =
        Box::pin(dereference(cluster, capi, &releases, snapshot, ctx)).await?;
    // pure
    let pause = pause(facts.cluster.spec.paused_until.as_deref(), Timestamp::now());
    if let Some(retry) = deferred(&facts, &pause) {
        return Ok(Done::unsettled(Action::requeue(retry)));
    }
    // client
    if !pause.is_paused()
        && (Box::pin(set_base_domain(&mut facts, ctx)).await?
            || Box::pin(encryption_key::ensure(&mut facts, ctx)).await?)
    {
        return Ok(Done::unsettled(Action::requeue(POLL_INTERVAL)));
    }
    // pure
    let findings = validate(&facts);
    // client
    let applied = Box::pin(change(&facts, &pause, &findings, namespace, ctx)).await?;
    if !pause.is_paused() && findings.allow_changes() {
        Box::pin(infra_policy::ensure(&mut facts, ctx)).await;
        Box::pin(oidc::ensure(&mut facts, ctx)).await?;
        Box::pin(auto_node::clear(&facts, namespace, ctx)).await?;
    }
    let settled = Box::pin(update_status(&facts, &pause, &findings, &applied, ctx)).await?;
    oidc::record(&facts, ctx).await?;
    ctx.metrics.wrote(applied.written);
    if let Some(error) = facts.in_progress() {
        let retry = error.retry_after().unwrap_or(RECHECK_INTERVAL);
        return Ok(Done::unsettled(Action::requeue(retry)));
    }
    let settled = settled
        && has_oidc_documents(&facts)
        && !is_auto_node_in_progress(&facts)
        && !facts.infra_time.is_over();
    let again = next(applied, &pause, &findings, settled, ctx)?;
    let snapshot = snapshot.filter(|_| is_complete(&facts));
    Ok(Done::new(&facts.cluster.metadata, snapshot, again, ctx))
}

/// Whether everything that was read is watched or immutable. Registries and infrastructure clusters that did not answer
/// completely are read again, and CRDs that do not exist are looked for again, since the versions of a snapshot are those
/// of objects.
fn is_complete(facts: &Facts) -> bool {
    let is_found = |it: &Virtualization| matches!(it, Virtualization::Found { .. });
    let is_known = !facts.is_partial && facts.virtualization.as_ref().is_none_or(is_found);
    let is_protected = |it: &InfraPolicy| *it == InfraPolicy::Applied;
    is_known
        && has_oidc_documents(facts)
        && facts.missing_crds.is_empty()
        && facts.missing_rights.is_empty()
        && facts.no_base_domain.is_none()
        && facts.no_encryption_key.is_none()
        && !facts.infra_time.is_over()
        && facts.infra_policy.as_ref().is_none_or(is_protected)
}

/// Whether no storing of OIDC documents has failed: nothing reports when it would succeed.
fn has_oidc_documents(facts: &Facts) -> bool {
    !matches!(facts.oidc_documents, Some(OidcDocuments::Failed(_)))
}

// === impl Done ===

impl Done {
    /// A completed reconcile. With a snapshot of what it has read, the next one is skipped until that changes; the status
    /// that it has written itself is no change.
    fn new(
        cluster: &ObjectMeta,
        snapshot: Option<Snapshot>,
        again: Recheck,
        ctx: &Context,
    ) -> Self {
        let Some(snapshot) = snapshot else {
            return Self::unsettled(again.into());
        };
        let watched = (cache::HOSTED_CLUSTERS, &super::resource());
        match ctx
            .cache
            .after_own_status(snapshot, watched, FIELD_MANAGER, cluster)
        {
            Some(snapshot) => Self {
                action: again.into(),
                settled: Some((snapshot, again)),
            },
            // Another client has written to the HostedCluster, perhaps after it was read.
            None => Self::unsettled(Action::requeue(RECHECK_INTERVAL)),
        }
    }

    fn unsettled(action: Action) -> Self {
        let settled = None;
        Self { action, settled }
    }

    /// Records what the reconcile has read; returns when to requeue.
    pub(super) fn settle(self, key: ObjectKey, ctx: &Context) -> Action {
        if let Some((snapshot, again)) = self.settled {
            ctx.cache.clusters.settle(key, snapshot, again);
        }
        self.action
    }
}

/// When to requeue a HostedCluster whose images are still being read. If its status is about this generation, it is kept,
/// so that a restart of the operator changes no condition.
fn deferred(facts: &Facts, pause: &Pause) -> Option<Duration> {
    let error = facts.in_progress()?;
    let generation = facts.cluster.metadata.generation;
    let status = facts.cluster.status.as_ref()?;
    let known = find(&status.conditions, ClusterCondition::ValidReleaseImage)?;
    let is_known = known.observed_generation == generation && known.status() != Status::Unknown;
    (is_known && !pause.is_paused()).then(|| error.retry_after().unwrap_or(RECHECK_INTERVAL))
}

/// Applies the desired objects, unless the HostedCluster is paused or its findings block changes.
async fn change(
    facts: &Facts,
    pause: &Pause,
    findings: &Findings,
    namespace: &Namespace,
    ctx: &Context,
) -> Result<Applied, Error> {
    let applier = ctx.applier();
    if pause.is_paused() {
        return propagate_pause(facts, namespace, &applier).await;
    }
    if !findings.allow_changes() {
        return Ok(Applied::default());
    }
    let plan = build(facts).map_err(|source| Error::Build {
        object: facts.id.to_string(),
        source: Box::new(source),
    })?;
    // Reading may have taken a while: the current owner of the namespace counts.
    let Id { namespace, name } = &facts.id;
    let namespace = control_plane_namespace::claim(&ctx.client, namespace, name).await?;
    Ok(apply(&applier, &namespace, plan).await)
}

/// Applies the desired objects for facts without findings.
#[cfg(test)]
pub(super) async fn written(facts: &Facts, ctx: &Context) -> Result<Applied, Error> {
    let namespace = Namespace::Absent(facts.namespace.clone());
    change(facts, &Pause::Active, &validate(facts), &namespace, ctx).await
}

/// Pauses the controllers of the HostedCluster, and changes nothing else.
async fn propagate_pause(
    facts: &Facts,
    namespace: &Namespace,
    applier: &Applier,
) -> Result<Applied, Error> {
    let mut done = Applied::default();
    if let Some(namespace) = namespace.owned()
        && let Some(control_plane) = paused_control_plane(facts)
    {
        done.written += usize::from(write(applier, namespace, &control_plane).await?);
        if let Some(cluster) = capi_cluster(facts, true) {
            done.written += usize::from(write(applier, namespace, &cluster).await?);
        }
    }
    Ok(done)
}

/// Updates the status, and annotates a HostedCluster that became available. Returns whether it is settled.
async fn update_status(
    facts: &Facts,
    pause: &Pause,
    findings: &Findings,
    applied: &Applied,
    ctx: &Context,
) -> Result<bool, Error> {
    let failures = applied.failure_messages();
    let outcome = Outcome {
        facts,
        findings,
        pause,
        failures: &failures,
        now: Timestamp::now(),
    };
    let status = status(&outcome);
    let settled = is_settled(&status);
    publish(&facts.id, status.clone(), ctx).await?;
    crate::events::send(&facts.cluster, &status, ctx).await;
    ensure_finalizer(&facts.cluster, is_available(facts), &ctx.applier()).await?;
    Ok(settled)
}

/// Whether the HostedCluster is available. Until then it is requeued, since not everything that it waits for is watched.
fn is_settled(status: &Value) -> bool {
    let conditions = status["conditions"].as_array();
    let is = |about: ClusterCondition, desired: Status| {
        let mut found = conditions.into_iter().flatten();
        found.any(|it| it["type"] == about.as_str() && it["status"] == desired.as_str())
    };
    is(ClusterCondition::Available, Status::True)
        && !is(ClusterCondition::IgnitionEndpointAvailable, Status::False)
}

/// When to requeue.
fn next(
    applied: Applied,
    pause: &Pause,
    findings: &Findings,
    settled: bool,
    ctx: &Context,
) -> Result<Recheck, Error> {
    if let Some(failure) = applied.failures.into_iter().next() {
        return Err(Error::Apply(failure.error));
    }
    if let Pause::Until(until) = pause {
        let rest = until.duration_since(Timestamp::now());
        let rest = Duration::try_from(rest).unwrap_or_default();
        let rest = rest + Duration::from_secs(1);
        return Ok(Recheck::At(Instant::now() + rest));
    }
    if findings.allow_changes() && settled {
        return Ok(Recheck::Every(ctx.review));
    }
    Ok(Recheck::Every(RECHECK_INTERVAL))
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

async fn delete(
    object: DynamicObject,
    cluster: HostedCluster,
    capi: Capi,
    namespace: &Namespace,
    ctx: &Context,
) -> Result<Action, Error> {
    let facts = empty_facts(cluster, capi, ctx);
    if !is_held(&object) {
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
            let updates = [
                ConditionUpdate::new(about[0], Status::True, &reason, &message),
                ConditionUpdate::new(about[1], Status::False, &reason, &message),
            ];
            publish(&facts.id, changed(&object, &updates), ctx).await?;
            Ok(Action::requeue(POLL_INTERVAL))
        }
        Progress::Gone(grace) => {
            // A refused HostedCluster has no objects, so no grace period is needed.
            let rest = if namespace.is_usable() {
                remaining(&facts, grace)
            } else {
                Duration::ZERO
            };
            if rest.is_zero() {
                deletion::remove_finalizer(&object, ctx).await?;
                return Ok(Action::await_change());
            }
            let message =
                format!("All objects are deleted. Waiting for the grace period of {grace:?}");
            let condition =
                ConditionUpdate::new(about[1], Status::True, "WaitingForGracePeriod", message);
            publish(&facts.id, changed(&object, &[condition]), ctx).await?;
            Ok(Action::requeue(rest))
        }
    }
}

/// The rest of the grace period.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::facts::ReleaseIs;
    use crate::facts::fixture;

    fn reading(status: &str, observed: i64) -> Facts {
        let mut facts = fixture::facts(fixture::hosted_cluster("none"), CapiTypes::Private);
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

    #[test]
    fn a_reconcile_with_missing_crds_is_not_complete() {
        let mut facts = fixture::facts(fixture::hosted_cluster("aws"), CapiTypes::Private);
        assert!(is_complete(&facts));
        facts.missing_crds = vec!["one.example.com".to_owned()];
        assert!(!is_complete(&facts), "no watched object changes with them");
    }
}
