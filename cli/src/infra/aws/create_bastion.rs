//! Creates a bastion: a small instance in a public subnet of a cluster's VPC, from which its nodes are reached by SSH.
//!
//! What it consists of has the tags of the infrastructure, so that `destroy infra aws` finds what `destroy bastion aws` does
//! not get to.

use anyhow::bail;

use super::bastion::{self, BastionRequest, INSTANCE_TYPE, PORT, PublicKey};
use super::call::Calls;
use super::executor::Executor;
use super::instance::{Instance, Launch};
use super::kind::Kind;
use super::network::VPC;
use super::scope::tags;

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
        let name = bastion::name(self.scope);
        let launch = Launch {
            name: &name,
            instance_type: INSTANCE_TYPE,
            subnet: &place.subnet,
            group: &group,
            key: Some(&name),
            // The identifier of the key pair, which is another one after each destruction.
            token: &key,
            script: None,
        };
        let made = self.ensure_instance(&launch).await?;
        if request.wait {
            return self.until_instance(&made.id, Instance::is_ready).await;
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
        let name = bastion::name(self.scope);
        let exists = self.find_instance(&name).await?.is_some();
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
            self.let_in(&group, &name, [PORT, cidr.as_str()]).await?;
        }
        Ok(id)
    }
}

fn state(exists: bool) -> &'static str {
    if exists { "exists" } else { "would be created" }
}
