//! The cloud that says what a machine has, for NodePools without machines.

use std::path::PathBuf;

use support::azure::Cloud;

use crate::args::{CapacityProvider, ScaleFromZeroArgs};
use crate::error::Fatal;

/// The cloud, and how it is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ScaleFromZero {
    Aws {
        /// A shared credentials file.
        credentials: PathBuf,
    },
    Azure {
        /// JSON with an application and a subscription.
        credentials: PathBuf,
        cloud: Cloud,
    },
}

/// The settings, if there is a provider. The files are read for each request: they may be replaced.
pub(super) fn settings(
    args: &ScaleFromZeroArgs,
    azure_cloud_name: &str,
) -> Result<Option<ScaleFromZero>, Fatal> {
    let ScaleFromZeroArgs {
        scale_from_zero_provider,
        scale_from_zero_creds,
    } = args;
    let (provider, credentials) = match (scale_from_zero_provider, scale_from_zero_creds) {
        (None, None) => return Ok(None),
        (Some(provider), Some(file)) => (provider, file.clone()),
        (Some(_), None) | (None, Some(_)) => {
            return Err(usage(
                "--scale-from-zero-provider and --scale-from-zero-creds require each other: set both or none".to_owned(),
            ));
        }
    };
    if !credentials.is_file() {
        return Err(usage(format!(
            "--scale-from-zero-creds {} is not a file: mount the Secret with the credentials",
            credentials.display()
        )));
    }
    Ok(Some(match provider {
        CapacityProvider::Aws => ScaleFromZero::Aws { credentials },
        CapacityProvider::Azure => ScaleFromZero::Azure {
            credentials,
            cloud: cloud(azure_cloud_name)?,
        },
    }))
}

/// The cloud with this name: the public one without a name.
fn cloud(name: &str) -> Result<Cloud, Fatal> {
    if name.is_empty() {
        return Ok(Cloud::Public);
    }
    Cloud::of_name(name).ok_or_else(|| {
        usage(format!(
            "--azure-cloud-name {name:?} is not a cloud that --scale-from-zero-provider supports: use AzurePublicCloud, \
             AzureUSGovernmentCloud, AzureChinaCloud or AzureBleuCloud"
        ))
    })
}

fn usage(message: String) -> Fatal {
    Fatal::Usage { message }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn found(
        provider: CapacityProvider,
        file: &Path,
        cloud: &str,
    ) -> Result<Option<ScaleFromZero>, Fatal> {
        let args = ScaleFromZeroArgs {
            scale_from_zero_provider: Some(provider),
            scale_from_zero_creds: Some(file.to_owned()),
        };
        settings(&args, cloud)
    }

    #[test]
    fn credentials_for_capacities_are_a_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let credentials = file.path().to_owned();
        let azure = |cloud: Cloud| ScaleFromZero::Azure {
            credentials: credentials.clone(),
            cloud,
        };
        let aws = ScaleFromZero::Aws {
            credentials: credentials.clone(),
        };
        for (provider, cloud, expected) in [
            (CapacityProvider::Aws, "AzurePublicCloud", aws.clone()),
            // Without Azure, its cloud does not matter.
            (CapacityProvider::Aws, "Elsewhere", aws),
            (CapacityProvider::Azure, "", azure(Cloud::Public)),
            (
                CapacityProvider::Azure,
                "AzureUSGovernmentCloud",
                azure(Cloud::UsGovernment),
            ),
        ] {
            let found = found(provider, file.path(), cloud).unwrap();
            assert_eq!(found, Some(expected), "{provider:?} {cloud}");
        }
        let none = ScaleFromZeroArgs {
            scale_from_zero_provider: None,
            scale_from_zero_creds: None,
        };
        assert_eq!(settings(&none, "AzurePublicCloud").unwrap(), None);
    }

    #[test]
    fn invalid_settings_are_rejected() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for (path, cloud, expected) in [
            (
                Path::new("/does/not/exist"),
                "AzurePublicCloud",
                "/does/not/exist is not a file",
            ),
            (
                file.path(),
                "Elsewhere",
                "--azure-cloud-name \"Elsewhere\" is not a cloud",
            ),
        ] {
            let error = found(CapacityProvider::Azure, path, cloud).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
    }
}
