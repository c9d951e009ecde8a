//! AWS as it is asked, in the role of the control-plane-operator: requests of EC2 and of Route 53.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::hypershift::v1beta1::HostedControlPlane;
use http::Method;
use support::aws::{Client, EC2, Element, Error, ROUTE53, Rest, encoded};
use support::ec2::{self, Call, Tags};
use support::xml::escaped;

use super::cloud::{
    Action, Change, Cloud, Endpoint, Group, NewEndpoint, Record, Rule, Subnet, Zone,
};
use super::plan::Problem;
use crate::hosted_control_plane::aws::access::{Access, NoAccess, Role};

const ZONES: &str = "/2013-04-01/hostedzone";
const NAMESPACE: &str = "https://route53.amazonaws.com/doc/2013-04-01/";
const DESCRIPTION: &str = "VPC endpoint security group";
/// The longest list of zones, in pages.
const PAGES: usize = 1000;

/// AWS. Where the VPC is another account's, its networks and its names have roles of their own.
pub(super) struct Aws {
    networks: Arc<Client>,
    names: Arc<Client>,
}

// === impl Aws ===

impl Aws {
    /// AWS, in the roles of the cluster.
    pub(super) async fn of(hcp: &HostedControlPlane, access: &mut Access) -> Result<Self, Problem> {
        let Some(aws) = &hcp.spec.platform.aws else {
            return Err(Problem::Input(
                "spec.platform.aws is required: set it".to_owned(),
            ));
        };
        let role = Role::of_operator(aws);
        let shared = aws.shared_vpc.as_ref().map(|it| &it.roles_ref);
        let networks = shared.map(|it| it.control_plane_arn.as_str());
        let networks = access.client(&role, networks).await.map_err(no_access)?;
        let names = shared.map(|it| it.ingress_arn.as_str());
        let names = access.client(&role, names).await.map_err(no_access)?;
        Ok(Self { networks, names })
    }

    async fn zone_list(&self, first: &Rest, action: &str) -> Result<Vec<Element>, Error> {
        let mut pages = Vec::new();
        let mut rest = first.clone();
        for _ in 0..PAGES {
            let page = self.rest(action, &rest).await?;
            // One list is in pages by a marker, the other one by a token.
            let next = [("NextMarker", "marker"), ("NextToken", "nexttoken")];
            let next = next.map(|(field, name)| (name, page.text_at(field).to_owned()));
            pages.push(page);
            let Some((name, value)) = next.into_iter().find(|(_, value)| !value.is_empty()) else {
                return Ok(pages);
            };
            let separator = if first.query.is_empty() { "" } else { "&" };
            rest.query = format!("{}{separator}{name}={}", first.query, encoded(&value));
        }
        Err(unexpected(action, "it does not end"))
    }

    async fn rest(&self, action: &str, rest: &Rest) -> Result<Element, Error> {
        let sent = self.names.rest(&ROUTE53, action, rest, true).await?;
        Element::parse(&sent).ok_or_else(|| unexpected(action, "it is no document"))
    }
}

