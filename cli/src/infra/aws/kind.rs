//! Kinds of resources of EC2: how they are found, created and deleted. Pure.

use support::aws::Element;

use super::call::{Call, Tags};
use super::scope::Scope;

/// A kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Vpc,
    DhcpOptions,
    InternetGateway,
    Subnet,
    Address,
    NatGateway,
    RouteTable,
    VpcEndpoint,
    SecurityGroup,
    KeyPair,
}

/// What calls of a kind are like.
#[derive(Debug, Clone, Copy)]
struct Facts {
    noun: &'static str,
    describe: &'static str,
    /// The element with the items.
    set: &'static str,
    /// The element with the identifier of an item.
    id: &'static str,
    /// The parameter with the identifier.
    parameter: &'static str,
    create: &'static str,
    /// Where the response of a creation has the identifier.
    created: &'static str,
    tagged: &'static str,
    delete: &'static str,
}

impl Kind {
    #[cfg(test)]
    pub(crate) const ALL: [Self; 10] = [
        Self::Vpc,
        Self::DhcpOptions,
        Self::InternetGateway,
        Self::Subnet,
        Self::Address,
        Self::NatGateway,
        Self::RouteTable,
        Self::VpcEndpoint,
        Self::SecurityGroup,
        Self::KeyPair,
    ];

    #[rustfmt::skip]
    fn facts(self) -> Facts {
        let facts = |[noun, describe, set, id, parameter, create, created, tagged, delete]: [&'static str; 9]| Facts {
            noun, describe, set, id, parameter, create, created, tagged, delete,
        };
        facts(match self {
            Self::Vpc => ["VPC", "DescribeVpcs", "vpcSet", "vpcId", "VpcId", "CreateVpc", "vpc/vpcId", "vpc", "DeleteVpc"],
            Self::DhcpOptions => [
                "DHCP options", "DescribeDhcpOptions", "dhcpOptionsSet", "dhcpOptionsId", "DhcpOptionsId",
                "CreateDhcpOptions", "dhcpOptions/dhcpOptionsId", "dhcp-options", "DeleteDhcpOptions",
            ],
            Self::InternetGateway => [
                "internet gateway", "DescribeInternetGateways", "internetGatewaySet", "internetGatewayId",
                "InternetGatewayId", "CreateInternetGateway", "internetGateway/internetGatewayId", "internet-gateway",
                "DeleteInternetGateway",
            ],
            Self::Subnet => [
                "subnet", "DescribeSubnets", "subnetSet", "subnetId", "SubnetId", "CreateSubnet", "subnet/subnetId",
                "subnet", "DeleteSubnet",
            ],
            Self::Address => [
                "elastic IP address", "DescribeAddresses", "addressesSet", "allocationId", "AllocationId",
                "AllocateAddress", "allocationId", "elastic-ip", "ReleaseAddress",
            ],
            Self::NatGateway => [
                "NAT gateway", "DescribeNatGateways", "natGatewaySet", "natGatewayId", "NatGatewayId",
                "CreateNatGateway", "natGateway/natGatewayId", "natgateway", "DeleteNatGateway",
            ],
            Self::RouteTable => [
                "route table", "DescribeRouteTables", "routeTableSet", "routeTableId", "RouteTableId",
                "CreateRouteTable", "routeTable/routeTableId", "route-table", "DeleteRouteTable",
            ],
            Self::VpcEndpoint => [
                "VPC endpoint", "DescribeVpcEndpoints", "vpcEndpointSet", "vpcEndpointId", "VpcEndpointId",
                "CreateVpcEndpoint", "vpcEndpoint/vpcEndpointId", "vpc-endpoint", "DeleteVpcEndpoints",
            ],
            Self::SecurityGroup => [
                "security group", "DescribeSecurityGroups", "securityGroupInfo", "groupId", "GroupId",
                "CreateSecurityGroup", "groupId", "security-group", "DeleteSecurityGroup",
            ],
            Self::KeyPair => [
                "key pair", "DescribeKeyPairs", "keySet", "keyPairId", "KeyPairId", "ImportKeyPair", "keyPairId", "key-pair",
                "DeleteKeyPair",
            ],
        })
    }

    /// What responses call a set of items and the identifier of one, where that of a creation has it, and how one is created.
    #[cfg(test)]
    pub(crate) fn spelling(self) -> [&'static str; 4] {
        let facts = self.facts();
        [facts.set, facts.id, facts.created, facts.create]
    }

    /// What it is called in messages.
    pub(crate) fn noun(self) -> &'static str {
        self.facts().noun
    }

    /// The identifier of an item.
    pub(crate) fn id(self, item: &Element) -> &str {
        item.text_at(self.facts().id)
    }

    /// The parameter with an identifier.
    pub(crate) fn parameter(self) -> &'static str {
        self.facts().parameter
    }

    /// The items of a response.
    pub(crate) fn items(self, response: &Element) -> &[Element] {
        response.items(self.facts().set)
    }

    /// Looks for all; filters are added.
    pub(crate) fn describe(self) -> Call {
        Call::ec2(self.facts().describe)
    }

    /// Looks for those of an infrastructure.
    pub(crate) fn owned(self, scope: &Scope) -> Call {
        self.describe()
            .filter(&format!("tag:{}", scope.cluster_tag()), "owned")
    }

    /// Looks for one by its identifier.
    pub(crate) fn one(self, id: &str) -> Call {
        self.describe().list(self.parameter(), [id])
    }

    /// Creates one with tags; parameters come before.
    pub(crate) fn create(self, parameters: &[(&str, String)], tags: &Tags) -> Call {
        let facts = self.facts();
        let call = parameters
            .iter()
            .fold(Call::ec2(facts.create), |call, (name, value)| {
                call.with(*name, value)
            });
        call.tagged(facts.tagged, tags)
    }

    /// The identifier in the response of a creation.
    pub(crate) fn created(self, response: &Element) -> &str {
        response.text_at(self.facts().created)
    }

    /// Deletes one.
    pub(crate) fn delete(self, id: &str) -> Call {
        let call = Call::ec2(self.facts().delete);
        match self {
            Self::VpcEndpoint => call.list(self.parameter(), [id]),
            _ => call.with(self.parameter(), id),
        }
    }

    /// Whether an item is or will be of use: some stay visible after their deletion.
    pub(crate) fn is_alive(self, item: &Element) -> bool {
        let state = item.text_at("state").to_ascii_lowercase();
        match self {
            Self::NatGateway | Self::VpcEndpoint => {
                !["deleting", "deleted", "failed"].contains(&state.as_str())
            }
            _ => true,
        }
    }
}
