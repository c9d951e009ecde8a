//! Load balancers in the fake cloud, of both APIs: a cloud controller manager makes them for Services.

use std::collections::BTreeMap;

use anyhow::Result;

use super::Cloud;
use super::client::text;

/// The service of load balancers, and the version of its API for classic ones.
pub(super) const CLASSIC: (&str, &str) = ("elasticloadbalancing", "2012-06-01");
/// The same for all others.
pub(super) const CURRENT: (&str, &str) = ("elasticloadbalancing", "2015-12-01");

/// A load balancer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadBalancer {
    /// The name of a classic one, the ARN of another one.
    pub id: String,
    /// Its host name.
    pub host: String,
    /// The instances that a classic one leads to. Others have target groups.
    pub instances: Vec<String>,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
}

// === impl Cloud ===

impl Cloud {
    /// All load balancers, classic ones first.
    pub async fn load_balancers(&self) -> Result<Vec<LoadBalancer>> {
        let mut all = Vec::new();
        for (api, field, parameter) in [
            (CLASSIC, "LoadBalancerName", "LoadBalancerNames.member.1"),
            (CURRENT, "LoadBalancerArn", "ResourceArns.member.1"),
        ] {
            let response = self.ask(api, "DescribeLoadBalancers", &[]).await?;
            for mut found in load_balancers(&response, field) {
                let only = [(parameter, found.id.as_str())];
                found.tags = tags(&self.ask(api, "DescribeTags", &only).await?);
                all.push(found);
            }
        }
        Ok(all)
    }
}

/// The load balancers of a response, by the field that each begins with. It does not have their tags.
fn load_balancers(response: &str, field: &str) -> Vec<LoadBalancer> {
    let begin = format!("<{field}>");
    let parts = response.split(begin.as_str()).skip(1);
    parts
        .map(|part| LoadBalancer {
            id: until_tag(part),
            host: text(part, "DNSName"),
            instances: part.split("<InstanceId>").skip(1).map(until_tag).collect(),
            tags: BTreeMap::new(),
        })
        .collect()
}

/// The text before the next tag of XML.
fn until_tag(part: &str) -> String {
    part.split('<').next().unwrap_or_default().to_owned()
}

/// The tags of a response. An empty value is an element without content.
fn tags(response: &str) -> BTreeMap<String, String> {
    let members = response.split("<member>");
    members
        .filter(|member| member.contains("<Key>"))
        .map(|member| (text(member, "Key"), text(member, "Value")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_balancers_are_read_from_the_response() {
        let balancer = |id: &str, host: &str, instances: &[&str]| LoadBalancer {
            id: id.to_owned(),
            host: host.to_owned(),
            instances: instances.iter().map(|&it| it.to_owned()).collect(),
            tags: BTreeMap::new(),
        };
        let classic = "<LoadBalancerDescriptions><member><LoadBalancerName>a1</LoadBalancerName>\
            <DNSName>a1.example.com</DNSName><Instances><member><InstanceId>i-1</InstanceId></member>\
            <member><InstanceId>i-2</InstanceId></member></Instances></member>\
            <member><LoadBalancerName>a2</LoadBalancerName><DNSName>a2.example.com</DNSName></member>\
            </LoadBalancerDescriptions>";
        let expected = [
            balancer("a1", "a1.example.com", &["i-1", "i-2"]),
            balancer("a2", "a2.example.com", &[]),
        ];
        assert_eq!(load_balancers(classic, "LoadBalancerName"), expected);
        let current = "<LoadBalancers><member><LoadBalancerArn>arn:aws:a3</LoadBalancerArn>\
            <DNSName>a3.example.com</DNSName><LoadBalancerName>a3</LoadBalancerName></member></LoadBalancers>";
        let expected = [balancer("arn:aws:a3", "a3.example.com", &[])];
        assert_eq!(load_balancers(current, "LoadBalancerArn"), expected);
        assert!(load_balancers("<LoadBalancers/>", "LoadBalancerArn").is_empty());
    }

    #[test]
    fn tags_are_read_from_the_response() {
        let response = "<TagDescriptions><member><LoadBalancerName>a1</LoadBalancerName><Tags>\
            <member><Key>empty</Key><Value/></member>\
            <member><Key>team</Key><Value>a</Value></member></Tags></member></TagDescriptions>";
        let tag = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(tags(response), [tag("empty", ""), tag("team", "a")].into());
    }
}
