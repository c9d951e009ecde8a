//! Requests to EC2 about a security group.

use std::collections::BTreeSet;
use std::time::Duration;

use support::aws::{Client, EC2, Element, Error};
use support::ec2::{self, Call, Tags};
use tokio::time::sleep;

use super::{Rule, Source};

/// A new group can be described a little later.
const ATTEMPTS: u32 = 15;
const PAUSE: Duration = Duration::from_secs(2);
const DESCRIBE: &str = "DescribeSecurityGroups";
/// Codes of what has happened already.
const DUPLICATE: &str = "InvalidPermission.Duplicate";
const NOT_FOUND: &str = "InvalidGroup.NotFound";

/// Asks EC2.
pub(super) struct Ec2<'a> {
    pub(super) client: &'a Client,
}

/// A group as EC2 has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) id: String,
    /// The account that it belongs to.
    pub(super) account: String,
    pub(super) rules: BTreeSet<Rule>,
    pub(super) tags: Tags,
}

// === impl Ec2 ===

impl Ec2<'_> {
    /// The group with an ID, if it exists.
    pub(super) async fn by_id(&self, id: &str) -> Result<Option<Group>, Error> {
        let call = Call::new(DESCRIBE).list("GroupId", [id]);
        match self.describe(&call).await {
            Err(error) if error.code() == NOT_FOUND => Ok(None),
            found => found,
        }
    }

    /// The group of a cluster with a name, if it exists.
    pub(super) async fn by_tags(&self, name: &str, owned: &str) -> Result<Option<Group>, Error> {
        let call = Call::new(DESCRIBE)
            .filter(&format!("tag:{owned}"), "owned")
            .filter("tag:Name", name);
        self.describe(&call).await
    }

    /// Creates a group. If the response is lost, the group is found by its tags the next time.
    pub(super) async fn create(&self, name: &str, vpc: &str, tags: &Tags) -> Result<Group, Error> {
        let call = Call::new("CreateSecurityGroup")
            .with("GroupName", name)
            .with("GroupDescription", "default worker security group")
            .with("VpcId", vpc)
            .tagged("security-group", tags);
        let response = call.write(self.client, &EC2).await?;
        let id = response.text_at("groupId");
        if id.is_empty() {
            return Err(call.unexpected("the response of EC2 has no group"));
        }
        for _ in 0..ATTEMPTS {
            if let Some(group) = self.by_id(id).await? {
                return Ok(group);
            }
            sleep(PAUSE).await;
        }
        Err(call.unexpected("EC2 does not describe the new group yet"))
    }

    /// Adds rules.
    pub(super) async fn authorize(&self, group: &Group, rules: &[Rule]) -> Result<(), Error> {
        let call = Call::new("AuthorizeSecurityGroupIngress").with("GroupId", &group.id);
        match self.change(&with_rules(call, rules, &group.account)).await {
            Err(error) if error.code() == DUPLICATE => Ok(()),
            done => done,
        }
    }

    /// Sets tags.
    pub(super) async fn set_tags(&self, id: &str, tags: &Tags) -> Result<(), Error> {
        let call = Call::new("CreateTags").list("ResourceId", [id]);
        self.change(&call.tags("Tag", tags)).await
    }

    /// Removes tags.
    pub(super) async fn remove_tags(&self, id: &str, keys: &[String]) -> Result<(), Error> {
        let call = Call::new("DeleteTags").list("ResourceId", [id]);
        let numbered = keys.iter().zip(1_usize..);
        let call = numbered.fold(call, |call, (key, number)| {
            call.with(format!("Tag.{number}.Key"), key)
        });
        self.change(&call).await
    }

    /// Deletes a group, if it exists.
    pub(super) async fn delete(&self, id: &str) -> Result<(), Error> {
        let call = Call::new("DeleteSecurityGroup").with("GroupId", id);
        match self.change(&call).await {
            Err(error) if error.code() == NOT_FOUND => Ok(()),
            done => done,
        }
    }

    /// Sends a call that has the same effect when it is repeated.
    async fn change(&self, call: &Call) -> Result<(), Error> {
        call.read(self.client, &EC2).await.map(drop)
    }

    async fn describe(&self, call: &Call) -> Result<Option<Group>, Error> {
        Ok(read(&call.read(self.client, &EC2).await?))
    }
}

/// A call with rules, whose source is in this account if it is a group. Pure.
pub(super) fn with_rules(call: Call, rules: &[Rule], account: &str) -> Call {
    let numbered = rules.iter().zip(1_usize..);
    numbered.fold(call, |call, (rule, number)| {
        let field = |name: &str| format!("IpPermissions.{number}.{name}");
        let (from, to) = rule.ports;
        let call = call
            .with(field("IpProtocol"), &rule.protocol)
            .with(field("FromPort"), from.to_string())
            .with(field("ToPort"), to.to_string());
        match &rule.source {
            Source::Group(group) => call
                .with(field("Groups.1.GroupId"), group)
                .with(field("Groups.1.UserId"), account),
            Source::Range(range) if range.contains(':') => {
                call.with(field("Ipv6Ranges.1.CidrIpv6"), range)
            }
            Source::Range(range) => call.with(field("IpRanges.1.CidrIp"), range),
        }
    })
}

/// The first group of a response. Pure.
pub(super) fn read(response: &Element) -> Option<Group> {
    let item = response.items("securityGroupInfo").first()?;
    let permissions = item.items("ipPermissions").iter();
    Some(Group {
        id: item.text_at("groupId").to_owned(),
        account: item.text_at("ownerId").to_owned(),
        rules: permissions.flat_map(rules).collect(),
        tags: ec2::tags(item),
    })
}

/// One rule for each source of a permission.
fn rules(permission: &Element) -> Vec<Rule> {
    // EC2 omits the ports where they have no meaning.
    let port = |name: &str| permission.text_at(name).parse().unwrap_or(-1);
    let ports = (port("fromPort"), port("toPort"));
    let protocol = permission.text_at("ipProtocol");
    let texts = |set: &str, field: &str| ec2::texts(permission, set, field);
    let groups = texts("groups", "groupId").into_iter().map(Source::Group);
    let ranges = [texts("ipRanges", "cidrIp"), texts("ipv6Ranges", "cidrIpv6")];
    let ranges = ranges.into_iter().flatten().map(Source::Range);
    let sources = groups.chain(ranges);
    sources
        .map(|source| Rule {
            protocol: protocol.to_owned(),
            ports,
            source,
        })
        .collect()
}
