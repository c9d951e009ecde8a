//! Shares the subnets of a VPC with the account of the cluster, by Resource Access Manager.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, bail};
use support::aws::{Element, Error};

use super::accounts::{Accounts, Identifiers};
use super::call::{Call, Calls};
use super::create_network::Vpc;
use super::destroy_network::Pass;
use super::executor::{Executor, is_worth_it};
use super::kind::Kind;
use super::network::{Network, SHARE, Subnet};
use super::scope::tags;

/// Attempts at what depends on new subnets.
const ATTEMPTS: u32 = 10;
const INTERVAL: Duration = Duration::from_secs(3);
/// How long the account of the cluster may take to see what is shared with it.
const LOOKS: u32 = 10;
const LOOK_INTERVAL: Duration = Duration::from_secs(30);
/// What is new is not known everywhere at once.
const NEW: [&str; 2] = ["MalformedArnException", "UnknownResourceException"];

impl<C: Calls> Accounts<'_, C> {
    /// Shares all subnets with the account of the cluster, waits until it sees them, and tags them there: tags of the owner
    /// cannot be seen in other accounts. Returns the availability zones of subnets, which accounts call by different names.
    pub(super) async fn share_subnets(
        &self,
        accounts: &Identifiers,
        network: &Network,
        vpc: &Vpc,
    ) -> anyhow::Result<BTreeMap<String, String>> {
        let subnets = subnets(network, vpc);
        let scope = self.cluster.scope;
        let (partition, region) = (scope.partition(), &scope.region);
        let arns = subnets.iter().map(|(id, _)| {
            let owner = &accounts.owner;
            format!("arn:{partition}:ec2:{region}:{owner}:subnet/{id}")
        });
        let arns: Vec<_> = arns.collect();
        self.vpc().ensure_share(&accounts.cluster, &arns).await?;
        let ids: Vec<_> = subnets.iter().map(|(id, _)| id.as_str()).collect();
        let mut zones = BTreeMap::new();
        for item in self.cluster.shared_subnets(&ids).await? {
            let id = Kind::Subnet.id(&item);
            let Some((_, subnet)) = subnets.iter().find(|(it, _)| it == id) else {
                continue;
            };
            let mut expected = scope.tags(&subnet.name);
            let more = subnet.tags.iter();
            expected.extend(more.map(|(key, value)| ((*key).to_owned(), value.clone())));
            let tagged = self.cluster.tag(Kind::Subnet, &item, &expected).await;
            tagged.with_context(|| {
                format!("failed to tag subnet {id} in account {}", accounts.cluster)
            })?;
            let zone = item.text_at("availabilityZone");
            zones.insert(id.to_owned(), zone.to_owned());
        }
        Ok(zones)
    }
}

/// The subnets of a network: identifiers, and what they were made of.
fn subnets<'a>(network: &'a Network, vpc: &'a Vpc) -> Vec<(String, &'a Subnet)> {
    let mut all = Vec::new();
    for (zone, subnets) in network.zones.iter().zip(&vpc.subnets) {
        all.extend(subnets.private.clone().zip(zone.private.as_ref()));
        all.push((subnets.public.clone(), &zone.public));
    }
    all
}

