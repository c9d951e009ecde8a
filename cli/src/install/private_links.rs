//! Where the operators make what private hosted clusters on AWS and Azure and clusters on Google Cloud connect to.

mod aws;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, ValueEnum};
use serde_json::Value;
use support::{azure_resources, google_resources};

use super::aws_role::Roles;
use super::object::Object;
use super::parameters::Parameters;
use super::secret_file::SecretFile;
use crate::Usage;

/// Secret with the credentials of `--azure-private-creds`.
const SECRET: &str = "hypershift-operator-azure-credentials";
/// Key in it, and name of the file.
const KEY: &str = "credentials";
const VOLUME: &str = "azure-credentials";
const DIRECTORY: &str = "/etc/azure-provider";
/// What a file with credentials has.
const FIELDS: [&str; 3] = ["tenantId", "clientId", "clientSecret"];
const SUBSCRIPTION: &str = "subscriptionId";
/// By this label and annotation, Azure gives a pod tokens of an identity.
const USE_IDENTITY: &str = "azure.workload.identity/use";
const IDENTITY: &str = "azure.workload.identity/client-id";

/// The flags.
#[derive(Debug, Clone, Args)]
pub(super) struct PrivateLinkArgs {
    /// Cloud in which the operators make what private hosted clusters connect to. AWS needs --aws-private-region and one of
    /// --aws-private-creds, --aws-private-secret and --aws-private-role-arn; Azure needs --azure-pls-resource-group and one
    /// of --azure-private-creds, --azure-private-secret and --azure-pls-managed-identity-client-id; GCP needs --gcp-project
    /// and --gcp-region
    #[arg(long, global = true, value_enum, value_name = "CLOUD", default_value_t = PrivatePlatform::None)]
    private_platform: PrivatePlatform,

    /// VPC endpoint services.
    #[command(flatten)]
    aws: aws::AwsPrivateArgs,

    /// File with the credentials for private link services on Azure: JSON or YAML with subscriptionId, tenantId, clientId and
    /// clientSecret
    #[arg(long, global = true, value_name = "FILE")]
    azure_private_creds: Option<PathBuf>,

    /// Secret with these credentials as JSON, in the namespace of the operator
    #[arg(long, global = true, value_name = "NAME")]
    azure_private_secret: Option<String>,

    /// Key of the Secret of --azure-private-secret
    #[arg(long, global = true, value_name = "KEY", default_value = KEY)]
    azure_private_secret_key: String,

    /// Client ID of a managed identity for private link services on Azure, which trusts the service accounts of the operators
    #[arg(long, global = true, value_name = "ID")]
    azure_pls_managed_identity_client_id: Option<String>,

    /// Subscription of the resource group; needed with a managed identity [default: the one of the credentials]
    #[arg(long, global = true, value_name = "ID")]
    azure_pls_subscription_id: Option<String>,

    /// Resource group of the management cluster's load balancers, in which the operators make private link services
    #[arg(long, global = true, value_name = "NAME")]
    azure_pls_resource_group: Option<String>,

    /// Project of the management cluster, in which the operators make service attachments
    #[arg(long, global = true, value_name = "ID")]
    gcp_project: Option<String>,

    /// Region of the management cluster on Google Cloud
    #[arg(long, global = true, value_name = "NAME")]
    gcp_region: Option<String>,
}

/// Clouds with private links that need settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PrivatePlatform {
    /// No cloud
    #[value(name = "None")]
    None,
    /// Amazon Web Services
    #[value(name = "AWS")]
    Aws,
    /// Microsoft Azure
    #[value(name = "Azure")]
    Azure,
    /// Google Cloud
    #[value(name = "GCP")]
    Gcp,
}

/// Where the operators make it, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PrivateLinks {
    Aws(aws::Aws),
    Azure {
        group: String,
        subscription: Option<String>,
        credentials: Credentials,
    },
    Gcp {
        project: String,
        region: String,
    },
}

/// The credentials for Azure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Credentials {
    Secret(SecretFile),
    /// The client ID of a managed identity.
    Identity(String),
}

