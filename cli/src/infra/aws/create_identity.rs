//! Creates the identity provider, the roles and the instance profile of a cluster.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use support::aws::{Element, Error};

use super::accounts::Accounts;
use super::bucket::{Issuer, Store};
use super::call::{Call, Calls};
use super::executor::Executor;
use super::roles::{
    Form, KARPENTER, KMS_PROVIDER, Resources, RolePlan, SharedRole, WORKER, check_size,
    managed_worker, plan, worker_policy, worker_trust,
};
use super::signing_key::SigningKey;

/// Who tokens are for.
const CLIENTS: [&str; 2] = ["openshift", "sts.amazonaws.com"];
/// Of the authority that issues certificates of S3; IAM checks the chain itself.
pub(super) const THUMBPRINT: &str = "A9D53002E97E00E043244F3D170D6F4C414104FD";
const ABSENT: [&str; 1] = ["NoSuchEntity"];
/// What is new is not known everywhere at once.
const NEW: [&str; 2] = ["NoSuchEntity", "ConcurrentModification"];
/// What IAM says of a trust policy that names a role which it does not know yet.
const UNKNOWN_PRINCIPAL: &str = "MalformedPolicyDocument";
/// Attempts at a role whose trust policy names new roles.
const ATTEMPTS: u32 = 10;
const INTERVAL: Duration = Duration::from_secs(10);

/// What is asked for.
#[derive(Debug)]
pub(crate) struct IdentityRequest {
    pub(crate) issuer: Issuer,
    pub(crate) resources: Resources,
    pub(crate) form: Form,
    /// The key whose documents are published.
    pub(crate) key: Option<SigningKey>,
}

/// What there is: the file of `--iam-json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct IdentityOutput {
    pub(crate) region: String,
    pub(crate) profile_name: String,
    #[serde(rename = "infraID")]
    pub(crate) infra_id: String,
    #[serde(rename = "issuerURL")]
    pub(crate) issuer_url: String,
    /// ARNs by their field in `rolesRef`.
    pub(crate) roles: BTreeMap<String, String>,
    #[serde(rename = "kmsKeyARN")]
    pub(crate) kms_key_arn: String,
    #[serde(rename = "kmsProviderRoleARN")]
    pub(crate) kms_provider_role_arn: String,
    #[serde(rename = "karpenterRoleARN")]
    pub(crate) karpenter_role_arn: String,
    /// The roles for a VPC of another account.
    #[serde(rename = "sharedIngressRoleARN", default)]
    pub(crate) shared_ingress_role_arn: String,
    #[serde(rename = "sharedControlPlaneRoleARN", default)]
    pub(crate) shared_control_plane_role_arn: String,
}

/// The roles for a VPC of another account, by their ARNs.
#[derive(Debug, Default)]
struct SharedRoles {
    zones: String,
    endpoints: String,
}

