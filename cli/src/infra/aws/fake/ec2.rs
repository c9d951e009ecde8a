//! Networks of the fake.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use support::aws::Error;

use super::{Account, State, refused, tags_xml, xml};
use crate::infra::aws::call::{Call, Tags};
use crate::infra::aws::kind::Kind;

/// A resource of EC2.
#[derive(Debug, Clone)]
pub(in crate::infra::aws) struct Item {
    pub(in crate::infra::aws) kind: Kind,
    pub(in crate::infra::aws) account: Account,
    pub(in crate::infra::aws) tags: Tags,
    /// The tags that it has in the other account, if it is shared.
    pub(in crate::infra::aws) other_tags: Tags,
    /// By the names of their elements.
    fields: BTreeMap<&'static str, String>,
    /// Gateways by destination, of a route table.
    routes: BTreeMap<String, String>,
    /// Subnets of a route table, route tables or subnets of an endpoint, the VPC of a gateway, ports and address ranges that a
    /// group lets in.
    members: BTreeSet<String>,
}

impl Item {
    /// A name that is the same in each run.
    pub(super) fn label(&self) -> String {
        let name = self.tags.get("Name").cloned().unwrap_or_default();
        format!("{:?}:{name}", self.kind)
    }

    fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }

    /// As a user may leave a route table.
    pub(in crate::infra::aws) fn clear_routes(&mut self) {
        self.routes.clear();
    }

    fn uses(&self, id: &str) -> bool {
        let is_there = !["deleted", "deleting"].contains(&self.field("state"));
        let fields = self.fields.values().any(|it| it == id);
        is_there && (fields || self.members.contains(id))
    }

    fn tags_of(&self, account: Account) -> &Tags {
        if account == self.account {
            &self.tags
        } else {
            &self.other_tags
        }
    }

    fn xml(&self, id: &str, account: Account) -> String {
        let [_, id_element, ..] = self.kind.spelling();
        let mut text = xml(id_element, id);
        text.extend(self.fields.iter().map(|(name, value)| xml(name, value)));
        let members = self.members.iter();
        match self.kind {
            Kind::InternetGateway => {
                let members = members.map(|vpc| xml("item", &xml("vpcId", vpc)));
                text.push_str(&xml("attachmentSet", &members.collect::<String>()));
            }
            Kind::SecurityGroup => {
                let rule = |rule: &String| {
                    let (port, cidr) = rule.split_once(' ').unwrap();
                    let range = xml("item", &xml("cidrIp", cidr));
                    let port = [xml("fromPort", port), xml("toPort", port)].concat();
                    let protocol = xml("ipProtocol", "tcp");
                    xml("item", &[protocol, port, xml("ipRanges", &range)].concat())
                };
                text.push_str(&xml(
                    "ipPermissions",
                    &members.map(rule).collect::<String>(),
                ));
            }
            Kind::RouteTable => {
                let routes = self.routes.iter().map(|(destination, gateway)| {
                    let element = match gateway.split('-').next() {
                        Some("nat") => "natGatewayId",
                        _ => "gatewayId",
                    };
                    let destination = xml("destinationCidrBlock", destination);
                    xml("item", &format!("{destination}{}", xml(element, gateway)))
                });
                text.push_str(&xml("routeSet", &routes.collect::<String>()));
                let associations = members.map(|subnet| {
                    let id = xml("routeTableAssociationId", &format!("assoc:{id}:{subnet}"));
                    let of = match subnet.as_str() {
                        "main" => xml("main", "true"),
                        subnet => xml("subnetId", subnet),
                    };
                    xml("item", &format!("{id}{of}"))
                });
                text.push_str(&xml("associationSet", &associations.collect::<String>()));
            }
            _ => {
                let members = members.map(|member| xml("item", member));
                text.push_str(&xml("routeTableIdSet", &members.collect::<String>()));
                let name = xml("item", &xml("dnsName", "vpce-1.example.com"));
                text.push_str(&xml("dnsEntrySet", &name));
            }
        }
        text.push_str(&xml(
            "tagSet",
            &tags_xml(self.tags_of(account), "item", "key", "value"),
        ));
        xml("item", &text)
    }

    fn matches(&self, name: &str, value: &str, account: Account) -> bool {
        match name.strip_prefix("tag:") {
            Some(key) => self.tags_of(account).get(key).is_some_and(|it| it == value),
            None => match name {
                "vpc-id" => self.field("vpcId") == value,
                "attachment.vpc-id" => self.members.contains(value),
                "association.main" => self.members.contains("main"),
                _ => false,
            },
        }
    }
}

