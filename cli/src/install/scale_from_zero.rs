//! The credentials with which the operators ask a cloud what a machine has, for NodePools that scale up from zero nodes.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, ValueEnum};
use serde_json::Value;

use super::object::Object;
use super::secret_file::{SecretFile, read_aws};
use crate::Usage;

/// Secret with the credentials of `--scale-from-zero-creds`.
const SECRET: &str = "hypershift-operator-scale-from-zero-credentials";
/// Key in it, and name of the file.
const KEY: &str = "credentials";
const VOLUME: &str = "scale-from-zero";
const DIRECTORY: &str = "/etc/hypershift/scale-from-zero";
/// What a file with credentials for Azure has.
const AZURE_FIELDS: [&str; 4] = ["subscriptionId", "tenantId", "clientId", "clientSecret"];

/// The flags.
#[derive(Debug, Clone, Args)]
#[expect(
    clippy::struct_field_names,
    reason = "the names of the flags are those of HyperShift"
)]
pub(super) struct ScaleFromZeroArgs {
    /// Cloud that says how many processors and how much memory a machine has, so that NodePools can scale up from zero
    /// nodes; needs --scale-from-zero-creds or --scale-from-zero-secret
    #[arg(long, global = true, value_enum, value_name = "CLOUD")]
    scale_from_zero_provider: Option<Provider>,

    /// File with the credentials for it: for aws, a shared credentials file whose default profile may describe instance
    /// types; for azure, JSON with subscriptionId, tenantId, clientId and clientSecret of an application that may read the
    /// subscription
    #[arg(long, global = true, value_name = "FILE")]
    scale_from_zero_creds: Option<PathBuf>,

    /// Secret with the credentials of --scale-from-zero-creds, in the namespace of the operator
    #[arg(long, global = true, value_name = "NAME")]
    scale_from_zero_secret: Option<String>,

    /// Key of the Secret of --scale-from-zero-secret
    #[arg(long, global = true, value_name = "KEY", default_value = KEY)]
    scale_from_zero_secret_key: String,
}

/// Clouds that say what a machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Provider {
    /// Amazon EC2, in the region of each hosted cluster
    Aws,
    /// Azure Resource Manager, for the location of each hosted cluster
    Azure,
}

/// How the operators ask.
#[derive(Debug, Clone)]
pub(crate) struct ScaleFromZero {
    provider: Provider,
    credentials: SecretFile,
}

// === impl ScaleFromZeroArgs ===

impl ScaleFromZeroArgs {
    /// Checks the flags and reads the file.
    pub(super) fn resolve(&self) -> anyhow::Result<Option<ScaleFromZero>> {
        let Self {
            scale_from_zero_provider,
            scale_from_zero_creds,
            scale_from_zero_secret,
            scale_from_zero_secret_key,
        } = self;
        let given = (
            *scale_from_zero_provider,
            scale_from_zero_creds,
            scale_from_zero_secret,
        );
        let (provider, credentials) = match given {
            (None, None, None) => return Ok(None),
            (Some(provider), Some(file), None) => {
                let content = read(provider, file)?;
                (provider, SecretFile::made(SECRET, KEY, content))
            }
            (Some(provider), None, Some(name)) => {
                let key = scale_from_zero_secret_key;
                (provider, SecretFile::existing(name, key))
            }
            (Some(_), None, None) | (_, Some(_), Some(_)) => {
                let message = "--scale-from-zero-provider needs one of --scale-from-zero-creds and --scale-from-zero-secret";
                return Err(Usage::new(&message).into());
            }
            (None, _, _) => {
                let message = "--scale-from-zero-creds and --scale-from-zero-secret need --scale-from-zero-provider";
                return Err(Usage::new(&message).into());
            }
        };
        Ok(Some(ScaleFromZero {
            provider,
            credentials,
        }))
    }
}

/// The operator would fail with each NodePool: the file is checked here. Its content is not repeated.
fn read(provider: Provider, path: &Path) -> anyhow::Result<String> {
    match provider {
        Provider::Aws => read_aws(path),
        Provider::Azure => {
            let text = fs::read_to_string(path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            check_azure(path, &text)?;
            Ok(text)
        }
    }
}

fn check_azure(path: &Path, text: &str) -> anyhow::Result<()> {
    let content: Value = serde_json::from_str(text).unwrap_or_default();
    let is_missing = |field: &&str| content[*field].as_str().is_none_or(str::is_empty);
    if let Some(missing) = AZURE_FIELDS.into_iter().find(is_missing) {
        anyhow::bail!(
            "{} has no {missing}: give JSON with subscriptionId, tenantId, clientId and clientSecret",
            path.display()
        );
    }
    Ok(())
}

// === impl ScaleFromZero ===

impl ScaleFromZero {
    /// The Secret, unless it is the user's.
    pub(super) fn object(&self, namespace: &str) -> Option<Object> {
        self.credentials.object(namespace)
    }

    /// The arguments of an operator.
    pub(super) fn arguments(&self) -> [String; 2] {
        let provider = match self.provider {
            Provider::Aws => "aws",
            Provider::Azure => "azure",
        };
        [
            format!("--scale-from-zero-provider={provider}"),
            format!("--scale-from-zero-creds={DIRECTORY}/{KEY}"),
        ]
    }

    /// The volume of its pod, and where its container has it.
    pub(super) fn volume(&self) -> (Value, Value) {
        self.credentials.volume(VOLUME, DIRECTORY, KEY)
    }
}

#[cfg(test)]
mod tests {
    use base64::{Engine, engine::general_purpose::STANDARD};
    use serde_json::json;

    use super::*;

    fn resolve(provider: Provider, content: &str) -> anyhow::Result<Option<ScaleFromZero>> {
        let file = tempfile::NamedTempFile::new()?;
        fs::write(file.path(), content)?;
        let args = ScaleFromZeroArgs {
            scale_from_zero_provider: Some(provider),
            scale_from_zero_creds: Some(file.path().to_owned()),
            scale_from_zero_secret: None,
            scale_from_zero_secret_key: KEY.to_owned(),
        };
        args.resolve()
    }

    #[test]
    fn credentials_are_those_of_the_provider() {
        let aws = "[default]\naws_access_key_id = a\naws_secret_access_key = hunter2\n";
        let azure = json!({
            "subscriptionId": "s", "tenantId": "t", "clientId": "c", "clientSecret": "hunter2", "location": "eastus",
        });
        let partial = json!({ "tenantId": "t", "clientId": "c", "clientSecret": "hunter2" });
        let (azure, partial) = (azure.to_string(), partial.to_string());
        for (provider, content, expected) in [
            (Provider::Aws, aws, Ok("aws")),
            (Provider::Azure, azure.as_str(), Ok("azure")),
            (
                Provider::Azure,
                partial.as_str(),
                Err("has no subscriptionId"),
            ),
            (Provider::Azure, aws, Err("has no subscriptionId")),
            (Provider::Azure, "", Err("has no subscriptionId")),
        ] {
            match (resolve(provider, content), expected) {
                (Ok(found), Ok(expected)) => {
                    let found = found.unwrap();
                    let [provider, _] = found.arguments();
                    assert_eq!(provider, format!("--scale-from-zero-provider={expected}"));
                    let object = found.object("hypershift").unwrap();
                    assert_eq!(object.body["data"][KEY], STANDARD.encode(content));
                }
                (Err(error), Err(expected)) => {
                    let message = error.to_string();
                    assert!(message.contains(expected), "{message}");
                    assert!(!message.contains("hunter2"), "{message}");
                }
                (found, expected) => panic!("{found:?}, not {expected:?}"),
            }
        }
    }
}