impl<C: Calls> Accounts<'_, C> {
    /// Creates what is missing, and brings policies up to date.
    pub(crate) async fn create_identity(
        &self,
        request: &IdentityRequest,
    ) -> anyhow::Result<IdentityOutput> {
        let IdentityRequest {
            issuer,
            resources,
            form,
            key,
        } = request;
        self.identifiers().await?;
        let cluster = self.cluster;
        check_size(&plan(cluster.scope, resources, form, "", &issuer.url))?;
        cluster.ensure_bucket(issuer).await?;
        if let Some(key) = key {
            cluster.put_documents(issuer, key).await?;
        }
        let provider = cluster.provider(issuer).await?;
        let plans = plan(cluster.scope, resources, form, &provider, &issuer.url);
        let mut made = Vec::new();
        for plan in plans {
            let arn = cluster.planned_role(&plan).await?;
            made.push((plan, arn));
        }
        let shared = if self.owner.is_some() {
            self.shared_roles(&made).await?
        } else {
            SharedRoles::default()
        };
        let mut roles = BTreeMap::new();
        let (mut kms_provider, mut karpenter) = (String::new(), String::new());
        let served = made
            .iter()
            .flat_map(|(plan, arn)| plan.serves.iter().map(move |role| (role, arn)));
        for (role, arn) in served {
            match role.name {
                KMS_PROVIDER => kms_provider.clone_from(arn),
                KARPENTER => karpenter.clone_from(arn),
                _ => {}
            }
            if let Some(field) = role.field {
                roles.insert(field.to_owned(), arn.clone());
            }
        }
        Ok(IdentityOutput {
            region: cluster.scope.region.clone(),
            profile_name: cluster.worker_profile(form).await?,
            infra_id: cluster.scope.infra_id.clone(),
            issuer_url: issuer.url.clone(),
            roles,
            kms_key_arn: resources.kms_key.clone().unwrap_or_default(),
            kms_provider_role_arn: kms_provider,
            karpenter_role_arn: karpenter,
            shared_ingress_role_arn: shared.zones,
            shared_control_plane_role_arn: shared.endpoints,
        })
    }

    /// Creates the roles that components assume for a VPC of another account, and permits them to.
    async fn shared_roles(&self, made: &[(RolePlan, String)]) -> anyhow::Result<SharedRoles> {
        let of = |is_of: fn(&RolePlan) -> bool| {
            let mut made = made.iter();
            let found = made.find(|(plan, _)| is_of(plan));
            found.map_or("", |(_, arn)| arn.as_str())
        };
        let ingress = of(RolePlan::is_of_ingress);
        let control_plane = of(RolePlan::is_of_control_plane);
        let mut principals = vec![ingress, control_plane];
        principals.dedup();
        let zones = self.zones().shared_role(SharedRole::Zones, &principals);
        let zones = zones.await?;
        let principals = [control_plane];
        let endpoints = self.vpc().shared_role(SharedRole::Endpoints, &principals);
        let endpoints = endpoints.await?;
        for (plan, _) in made {
            let assumed = if plan.is_of_control_plane() {
                vec![zones.as_str(), endpoints.as_str()]
            } else if plan.is_of_ingress() {
                vec![zones.as_str()]
            } else {
                continue;
            };
            let (name, policy) = SharedRole::assume(&plan.name, &assumed);
            self.cluster.policy(&plan.name, &name, &policy).await?;
        }
        Ok(SharedRoles { zones, endpoints })
    }

    /// Says what there is of it, and creates nothing.
    pub(crate) async fn report_identity(&self, request: &IdentityRequest) -> anyhow::Result<()> {
        self.identifiers().await?;
        let IdentityRequest {
            issuer,
            resources,
            form,
            key: _,
        } = request;
        let cluster = self.cluster;
        let plans = plan(cluster.scope, resources, form, "", &issuer.url);
        check_size(&plans)?;
        let suffix = format!("/{}", issuer.host_and_path());
        let found = cluster.find_provider(&suffix).await?;
        cluster.report("identity provider", &issuer.url, found.is_some());
        let names = plans.into_iter().map(|plan| plan.name);
        let mut roles: Vec<_> = names.map(|name| (cluster, name)).collect();
        roles.push((cluster, cluster.worker_role(form)));
        if self.owner.is_some() {
            for (account, role) in [
                (self.zones(), SharedRole::Zones),
                (self.vpc(), SharedRole::Endpoints),
            ] {
                roles.push((account, account.scope.named(role.name())));
            }
        }
        for (account, name) in roles {
            let found = account.find_role(&name).await?;
            account.report("role", &name, found.is_some());
        }
        Ok(())
    }
}

