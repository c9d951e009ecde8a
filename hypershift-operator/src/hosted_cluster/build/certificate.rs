//! The serving certificate of Cluster API managers, and key pairs.
//!
//! Managers do not start without a serving certificate for webhooks. No webhook is registered, so it is self-signed and
//! created once.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use rcgen::{BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, KeyPair};
use serde_json::json;

use super::Desired;
use crate::names;

/// How long it lasts.
const YEARS: i32 = 10;

/// Makes one.
pub(crate) fn webhook_tls(this_year: i16) -> Result<Secret, rcgen::Error> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::default();
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, "capi-webhooks");
    params.distinguished_name = subject;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let year = i32::from(this_year);
    params.not_before = rcgen::date_time_ymd(year - 1, 1, 1);
    params.not_after = rcgen::date_time_ymd(year + YEARS, 1, 1);
    let certificate = params.self_signed(&key)?;
    let mut secret = Secret {
        type_: Some("Opaque".to_owned()),
        ..Secret::default()
    };
    let entry = |name: &str, text: String| (name.to_owned(), ByteString(text.into_bytes()));
    secret.data = Some(
        [
            entry("tls.crt", certificate.pem()),
            entry("tls.key", key.serialize_pem()),
        ]
        .into(),
    );
    Ok(secret)
}

/// The Secret with it.
pub(super) fn desired(namespace: &str, made: &Secret) -> Desired {
    let fields = json!({ "type": made.type_, "data": made.data });
    Desired::new::<Secret>(namespace, names::WEBHOOK_TLS, fields)
}

/// The public key of a private key in PEM, for verification. `None` for invalid keys.
pub(super) fn public_key(pem: &[u8]) -> Option<ByteString> {
    let pem = std::str::from_utf8(pem).ok()?;
    let key = KeyPair::from_pem(pem).ok()?;
    Some(ByteString(key.public_key_pem().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secret_has_the_certificate_and_its_key() {
        let secret = webhook_tls(2030).unwrap();
        let data = secret.data.unwrap();
        let key = std::str::from_utf8(&data["tls.key"].0).unwrap();
        assert!(KeyPair::from_pem(key).is_ok());
        let certificate = std::str::from_utf8(&data["tls.crt"].0).unwrap();
        assert!(certificate.contains("BEGIN CERTIFICATE"));
    }

    #[test]
    fn the_public_key_is_derived_from_the_private_key() {
        let key = KeyPair::generate().unwrap();
        let public = public_key(key.serialize_pem().as_bytes()).unwrap();
        assert_eq!(public.0, key.public_key_pem().into_bytes());
        assert_eq!(public_key(b"no key"), None);
    }
}
