//! What there is in an account, with nothing in it that the cloud has made up: to compare the results of two runs.

use anyhow::{Context, Result};
use http::Request;
use support::aws::Element;

use super::{Cloud, EC2};

const IAM: (&str, &str) = ("iam", "2010-05-08");
const ZONES: &str = "/2013-04-01/hostedzone";
/// What is listed: service, version and action.
const LISTS: [((&str, &str), &str); 17] = [
    (EC2, "DescribeVpcs"),
    (EC2, "DescribeSubnets"),
    (EC2, "DescribeInternetGateways"),
    (EC2, "DescribeRouteTables"),
    (EC2, "DescribeAddresses"),
    (EC2, "DescribeDhcpOptions"),
    (EC2, "DescribeSecurityGroups"),
    (EC2, "DescribeVolumes"),
    (EC2, "DescribeNetworkInterfaces"),
    (EC2, "DescribeLaunchTemplates"),
    (EC2, "DescribeKeyPairs"),
    (EC2, "DescribeNatGateways"),
    (EC2, "DescribeVpcEndpoints"),
    (EC2, "DescribeInstances"),
    (IAM, "ListRoles"),
    (IAM, "ListInstanceProfiles"),
    (IAM, "ListOpenIDConnectProviders"),
];
/// What is listed for each role.
const OF_ROLE: [&str; 2] = ["ListRolePolicies", "ListRoleTags"];
/// Names of the elements of which lists consist.
const ITEMS: [&str; 7] = [
    "item",
    "member",
    "Bucket",
    "Contents",
    "HostedZone",
    "ResourceRecordSet",
    "Tag",
];
/// Elements that differ from run to run: addresses that the cloud chooses, and identifiers without a form.
const CHOSEN: [&str; 10] = [
    "InstanceProfileId",
    "dnsName",
    "ipAddress",
    "macAddress",
    "privateDnsName",
    "privateIp",
    "privateIpAddress",
    "publicDnsName",
    "publicIp",
    "publicIpAddress",
];
/// The ends of the names of elements with a time, in lower case.
const TIMES: [&str; 4] = ["date", "modified", "stamp", "time"];
/// The least lengths of identifiers: those in hexadecimal digits, and those in capitals and digits.
const LEAST_HEXADECIMAL: usize = 8;
const LEAST_CAPITALS: usize = 12;

// === impl Cloud ===

impl Cloud {
    /// What there is in the account, a sorted line for each resource. It has an asterisk for each identifier that the cloud has
    /// chosen, and no addresses or times. What the cloud remembers of resources that are gone is left out.
    pub async fn contents(&self) -> Result<Vec<String>> {
        let mut lines = Vec::new();
        for (service, action) in LISTS {
            let listed = items(&self.ask(service, action, &[]).await?)?;
            for item in &listed {
                lines.push(format!("{action} {}", line(item)));
            }
            if action != "ListRoles" {
                continue;
            }
            for role in &listed {
                lines.extend(self.of_role(role.text_at("RoleName")).await?);
            }
        }
        lines.extend(self.buckets().await?);
        lines.extend(self.zones().await?);
        lines.sort();
        Ok(lines)
    }

    async fn of_role(&self, name: &str) -> Result<Vec<String>> {
        let mut lines = Vec::new();
        for action in OF_ROLE {
            let listed = items(&self.ask(IAM, action, &[("RoleName", name)]).await?)?;
            lines.extend(
                listed
                    .iter()
                    .map(|item| format!("{action} {name} {}", line(item))),
            );
        }
        Ok(lines)
    }

    /// Buckets, with their objects and tags.
    async fn buckets(&self) -> Result<Vec<String>> {
        let mut lines = Vec::new();
        for bucket in items(&self.send("s3", Request::get("/"), "").await?)? {
            let name = bucket.text_at("Name");
            lines.push(format!("bucket {}", line(&bucket)));
            let objects = Request::get(format!("/{name}"));
            for object in items(&self.send("s3", objects, "").await?)? {
                lines.push(format!("object in {name} {}", line(&object)));
            }
            // Without tags, there is an error in place of an empty list.
            let tags = Request::get(format!("/{name}?tagging="));
            if let Ok(tags) = self.send("s3", tags, "").await {
                let tags = items(&tags)?;
                lines.extend(
                    tags.iter()
                        .map(|tag| format!("tag of {name} {}", line(tag))),
                );
            }
        }
        Ok(lines)
    }

