//! Generates keys and signs certificates. An RSA key takes 0.1 s or more, so callers use a blocking thread.

use std::time::Duration;

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PKCS_RSA_SHA256, PublicKeyData, RsaKeySize,
};

use super::x509::Certificate;

/// Certificates are backdated to tolerate clock skew; signers are not, because revocation compares their start.
const CLOCK_SKEW: Duration = Duration::from_mins(5);
/// Attribute of a subject from which the API server takes the user's UID.
const USER_ID: [u64; 8] = [1, 3, 6, 1, 4, 1, 57683, 2];

/// A certificate and its key.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) certificate: Certificate,
    /// PEM.
    pub(super) key: Vec<u8>,
}

/// The subject of a client certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Subject {
    /// OID and value of each attribute, in order.
    pub(super) attributes: Vec<(Vec<u64>, String)>,
}

/// Signing failed.
#[derive(Debug, thiserror::Error)]
#[error("failed to sign a certificate for {subject}")]
pub(super) struct Error {
    subject: String,
    source: rcgen::Error,
}

// === impl Pair ===

impl std::fmt::Debug for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the key.
        f.debug_struct("Pair")
            .field("certificate", &self.certificate.common_name)
            .finish_non_exhaustive()
    }
}

// === impl Subject ===

impl Subject {
    /// A user with a UID, in one group if there is one.
    pub(super) fn user(name: &str, uid: Option<&str>, group: Option<&str>) -> Self {
        let group = group.map(|group| (vec![2, 5, 4, 10], group.to_owned()));
        let uid = uid.map(|uid| (USER_ID.to_vec(), uid.to_owned()));
        let name = (vec![2, 5, 4, 3], name.to_owned());
        Self {
            attributes: group.into_iter().chain([name]).chain(uid).collect(),
        }
    }

    /// Converts to the library's form, which has one value per attribute type: a second value of the types that it has a
    /// name for uses the OID. `None` if there are more values.
    pub(super) fn name(&self) -> Option<DistinguishedName> {
        let mut name = DistinguishedName::new();
        for (oid, value) in &self.attributes {
            let custom = DnType::CustomDnType(oid.clone());
            let named = match oid.as_slice() {
                [2, 5, 4, 3] => DnType::CommonName,
                [2, 5, 4, 10] => DnType::OrganizationName,
                _ => custom.clone(),
            };
            let free = [named, custom]
                .into_iter()
                .find(|type_| name.get(type_).is_none())?;
            name.push(free, value.as_str());
        }
        Some(name)
    }
}

/// Creates a self-signed signer.
pub(super) fn signer(name: &str, validity: Duration, now: Timestamp) -> Result<Pair, Error> {
    let pair = rsa().map_err(failed(name))?;
    let pem = self_signed(name, &pair, validity, now)?;
    parsed(&pem, &pair).map_err(failed(name))
}

/// Signs the certificate of a signer with its own key.
pub(super) fn self_signed(
    name: &str,
    key: &KeyPair,
    validity: Duration,
    now: Timestamp,
) -> Result<String, Error> {
    let mut params = CertificateParams::default();
    valid(&mut params, now, now + validity);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::DigitalSignature,
        KeyUsagePurpose::KeyEncipherment,
    ];
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    let signed = params.self_signed(key).map_err(failed(name))?;
    Ok(signed.pem())
}

/// Creates a key and a client certificate for it.
pub(super) fn client(
    signer: &Pair,
    subject: &Subject,
    until: Timestamp,
    now: Timestamp,
) -> Result<Pair, Error> {
    let pair = rsa().map_err(failed(&subject.to_string()))?;
    let pem = sign(signer, subject, &pair, until, now)?;
    parsed(&pem, &pair).map_err(failed(&subject.to_string()))
}

/// The same with a key that is generated fast, for a certificate that only this operator uses.
pub(super) fn short_lived(
    signer: &Pair,
    subject: &Subject,
    until: Timestamp,
    now: Timestamp,
) -> Result<Pair, Error> {
    let pair = KeyPair::generate().map_err(failed(&subject.to_string()))?;
    let pem = sign(signer, subject, &pair, until, now)?;
    parsed(&pem, &pair).map_err(failed(&subject.to_string()))
}

/// Signs a client certificate for a public key. It never outlives its signer, and never begins before it.
pub(super) fn sign(
    signer: &Pair,
    subject: &Subject,
    key: &impl PublicKeyData,
    until: Timestamp,
    now: Timestamp,
) -> Result<String, Error> {
    let failed = failed(&subject.to_string());
    let issuer = issuer(signer).map_err(&failed)?;
    let backdated = now.checked_sub(CLOCK_SKEW).unwrap_or(now);
    let mut params = CertificateParams::default();
    let from = backdated.max(signer.certificate.not_before);
    valid(&mut params, from, until.min(signer.certificate.not_after));
    params.key_usages = vec![
        KeyUsagePurpose::DigitalSignature,
        KeyUsagePurpose::KeyEncipherment,
    ];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params.use_authority_key_identifier_extension = true;
    let name = subject
        .name()
        .ok_or(rcgen::Error::CouldNotParseCertificationRequest);
    params.distinguished_name = name.map_err(&failed)?;
    let certificate = params.signed_by(key, &issuer).map_err(&failed)?;
    Ok(certificate.pem())
}

impl std::fmt::Display for Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.attributes.iter().find(|(oid, _)| *oid == [2, 5, 4, 3]);
        f.write_str(name.map_or("", |(_, name)| name))
    }
}