impl State {
    pub(super) fn pass_time(&mut self) {
        self.new.clear();
        self.pass_time_of_shares();
        for item in self.items.values_mut() {
            if item.kind == Kind::NatGateway && item.field("state") == "deleting" {
                item.fields.insert("state", "deleted".to_owned());
            }
        }
        self.pass_time_of_instances();
        // AWS shows them for an hour; endpoints are gone at once.
        self.items
            .retain(|_, it| it.kind != Kind::VpcEndpoint || it.field("state") != "deleting");
    }

    pub(super) fn ec2(&mut self, call: &Call) -> Result<String, Error> {
        for kind in Kind::ALL {
            if call.action == kind.describe().action {
                return self.describe(kind, call);
            }
            if call.action == kind.spelling()[3] {
                self.check_name(kind, call)?;
                return Ok(self.create(kind, call));
            }
            if call.action == kind.delete("").action {
                return self.delete(kind, call);
            }
        }
        match call.action {
            "DescribeAvailabilityZones" => Ok(xml(
                "availabilityZoneInfo",
                &xml("item", &xml("zoneName", "us-east-1a")),
            )),
            "CreateTags" => {
                let tags = call.tags_of("Tag");
                let id = call.get("ResourceId.1");
                if self.is_shared_with_caller(id) {
                    if let Some(shared) = self.items.get_mut(id) {
                        shared.other_tags.extend(tags);
                    }
                    return Ok(String::new());
                }
                self.item(call, id)?.tags.extend(tags);
                Ok(String::new())
            }
            "ModifyVpcAttribute" => self.set(call, "VpcId", &call.parameters[1].0, "true"),
            "AssociateDhcpOptions" => {
                let options = call.get("DhcpOptionsId").to_owned();
                self.set(call, "VpcId", "dhcpOptionsId", &options)
            }
            "AttachInternetGateway" => {
                let vpc = call.get("VpcId").to_owned();
                let gateway = self.item(call, call.get("InternetGatewayId"))?;
                if !gateway.members.insert(vpc) {
                    return Err(refused(call, 400, "Resource.AlreadyAssociated"));
                }
                Ok(String::new())
            }
            "DetachInternetGateway" => self.detach(call),
            "CreateRoute" | "ReplaceRoute" => {
                let gateway = [call.get("NatGatewayId"), call.get("GatewayId")].concat();
                let table = self.item(call, call.get("RouteTableId"))?;
                let destination = call.get("DestinationCidrBlock").to_owned();
                if table.routes.insert(destination, gateway).is_some()
                    && call.action == "CreateRoute"
                {
                    return Err(refused(call, 400, "RouteAlreadyExists"));
                }
                Ok(String::new())
            }
            "AssociateRouteTable" => {
                let subnet = call.get("SubnetId").to_owned();
                self.item(call, &subnet)?;
                if self
                    .items
                    .values()
                    .any(|it| it.kind == Kind::RouteTable && it.members.contains(&subnet))
                {
                    return Err(refused(call, 400, "Resource.AlreadyAssociated"));
                }
                let table = self.item(call, call.get("RouteTableId"))?;
                table.members.insert(subnet);
                Ok(String::new())
            }
            "ReplaceRouteTableAssociation" => {
                let member = self.disassociate(call)?;
                let table = self.item(call, call.get("RouteTableId"))?;
                table.members.insert(member);
                Ok(String::new())
            }
            "DisassociateRouteTable" => self.disassociate(call).map(|_| String::new()),
            "ModifyVpcEndpoint" => {
                let tables: Vec<_> = call
                    .values("AddRouteTableId")
                    .iter()
                    .map(|it| (*it).to_owned())
                    .collect();
                let endpoint = self.item(call, call.get("VpcEndpointId"))?;
                endpoint.members.extend(tables);
                Ok(String::new())
            }
            "DescribeLaunchTemplates" => {
                let templates = self.templates.iter().map(|(id, tags)| {
                    let tags = xml("tagSet", &tags_xml(tags, "item", "key", "value"));
                    xml("item", &(xml("launchTemplateId", id) + &tags))
                });
                Ok(xml("launchTemplates", &templates.collect::<String>()))
            }
            "DeleteLaunchTemplate" => {
                let found = self.templates.remove(call.get("LaunchTemplateId"));
                let found = found.map(|_| String::new());
                found.ok_or_else(|| refused(call, 400, "InvalidLaunchTemplateId.NotFound"))
            }
            "AuthorizeSecurityGroupIngress" => {
                let cidr = call.get("IpPermissions.1.IpRanges.1.CidrIp");
                let cidr = format!("{} {cidr}", call.get("IpPermissions.1.FromPort"));
                let group = self.item(call, call.get("GroupId"))?;
                if !group.members.insert(cidr) {
                    return Err(refused(call, 400, "InvalidPermission.Duplicate"));
                }
                Ok(String::new())
            }
            "RevokeSecurityGroupIngress" => {
                self.item(call, call.get("GroupId"))?.members.clear();
                Ok(String::new())
            }
            // No test has endpoint services.
            _ => self.instance_call(call),
        }
    }

