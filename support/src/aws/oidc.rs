//! The documents by which AWS validates tokens of service accounts: who issues them, and the key that signs them. Pure.

use serde_json::{Value, json};

use super::rsa::{InvalidKey, PublicKey};

/// The path of the discovery document below the issuer.
pub const DISCOVERY: &str = ".well-known/openid-configuration";
/// The path of the set of keys below the issuer.
pub const KEYS: &str = "openid/v1/jwks";

/// The discovery document of an issuer, which is a URL without a slash at the end.
pub fn discovery(issuer: &str) -> Value {
    json!({
        "issuer": issuer,
        "jwks_uri": format!("{issuer}/{KEYS}"),
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
    })
}

/// The set with the one public key in PEM. API servers derive its identifier in the same way.
pub fn keys(pem: &str) -> Result<Value, InvalidKey> {
    let PublicKey {
        id,
        modulus,
        exponent,
    } = PublicKey::of_pem(pem)?;
    Ok(json!({ "keys": [{
        "use": "sig",
        "kty": "RSA",
        "kid": id,
        "alg": "RS256",
        "n": modulus,
        "e": exponent,
    }]}))
}
