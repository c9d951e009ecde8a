//! Creates roles that belong to no cluster: those of the operator, and the one with which this command is used.

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

use super::call::{Call, Calls, Tags};
use super::executor::Executor;
use super::scope::tags;

/// The key of the tag that says what a role was made for.
const PURPOSE: &str = "hypershift.openshift.io/role-of";
const SOURCE: &str = "hypershift.openshift.io/source";
/// What is new is not known everywhere at once.
const NEW: [&str; 2] = ["NoSuchEntity", "ConcurrentModification"];

/// A role.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NamedRole {
    pub(crate) name: String,
    /// What it is for: a role with this name and another purpose is not changed.
    pub(crate) purpose: &'static str,
    /// Who may assume it.
    pub(crate) trust: Value,
    /// What it may do.
    pub(crate) policy: Value,
}

// === impl NamedRole ===

impl NamedRole {
    fn tags(&self, additional: &Tags) -> Tags {
        let mut tags = additional.clone();
        tags.insert(PURPOSE.to_owned(), self.purpose.to_owned());
        tags.insert(SOURCE.to_owned(), "cli".to_owned());
        tags
    }

    fn is_own(&self, tags: &Tags) -> bool {
        tags.get(PURPOSE).is_some_and(|it| it == self.purpose)
    }
}

/// A policy document.
pub(crate) fn document(statements: &[Value]) -> Value {
    json!({ "Version": "2012-10-17", "Statement": statements })
}

impl<C: Calls> Executor<'_, C> {
    /// Creates a role, or brings it up to date; returns its ARN.
    pub(crate) async fn ensure_role(&self, role: &NamedRole) -> anyhow::Result<String> {
        let NamedRole {
            name,
            purpose: _,
            trust: _,
            policy,
        } = role;
        let arn = self.trusted_role(role).await;
        let arn = arn.with_context(|| format!("failed to create role {name}"))?;
        let call = Call::iam("PutRolePolicy")
            .with("RoleName", name)
            .with("PolicyName", name)
            .with("PolicyDocument", policy.to_string());
        let put = self.settle(&call, &[], &NEW).await;
        put.with_context(|| format!("failed to write the policy of role {name}"))?;
        Ok(arn)
    }

    /// Says whether a role exists.
    pub(crate) async fn report_role(&self, role: &NamedRole) -> anyhow::Result<()> {
        let found = self.find_own_role(role).await?;
        let state = match found {
            Some(_) => "would be brought up to date",
            None => "would be created",
        };
        self.say(&format!("role {}: {state}", role.name));
        Ok(())
    }

    /// A role with the policy that says who may assume it; returns its ARN.
    async fn trusted_role(&self, role: &NamedRole) -> anyhow::Result<String> {
        let name = &role.name;
        let trust = role.trust.to_string();
        let mut is_uncertain = false;
        loop {
            if let Some(arn) = self.find_own_role(role).await? {
                let call = Call::iam("UpdateAssumeRolePolicy")
                    .with("RoleName", name)
                    .with("PolicyDocument", &trust);
                self.settle(&call, &[], &NEW).await?;
                self.say(&format!("role {name}: exists"));
                return Ok(arn);
            }
            let call = Call::iam("CreateRole")
                .with("RoleName", name)
                .with("AssumeRolePolicyDocument", &trust)
                .tags("Tags.member", &role.tags(&self.scope.additional));
            match self.calls.call(&call).await {
                Ok(response) => {
                    self.say(&format!("role {name}: created"));
                    return Ok(response.text_at("CreateRoleResult/Role/Arn").to_owned());
                }
                // It exists now, or it does not: look again, once.
                Err(error) if error.is_uncertain() && !is_uncertain => is_uncertain = true,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The ARN of a role, if it exists. One of another owner is refused.
    pub(super) async fn find_own_role(&self, role: &NamedRole) -> anyhow::Result<Option<String>> {
        let NamedRole { name, purpose, .. } = role;
        let Some(found) = self.find_role(name).await? else {
            return Ok(None);
        };
        if !role.is_own(&tags(found.items("Tags"))) {
            bail!(
                "role {name} exists and was not created by this command: choose another name, or, if the role is yours, add \
                 its tag (aws iam tag-role --role-name {name} --tags Key={PURPOSE},Value={purpose})"
            );
        }
        Ok(Some(found.text_at("Arn").to_owned()))
    }
}
