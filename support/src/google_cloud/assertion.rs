//! A token that a service account signs with its key, to get a token for the APIs.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustls::SignatureScheme;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::sign::SigningKey;
use serde_json::{Value, json};

use super::SCOPE;
use super::file::ServiceAccount;

/// How long a token is valid, in seconds: as long as Google permits.
const LIFETIME: i64 = 3600;

/// An RSA key. It is never shown.
#[derive(Clone)]
pub(super) struct Key(Arc<dyn SigningKey>);

// === impl Key ===

impl Key {
    /// Reads PEM. Problems do not quote it.
    pub(super) fn parse(pem: &str) -> Result<Self, String> {
        let key = PrivateKeyDer::from_pem_slice(pem.as_bytes()).ok();
        let key =
            key.and_then(|key| rustls::crypto::aws_lc_rs::sign::any_supported_type(&key).ok());
        key.map(Self)
            .filter(|key| {
                key.0
                    .choose_scheme(&[SignatureScheme::RSA_PKCS1_SHA256])
                    .is_some()
            })
            .ok_or_else(|| "its private_key is no RSA key in PEM".to_owned())
    }

    fn sign(&self, text: &str) -> Result<Vec<u8>, String> {
        let signer = self.0.choose_scheme(&[SignatureScheme::RSA_PKCS1_SHA256]);
        let signer = signer.ok_or_else(|| "the key is no RSA key".to_owned())?;
        let signature = signer.sign(text.as_bytes());
        signature.map_err(|error| format!("failed to sign a token: {error}"))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").finish_non_exhaustive()
    }
}

// === impl ServiceAccount ===

impl ServiceAccount {
    /// A token for the token endpoint, from this time on.
    pub(super) fn assertion(&self, now: i64) -> Result<String, String> {
        let mut head = json!({ "alg": "RS256", "typ": "JWT" });
        if let Some(id) = &self.key_id {
            head["kid"] = json!(id);
        }
        let claims = json!({
            "iss": self.email, "scope": SCOPE, "aud": self.token_url, "iat": now, "exp": now + LIFETIME,
        });
        let encoded = |part: &Value| URL_SAFE_NO_PAD.encode(part.to_string());
        let text = format!("{}.{}", encoded(&head), encoded(&claims));
        let signature = self.key.sign(&text)?;
        Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}
