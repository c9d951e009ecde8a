//! The encryption configuration that the API servers read, as far as a rotation depends on it.

use api::hypershift::v1beta1::secret_encryption::azure::AzureKeyVaultType;
use api::hypershift::v1beta1::secret_encryption::status::SecretEncryptionKeyStatus;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::{key, sha256};

/// What API servers do with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// They do not have it.
    Absent,
    /// They decrypt with it.
    Read,
    /// They encrypt with it.
    Write,
}

/// A live configuration. It contains keys, so it cannot be printed.
#[derive(Default)]
pub(crate) struct Config {
    /// The providers of the first entry, in order. Keys for AES-CBC count as providers.
    providers: Vec<Provider>,
    /// All resources, in order.
    pub(crate) resources: Vec<String>,
    /// API version of the first key management service.
    pub(crate) kms_version: Option<String>,
}

enum Provider {
    Kms(String),
    Aescbc(Vec<u8>),
    /// Without a key, or not written by this operator.
    Other,
}

// === impl Config ===

impl Config {
    /// Parses a configuration.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(text).map_err(|error| error.to_string())?;
        // The parser's message may quote the text, which contains keys.
        let config: Value =
            serde_saphyr::from_str(text).map_err(|_| "it is not YAML".to_owned())?;
        let entries = config["resources"].as_array().into_iter().flatten();
        let resources = entries.flat_map(|entry| strings(&entry["resources"]));
        let providers = config["resources"][0]["providers"].as_array();
        let mut all = providers.into_iter().flatten();
        let version = all.find_map(|it| it["kms"]["apiVersion"].as_str());
        Ok(Self {
            resources: resources.collect(),
            kms_version: version.map(str::to_owned),
            providers: providers.into_iter().flatten().flat_map(read).collect(),
        })
    }

    /// What API servers with this configuration do with a key.
    pub(crate) fn role(
        &self,
        key: &SecretEncryptionKeyStatus,
        vault: Option<AzureKeyVaultType>,
    ) -> Role {
        let mut providers = self.providers.iter();
        match providers.position(|provider| provider.is(key, vault)) {
            None => Role::Absent,
            Some(0) => Role::Write,
            Some(_) => Role::Read,
        }
    }

    /// The key for AES-CBC with this hash.
    pub(crate) fn aescbc(&self, hash: &str) -> Option<&[u8]> {
        self.providers.iter().find_map(|provider| match provider {
            Provider::Aescbc(key) if sha256(key) == hash => Some(key.as_slice()),
            Provider::Aescbc(_) | Provider::Kms(_) | Provider::Other => None,
        })
    }
}

fn strings(list: &Value) -> Vec<String> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(|it| it.as_str().map(str::to_owned))
        .collect()
}

fn read(provider: &Value) -> Vec<Provider> {
    if let Some(name) = provider["kms"]["name"].as_str() {
        return vec![Provider::Kms(name.to_owned())];
    }
    let Some(keys) = provider["aescbc"]["keys"].as_array() else {
        return vec![Provider::Other];
    };
    let decode = |key: &Value| STANDARD.decode(key["secret"].as_str()?).ok();
    let keys = keys.iter();
    keys.map(|key| decode(key).map_or(Provider::Other, Provider::Aescbc))
        .collect()
}

// === impl Provider ===

