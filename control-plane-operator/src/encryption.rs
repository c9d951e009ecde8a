//! Keys that encrypt objects in etcd, and the API server's configuration with them. Pure.
//!
//! The control plane operator writes the configuration, and the hosted-cluster-config-operator reads from it how far a
//! rotation is; both take the names and hashes from here.

pub(crate) mod config;
pub(crate) mod key;
pub(crate) mod rollout;

use sha2::{Digest as _, Sha256};

use crate::hex;

/// Secret with the configuration, and its key.
pub(crate) const SECRET: &str = "kas-secret-encryption-config";
/// Key of the Secret.
pub(crate) const FILE: &str = "config.yaml";
/// Deployment of the API servers.
pub(crate) const SERVER: &str = "kube-apiserver";
/// Annotation of the API server's pods: hash of the configuration that they read.
pub(crate) const HASH: &str = "kube-apiserver.hypershift.openshift.io/encryption-config-hash";

/// The value of [`HASH`] for a configuration.
pub(crate) fn hash(config: &[u8]) -> String {
    format!("sha256:{}", sha256(config))
}

/// SHA-256 in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex::encode(&Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_matches_the_vector_of_its_standard() {
        let expected = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hash(b"abc"), expected);
    }
}
