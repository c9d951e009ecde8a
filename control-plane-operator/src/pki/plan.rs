//! What has to be done about an authority or a certificate: decided by what is there and what is wanted.

use std::collections::BTreeSet;
use std::time::Duration;

use control_plane_component::Objects;
use control_plane_component::certificate::{Authority, LIFE, Leaf};
use jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::read;

const DAY: Duration = Duration::from_hours(24);
/// How long before its end a leaf is renewed.
const RENEW: Duration = DAY.saturating_mul(30);
/// How long before its end an authority gets a successor: no leaf may outlive it.
const ROTATE: Duration = LIFE.saturating_add(RENEW);
/// How long a successor is only trusted, before it signs: everybody has read the bundles by then.
pub const INTRODUCED: Duration = DAY;

/// The certificate of an authority's successor, before it signs.
pub(super) const NEXT: (&str, &str) = ("next.crt", "next.key");
/// The certificate of an authority's predecessor, for as long as it lives.
pub(super) const PREVIOUS: &str = "previous.crt";
/// All certificates of an authority that are trusted.
pub(crate) const BUNDLE: &str = "bundle.crt";
/// Hash of the authority that a leaf was signed by.
pub(super) const SIGNER: &str = "hypershiftlite.openshift.io/ca-hash";
/// The signing key of service accounts.
pub(super) const SIGNING_KEY: (&str, &str, &str) = (
    "sa-signing-key",
    "service-account.key",
    "service-account.pub",
);

/// What has to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Keep,
    /// It is issued, or issued again.
    Issue,
    /// Its successor is made, and trusted from now on.
    Introduce,
    /// Its successor takes over.
    Promote,
    /// Its predecessor has ended, and is forgotten.
    Forget,
}

/// What has to be done about an authority.
pub fn authority(authority: &Authority, there: &Objects, now: Timestamp) -> Step {
    let (certificate, key) = authority.form.pair();
    let value = |key: &str| there.secret_value(authority.secret, key);
    let read_at = |key: &str| value(key).as_deref().and_then(read::certificate);
    let (Some(current), Some(_)) = (read_at(&certificate), value(&key)) else {
        return Step::Issue;
    };
    if current.until <= now {
        // Nothing that it has signed is of use any more.
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

/// What has to be done about a certificate.
pub fn leaf(leaf: &Leaf, there: &Objects, now: Timestamp) -> Step {
    let Some(secret) = there.secret(&leaf.secret) else {
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
    let wanted_names: BTreeSet<_> = leaf.names.iter().cloned().collect();
    let wanted_groups: BTreeSet<_> = leaf.organizations.iter().cloned().collect();
    let is_as_wanted = read.common_name == leaf.common_name
        && read.organizations == wanted_groups
        && read.names == wanted_names
        && read.usage == leaf.usage
        && signer == Some(signer_hash(leaf.authority, there))
        && life(&read) <= leaf.life.saturating_add(DAY);
    if is_as_wanted && !is_near(read.until, RENEW.min(leaf.life / 3), now) {
        return Step::Keep;
    }
    Step::Issue
}

/// Whether the key that signs the guest's tokens is missing. It is never replaced: all tokens would become invalid.
pub(super) fn lacks_signing_key(there: &Objects) -> bool {
    let (secret, private, _) = SIGNING_KEY;
    there.secret_value(secret, private).is_none()
}

/// Which authority signs, and whom it has others trust: a leaf also holds the bundle.
pub(super) fn signer_hash(authority: &str, there: &Objects) -> String {
    let value = |key: &str| there.secret_value(authority, key).unwrap_or_default();
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

fn life(read: &read::Read) -> Duration {
    Duration::try_from(read.until.duration_since(read.from)).unwrap_or_default()
}

fn has_passed(from: Timestamp, time: Duration, now: Timestamp) -> bool {
    Duration::try_from(now.duration_since(from)).is_ok_and(|passed| passed >= time)
}

fn is_near(end: Timestamp, time: Duration, now: Timestamp) -> bool {
    Duration::try_from(end.duration_since(now)).map_or(true, |left| left <= time)
}
