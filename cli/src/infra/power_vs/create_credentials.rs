//! Creates a service ID with policies and an API key for each component.
//!
//! An API key can be read only once: keys whose Secrets are not known are not replaced unless that is asked for, because a
//! cluster may use them. That a key is about to be created is recorded before, and its Secret after: so it is known of a key
//! that an interruption lost that no cluster uses it.

use anyhow::{Context as _, bail};
use serde_json::Value;
use support::rest::Calls;

use super::create::{CreateRequest, Keys, Record};
use super::executor::{Executor, id, required};
use super::output::{Output, secret};
use super::policies::{Credentials, Resources, grants_same};

/// Attempts to create an API key whose response is not lost.
const ATTEMPTS: u32 = 5;

impl<C: Calls> Executor<'_, C> {
    /// Refuses to begin if there are API keys whose Secrets are not known.
    pub(super) async fn check_keys(
        &self,
        request: &CreateRequest,
        account: &str,
        output: &Output,
    ) -> anyhow::Result<()> {
        let mut unknown = Vec::new();
        for credentials in Credentials::ALL {
            let Some(service_id) = self.own_service_id(account, credentials).await? else {
                continue;
            };
            let is_known = output.secret(credentials).is_some();
            let is_lost = output.is_pending(credentials);
            if is_known || is_lost || request.keys != Keys::Keep {
                continue;
            }
            let name = self.scope.service_id(credentials.suffix());
            let iam_id = required(&format!("service ID {name}"), &service_id, "iam_id")?;
            if !self.find_api_keys(account, &iam_id).await?.is_empty() {
                unknown.push(name);
            }
        }
        if unknown.is_empty() {
            return Ok(());
        }
        bail!(
            "there are API keys of service ID {}, which cannot be read again: pass --output-file with the file that has their \
             Secrets, or --recreate-secrets to replace the keys if no cluster uses them",
            unknown.join(", ")
        )
    }

    pub(super) async fn create_credentials(
        &self,
        request: &CreateRequest,
        resources: &Resources,
        output: &mut Output,
        record: Record<'_>,
    ) -> anyhow::Result<()> {
        let account = &resources.account;
        for credentials in Credentials::ALL {
            let name = self.scope.service_id(credentials.suffix());
            let what = format!("API key of service ID {name}");
            let iam_id = Box::pin(self.create_service_id(credentials, resources)).await?;
            let is_known = output.secret(credentials).is_some();
            let keeps = is_known && request.keys != Keys::ReplaceAll;
            if keeps && !self.find_api_keys(account, &iam_id).await?.is_empty() {
                self.say(&format!("{what}: exists"));
                continue;
            }
            output.expect_key(credentials);
            record(output)?;
            let key = self.create_key(account, &iam_id, &name).await?;
            let secret = secret(self.scope, &request.namespace, credentials, &key);
            output.set_secret(credentials, secret);
            record(output)?;
            self.say(&format!("{what}: created"));
        }
        Ok(())
    }

    /// The IAM ID of a component's service ID, which has its policies.
    async fn create_service_id(
        &self,
        credentials: Credentials,
        resources: &Resources,
    ) -> anyhow::Result<String> {
        let account = &resources.account;
        let name = self.scope.service_id(credentials.suffix());
        let what = format!("service ID {name}");
        let find = async || self.own_service_id(account, credentials).await;
        let description = self.description();
        let create = self.api.create_service_id(account, &name, &description);
        let made = self.ensure(&what, find, &create).await?;
        let iam_id = required(&what, &made.value, "iam_id")?;
        for policy in credentials.policies(&iam_id, resources) {
            let find = async || {
                let policies = self.find_policies(account, &iam_id).await?;
                anyhow::Ok(policies.into_iter().find(|it| grants_same(it, &policy)))
            };
            let create = self.api.create_policy(&policy);
            let what = format!("policy of {what}");
            self.ensure(&what, find, &create).await?;
        }
        Ok(iam_id)
    }

    /// The policies of a service ID, by its IAM ID.
    pub(super) async fn find_policies(
        &self,
        account: &str,
        iam_id: &str,
    ) -> anyhow::Result<Vec<Value>> {
        let call = self.api.policies(account, iam_id);
        let policies = self.list(&call, "policies").await;
        let mut policies =
            policies.with_context(|| format!("failed to list policies of {iam_id}"))?;
        // Services may ignore filters that they do not know.
        policies.retain(|it| it["subjects"][0]["attributes"][0]["value"] == iam_id);
        Ok(policies)
    }

    /// The only API key of a service ID. Those that exist are deleted, and so is one whose response was lost.
    async fn create_key(&self, account: &str, iam_id: &str, name: &str) -> anyhow::Result<String> {
        let what = format!("API key of service ID {name}");
        let mut attempt = 1;
        loop {
            for key in self.find_api_keys(account, iam_id).await? {
                let delete = self.api.delete_api_key(&id(&what, &key)?);
                self.delete(&what, &delete).await?;
            }
            let create = self.api.create_api_key(account, iam_id, name);
            match self.send(&create).await {
                Ok(response) => return required(&what, &response, "apikey"),
                Err(error) if error.is_uncertain() && attempt < ATTEMPTS => attempt += 1,
                Err(error) => {
                    return Err(error).with_context(|| format!("failed to create {what}"));
                }
            }
        }
    }
}
