//! Creates the network of a cluster: a network with a subnet, a firewall rule, and a router with a NAT gateway.

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use support::rest::{Calls, Error, Request};

use super::executor::{Executor, Patience, is_not_ready};
use super::network::{Kind, Network, NetworkRequest};
use super::scope::Scope;

/// What there is: the file of `--infra-json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NetworkOutput {
    pub(crate) region: String,
    pub(crate) project_id: String,
    pub(crate) infra_id: String,
    pub(crate) network_name: String,
    pub(crate) network_self_link: String,
    pub(crate) subnet_name: String,
    pub(crate) subnet_self_link: String,
    pub(crate) subnet_cidr: String,
    pub(crate) router_name: String,
    pub(crate) nat_name: String,
    pub(crate) firewall_rule_name: String,
}

// === impl NetworkOutput ===

impl NetworkOutput {
    /// What there is, or will be: names are not chosen by Google Cloud.
    pub(crate) fn new(scope: &Scope, request: &NetworkRequest) -> Self {
        let network = Network {
            scope,
            region: &request.region,
        };
        Self {
            region: request.region.clone(),
            project_id: scope.project.clone(),
            infra_id: scope.infra_id.clone(),
            network_name: network.name(Kind::Network),
            network_self_link: network.link(Kind::Network),
            subnet_name: network.name(Kind::Subnet),
            subnet_self_link: network.link(Kind::Subnet),
            subnet_cidr: request.cidr.clone(),
            router_name: network.name(Kind::Router),
            nat_name: network.nat_name(),
            firewall_rule_name: network.name(Kind::Firewall),
        }
    }
}

// === impl Executor ===

impl<C: Calls> Executor<'_, C> {
    /// Creates what is missing. What belongs to something else is refused before anything is created.
    pub(crate) async fn create_network(
        &self,
        request: &NetworkRequest,
    ) -> anyhow::Result<NetworkOutput> {
        let network = self.network(&request.region);
        for kind in Kind::ALL {
            self.look(&network, kind, request).await?;
        }
        for kind in Kind::ALL {
            self.ensure(&network, kind, request).await?;
        }
        self.ensure_nat(&network).await?;
        Ok(NetworkOutput::new(self.scope, request))
    }

    /// Says what there is of it, and creates nothing.
    pub(crate) async fn report_network(&self, request: &NetworkRequest) -> anyhow::Result<()> {
        let network = self.network(&request.region);
        for kind in Kind::ALL {
            let found = self.look(&network, kind, request).await?;
            self.report(kind.noun(), &network.name(kind), found.is_some());
            if kind == Kind::Router {
                let has_nat = found.is_some_and(|router| network.nats(&router).1);
                self.report("NAT gateway", &network.nat_name(), has_nat);
            }
        }
        Ok(())
    }

    pub(super) fn network<'n>(&'n self, region: &'n str) -> Network<'n> {
        Network {
            scope: self.scope,
            region,
        }
    }

    /// A resource, if it exists and can be used.
    async fn look(
        &self,
        network: &Network<'_>,
        kind: Kind,
        request: &NetworkRequest,
    ) -> anyhow::Result<Option<Value>> {
        let found = self.find(&network.url(kind)).await;
        let found = found
            .with_context(|| format!("failed to get {} {}", kind.noun(), network.name(kind)))?;
        if let Some(found) = &found
            && let Some(problem) = network.problem(kind, found, request)
        {
            bail!("{problem}");
        }
        Ok(found)
    }

    async fn ensure(
        &self,
        network: &Network<'_>,
        kind: Kind,
        request: &NetworkRequest,
    ) -> anyhow::Result<()> {
        let (noun, name) = (kind.noun(), network.name(kind));
        let create = Request::post(network.collection(kind), network.body(kind, request));
        let mut patience = Patience::new();
        loop {
            if self.look(network, kind, request).await?.is_some() {
                self.say(&format!("{noun} {name}: exists"));
                return Ok(());
            }
            let Err(error) = self.make(&create, &network.place(kind)).await else {
                self.say(&format!("{noun} {name}: created"));
                return Ok(());
            };
            // Something has created it meanwhile, or an earlier attempt did: look again.
            let is_worth_it = error.is_conflict() || is_worth_it(&error);
            if !is_worth_it || !patience.pause(self.calls).await {
                return Err(error).with_context(|| format!("failed to create {noun} {name}"));
            }
        }
    }

    async fn ensure_nat(&self, network: &Network<'_>) -> anyhow::Result<()> {
        let name = network.nat_name();
        let what = || format!("failed to create NAT gateway {name}");
        let url = network.url(Kind::Router);
        let mut patience = Patience::new();
        loop {
            let router = self.find(&url).await.with_context(what)?;
            let Some(router) = router.filter(|router| self.scope.owns(router)) else {
                bail!(
                    "failed to create NAT gateway {name}: its router was deleted meanwhile, run the command again"
                );
            };
            let (mut nats, has_nat) = network.nats(&router);
            if has_nat {
                self.say(&format!("NAT gateway {name}: exists"));
                return Ok(());
            }
            nats.push(network.nat());
            let Err(error) = self.patch_nats(network, &nats).await else {
                self.say(&format!("NAT gateway {name}: created"));
                return Ok(());
            };
            if !is_worth_it(&error) || !patience.pause(self.calls).await {
                return Err(error).with_context(what);
            }
        }
    }

    /// Replaces the NAT gateways of the router.
    pub(super) async fn patch_nats(
        &self,
        network: &Network<'_>,
        nats: &[Value],
    ) -> Result<(), Error> {
        let patch = Request::patch(network.url(Kind::Router), json!({ "nats": nats }));
        self.make(&patch, &network.place(Kind::Router)).await
    }

    /// Deletes a resource.
    pub(super) async fn delete_resource(
        &self,
        network: &Network<'_>,
        kind: Kind,
    ) -> Result<(), Error> {
        let delete = Request::delete(network.url(kind));
        self.make(&delete, &network.place(kind)).await
    }

    /// Makes a call that begins an operation, and waits until that is done.
    async fn make(&self, request: &Request, place: &str) -> Result<(), Error> {
        let operation = self.call(request).await?;
        self.finish(place, &operation).await
    }
}

/// Whether a call is repeated after a look: it may have had its effect, or something else changes the resource.
pub(super) fn is_worth_it(error: &Error) -> bool {
    error.is_uncertain() || is_not_ready(error)
}