impl Cloud for Aws {
    async fn subnets(&self, ids: &[String]) -> Result<Vec<Subnet>, Error> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let call = Call::new("DescribeSubnets").list("SubnetId", ids);
        let items = call.items(&self.networks, "subnetSet").await?;
        let subnets = items.iter().map(|it| Subnet {
            id: it.text_at("subnetId").to_owned(),
            zone: it.text_at("availabilityZone").to_owned(),
        });
        Ok(subnets.collect())
    }

    async fn group(&self, name: &str, vpc: &str) -> Result<Option<Group>, Error> {
        let call = Call::new("DescribeSecurityGroups")
            .filter("group-name", name)
            .filter("vpc-id", vpc);
        let items = call.items(&self.networks, "securityGroupInfo").await?;
        let mut named = items
            .iter()
            .filter(|it| it.text_at("groupName") == name && it.text_at("vpcId") == vpc);
        Ok(named.next().map(group))
    }

    async fn create_group(&self, name: &str, vpc: &str, tags: &Tags) -> Result<String, Error> {
        let call = Call::new("CreateSecurityGroup")
            .with("GroupName", name)
            .with("GroupDescription", DESCRIPTION)
            .with("VpcId", vpc)
            .tagged("security-group", tags);
        let response = call.write(&self.networks, &EC2).await?;
        match response.text_at("groupId") {
            "" => Err(call.unexpected("it has no ID of a security group")),
            id => Ok(id.to_owned()),
        }
    }

    async fn allow(&self, group: &str, rules: &[Rule]) -> Result<(), Error> {
        let mut call = Call::new("AuthorizeSecurityGroupIngress").with("GroupId", group);
        for (at, rule) in rules.iter().enumerate() {
            let field = |name: &str| format!("IpPermissions.{}.{name}", at + 1);
            let range = if rule.cidr.contains(':') {
                "Ipv6Ranges.1.CidrIpv6"
            } else {
                "IpRanges.1.CidrIp"
            };
            let port = rule.port.to_string();
            call = call
                .with(field("IpProtocol"), "tcp")
                .with(field("FromPort"), port.as_str())
                .with(field("ToPort"), port.as_str())
                .with(field(range), rule.cidr.as_str());
        }
        match call.read(&self.networks, &EC2).await {
            Err(error) if error.code() == "InvalidPermission.Duplicate" => Ok(()),
            allowed => allowed.map(drop),
        }
    }

    async fn delete_group(&self, id: &str) -> Result<bool, Error> {
        let call = Call::new("DeleteSecurityGroup").with("GroupId", id);
        match call.read(&self.networks, &EC2).await {
            Ok(_) => Ok(true),
            Err(error) if error.code() == "InvalidGroup.NotFound" => Ok(true),
            Err(error) if error.code() == "DependencyViolation" => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn endpoint(&self, id: &str) -> Result<Option<Endpoint>, Error> {
        let call = Call::new("DescribeVpcEndpoints").list("VpcEndpointId", [id]);
        let items = match call.items(&self.networks, "vpcEndpointSet").await {
            Err(error) if is_missing(error.code()) => return Ok(None),
            items => items?,
        };
        let mut found = items.iter().map(endpoint);
        Ok(found.find(|it| it.id == id))
    }

    async fn endpoints(&self, vpc: &str, tags: &Tags) -> Result<Vec<Endpoint>, Error> {
        let call = Call::new("DescribeVpcEndpoints").filter("vpc-id", vpc);
        let call = tags.iter().fold(call, |call, (key, value)| {
            call.filter(&format!("tag:{key}"), value)
        });
        let items = call.items(&self.networks, "vpcEndpointSet").await?;
        Ok(items.iter().map(endpoint).collect())
    }

    async fn create_endpoint(&self, new: &NewEndpoint<'_>) -> Result<Endpoint, Error> {
        let call = Call::new("CreateVpcEndpoint")
            .with("VpcEndpointType", "Interface")
            .with("VpcId", new.vpc)
            .with("ServiceName", new.service)
            .list("SubnetId", new.subnets)
            .list("SecurityGroupId", [new.group])
            .tagged("vpc-endpoint", &new.tags);
        let response = call.write(&self.networks, &EC2).await?;
        let made = response.at("vpcEndpoint").map(endpoint);
        made.filter(|it| !it.id.is_empty())
            .ok_or_else(|| call.unexpected("it has no ID of an endpoint"))
    }

    async fn modify_endpoint(&self, id: &str, change: &Change) -> Result<(), Error> {
        let call = Call::new("ModifyVpcEndpoint")
            .with("VpcEndpointId", id)
            .list("AddSubnetId", &change.added_subnets)
            .list("RemoveSubnetId", &change.removed_subnets)
            .list("AddSecurityGroupId", &change.added_groups);
        call.read(&self.networks, &EC2).await.map(drop)
    }

    async fn delete_endpoint(&self, id: &str) -> Result<(), Error> {
        let call = Call::new("DeleteVpcEndpoints").list("VpcEndpointId", [id]);
        let response = match call.read(&self.networks, &EC2).await {
            Err(error) if is_missing(error.code()) => return Ok(()),
            response => response?,
        };
        match call.refused(id, &response) {
            Some(error) if !is_missing(error.code()) => Err(error),
            Some(_) | None => Ok(()),
        }
    }

    async fn zones_of(&self, vpc: &str) -> Result<Vec<Zone>, Error> {
        let region = encoded(self.names.region());
        let query = format!("vpcid={}&vpcregion={region}", encoded(vpc));
        let rest = get("/2013-04-01/hostedzonesbyvpc".to_owned(), query);
        let pages = self.zone_list(&rest, "ListHostedZonesByVPC").await?;
        let items = pages.iter().flat_map(|it| it.items("HostedZoneSummaries"));
        Ok(items
            .map(|it| zone(it.text_at("HostedZoneId"), it))
            .collect())
    }

    async fn zones(&self) -> Result<Vec<Zone>, Error> {
        let rest = get(ZONES.to_owned(), String::new());
        let pages = self.zone_list(&rest, "ListHostedZones").await?;
        let items = pages.iter().flat_map(|it| it.items("HostedZones"));
        let private = items.filter(|it| it.text_at("Config/PrivateZone") == "true");
        Ok(private.map(|it| zone(it.text_at("Id"), it)).collect())
    }

    async fn record(&self, zone: &str, name: &str) -> Result<Option<Record>, Error> {
        let query = format!("maxitems=1&name={}&type=CNAME", encoded(name));
        let rest = get(records(zone), query);
        let response = self.rest("ListResourceRecordSets", &rest).await?;
        // The list begins with the name; what follows it is another one.
        let first = response.items("ResourceRecordSets").first();
        let found =
            first.filter(|it| bare(it.text_at("Name")) == name && it.text_at("Type") == "CNAME");
        Ok(found.map(|it| Record {
            name: name.to_owned(),
            value: it
                .text_at("ResourceRecords/ResourceRecord/Value")
                .to_owned(),
            ttl: it.text_at("TTL").parse().unwrap_or_default(),
        }))
    }

    async fn change(&self, zone: &str, action: Action, record: &Record) -> Result<(), Error> {
        let action = match action {
            Action::Upsert => "UPSERT",
            Action::Delete => "DELETE",
        };
        let body = format!(
            "<ChangeResourceRecordSetsRequest xmlns=\"{NAMESPACE}\"><ChangeBatch><Changes><Change><Action>{action}</Action>\
             <ResourceRecordSet><Name>{}</Name><Type>CNAME</Type><TTL>{}</TTL><ResourceRecords><ResourceRecord><Value>{}\
             </Value></ResourceRecord></ResourceRecords></ResourceRecordSet></Change></Changes></ChangeBatch>\
             </ChangeResourceRecordSetsRequest>",
            escaped(&record.name),
            record.ttl,
            escaped(&record.value)
        );
        let rest = Rest {
            method: Method::POST,
            path: format!("{}/", records(zone)),
            query: String::new(),
            content_type: Some("application/xml"),
            body,
        };
        self.rest("ChangeResourceRecordSets", &rest).await.map(drop)
    }
}

fn no_access(none: NoAccess) -> Problem {
    Problem::Input(match none {
        NoAccess::NoKubeconfig => {
            "waiting for the kubeconfig of the API server, which issues the tokens for AWS"
                .to_owned()
        }
        NoAccess::NoToken(problem) => {
            format!("failed to get a token for AWS from the API server: {problem}")
        }
        NoAccess::Refused(code) => format!(
            "AWS does not accept tokens of the cluster for the role in \
             spec.platform.aws.rolesRef.controlPlaneOperatorARN ({code}): see condition ValidAWSIdentityProvider"
        ),
        NoAccess::Unavailable(problem) => problem,
    })
}

fn is_missing(code: &str) -> bool {
    [
        "InvalidVpcEndpointId.NotFound",
        "InvalidVpcEndpoint.NotFound",
    ]
    .contains(&code)
}

fn unexpected(action: &str, problem: &str) -> Error {
    Error::Response {
        what: action.to_owned(),
        problem: problem.to_owned(),
    }
}

fn get(path: String, query: String) -> Rest {
    Rest {
        method: Method::GET,
        path,
        query,
        content_type: None,
        body: String::new(),
    }
}

/// The path of the records of a zone.
fn records(zone: &str) -> String {
    let id = zone.trim_start_matches("/hostedzone/");
    format!("{ZONES}/{}/rrset", encoded(id))
}

/// A name without the dot at its end; Route 53 writes a star as an octal number.
fn bare(name: &str) -> String {
    name.trim_end_matches('.').replace("\\052", "*")
}

fn zone(id: &str, item: &Element) -> Zone {
    Zone {
        id: id.trim_start_matches("/hostedzone/").to_owned(),
        name: bare(item.text_at("Name")),
    }
}

fn group(item: &Element) -> Group {
    let mut ingress = BTreeSet::new();
    for permission in item.items("ipPermissions") {
        let [from, to] = ["fromPort", "toPort"].map(|it| permission.text_at(it).parse().ok());
        let Some(port) = from.filter(|_| from == to && permission.text_at("ipProtocol") == "tcp")
        else {
            continue;
        };
        let ranges = ec2::texts(permission, "ipRanges", "cidrIp").into_iter();
        let cidrs = ranges.chain(ec2::texts(permission, "ipv6Ranges", "cidrIpv6"));
        ingress.extend(cidrs.map(|cidr| Rule { port, cidr }));
    }
    Group {
        id: item.text_at("groupId").to_owned(),
        tags: ec2::tags(item),
        ingress,
    }
}

fn endpoint(item: &Element) -> Endpoint {
    let set = |set: &str, field: &str| ec2::texts(item, set, field).into_iter();
    Endpoint {
        id: item.text_at("vpcEndpointId").to_owned(),
        vpc: item.text_at("vpcId").to_owned(),
        service: item.text_at("serviceName").to_owned(),
        state: item.text_at("state").to_owned(),
        subnets: set("subnetIdSet", "").collect(),
        groups: set("groupSet", "groupId").collect(),
        tags: ec2::tags(item),
        hosts: set("dnsEntrySet", "dnsName").collect(),
    }
}

#[cfg(test)]
mod tests;
