//! Decides when a signer, its bundle and its client certificate are renewed. Pure.
//!
//! | object | lifetime | refreshed after |
//! |---|---|---|
//! | signer | 7 days | 2 days |
//! | client certificate | 36 hours | 6 hours |
//!
//! A "day" is the scale. A new signer is trusted before it signs: its client certificate is refreshed only when the
//! signer has a tenth of the refresh period, and [`revocation`](super::revocation) proves trust before it forces one.

use std::time::Duration;

use jiff::Timestamp;

use super::issue::Pair;
use super::x509::{Certificate, with_signer};

/// Value of the annotation with the end of a certificate: renew it at once.
pub(super) const FORCE: &str = "force-regeneration";
/// A renewal is due when this share of the lifetime has passed, in percent.
const LATEST: u32 = 80;
/// Share of the client's refresh period in which a new signer only is trusted.
const INTRODUCTION: u32 = 10;

/// Lifetimes and refresh periods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lifetimes {
    pub(super) signer: Lifetime,
    pub(super) client: Lifetime,
}

/// Of one kind of certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lifetime {
    pub(super) validity: Duration,
    pub(super) refresh: Duration,
}

/// A certificate in its Secret.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Stored {
    /// The certificate and its key, if they are usable.
    pub(super) pair: Option<Pair>,
    /// Annotations with its begin and end.
    pub(super) annotations: [Option<String>; 2],
}

/// The objects of a class.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Observed {
    pub(super) signer: Stored,
    pub(super) bundle: Vec<Certificate>,
    pub(super) client: Stored,
}

/// The next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Issue a signer.
    Signer(&'static str),
    /// Write the bundle.
    Bundle(Vec<Certificate>),
    /// Issue a client certificate.
    Client(&'static str),
    /// Nothing before this moment.
    Keep(Timestamp),
}

// === impl Lifetimes ===

impl Lifetimes {
    /// The lifetimes if a day has this length.
    pub(super) fn scaled(day: Duration) -> Self {
        Self {
            signer: Lifetime {
                validity: day * 7,
                refresh: day * 2,
            },
            client: Lifetime {
                validity: day * 3 / 2,
                refresh: day / 4,
            },
        }
    }
}

// === impl Stored ===

impl Stored {
    /// Whether a renewal was requested, and has not begun.
    pub(super) fn is_forced(&self) -> bool {
        self.annotations[1].as_deref() == Some(FORCE)
    }

    /// Why it is renewed now, or when it is due.
    fn due(
        &self,
        lifetime: Lifetime,
        introduced: Timestamp,
        now: Timestamp,
    ) -> Result<Timestamp, &'static str> {
        let Some(pair) = &self.pair else {
            return Err("missing or unusable");
        };
        if self.is_forced() {
            return Err("its renewal was requested");
        }
        let mut until = pair.certificate.not_after;
        for (index, annotation) in self.annotations.iter().enumerate() {
            let parsed = annotation
                .as_deref()
                .and_then(|text| text.parse::<Timestamp>().ok());
            let Some(at) = parsed else {
                return Err("its annotations are invalid");
            };
            if index == 1 {
                until = until.min(at);
            }
        }
        if until <= now {
            return Err("expired");
        }
        let from = pair.certificate.not_before;
        let validity = Duration::try_from(until.duration_since(from)).unwrap_or_default();
        let latest = from + validity * LATEST / 100;
        if latest <= now {
            return Err("past 80% of its lifetime");
        }
        let due = latest.min((from + lifetime.refresh).max(introduced));
        if due <= now {
            return Err("past its refresh period");
        }
        Ok(due)
    }
}

// === impl Observed ===

impl Observed {
    /// Plans the next step.
    pub(super) fn plan(&self, lifetimes: Lifetimes, now: Timestamp) -> Step {
        let signer_due = match self.signer.due(lifetimes.signer, now, now) {
            Ok(due) => due,
            Err(reason) => return Step::Signer(reason),
        };
        let Some(signer) = &self.signer.pair else {
            return Step::Signer("missing or unusable");
        };
        let signer = &signer.certificate;
        let bundle = with_signer(signer, &self.bundle, now);
        if bundle != self.bundle {
            return Step::Bundle(bundle);
        }
        let introduced = signer.not_before + lifetimes.client.refresh * INTRODUCTION / 100;
        match self.client.due(lifetimes.client, introduced, now) {
            Ok(_) if !self.is_client_trusted() => {
                Step::Client("its signer is not trusted any more")
            }
            Ok(due) => Step::Keep(due.min(signer_due)),
            Err(reason) => Step::Client(reason),
        }
    }

