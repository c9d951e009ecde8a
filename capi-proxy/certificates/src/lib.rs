//! The self-managed serving certificate of the conversion webhook: issued, validated and renewed. Pure, except for the
//! random numbers of a new key. `hypershift install` issues the first one, the leader of hypershift-operator renews it.
//!
//! Each certificate has its own CA. The CA's key is discarded immediately, so that it can never issue another one. The
//! newest CA and that of the served certificate are trusted: a renewal publishes both before it serves the new
//! certificate.

use std::time::Duration;

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

/// Name of the webhook's Deployment and Service, and common name of its certificate.
pub const WEBHOOK: &str = "capi-conversion-webhook-shim";
/// Field manager for writes of the certificate, by the installer or the operator.
pub const FIELD_MANAGER: &str = "hypershift-install";
/// Lifetime of the first certificate. Renewed certificates have the lifetime of the previous one.
const LIFETIME: Duration = Duration::from_hours(365 * 24);
/// Allowed clock skew.
const SKEW: Duration = Duration::from_hours(1);
/// Maximum number of trusted CAs: the newest, and that of the served certificate.
const AUTHORITIES: usize = 2;

/// The serving certificate, its key, and the CAs that the API server trusts.
#[derive(Clone, PartialEq, Eq)]
pub struct Serving {
    /// PEM.
    certificate: String,
    /// PEM.
    key: String,
    /// PEM, the newest first.
    authorities: String,
}

/// Issuing a certificate failed.
#[derive(Debug, thiserror::Error)]
#[error("failed to issue a certificate for {server}")]
pub struct Error {
    server: String,
    source: rcgen::Error,
}

/// Name of the Secret with the certificate.
pub fn secret_name() -> String {
    format!("{WEBHOOK}-serving")
}

/// The DNS name of the webhook in a namespace.
pub fn server_name(namespace: &str) -> String {
    format!("{WEBHOOK}.{namespace}.svc")
}

// === impl Serving ===

impl Serving {
    /// Reads a Secret; none if it has other contents.
    pub fn of(secret: &Value) -> Option<Self> {
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
    pub fn data(&self) -> Value {
        json!({
            "tls.crt": STANDARD.encode(&self.certificate),
            "tls.key": STANDARD.encode(&self.key),
            "ca.crt": STANDARD.encode(&self.authorities),
        })
    }

    /// The served certificates, as PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// The trusted CAs, as PEM.
    pub fn authorities(&self) -> &str {
        &self.authorities
    }

    /// The desired certificate: the current one while it is valid, otherwise a new one.
    pub fn renewed(current: Option<Self>, server: &str, now: UnixTime) -> Result<Self, Error> {
        match current {
            Some(current) if current.is_good(server, now) => Ok(current),
            Some(current) => current.successor(server, now),
            None => Self::issue(server, "", LIFETIME, now),
        }
    }

    /// A new certificate with the lifetime of this one. The CAs of both are trusted.
    pub fn successor(&self, server: &str, now: UnixTime) -> Result<Self, Error> {
        let validity = self.validity();
        let lifetime = validity.map_or(LIFETIME, Validity::lifetime);
        Self::issue(
            server,
            &self.trusted_after_renewal(server, now),
            lifetime,
            now,
        )
    }

    /// The CAs, starting with those that the certificate needs.
    fn trusted_after_renewal(&self, server: &str, now: UnixTime) -> String {
        let all = certificates(&self.authorities);
        let (needed, rest): (Vec<_>, Vec<_>) = all
            .iter()
            .map(|der| pem(der))
            .partition(|pem| flaw(&self.certificate, pem, server, now).is_none());
        [needed, rest].concat().concat()
    }

    /// Whether it is trusted, and has more than a third of its lifetime left.
    pub fn is_good(&self, server: &str, now: UnixTime) -> bool {
        let left = self.until_renewal(now);
        self.flaw(server, now).is_none() && left.is_some_and(|left| !left.is_zero())
    }

    /// The time until a third of its lifetime is left, at least zero. None if it cannot be read.
    pub fn until_renewal(&self, now: UnixTime) -> Option<Duration> {
        let Validity { from, until } = self.validity()?;
        let due = until - (until - from) / 3;
        Some(Duration::from_secs(
            u64::try_from(due - seconds(now)).unwrap_or_default(),
        ))
    }

    /// Its lifetime, without the clock skew.
    pub fn lifetime(&self) -> Option<Duration> {
        self.validity().map(Validity::lifetime)
    }

    fn validity(&self) -> Option<Validity> {
        let leaf = certificates(&self.certificate).into_iter().next()?;
        let (_, parsed) = X509Certificate::from_der(&leaf).ok()?;
        let validity = parsed.validity();
        Some(Validity {
            from: validity.not_before.timestamp(),
            until: validity.not_after.timestamp(),
        })
    }

    /// Why an API server would reject this certificate, if it would.
    pub fn flaw(&self, server: &str, now: UnixTime) -> Option<String> {
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes());
        if key.is_err() {
            return Some("it holds no private key".to_owned());
        }
        flaw(&self.certificate, &self.authorities, server, now)
    }

    /// Issues a certificate with a lifetime; `trusted` are the previous CAs.
    pub fn issue(
        server: &str,
        trusted: &str,
        lifetime: Duration,
        now: UnixTime,
    ) -> Result<Self, Error> {
        Self::try_issue(server, trusted, lifetime, now).map_err(|source| Error {
            server: server.to_owned(),
            source,
        })
    }

