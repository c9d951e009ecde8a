//! The key that signs tokens of service accounts, and the documents by which AWS verifies them. Pure.

use anyhow::{Context as _, bail};
use rcgen::{KeyPair, PKCS_RSA_SHA256, RsaKeySize};
use serde_json::Value;
use support::aws::oidc::{self, DISCOVERY, KEYS};

/// A key. Its private part is never shown.
#[derive(Clone)]
pub(crate) struct SigningKey {
    /// PEM.
    pub(crate) private: String,
    /// The set of keys that verify tokens.
    keys: Value,
}

// === impl SigningKey ===

impl SigningKey {
    pub(crate) fn generate() -> anyhow::Result<Self> {
        let pair = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_4096)
            .context("failed to generate a key that signs tokens")?;
        Ok(Self {
            keys: keys(&pair)?,
            private: pair.serialize_pem(),
        })
    }

    /// The key of a PEM file.
    pub(crate) fn parse(pem: &str) -> anyhow::Result<Self> {
        // Without the cause, which may have parts of the key.
        let Ok(pair) = KeyPair::from_pem(pem) else {
            bail!("this is no private key in PEM");
        };
        Ok(Self {
            keys: keys(&pair)?,
            private: pem.to_owned(),
        })
    }

    /// The set of keys that verify tokens.
    pub(crate) fn public_keys(&self) -> &Value {
        &self.keys
    }

    /// The documents, by their paths below the issuer.
    pub(crate) fn documents(&self, issuer: &str) -> [(&'static str, String); 2] {
        let discovery = oidc::discovery(issuer);
        let documents = [(DISCOVERY, &discovery), (KEYS, &self.keys)];
        documents.map(|(path, document)| (path, format!("{document:#}")))
    }
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SigningKey")
            .field("keys", &self.keys)
            .finish_non_exhaustive()
    }
}

/// The set of keys that verify tokens of this one.
fn keys(pair: &KeyPair) -> anyhow::Result<Value> {
    let keys = oidc::keys(&pair.public_key_pem());
    keys.context("the key that signs tokens must be an RSA key")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_name_the_issuer_and_the_public_key() {
        let key = SigningKey::generate().unwrap();
        let [(path, discovery), (keys_path, keys)] = key.documents("https://issuer/a");
        assert_eq!(path, ".well-known/openid-configuration");
        let discovery: Value = serde_json::from_str(&discovery).unwrap();
        assert_eq!(
            discovery["jwks_uri"],
            format!("https://issuer/a/{keys_path}")
        );
        let keys: Value = serde_json::from_str(&keys).unwrap();
        let only = &keys["keys"][0];
        assert_eq!(only["e"], "AQAB");
        // 4096 bits, without a zero in front.
        assert_eq!(only["n"].as_str().unwrap().len(), 683);
        assert_eq!(only["kid"].as_str().unwrap().len(), 43);
        assert!(!format!("{key:?}").contains("PRIVATE"));
        // The same key of a file has the same documents.
        let read = SigningKey::parse(&key.private).unwrap();
        assert_eq!(read.keys, key.keys);
    }

    #[test]
    fn other_keys_are_refused_without_their_text() {
        let elliptic = KeyPair::generate().unwrap().serialize_pem();
        for pem in ["", "secret", &elliptic] {
            let error = format!("{:#}", SigningKey::parse(pem).unwrap_err());
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