impl<C: Calls> Executor<'_, C> {
    /// The ARN of a role of components, with its policies.
    async fn planned_role(&self, plan: &RolePlan) -> anyhow::Result<String> {
        let arn = self.role(&plan.name, &plan.trust).await?;
        for policy in &plan.attached {
            self.attach(&plan.name, policy).await?;
        }
        for (name, policy) in &plan.inline {
            self.policy(&plan.name, name, policy).await?;
        }
        Ok(arn)
    }

    /// The ARN of a role that roles of the cluster assume. Those may be new, and unknown to IAM in another account.
    async fn shared_role(&self, role: SharedRole, principals: &[&str]) -> anyhow::Result<String> {
        let name = self.scope.named(role.name());
        let trust = SharedRole::trust(principals);
        let mut attempt = 1;
        let arn = loop {
            let error = match self.role(&name, &trust).await {
                Ok(arn) => break arn,
                Err(error) => error,
            };
            let cause = error.downcast_ref::<Error>();
            let is_new = cause.is_some_and(|cause| cause.code() == UNKNOWN_PRINCIPAL);
            if !is_new || attempt == ATTEMPTS {
                return Err(error);
            }
            attempt += 1;
            self.calls.pause(INTERVAL).await;
        };
        self.policy(&name, &name, &role.policy()).await?;
        Ok(arn)
    }

    /// Attaches a policy that AWS manages; a second time has no effect.
    async fn attach(&self, role: &str, policy: &str) -> anyhow::Result<()> {
        let call = Call::iam("AttachRolePolicy")
            .with("RoleName", role)
            .with("PolicyArn", policy);
        let attached = self.settle(&call, &[], &["ConcurrentModification"]).await;
        attached.with_context(|| format!("failed to attach policy {policy} to role {role}"))
    }

    /// The name of the role of workers.
    fn worker_role(&self, form: &Form) -> String {
        match &form.managed {
            Some(_) => managed_worker(self.scope).0,
            None => self.scope.named(&format!("{WORKER}-role")),
        }
    }

    fn report(&self, noun: &str, name: &str, exists: bool) {
        let state = if exists { "exists" } else { "would be created" };
        self.say(&format!("{noun} {name}: {state}"));
    }

    /// The ARN of the provider for the issuer.
    async fn provider(&self, issuer: &Issuer) -> anyhow::Result<String> {
        let url = &issuer.url;
        let what = || format!("failed to create the identity provider of {url}");
        let suffix = format!("/{}", issuer.host_and_path());
        let mut uncertain = false;
        loop {
            let found = self.find_provider(&suffix).await.with_context(what)?;
            if let Some(arn) = found {
                if issuer.store == Store::Elsewhere
                    || self.is_current(&arn).await.with_context(what)?
                {
                    self.say(&format!("identity provider {url}: exists"));
                    return Ok(arn);
                }
                let call =
                    Call::iam("DeleteOpenIDConnectProvider").with("OpenIDConnectProviderArn", &arn);
                self.settle(&call, &ABSENT, &[]).await.with_context(what)?;
            } else if issuer.store == Store::Elsewhere {
                bail!(
                    "there is no identity provider for --oidc-issuer-url {url} in the account: create it, or leave out \
                     the flag"
                );
            }
            let call = self.new_provider(url, &[THUMBPRINT]);
            match self.calls.call(&call).await {
                Ok(response) => {
                    let path = "CreateOpenIDConnectProviderResult/OpenIDConnectProviderArn";
                    self.say(&format!("identity provider {url}: created"));
                    return Ok(response.text_at(path).to_owned());
                }
                // It exists now, or it does not: look again, once.
                Err(error) if error.is_uncertain() && !uncertain => uncertain = true,
                Err(error) => return Err(error).with_context(what),
            }
        }
    }

    /// The call that creates the identity provider of an issuer.
    pub(super) fn new_provider(&self, url: &str, thumbprints: &[&str]) -> Call {
        Call::iam("CreateOpenIDConnectProvider")
            .with("Url", url)
            .list("ClientIDList.member", CLIENTS)
            .list("ThumbprintList.member", thumbprints)
            .tags("Tags.member", &self.scope.tags(&self.scope.infra_id))
    }

    pub(super) async fn find_provider(&self, suffix: &str) -> Result<Option<String>, Error> {
        let call = Call::iam("ListOpenIDConnectProviders");
        let response = self.calls.call(&call).await?;
        let path = "ListOpenIDConnectProvidersResult/OpenIDConnectProviderList";
        let mut arns = response.items(path).iter().map(|it| it.text_at("Arn"));
        Ok(arns.find(|arn| arn.ends_with(suffix)).map(str::to_owned))
    }

    /// Whether a provider is as it should be. One of another cluster is refused.
    async fn is_current(&self, arn: &str) -> anyhow::Result<bool> {
        let call = Call::iam("GetOpenIDConnectProvider").with("OpenIDConnectProviderArn", arn);
        let response = self.call(&call).await?;
        let Some(provider) = response.at("GetOpenIDConnectProviderResult") else {
            return Ok(false);
        };
        if !self.may_change(provider) {
            bail!("{arn} belongs to another cluster: choose another --infra-id");
        }
        let mut thumbprints = provider.items("ThumbprintList").iter();
        let has_thumbprint = thumbprints.any(|it| it.text.eq_ignore_ascii_case(THUMBPRINT));
        Ok(has_clients(provider) && has_thumbprint)
    }

    pub(super) async fn find_role(&self, name: &str) -> Result<Option<Element>, Error> {
        let call = Call::iam("GetRole").with("RoleName", name);
        let found = self.find_call(&call, &ABSENT).await?;
        Ok(found.and_then(|found| found.at("GetRoleResult/Role").cloned()))
    }

    /// The ARN of a role.
    async fn role(&self, name: &str, trust: &Value) -> anyhow::Result<String> {
        let what = || format!("failed to create role {name}");
        let trust = trust.to_string();
        let mut uncertain = false;
        loop {
            if let Some(role) = self.find_role(name).await.with_context(what)? {
                if !self.may_change(&role) {
                    bail!("role {name} belongs to another cluster: choose another --infra-id");
                }
                let call = Call::iam("UpdateAssumeRolePolicy")
                    .with("RoleName", name)
                    .with("PolicyDocument", &trust);
                self.settle(&call, &[], &NEW).await.with_context(what)?;
                self.say(&format!("role {name}: exists"));
                return Ok(role.text_at("Arn").to_owned());
            }
            let call = Call::iam("CreateRole")
                .with("RoleName", name)
                .with("AssumeRolePolicyDocument", &trust)
                .tags("Tags.member", &self.scope.tags(name));
            match self.calls.call(&call).await {
                Ok(response) => {
                    self.say(&format!("role {name}: created"));
                    return Ok(response.text_at("CreateRoleResult/Role/Arn").to_owned());
                }
                Err(error) if error.is_uncertain() && !uncertain => uncertain = true,
                Err(error) => return Err(error).with_context(what),
            }
        }
    }

    async fn policy(&self, role: &str, name: &str, policy: &Value) -> anyhow::Result<()> {
        let call = Call::iam("PutRolePolicy")
            .with("RoleName", role)
            .with("PolicyName", name)
            .with("PolicyDocument", policy.to_string());
        let put = self.settle(&call, &[], &NEW).await;
        put.with_context(|| format!("failed to write the policy of role {role}"))
    }

    /// The name of the instance profile of workers.
    async fn worker_profile(&self, form: &Form) -> anyhow::Result<String> {
        let name = self.scope.named(WORKER);
        let role = self.worker_role(form);
        self.role(&role, &worker_trust(self.scope)).await?;
        if form.managed.is_some() {
            let (_, policy) = managed_worker(self.scope);
            self.attach(&role, &policy).await?;
        } else {
            self.policy(&role, &format!("{name}-policy"), &worker_policy())
                .await?;
        }
        let what = || format!("failed to create instance profile {name}");
        let found = self.find_profile(&name).await.with_context(what)?;
        let mut members = Vec::new();
        if let Some(profile) = &found {
            if !self.may_change(profile) {
                bail!(
                    "instance profile {name} belongs to another cluster: choose another --infra-id"
                );
            }
            let roles = profile.items("Roles").iter();
            members.extend(roles.map(|it| it.text_at("RoleName").to_owned()));
            self.say(&format!("instance profile {name}: exists"));
        } else {
            let call = Call::iam("CreateInstanceProfile")
                .with("InstanceProfileName", &name)
                .tags("Tags.member", &self.scope.tags(&name));
            // It did not exist a moment ago.
            self.settle(&call, &["EntityAlreadyExists"], &[])
                .await
                .with_context(what)?;
            self.say(&format!("instance profile {name}: created"));
        }
        match members.as_slice() {
            [] => {
                let call = Call::iam("AddRoleToInstanceProfile")
                    .with("InstanceProfileName", &name)
                    .with("RoleName", &role);
                // A profile has one role at most.
                self.settle(&call, &["LimitExceeded"], &NEW)
                    .await
                    .with_context(what)?;
            }
            members if members.contains(&role) => {}
            members => bail!(
                "instance profile {name} has role {} instead of {role}: remove it from the profile",
                members.join(", ")
            ),
        }
        Ok(name)
    }

    pub(super) async fn find_profile(&self, name: &str) -> Result<Option<Element>, Error> {
        let call = Call::iam("GetInstanceProfile").with("InstanceProfileName", name);
        let found = self.find_call(&call, &ABSENT).await?;
        Ok(found.and_then(|found| {
            found
                .at("GetInstanceProfileResult/InstanceProfile")
                .cloned()
        }))
    }
}

/// Whether an identity provider issues tokens for all components of a cluster.
pub(super) fn has_clients(provider: &Element) -> bool {
    let clients = provider.items("ClientIDList");
    let mut wanted = CLIENTS.iter();
    wanted.all(|client| clients.iter().any(|it| it.text == *client))
}