// === impl PrivateLinkArgs ===

impl PrivateLinkArgs {
    /// Checks the flags and reads the file. A managed service has another way.
    pub(super) fn resolve(
        &self,
        is_managed_service: bool,
        roles: &Roles,
    ) -> anyhow::Result<Option<PrivateLinks>> {
        self.check_clouds()?;
        match self.private_platform {
            PrivatePlatform::None => Ok(None),
            PrivatePlatform::Aws => self
                .aws
                .resolve(roles)
                .map(|it| Some(PrivateLinks::Aws(it))),
            PrivatePlatform::Azure if is_managed_service => Ok(None),
            PrivatePlatform::Azure => self.azure().map(Some),
            PrivatePlatform::Gcp => self.gcp().map(Some),
        }
    }

    /// Flags of another cloud contradict the platform, or it has been forgotten.
    fn check_clouds(&self) -> anyhow::Result<()> {
        let aws = self.aws.given();
        let azure = [
            ("--azure-private-creds", self.azure_private_creds.is_some()),
            (
                "--azure-private-secret",
                self.azure_private_secret.is_some(),
            ),
            (
                "--azure-pls-managed-identity-client-id",
                self.azure_pls_managed_identity_client_id.is_some(),
            ),
            (
                "--azure-pls-subscription-id",
                self.azure_pls_subscription_id.is_some(),
            ),
            (
                "--azure-pls-resource-group",
                self.azure_pls_resource_group.is_some(),
            ),
        ];
        let gcp = [
            ("--gcp-project", self.gcp_project.is_some()),
            ("--gcp-region", self.gcp_region.is_some()),
        ];
        for (platform, name, flags) in [
            (PrivatePlatform::Aws, "AWS", &aws[..]),
            (PrivatePlatform::Azure, "Azure", &azure[..]),
            (PrivatePlatform::Gcp, "GCP", &gcp[..]),
        ] {
            let given = flags.iter().find(|(_, is_given)| *is_given);
            if let Some((flag, _)) = given.filter(|_| platform != self.private_platform) {
                return refused(format!("{flag} needs --private-platform={name}"));
            }
        }
        Ok(())
    }

    fn azure(&self) -> anyhow::Result<PrivateLinks> {
        let Some(group) = &self.azure_pls_resource_group else {
            return refused("--private-platform=Azure needs --azure-pls-resource-group");
        };
        let (file, secret, identity) = (
            &self.azure_private_creds,
            &self.azure_private_secret,
            &self.azure_pls_managed_identity_client_id,
        );
        let subscription = &self.azure_pls_subscription_id;
        let credentials = match (file, secret, identity) {
            (Some(file), None, None) => {
                let content = read(file, subscription.is_some())?;
                Credentials::Secret(SecretFile::made(SECRET, KEY, content))
            }
            (None, Some(name), None) => {
                Credentials::Secret(SecretFile::existing(name, &self.azure_private_secret_key))
            }
            (None, None, Some(id)) if subscription.is_some() => Credentials::Identity(id.clone()),
            (None, None, Some(_)) => {
                return refused(
                    "--azure-pls-managed-identity-client-id needs --azure-pls-subscription-id",
                );
            }
            _ => {
                return refused(
                    "--private-platform=Azure needs one of --azure-private-creds, --azure-private-secret and \
                     --azure-pls-managed-identity-client-id",
                );
            }
        };
        for (flag, value) in [
            ("--azure-pls-resource-group", Some(group)),
            ("--azure-pls-subscription-id", subscription.as_ref()),
            ("--azure-pls-managed-identity-client-id", identity.as_ref()),
        ] {
            if let Some(value) = value.filter(|it| !azure_resources::is_name(it)) {
                return refused(format!("{flag} {value:?} is not a name in Azure"));
            }
        }
        Ok(PrivateLinks::Azure {
            group: group.clone(),
            subscription: subscription.clone(),
            credentials,
        })
    }