    /// Hosted zones, with their records and tags.
    async fn zones(&self) -> Result<Vec<String>> {
        let mut lines = Vec::new();
        for zone in items(&self.send("route53", Request::get(ZONES), "").await?)? {
            let (id, name) = (zone.text_at("Id"), zone.text_at("Name"));
            let id = id.trim_start_matches("/hostedzone/");
            lines.push(format!("zone {}", line(&zone)));
            for (what, path) in [
                ("record", format!("{ZONES}/{id}/rrset")),
                ("tag", format!("/2013-04-01/tags/hostedzone/{id}")),
            ] {
                let listed = items(&self.send("route53", Request::get(path), "").await?)?;
                lines.extend(
                    listed
                        .iter()
                        .map(|item| format!("{what} of {name} {}", line(item))),
                );
            }
        }
        Ok(lines)
    }

    /// Forgets everything that is in the cloud.
    pub async fn reset(&self) -> Result<()> {
        let reset = Request::post("/moto-api/reset");
        self.send("ec2", reset, "").await.map(drop)
    }
}

/// The items of a response that are not gone.
fn items(response: &str) -> Result<Vec<Element>> {
    let root = Element::parse(response).with_context(|| format!("no XML: {response:.300}"))?;
    let mut found = Vec::new();
    collect(&root, &mut found);
    Ok(found)
}

fn collect(element: &Element, found: &mut Vec<Element>) {
    for child in &element.children {
        if !ITEMS.contains(&child.name.as_str()) {
            collect(child, found);
        } else if !is_gone(child) {
            found.push(child.clone());
        }
    }
}

/// Whether it is a resource that the cloud remembers for a while. Instances are listed by reservations.
fn is_gone(item: &Element) -> bool {
    let is_ended = |state: &str| {
        ["deleted", "deleting", "terminated"].contains(&state.to_ascii_lowercase().as_str())
    };
    let mut instances = item.items("instancesSet").iter();
    is_ended(item.text_at("state"))
        || instances.any(|it| is_ended(it.text_at("instanceState/name")))
}

/// An element in one line: its parts are sorted, because they come in any order.
fn line(element: &Element) -> String {
    if element.children.is_empty() {
        return format!("{}={}", element.name, without_ids(&element.text));
    }
    let parts = element.children.iter().filter(|child| !is_chosen(child));
    let mut parts: Vec<_> = parts.map(line).collect();
    parts.sort();
    format!("{}{{{}}}", element.name, parts.join(", "))
}

fn is_chosen(element: &Element) -> bool {
    let name = element.name.to_ascii_lowercase();
    CHOSEN.contains(&element.name.as_str()) || TIMES.iter().any(|end| name.ends_with(end))
}

/// A text with an asterisk in place of each identifier.
fn without_ids(text: &str) -> String {
    let mut result = String::new();
    for piece in text.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let word = piece.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        let rest = piece.strip_prefix(word).unwrap_or_default();
        result.push_str(if is_id(word) { "*" } else { word });
        result.push_str(rest);
    }
    result
}

fn is_id(word: &str) -> bool {
    let is_hexadecimal = word
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let is_capitals = word
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'A'..=b'Z'));
    word.len() >= LEAST_HEXADECIMAL && is_hexadecimal || word.len() >= LEAST_CAPITALS && is_capitals
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_replaced() {
        for (text, expected) in [
            ("vpc-5594f2981c77dfaf9", "vpc-*"),
            ("vpc-5594f2981c77dfaf9-a.example.com", "vpc-*-a.example.com"),
            ("/hostedzone/BATAO5B361TD12FJZQT1U8", "/hostedzone/*"),
            ("AROARZPUZDIKAI7DRAS3E", "*"),
            (
                "arn:aws:iam::123456789012:role/a-x1-node-pool",
                "arn:aws:iam::*:role/a-x1-node-pool",
            ),
            ("10.0.0.0/16", "10.0.0.0/16"),
            ("kubernetes.io/cluster/a-x1", "kubernetes.io/cluster/a-x1"),
            ("default VPC security group", "default VPC security group"),
            ("é, ", "é, "),
            ("", ""),
        ] {
            assert_eq!(without_ids(text), expected);
        }
    }

    #[test]
    fn lines_have_no_order_and_nothing_that_the_cloud_has_chosen() {
        let response = "<?xml version=\"1.0\"?><R><set>\
            <item><natGatewayId>nat-505e35f2490dd061e</natGatewayId><state>available</state>\
            <createTime>2026-11-29T12:30:28.000Z</createTime><tagSet><item><key>b</key><value>1</value></item>\
            <item><key>a</key><value/></item></tagSet></item>\
            <item><natGatewayId>nat-ecfdea3cfdef90760</natGatewayId><state>deleted</state></item>\
            <item><instancesSet><item><instanceState><name>terminated</name></instanceState></item></instancesSet></item>\
            </set><requestId>1</requestId></R>";
        let lines: Vec<_> = items(response).unwrap().iter().map(line).collect();
        let expected = "item{natGatewayId=nat-*, state=available, \
            tagSet{item{key=a, value=}, item{key=b, value=1}}}";
        assert_eq!(lines, [expected]);
        assert!(items("text").is_err());
    }
}