    fn try_issue(
        server: &str,
        trusted: &str,
        lifetime: Duration,
        now: UnixTime,
    ) -> Result<Self, rcgen::Error> {
        let (authority, issuer) = authority(lifetime, now)?;
        let mut params = CertificateParams::new([server.to_owned(), "localhost".to_owned()])?;
        last_from(&mut params, lifetime, now);
        params.distinguished_name.push(DnType::CommonName, WEBHOOK);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &issuer)?;
        Ok(Self {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
            authorities: bundle(&authority, trusted, now),
        })
    }
}

/// The validity in Unix time.
#[derive(Debug, Clone, Copy)]
struct Validity {
    from: i64,
    until: i64,
}

// === impl Validity ===

impl Validity {
    fn lifetime(self) -> Duration {
        let all = u64::try_from(self.until - self.from).unwrap_or_default();
        Duration::from_secs(all).saturating_sub(SKEW)
    }
}

impl std::fmt::Debug for Serving {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the key.
        f.debug_struct("Serving").finish_non_exhaustive()
    }
}

/// A CA, as PEM and as an issuer.
fn authority(
    lifetime: Duration,
    now: UnixTime,
) -> Result<(String, Issuer<'static, KeyPair>), rcgen::Error> {
    let mut params = CertificateParams::default();
    last_from(&mut params, lifetime, now);
    params
        .distinguished_name
        .push(DnType::CommonName, format!("{WEBHOOK}-ca"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    let key = KeyPair::generate()?;
    let pem = params.self_signed(&key)?.pem();
    Ok((pem, Issuer::new(params, key)))
}

fn last_from(params: &mut CertificateParams, lifetime: Duration, now: UnixTime) {
    let now = rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(now.as_secs());
    params.not_before = now - SKEW;
    params.not_after = now + lifetime;
}

fn seconds(time: UnixTime) -> i64 {
    i64::try_from(time.as_secs()).unwrap_or(i64::MAX)
}

/// The new CA, and the old ones that have not expired.
fn bundle(newest: &str, trusted: &str, now: UnixTime) -> String {
    let old = certificates(trusted).into_iter().filter(|der| {
        let parsed = X509Certificate::from_der(der);
        parsed.is_ok_and(|(_, parsed)| parsed.validity().not_after.timestamp() > seconds(now))
    });
    let mut bundle = newest.to_owned();
    bundle.extend(old.take(AUTHORITIES - 1).map(|der| pem(&der)));
    bundle
}

fn pem(der: &CertificateDer<'_>) -> String {
    let encoded = STANDARD.encode(der);
    let mut text = "-----BEGIN CERTIFICATE-----\n".to_owned();
    for line in encoded.as_bytes().chunks(64) {
        text.push_str(&String::from_utf8_lossy(line));
        text.push('\n');
    }
    text.push_str("-----END CERTIFICATE-----\n");
    text
}

/// Why a client that trusts these CAs would reject this certificate.
pub fn flaw(certificate: &str, authorities: &str, server: &str, now: UnixTime) -> Option<String> {
    verify(certificate, authorities, server, now).err()
}

fn verify(certificate: &str, authorities: &str, server: &str, now: UnixTime) -> Result<(), String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates(authorities));
    let chain = certificates(certificate);
    let (leaf, rest) = chain.split_first().ok_or("it holds no certificate")?;
    let name = ServerName::try_from(server.to_owned())
        .map_err(|error| format!("{server:?} is not a server name: {error}"))?;
    let leaf = ParsedCertificate::try_from(leaf)
        .map_err(|error| format!("its certificate is damaged: {error}"))?;
    let algorithms =
        rustls::crypto::aws_lc_rs::default_provider().signature_verification_algorithms;
    client::verify_server_cert_signed_by_trust_anchor(&leaf, &roots, rest, now, algorithms.all)
        .map_err(|error| {
            format!("its certificate is not of a trusted authority, or has expired: {error}")
        })?;
    client::verify_server_name(&leaf, &name)
        .map_err(|error| format!("its certificate is not for {server}: {error}"))
}

/// Invalid certificates are skipped.
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
    fn a_certificate_is_renewed_in_its_last_third() {
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
    fn a_renewal_keeps_the_old_ca_and_drops_its_key() {
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
    fn invalid_names_cas_and_content_need_a_renewal() {
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
        let renewed = Serving::renewed(Some(damaged), SERVER, day(0)).unwrap();
        assert_eq!(renewed.flaw(SERVER, day(0)), None);
    }

    #[test]
    fn certificates_round_trip_through_a_secret() {
        let serving = Serving::renewed(None, SERVER, day(0)).unwrap();
        let secret = json!({"data": serving.data()});
        assert_eq!(Serving::of(&secret), Some(serving));
        assert_eq!(Serving::of(&json!({"data": {"tls.crt": "eA=="}})), None);
    }

    /// Check T07.
    #[test]
    fn a_renewal_keeps_the_lifetime_and_the_ca() {
        let hour = Duration::from_hours(1);
        let first = Serving::issue(SERVER, "", hour * 3, day(0)).unwrap();
        assert_eq!(first.lifetime(), Some(hour * 3));
        let later = UnixTime::since_unix_epoch(Duration::from_secs(day(0).as_secs()) + hour * 2);
        assert!(!first.is_good(SERVER, later));
        let lost = first.successor(SERVER, later).unwrap();
        assert_eq!(lost.lifetime(), first.lifetime());
        // The CAs were published, and the certificate was lost before it was served.
        let published = Serving {
            authorities: lost.authorities,
            ..first.clone()
        };
        let second = published.successor(SERVER, later).unwrap();
        for shown in [&first, &second] {
            let certificate = shown.certificate();
            assert_eq!(flaw(certificate, second.authorities(), SERVER, later), None);
        }
    }
}