impl<C: Calls> Executor<'_, C> {
    /// Finds the share of the infrastructure or creates it, and adds what it lacks.
    async fn ensure_share(&self, principal: &str, arns: &[String]) -> anyhow::Result<()> {
        let name = self.scope.named(SHARE);
        let what = || format!("failed to create resource share {name}");
        let mut attempt = 1;
        loop {
            let shares = self.shares().await.with_context(what)?;
            if let Some(share) = shares.iter().find(|it| is_alive(it)) {
                let arn = share.text_at("resourceShareArn");
                self.say(&format!("resource share {name}: exists ({arn})"));
                let completed = self.complete_share(arn, principal, arns).await;
                return completed.with_context(what);
            }
            let call = Call::ram("CreateResourceShare")
                .with("Name", &name)
                .list("ResourceArn", arns)
                .list("Principal", [principal])
                .tags("Tag", &self.scope.tags(&name));
            match self.calls.call(&call).await {
                Ok(_) => {
                    self.say(&format!("resource share {name}: created"));
                    return Ok(());
                }
                Err(error) if is_worth_it(&error, &NEW) && attempt < ATTEMPTS => attempt += 1,
                Err(error) => return Err(error).with_context(what),
            }
            self.calls.pause(INTERVAL).await;
        }
    }

    /// Adds subnets and the account that a share lacks: a run with fewer zones may have made it.
    async fn complete_share(
        &self,
        share: &str,
        principal: &str,
        arns: &[String],
    ) -> anyhow::Result<()> {
        let principals = [principal.to_owned()];
        for (associations, parameter, wanted) in [
            ("RESOURCE", "ResourceArn", arns),
            ("PRINCIPAL", "Principal", &principals[..]),
        ] {
            let there = self.associated(share, associations).await?;
            let missing: Vec<_> = wanted.iter().filter(|it| !there.contains(it)).collect();
            if missing.is_empty() {
                continue;
            }
            let call = Call::ram("AssociateResourceShare")
                .with("ResourceShareArn", share)
                .list(parameter, missing);
            self.settle(&call, &[], &NEW).await?;
        }
        Ok(())
    }

    /// What a share has: ARNs of resources, or accounts.
    async fn associated(&self, share: &str, kind: &str) -> Result<Vec<String>, Error> {
        let call = Call::ram("GetResourceShareAssociations")
            .with("ResourceShareArn", share)
            .with("AssociationType", kind);
        let mut found = self.ram_pages(&call, "resourceShareAssociations").await?;
        found.retain(|it| ["ASSOCIATED", "ASSOCIATING"].contains(&it.text_at("status")));
        let entities = found.iter().map(|it| it.text_at("associatedEntity"));
        Ok(entities.map(str::to_owned).collect())
    }

    /// The shares of the infrastructure, also those that are being deleted. RAM lists deleted ones for some hours.
    pub(super) async fn shares(&self) -> Result<Vec<Element>, Error> {
        let name = self.scope.named(SHARE);
        let call = Call::ram("GetResourceShares").with("Name", &name);
        let mut found = self.ram_pages(&call, "resourceShares").await?;
        // Names are not unique.
        found.retain(|it| {
            let is_there = it.text_at("status") != "DELETED";
            is_there && it.text_at("name") == name && self.scope.owns(&tags(it.items("tags")))
        });
        Ok(found)
    }

    /// The items of all pages.
    async fn ram_pages(&self, first: &Call, list: &str) -> Result<Vec<Element>, Error> {
        let mut items = Vec::new();
        let mut call = first.clone();
        loop {
            let response = self.calls.call(&call).await?;
            items.extend_from_slice(response.items(list));
            match response.text_at("nextToken") {
                "" => return Ok(items),
                token => call = first.clone().with("NextToken", token),
            }
        }
    }

    /// Waits until the account sees subnets of another one.
    async fn shared_subnets(&self, ids: &[&str]) -> anyhow::Result<Vec<Element>> {
        let kind = Kind::Subnet;
        let call = kind.describe().list(kind.parameter(), ids);
        for look in 1..=LOOKS {
            let found = self.find_call(&call, &["InvalidSubnetID.NotFound"]).await?;
            let items = found.as_ref().map(|found| kind.items(found));
            if let Some(items) = items.filter(|items| items.len() >= ids.len()) {
                return Ok(items.to_vec());
            }
            if look < LOOKS {
                self.calls.pause(LOOK_INTERVAL).await;
            }
        }
        bail!(
            "subnets {} are shared with the account of the cluster, and it does not see them yet: both accounts must be in one \
             organization, whose management account has enabled sharing (aws ram enable-sharing-with-aws-organization); then run \
             the command again",
            ids.join(", ")
        )
    }

    /// Deletes the share of the infrastructure.
    pub(super) async fn delete_share(&self, pass: &mut Pass) {
        let shares = self.shares().await;
        for share in pass.listed("resource shares", shares) {
            let arn = share.text_at("resourceShareArn");
            let what = format!("resource share {arn}");
            if share.text_at("status") != "DELETING" {
                let call = Call::ram("DeleteResourceShare").with("ResourceShareArn", arn);
                let deleted = self.calls.call(&call).await;
                pass.check(&what, deleted.map(drop));
            }
            pass.note(format!("{what}: deleting"));
        }
    }
}

/// Whether a share is or will be of use.
fn is_alive(share: &Element) -> bool {
    ["ACTIVE", "PENDING"].contains(&share.text_at("status"))
}
