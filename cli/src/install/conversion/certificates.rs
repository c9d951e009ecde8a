//! The webhook's certificate where we issue it ourselves. Pure, but for the random numbers of a new key.
//!
//! Each certificate has an authority of its own, whose key is forgotten at once: nobody can ever issue another. What is
//! trusted is the newest authority and those before it, so that there is no moment at which the API server trusts
//! something else than is shown.

use std::time::Duration;

use anyhow::{Context, anyhow};
use base64::{Engine, engine::general_purpose::STANDARD};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{RootCertStore, client};
use serde_json::{Value, json};
use x509_parser::prelude::{FromDer, X509Certificate};

/// How long a certificate is good for.
const LIFETIME: Duration = Duration::from_hours(365 * 24);
/// Clocks may differ so much.
const SKEW: Duration = Duration::from_hours(1);
/// Authorities that are trusted at most: the newest, and those of certificates that may still be shown.
const AUTHORITIES: usize = 2;

/// What the webhook shows, and what the API server trusts.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Serving {
    /// PEM.
    certificate: String,
    /// PEM.
    key: String,
    /// PEM, the newest first.
    authorities: String,
}

// === impl Serving ===

impl Serving {
    /// What a Secret holds; nothing when it holds something else.
    pub(super) fn of(secret: &Value) -> Option<Self> {
        let text = |key: &str| {
            let encoded = secret["data"][key].as_str()?;
            String::from_utf8(STANDARD.decode(encoded).ok()?).ok()
        };
        Some(Self {
            certificate: text("tls.crt")?,
            key: text("tls.key")?,
            authorities: text("ca.crt")?,
        })
    }

    /// The `data` of a Secret.
    pub(super) fn data(&self) -> Value {
        json!({
            "tls.crt": STANDARD.encode(&self.certificate),
            "tls.key": STANDARD.encode(&self.key),
            "ca.crt": STANDARD.encode(&self.authorities),
        })
    }

    /// PEM certificates that are shown.
    pub(super) fn certificate(&self) -> &str {
        &self.certificate
    }

    /// PEM certificates that the API server trusts.
    pub(super) fn authorities(&self) -> &str {
        &self.authorities
    }

    /// What is to be there: what is, as long as it is good, and else something new.
    pub(super) fn renewed(
        current: Option<Self>,
        server: &str,
        now: UnixTime,
    ) -> anyhow::Result<Self> {
        match current {
            Some(current) if current.is_good(server, now) => Ok(current),
            Some(current) => Self::issue(server, &current.authorities, now),
            None => Self::issue(server, "", now),
        }
    }

    /// Trusted, and with a third of its time left.
    fn is_good(&self, server: &str, now: UnixTime) -> bool {
        self.flaw(server, now).is_none() && !self.ages(now).unwrap_or(true)
    }

    /// Whether less than a third of its time is left.
    fn ages(&self, now: UnixTime) -> Option<bool> {
        let leaf = certificates(&self.certificate).into_iter().next()?;
        let (_, parsed) = X509Certificate::from_der(&leaf).ok()?;
        let validity = parsed.validity();
        let (from, until) = (
            validity.not_before.timestamp(),
            validity.not_after.timestamp(),
        );
        Some((until - seconds(now)) * 3 < until - from)
    }

    /// Why an API server would not talk to who shows this, if it would not.
    pub(super) fn flaw(&self, server: &str, now: UnixTime) -> Option<String> {
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes());
        if key.is_err() {
            return Some("it holds no private key".to_owned());
        }
        flaw(&self.certificate, &self.authorities, server, now)
    }

    fn issue(server: &str, trusted: &str, now: UnixTime) -> anyhow::Result<Self> {
        let (authority, issuer) = authority(now)?;
        let mut params = CertificateParams::new([server.to_owned(), "localhost".to_owned()])
            .context("the webhook's name fits in no certificate")?;
        last_from(&mut params, now);
        params
            .distinguished_name
            .push(DnType::CommonName, super::NAME);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().context("cannot make a key")?;
        let certificate = params
            .signed_by(&key, &issuer)
            .context("cannot sign the webhook's certificate")?;
        Ok(Self {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
            authorities: bundle(&authority, trusted, now),
        })
    }
}

impl std::fmt::Debug for Serving {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the key.
        f.debug_struct("Serving").finish_non_exhaustive()
    }
}

/// An authority, as PEM and as what signs.
fn authority(now: UnixTime) -> anyhow::Result<(String, Issuer<'static, KeyPair>)> {
    let mut params = CertificateParams::default();
    last_from(&mut params, now);
    params
        .distinguished_name
        .push(DnType::CommonName, format!("{}-ca", super::NAME));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    let key = KeyPair::generate().context("cannot make a key")?;
    let pem = params
        .self_signed(&key)
        .context("cannot sign the authority's certificate")?
        .pem();
    Ok((pem, Issuer::new(params, key)))
}

fn last_from(params: &mut CertificateParams, now: UnixTime) {
    let now = rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(now.as_secs());
    params.not_before = now - SKEW;
    params.not_after = now + LIFETIME;
}

fn seconds(time: UnixTime) -> i64 {
    i64::try_from(time.as_secs()).unwrap_or(i64::MAX)
}

