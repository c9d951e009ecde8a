//! Deletes a VPC after all that is in it, its private hosted zones included.

use support::aws::{Element, Error};

use super::call::{Call, Calls, Service};
use super::destroy_network::{Pass, refused_item};
use super::executor::Executor;
use super::kind::Kind;

/// Records that a zone always has.
const KEPT_RECORDS: [&str; 2] = ["NS", "SOA"];
/// The security group that a VPC always has.
const DEFAULT_GROUP: &str = "default";

impl<C: Calls> Executor<'_, C> {
    /// Deletes a VPC after all that is in it; `names` are those of its private hosted zones, which are in the account `zones`.
    pub(super) async fn delete_vpc(
        &self,
        vpc: &str,
        names: &[String],
        zones: &Executor<'_, C>,
        pass: &mut Pass,
    ) {
        let before = pass.left.len();
        self.delete_load_balancers(vpc, pass).await;
        self.delete_endpoints(vpc, pass).await;
        self.delete_zones(vpc, names, zones, pass).await;
        let gateways = self.within(Kind::NatGateway, vpc).await;
        for gateway in pass.listed("NAT gateways", gateways) {
            let (id, state) = (Kind::NatGateway.id(&gateway), gateway.text_at("state"));
            if state == "deleted" || state == "failed" {
                continue;
            }
            if state != "deleting" {
                self.delete(Kind::NatGateway, id, pass).await;
            }
            pass.note(format!("NAT gateway {id}: deleting"));
        }
        // The rest is refused as long as one of these is there.
        if pass.left.len() > before {
            return;
        }
        self.delete_internet_gateways(vpc, pass).await;
        self.delete_route_tables(vpc, pass).await;
        self.delete_security_groups(vpc, pass).await;
        let subnets = self.within(Kind::Subnet, vpc).await;
        for subnet in pass.listed("subnets", subnets) {
            self.delete(Kind::Subnet, Kind::Subnet.id(&subnet), pass)
                .await;
        }
        if pass.left.len() == before {
            self.delete(Kind::Vpc, vpc, pass).await;
        }
    }

    pub(super) async fn delete_load_balancers(&self, vpc: &str, pass: &mut Pass) {
        for service in [Service::Elb, Service::ElbV2] {
            let (list, set, parameter) = match service {
                Service::Elb => ("LoadBalancerDescriptions", "VPCId", "LoadBalancerName"),
                _ => ("LoadBalancers", "VpcId", "LoadBalancerArn"),
            };
            let balancers = self.pages(service, "DescribeLoadBalancers", list).await;
            for balancer in pass.listed("load balancers", balancers) {
                if balancer.text_at(set) != vpc {
                    continue;
                }
                let id = balancer.text_at(parameter);
                let call = Call::new(service, "DeleteLoadBalancer").with(parameter, id);
                let deleted = self.calls.call(&call).await;
                pass.check(&format!("load balancer {id}"), deleted.map(drop));
                pass.note(format!("load balancer {id}: deleting"));
            }
        }
        let groups = self
            .pages(Service::ElbV2, "DescribeTargetGroups", "TargetGroups")
            .await;
        for group in pass.listed("target groups", groups) {
            if group.text_at("VpcId") != vpc {
                continue;
            }
            let arn = group.text_at("TargetGroupArn");
            let call = Call::new(Service::ElbV2, "DeleteTargetGroup").with("TargetGroupArn", arn);
            let deleted = self.calls.call(&call).await;
            pass.check(&format!("target group {arn}"), deleted.map(drop));
        }
    }

    /// All items of a list of load balancers.
    async fn pages(
        &self,
        service: Service,
        action: &'static str,
        list: &str,
    ) -> Result<Vec<Element>, Error> {
        let mut items = Vec::new();
        let mut call = Call::new(service, action);
        loop {
            let response = self.calls.call(&call).await?;
            let Some(result) = response.at(&format!("{action}Result")) else {
                return Ok(items);
            };
            items.extend_from_slice(result.items(list));
            match result.text_at("NextMarker") {
                "" => return Ok(items),
                marker => call = Call::new(service, action).with("Marker", marker),
            }
        }
    }

    async fn delete_endpoints(&self, vpc: &str, pass: &mut Pass) {
        let endpoints = self.within(Kind::VpcEndpoint, vpc).await;
        for endpoint in pass.listed("VPC endpoints", endpoints) {
            let id = Kind::VpcEndpoint.id(&endpoint);
            if endpoint.text_at("state").eq_ignore_ascii_case("deleted") {
                continue;
            }
            let call = Kind::VpcEndpoint.delete(id);
            let deleted = match self.calls.call(&call).await {
                Ok(response) => refused_item(&call, &response),
                Err(error) => Err(error),
            };
            pass.check(&format!("VPC endpoint {id}"), deleted);
            pass.note(format!("VPC endpoint {id}: deleting"));
        }
    }

    async fn delete_zones(
        &self,
        vpc: &str,
        names: &[String],
        account: &Executor<'_, C>,
        pass: &mut Pass,
    ) {
        // Only the account of the VPC may list them.
        let zones = self.zones_of_vpc(vpc).await;
        for (id, name) in pass.listed("private hosted zones", zones) {
            let deleted = account.delete_zone(&id, names.contains(&name)).await;
            pass.check(&format!("private hosted zone {name} ({id})"), deleted);
        }
    }

    /// Others may have associated their zones with the VPC. One without a tag of any cluster is ours if it has the name of
    /// one: its creation was interrupted.
    async fn delete_zone(&self, id: &str, is_named: bool) -> Result<(), Error> {
        let is_ours = match self.zone_tags(id).await {
            Ok(tags) => self.scope.owns(&tags) || is_named && self.scope.may_change(&tags),
            // Tags of zones in other accounts cannot be read.
            Err(error) if error.is_denied() && !is_named => false,
            Err(error) => return Err(error),
        };
        if !is_ours {
            return Ok(());
        }
        let mut call = Call::route53("ListResourceRecordSets").with("Id", id);
        loop {
            let response = self.calls.call(&call).await?;
            let records = response.items("ResourceRecordSets").iter();
            for record in records.filter(|it| !KEPT_RECORDS.contains(&it.text_at("Type"))) {
                self.delete_record(id, record).await?;
            }
            if response.text_at("IsTruncated") != "true" {
                break;
            }
            call = Call::route53("ListResourceRecordSets")
                .with("Id", id)
                .with("name", response.text_at("NextRecordName"))
                .with("type", response.text_at("NextRecordType"));
        }
        let call = Call::route53("DeleteHostedZone").with("Id", id);
        self.calls.call(&call).await.map(drop)
    }

    async fn delete_internet_gateways(&self, vpc: &str, pass: &mut Pass) {
        let kind = Kind::InternetGateway;
        let gateways = self.within(kind, vpc).await;
        for gateway in pass.listed("internet gateways", gateways) {
            let id = kind.id(&gateway);
            let call = Call::ec2("DetachInternetGateway")
                .with("InternetGatewayId", id)
                .with("VpcId", vpc);
            let detached = self.calls.call(&call).await;
            let detached = detached.map(drop).or_else(|error| match error.code() {
                "Gateway.NotAttached" => Ok(()),
                _ => Err(error),
            });
            let is_detached = detached.is_ok();
            pass.check(&format!("internet gateway {id}"), detached);
            if is_detached {
                self.delete(kind, id, pass).await;
            }
        }
    }

    async fn delete_route_tables(&self, vpc: &str, pass: &mut Pass) {
        let kind = Kind::RouteTable;
        let tables = self.within(kind, vpc).await;
        for table in pass.listed("route tables", tables) {
            let id = kind.id(&table);
            let associations = table.items("associationSet").iter();
            let (main, others): (Vec<_>, Vec<_>) =
                associations.partition(|it| it.text_at("main") == "true");
            for association in others {
                let association = association.text_at("routeTableAssociationId");
                let call = Call::ec2("DisassociateRouteTable").with("AssociationId", association);
                let disassociated = self.calls.call(&call).await;
                pass.check(&format!("route table {id}"), disassociated.map(drop));
            }
            // The main one goes with the VPC.
            if main.is_empty() {
                self.delete(kind, id, pass).await;
            }
        }
    }

    /// Groups may refer to each other: their rules are deleted first.
    pub(super) async fn delete_security_groups(&self, vpc: &str, pass: &mut Pass) {
        let kind = Kind::SecurityGroup;
        let groups = self.within(kind, vpc).await;
        let groups = pass.listed("security groups", groups);
        for group in &groups {
            for (set, action) in [
                ("ipPermissions", "RevokeSecurityGroupIngress"),
                ("ipPermissionsEgress", "RevokeSecurityGroupEgress"),
            ] {
                let is_default = group.text_at("groupName") == DEFAULT_GROUP;
                if group.items(set).is_empty() || is_default && set == "ipPermissionsEgress" {
                    continue;
                }
                let call = permissions(
                    Call::ec2(action).with("GroupId", kind.id(group)),
                    group,
                    set,
                );
                let revoked = self.calls.call(&call).await;
                pass.check(
                    &format!("security group {}", kind.id(group)),
                    revoked.map(drop),
                );
            }
        }
        for group in &groups {
            if group.text_at("groupName") == DEFAULT_GROUP {
                continue;
            }
            self.delete(kind, kind.id(group), pass).await;
        }
    }
}

/// The permissions of a group, as parameters.
fn permissions(mut call: Call, group: &Element, set: &str) -> Call {
    for (at, permission) in group.items(set).iter().enumerate() {
        let prefix = format!("IpPermissions.{}", at + 1);
        for (element, parameter) in [
            ("ipProtocol", "IpProtocol"),
            ("fromPort", "FromPort"),
            ("toPort", "ToPort"),
        ] {
            let value = permission.text_at(element);
            if !value.is_empty() {
                call = call.with(format!("{prefix}.{parameter}"), value);
            }
        }
        for (list, parameter, element, field) in [
            ("groups", "Groups", "groupId", "GroupId"),
            ("ipRanges", "IpRanges", "cidrIp", "CidrIp"),
            ("ipv6Ranges", "Ipv6Ranges", "cidrIpv6", "CidrIpv6"),
            (
                "prefixListIds",
                "PrefixListIds",
                "prefixListId",
                "PrefixListId",
            ),
        ] {
            for (at, item) in permission.items(list).iter().enumerate() {
                let name = format!("{prefix}.{parameter}.{}.{field}", at + 1);
                call = call.with(name, item.text_at(element));
            }
        }
    }
    call
}
