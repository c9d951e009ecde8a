//! Deletes the identity provider, the roles and the instance profile of a cluster, and the documents of its issuer.

use std::time::Duration;

use support::aws::Error;

use super::accounts::Accounts;
use super::bucket::bucket_of;
use super::call::{Call, Calls};
use super::destroy_network::Pass;
use super::executor::Executor;
use super::roles::{ROLES, SHARED, SHARED_VPC, WORKER};
use super::scope::tags;

const ABSENT: [&str; 1] = ["NoSuchEntity"];

impl<C: Calls> Accounts<'_, C> {
    /// Repeats passes until nothing is left, or the time is over.
    pub(crate) async fn destroy_identity(
        &self,
        grace_period: Option<Duration>,
    ) -> anyhow::Result<()> {
        self.identifiers().await?;
        let what = format!("IAM resources of {}", self.cluster.scope.infra_id);
        let pass = async || self.identity_pass().await;
        self.cluster.until_empty(&what, grace_period, pass).await
    }

    async fn identity_pass(&self) -> Pass {
        let mut pass = Pass::default();
        // They name roles of the cluster.
        if let Some(owner) = self.owner {
            owner.delete_roles(&owner.shared_names(), &mut pass).await;
        }
        self.cluster.delete_identity(&mut pass).await;
        pass
    }

    /// Says what would be deleted, and deletes nothing.
    pub(crate) async fn report_identity_destruction(&self) -> anyhow::Result<()> {
        self.identifiers().await?;
        if let Some(owner) = self.owner {
            owner.report_roles(&owner.shared_names()).await?;
        }
        self.cluster.report_own_identity().await
    }
}

impl<C: Calls> Executor<'_, C> {
    async fn report_own_identity(&self) -> anyhow::Result<()> {
        let suffix = format!("/{}", self.scope.infra_id);
        if let Some(arn) = self.find_provider(&suffix).await?
            && self.owns_provider(&arn).await?
        {
            self.say(&format!("identity provider {arn}: would be deleted"));
        }
        let profile = self.scope.named(WORKER);
        if let Some(found) = self.find_profile(&profile).await?
            && self.may_change(&found)
        {
            self.say(&format!("instance profile {profile}: would be deleted"));
        }
        self.report_roles(&self.role_names()).await
    }

    async fn report_roles(&self, names: &[String]) -> anyhow::Result<()> {
        for name in names {
            if let Some(found) = self.find_role(name).await?
                && self.may_change(&found)
            {
                self.say(&format!("role {name}: would be deleted"));
            }
        }
        Ok(())
    }

    async fn owns_provider(&self, arn: &str) -> Result<bool, Error> {
        let call = Call::iam("GetOpenIDConnectProvider").with("OpenIDConnectProviderArn", arn);
        let found = self.find_call(&call, &ABSENT).await?;
        let owner = found.map(|it| tags(it.items("GetOpenIDConnectProviderResult/Tags")));
        Ok(owner.is_none_or(|tags| self.scope.may_change(&tags)))
    }

    fn role_names(&self) -> Vec<String> {
        let worker = [
            format!("{WORKER}-role"),
            format!("{WORKER}-ROSA-Worker-Role"),
        ];
        let roles = ROLES.iter().map(|role| role.name).chain([SHARED]);
        let mut names: Vec<_> = roles.map(|name| self.scope.named(name)).collect();
        // They are in this account unless it is not that of the VPC.
        names.extend(self.shared_names());
        names.extend(worker.iter().map(|name| self.scope.named(name)));
        names
    }

    /// The roles for a VPC of another account.
    fn shared_names(&self) -> Vec<String> {
        let names = SHARED_VPC.iter().map(|name| self.scope.named(name));
        names.collect()
    }

    async fn delete_identity(&self, pass: &mut Pass) {
        let deleted = self.delete_provider(pass).await;
        pass.check("identity provider", deleted);
        let name = self.scope.named(WORKER);
        let deleted = self.delete_profile(&name).await;
        pass.check(&format!("instance profile {name}"), deleted);
        self.delete_roles(&self.role_names(), pass).await;
    }

    async fn delete_roles(&self, names: &[String], pass: &mut Pass) {
        for name in names {
            let deleted = self.delete_role(name).await;
            pass.check(&format!("role {name}"), deleted);
        }
    }

    /// Deletes the documents first: the provider says where they are.
    async fn delete_provider(&self, pass: &mut Pass) -> Result<(), Error> {
        let suffix = format!("/{}", self.scope.infra_id);
        let arn = self.find_provider(&suffix).await?;
        let before = pass.left.len();
        let Some(arn) = arn else {
            self.delete_documents(None, pass).await;
            return Ok(());
        };
        if !self.owns_provider(&arn).await? {
            return Ok(());
        }
        self.delete_documents(bucket_of(&arn), pass).await;
        if pass.left.len() > before {
            return Ok(());
        }
        let call = Call::iam("DeleteOpenIDConnectProvider").with("OpenIDConnectProviderArn", &arn);
        self.calls.call(&call).await.map(drop)
    }

    async fn delete_profile(&self, name: &str) -> Result<(), Error> {
        let Some(profile) = self.find_profile(name).await? else {
            return Ok(());
        };
        if !self.may_change(&profile) {
            return Ok(());
        }
        for role in profile.items("Roles") {
            let call = Call::iam("RemoveRoleFromInstanceProfile")
                .with("InstanceProfileName", name)
                .with("RoleName", role.text_at("RoleName"));
            self.find_call(&call, &ABSENT).await?;
        }
        let call = Call::iam("DeleteInstanceProfile").with("InstanceProfileName", name);
        self.calls.call(&call).await.map(drop)
    }

    async fn delete_role(&self, name: &str) -> Result<(), Error> {
        let Some(role) = self.find_role(name).await? else {
            return Ok(());
        };
        if !self.may_change(&role) {
            return Ok(());
        }
        let attached = self.policies_of("ListAttachedRolePolicies", name).await?;
        for arn in attached {
            let call = Call::iam("DetachRolePolicy")
                .with("RoleName", name)
                .with("PolicyArn", arn);
            self.find_call(&call, &ABSENT).await?;
        }
        for policy in self.policies_of("ListRolePolicies", name).await? {
            let call = Call::iam("DeleteRolePolicy")
                .with("RoleName", name)
                .with("PolicyName", policy);
            self.find_call(&call, &ABSENT).await?;
        }
        let call = Call::iam("DeleteRole").with("RoleName", name);
        self.calls.call(&call).await.map(drop)
    }

    /// ARNs of attached policies, or names of inline ones.
    async fn policies_of(&self, action: &'static str, role: &str) -> Result<Vec<String>, Error> {
        let list = match action {
            "ListAttachedRolePolicies" => "AttachedPolicies",
            _ => "PolicyNames",
        };
        let mut policies = Vec::new();
        let mut call = Call::iam(action).with("RoleName", role);
        loop {
            let Some(response) = self.find_call(&call, &ABSENT).await? else {
                return Ok(policies);
            };
            let Some(result) = response.at(&format!("{action}Result")) else {
                return Ok(policies);
            };
            let found = result
                .items(list)
                .iter()
                .map(|it| match it.at("PolicyArn") {
                    Some(arn) => arn.text.clone(),
                    None => it.text.clone(),
                });
            policies.extend(found);
            match result.text_at("Marker") {
                "" => return Ok(policies),
                marker => {
                    call = Call::iam(action)
                        .with("RoleName", role)
                        .with("Marker", marker);
                }
            }
        }
    }
}
