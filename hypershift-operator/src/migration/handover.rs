//! Whether the operator that owned a cluster has stood aside: it acknowledges the lock, or there is none.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use api::annotations::{MIGRATION_ACKNOWLEDGED, Protocol};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use ownership::Scope;
use tokio::time::Instant;

use super::mark::{self, Marks};
use crate::config::LEGACY_LEASE;
use crate::context::Context;
use crate::error::Error;
use crate::hosted_cluster::{Id, protocol};

/// How long a lease is watched that does not say how long it lasts.
const LONG: Duration = Duration::from_secs(15);

/// What was seen of the other operator's lease: one that does not change for its whole duration is nobody's. Clocks of
/// other machines are not compared with ours.
#[derive(Debug, Default)]
pub(super) struct Watched(Mutex<Option<(String, Instant)>>);

/// Tells the migration that this operator has nothing under way for the cluster any more, if it was the owner.
pub(crate) async fn acknowledge(
    ctx: &Context,
    id: &Id,
    metadata: &ObjectMeta,
) -> Result<(), Error> {
    if !is_to_acknowledge(ctx.scope, &protocol(metadata), is_acknowledged(metadata)) {
        return Ok(());
    }
    ctx.passes.ended(id).await;
    let marks = Marks::from([(MIGRATION_ACKNOWLEDGED, Some("true".to_owned()))]);
    // A conflict means that something has changed: the next pass decides anew.
    mark::write(ctx, id, metadata, &marks).await?;
    tracing::info!(
        namespace = id.namespace,
        name = id.name,
        "Standing aside for a migration"
    );
    Ok(())
}

/// Only operator-legacy has to: the operator of private types is the one that migrates.
fn is_to_acknowledge(scope: Scope, protocol: &Protocol, is_acknowledged: bool) -> bool {
    let is_owner = scope == Scope::Legacy && protocol.legacy && !protocol.private;
    is_owner && protocol.in_progress && !is_acknowledged
}

pub(super) fn is_acknowledged(metadata: &ObjectMeta) -> bool {
    let annotations = metadata.annotations.as_ref();
    annotations.is_some_and(|it| {
        it.get(MIGRATION_ACKNOWLEDGED)
            .is_some_and(|it| it == "true")
    })
}

/// Whether the cluster is on its way back: it was never operator-legacy's since it went, so that has nothing under way.
fn is_ours(protocol: &Protocol) -> bool {
    protocol.private && !protocol.legacy
}

/// What is waited for until nobody but the migration writes to the cluster, in words; nothing if that is so.
pub(super) async fn waits(
    ctx: &Context,
    id: &Id,
    metadata: &ObjectMeta,
    watched: &Watched,
) -> Result<Option<String>, Error> {
    // Ours, if the cluster was.
    ctx.passes.ended(id).await;
    if is_acknowledged(metadata) || is_ours(&protocol(metadata)) {
        return Ok(None);
    }
    let namespace = &ctx.legacy_deployment.namespace;
    let api: Api<Lease> = Api::namespaced(ctx.client.clone(), namespace);
    let lease = api.get_opt(LEGACY_LEASE).await;
    let lease = lease.map_err(|source| Error::Read {
        what: format!("Lease {namespace}/{LEGACY_LEASE}"),
        source,
    })?;
    Ok(watched
        .is_held(lease.as_ref(), Instant::now())
        .then(|| "operator-legacy leads and has not stood aside yet".to_owned()))
}

// === impl Watched ===

impl Watched {
    /// Whether somebody may still hold the lease.
    fn is_held(&self, lease: Option<&Lease>, now: Instant) -> bool {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let spec = lease.and_then(|lease| lease.spec.as_ref());
        let holder = spec.and_then(|spec| spec.holder_identity.as_deref());
        if holder.is_none_or(str::is_empty) {
            *seen = None;
            return false;
        }
        let version = lease.and_then(|lease| lease.metadata.resource_version.clone());
        let version = version.unwrap_or_default();
        let since = match &*seen {
            Some((last, since)) if *last == version => *since,
            Some(_) | None => {
                *seen = Some((version, now));
                now
            }
        };
        let lasts = spec.and_then(|spec| spec.lease_duration_seconds);
        let lasts = lasts.and_then(|seconds| u64::try_from(seconds).ok());
        now.duration_since(since) <= lasts.map_or(LONG, Duration::from_secs)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lease(holder: Option<&str>, version: &str) -> Lease {
        let lease = json!({
            "metadata": { "resourceVersion": version },
            "spec": { "holderIdentity": holder, "leaseDurationSeconds": 10 },
        });
        serde_json::from_value(lease).unwrap()
    }

    #[test]
    fn m08_a_lease_is_free_when_nobody_renews_it_for_as_long_as_it_lasts() {
        let watched = Watched::default();
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        assert!(!watched.is_held(None, start));
        assert!(!watched.is_held(Some(&lease(None, "1")), start));
        assert!(!watched.is_held(Some(&lease(Some(""), "1")), start));
        assert!(watched.is_held(Some(&lease(Some("a"), "1")), start));
        assert!(watched.is_held(Some(&lease(Some("a"), "1")), after(9)));
        assert!(watched.is_held(Some(&lease(Some("a"), "2")), after(12)));
        assert!(watched.is_held(Some(&lease(Some("a"), "2")), after(22)));
        assert!(!watched.is_held(Some(&lease(Some("a"), "2")), after(23)));
    }

    #[test]
    fn m08_only_the_owner_stands_aside_and_only_once() {
        let locked = Protocol {
            legacy: true,
            in_progress: true,
            ..Protocol::default()
        };
        assert!(is_to_acknowledge(Scope::Legacy, &locked, false));
        assert!(!is_to_acknowledge(Scope::Legacy, &locked, true));
        assert!(!is_to_acknowledge(Scope::Private, &locked, false));
        assert!(!is_to_acknowledge(Scope::All, &locked, false));
        let committed = Protocol {
            private: true,
            legacy: false,
            ..locked.clone()
        };
        assert!(!is_to_acknowledge(Scope::Legacy, &committed, false));
        // So nobody waits for it on the way back.
        assert!(is_ours(&committed) && !is_ours(&locked));
        let unlocked = Protocol {
            in_progress: false,
            ..locked
        };
        assert!(!is_to_acknowledge(Scope::Legacy, &unlocked, false));
    }
}
