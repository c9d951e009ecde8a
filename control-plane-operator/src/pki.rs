//! Certificates of a control plane: plans which are needed, and issues missing and expiring ones.
//!
//! ```text
//!  desired ──────────┐
//!                    ├── plan: keep, issue, renew, rotate ── issue (RSA, in threads) ──> Secrets
//!  Secrets that are ─┘                                                              └──> bundles (ConfigMaps)
//! ```
//!
//! `desired` collects the components' declarations. [`plan`] decides and is pure. `issue` generates keys, which is slow
//! and must not run on an async thread.
//!
//! # Rotation of an authority
//!
//! | step | what signs | what is trusted |
//! |---|---|---|
//! | a year before its end | the old one | both: the new one is introduced |
//! | [`plan::INTRODUCED`] later | the new one: all leaves are issued again | both |
//! | when the old one has ended | the new one | the new one |
//!
//! Therefore clients never see a certificate of an authority that they do not trust yet.

mod bundles;
pub(crate) mod desired;
mod issue;
pub mod plan;
mod read;
mod unmanaged_etcd;

use std::num::NonZero;
use std::sync::Mutex;

use api::annotations::cluster::DISABLE_PKI_RECONCILIATION;
use control_plane_component::render::{adopt, hashed};
use control_plane_component::{Component, Context};
use jiff::Timestamp;
use serde_json::Value;

#[cfg(test)]
pub(crate) use desired::{authorities, leaves};
use plan::Step;

/// Issuing a certificate failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The library failed.
    #[error("failed to issue the certificate of Secret {secret}")]
    Certificate {
        /// The Secret.
        secret: String,
        /// Why.
        source: rcgen::Error,
    },
    /// The authority's Secret is invalid.
    #[error(
        "invalid certificate authority in Secret {secret}: restore its tls.crt and tls.key, which belong together, \
         from a backup. Do not delete it: nodes and kubeconfigs that trust this authority would be cut off at once"
    )]
    Authority {
        /// The Secret.
        secret: String,
        /// Why.
        source: rcgen::Error,
    },
}

/// A set of certificates to reconcile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertificateSet {
    /// Certificates of etcd.
    Etcd,
    /// All certificates.
    All,
}

// === impl CertificateSet ===

impl CertificateSet {
    /// Whether the set contains the certificates of an authority, and a bundle of this name.
    fn has(self, authority: &str) -> bool {
        self == Self::All || authority.starts_with("etcd-")
    }
}

/// Returns the objects to apply; empty if all certificates are up to date.
///
/// It generates keys, which is slow, on all processors.
pub fn objects(
    components: &[Component],
    context: &Context<'_>,
    set: CertificateSet,
    now: Timestamp,
) -> Result<Vec<Value>, Error> {
    let mut existing = context.objects.clone();
    let mut written = Vec::new();
    // It is a copy, so it is also needed when PKI reconciliation is disabled.
    for object in unmanaged_etcd::objects(context) {
        add(context, object, &mut existing, &mut written);
    }
    if DISABLE_PKI_RECONCILIATION.is_set(context.annotations()) {
        return Ok(written);
    }
    let authorities = desired::authorities(components, context);
    let steps: Vec<_> = authorities
        .iter()
        .filter(|authority| set.has(authority.secret))
        .map(|authority| (authority, plan::authority(authority, &existing, now)))
        .filter(|(_, step)| *step != Step::Keep)
        .collect();
    let made = in_parallel(&steps, |(authority, step)| {
        issue::authority(authority, *step, &existing, now)
    })?;
    for secret in made {
        add(context, secret, &mut existing, &mut written);
    }
    let leaves = desired::leaves(components, context);
    let due: Vec<_> = leaves
        .iter()
        .filter(|leaf| set.has(leaf.authority))
        .filter(|leaf| plan::leaf(leaf, &existing, now) != Step::Keep)
        .collect();
    let made = in_parallel(&due, |leaf| issue::leaf(leaf, &existing, context, now))?;
    for secret in made.into_iter().flatten() {
        add(context, secret, &mut existing, &mut written);
    }
    if set == CertificateSet::All && plan::needs_signing_key(&existing) {
        add(context, issue::signing_key()?, &mut existing, &mut written);
    }
    for bundle in bundles::all(&authorities, context, &existing) {
        if set.has(bundle["metadata"]["name"].as_str().unwrap_or_default()) {
            add(context, bundle, &mut existing, &mut written);
        }
    }
    Ok(written)
}

/// Whether a certificate or an authority must be issued. Pure, and fast.
pub fn is_due(components: &[Component], context: &Context<'_>, now: Timestamp) -> bool {
    if DISABLE_PKI_RECONCILIATION.is_set(context.annotations()) {
        return false;
    }
    let existing = context.objects;
    let authorities = desired::authorities(components, context);
    let leaves = desired::leaves(components, context);
    plan::needs_signing_key(existing)
        || authorities
            .iter()
            .any(|authority| plan::authority(authority, existing, now) != Step::Keep)
        || leaves
            .iter()
            .any(|leaf| plan::leaf(leaf, existing, now) != Step::Keep)
}

fn add(
    context: &Context<'_>,
    mut object: Value,
    existing: &mut control_plane_component::Objects,
    written: &mut Vec<Value>,
) {
    adopt(&mut object, context);
    let object = hashed(object);
    existing.insert(object.clone());
    written.push(object);
}

/// Maps items in parallel, on all processors.
fn in_parallel<T: Sync, R: Send>(
    items: &[T],
    work: impl Fn(&T) -> Result<R, Error> + Sync,
) -> Result<Vec<R>, Error> {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let next = Mutex::new(items.iter());
    let done = Mutex::new(Vec::new());
    let take = || {
        next.lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .next()
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.min(items.len()) {
            scope.spawn(|| {
                while let Some(item) = take() {
                    let result = work(item);
                    done.lock()
                        .unwrap_or_else(std::sync::PoisonError::into_inner)
                        .push(result);
                }
            });
        }
    });
    done.into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests;
