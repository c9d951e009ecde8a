//! Whether the former owner has handed over: it acknowledged the lock, or it does not run.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use api::annotations::Protocol;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use tokio::time::Instant;

use crate::cluster_ref::{Id, protocol};
use crate::config::LEGACY_LEASE;
use crate::context::Context;
use crate::error::Error;
use crate::handover::is_acknowledged;

/// The duration of a lease that does not specify one.
const DEFAULT_DURATION: Duration = Duration::from_secs(15);

/// Observes the lease of the other operator: one that is not renewed for its duration has no holder. Clocks of
/// other machines are not compared.
#[derive(Debug, Default)]
pub(super) struct LeaseObserver(Mutex<Option<(String, Instant)>>);

/// Whether this operator owns the cluster, as in a rollback: then operator-legacy has nothing in progress for it.
fn is_ours(protocol: &Protocol) -> bool {
    protocol.private && !protocol.legacy
}

/// What is waited for until only the migration writes to the cluster; `None` if that is the case.
pub(super) async fn waits(
    ctx: &Context,
    id: &Id,
    metadata: &ObjectMeta,
    watched: &LeaseObserver,
) -> Result<Option<String>, Error> {
    // Own reconciles, if this operator is the owner.
    ctx.in_flight.ended(id).await;
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
        .then(|| "Waiting for operator-legacy to acknowledge the lock".to_owned()))
}

// === impl LeaseObserver ===

impl LeaseObserver {
    /// Whether the lease may still be held.
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
        now.duration_since(since) <= lasts.map_or(DEFAULT_DURATION, Duration::from_secs)
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
    fn a_lease_is_free_after_its_duration_without_renewal() {
        let watched = LeaseObserver::default();
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
    fn a_private_cluster_is_not_owned_by_operator_legacy() {
        let private = Protocol {
            private: true,
            ..Protocol::default()
        };
        let legacy = Protocol {
            legacy: true,
            ..Protocol::default()
        };
        assert!(is_ours(&private) && !is_ours(&legacy));
    }
}
