//! Decides the next step of a revocation: one change at a time, each proven before the next. Pure.
//!
//! ```text
//! SignerClassValid ──> RootCertificatesRegenerated ──> NewCertificatesTrusted ──> LeafCertificatesRegenerated
//!   the request has      the old signer is saved,        every API server           the client Secret is issued
//!   its timestamp        and replaced                    accepts both signers       again, the bundle has no
//!                                                                                   signer of before
//!   ──> PreviousCertificatesRevoked: every API server refuses the old signer, and accepts the new one
//! ```
//!
//! Certificates of signers that begin after the timestamp stay valid, and so do those of other classes.

mod request;

use std::time::Duration;

use jiff::Timestamp;
use sha2::{Digest as _, Sha224};

use super::class::Class;
use super::issue::Pair;
use super::rotation::Stored;
use super::x509::Certificate;
pub(super) use request::{Change, Request, Set};

pub(super) const CLASS_VALID: &str = "SignerClassValid";
pub(super) const ROOTS: &str = "RootCertificatesRegenerated";
pub(super) const TRUSTED: &str = "NewCertificatesTrusted";
pub(super) const LEAVES: &str = "LeafCertificatesRegenerated";
pub(super) const REVOKED: &str = "PreviousCertificatesRevoked";

const AS_EXPECTED: &str = "AsExpected";
const CLASS_UNKNOWN: &str = "SignerClassUnknown";
const ROOTS_STALE: &str = "RootCertificatesStale";
const LEAVES_STALE: &str = "LeafCertificatesStale";
const WAITING: &str = "WaitingForAvailable";
const TIMEOUT: &str = "RevocationVerificationTimeout";
/// How long the API servers may take to refuse the old signer.
const VERIFICATION: Duration = Duration::from_mins(10);

/// The saved signer of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Saved {
    Own(Pair),
    /// It is of another request, or of a previous one with the same name.
    Foreign,
}

/// What a step is decided by.
#[derive(Debug, Clone)]
pub(super) struct View<'a> {
    pub(super) request: &'a Request,
    pub(super) signer: &'a Stored,
    /// The trusted signers of the class.
    pub(super) bundle: &'a [Certificate],
    /// The trusted signers of all classes, as API servers are given them.
    pub(super) total: &'a [Certificate],
    pub(super) client: &'a Stored,
    pub(super) saved: Option<&'a Saved>,
    pub(super) now: Timestamp,
}

/// What every API server must do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expect {
    /// Accept certificates of both signers.
    Both,
    /// Accept those of the new signer, and refuse those of the old one.
    OnlyNew,
}

/// The next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Update the status.
    Status(Change),
    /// Copy the current signer to the Secret with this name.
    SaveSigner(String),
    /// Request a new signer.
    ForceSigner,
    /// Request a new client certificate.
    ForceClient,
    /// Write the bundle of the class.
    Prune(Vec<Certificate>),
    /// Ask every API server.
    Probe(Expect),
    /// Wait for a change, for the reason.
    Wait(String),
    /// The revocation is complete, or cannot begin.
    Done,
}

/// Name of the Secret with the signer before a request: the hash of the request's name in base 36.
pub(super) fn saved_name(request: &str) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut number: Vec<u8> = Sha224::digest(request).to_vec();
    let mut name = Vec::new();
    while number.iter().any(|byte| *byte != 0) {
        let mut rest = 0_usize;
        for byte in &mut number {
            let value = rest * 256 + usize::from(*byte);
            *byte = u8::try_from(value / 36).unwrap_or_default();
            rest = value % 36;
        }
        name.push(char::from(DIGITS[rest]));
    }
    name.into_iter().rev().collect()
}

// === impl View ===

