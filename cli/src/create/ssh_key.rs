//! A new SSH key: RSA, which every node takes, also with cryptography for FIPS 140 only.

use anyhow::{Context, bail};
use base64::{Engine, engine::general_purpose::STANDARD};
use rcgen::{KeyPair, PKCS_RSA_SHA256, PublicKeyData as _, RsaKeySize};
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey;
use x509_parser::x509::SubjectPublicKeyInfo;

/// What OpenSSH calls such keys.
const KIND: &str = "ssh-rsa";

/// Both parts of a key.
#[derive(Clone)]
pub(crate) struct SshKey {
    /// A line for `authorized_keys`.
    pub(crate) public: String,
    /// PEM, as `ssh -i` takes it.
    pub(crate) private: String,
}

// === impl SshKey ===

impl SshKey {
    /// Generates a new key.
    pub(crate) fn generate() -> anyhow::Result<Self> {
        let pair = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_4096)
            .context("cannot make an SSH key")?;
        Ok(Self {
            public: public(&pair.subject_public_key_info())?,
            private: pair.serialize_pem(),
        })
    }

    /// A key that was generated before. `None` if the text is no private RSA key in PEM.
    pub(crate) fn parse(pem: &str) -> Option<Self> {
        let pair = KeyPair::from_pem(pem).ok()?;
        Some(Self {
            public: public(&pair.subject_public_key_info()).ok()?,
            private: pem.to_owned(),
        })
    }
}

impl std::fmt::Debug for SshKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the private part.
        f.debug_struct("SshKey")
            .field("public", &self.public)
            .finish_non_exhaustive()
    }
}

/// The public part, as OpenSSH writes it.
fn public(der: &[u8]) -> anyhow::Result<String> {
    let (_, info) = SubjectPublicKeyInfo::from_der(der).context("the new SSH key is damaged")?;
    let PublicKey::RSA(key) = info.parsed().context("the new SSH key is damaged")? else {
        bail!("the new SSH key is of another kind than was asked for");
    };
    let mut blob = Vec::new();
    for part in [KIND.as_bytes(), &number(key.exponent), &number(key.modulus)] {
        let length = u32::try_from(part.len()).context("the new SSH key is too long")?;
        blob.extend(length.to_be_bytes());
        blob.extend(part);
    }
    Ok(format!("{KIND} {}\n", STANDARD.encode(blob)))
}

/// A number without needless zeros, and with one in front where it would look negative.
fn number(bytes: &[u8]) -> Vec<u8> {
    let start = bytes
        .iter()
        .position(|byte| *byte != 0)
        .unwrap_or(bytes.len());
    let digits = &bytes[start..];
    let sign = digits.first().is_some_and(|first| first & 0x80 != 0);
    [&[0][..usize::from(sign)], digits].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_two_parts_that_openssh_reads() {
        let key = SshKey::generate().unwrap();
        let blob = key.public.strip_prefix("ssh-rsa ").unwrap().trim_end();
        let blob = STANDARD.decode(blob).unwrap();
        // Lengths and parts: the kind, the exponent 65537, the modulus of 4096 bits with a zero in front.
        assert_eq!(&blob[..4], [0, 0, 0, 7]);
        assert_eq!(&blob[4..11], KIND.as_bytes());
        assert_eq!(&blob[11..18], [0, 0, 0, 3, 1, 0, 1]);
        assert_eq!(&blob[18..23], [0, 0, 2, 1, 0]);
        assert_eq!(blob.len(), 22 + 513);
        assert!(key.private.starts_with("-----BEGIN PRIVATE KEY-----"));
        assert!(!format!("{key:?}").contains("PRIVATE"));
        assert_eq!(SshKey::parse(&key.private).unwrap().public, key.public);
        assert!(SshKey::parse("no key").is_none());
    }

    #[test]
    fn numbers_are_as_short_as_they_can_be_and_never_negative() {
        for (given, expected) in [
            (&[0, 0, 1][..], &[1][..]),
            (&[0x80], &[0, 0x80]),
            (&[0x7f, 0], &[0x7f, 0]),
            (&[0], &[]),
        ] {
            assert_eq!(number(given), expected);
        }
    }
}
