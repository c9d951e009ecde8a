//! The subscription, and who makes the calls: the file of `--azure-creds`.

use std::path::Path;

use anyhow::anyhow;
use serde::Deserialize;
use support::azure::{Cloud, Endpoints, Source, of_environment};

use super::client::Azure;
use super::resource::is_segment;
use crate::Usage;
use crate::create::text;

/// A subscription, with the credentials of an application.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Account {
    pub(crate) subscription_id: String,
    pub(crate) tenant_id: String,
    #[serde(default)]
    client_id: String,
    #[serde(default)]
    client_secret: String,
}

// === impl Account ===

impl Account {
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = text::file("--azure-creds", path)?;
        // Without the parser's message, which may quote a secret.
        serde_saphyr::from_str(&text).map_err(|_| {
            anyhow!(
                "--azure-creds {}: write JSON or YAML with subscriptionId and tenantId",
                path.display()
            )
        })
    }

    /// A client for a cloud. Without a secret in the file, credentials of the environment are used.
    pub(crate) fn connect(&self, cloud: Cloud) -> Result<Azure, Usage> {
        if !is_segment(&self.tenant_id) {
            return Err(Usage::new(
                &"--azure-creds: tenantId is not the ID or the domain of a tenant",
            ));
        }
        let endpoints = cloud.endpoints();
        let variable = |name: &str| std::env::var(name).ok();
        Ok(Azure::new(self.source(&endpoints, &variable), endpoints))
    }

    fn source(&self, endpoints: &Endpoints, variable: &dyn Fn(&str) -> Option<String>) -> Source {
        let scope = endpoints.management_scope();
        if !self.client_id.is_empty() && !self.client_secret.is_empty() {
            let (client, secret) = (&self.client_id, &self.client_secret);
            return Source::of_secret(endpoints.authority, &self.tenant_id, client, secret, &scope);
        }
        let filled = |name: &str| variable(name).filter(|value| !value.is_empty());
        of_environment(&scope, &|name| {
            filled(name).or_else(|| match name {
                "AZURE_AUTHORITY_HOST" => Some(endpoints.authority.to_owned()),
                "AZURE_TENANT_ID" => Some(self.tenant_id.clone()),
                "AZURE_CLIENT_ID" => Some(self.client_id.clone()),
                _ => None,
            })
        })
    }

    /// A subscription without credentials.
    #[cfg(test)]
    pub(crate) fn of(subscription: &str) -> Self {
        Self {
            subscription_id: subscription.to_owned(),
            tenant_id: "00000000-0000-0000-0000-000000000002".to_owned(),
            client_id: String::new(),
            client_secret: String::new(),
        }
    }
}

impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Account")
            .field("subscription_id", &self.subscription_id)
            .field("tenant_id", &self.tenant_id)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> anyhow::Result<Account> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        Account::read(file.path())
    }

    #[test]
    fn accounts_are_read_and_their_secrets_are_not_shown() {
        for text in [
            r#"{"subscriptionId": "s", "tenantId": "t", "clientId": "c", "clientSecret": "s3cret"}"#,
            "subscriptionId: s\ntenantId: t\nclientId: c\nclientSecret: s3cret\n",
        ] {
            let account = read(text).unwrap();
            assert_eq!(account.client_secret, "s3cret");
            assert!(!format!("{account:?}").contains("s3cret"));
            let source = account.source(&Cloud::Public.endpoints(), &|_| None);
            assert!(!format!("{source:?}").contains("s3cret"));
        }
        for damaged in [
            r#"{"subscriptionId": "s", "clientSecret": "s3cret""#,
            "s3cret",
        ] {
            let error = format!("{:#}", read(damaged).unwrap_err());
            assert!(
                error.contains("with subscriptionId and tenantId"),
                "{error}"
            );
            assert!(!error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn a_file_without_a_secret_is_completed_by_the_environment() {
        let account = read("subscriptionId: s\ntenantId: t\nclientId: c\n").unwrap();
        let endpoints = Cloud::China.endpoints();
        let scope = endpoints.management_scope();
        let variables = |name: &str| (name == "AZURE_CLIENT_SECRET").then(|| "x".to_owned());
        let expected = Source::of_secret(endpoints.authority, "t", "c", "x", &scope);
        assert!(account.source(&endpoints, &variables) == expected);
    }

    #[test]
    fn tenants_become_parts_of_urls() {
        let mut account = Account::of("s");
        assert!(account.connect(Cloud::Public).is_ok());
        account.tenant_id = "t/../u".to_owned();
        let error = account.connect(Cloud::Public).unwrap_err().to_string();
        assert!(error.contains("tenantId"), "{error}");
    }
}
