//! Creates a bastion: a small instance in a public subnet of a cluster's VPC, from which its nodes are reached by SSH.
//!
//! What it consists of has the tags of the infrastructure, so that `destroy infra aws` finds what `destroy bastion aws` does
//! not get to.

use std::time::Duration;

use anyhow::{Context as _, bail};
use support::aws::Error;

use super::bastion::{self, BastionRequest, Instance, PORT, Parts, PublicKey};
use super::call::{Call, Calls};
use super::executor::{Executor, is_worth_it};
use super::kind::Kind;
use super::network::VPC;
use super::scope::tags;

/// Attempts at the creation of the instance.
const ATTEMPTS: u32 = 10;
const INTERVAL: Duration = Duration::from_secs(3);
/// Between two looks at a new instance.
const PAUSE: Duration = Duration::from_secs(5);
/// How long a new instance may take.
const LIMIT: Duration = Duration::from_mins(5);
/// What is new is not known everywhere at once. The last one says that an instance has the token, and is not listed yet.
const NEW: [&str; 4] = [
    "InvalidGroup.NotFound",
    "InvalidKeyPair.NotFound",
    "InvalidSubnetID.NotFound",
    "IdempotentParameterMismatch",
];
/// An instance with the same token existed, and is terminated.
const TERMINATED: &str = "IdempotentInstanceTerminated";
/// The beginning of the names of public subnets, after the name of the infrastructure.
const PUBLIC: &str = "public-";

/// Where a bastion is.
struct Place {
    vpc: String,
    subnet: String,
}