/// The new authority and those of the old ones that have not expired.
fn bundle(newest: &str, trusted: &str, now: UnixTime) -> String {
    let old = certificates(trusted).into_iter().filter(|der| {
        let parsed = X509Certificate::from_der(der);
        parsed.is_ok_and(|(_, parsed)| parsed.validity().not_after.timestamp() > seconds(now))
    });
    let mut bundle = newest.to_owned();
    for der in old.take(AUTHORITIES - 1) {
        let encoded = STANDARD.encode(&der);
        bundle.push_str("-----BEGIN CERTIFICATE-----\n");
        for line in encoded.as_bytes().chunks(64) {
            bundle.push_str(&String::from_utf8_lossy(line));
            bundle.push('\n');
        }
        bundle.push_str("-----END CERTIFICATE-----\n");
    }
    bundle
}

/// Why somebody who trusts these authorities would not take this certificate for the server's.
pub(super) fn flaw(
    certificate: &str,
    authorities: &str,
    server: &str,
    now: UnixTime,
) -> Option<String> {
    verify(certificate, authorities, server, now)
        .err()
        .map(|error| format!("{error:#}"))
}

fn verify(certificate: &str, authorities: &str, server: &str, now: UnixTime) -> anyhow::Result<()> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates(authorities));
    let chain = certificates(certificate);
    let (leaf, rest) = chain
        .split_first()
        .ok_or_else(|| anyhow!("it holds no certificate"))?;
    let name = ServerName::try_from(server.to_owned()).context("the webhook's name is no name")?;
    let leaf = ParsedCertificate::try_from(leaf).context("its certificate is damaged")?;
    let algorithms =
        rustls::crypto::aws_lc_rs::default_provider().signature_verification_algorithms;
    client::verify_server_cert_signed_by_trust_anchor(&leaf, &roots, rest, now, algorithms.all)
        .context("its certificate is not of a trusted authority, or has expired")?;
    client::verify_server_name(&leaf, &name)
        .with_context(|| format!("its certificate is not for {server}"))
}

/// What is no certificate is passed over.
fn certificates(pem: &str) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem.as_bytes())
        .filter_map(Result::ok)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_hours(24);
    const SERVER: &str = "shim.ns.svc";

    /// That many days after the first certificate.
    fn day(days: u32) -> UnixTime {
        UnixTime::since_unix_epoch(Duration::from_hours(500_000) + DAY * days)
    }

    #[test]
    fn it_is_kept_until_a_third_of_its_time_is_left() {
        let first = Serving::renewed(None, SERVER, day(0)).unwrap();
        for (days, kept) in [
            (0, true),
            (200, true),
            (242, true),
            (245, false),
            (400, false),
        ] {
            let later = day(days);
            let then = Serving::renewed(Some(first.clone()), SERVER, later).unwrap();
            assert_eq!(then == first, kept, "after {days} days");
            assert_eq!(then.flaw(SERVER, later), None, "after {days} days");
        }
    }

    #[test]
    fn c05_what_was_shown_before_stays_trusted_and_no_key_is_kept() {
        let first = Serving::renewed(None, SERVER, day(0)).unwrap();
        let later = day(300);
        let second = Serving::renewed(Some(first.clone()), SERVER, later).unwrap();
        assert_eq!(
            flaw(&first.certificate, &second.authorities, SERVER, later),
            None
        );
        assert_eq!(
            flaw(&second.certificate, &second.authorities, SERVER, later),
            None
        );
        assert!(flaw(&second.certificate, &first.authorities, SERVER, later).is_some());
        let third = day(600);
        let third = Serving::renewed(Some(second), SERVER, third).unwrap();
        assert_eq!(third.authorities.matches("BEGIN").count(), 2);
        assert!(!third.authorities.contains("KEY"));
    }

    #[test]
    fn c06_another_name_another_authority_and_damage_are_told() {
        let serving = Serving::renewed(None, SERVER, day(0)).unwrap();
        let other = Serving::renewed(None, SERVER, day(0)).unwrap();
        assert_eq!(serving.flaw(SERVER, day(0)), None);
        assert!(serving.flaw("shim.elsewhere.svc", day(0)).is_some());
        let certificate = &serving.certificate;
        assert!(flaw(certificate, &other.authorities, SERVER, day(0)).is_some());
        assert!(flaw(certificate, "", SERVER, day(0)).is_some());
        assert!(flaw("", &serving.authorities, SERVER, day(0)).is_some());
        let late = day(366);
        assert!(serving.flaw(SERVER, late).is_some());
        let damaged = Serving {
            key: String::new(),
            ..serving
        };
        assert!(damaged.flaw(SERVER, day(0)).is_some());
        let mended = Serving::renewed(Some(damaged), SERVER, day(0)).unwrap();
        assert_eq!(mended.flaw(SERVER, day(0)), None);
    }

    #[test]
    fn a_secret_gives_back_what_was_put_into_it() {
        let serving = Serving::renewed(None, SERVER, day(0)).unwrap();
        let secret = json!({"data": serving.data()});
        assert_eq!(Serving::of(&secret), Some(serving));
        assert_eq!(Serving::of(&json!({"data": {"tls.crt": "eA=="}})), None);
    }
}
