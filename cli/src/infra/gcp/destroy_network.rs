//! Deletes the network of a cluster, in the order of its parts' use.

use anyhow::{Context as _, bail};
use support::rest::Calls;

use super::create_network::is_worth_it;
use super::executor::{Executor, Patience, is_in_use};
use super::network::{Kind, Network, check_region};
use super::scope::Scope;

/// The order of deletion.
const ORDER: [Kind; 4] = [Kind::Router, Kind::Subnet, Kind::Firewall, Kind::Network];

impl<C: Calls> Executor<'_, C> {
    /// Deletes what exists. What belongs to something else is kept.
    pub(crate) async fn destroy_network(&self, region: &str) -> anyhow::Result<()> {
        check_region(region)?;
        let network = self.network(region);
        self.delete_nat(&network).await?;
        for kind in ORDER {
            self.delete(&network, kind).await?;
        }
        Ok(())
    }

    /// Says what would be deleted, and deletes nothing.
    pub(crate) async fn report_network_destruction(&self, region: &str) -> anyhow::Result<()> {
        check_region(region)?;
        let network = self.network(region);
        for kind in ORDER {
            let (noun, name) = (kind.noun(), network.name(kind));
            match self.find(&network.url(kind)).await? {
                Some(found) if self.scope.owns(&found) => {
                    self.say(&format!("{noun} {name}: would be deleted"));
                }
                Some(found) => self.say_kept(&Scope::foreign(noun, &name, &found)),
                None => {}
            }
        }
        Ok(())
    }

    pub(super) fn say_kept(&self, foreign: &str) {
        self.say(&format!("{foreign}: it is kept"));
    }

    async fn delete_nat(&self, network: &Network<'_>) -> anyhow::Result<()> {
        let name = network.nat_name();
        let what = || format!("failed to delete NAT gateway {name}");
        let url = network.url(Kind::Router);
        let mut patience = Patience::new();
        loop {
            let router = self.find(&url).await.with_context(what)?;
            let Some(router) = router.filter(|router| self.scope.owns(router)) else {
                return Ok(());
            };
            let (others, has_nat) = network.nats(&router);
            if !has_nat {
                return Ok(());
            }
            let Err(error) = self.patch_nats(network, &others).await else {
                self.say(&format!("NAT gateway {name}: deleted"));
                return Ok(());
            };
            let is_worth_it = error.is_absent() || is_worth_it(&error);
            if !is_worth_it || !patience.pause(self.calls).await {
                return Err(error).with_context(what);
            }
        }
    }

    async fn delete(&self, network: &Network<'_>, kind: Kind) -> anyhow::Result<()> {
        let (noun, name) = (kind.noun(), network.name(kind));
        let what = || format!("failed to delete {noun} {name}");
        let url = network.url(kind);
        let mut patience = Patience::new();
        let mut said = false;
        loop {
            let Some(found) = self.find(&url).await.with_context(what)? else {
                return Ok(());
            };
            if !self.scope.owns(&found) {
                self.say_kept(&Scope::foreign(noun, &name, &found));
                return Ok(());
            }
            let Err(error) = self.delete_resource(network, kind).await else {
                self.say(&format!("{noun} {name}: deleted"));
                return Ok(());
            };
            let is_used = is_in_use(&error);
            if is_used && !said {
                self.say(&format!(
                    "{noun} {name}: waiting until it is not in use ({error})"
                ));
                said = true;
            }
            let is_worth_it = error.is_absent() || is_used || is_worth_it(&error);
            if !is_worth_it {
                return Err(error).with_context(what);
            }
            if patience.pause(self.calls).await {
                continue;
            }
            if is_used {
                bail!(
                    "{}: {error}. Delete what uses it, and run the command again",
                    what()
                );
            }
            return Err(error).with_context(what);
        }
    }
}
