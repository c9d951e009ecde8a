//! Makes the private link service of an AzurePrivateLinkService with its subnet, and deletes them. Each call may be the last
//! one of this process: the next pass begins with what it finds.

use serde_json::Value;
use support::azure_resources::{Group, Resources, State, Written, parent};
use support::rest::{Calls, Error};

use super::plan::{self, BALANCERS, Desired, Frontend, LINKS, Link, Target};
use crate::private_link::problem::{Problem, failed};

/// Reasons of conditions.
pub(super) const LOOKUP: &str = "ILBLookupFailed";
pub(super) const SUBNET: &str = "NATSubnetCreationFailed";
pub(super) const CREATION: &str = "PLSCreationFailed";
pub(super) const UPDATE: &str = "PLSUpdateFailed";
/// Why Azure does not delete a private link service, and why it does not delete a subnet.
const CONNECTED: &str = "PrivateLinkServiceWithPrivateEndpointConnectionsCannotBeDeleted";
const IN_USE: &str = "InUseSubnetCannotBeDeleted";

/// What is known of something in Azure.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Seen {
    /// Nothing: it has not been looked for.
    #[default]
    Unknown,
    Absent,
    /// It has this ID.
    There(String),
}

/// What a pass has found and made, also if it has failed then.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Made {
    pub(super) balancer: Seen,
    pub(super) service: Seen,
    /// The name under which the service is found from other subscriptions.
    pub(super) alias: String,
}

/// How far it has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Progress {
    /// The ID of the subnet has to be recorded before the subnet is created: it says what to clean up.
    Record(String),
    /// It is as it is to be.
    Done,
}

/// How a deletion went on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Removal {
    Done,
    /// Azure is still deleting.
    Waiting,
}

/// Azure, where the management cluster is.
pub(super) struct Azure<'a, C> {
    group: &'a Group,
    resources: Resources<'a, C>,
}

// === impl Azure ===

impl<'a, C: Calls> Azure<'a, C> {
    pub(super) fn new(group: &'a Group, calls: &'a C) -> Self {
        Self {
            group,
            resources: Resources::new(calls, group.endpoint),
        }
    }

    /// Makes it.
    pub(super) async fn ensure(
        &self,
        desired: &Desired,
        made: &mut Made,
    ) -> Result<Progress, Problem> {
        let frontend = self.frontend(&desired.target, made).await?;
        let links = self.links().await.map_err(failed(CREATION))?;
        let is_own = |it: &&Link| plan::is_own(it, &desired.target, Some(frontend.id.as_str()));
        let own: Vec<_> = links.iter().filter(is_own).collect();
        let is_current = |it: &&&Link| plan::leads_to(it, &frontend.id);
        let current = own.iter().find(is_current).copied();
        let mut is_gone = true;
        for outdated in own.iter().filter(|it| !is_current(it)) {
            // The Service has got another load balancer.
            is_gone &= self.delete(outdated).await.map_err(failed(UPDATE))?;
        }
        if let Some(current) = current {
            made.see(self.group, current);
            return self.update(desired, &frontend, current, made).await;
        }
        made.service = Seen::Absent;
        if !is_gone {
            let message = "waiting for Azure to delete the former private link service";
            return Err(Problem::input(CREATION, message));
        }
        let mut others = links.iter().filter(|it| !is_own(it));
        if let Some(other) = others.find(|it| it.name.eq_ignore_ascii_case(&desired.name)) {
            let message = format!(
                "private link service {} is not the one of this cluster: another cluster has the same spec.clusterID, or \
                 someone else has created it. The administrator of the management cluster deletes it if it is not in use",
                other.name
            );
            return Err(Problem::input(CREATION, message));
        }
        let subnet = match self.subnet(desired, &frontend).await? {
            Subnet::There(id) => id,
            Subnet::Record(id) => return Ok(Progress::Record(id)),
        };
        let wanted = plan::resource(desired, &frontend, &subnet, None);
        self.write(&desired.name, wanted, CREATION, made).await
    }

    /// Deletes it, with its subnet. What is not the cluster's is left as it is.
    pub(super) async fn remove(&self, target: &Target) -> Result<Removal, Problem> {
        let frontend = match &target.balancer {
            Some(_) => self.frontend(target, &mut Made::default()).await.ok(),
            None => None,
        };
        let proof = frontend.as_ref().map(|it| it.id.as_str());
        let links = self.links().await.map_err(failed(UPDATE))?;
        let (own, others): (Vec<_>, Vec<_>) = links
            .into_iter()
            .partition(|it| plan::is_own(it, target, proof));
        for link in &own {
            if !self.delete(link).await.map_err(failed(UPDATE))? {
                return Ok(Removal::Waiting);
            }
        }
        if let Some(id) = &target.subnet {
            self.delete_subnet(id, &others)
                .await
                .map_err(failed(SUBNET))?;
        }
        Ok(Removal::Done)
    }

    async fn frontend(&self, target: &Target, made: &mut Made) -> Result<Frontend, Problem> {
        let Some(own) = &target.balancer else {
            let message = "waiting for the Service to have an internal load balancer";
            return Err(Problem::input(LOOKUP, message));
        };
        let ids = self.group.ids(BALANCERS);
        let balancers = self.resources.list(&ids).await.map_err(failed(LOOKUP))?;
        match plan::frontend(&balancers, own) {
            Ok(frontend) => {
                let id = self.group.id(BALANCERS, &frontend.balancer);
                made.balancer = Seen::There(id);
                Ok(frontend)
            }
            Err(message) => {
                made.balancer = Seen::Absent;
                Err(Problem::input(LOOKUP, message))
            }
        }
    }

