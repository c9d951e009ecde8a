//! Encryption of Secrets by a key of an Azure key vault.

use serde_json::{Value, json};

use crate::Usage;
use crate::infra::azure::IdentityFiles;

/// The domain of key vaults on hardware of one's own.
const MANAGED_HSM: &str = "managedhsm";

/// A version of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key<'u> {
    vault: &'u str,
    name: &'u str,
    version: &'u str,
    is_managed_hsm: bool,
}

// === impl Key ===

impl<'u> Key<'u> {
    /// Reads the URL of a key: `https://VAULT.vault.azure.net/keys/NAME/VERSION`.
    pub(super) fn read(url: &'u str) -> Result<Self, Usage> {
        Self::parse(url).ok_or_else(|| {
            Usage::new(&format!(
                "--encryption-key-id {url:?}: write https://VAULT.vault.azure.net/keys/NAME/VERSION"
            ))
        })
    }

    fn parse(url: &'u str) -> Option<Self> {
        let mut parts = url.strip_prefix("https://")?.split('/');
        let (host, keys, name, version) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let (vault, domain) = host.split_once('.')?;
        let complete = ![vault, domain, name, version].contains(&"");
        if keys != "keys" || !complete || parts.next().is_some() {
            return None;
        }
        Some(Self {
            vault,
            name,
            version,
            is_managed_hsm: domain.split('.').next() == Some(MANAGED_HSM),
        })
    }

    /// `spec.secretEncryption` of the HostedCluster.
    pub(super) fn encryption(
        &self,
        identities: &IdentityFiles,
        secret: Option<&str>,
    ) -> Result<Value, Usage> {
        let mut azure = json!({
            "activeKey": {
                "keyVaultName": self.vault,
                "keyName": self.name,
                "keyVersion": self.version,
            },
        });
        if self.is_managed_hsm {
            azure["keyVaultType"] = json!("ManagedHSM");
        }
        match (identities, secret) {
            (IdentityFiles::Workload { kms_client_id, .. }, None) => {
                let id = kms_client_id.as_ref().ok_or_else(|| {
                    Usage::new(
                        &"--encryption-key-id needs an identity that may use the key: name it as kmsClientID in the file of \
                          --workload-identities-file or --infra-json",
                    )
                })?;
                azure["workloadIdentity"] = json!({ "clientID": id });
            }
            (IdentityFiles::Managed { .. }, Some(name)) => {
                azure["kms"] = json!({ "credentialsSecretName": name, "objectEncoding": "utf-8" });
            }
            (IdentityFiles::Workload { .. }, Some(_)) => {
                return Err(Usage::new(
                    &"--kms-credentials-secret-name is for managed identities: leave it out, or use \
                      --managed-identities-file",
                ));
            }
            (IdentityFiles::Managed { .. }, None) => {
                return Err(Usage::new(
                    &"--encryption-key-id needs --kms-credentials-secret-name with managed identities",
                ));
            }
        }
        Ok(json!({ "type": "kms", "kms": { "provider": "Azure", "azure": azure } }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_from_their_url() {
        let key = Key::read("https://v.vault.azure.net/keys/k/1").unwrap();
        assert_eq!((key.vault, key.name, key.version), ("v", "k", "1"));
        assert!(!key.is_managed_hsm);
        let hsm = Key::read("https://v.managedhsm.azure.net/keys/k/1").unwrap();
        assert!(hsm.is_managed_hsm);
        for url in [
            "http://v.vault.azure.net/keys/k/1",
            "https://v.vault.azure.net/keys/k",
            "https://v.vault.azure.net/keys/k/",
            "https://v.vault.azure.net/keys/k/1/2",
            "https://v.vault.azure.net/secrets/k/1",
            "https://v/keys/k/1",
        ] {
            Key::read(url).unwrap_err();
        }
    }

    #[test]
    fn the_identity_goes_with_the_kind_of_identities() {
        let key = Key::read("https://v.vault.azure.net/keys/k/1").unwrap();
        let workload = |id: Option<&str>| IdentityFiles::Workload {
            fields: json!({}),
            kms_client_id: id.map(str::to_owned),
        };
        let managed = IdentityFiles::Managed {
            control_plane: json!({}),
            data_plane: json!({}),
        };
        let azure = |encryption: Value| encryption["kms"]["azure"].clone();
        let found = azure(key.encryption(&workload(Some("id")), None).unwrap());
        assert_eq!(found["workloadIdentity"]["clientID"], "id");
        let found = azure(key.encryption(&managed, Some("s")).unwrap());
        assert_eq!(found["kms"]["credentialsSecretName"], "s");
        for (identities, secret, words) in [
            (&workload(None), None, "kmsClientID"),
            (
                &workload(Some("id")),
                Some("s"),
                "--managed-identities-file",
            ),
            (&managed, None, "--kms-credentials-secret-name"),
        ] {
            let error = key.encryption(identities, secret).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
