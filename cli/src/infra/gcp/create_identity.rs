//! Creates the workload identity pool of a cluster with its provider, and the service accounts of its components.

use std::collections::BTreeMap;

use anyhow::{Context as _, anyhow, bail};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use support::rest::{Calls, Error, Request};

use super::components::{COMPONENTS, Component, WORKLOAD_IDENTITY_USER};
use super::executor::{Backoff, Executor};
use super::identity::{
    Entry, account_body, account_member, account_url, email, pool, pool_id, provider,
    provider_audience, provider_id, subjects,
};
use super::jwks::Jwks;
use super::policies::PolicyOf;
use super::policy;
use super::scope::Scope;

/// What is asked for.
#[derive(Debug)]
pub(crate) struct IdentityRequest {
    /// URL of the issuer of tokens.
    pub(crate) issuer: String,
    /// The keys that verify tokens; without them, the issuer publishes them.
    pub(crate) jwks: Option<Jwks>,
}

/// What there is: the file of `--iam-json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct IdentityOutput {
    pub(crate) project_id: String,
    pub(crate) project_number: String,
    pub(crate) infra_id: String,
    pub(crate) workload_identity_pool: PoolOutput,
    /// E-mail addresses by the names of components.
    pub(crate) service_accounts: BTreeMap<String, String>,
    /// Other HyperShift command lines do not write it.
    #[serde(default)]
    pub(crate) issuer_url: String,
}

/// The pool and its provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PoolOutput {
    pub(crate) pool_id: String,
    pub(crate) provider_id: String,
    pub(crate) audience: String,
}

// === impl IdentityOutput ===

impl IdentityOutput {
    /// What there is, or will be: names are not chosen by Google Cloud.
    pub(crate) fn new(scope: &Scope, number: &str, issuer: &str) -> Self {
        let emails = COMPONENTS.iter();
        let emails = emails.map(|it| (it.name.to_owned(), email(scope, it)));
        Self {
            project_id: scope.project.clone(),
            project_number: number.to_owned(),
            infra_id: scope.infra_id.clone(),
            workload_identity_pool: PoolOutput {
                pool_id: pool_id(scope),
                provider_id: provider_id(scope),
                audience: provider_audience(scope, number),
            },
            service_accounts: emails.collect(),
            issuer_url: issuer.to_owned(),
        }
    }
}

// === impl Executor ===