impl<C: Calls> Executor<'_, C> {
    /// Creates what is missing, in an order in which an interrupted run can be continued.
    pub(crate) async fn create_bastion(
        &self,
        request: &BastionRequest,
    ) -> anyhow::Result<Instance> {
        let place = self.bastion_place().await?;
        let key = self.bastion_key(&request.key).await?;
        let group = self.bastion_group(&place.vpc, &request.from).await?;
        let made = self.bastion_instance(&place, &group, &key).await?;
        if request.wait {
            return self.until_running(&made.id).await;
        }
        self.start(&made).await?;
        Ok(made)
    }

    /// Reports what exists and what would be created.
    pub(crate) async fn report_bastion(&self) -> anyhow::Result<()> {
        let place = self.bastion_place().await?;
        self.say(&format!("VPC {}: exists", place.vpc));
        self.say(&format!("subnet {}: would be used", place.subnet));
        for (kind, name) in [
            (Kind::KeyPair, bastion::name(self.scope)),
            (Kind::SecurityGroup, bastion::group(self.scope)),
        ] {
            let exists = self.find(kind, &name).await?.is_some();
            self.say(&format!("{} {name}: {}", kind.noun(), state(exists)));
        }
        let exists = self.find_bastion().await?.is_some();
        let name = bastion::name(self.scope);
        self.say(&format!("instance {name}: {}", state(exists)));
        Ok(())
    }

    /// The VPC of the cluster, and a subnet of it that can be reached from the internet.
    async fn bastion_place(&self) -> anyhow::Result<Place> {
        let name = self.scope.named(VPC);
        let Some(vpc) = self.find(Kind::Vpc, &name).await? else {
            bail!(
                "there is no VPC {name} of infrastructure {} in {}: check --infra-id and --region; a bastion needs the network \
                 that create infra aws makes",
                self.scope.infra_id,
                self.scope.region
            );
        };
        let vpc = Kind::Vpc.id(&vpc).to_owned();
        let prefix = self.scope.named(PUBLIC);
        let mut subnets = Vec::new();
        for subnet in self.within(Kind::Subnet, &vpc).await? {
            let tags = tags(subnet.items("tagSet"));
            let name = tags.get("Name").cloned().unwrap_or_default();
            // Services may ignore filters that they do not know.
            let is_in_vpc = subnet.text_at("vpcId") == vpc;
            if is_in_vpc && self.scope.owns(&tags) && name.starts_with(&prefix) {
                subnets.push((name, Kind::Subnet.id(&subnet).to_owned()));
            }
        }
        // Always the same one.
        subnets.sort();
        let tables = self.within(Kind::RouteTable, &vpc).await?;
        let mut reachable = subnets.into_iter();
        let found = reachable.find(|(_, id)| bastion::reaches_internet(id, &tables));
        let Some((_, subnet)) = found else {
            bail!(
                "VPC {vpc} has no public subnet {prefix}* with a route to an internet gateway, so a bastion could not be \
                 reached: run create infra aws again with --infra-id {} to complete the network",
                self.scope.infra_id
            );
        };
        Ok(Place { vpc, subnet })
    }

    /// The identifier of the key pair, which must have the public key.
    async fn bastion_key(&self, key: &PublicKey) -> anyhow::Result<String> {
        let name = bastion::name(self.scope);
        let parameters = [
            ("KeyName", name.clone()),
            ("PublicKeyMaterial", key.material()),
        ];
        let made = self
            .ensure(Kind::KeyPair, &name, &[], &parameters, &[])
            .await?;
        let id = Kind::KeyPair.id(&made).to_owned();
        let call = Kind::KeyPair.one(&id).with("IncludePublicKey", "true");
        let response = self.call(&call).await?;
        let found = Kind::KeyPair.items(&response).first();
        let there = found.map_or("", |it| it.text_at("publicKey"));
        if !there.is_empty() && !key.is(there) {
            bail!(
                "key pair {name} ({id}) has another public key: give that one, or run destroy bastion aws first to replace it"
            );
        }
        Ok(id)
    }

    /// The identifier of the security group, which lets in SSH.
    async fn bastion_group(&self, vpc: &str, from: &[String]) -> anyhow::Result<String> {
        let kind = Kind::SecurityGroup;
        let name = bastion::group(self.scope);
        let parameters = [
            ("GroupName", name.clone()),
            ("GroupDescription", "SSH to the bastion".to_owned()),
            ("VpcId", vpc.to_owned()),
        ];
        let group = self.ensure(kind, &name, &[], &parameters, &[]).await?;
        let id = kind.id(&group).to_owned();
        for cidr in from {
            if bastion::lets_in(&group, cidr) {
                continue;
            }
            let call = Call::ec2("AuthorizeSecurityGroupIngress")
                .with("GroupId", &id)
                .with("IpPermissions.1.IpProtocol", "tcp")
                .with("IpPermissions.1.FromPort", PORT)
                .with("IpPermissions.1.ToPort", PORT)
                .with("IpPermissions.1.IpRanges.1.CidrIp", cidr);
            let done = ["InvalidPermission.Duplicate"];
            let added = self.settle(&call, &done, &["InvalidGroup.NotFound"]).await;
            added.with_context(|| format!("failed to let in SSH from {cidr}"))?;
            self.say(&format!("security group {name}: lets in SSH from {cidr}"));
        }
        Ok(id)
    }

    /// Finds the instance or creates it.
    async fn bastion_instance(
        &self,
        place: &Place,
        group: &str,
        key: &str,
    ) -> anyhow::Result<Instance> {
        let name = bastion::name(self.scope);
        let what = || format!("failed to create instance {name}");
        let mut generation = 0;
        let mut attempt = 1;
        loop {
            if let Some(found) = self.find_bastion().await.with_context(what)? {
                self.say(&format!("instance {name}: exists ({})", found.id));
                return Ok(found);
            }
            let image = self.call(&bastion::images()).await.with_context(what)?;
            let parts = Parts {
                image: &bastion::newest(&image),
                subnet: &place.subnet,
                group,
                key,
                generation,
            };
            let error = match self.calls.call(&bastion::run(self.scope, &parts)).await {
                Ok(response) => {
                    let id = response.text_at("instancesSet/item/instanceId");
                    if id.is_empty() {
                        bail!("{}: the response has no identifier", what());
                    }
                    self.say(&format!("instance {name}: created ({id})"));
                    return Ok(Instance::new(id));
                }
                Err(error) => error,
            };
            let is_terminated = error.code() == TERMINATED;
            if attempt == ATTEMPTS || !is_terminated && !is_worth_it(&error, &NEW) {
                return Err(error).with_context(what);
            }
            attempt += 1;
            if is_terminated {
                generation += 1;
                continue;
            }
            self.calls.pause(INTERVAL).await;
        }
    }

    /// All instances that are not terminated.
    pub(super) async fn bastions(&self) -> Result<Vec<Instance>, Error> {
        let response = self.calls.call(&bastion::describe(self.scope)).await?;
        Ok(bastion::instances(self.scope, &response))
    }

    /// The instance, if there is one. Of several, always the same one.
    async fn find_bastion(&self) -> Result<Option<Instance>, Error> {
        let mut found = self.bastions().await?.into_iter();
        Ok(found.find(Instance::is_alive))
    }

    /// Waits until an instance runs and has a public address.
    async fn until_running(&self, id: &str) -> anyhow::Result<Instance> {
        let absent = ["InvalidInstanceID.NotFound"];
        let mut passed = Duration::ZERO;
        let mut step = self.display.step(&format!("waiting for instance {id}"));
        loop {
            let response = self.find_call(&bastion::one(id), &absent).await?;
            let found = response.as_ref().and_then(bastion::instance);
            // A new one is not known everywhere at once.
            let found = found.unwrap_or_else(|| Instance::new(id));
            if found.is_ready() {
                step.done("running");
                return Ok(found);
            }
            if !found.is_alive() {
                bail!(
                    "instance {id} is {}: run the command again to create another one",
                    found.state
                );
            }
            self.start(&found).await?;
            if passed >= LIMIT {
                bail!(
                    "instance {id} has no public address after {} s (it is {}): run the command again to continue",
                    passed.as_secs(),
                    found.state
                );
            }
            step.update(&found.state);
            self.calls.pause(PAUSE).await;
            passed += PAUSE;
        }
    }

    /// Starts an instance that a user has stopped.
    async fn start(&self, instance: &Instance) -> anyhow::Result<()> {
        if instance.state != "stopped" {
            return Ok(());
        }
        let call = Call::ec2("StartInstances").list("InstanceId", [&instance.id]);
        let started = self.settle(&call, &[], &["IncorrectInstanceState"]).await;
        started.with_context(|| format!("failed to start instance {}", instance.id))
    }
}

fn state(exists: bool) -> &'static str {
    if exists { "exists" } else { "would be created" }
}
