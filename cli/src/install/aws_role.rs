//! Roles of AWS that the operators assume, and how they prove who they are.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::Usage;

/// Volume with a token of the operator; its directory, and its file.
const VOLUME: &str = "aws-token";
const DIRECTORY: &str = "/var/run/secrets/openshift/serviceaccount";
const TOKEN: &str = "token";
/// The audience that roles trust, and how long a token is valid, in seconds.
const AUDIENCE: &str = "openshift";
const LIFETIME: u32 = 3600;

/// The flags.
#[derive(Debug, Clone, Args)]
pub(super) struct AwsRoleArgs {
    /// How the operators and ExternalDNS prove to AWS that they may assume a role
    #[arg(long, global = true, value_enum, value_name = "SOURCE", default_value_t = CredentialSource::WebIdentity)]
    aws_role_credential_source: CredentialSource,

    /// File with roles, as create operator-roles aws writes it, in place of --aws-private-role-arn,
    /// --oidc-storage-provider-s3-role-arn and --external-dns-role-arn. Each is used where its purpose is set up
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        conflicts_with_all = [
            "aws_private_role_arn",
            "oidc_storage_provider_s3_role_arn",
            "external_dns_role_arn",
        ]
    )]
    aws_operator_roles_file: Option<PathBuf>,
}

/// How programs prove to AWS that they may assume a role.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum CredentialSource {
    /// By tokens of their service accounts
    #[default]
    #[value(name = "web-identity")]
    WebIdentity,
    /// By the role of the nodes that they run on; their metadata service must accept requests of pods (hop limit 2)
    #[value(name = "ec2-instance-metadata")]
    InstanceMetadata,
}

/// Roles of a file by purpose, and how all roles are assumed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Roles {
    source: CredentialSource,
    /// For VPC endpoint services.
    pub(super) private_links: Option<String>,
    /// For OIDC documents.
    pub(super) oidc: Option<String>,
    /// For DNS records.
    pub(super) external_dns: Option<String>,
}

// === impl AwsRoleArgs ===

impl AwsRoleArgs {
    /// Reads the file.
    pub(super) fn resolve(&self) -> anyhow::Result<Roles> {
        let Self {
            aws_role_credential_source: source,
            aws_operator_roles_file: file,
        } = self;
        let roles = file.as_deref().map(read).transpose()?.unwrap_or_default();
        Ok(Roles {
            source: *source,
            ..roles
        })
    }
}

fn read(path: &Path) -> anyhow::Result<Roles> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let content: Value = serde_json::from_str(&text)
        .ok()
        .filter(Value::is_object)
        .with_context(|| {
            format!(
                "{} is no file with roles: give JSON with operatorEC2RoleARN, operatorOIDCS3RoleARN and externalDNSRoleARN",
                path.display()
            )
        })?;
    let role = |key: &str| {
        let role = content[key].as_str().filter(|role| !role.is_empty());
        role.map(str::to_owned)
    };
    Ok(Roles {
        source: CredentialSource::default(),
        private_links: role("operatorEC2RoleARN"),
        oidc: role("operatorOIDCS3RoleARN"),
        external_dns: role("externalDNSRoleARN"),
    })
}

// === impl Roles ===

impl Roles {
    /// The profile of a role, which `flag` names.
    pub(super) fn profile(&self, flag: &str, role: &str) -> anyhow::Result<String> {
        let is_arn = role.starts_with("arn:") && role.contains(":role/");
        if !is_arn || role.contains(char::is_whitespace) {
            let message = format!(
                "{flag} {role:?} is not the ARN of a role (for example arn:aws:iam::123456789012:role/name)"
            );
            return Err(Usage::new(&message).into());
        }
        let source = match self.source {
            CredentialSource::WebIdentity => {
                format!("web_identity_token_file = {DIRECTORY}/{TOKEN}")
            }
            CredentialSource::InstanceMetadata => {
                "credential_source = Ec2InstanceMetadata".to_owned()
            }
        };
        Ok(format!("[default]\nrole_arn = {role}\n{source}\n"))
    }

    /// Whether programs with a role need tokens.
    pub(super) fn need_tokens(&self) -> bool {
        self.source == CredentialSource::WebIdentity
    }
}

/// The volume with the token, and where the container of an operator has it. It is the same for all roles.
pub(super) fn token() -> (Value, Value) {
    let volume = json!({
        "name": VOLUME,
        "projected": { "sources": [{ "serviceAccountToken": {
            "audience": AUDIENCE,
            "expirationSeconds": LIFETIME,
            "path": TOKEN,
        } }] },
    });
    let mount = json!({ "name": VOLUME, "mountPath": DIRECTORY, "readOnly": true });
    (volume, mount)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_of_a_file_are_known_by_purpose() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let content = json!({ "operatorEC2RoleARN": "a", "externalDNSRoleARN": "", "other": 1 });
        fs::write(file.path(), content.to_string()).unwrap();
        let mut args = AwsRoleArgs {
            aws_role_credential_source: CredentialSource::InstanceMetadata,
            aws_operator_roles_file: Some(file.path().to_owned()),
        };
        let expected = Roles {
            source: CredentialSource::InstanceMetadata,
            private_links: Some("a".to_owned()),
            ..Roles::default()
        };
        assert_eq!(args.resolve().unwrap(), expected);
        fs::write(file.path(), "[]").unwrap();
        let error = args.resolve().unwrap_err().to_string();
        assert!(error.contains("operatorOIDCS3RoleARN"), "{error}");
        args.aws_operator_roles_file = None;
        assert_eq!(args.resolve().unwrap().private_links, None);
    }

    #[test]
    fn profiles_say_how_a_role_is_assumed() {
        let role = "arn:aws:iam::123456789012:role/a";
        for (source, expected, with_token) in [
            (
                CredentialSource::WebIdentity,
                "web_identity_token_file = /var/run/secrets/openshift/serviceaccount/token",
                true,
            ),
            (
                CredentialSource::InstanceMetadata,
                "credential_source = Ec2InstanceMetadata",
                false,
            ),
        ] {
            let roles = Roles {
                source,
                ..Roles::default()
            };
            let profile = roles.profile("--role", role).unwrap();
            assert_eq!(
                profile,
                format!("[default]\nrole_arn = {role}\n{expected}\n")
            );
            assert_eq!(roles.need_tokens(), with_token);
            roles.profile("--role", "admin").unwrap_err();
        }
    }
}
