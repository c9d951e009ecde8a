//! Deletes the service accounts of a cluster's components, and its workload identity pool with the provider.

use anyhow::Context as _;
use support::rest::{Calls, Request};

use super::components::COMPONENTS;
use super::create_identity::{is_deleted, is_transient};
use super::executor::{Backoff, Executor};
use super::identity::{Entry, account_url, email, pool, provider};
use super::policies::PolicyOf;
use super::policy;
use super::scope::Scope;

impl<C: Calls> Executor<'_, C> {
    /// Deletes what exists, roles first. What belongs to something else is kept.
    pub(crate) async fn destroy_identity(&self) -> anyhow::Result<()> {
        self.scope.check_identities()?;
        let mut emails = Vec::new();
        for component in &COMPONENTS {
            let email = email(self.scope, component);
            if self.may_delete_account(&email).await? {
                emails.push(email);
            }
        }
        if !emails.is_empty() {
            self.change_policy(PolicyOf::Project, |policy| policy::remove(policy, &emails))
                .await?;
        }
        for email in &emails {
            self.delete_account(email).await?;
        }
        let pool = pool(self.scope);
        // A provider of a deleted pool is deleted with it.
        if self.may_delete_entry(&pool).await? {
            self.delete_entry(&provider(self.scope, "", None)).await?;
            self.delete_entry(&pool).await?;
        }
        Ok(())
    }

    /// Says what would be deleted, and deletes nothing.
    pub(crate) async fn report_identity_destruction(&self) -> anyhow::Result<()> {
        self.scope.check_identities()?;
        for component in &COMPONENTS {
            let email = email(self.scope, component);
            if self.may_delete_account(&email).await? {
                self.say(&format!("service account {email}: would be deleted"));
            }
        }
        for entry in [pool(self.scope), provider(self.scope, "", None)] {
            if self.may_delete_entry(&entry).await? {
                self.say(&format!("{} {}: would be deleted", entry.noun, entry.id));
            }
        }
        Ok(())
    }

    /// Whether a service account exists and is ours.
    async fn may_delete_account(&self, email: &str) -> anyhow::Result<bool> {
        let found = self.find(&account_url(self.scope, email)).await;
        let found = found.with_context(|| format!("failed to get service account {email}"))?;
        match &found {
            Some(found) if !self.scope.owns(found) => {
                self.say_kept(&Scope::foreign("service account", email, found));
                Ok(false)
            }
            found => Ok(found.is_some()),
        }
    }

    async fn delete_account(&self, email: &str) -> anyhow::Result<()> {
        let delete = Request::delete(account_url(self.scope, email));
        let mut backoff = Backoff::new();
        loop {
            match self.call(&delete).await {
                Ok(_) => {
                    self.say(&format!("service account {email}: deleted"));
                    return Ok(());
                }
                Err(error) if error.is_absent() => return Ok(()),
                Err(error) => {
                    if !is_transient(&error) || !backoff.pause(self.calls).await {
                        return Err(error)
                            .with_context(|| format!("failed to delete service account {email}"));
                    }
                }
            }
        }
    }

    /// Whether a pool or a provider exists and is ours.
    async fn may_delete_entry(&self, entry: &Entry) -> anyhow::Result<bool> {
        let (noun, id) = (entry.noun, &entry.id);
        let found = self.find(&entry.url).await;
        let found = found.with_context(|| format!("failed to get {noun} {id}"))?;
        let Some(found) = found.filter(|found| !is_deleted(found)) else {
            return Ok(false);
        };
        if !self.scope.owns(&found) {
            self.say_kept(&Scope::foreign(noun, id, &found));
            return Ok(false);
        }
        Ok(true)
    }

    async fn delete_entry(&self, entry: &Entry) -> anyhow::Result<()> {
        let (noun, id) = (entry.noun, &entry.id);
        let delete = Request::delete(&entry.url);
        let mut backoff = Backoff::new();
        while self.may_delete_entry(entry).await? {
            let Err(error) = self.make_identity(&delete).await else {
                self.say(&format!("{noun} {id}: deleted"));
                return Ok(());
            };
            // A change of it is not done yet, or the call may have had its effect.
            let is_worth_it = error.is_absent() || error.is_conflict() || is_transient(&error);
            if !is_worth_it || !backoff.pause(self.calls).await {
                return Err(error).with_context(|| format!("failed to delete {noun} {id}"));
            }
        }
        Ok(())
    }
}
