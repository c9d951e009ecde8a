//! Where and with which credentials the operators make VPC endpoint services for private hosted clusters on AWS.

use std::path::PathBuf;

use clap::Args;
use serde_json::Value;
use support::aws::is_region;

use super::refused;
use crate::install::aws_role::{self, Roles};
use crate::install::parameters::{AWS_KEY, AWS_REGION, AWS_SECRET, Parameters};
use crate::install::secret_file::{SecretFile, read_aws};

/// Secret with the credentials of `--aws-private-creds` or the profile of `--aws-private-role-arn`.
const SECRET: &str = "hypershift-operator-aws-credentials";
/// Key in it, and name of the file.
const KEY: &str = "credentials";
const VOLUME: &str = "aws-credentials";
const DIRECTORY: &str = "/etc/aws-provider";
const ROLE: &str = "--aws-private-role-arn";

/// The flags.
#[derive(Debug, Clone, Args)]
#[expect(
    clippy::struct_field_names,
    reason = "the names of the flags are those of HyperShift"
)]
pub(in crate::install) struct AwsPrivateArgs {
    /// File with the credentials for VPC endpoint services on AWS: a shared credentials file with a default profile
    #[arg(long, global = true, value_name = "FILE")]
    aws_private_creds: Option<PathBuf>,

    /// Secret with the credentials for VPC endpoint services on AWS, in the namespace of the operator
    #[arg(long, global = true, value_name = "NAME")]
    aws_private_secret: Option<String>,

    /// Key of the Secret of --aws-private-secret
    #[arg(long, global = true, value_name = "KEY", default_value = KEY)]
    aws_private_secret_key: String,

    /// Region of the management cluster on AWS
    #[arg(long, global = true, value_name = "REGION")]
    aws_private_region: Option<String>,

    /// Role for VPC endpoint services on AWS, which the operators assume with tokens of their service accounts
    #[arg(long, global = true, value_name = "ARN")]
    aws_private_role_arn: Option<String>,
}

/// The region, and the credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Aws {
    region: String,
    credentials: SecretFile,
    /// Whether the operators need tokens.
    with_token: bool,
}

// === impl AwsPrivateArgs ===

impl AwsPrivateArgs {
    /// The flags, and which of them are set.
    pub(super) fn given(&self) -> [(&'static str, bool); 4] {
        [
            ("--aws-private-creds", self.aws_private_creds.is_some()),
            ("--aws-private-secret", self.aws_private_secret.is_some()),
            ("--aws-private-region", self.aws_private_region.is_some()),
            (ROLE, self.aws_private_role_arn.is_some()),
        ]
    }

    /// Checks the flags and reads the file.
    pub(super) fn resolve(&self, roles: &Roles) -> anyhow::Result<Aws> {
        let Self {
            aws_private_creds: file,
            aws_private_secret: secret,
            aws_private_secret_key: key,
            aws_private_region: region,
            aws_private_role_arn: role,
        } = self;
        let Some(region) = region else {
            return refused("--private-platform=AWS needs --aws-private-region");
        };
        if !is_region(region) {
            return refused(format!(
                "--aws-private-region {region:?} is not a region (for example us-east-1)"
            ));
        }
        let role = role.as_ref().or(roles.private_links.as_ref());
        let credentials = match (file, secret, role) {
            (Some(file), None, None) => SecretFile::made(SECRET, KEY, read_aws(file)?),
            (None, Some(name), None) => SecretFile::existing(name, key),
            (None, None, Some(role)) => SecretFile::made(SECRET, KEY, roles.profile(ROLE, role)?),
            _ => {
                return refused(
                    "--private-platform=AWS needs one of --aws-private-creds, --aws-private-secret and \
                     --aws-private-role-arn",
                );
            }
        };
        Ok(Aws {
            region: region.clone(),
            credentials,
            with_token: role.is_some() && roles.need_tokens(),
        })
    }
}

// === impl Aws ===

impl Aws {
    /// Puts parameters in the place of values.
    pub(super) fn parameterize(&mut self, parameters: &mut Parameters) {
        let Self {
            region,
            credentials,
            with_token: _,
        } = self;
        parameters.take(AWS_REGION, region);
        credentials.parameterize(parameters, AWS_SECRET, AWS_KEY);
    }

    /// The arguments of an operator.
    pub(super) fn arguments(&self) -> Vec<String> {
        vec![
            format!("--aws-region={}", self.region),
            format!("--aws-shared-credentials-file={DIRECTORY}/{KEY}"),
        ]
    }

    /// The volumes of its pod, and where its container has them.
    pub(super) fn volumes(&self) -> Vec<(Value, Value)> {
        let credentials = self.credentials.volume(VOLUME, DIRECTORY, KEY);
        let token = self.with_token.then(aws_role::token);
        [credentials].into_iter().chain(token).collect()
    }

    pub(super) fn credentials(&self) -> &SecretFile {
        &self.credentials
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::fs;

    use super::*;

    pub(in crate::install::private_links) fn none() -> AwsPrivateArgs {
        AwsPrivateArgs {
            aws_private_creds: None,
            aws_private_secret: None,
            aws_private_secret_key: KEY.to_owned(),
            aws_private_region: None,
            aws_private_role_arn: None,
        }
    }

    fn given(region: Option<&str>, secret: Option<&str>, role: Option<&str>) -> AwsPrivateArgs {
        AwsPrivateArgs {
            aws_private_region: region.map(str::to_owned),
            aws_private_secret: secret.map(str::to_owned),
            aws_private_role_arn: role.map(str::to_owned),
            ..none()
        }
    }

    #[test]
    fn region_and_one_source_of_credentials_are_required() {
        let role = "arn:aws:iam::123456789012:role/a";
        let region = Some("eu-west-1");
        for (args, expected) in [
            (given(None, Some("a"), None), "needs --aws-private-region"),
            (given(Some("a b"), Some("a"), None), "is not a region"),
            (given(region, None, None), "needs one of"),
            (given(region, Some("a"), Some(role)), "needs one of"),
            (given(region, None, Some("a")), "is not the ARN of a role"),
            (given(region, Some("a"), None), ""),
            (given(region, None, Some(role)), ""),
        ] {
            let message = args
                .resolve(&Roles::default())
                .map_or_else(|it| it.to_string(), |_| String::new());
            assert_eq!(message.is_empty(), expected.is_empty(), "{message}");
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn credentials_are_checked_and_not_quoted() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "[default]\naws_secret_access_key = hunter2\n").unwrap();
        let args = AwsPrivateArgs {
            aws_private_creds: Some(file.path().to_owned()),
            ..given(Some("eu-west-1"), None, None)
        };
        let message = format!("{:#}", args.resolve(&Roles::default()).unwrap_err());
        assert!(!message.contains("hunter2"), "{message}");
        let complete = "[default]\naws_access_key_id = a\naws_secret_access_key = hunter2\n";
        fs::write(file.path(), complete).unwrap();
        let aws = args.resolve(&Roles::default()).unwrap();
        let expected = SecretFile::made(SECRET, KEY, complete.to_owned());
        assert_eq!(*aws.credentials(), expected);
        assert_eq!(aws.volumes().len(), 1);
    }

    #[test]
    fn role_needs_token() {
        let role = "arn:aws:iam::123456789012:role/a";
        let aws = given(Some("eu-west-1"), None, Some(role))
            .resolve(&Roles::default())
            .unwrap();
        let content = &aws.credentials().content;
        assert!(content.as_ref().unwrap().contains(role));
        assert_eq!(aws.volumes().len(), 2);
    }
}
