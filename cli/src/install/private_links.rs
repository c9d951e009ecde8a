//! Where the operators make what private hosted clusters on Azure and clusters on Google Cloud connect to.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use base64::{Engine, engine::general_purpose::STANDARD};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use support::{azure_resources, google_resources};

use super::kind::Kind;
use super::object::Object;
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
    /// Cloud in which the operators make what private hosted clusters connect to. Azure needs --azure-pls-resource-group and
    /// one of --azure-private-creds, --azure-private-secret and --azure-pls-managed-identity-client-id; GCP needs
    /// --gcp-project and --gcp-region
    #[arg(long, global = true, value_enum, value_name = "CLOUD", default_value_t = PrivatePlatform::None)]
    private_platform: PrivatePlatform,

    /// File with the credentials for private link services on Azure: JSON or YAML with subscriptionId, tenantId, clientId and
    /// clientSecret
    #[arg(long, global = true, value_name = "FILE")]
    azure_private_creds: Option<PathBuf>,

    /// Secret with these credentials as JSON, in the namespace of the operator
    #[arg(long, global = true, value_name = "NAME")]
    azure_private_secret: Option<String>,

    /// Key of that Secret
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
    Secret {
        name: String,
        key: String,
        /// What it has, where the installation makes it.
        content: Option<String>,
    },
    /// The client ID of a managed identity.
    Identity(String),
}

// === impl PrivateLinkArgs ===

impl PrivateLinkArgs {
    /// Checks the flags and reads the file. A managed service has another way.
    pub(super) fn resolve(&self, is_managed_service: bool) -> anyhow::Result<Option<PrivateLinks>> {
        match self.private_platform {
            PrivatePlatform::None => self.none().map(|()| None),
            PrivatePlatform::Azure if is_managed_service => Ok(None),
            PrivatePlatform::Azure => self.azure().map(Some),
            PrivatePlatform::Gcp => self.gcp().map(Some),
        }
    }

