//! Deletes a network with all that is in it: what `create` made, and what the cluster and its controllers left.
//!
//! Deletions take time, and one waits for another: passes are repeated until one finds nothing.

use std::time::Duration;

use anyhow::bail;
use support::aws::{Element, Error};

use super::accounts::Accounts;
use super::call::{Call, Calls};
use super::executor::Executor;
use super::kind::Kind;
use super::scope::tags;
use super::zones::{Domain, has_name};

/// Between two passes.
pub(crate) const PAUSE: Duration = Duration::from_secs(5);

/// What is asked for.
#[derive(Debug, Clone)]
pub(crate) struct DestroyRequest {
    /// `None` without a base domain: records of the public zone are kept.
    pub(crate) domain: Option<Domain>,
    /// How long passes are repeated; without it as long as necessary.
    pub(crate) grace_period: Option<Duration>,
}

/// What a pass has found.
#[derive(Debug, Default)]
pub(crate) struct Pass {
    /// What is still there, or was when it was deleted.
    pub(super) left: Vec<String>,
    /// A refusal that no repetition changes.
    denied: Option<Error>,
}

// === impl DestroyRequest ===

impl DestroyRequest {
    /// What flags ask for; `limit` is zero for no limit.
    pub(crate) fn new(domain: Option<Domain>, limit: Duration) -> Self {
        Self {
            domain,
            grace_period: (!limit.is_zero()).then_some(limit),
        }
    }
}

// === impl Pass ===

impl Pass {
    pub(super) fn note(&mut self, line: String) {
        self.left.push(line);
    }

    /// Notes a refusal; what is gone already is none.
    pub(crate) fn check(&mut self, what: &str, result: Result<(), Error>) {
        let Err(error) = result else {
            return;
        };
        if is_gone(&error) {
            return;
        }
        self.note(format!("{what}: {error}"));
        if error.is_denied() {
            self.denied.get_or_insert(error);
        }
    }

    /// The items, or none with a note.
    pub(super) fn listed<T>(&mut self, what: &str, result: Result<Vec<T>, Error>) -> Vec<T> {
        match result {
            Ok(items) => items,
            Err(error) => {
                self.check(what, Err(error));
                Vec::new()
            }
        }
    }
}

fn is_gone(error: &Error) -> bool {
    let code = error.code();
    code.ends_with(".NotFound")
        || [
            "NoSuchHostedZone",
            "NoSuchBucket",
            "NoSuchEntity",
            "LoadBalancerNotFound",
            "UnknownResourceException",
        ]
        .contains(&code)
}

impl<C: Calls> Accounts<'_, C> {
    /// Repeats passes until nothing is left, or the time is over.
    pub(crate) async fn destroy_network(&self, request: &DestroyRequest) -> anyhow::Result<()> {
        self.identifiers().await?;
        let infra_id = &self.cluster.scope.infra_id;
        let step = format!("network of {infra_id}");
        let pass = async || self.network_pass(request).await;
        self.cluster
            .until_empty(&step, request.grace_period, pass)
            .await
    }

    /// Says what would be deleted, and deletes nothing.
    pub(crate) async fn report_destruction(&self) -> anyhow::Result<()> {
        self.identifiers().await?;
        for account in self.all() {
            account.report_owned().await?;
        }
        if let Some(owner) = self.owner {
            for share in owner.shares().await? {
                let arn = share.text_at("resourceShareArn");
                owner.say(&format!("resource share {arn}: would be deleted"));
            }
        }
        Ok(())
    }

    async fn network_pass(&self, request: &DestroyRequest) -> Pass {
        let mut pass = Pass::default();
        for account in self.all() {
            account.delete_instances(&mut pass).await;
            account.delete_launch_templates(&mut pass).await;
        }
        self.cluster.delete_buckets(&mut pass).await;
        if let Some(domain) = &request.domain {
            let deleted = self.cluster.delete_ingress_record(domain).await;
            pass.check("record of the ingress", deleted);
        }
        self.cluster.delete_endpoint_services(&mut pass).await;
        let mut zones = vec![Domain::local(&self.cluster.scope.name)];
        zones.extend(request.domain.as_ref().map(Domain::cluster));
        let vpcs = self.vpc().owned(Kind::Vpc).await;
        let vpcs = pass.listed("VPCs", vpcs);
        if let Some(owner) = self.owner {
            for vpc in &vpcs {
                self.cluster.leave_vpc(Kind::Vpc.id(vpc), &mut pass).await;
            }
            // The account of the cluster needs the share as long as it has something in the VPC.
            if pass.left.is_empty() {
                owner.delete_share(&mut pass).await;
            }
            if !pass.left.is_empty() {
                return pass;
            }
        }
        for vpc in &vpcs {
            let id = Kind::Vpc.id(vpc);
            self.vpc()
                .delete_vpc(id, &zones, self.zones(), &mut pass)
                .await;
        }
        if self.owner.is_some() {
            // The one by which zones are created, if the creation was interrupted.
            let temporary = self.cluster.owned(Kind::Vpc).await;
            for vpc in pass.listed("VPCs", temporary) {
                let id = Kind::Vpc.id(&vpc);
                self.cluster
                    .delete_vpc(id, &zones, self.cluster, &mut pass)
                    .await;
            }
        }
        for account in self.all() {
            account.delete_rest(&mut pass).await;
        }
        pass
    }
}