impl Provider {
    fn is(&self, key: &SecretEncryptionKeyStatus, vault: Option<AzureKeyVaultType>) -> bool {
        let SecretEncryptionKeyStatus {
            provider: _,
            azure,
            aws,
            ibm_cloud,
            aescbc,
        } = key;
        match self {
            Self::Other => false,
            Self::Aescbc(secret) => {
                let hash = aescbc.as_ref().map(|it| it.data_hash.as_str());
                hash.is_some_and(|hash| sha256(secret) == hash)
            }
            Self::Kms(name) => {
                let azure = azure.as_ref().map(|it| key::azure_name(it, vault));
                let aws = aws.as_ref().map(key::aws_name);
                let ibm_cloud = ibm_cloud.as_ref().map(|_| key::IBM_CLOUD_NAME.to_owned());
                azure.or(aws).or(ibm_cloud).as_ref() == Some(name)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use api::hypershift::v1beta1::secret_encryption::AwsKmsKeyEntry;
    use serde_json::json;

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "calls are shorter")]
    fn config(providers: Value) -> Config {
        let config = json!({ "resources": [
            { "resources": ["secrets", "configmaps"], "providers": providers },
            { "resources": ["routes.route.openshift.io"], "providers": [{ "identity": {} }] },
        ] });
        Config::parse(config.to_string().as_bytes()).unwrap()
    }

    fn aescbc(key: &str) -> SecretEncryptionKeyStatus {
        let hash = sha256(key.as_bytes());
        serde_json::from_value(json!({ "provider": "AESCBC", "aescbc": {
            "secret": { "name": "any" }, "dataHash": hash,
        } }))
        .unwrap()
    }

    fn aws(arn: &str) -> SecretEncryptionKeyStatus {
        serde_json::from_value(json!({ "provider": "AWS", "aws": { "arn": arn } })).unwrap()
    }

    fn entry(key: &str) -> Value {
        json!({ "name": "k", "secret": STANDARD.encode(key) })
    }

    fn kms(arn: &str) -> Value {
        let name = key::aws_name(&AwsKmsKeyEntry {
            arn: arn.to_owned(),
        });
        json!({ "kms": { "apiVersion": "v1", "name": name } })
    }

    #[test]
    fn the_first_key_writes() {
        let keys = |keys: &[&str]| {
            let keys: Vec<_> = keys.iter().map(|key| entry(key)).collect();
            json!([{ "aescbc": { "keys": keys } }, { "identity": {} }])
        };
        let both =
            json!([{ "aescbc": { "keys": [entry("a")] } }, kms("arn:b"), { "identity": {} }]);
        for (providers, key, role) in [
            (keys(&["a", "b"]), aescbc("a"), Role::Write),
            (keys(&["a", "b"]), aescbc("b"), Role::Read),
            (keys(&["a", "b"]), aescbc("c"), Role::Absent),
            (
                json!([kms("arn:a"), kms("arn:b")]),
                aws("arn:a"),
                Role::Write,
            ),
            (
                json!([kms("arn:a"), kms("arn:b")]),
                aws("arn:b"),
                Role::Read,
            ),
            (json!([kms("arn:a")]), aws("arn:b"), Role::Absent),
            // From keys in Secrets to a key management service.
            (both.clone(), aescbc("a"), Role::Write),
            (both, aws("arn:b"), Role::Read),
            // Objects are written as they are.
            (
                json!([{ "identity": {} }, kms("arn:a")]),
                aws("arn:a"),
                Role::Read,
            ),
        ] {
            assert_eq!(
                config(providers.clone()).role(&key, None),
                role,
                "{providers}"
            );
        }
    }

    #[test]
    fn resources_of_all_entries_are_found() {
        let found = config(json!([kms("arn:a")]));
        let expected = ["secrets", "configmaps", "routes.route.openshift.io"];
        assert_eq!(found.resources, expected);
        assert_eq!(found.kms_version.as_deref(), Some("v1"));
    }

    #[test]
    fn keys_are_found_by_their_hash() {
        let found = config(json!([{ "aescbc": { "keys": [entry("a"), { "secret": "?" }] } }]));
        assert_eq!(found.aescbc(&sha256(b"a")), Some(&b"a"[..]));
        assert_eq!(found.aescbc(&sha256(b"b")), None);
    }

    #[test]
    fn errors_do_not_quote_keys() {
        let problem = Config::parse(b"a: [c2VjcmV0").err().unwrap();
        assert!(!problem.contains("c2VjcmV0"), "{problem}");
    }
}
