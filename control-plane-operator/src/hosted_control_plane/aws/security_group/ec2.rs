//! Requests to EC2 about a security group.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use support::aws::{Client, EC2, Element, Error};
use tokio::time::sleep;

use super::{Rule, Source};

/// A new group can be described a little later.
const ATTEMPTS: u32 = 15;
const PAUSE: Duration = Duration::from_secs(2);
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
    pub(super) tags: BTreeMap<String, String>,
}

/// The parameters of a request.
#[derive(Debug, Default)]
pub(super) struct Parameters(Vec<(String, String)>);

// === impl Parameters ===

impl Parameters {
    fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.0.push((name.into(), value.into()));
        self
    }

    fn filter(self, number: usize, name: &str, value: &str) -> Self {
        self.with(format!("Filter.{number}.Name"), name)
            .with(format!("Filter.{number}.Value.1"), value)
    }

    fn tags(self, prefix: &str, tags: &BTreeMap<String, String>) -> Self {
        let numbered = tags.iter().zip(1_usize..);
        numbered.fold(self, |parameters, ((key, value), number)| {
            parameters
                .with(format!("{prefix}.{number}.Key"), key)
                .with(format!("{prefix}.{number}.Value"), value)
        })
    }

    /// The rules, whose source is in this account if it is a group.
    pub(super) fn rules(self, rules: &[Rule], account: &str) -> Self {
        rules
            .iter()
            .zip(1_usize..)
            .fold(self, |parameters, (rule, number)| {
                let field = |name: &str| format!("IpPermissions.{number}.{name}");
                let (from, to) = rule.ports;
                let parameters = parameters
                    .with(field("IpProtocol"), &rule.protocol)
                    .with(field("FromPort"), from.to_string())
                    .with(field("ToPort"), to.to_string());
                match &rule.source {
                    Source::Group(group) => parameters
                        .with(field("Groups.1.GroupId"), group)
                        .with(field("Groups.1.UserId"), account),
                    Source::Range(range) if range.contains(':') => {
                        parameters.with(field("Ipv6Ranges.1.CidrIpv6"), range)
                    }
                    Source::Range(range) => parameters.with(field("IpRanges.1.CidrIp"), range),
                }
            })
    }

    #[cfg(test)]
    pub(super) fn into_pairs(self) -> Vec<(String, String)> {
        self.0
    }
}

// === impl Ec2 ===

impl Ec2<'_> {
    /// The group with an ID, if it exists.
    pub(super) async fn by_id(&self, id: &str) -> Result<Option<Group>, Error> {
        let parameters = Parameters::default().with("GroupId.1", id);
        match self.describe(parameters).await {
            Err(error) if error.code() == NOT_FOUND => Ok(None),
            found => found,
        }
    }

    /// The group of a cluster with a name, if it exists.
    pub(super) async fn by_tags(&self, name: &str, owned: &str) -> Result<Option<Group>, Error> {
        let parameters = Parameters::default()
            .filter(1, &format!("tag:{owned}"), "owned")
            .filter(2, "tag:Name", name);
        self.describe(parameters).await
    }

    /// Creates a group. If the response is lost, the group is found by its tags the next time.
    pub(super) async fn create(
        &self,
        name: &str,
        vpc: &str,
        tags: &BTreeMap<String, String>,
    ) -> Result<Group, Error> {
        let action = "CreateSecurityGroup";
        let parameters = Parameters::default()
            .with("GroupName", name)
            .with("GroupDescription", "default worker security group")
            .with("VpcId", vpc)
            .with("TagSpecification.1.ResourceType", "security-group")
            .tags("TagSpecification.1.Tag", tags);
        let response = self
            .client
            .query(&EC2, action, &parameters.0, false)
            .await?;
        let document = Element::parse(&response).unwrap_or_default();
        let id = document.text_at("groupId");
        let unexpected = |problem: &str| Error::Response {
            what: action.to_owned(),
            problem: problem.to_owned(),
        };
        if id.is_empty() {
            return Err(unexpected("the response of EC2 has no group"));
        }
        for _ in 0..ATTEMPTS {
            if let Some(group) = self.by_id(id).await? {
                return Ok(group);
            }
            sleep(PAUSE).await;
        }
        Err(unexpected("EC2 does not describe the new group yet"))
    }

    /// Adds rules.
    pub(super) async fn authorize(&self, group: &Group, rules: &[Rule]) -> Result<(), Error> {
        let parameters = Parameters::default()
            .with("GroupId", &group.id)
            .rules(rules, &group.account);
        match self
            .change("AuthorizeSecurityGroupIngress", &parameters)
            .await
        {
            Err(error) if error.code() == DUPLICATE => Ok(()),
            done => done,
        }
    }

    /// Sets tags.
    pub(super) async fn set_tags(
        &self,
        id: &str,
        tags: &BTreeMap<String, String>,
    ) -> Result<(), Error> {
        let parameters = Parameters::default()
            .with("ResourceId.1", id)
            .tags("Tag", tags);
        self.change("CreateTags", &parameters).await
    }

    /// Removes tags.
    pub(super) async fn remove_tags(&self, id: &str, keys: &[String]) -> Result<(), Error> {
        let parameters = Parameters::default().with("ResourceId.1", id);
        let numbered = keys.iter().zip(1_usize..);
        let parameters = numbered.fold(parameters, |parameters, (key, number)| {
            parameters.with(format!("Tag.{number}.Key"), key)
        });
        self.change("DeleteTags", &parameters).await
    }

    /// Deletes a group, if it exists.
    pub(super) async fn delete(&self, id: &str) -> Result<(), Error> {
        let parameters = Parameters::default().with("GroupId", id);
        match self.change("DeleteSecurityGroup", &parameters).await {
            Err(error) if error.code() == NOT_FOUND => Ok(()),
            done => done,
        }
    }

    /// Sends a request that has the same effect when it is repeated.
    async fn change(&self, action: &str, parameters: &Parameters) -> Result<(), Error> {
        let sent = self.client.query(&EC2, action, &parameters.0, true).await;
        sent.map(drop)
    }

    async fn describe(&self, parameters: Parameters) -> Result<Option<Group>, Error> {
        let action = "DescribeSecurityGroups";
        let response = self.client.query(&EC2, action, &parameters.0, true).await?;
        Ok(read(&response))
    }
}

/// The first group of a response. Pure.
pub(super) fn read(response: &str) -> Option<Group> {
    let document = Element::parse(response)?;
    let item = document.items("securityGroupInfo").first()?;
    let tags = item.items("tagSet").iter();
    let tags = tags.map(|it| (it.text_at("key").to_owned(), it.text_at("value").to_owned()));
    let permissions = item.items("ipPermissions").iter();
    Some(Group {
        id: item.text_at("groupId").to_owned(),
        account: item.text_at("ownerId").to_owned(),
        rules: permissions.flat_map(rules).collect(),
        tags: tags.collect(),
    })
}

/// One rule for each source of a permission.
fn rules(permission: &Element) -> Vec<Rule> {
    // EC2 omits the ports where they have no meaning.
    let port = |name: &str| permission.text_at(name).parse().unwrap_or(-1);
    let ports = (port("fromPort"), port("toPort"));
    let protocol = permission.text_at("ipProtocol");
    let texts = |list: &str, name: &str| -> Vec<String> {
        let items = permission.items(list).iter();
        items.map(|it| it.text_at(name).to_owned()).collect()
    };
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