    fn item(&mut self, call: &Call, id: &str) -> Result<&mut Item, Error> {
        let caller = self.caller;
        let found = self.items.get_mut(id).filter(|it| it.account == caller);
        found.ok_or_else(|| refused(call, 400, "InvalidID.NotFound"))
    }

    fn set(&mut self, call: &Call, id: &str, name: &str, value: &str) -> Result<String, Error> {
        let name = match name {
            "EnableDnsSupport.Value" => "enableDnsSupport",
            "EnableDnsHostnames.Value" => "enableDnsHostnames",
            _ => "dhcpOptionsId",
        };
        let item = self.item(call, call.get(id))?;
        item.fields.insert(name, value.to_owned());
        Ok(String::new())
    }

    /// Names of security groups and of key pairs are taken once.
    fn check_name(&self, kind: Kind, call: &Call) -> Result<(), Error> {
        let (parameter, field, code) = match kind {
            Kind::SecurityGroup => ("GroupName", "groupName", "InvalidGroup.Duplicate"),
            Kind::KeyPair => ("KeyName", "keyName", "InvalidKeyPair.Duplicate"),
            _ => return Ok(()),
        };
        let name = call.get(parameter);
        let mut others = self.items.values().filter(|it| it.kind == kind);
        if !name.is_empty() && others.any(|it| it.field(field) == name) {
            return Err(refused(call, 400, code));
        }
        Ok(())
    }

    /// The VPC of a subnet.
    pub(super) fn vpc_of(&self, subnet: &str) -> String {
        let subnet = self.items.get(subnet);
        subnet.map_or_else(String::new, |it| it.field("vpcId").to_owned())
    }

    fn describe(&self, kind: Kind, call: &Call) -> Result<String, Error> {
        let ids = call.values(kind.parameter());
        let caller = self.caller;
        let is_visible = |id: &str| {
            let item = self.items.get(id);
            item.is_some_and(|it| it.account == caller) || self.is_shared_with_caller(id)
        };
        if ids.iter().any(|id| !is_visible(id)) {
            let code = format!("Invalid{kind:?}ID.NotFound");
            return Err(refused(call, 400, &code));
        }
        let filters: Vec<_> = (1..=call.parameters.len())
            .map(|at| {
                (
                    call.get(&format!("Filter.{at}.Name")),
                    call.get(&format!("Filter.{at}.Value.1")),
                )
            })
            .take_while(|(name, _)| !name.is_empty())
            .collect();
        let found = self.items.iter().filter(|(id, item)| {
            item.kind == kind
                && is_visible(id)
                && (ids.is_empty() || ids.contains(&id.as_str()))
                && filters
                    .iter()
                    .all(|(name, value)| item.matches(name, value, caller))
        });
        let text: String = found.map(|(id, item)| item.xml(id, caller)).collect();
        Ok(xml(kind.spelling()[0], &text))
    }