    /// All private link services of the resource group.
    async fn links(&self) -> Result<Vec<Link>, Error> {
        let found = self.resources.list(&self.group.ids(LINKS)).await?;
        Ok(found.iter().map(Link::of).collect())
    }

    /// Brings one up to date.
    async fn update(
        &self,
        desired: &Desired,
        frontend: &Frontend,
        current: &Link,
        made: &mut Made,
    ) -> Result<Progress, Problem> {
        let id = self.group.id(LINKS, &current.name);
        let current = if current.state == State::Busy {
            let found = self.resources.find_settled(&id).await;
            let found = found.map_err(failed(UPDATE))?;
            Link::of(&found.unwrap_or_default())
        } else {
            current.clone()
        };
        let waits = |problem: &str| {
            let name = &current.name;
            Problem::input(
                UPDATE,
                format!("waiting for private link service {name}{problem}"),
            )
        };
        if current.state == State::Busy {
            return Err(waits(", which Azure is working on"));
        }
        if !plan::is_outdated(&current, desired) {
            made.see(self.group, &current);
            return Ok(Progress::Done);
        }
        let Some(subnet) = &current.subnet else {
            return Err(waits(" to have a subnet"));
        };
        let wanted = plan::resource(desired, frontend, subnet, Some(&current));
        self.write(&current.name, wanted, UPDATE, made).await
    }

    async fn write(
        &self,
        name: &str,
        wanted: Value,
        reason: &'static str,
        made: &mut Made,
    ) -> Result<Progress, Problem> {
        let id = self.group.id(LINKS, name);
        match self
            .resources
            .put(&id, wanted)
            .await
            .map_err(failed(reason))?
        {
            Written::Done(found) => {
                made.see(self.group, &Link::of(&found));
                Ok(Progress::Done)
            }
            Written::Busy => Err(Problem::input(
                reason,
                format!("waiting for private link service {name}, which Azure is working on"),
            )),
        }
    }

    /// The ID of the subnet from which addresses are taken.
    async fn subnet(&self, desired: &Desired, frontend: &Frontend) -> Result<Subnet, Problem> {
        let network_id = parent(&frontend.subnet).unwrap_or_default();
        let network = self.resources.find(network_id).await;
        let network = network.map_err(failed(SUBNET))?.unwrap_or_default();
        if let Some(id) = &desired.given_subnet {
            let checked = plan::given_subnet(id, &desired.infra_id, frontend, &network);
            checked.map_err(|message| Problem::input(SUBNET, message))?;
            return Ok(Subnet::There(id.clone()));
        }
        let name = plan::subnet_name(&desired.infra_id);
        let id = format!("{network_id}/subnets/{name}");
        if desired.target.subnet.as_deref() != Some(id.as_str()) {
            return Ok(Subnet::Record(id));
        }
        if plan::subnet(&network, &name).is_some() {
            return Ok(Subnet::There(id));
        }
        let Some(range) = plan::free_range(&network) else {
            let message = "the network of the management cluster has no free range of 256 addresses for the subnet of the \
                           private link: add one to its address space, or set \
                           spec.platform.azure.private.privateLink.natSubnetID";
            return Err(Problem::input(SUBNET, message));
        };
        let written = self.resources.put(&id, plan::new_subnet(range)).await;
        match written.map_err(failed(SUBNET))? {
            Written::Done(_) => Ok(Subnet::There(id)),
            Written::Busy => {
                let message = format!("waiting for subnet {name}, which Azure is working on");
                Err(Problem::input(SUBNET, message))
            }
        }
    }

    /// Deletes a private link service, and returns whether it is gone.
    async fn delete(&self, link: &Link) -> Result<bool, Error> {
        let id = self.group.id(LINKS, &link.name);
        let connection = |name: &str| format!("{id}/privateEndpointConnections/{name}");
        for name in plan::open(link) {
            // The endpoint may be gone meanwhile.
            match self
                .resources
                .put(&connection(name), plan::rejection())
                .await
            {
                Err(error) if !error.is_absent() => return Err(error),
                Ok(_) | Err(_) => {}
            }
        }
        match self.resources.delete(&id).await {
            Err(error) if error.code() == CONNECTED => {
                for it in &link.connections {
                    self.resources.delete(&connection(&it.name)).await?;
                }
                Ok(false)
            }
            deleted => deleted,
        }
    }

    async fn delete_subnet(&self, id: &str, others: &[Link]) -> Result<(), Error> {
        let Some(found) = self.resources.find(id).await? else {
            return Ok(());
        };
        if !plan::is_disposable(&found, others) {
            return Ok(());
        }
        match self.resources.delete(id).await {
            // Another cluster has begun to use it.
            Err(error) if error.code() == IN_USE => Ok(()),
            deleted => deleted.map(drop),
        }
    }
}

/// A subnet.
enum Subnet {
    There(String),
    /// It is recorded before it is created.
    Record(String),
}

// === impl Made ===

impl Made {
    fn see(&mut self, group: &Group, link: &Link) {
        self.service = Seen::There(group.id(LINKS, &link.name));
        self.alias.clone_from(&link.alias);
    }
}
