//! A token that an application signs with the key of its certificate, to authenticate at Microsoft Entra ID.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jiff::Timestamp;
use rustls::SignatureScheme;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::SigningKey;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::rest::Error;

/// How long a token is valid, in seconds.
const LIFETIME: i64 = 600;

/// A certificate with its key.
#[derive(Clone)]
pub(super) struct Certificate {
    chain: Vec<CertificateDer<'static>>,
    key: Arc<dyn SigningKey>,
}

impl PartialEq for Certificate {
    fn eq(&self, other: &Self) -> bool {
        self.chain == other.chain
    }
}

impl Eq for Certificate {}

impl Certificate {
    /// Reads PEM with certificate and key, as it is or in base64.
    pub(super) fn read(text: &str) -> Result<Self, &'static str> {
        let decoded = STANDARD.decode(text.trim()).unwrap_or_default();
        let pem = if decoded.is_empty() {
            text.as_bytes()
        } else {
            &decoded
        };
        let chain: Vec<_> = CertificateDer::pem_slice_iter(pem)
            .filter_map(Result::ok)
            .collect();
        let key = PrivateKeyDer::from_pem_slice(pem).ok();
        let key =
            key.and_then(|key| rustls::crypto::aws_lc_rs::sign::any_supported_type(&key).ok());
        match key {
            Some(key) if !chain.is_empty() => Ok(Self { chain, key }),
            _ => Err(
                "client_secret is not PEM with a certificate and an RSA key: store the certificate in PEM format \
                 (PKCS #12 is not supported)",
            ),
        }
    }
}

/// A token for this application and this URL.
pub(super) fn sign(certificate: &Certificate, client: &str, url: &str) -> Result<String, Error> {
    let now = Timestamp::now().as_second();
    let mut id = [0; 16];
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    if provider.secure_random.fill(&mut id).is_err() {
        return Err(unsigned("no random bytes"));
    }
    token(certificate, client, url, now, &URL_SAFE_NO_PAD.encode(id))
}

fn unsigned(problem: &str) -> Error {
    Error::Credentials(format!("failed to sign a token: {problem}"))
}

pub(super) fn token(
    certificate: &Certificate,
    client: &str,
    url: &str,
    now: i64,
    id: &str,
) -> Result<String, Error> {
    let chain = certificate.chain.iter().map(|it| STANDARD.encode(it));
    let head = json!({
        "alg": "PS256",
        "typ": "JWT",
        "x5t#S256": URL_SAFE_NO_PAD.encode(Sha256::digest(&certificate.chain[0])),
        "x5c": chain.collect::<Vec<_>>(),
    });
    let claims = json!({
        "aud": url, "iss": client, "sub": client, "jti": id, "nbf": now, "iat": now, "exp": now + LIFETIME,
    });
    let encoded = |part: &serde_json::Value| URL_SAFE_NO_PAD.encode(part.to_string());
    let text = format!("{}.{}", encoded(&head), encoded(&claims));
    let signer = certificate
        .key
        .choose_scheme(&[SignatureScheme::RSA_PSS_SHA256]);
    let signer = signer.ok_or_else(|| unsigned("the key is not an RSA key"))?;
    let signature = signer.sign(text.as_bytes());
    let signature = signature.map_err(|error| unsigned(&error.to_string()))?;
    Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
}
