//! Credentials of AWS: flags, and what AWS's own programs use without them.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use serde::Deserialize;
use support::aws::credentials::{of_file, of_user};
use support::aws::{Client, Credentials, Source};

use super::accounts::PrivateZones;
use super::client::Aws;
use super::secret::SecretValues;
use crate::Usage;
use crate::create::text;

/// Flags that say who makes the calls.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct CredentialArgs {
    /// Credentials file of AWS [default: the environment, or ~/.aws/credentials]
    #[arg(long, value_name = "FILE", conflicts_with = "sts_creds")]
    aws_creds: Option<PathBuf>,

    /// JSON file with the output of aws sts get-session-token
    #[arg(long, value_name = "FILE", requires = "role_arn")]
    sts_creds: Option<PathBuf>,

    /// ARN of a role to assume
    #[arg(long, value_name = "ARN")]
    role_arn: Option<String>,
}

/// Flags of a VPC that belongs to another account than the cluster (shared VPC).
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct OwnerArgs {
    /// Credentials file of the account that owns the VPC (shared VPC) [default: the VPC is in the account of the cluster]
    #[arg(long, value_name = "FILE")]
    vpc_owner_aws_creds: Option<PathBuf>,

    /// Have private hosted zones in the account of the cluster instead of that of the VPC; needs --vpc-owner-aws-creds
    #[arg(long, requires = "vpc_owner_aws_creds")]
    private_zones_in_cluster_account: bool,
}

/// The output of `aws sts get-session-token`.
#[derive(Deserialize)]
struct Session {
    #[serde(rename = "Credentials")]
    credentials: SessionCredentials,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SessionCredentials {
    access_key_id: String,
    secret_access_key: String,
    session_token: String,
}

// === impl CredentialArgs ===

impl CredentialArgs {
    /// A client for a region. Audit logs of AWS show the name of the session.
    pub(crate) fn connect(&self, region: &str, session: &str) -> anyhow::Result<Aws> {
        self.connect_with(region, session, None)
    }

    /// The same with the credentials of a Secret, unless flags name a file.
    pub(crate) fn connect_with(
        &self,
        region: &str,
        session: &str,
        secret: Option<&SecretValues>,
    ) -> anyhow::Result<Aws> {
        let has_file = self.aws_creds.is_some() || self.sts_creds.is_some();
        let source = match secret.filter(|_| !has_file) {
            Some(secret) => secret.source()?,
            None => self.source()?,
        };
        let role = self.role_arn.clone();
        let client = Client::new(source, role, region, session, &variable);
        Ok(Aws::new(client))
    }

    fn source(&self) -> anyhow::Result<Source> {
        if let Some(path) = &self.sts_creds {
            return session(path);
        }
        let found = match &self.aws_creds {
            Some(path) => Some(of_file(path, &variable)?),
            None => of_user(&variable)?,
        };
        let found = found.ok_or_else(|| {
            Usage::new(
                &"no credentials for AWS: give --aws-creds FILE, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
            )
        })?;
        Ok(found)
    }
}

// === impl OwnerArgs ===

impl OwnerArgs {
    /// Whether the VPC belongs to another account.
    pub(crate) fn is_given(&self) -> bool {
        self.vpc_owner_aws_creds.is_some()
    }

    /// In which account private hosted zones are.
    pub(crate) fn private_zones(&self) -> PrivateZones {
        if self.private_zones_in_cluster_account {
            PrivateZones::OfCluster
        } else {
            PrivateZones::OfVpc
        }
    }

    /// A client for the account of the VPC, if it is another one. Roles of other flags are not assumed.
    pub(crate) fn connect(&self, region: &str, session: &str) -> anyhow::Result<Option<Aws>> {
        let Some(source) = self.source()? else {
            return Ok(None);
        };
        let client = Client::new(source, None, region, session, &variable);
        Ok(Some(Aws::new(client)))
    }

    fn source(&self) -> anyhow::Result<Option<Source>> {
        let path = self.vpc_owner_aws_creds.as_deref();
        let source = path.map(|path| of_file(path, &variable));
        source.transpose().context("--vpc-owner-aws-creds")
    }
}

fn session(path: &Path) -> anyhow::Result<Source> {
    let read = text::file("--sts-creds", path)?;
    // Without the cause, which may have parts of the file.
    let session: Option<Session> = serde_json::from_str(&read).ok();
    let session = session.with_context(|| {
        format!(
            "--sts-creds {}: this is not the output of aws sts get-session-token",
            path.display()
        )
    })?;
    let SessionCredentials {
        access_key_id,
        secret_access_key,
        session_token,
    } = session.credentials;
    Ok(Source::Static(Credentials {
        access_key: access_key_id,
        secret_key: secret_access_key,
        session_token: Some(session_token),
    }))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each account has the credentials of its own file.
    #[test]
    fn credentials_of_two_accounts_are_those_of_two_files() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str| {
            let path = directory.path().join(name);
            let text =
                format!("[default]\naws_access_key_id = {name}\naws_secret_access_key = secret\n");
            std::fs::write(&path, text).unwrap();
            path
        };
        let key = |source: Source| match source {
            Source::Static(credentials) => credentials.access_key,
            Source::WebIdentity { role, .. } | Source::Instance { role, .. } => role,
        };
        let cluster = CredentialArgs {
            aws_creds: Some(file("CLUSTER")),
            role_arn: Some("arn:role".to_owned()),
            ..CredentialArgs::default()
        };
        let owner = OwnerArgs {
            vpc_owner_aws_creds: Some(file("OWNER")),
            private_zones_in_cluster_account: false,
        };
        assert_eq!(key(cluster.source().unwrap()), "CLUSTER");
        assert_eq!(key(owner.source().unwrap().unwrap()), "OWNER");
        assert!(OwnerArgs::default().source().unwrap().is_none());
        let absent = OwnerArgs {
            vpc_owner_aws_creds: Some(directory.path().join("absent")),
            ..OwnerArgs::default()
        };
        let error = format!("{:#}", absent.source().unwrap_err());
        assert!(error.contains("--vpc-owner-aws-creds"), "{error}");
    }

    #[test]
    fn sessions_are_read_and_their_secrets_are_not_shown() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sts.json");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            let args = CredentialArgs {
                sts_creds: Some(path.clone()),
                ..CredentialArgs::default()
            };
            args.source()
        };
        let text =
            r#"{"Credentials": {"AccessKeyId": "a", "SecretAccessKey": "s", "SessionToken": "t"}}"#;
        let expected = Source::Static(Credentials {
            access_key: "a".to_owned(),
            secret_key: "s".to_owned(),
            session_token: Some("t".to_owned()),
        });
        assert!(read(text).unwrap() == expected);
        for damaged in [
            r#"{"Credentials": {"SecretAccessKey": "s3cret"}}"#,
            "s3cret",
        ] {
            let error = format!("{:#}", read(damaged).unwrap_err());
            assert!(error.contains("--sts-creds"), "{error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
    }
}
