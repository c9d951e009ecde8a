//! The private hosted zones of a cluster: in the account of the VPC, or in that of the cluster for a VPC of another account.
//!
//! Route 53 creates a private zone only for a VPC of the same account. For another one, it is created with a temporary VPC,
//! associated with the other one, and dissociated from the temporary one.

use std::time::Duration;

use anyhow::{Context as _, bail};

use super::accounts::Accounts;
use super::call::{Call, Calls};
use super::executor::{Executor, is_worth_it};
use super::kind::Kind;
use super::network::TEMPORARY_VPC;
use super::zones::Domain;

/// Attempts at what depends on a new VPC or a new zone.
const ATTEMPTS: u32 = 10;
const INTERVAL: Duration = Duration::from_secs(3);
/// What is new is not known everywhere at once.
const NEW: [&str; 4] = [
    "ConcurrentModification",
    "InvalidVPCId",
    "NotAuthorizedException",
    "PriorRequestNotComplete",
];

impl<C: Calls> Accounts<'_, C> {
    /// The identifiers of the zones for the domain of the cluster and for endpoints.
    pub(super) async fn private_zones(
        &self,
        vpc: &str,
        cidr: &str,
        domain: &Domain,
    ) -> anyhow::Result<[String; 2]> {
        let [cluster, local] = [domain.cluster(), Domain::local(&self.cluster.scope.name)];
        if !self.has_zones_elsewhere() {
            let zones = self.zones();
            let cluster = zones.private_zone(vpc, &cluster).await?;
            return Ok([cluster, zones.private_zone(vpc, &local).await?]);
        }
        let name = self.cluster.scope.named(TEMPORARY_VPC);
        let left = self.cluster.find(Kind::Vpc, &name).await?;
        let there = [
            self.vpc().zone_of_vpc(vpc, &cluster).await?,
            self.vpc().zone_of_vpc(vpc, &local).await?,
        ];
        if let ([Some(cluster_zone), Some(local_zone)], None) = (&there, &left) {
            self.check_zone(cluster_zone, &cluster).await?;
            self.check_zone(local_zone, &local).await?;
            return Ok([cluster_zone.clone(), local_zone.clone()]);
        }
        let cidr = [("CidrBlock", cidr.to_owned())];
        let made = self.cluster.ensure(Kind::Vpc, &name, &[], &cidr, &[]);
        let made = made.await?;
        let temporary = Kind::Vpc.id(&made);
        let cluster = self.zone_by_way_of(temporary, vpc, &cluster).await?;
        let local = self.zone_by_way_of(temporary, vpc, &local).await?;
        let gone = ["InvalidVpcID.NotFound"];
        let deleted = self
            .cluster
            .settle(
                &Kind::Vpc.delete(temporary),
                &gone,
                &["DependencyViolation"],
            )
            .await;
        deleted.with_context(|| format!("failed to delete VPC {name} ({temporary})"))?;
        Ok([cluster, local])
    }

    /// Finds a zone of the owner's VPC in the account of the cluster, or creates it with a temporary VPC of that account.
    async fn zone_by_way_of(
        &self,
        temporary: &str,
        vpc: &str,
        name: &str,
    ) -> anyhow::Result<String> {
        let id = if let Some(id) = self.vpc().zone_of_vpc(vpc, name).await? {
            self.check_zone(&id, name).await?;
            id
        } else {
            let id = self.cluster.private_zone(temporary, name).await?;
            let what =
                || format!("failed to associate private hosted zone {name} ({id}) with {vpc}");
            let authorize = self
                .cluster
                .about_vpc("CreateVPCAssociationAuthorization", &id, vpc);
            let authorized = self.cluster.settle(&authorize, &[], &NEW).await;
            authorized.with_context(what)?;
            self.vpc()
                .associate_zone(&id, vpc, name)
                .await
                .with_context(what)?;
            id
        };
        let call = self
            .cluster
            .about_vpc("DisassociateVPCFromHostedZone", &id, temporary);
        let done = ["VPCAssociationNotFound"];
        let dissociated = self.cluster.settle(&call, &done, &NEW).await;
        dissociated.with_context(|| {
            format!("failed to dissociate private hosted zone {name} ({id}) from {temporary}")
        })?;
        Ok(id)
    }

    /// Refuses a zone that is not in the account of the cluster, or belongs to another cluster.
    async fn check_zone(&self, id: &str, name: &str) -> anyhow::Result<()> {
        let tags = self.cluster.zone_tags(id).await.with_context(|| {
            format!(
                "failed to read the tags of private hosted zone {name} ({id}) of the VPC in the account of the cluster; if it \
                 is in the account of the VPC, leave out --private-zones-in-cluster-account"
            )
        })?;
        if !self.cluster.scope.may_change(&tags) {
            bail!(
                "private hosted zone {name} ({id}) belongs to another cluster: choose another --name or --base-domain-prefix"
            );
        }
        self.cluster
            .say(&format!("private hosted zone {name}: exists ({id})"));
        Ok(())
    }
}

impl<C: Calls> Executor<'_, C> {
    fn about_vpc(&self, action: &'static str, zone: &str, vpc: &str) -> Call {
        Call::route53(action)
            .with("Id", zone)
            .with("VPCId", vpc)
            .with("VPCRegion", &self.scope.region)
    }

    /// Associates a zone of another account, which has authorized it, with a VPC of this one.
    async fn associate_zone(&self, zone: &str, vpc: &str, name: &str) -> anyhow::Result<()> {
        let call = self.about_vpc("AssociateVPCWithHostedZone", zone, vpc);
        let mut attempt = 1;
        loop {
            // After a lost response it is associated, and a second request would be refused.
            if self.zone_of_vpc(vpc, name).await?.as_deref() == Some(zone) {
                return Ok(());
            }
            match self.calls.call(&call).await {
                Ok(_) => return Ok(()),
                Err(error) if is_worth_it(&error, &NEW) && attempt < ATTEMPTS => attempt += 1,
                Err(error) => return Err(error.into()),
            }
            self.calls.pause(INTERVAL).await;
        }
    }
}