    fn create(&mut self, kind: Kind, call: &Call) -> String {
        let mut item = Item {
            kind,
            account: self.caller,
            other_tags: Tags::new(),
            tags: call.tags_of("TagSpecification.1.Tag"),
            fields: BTreeMap::new(),
            routes: BTreeMap::new(),
            members: call
                .values("RouteTableId")
                .iter()
                .map(|it| (*it).to_owned())
                .collect(),
        };
        for (parameter, element) in [
            ("VpcId", "vpcId"),
            ("CidrBlock", "cidrBlock"),
            ("AvailabilityZone", "availabilityZone"),
            ("SubnetId", "subnetId"),
            ("AllocationId", "allocationId"),
            ("ServiceName", "serviceName"),
            ("GroupName", "groupName"),
            ("KeyName", "keyName"),
            ("DhcpConfiguration.1.Value.1", "domain"),
        ] {
            if !call.get(parameter).is_empty() {
                item.fields.insert(element, call.get(parameter).to_owned());
            }
        }
        if call.get("VpcEndpointType") == "Interface" {
            let used = ["SubnetId", "SecurityGroupId"].map(|list| call.values(list));
            let used = used.concat();
            item.members = used.into_iter().map(str::to_owned).collect();
            item.fields.insert("state", "available".to_owned());
        }
        if kind == Kind::KeyPair {
            let key = STANDARD.decode(call.get("PublicKeyMaterial")).unwrap();
            let key = format!(
                "{} {}",
                String::from_utf8(key).unwrap(),
                call.get("KeyName")
            );
            item.fields.insert("publicKey", key);
        }
        if kind == Kind::NatGateway {
            let vpc = self.vpc_of(call.get("SubnetId"));
            item.fields.insert("vpcId", vpc);
            item.fields.insert("state", "available".to_owned());
        }
        let prefix = match kind {
            Kind::NatGateway => "nat",
            Kind::InternetGateway => "igw",
            _ => "id",
        };
        let id = self.id(prefix);
        if kind == Kind::Vpc {
            item.fields.insert("vpcId", id.clone());
            self.add_main_table(&id);
        }
        self.items.insert(id.clone(), item);
        let path = kind.spelling()[2].split('/').rev();
        path.fold(id, |text, element| xml(element, &text))
    }

    /// Each VPC has one.
    fn add_main_table(&mut self, vpc: &str) {
        let id = self.id("id");
        let table = Item {
            kind: Kind::RouteTable,
            account: self.caller,
            tags: Tags::new(),
            other_tags: Tags::new(),
            fields: BTreeMap::from([("vpcId", vpc.to_owned())]),
            routes: BTreeMap::new(),
            members: BTreeSet::from(["main".to_owned()]),
        };
        self.items.insert(id, table);
    }

    fn detach(&mut self, call: &Call) -> Result<String, Error> {
        let vpc = call.get("VpcId").to_owned();
        let has_addresses = self.items.values().any(|it| {
            it.kind == Kind::NatGateway
                && it.field("vpcId") == vpc
                && it.field("state") != "deleted"
        });
        if has_addresses || self.has_instances(&vpc) {
            return Err(refused(call, 400, "DependencyViolation"));
        }
        let gateway = self.item(call, call.get("InternetGatewayId"))?;
        if !gateway.members.remove(&vpc) {
            return Err(refused(call, 400, "Gateway.NotAttached"));
        }
        Ok(String::new())
    }

    /// Ends an association, and returns what was associated.
    fn disassociate(&mut self, call: &Call) -> Result<String, Error> {
        let absent = || refused(call, 400, "InvalidAssociationID.NotFound");
        let association = call.get("AssociationId").to_owned();
        let mut parts = association.split(':').skip(1);
        let (table, member) = parts.next().zip(parts.next()).ok_or_else(absent)?;
        let table = self.items.get_mut(table).ok_or_else(absent)?;
        if table.members.remove(member) {
            return Ok(member.to_owned());
        }
        Err(absent())
    }

    fn delete(&mut self, kind: Kind, call: &Call) -> Result<String, Error> {
        let id = match kind {
            Kind::VpcEndpoint => call.get("VpcEndpointId.1"),
            kind => call.get(kind.parameter()),
        };
        let absent = |_| refused(call, 400, &format!("Invalid{kind:?}ID.NotFound"));
        let item = self.item(call, id).map_err(absent)?;
        if matches!(kind, Kind::NatGateway | Kind::VpcEndpoint) {
            item.fields.insert("state", "deleting".to_owned());
            return Ok(String::new());
        }
        let is_bound = match kind {
            Kind::RouteTable | Kind::InternetGateway => !item.members.is_empty(),
            _ => false,
        };
        let has_instances = self.has_instances(id) || self.is_shared(id);
        let mut others = self.items.iter().filter(|(other, _)| *other != id);
        let is_used = match kind {
            _ if has_instances => true,
            // Its main route table goes with it.
            Kind::Vpc => others.any(|(_, it)| it.uses(id) && !it.members.contains("main")),
            Kind::Address => others.any(|(_, it)| {
                it.kind == Kind::NatGateway
                    && it.field("allocationId") == id
                    && it.field("state") != "deleted"
            }),
            Kind::RouteTable => false,
            _ => others.any(|(_, it)| it.uses(id)),
        };
        if is_bound || is_used {
            return Err(refused(call, 400, "DependencyViolation"));
        }
        self.items.remove(id);
        if kind == Kind::Vpc {
            self.items
                .retain(|_, it| it.kind != Kind::RouteTable || it.field("vpcId") != id);
        }
        Ok(String::new())
    }
}