    fn gcp(&self) -> anyhow::Result<PrivateLinks> {
        let (Some(project), Some(region)) = (&self.gcp_project, &self.gcp_region) else {
            return refused("--private-platform=GCP needs --gcp-project and --gcp-region");
        };
        for (flag, value) in [("--gcp-project", project), ("--gcp-region", region)] {
            if !google_resources::is_name(value) {
                return refused(format!("{flag} {value:?} is not a name in Google Cloud"));
            }
        }
        Ok(PrivateLinks::Gcp {
            project: project.clone(),
            region: region.clone(),
        })
    }
}

fn refused<T>(message: impl Into<String>) -> anyhow::Result<T> {
    let message: String = message.into();
    Err(Usage::new(&message).into())
}

/// The file as the operator reads it. The operator would fail with each hosted cluster: the file is checked here. Its content is
/// not repeated.
fn read(path: &Path, has_subscription: bool) -> anyhow::Result<String> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let content: Option<Value> = serde_saphyr::from_str(&text).ok();
    let content = content.unwrap_or_default();
    let mut needed = FIELDS
        .iter()
        .chain((!has_subscription).then_some(&SUBSCRIPTION));
    let is_missing = |field: &&&str| content[**field].as_str().is_none_or(str::is_empty);
    if let Some(missing) = needed.find(is_missing) {
        anyhow::bail!(
            "{} has no {missing}: give JSON or YAML with subscriptionId, tenantId, clientId and clientSecret",
            path.display()
        );
    }
    Ok(content.to_string())
}

// === impl PrivateLinks ===

impl PrivateLinks {
    /// The Secret, unless it is the user's.
    pub(super) fn object(&self, namespace: &str) -> Option<Object> {
        self.secret()?.object(namespace)
    }

    /// Puts parameters in the place of values.
    pub(super) fn parameterize(&mut self, parameters: &mut Parameters) {
        match self {
            Self::Aws(aws) => aws.parameterize(parameters),
            Self::Azure { .. } | Self::Gcp { .. } => {}
        }
    }

    /// The arguments of an operator.
    pub(super) fn arguments(&self) -> Vec<String> {
        match self {
            Self::Aws(aws) => aws.arguments(),
            Self::Azure {
                group,
                subscription,
                ..
            } => {
                let group = format!("--azure-resource-group={group}");
                let subscription = subscription.iter();
                let subscription = subscription.map(|it| format!("--azure-subscription-id={it}"));
                let file = self.secret();
                let file = file.map(|_| format!("--azure-credentials-file={DIRECTORY}/{KEY}"));
                [group]
                    .into_iter()
                    .chain(subscription)
                    .chain(file)
                    .collect()
            }
            Self::Gcp { project, region } => {
                vec![
                    format!("--gcp-project={project}"),
                    format!("--gcp-region={region}"),
                ]
            }
        }
    }

    /// The volumes of its pod, and where its container has them.
    pub(super) fn volumes(&self) -> Vec<(Value, Value)> {
        if let Self::Aws(aws) = self {
            return aws.volumes();
        }
        let secret = self.secret().into_iter();
        secret.map(|it| it.volume(VOLUME, DIRECTORY, KEY)).collect()
    }

    /// The label of its pod.
    pub(super) fn label(&self) -> Option<(&'static str, &'static str)> {
        self.identity().map(|_| (USE_IDENTITY, "true"))
    }

    /// The annotation of its service account.
    pub(super) fn annotation(&self) -> Option<(&'static str, &str)> {
        self.identity().map(|id| (IDENTITY, id))
    }

    fn identity(&self) -> Option<&str> {
        match self {
            Self::Azure {
                credentials: Credentials::Identity(id),
                ..
            } => Some(id.as_str()),
            Self::Aws(_) | Self::Azure { .. } | Self::Gcp { .. } => None,
        }
    }

    fn secret(&self) -> Option<&SecretFile> {
        match self {
            Self::Aws(aws) => Some(aws.credentials()),
            Self::Azure {
                credentials: Credentials::Secret(secret),
                ..
            } => Some(secret),
            Self::Azure { .. } | Self::Gcp { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests;