    /// Flags without a cloud are forgotten ones.
    fn none(&self) -> anyhow::Result<()> {
        let given = [
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
                "--azure-pls-resource-group",
                self.azure_pls_resource_group.is_some(),
            ),
            ("--gcp-project", self.gcp_project.is_some()),
            ("--gcp-region", self.gcp_region.is_some()),
        ];
        match given.into_iter().find(|(_, is_given)| *is_given) {
            None => Ok(()),
            Some((flag, _)) => refused(format!("{flag} needs --private-platform")),
        }
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
            (Some(file), None, None) => Credentials::Secret {
                name: SECRET.to_owned(),
                key: KEY.to_owned(),
                content: Some(read(file, subscription.is_some())?),
            },
            (None, Some(name), None) => Credentials::Secret {
                name: name.clone(),
                key: self.azure_private_secret_key.clone(),
                content: None,
            },
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
        let (name, key, content) = self.secret()?;
        let fields = json!({ "data": { key: STANDARD.encode(content?) } });
        Some(Object::new(Kind::Secret, namespace, name, fields))
    }

    /// The arguments of an operator.
    pub(super) fn arguments(&self) -> Vec<String> {
        match self {
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

    /// The volume of its pod, and where its container has it.
    pub(super) fn volume(&self) -> Option<(Value, Value)> {
        let (name, key, _) = self.secret()?;
        let volume = json!({
            "name": VOLUME,
            "secret": { "secretName": name, "items": [{ "key": key, "path": KEY }] },
        });
        let mount = json!({ "name": VOLUME, "mountPath": DIRECTORY, "readOnly": true });
        Some((volume, mount))
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
            Self::Azure { .. } | Self::Gcp { .. } => None,
        }
    }

    /// The name, the key and the content of the Secret.
    fn secret(&self) -> Option<(&str, &str, Option<&str>)> {
        match self {
            Self::Azure {
                credentials: Credentials::Secret { name, key, content },
                ..
            } => Some((name.as_str(), key.as_str(), content.as_deref())),
            Self::Azure { .. } | Self::Gcp { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(platform: PrivatePlatform) -> PrivateLinkArgs {
        PrivateLinkArgs {
            private_platform: platform,
            azure_private_creds: None,
            azure_private_secret: None,
            azure_private_secret_key: KEY.to_owned(),
            azure_pls_managed_identity_client_id: None,
            azure_pls_subscription_id: None,
            azure_pls_resource_group: None,
            gcp_project: None,
            gcp_region: None,
        }
    }

    fn azure() -> PrivateLinkArgs {
        PrivateLinkArgs {
            azure_pls_resource_group: Some("group".to_owned()),
            ..args(PrivatePlatform::Azure)
        }
    }

    #[test]
    fn combinations_of_flags_are_checked() {
        let some = |text: &str| Some(text.to_owned());
        let gcp = || PrivateLinkArgs {
            gcp_project: some("mine-1"),
            gcp_region: some("us-central1"),
            ..args(PrivatePlatform::Gcp)
        };
        for (args, expected) in [
            (args(PrivatePlatform::None), ""),
            (
                PrivateLinkArgs {
                    gcp_project: some("a"),
                    ..args(PrivatePlatform::None)
                },
                "--gcp-project needs --private-platform",
            ),
            (args(PrivatePlatform::Azure), "--azure-pls-resource-group"),
            (azure(), "needs one of --azure-private-creds"),
            (
                PrivateLinkArgs {
                    azure_private_secret: some("a"),
                    azure_pls_managed_identity_client_id: some("b"),
                    ..azure()
                },
                "needs one of --azure-private-creds",
            ),
            (
                PrivateLinkArgs {
                    azure_pls_managed_identity_client_id: some("b"),
                    ..azure()
                },
                "needs --azure-pls-subscription-id",
            ),
            (
                PrivateLinkArgs {
                    azure_private_secret: some("a"),
                    ..azure()
                },
                "",
            ),
            (
                PrivateLinkArgs {
                    azure_private_secret: some("a"),
                    azure_pls_subscription_id: some("a/b"),
                    ..azure()
                },
                "--azure-pls-subscription-id \"a/b\" is not a name",
            ),
            (gcp(), ""),
            (
                PrivateLinkArgs {
                    gcp_region: None,
                    ..gcp()
                },
                "needs --gcp-project and --gcp-region",
            ),
            (
                PrivateLinkArgs {
                    gcp_region: some("A"),
                    ..gcp()
                },
                "--gcp-region \"A\" is not a name",
            ),
        ] {
            match args.resolve(false) {
                Ok(_) => assert_eq!(expected, "", "{args:?}"),
                Err(error) => {
                    let message = error.to_string();
                    assert!(
                        !expected.is_empty() && message.contains(expected),
                        "{message}"
                    );
                }
            }
        }
        assert_eq!(args(PrivatePlatform::Azure).resolve(true).unwrap(), None);
    }

    #[test]
    fn credentials_are_checked_and_not_quoted() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let complete = "tenantId: t\nclientId: c\nclientSecret: hunter2\n";
        let resolve = |text: &str, subscription: Option<&str>| {
            fs::write(file.path(), text).unwrap();
            let args = PrivateLinkArgs {
                azure_private_creds: Some(file.path().to_owned()),
                azure_pls_subscription_id: subscription.map(str::to_owned),
                ..azure()
            };
            args.resolve(false)
        };
        for (text, subscription, expected) in [
            (complete.to_owned(), None, "has no subscriptionId"),
            (
                "clientSecret: hunter2".to_owned(),
                Some("s"),
                "has no tenantId",
            ),
            (": hunter2 [".to_owned(), Some("s"), "has no tenantId"),
        ] {
            let message = resolve(&text, subscription).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
            assert!(!message.contains("hunter2"), "{message}");
        }
        let made = resolve(&format!("{complete}subscriptionId: s\n"), None).unwrap();
        let object = made
            .as_ref()
            .and_then(|it| it.object("hypershift"))
            .unwrap();
        let content = object.body["data"][KEY].as_str().unwrap();
        let content: Value = serde_json::from_slice(&STANDARD.decode(content).unwrap()).unwrap();
        assert_eq!(content["clientSecret"], "hunter2", "as JSON");
        assert_eq!(made.unwrap().label(), None);
    }
}