/// Reads a pair; `None` if they are not PEM or do not belong together.
pub(super) fn read(certificate: &[u8], key: &[u8]) -> Option<Pair> {
    let pair = Pair {
        certificate: Certificate::parse(certificate)?,
        key: key.to_vec(),
    };
    let key = KeyPair::from_pem(std::str::from_utf8(key).ok()?).ok()?;
    let (_, parsed) = x509_parser::parse_x509_certificate(&pair.certificate.der).ok()?;
    let is_same = parsed.public_key().subject_public_key.data.as_ref() == key.der_bytes();
    is_same.then_some(pair)
}

fn issuer(signer: &Pair) -> Result<Issuer<'static, KeyPair>, rcgen::Error> {
    let key = KeyPair::from_pem(&String::from_utf8_lossy(&signer.key))?;
    Issuer::from_ca_cert_pem(&signer.certificate.pem(), key)
}

fn rsa() -> Result<KeyPair, rcgen::Error> {
    KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048)
}

fn parsed(pem: &str, pair: &KeyPair) -> Result<Pair, rcgen::Error> {
    let certificate =
        Certificate::parse(pem.as_bytes()).ok_or(rcgen::Error::CouldNotParseCertificate)?;
    Ok(Pair {
        certificate,
        key: pair.serialize_pem().into_bytes(),
    })
}

fn failed(subject: &str) -> impl Fn(rcgen::Error) -> Error + use<> {
    let subject = subject.to_owned();
    move |source| Error {
        subject: subject.clone(),
        source,
    }
}

/// Sets the validity, in whole seconds, as certificates have it.
fn valid(params: &mut CertificateParams, from: Timestamp, until: Timestamp) {
    let seconds = |at: Timestamp| Duration::from_secs(u64::try_from(at.as_second()).unwrap_or(0));
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = epoch + seconds(from);
    params.not_after = epoch + seconds(until);
}

#[cfg(test)]
mod tests {
    use x509_parser::prelude::{FromDer, X509Certificate};

    use super::super::fixtures::{at, signer};
    use super::*;

    fn user() -> Subject {
        Subject::user(
            "system:customer-break-glass:x",
            Some("7"),
            Some("system:masters"),
        )
    }

    #[test]
    fn client_certificates_stay_within_their_signer() {
        let signer = signer(at(0));
        let [from, until] = [signer.certificate.not_before, signer.certificate.not_after];
        for (now, requested, expected) in [
            (at(1), at(2), (at(1) - CLOCK_SKEW, at(2))),
            (at(0), at(2), (from, at(2))),
            (at(1), at(10_000), (at(1) - CLOCK_SKEW, until)),
        ] {
            let made = short_lived(&signer, &user(), requested, now).unwrap();
            let certificate = made.certificate;
            assert_eq!((certificate.not_before, certificate.not_after), expected);
            assert!(certificate.is_issued_by(&signer.certificate));
        }
    }

    #[test]
    fn client_certificates_have_their_subject_and_usage() {
        let made = short_lived(&signer(at(0)), &user(), at(2), at(1)).unwrap();
        let (_, parsed) = X509Certificate::from_der(&made.certificate.der).unwrap();
        let subject = parsed.subject();
        let values: Vec<_> = subject
            .iter_attributes()
            .map(|it| (it.attr_type().to_id_string(), it.as_str().unwrap()))
            .collect();
        let value = |oid: &str, value| (oid.to_owned(), value);
        assert_eq!(
            values,
            [
                value("2.5.4.10", "system:masters"),
                value("2.5.4.3", "system:customer-break-glass:x"),
                value("1.3.6.1.4.1.57683.2", "7"),
            ]
        );
        let usage = parsed.extended_key_usage().unwrap().unwrap().value;
        assert!(usage.client_auth && !usage.server_auth && !usage.any);
        assert!(!parsed.is_ca());
    }

    #[test]
    fn certificates_of_another_signer_are_distinguished_by_key() {
        let [one, other] = [signer(at(0)), signer(at(0))];
        let made = short_lived(&one, &user(), at(2), at(1)).unwrap();
        assert!(made.certificate.is_issued_by(&one.certificate));
        assert!(!made.certificate.is_issued_by(&other.certificate));
    }

    #[test]
    fn a_pair_needs_its_own_key() {
        let [one, other] = [signer(at(0)), signer(at(0))];
        let pem = one.certificate.pem().into_bytes();
        assert_eq!(read(&pem, &one.key), Some(one));
        assert_eq!(read(&pem, &other.key), None);
        assert_eq!(read(&pem, b""), None);
        assert_eq!(read(b"", &other.key), None);
    }

    #[test]
    fn at_most_two_values_of_an_attribute_are_supported() {
        let group = |name: &str| (vec![2, 5, 4, 10], name.to_owned());
        let subject = |groups: &[&str]| Subject {
            attributes: groups.iter().copied().map(group).collect(),
        };
        assert_eq!(subject(&["a", "b"]).name().unwrap().iter().count(), 2);
        assert_eq!(subject(&["a", "b", "c"]).name(), None);
    }

    #[test]
    fn debug_output_has_no_key() {
        let pair = signer(at(0));
        let text = format!("{pair:?}");
        assert!(text.contains(&pair.certificate.common_name), "{text}");
        assert!(!text.contains("key"), "{text}");
    }
}