impl<C: Calls> Executor<'_, C> {
    /// Creates what is missing, and brings the provider up to date. What belongs to something else is refused before anything
    /// is created.
    pub(crate) async fn create_identity(
        &self,
        request: &IdentityRequest,
    ) -> anyhow::Result<IdentityOutput> {
        self.scope.check_identities()?;
        let number = self.project_number().await?;
        let pool = pool(self.scope);
        let provider = provider(self.scope, &request.issuer, request.jwks.as_ref());
        for entry in [&pool, &provider] {
            self.look_at_entry(entry).await?;
        }
        for component in &COMPONENTS {
            self.look_at_account(&email(self.scope, component)).await?;
        }
        self.ensure_entry(&pool).await?;
        self.ensure_entry(&provider).await?;
        for component in &COMPONENTS {
            self.ensure_component(component, &number).await?;
        }
        Ok(IdentityOutput::new(self.scope, &number, &request.issuer))
    }

    /// Says what there is of it, and creates nothing.
    pub(crate) async fn report_identity(&self, request: &IdentityRequest) -> anyhow::Result<()> {
        self.scope.check_identities()?;
        let pool = pool(self.scope);
        let provider = provider(self.scope, &request.issuer, request.jwks.as_ref());
        for entry in [&pool, &provider] {
            let found = self.look_at_entry(entry).await?;
            self.report(
                entry.noun,
                &entry.id,
                found.is_some_and(|it| !is_deleted(&it)),
            );
        }
        for component in &COMPONENTS {
            let email = email(self.scope, component);
            let exists = self.look_at_account(&email).await?;
            self.report("service account", &email, exists);
        }
        Ok(())
    }

    async fn project_number(&self) -> anyhow::Result<String> {
        let project = &self.scope.project;
        let found = self.call(&Request::get(self.scope.project_url())).await;
        let found = found.with_context(|| format!("failed to get project {project}"))?;
        let number = found["projectNumber"].as_str();
        number
            .map(str::to_owned)
            .ok_or_else(|| anyhow!("failed to get project {project}: the response has no number"))
    }

    /// A pool or a provider, if it exists and is ours.
    async fn look_at_entry(&self, entry: &Entry) -> anyhow::Result<Option<Value>> {
        let (noun, id) = (entry.noun, &entry.id);
        let found = self.find(&entry.url).await;
        let found = found.with_context(|| format!("failed to get {noun} {id}"))?;
        self.refuse_foreign(noun, id, found.as_ref())?;
        Ok(found)
    }

    /// Whether a service account exists; one that is not ours is refused.
    async fn look_at_account(&self, email: &str) -> anyhow::Result<bool> {
        let found = self.find(&account_url(self.scope, email)).await;
        let found = found.with_context(|| format!("failed to get service account {email}"))?;
        self.refuse_foreign("service account", email, found.as_ref())?;
        Ok(found.is_some())
    }

    fn refuse_foreign(&self, noun: &str, name: &str, found: Option<&Value>) -> anyhow::Result<()> {
        match found {
            Some(found) if !self.scope.owns(found) => {
                bail!(
                    "{}: choose another --infra-id",
                    Scope::foreign(noun, name, found)
                )
            }
            _ => Ok(()),
        }
    }

    /// Creates a pool or a provider, restores a deleted one, or updates what differs.
    async fn ensure_entry(&self, entry: &Entry) -> anyhow::Result<()> {
        let (noun, id) = (entry.noun, &entry.id);
        let mut backoff = Backoff::new();
        loop {
            let found = self.look_at_entry(entry).await?;
            let (request, state, is_last) = match found {
                None => (
                    Request::post(&entry.create_url, entry.body.clone()),
                    "created",
                    true,
                ),
                Some(found) if is_deleted(&found) => {
                    let url = format!("{}:undelete", entry.url);
                    (Request::post(url, json!({})), "restored", false)
                }
                Some(found) => {
                    let fields = entry.differences(&found).join(",");
                    if fields.is_empty() {
                        self.say(&format!("{noun} {id}: exists"));
                        return Ok(());
                    }
                    let url = format!("{}?updateMask={fields}", entry.url);
                    (Request::patch(url, entry.body.clone()), "updated", true)
                }
            };
            match self.make_identity(&request).await {
                Ok(()) => {
                    self.say(&format!("{noun} {id}: {state}"));
                    if is_last {
                        return Ok(());
                    }
                }
                // It exists now, or what it belongs to is not known everywhere: look again.
                Err(error) => {
                    let is_worth_it =
                        error.is_absent() || error.is_conflict() || is_transient(&error);
                    if !is_worth_it || !backoff.pause(self.calls).await {
                        return Err(error).with_context(|| format!("failed to create {noun} {id}"));
                    }
                }
            }
        }
    }

    /// Makes a call that begins an operation of IAM, and waits until that is done.
    pub(super) async fn make_identity(&self, request: &Request) -> Result<(), Error> {
        let operation = self.call(request).await?;
        self.finish_identity(&operation).await
    }

    /// Has a service account for a component, with its roles, as which the component can act.
    async fn ensure_component(&self, component: &Component, number: &str) -> anyhow::Result<()> {
        let email = email(self.scope, component);
        self.ensure_account(component, &email).await?;
        let members = [account_member(&email)];
        self.change_policy(PolicyOf::Project, |policy| {
            let mut changed = false;
            for role in component.roles {
                changed |= policy::add(policy, role, &members);
            }
            changed
        })
        .await?;
        let subjects = subjects(self.scope, number, component);
        self.change_policy(PolicyOf::Account(&email), |policy| {
            policy::add(policy, WORKLOAD_IDENTITY_USER, &subjects)
        })
        .await
    }

    async fn ensure_account(&self, component: &Component, email: &str) -> anyhow::Result<()> {
        let create = Request::post(
            self.scope.iam("serviceAccounts"),
            account_body(self.scope, component),
        );
        let mut backoff = Backoff::new();
        loop {
            if self.look_at_account(email).await? {
                self.say(&format!("service account {email}: exists"));
                return Ok(());
            }
            let Err(error) = self.call(&create).await else {
                self.say(&format!("service account {email}: created"));
                return Ok(());
            };
            let is_worth_it = error.is_conflict() || is_transient(&error);
            if !is_worth_it || !backoff.pause(self.calls).await {
                return Err(error)
                    .with_context(|| format!("failed to create service account {email}"));
            }
        }
    }
}

/// Whether a pool or a provider is deleted, and can be restored.
pub(super) fn is_deleted(found: &Value) -> bool {
    found["state"] == "DELETED"
}

/// Whether a call is repeated after a look: it may have had its effect, or there were too many.
pub(super) fn is_transient(error: &Error) -> bool {
    error.is_uncertain() || error.is_throttled()
}
