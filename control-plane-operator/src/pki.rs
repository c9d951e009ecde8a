//! Certificates of a control plane: which there have to be, which there are, and how those that lack are made.
//!
//! ```text
//!  desired ──────────┐
//!                    ├── plan: keep, issue, renew, rotate ── issue (RSA, in threads) ──> Secrets
//!  Secrets that are ─┘                                                              └──> bundles (ConfigMaps)
//! ```
//!
//! `desired` is what components declare. [`plan`] decides and is pure. `issue` makes keys, which takes long: never on an async thread.
//!
//! # Rotation of an authority
//!
//! | step | what signs | what is trusted |
//! |---|---|---|
//! | a year before its end | the old one | both: the new one is introduced |
//! | [`plan::INTRODUCED`] later | the new one: all leaves are issued again | both |
//! | when the old one has ended | the new one | the new one |
//!
//! So no client ever sees a certificate of an authority that it does not trust yet.

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

/// Why a certificate cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The library refuses.
    #[error("cannot make the certificate of Secret {secret}")]
    Certificate {
        /// The Secret.
        secret: String,
        /// Why.
        source: rcgen::Error,
    },
    /// The authority's Secret cannot be used.
    #[error(
        "Secret {secret} holds no usable certificate authority: restore its tls.crt and tls.key, which belong together, \
         from a backup. Do not delete it: nodes and kubeconfigs that trust this authority would be cut off at once"
    )]
    Authority {
        /// The Secret.
        secret: String,
        /// Why.
        source: rcgen::Error,
    },
}

/// Which certificates are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Those that etcd starts with.
    Etcd,
    /// All of them.
    All,
}

// === impl Scope ===

impl Scope {
    /// Whether what an authority signs is looked at, and a bundle that is called like it.
    fn has(self, authority: &str) -> bool {
        self == Self::All || authority.starts_with("etcd-")
    }
}

/// The objects that have to be written so that the certificates are there: none, when all is well.
///
/// It makes keys, which takes long, and uses all processors.
pub fn objects(
    components: &[Component],
    context: &Context<'_>,
    scope: Scope,
    now: Timestamp,
) -> Result<Vec<Value>, Error> {
    let mut there = context.objects.clone();
    let mut written = Vec::new();
    // It is only copied, so it is needed also where users issue certificates themselves.
    for object in unmanaged_etcd::objects(context) {
        add(context, object, &mut there, &mut written);
    }
    if DISABLE_PKI_RECONCILIATION.is_set(context.annotations()) {
        return Ok(written);
    }
    let authorities = desired::authorities(components, context);
    let steps: Vec<_> = authorities
        .iter()
        .filter(|authority| scope.has(authority.secret))
        .map(|authority| (authority, plan::authority(authority, &there, now)))
        .filter(|(_, step)| *step != Step::Keep)
        .collect();
    let made = in_parallel(&steps, |(authority, step)| {
        issue::authority(authority, *step, &there, now)
    })?;
    for secret in made {
        add(context, secret, &mut there, &mut written);
    }
    let leaves = desired::leaves(components, context);
    let due: Vec<_> = leaves
        .iter()
        .filter(|leaf| scope.has(leaf.authority))
        .filter(|leaf| plan::leaf(leaf, &there, now) != Step::Keep)
        .collect();
    let made = in_parallel(&due, |leaf| issue::leaf(leaf, &there, context, now))?;
    for secret in made.into_iter().flatten() {
        add(context, secret, &mut there, &mut written);
    }
    if scope == Scope::All && plan::lacks_signing_key(&there) {
        add(context, issue::signing_key()?, &mut there, &mut written);
    }
    for bundle in bundles::all(&authorities, context, &there) {
        if scope.has(bundle["metadata"]["name"].as_str().unwrap_or_default()) {
            add(context, bundle, &mut there, &mut written);
        }
    }
    Ok(written)
}

/// Whether a certificate or an authority has to be made: pure, and quick.
pub fn is_due(components: &[Component], context: &Context<'_>, now: Timestamp) -> bool {
    if DISABLE_PKI_RECONCILIATION.is_set(context.annotations()) {
        return false;
    }
    let there = context.objects;
    let authorities = desired::authorities(components, context);
    let leaves = desired::leaves(components, context);
    plan::lacks_signing_key(there)
        || authorities
            .iter()
            .any(|authority| plan::authority(authority, there, now) != Step::Keep)
        || leaves
            .iter()
            .any(|leaf| plan::leaf(leaf, there, now) != Step::Keep)
}

fn add(
    context: &Context<'_>,
    mut object: Value,
    there: &mut control_plane_component::Objects,
    written: &mut Vec<Value>,
) {
    adopt(&mut object, context);
    let object = hashed(object);
    there.insert(object.clone());
    written.push(object);
}

/// Does something for each item, on all processors.
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