    /// Whether the signer of the client certificate is in the bundle.
    pub(super) fn is_client_trusted(&self) -> bool {
        let Some(client) = &self.client.pair else {
            return false;
        };
        let mut signers = self.bundle.iter();
        signers.any(|signer| client.certificate.is_issued_by(signer))
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{DAY, at, client, signer};
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    fn stored(pair: Pair) -> Stored {
        let certificate = &pair.certificate;
        Stored {
            annotations: [certificate.not_before, certificate.not_after]
                .map(|at| Some(at.to_string())),
            pair: Some(pair),
        }
    }

    /// A signer of hour 0 with a client certificate of hour 1.
    fn observed() -> Observed {
        let signer = signer(at(0));
        Observed {
            bundle: vec![signer.certificate.clone()],
            client: stored(client(&signer, at(1))),
            signer: stored(signer),
        }
    }

    fn plan(observed: &Observed, hour: u32) -> String {
        match observed.plan(Lifetimes::scaled(DAY), at(hour)) {
            Step::Signer(reason) => format!("signer: {reason}"),
            Step::Bundle(bundle) => format!("bundle of {}", bundle.len()),
            Step::Client(reason) => format!("client: {reason}"),
            Step::Keep(until) => {
                let hours = until.duration_since(at(0)).as_secs_f64() / 3600.0;
                format!("keep until {hours:.2}")
            }
        }
    }

    #[test]
    fn lifetimes_follow_the_scale() {
        let lifetimes = Lifetimes::scaled(DAY);
        assert_eq!(lifetimes.signer.validity, DAY * 7);
        assert_eq!(lifetimes.signer.refresh, DAY * 2);
        assert_eq!(lifetimes.client.validity, HOUR * 36);
        assert_eq!(lifetimes.client.refresh, HOUR * 6);
        let minutes = Lifetimes::scaled(Duration::from_mins(24));
        assert_eq!(minutes.client.validity, Duration::from_mins(36));
    }

    /// Backdating by five minutes makes 0.92 of hour 1.
    #[test]
    fn certificates_are_renewed_when_due() {
        type Change = fn(&mut Observed);
        let rows: [(&str, u32, Change, &str); 18] = [
            ("up to date", 2, |_| {}, "keep until 6.92"),
            (
                "no signer",
                2,
                |it| it.signer = Stored::default(),
                "signer: missing or unusable",
            ),
            (
                "signer without annotation",
                2,
                |it| it.signer.annotations[0] = None,
                "signer: its annotations are invalid",
            ),
            (
                "signer with an invalid annotation",
                2,
                |it| it.signer.annotations[1] = Some("soon".into()),
                "signer: its annotations are invalid",
            ),
            (
                "signer is forced",
                2,
                |it| it.signer.annotations[1] = Some(FORCE.into()),
                "signer: its renewal was requested",
            ),
            (
                "signer ends earlier by its annotation",
                2,
                |it| it.signer.annotations[1] = Some(at(2).to_string()),
                "signer: expired",
            ),
            (
                "signer just before its refresh",
                47,
                |it| it.client = stored(client(it.signer.pair.as_ref().unwrap(), at(46))),
                "keep until 48.00",
            ),
            (
                "signer past its refresh",
                48,
                |_| {},
                "signer: past its refresh period",
            ),
            (
                "signer past 80%",
                135,
                |_| {},
                "signer: past 80% of its lifetime",
            ),
            ("signer expired", 168, |_| {}, "signer: expired"),
            ("empty bundle", 2, |it| it.bundle.clear(), "bundle of 1"),
            (
                "another signer in the bundle",
                2,
                |it| it.bundle.push(signer(at(1)).certificate),
                "keep until 6.92",
            ),
            (
                "expired signer in the bundle",
                170,
                |it| {
                    it.signer = stored(signer(at(169)));
                    it.bundle
                        .insert(0, it.signer.pair.as_ref().unwrap().certificate.clone());
                },
                "bundle of 1",
            ),
            (
                "no client",
                0,
                |it| it.client = Stored::default(),
                "client: missing or unusable",
            ),
            (
                "client is forced",
                2,
                |it| it.client.annotations[1] = Some(FORCE.into()),
                "client: its renewal was requested",
            ),
            (
                "client past its refresh",
                7,
                |_| {},
                "client: past its refresh period",
            ),
            ("client expired", 40, |_| {}, "client: expired"),
            (
                "client of a signer without trust",
                2,
                |it| {
                    it.signer = stored(signer(at(1)));
                    it.bundle = vec![it.signer.pair.as_ref().unwrap().certificate.clone()];
                },
                "client: its signer is not trusted any more",
            ),
        ];
        for (name, hour, change, expected) in rows {
            let mut observed = observed();
            change(&mut observed);
            assert_eq!(plan(&observed, hour), expected, "{name}");
        }
    }

    /// A new signer is trusted for 36 minutes before it signs.
    #[test]
    fn a_new_signer_does_not_sign_at_once() {
        let mut observed = observed();
        let old = observed.signer.pair.clone().unwrap();
        observed.client = stored(client(&old, at(42)));
        observed.signer = stored(signer(at(48)));
        let new = observed.signer.pair.clone().unwrap().certificate;
        observed.bundle = vec![new, old.certificate];
        assert_eq!(plan(&observed, 48), "keep until 48.60");
        assert_eq!(plan(&observed, 49), "client: past its refresh period");
    }

    /// Steps converge, and the client certificate is trusted after each.
    #[test]
    fn rotation_never_loses_trust_in_the_client_certificate() {
        let lifetimes = Lifetimes::scaled(DAY);
        let mut observed = Observed::default();
        let mut signers = 0;
        for hour in 0..24 * 20 {
            let now = at(hour);
            for steps in 0.. {
                assert!(steps < 4, "hour {hour}: no end");
                match observed.plan(lifetimes, now) {
                    Step::Signer(_) => {
                        observed.signer = stored(signer(now));
                        signers += 1;
                    }
                    Step::Bundle(bundle) => observed.bundle = bundle,
                    Step::Client(_) => {
                        observed.client =
                            stored(client(observed.signer.pair.as_ref().unwrap(), now))
                    }
                    Step::Keep(until) => {
                        assert!(until > now);
                        break;
                    }
                }
                assert!(hour == 0 || observed.is_client_trusted(), "hour {hour}");
            }
            assert!(observed.bundle.len() <= 4);
        }
        assert_eq!(signers, 10);
    }
}
