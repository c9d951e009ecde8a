//! Changes policies: reads one, changes it, writes it, and begins again if it was changed meanwhile.

use anyhow::Context as _;
use http::Method;
use serde_json::{Value, json};
use support::rest::{Calls, Error, Request};

use super::executor::{Backoff, Executor};
use super::identity::account_url;

/// The version of policies with conditions: with an earlier one, the conditions of others would be lost.
const VERSION: u32 = 3;

/// What a policy is of.
#[derive(Debug, Clone, Copy)]
pub(super) enum PolicyOf<'a> {
    /// The project.
    Project,
    /// The service account with this e-mail address.
    Account(&'a str),
}

impl<C: Calls> Executor<'_, C> {
    /// Changes a policy. `edit` returns whether something is to be written.
    pub(super) async fn change_policy(
        &self,
        of: PolicyOf<'_>,
        edit: impl Fn(&mut Value) -> bool,
    ) -> anyhow::Result<()> {
        let mut backoff = Backoff::new();
        loop {
            let Err(error) = self.try_change(of, &edit).await else {
                return Ok(());
            };
            if !of.is_worth_it(&error) || !backoff.pause(self.calls).await {
                return Err(error).with_context(|| self.failed_to_change(of));
            }
        }
    }

    async fn try_change(
        &self,
        of: PolicyOf<'_>,
        edit: &impl Fn(&mut Value) -> bool,
    ) -> Result<(), Error> {
        let (get, set) = match of {
            PolicyOf::Project => {
                let url = self.scope.project_url();
                let options = json!({ "options": { "requestedPolicyVersion": VERSION } });
                (Request::post(format!("{url}:getIamPolicy"), options), url)
            }
            PolicyOf::Account(email) => {
                let url = account_url(self.scope, email);
                let get = format!("{url}:getIamPolicy?options.requestedPolicyVersion={VERSION}");
                (Request::new(Method::POST, get), url)
            }
        };
        let mut policy = self.call(&get).await?;
        if !edit(&mut policy) {
            return Ok(());
        }
        let set = Request::post(format!("{set}:setIamPolicy"), json!({ "policy": policy }));
        self.call(&set).await.map(drop)
    }

    fn failed_to_change(&self, of: PolicyOf<'_>) -> String {
        match of {
            PolicyOf::Project => format!(
                "failed to change the policy of project {}",
                self.scope.project
            ),
            PolicyOf::Account(email) => {
                format!("failed to change the policy of service account {email}")
            }
        }
    }
}

// === impl PolicyOf ===

impl PolicyOf<'_> {
    /// Whether a call is repeated: the policy was changed meanwhile, the call may have had its effect, or something is new and
    /// not known everywhere.
    fn is_worth_it(self, error: &Error) -> bool {
        let is_new = match error {
            Error::Refused {
                status: 400,
                message,
                ..
            } => message.contains("does not exist"),
            Error::Refused {
                status: 403,
                message,
                ..
            } => matches!(self, Self::Account(_)) && message.contains("may not exist"),
            Error::Refused { status: 404, .. } => matches!(self, Self::Account(_)),
            _ => false,
        };
        is_new || error.is_conflict() || error.is_throttled() || error.is_uncertain()
    }
}
