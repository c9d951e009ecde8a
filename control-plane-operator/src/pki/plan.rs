//! Plans the next step of an authority or a certificate, from live and desired state.

use std::collections::BTreeSet;
use std::time::Duration;

use control_plane_component::Objects;
use control_plane_component::certificate::{Authority, DEFAULT_VALIDITY, Leaf};
use jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::read;

const DAY: Duration = Duration::from_hours(24);
/// Renewal period of a leaf before it expires.
const RENEW: Duration = DAY.saturating_mul(30);
/// Rotation period of an authority before it expires, so that no leaf outlives it.
const ROTATE: Duration = DEFAULT_VALIDITY.saturating_add(RENEW);
/// How long a successor is only trusted before it signs, so that all clients have read the bundles.
pub const INTRODUCED: Duration = DAY;

/// Keys of an authority's successor before it signs.
pub(super) const NEXT: (&str, &str) = ("next.crt", "next.key");
/// Key of an authority's predecessor until it expires.
pub(super) const PREVIOUS: &str = "previous.crt";
/// Returns the trusted certificates of an authority, PEM.
pub(crate) const BUNDLE: &str = "bundle.crt";
/// Annotation: hash of the authority that signed a leaf.
pub(super) const SIGNER: &str = "hypershiftlite.openshift.io/ca-hash";
/// Secret and keys of the service account signing key.
pub(super) const SIGNING_KEY: (&str, &str, &str) = (
    "sa-signing-key",
    "service-account.key",
    "service-account.pub",
);

/// The next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Keep,
    /// Issue it.
    Issue,
    /// Create its successor, which is trusted from now on.
    Introduce,
    /// Let the successor sign.
    Promote,
    /// Remove the expired predecessor.
    Forget,
}

/// Plans the next step of an authority.
pub fn authority(authority: &Authority, existing: &Objects, now: Timestamp) -> Step {
    let (certificate, key) = authority.form.pair();
    let value = |key: &str| existing.secret_value(authority.secret, key);
    let read_at = |key: &str| value(key).as_deref().and_then(read::certificate);
    let (Some(current), Some(_)) = (read_at(&certificate), value(&key)) else {
        return Step::Issue;
    };
    if current.until <= now {
        // It has expired, so its certificates have, too.
        return Step::Issue;
    }
    if let Some(next) = read_at(NEXT.0) {
        return if has_passed(next.from, INTRODUCED, now) {
            Step::Promote
        } else {
            Step::Keep
        };
    }
    if value(PREVIOUS).is_some() {
        let ended = read_at(PREVIOUS).is_none_or(|previous| previous.until <= now);
        return if ended { Step::Forget } else { Step::Keep };
    }
    if is_near(current.until, ROTATE, now) {
        return Step::Introduce;
    }
    Step::Keep
}

/// Plans the next step of a certificate.
pub fn leaf(leaf: &Leaf, existing: &Objects, now: Timestamp) -> Step {
    let Some(secret) = existing.secret(&leaf.secret) else {
        return Step::Issue;
    };
    let (certificate, key) = leaf.form.pair();
    let data = secret.data.unwrap_or_default();
    let signer = secret
        .metadata
        .annotations
        .unwrap_or_default()
        .remove(SIGNER);
    let read = data
        .get(&certificate)
        .and_then(|pem| read::certificate(&pem.0));
    let (Some(read), true) = (read, data.contains_key(&key)) else {
        return Step::Issue;
    };
    let desired_names: BTreeSet<_> = leaf.names.iter().cloned().collect();
    let desired_groups: BTreeSet<_> = leaf.organizations.iter().cloned().collect();
    let is_up_to_date = read.common_name == leaf.common_name
        && read.organizations == desired_groups
        && read.names == desired_names
        && read.usage == leaf.usage
        && signer == Some(signer_hash(leaf.authority, existing))
        && validity(&read) <= leaf.validity.saturating_add(DAY);
    if is_up_to_date && !is_near(read.until, RENEW.min(leaf.validity / 3), now) {
        return Step::Keep;
    }
    Step::Issue
}

/// Whether the service account signing key is missing. It is never replaced, because that would invalidate all tokens.
pub(super) fn needs_signing_key(existing: &Objects) -> bool {
    let (secret, private, _) = SIGNING_KEY;
    existing.secret_value(secret, private).is_none()
}

/// Hash of an authority's certificate and bundle, because a leaf's Secret also contains the bundle.
pub(super) fn signer_hash(authority: &str, existing: &Objects) -> String {
    let value = |key: &str| existing.secret_value(authority, key).unwrap_or_default();
    let own = value("ca.crt");
    let own = if own.is_empty() {
        value("tls.crt")
    } else {
        own
    };
    let digest = Sha256::new()
        .chain_update(own)
        .chain_update(value(BUNDLE))
        .finalize();
    let mut hash = format!("{digest:x}");
    hash.truncate(16);
    hash
}

fn validity(read: &read::Read) -> Duration {
    Duration::try_from(read.until.duration_since(read.from)).unwrap_or_default()
}

fn has_passed(from: Timestamp, time: Duration, now: Timestamp) -> bool {
    Duration::try_from(now.duration_since(from)).is_ok_and(|passed| passed >= time)
}

fn is_near(end: Timestamp, time: Duration, now: Timestamp) -> bool {
    Duration::try_from(end.duration_since(now)).map_or(true, |left| left <= time)
}