impl<C: Calls> Executor<'_, C> {
    /// Repeats passes until nothing is left, or the time is over.
    pub(crate) async fn until_empty(
        &self,
        what: &str,
        grace_period: Option<Duration>,
        pass: impl AsyncFn() -> Pass,
    ) -> anyhow::Result<()> {
        let mut passed = Duration::ZERO;
        let mut step = self.display.step(&format!("deleting {what}"));
        loop {
            let Pass { left, denied } = Box::pin(pass()).await;
            if let Some(error) = denied {
                return Err(anyhow::Error::from(error).context(format!(
                    "failed to delete {what}; run the command again with credentials that may do it"
                )));
            }
            if left.is_empty() {
                step.done("deleted");
                return Ok(());
            }
            if grace_period.is_some_and(|limit| passed >= limit) {
                bail!(
                    "failed to delete {what} within {} s: {}. Run the command again to continue",
                    passed.as_secs(),
                    left.join("; ")
                );
            }
            step.update(&left.join("; "));
            self.calls.pause(PAUSE).await;
            passed += PAUSE;
        }
    }

    async fn report_owned(&self) -> anyhow::Result<()> {
        for kind in [
            Kind::Vpc,
            Kind::InternetGateway,
            Kind::Subnet,
            Kind::NatGateway,
            Kind::Address,
            Kind::RouteTable,
            Kind::VpcEndpoint,
            Kind::SecurityGroup,
            Kind::DhcpOptions,
            Kind::KeyPair,
        ] {
            for item in self.owned(kind).await? {
                let (noun, id) = (kind.noun(), kind.id(&item));
                self.say(&format!("{noun} {id}: would be deleted"));
            }
        }
        Ok(())
    }

    /// Deletes what the account has in a VPC of another one.
    async fn leave_vpc(&self, vpc: &str, pass: &mut Pass) {
        let before = pass.left.len();
        self.delete_load_balancers(vpc, pass).await;
        // Load balancers and instances use them.
        if pass.left.len() == before {
            self.delete_security_groups(vpc, pass).await;
        }
    }

    /// Deletes what has no VPC any more, because a run was interrupted, and the key pair of a bastion, which never has one.
    async fn delete_rest(&self, pass: &mut Pass) {
        for kind in [
            Kind::InternetGateway,
            Kind::Address,
            Kind::DhcpOptions,
            Kind::KeyPair,
        ] {
            if !pass.left.is_empty() {
                break;
            }
            let owned = self.owned(kind).await;
            for item in pass.listed(kind.noun(), owned) {
                self.delete(kind, kind.id(&item), pass).await;
            }
        }
    }

    pub(super) async fn delete(&self, kind: Kind, id: &str, pass: &mut Pass) {
        let deleted = self.calls.call(&kind.delete(id)).await;
        pass.check(&format!("{} {id}", kind.noun()), deleted.map(drop));
    }

    pub(crate) async fn owned(&self, kind: Kind) -> Result<Vec<Element>, Error> {
        let response = self.calls.call(&kind.owned(self.scope)).await?;
        let items = kind.items(&response).iter();
        Ok(items.filter(|item| self.is_owned(item)).cloned().collect())
    }

    /// Whether a resource of EC2 belongs to the infrastructure: services may ignore filters that they do not know.
    fn is_owned(&self, item: &Element) -> bool {
        self.scope.owns(&tags(item.items("tagSet")))
    }

    pub(super) async fn within(&self, kind: Kind, vpc: &str) -> Result<Vec<Element>, Error> {
        // One kind has another name for it.
        let filter = match kind {
            Kind::InternetGateway => "attachment.vpc-id",
            _ => "vpc-id",
        };
        let response = self
            .calls
            .call(&kind.describe().filter(filter, vpc))
            .await?;
        Ok(kind.items(&response).to_vec())
    }

    async fn delete_instances(&self, pass: &mut Pass) {
        let tag = format!("tag:{}", self.scope.cluster_tag());
        let call = Call::ec2("DescribeInstances").filter(&tag, "owned");
        let response = self.calls.call(&call).await;
        let instances = response.map(|response| {
            let reservations = response.items("reservationSet").iter();
            let instances = reservations.flat_map(|it| it.items("instancesSet"));
            let running = instances
                .filter(|it| self.is_owned(it) && it.text_at("instanceState/name") != "terminated");
            let ids = running.map(|it| it.text_at("instanceId").to_owned());
            ids.collect::<Vec<_>>()
        });
        let instances = pass.listed("instances", instances);
        if instances.is_empty() {
            return;
        }
        let call = Call::ec2("TerminateInstances").list("InstanceId", &instances);
        let terminated = self.calls.call(&call).await;
        pass.check("instances", terminated.map(drop));
        pass.note(format!("instances {}: terminating", instances.join(", ")));
    }

    /// What Karpenter starts instances from. It deletes only what it has not used for some minutes, as long as it runs.
    async fn delete_launch_templates(&self, pass: &mut Pass) {
        let tag = format!("tag:{}", self.scope.cluster_tag());
        let call = Call::ec2("DescribeLaunchTemplates").filter(&tag, "owned");
        let response = self.calls.call(&call).await;
        let ids = response.map(|response| {
            let templates = response.items("launchTemplates").iter();
            let owned = templates.filter(|it| self.is_owned(it));
            let ids = owned.map(|it| it.text_at("launchTemplateId").to_owned());
            ids.collect::<Vec<_>>()
        });
        for id in pass.listed("launch templates", ids) {
            let call = Call::ec2("DeleteLaunchTemplate").with("LaunchTemplateId", &id);
            let deleted = self.calls.call(&call).await;
            pass.check(&format!("launch template {id}"), deleted.map(drop));
        }
    }

    /// The record that the ingress operator has made in the public zone.
    async fn delete_ingress_record(&self, domain: &Domain) -> Result<(), Error> {
        let Some(zone) = self.find_public_zone(domain).await? else {
            return Ok(());
        };
        let name = format!("*.apps.{}", domain.cluster());
        let call = Call::route53("ListResourceRecordSets")
            .with("Id", &zone)
            .with("name", &name)
            .with("type", "A");
        let response = self.calls.call(&call).await?;
        let records = response.items("ResourceRecordSets").iter();
        for record in records.filter(|it| has_name(it, &name) && it.text_at("Type") == "A") {
            self.delete_record(&zone, record).await?;
        }
        Ok(())
    }

    pub(super) async fn delete_record(&self, zone: &str, record: &Element) -> Result<(), Error> {
        let call = Call::route53("ChangeResourceRecordSets")
            .with("Id", zone)
            .with("Action", "DELETE")
            .with("Record", record.to_string());
        self.calls.call(&call).await.map(drop)
    }

    /// Services that the operator has made for nodes of private clusters.
    async fn delete_endpoint_services(&self, pass: &mut Pass) {
        let tag = format!("tag:{}", self.scope.cluster_tag());
        let call = Call::ec2("DescribeVpcEndpointServiceConfigurations").filter(&tag, "owned");
        let response = self.calls.call(&call).await;
        let ids = response.map(|response| {
            let services = response.items("serviceConfigurationSet").iter();
            let owned = services.filter(|it| self.is_owned(it));
            let ids = owned.map(|it| it.text_at("serviceId").to_owned());
            ids.collect::<Vec<_>>()
        });
        for id in pass.listed("endpoint services", ids) {
            let deleted = self.delete_endpoint_service(&id).await;
            pass.check(&format!("endpoint service {id}"), deleted);
        }
    }

    async fn delete_endpoint_service(&self, id: &str) -> Result<(), Error> {
        let call = Call::ec2("DescribeVpcEndpointConnections").filter("service-id", id);
        let response = self.calls.call(&call).await?;
        let connections = response.items("vpcEndpointConnectionSet").iter();
        let open = connections.filter(|it| {
            let state = it.text_at("vpcEndpointState").to_ascii_lowercase();
            ["pendingacceptance", "pending", "available"].contains(&state.as_str())
        });
        let open: Vec<_> = open.map(|it| it.text_at("vpcEndpointId")).collect();
        if !open.is_empty() {
            let call = Call::ec2("RejectVpcEndpointConnections")
                .with("ServiceId", id)
                .list("VpcEndpointId", open);
            self.calls.call(&call).await?;
        }
        let call = Call::ec2("DeleteVpcEndpointServiceConfigurations").list("ServiceId", [id]);
        let response = self.calls.call(&call).await?;
        refused_item(&call, &response)
    }
}

/// Calls for several items succeed, and say in the response which items they refuse.
pub(super) fn refused_item(call: &Call, response: &Element) -> Result<(), Error> {
    let Some(refused) = response.items("unsuccessful").first() else {
        return Ok(());
    };
    Err(Error::Refused {
        what: call.action.to_owned(),
        status: 400,
        code: refused.text_at("error/code").to_owned(),
        message: refused.text_at("error/message").to_owned(),
    })
}