impl View<'_> {
    /// Decides the next step. Without I/O; [`View::probed`] continues after [`Step::Probe`].
    pub(super) fn next(&self) -> Step {
        let request = self.request;
        let Some(class) = Class::parse(&request.class) else {
            return self.unknown_class();
        };
        let Some(timestamp) = request.timestamp else {
            return self.begin(class);
        };
        if request.is_true(REVOKED) {
            return Step::Done;
        }
        let Some(signer) = &self.signer.pair else {
            return Step::Wait("Waiting for a signer".to_owned());
        };
        if signer.certificate.not_before <= timestamp {
            return self.replace_signer(timestamp);
        }
        if !request.is_true(ROOTS) {
            return roots_regenerated(&signer.certificate);
        }
        if !request.is_true(TRUSTED) {
            return self.verify_trust(&signer.certificate);
        }
        if !request.is_true(LEAVES) {
            return self.regenerate_leaves(timestamp);
        }
        self.verify_refusal(timestamp)
    }

    fn begin(&self, class: Class) -> Step {
        let message = format!("Signer class {} is known.", class.name());
        Step::Status(Change {
            timestamp: Some(self.now),
            conditions: vec![set(CLASS_VALID, true, AS_EXPECTED, message)],
            ..Change::default()
        })
    }

    fn verify_trust(&self, signer: &Certificate) -> Step {
        if !self.total.contains(signer) {
            let reason = "Waiting for the client CA bundle to contain the new signer";
            return Step::Wait(reason.to_owned());
        }
        self.probe(Expect::Both)
    }

    fn verify_refusal(&self, timestamp: Timestamp) -> Step {
        if self.total.iter().any(|one| self.is_revoked(one, timestamp)) {
            return self.overdue("the client CA bundle still contains the old signer".to_owned());
        }
        self.probe(Expect::OnlyNew)
    }

    /// Nothing is proven without the signer that is revoked.
    fn probe(&self, expect: Expect) -> Step {
        let Some(name) = &self.request.previous else {
            return Step::Probe(expect);
        };
        match (self.saved, expect) {
            (Some(Saved::Own(_)), _) => Step::Probe(expect),
            (_, Expect::Both) => Step::Wait(lost(name)),
            (_, Expect::OnlyNew) => self.overdue(lost(name)),
        }
    }

    /// Decides after every API server was asked; an error says what is missing.
    pub(super) fn probed(&self, expect: Expect, outcome: Result<(), String>) -> Step {
        match (expect, outcome) {
            (Expect::Both, Ok(())) => Step::Status(conditions([
                set(TRUSTED, true, AS_EXPECTED, "Every API server trusts the new signer.".to_owned()),
                set(LEAVES, false, LEAVES_STALE, "Waiting for certificates of the new signer.".to_owned()),
            ])),
            (Expect::Both, Err(problem)) => Step::Wait(problem),
            (Expect::OnlyNew, Ok(())) => Step::Status(conditions([set(
                REVOKED,
                true,
                AS_EXPECTED,
                "Every API server refuses certificates of the previous signer, and accepts those of the new one.".to_owned(),
            )])),
            (Expect::OnlyNew, Err(problem)) => self.overdue(problem),
        }
    }

    /// Pairs that API servers are asked with: of the new signer, and of the old one if there was one.
    pub(super) fn signers(&self) -> Option<(&Pair, Option<&Pair>)> {
        let old = self.saved.and_then(|saved| match saved {
            Saved::Own(pair) => Some(pair),
            Saved::Foreign => None,
        });
        Some((self.signer.pair.as_ref()?, old))
    }

    fn unknown_class(&self) -> Step {
        let found = self.request.condition(CLASS_VALID);
        if found.is_some_and(|found| found.reason == CLASS_UNKNOWN) {
            return Step::Done;
        }
        let known = Class::ALL.map(Class::name).join(", ");
        let message = format!(
            "Signer class {:?} is unknown. Known classes: {known}.",
            self.request.class
        );
        Step::Status(conditions([set(
            CLASS_VALID,
            false,
            CLASS_UNKNOWN,
            message,
        )]))
    }

    /// The signer is older than the revocation: it is saved, to be able to prove later that it is refused, and replaced.
    fn replace_signer(&self, timestamp: Timestamp) -> Step {
        let name = saved_name(&self.request.name);
        match self.saved {
            None => return Step::SaveSigner(name),
            Some(Saved::Foreign) => {
                return Step::Wait(format!("Secret {name} is not of this request. Delete it."));
            }
            Some(Saved::Own(_)) => {}
        }
        if self.request.previous.as_ref() != Some(&name) || self.request.condition(ROOTS).is_none()
        {
            let message = "The signer is older than the revocation.".to_owned();
            return Step::Status(Change {
                previous: Some(name),
                conditions: vec![set(ROOTS, false, ROOTS_STALE, message)],
                ..Change::default()
            });
        }
        // Certificates have whole seconds: one that begins in the second of the revocation would count as older.
        if self.now.as_second() <= timestamp.as_second() || self.signer.is_forced() {
            return Step::Wait("Waiting for a new signer".to_owned());
        }
        Step::ForceSigner
    }

    fn regenerate_leaves(&self, timestamp: Timestamp) -> Step {
        let Some(client) = &self.client.pair else {
            return Step::Wait("Waiting for a client certificate".to_owned());
        };
        let kept: Vec<_> = self
            .bundle
            .iter()
            .filter(|one| one.not_before > timestamp)
            .cloned()
            .collect();
        if !kept
            .iter()
            .any(|signer| client.certificate.is_issued_by(signer))
        {
            if self.client.is_forced() {
                return Step::Wait("Waiting for a client certificate of the new signer".to_owned());
            }
            return Step::ForceClient;
        }
        if kept != self.bundle {
            return Step::Prune(kept);
        }
        Step::Status(conditions([
            set(
                LEAVES,
                true,
                AS_EXPECTED,
                "The client certificate is of the new signer.".to_owned(),
            ),
            set(
                REVOKED,
                false,
                WAITING,
                "Waiting for every API server to refuse the previous signer.".to_owned(),
            ),
        ]))
    }

    /// Whether a trusted signer is one of the class that is revoked.
    fn is_revoked(&self, one: &Certificate, timestamp: Timestamp) -> bool {
        let series = |certificate: &Certificate| {
            let name = certificate.common_name.split_once('@');
            name.map(|(series, _)| series.to_owned())
        };
        let own = self
            .signer
            .pair
            .as_ref()
            .and_then(|pair| series(&pair.certificate));
        one.not_before <= timestamp && series(one) == own
    }

    /// Waits; after a while also reports that it takes too long.
    fn overdue(&self, problem: String) -> Step {
        let begun = self
            .request
            .condition(LEAVES)
            .map(|it| it.last_transition_time.0);
        let waited = begun
            .map(|begun| Duration::try_from(self.now.duration_since(begun)).unwrap_or_default());
        let is_reported = self
            .request
            .condition(REVOKED)
            .is_some_and(|it| it.reason == TIMEOUT);
        if waited.is_none_or(|waited| waited <= VERIFICATION) || is_reported {
            return Step::Wait(problem);
        }
        let message =
            format!("The previous signer is not refused everywhere after 10 minutes: {problem}");
        Step::Status(conditions([set(REVOKED, false, TIMEOUT, message)]))
    }
}

fn roots_regenerated(signer: &Certificate) -> Step {
    let newer = format!(
        "Signer {} is newer than the revocation.",
        signer.common_name
    );
    let waiting = "Waiting for every API server to trust the new signer.".to_owned();
    Step::Status(conditions([
        set(ROOTS, true, AS_EXPECTED, newer),
        set(TRUSTED, false, WAITING, waiting),
    ]))
}

fn lost(name: &str) -> String {
    format!(
        "Secret {name} with the previous signer is missing: create another CertificateRevocationRequest"
    )
}

fn set(type_: &'static str, status: bool, reason: &'static str, message: String) -> Set {
    Set {
        type_,
        status,
        reason,
        message,
    }
}

fn conditions(conditions: impl IntoIterator<Item = Set>) -> Change {
    Change {
        conditions: conditions.into_iter().collect(),
        ..Change::default()
    }
}

#[cfg(test)]
mod tests;
