//! The group of a cluster: rules, tags, and what is due.

use serde_json::{Value, json};
use support::aws::Element;
use support::ec2::Call;

use super::ec2::{read, with_rules};
use super::*;

/// A control plane on AWS.
fn hcp(change: impl FnOnce(&mut Value)) -> HostedControlPlane {
    let text = include_str!(
        "../../../../../control-plane-component/tests/data/base/hosted-control-plane.yaml"
    );
    let mut hcp: Value = serde_saphyr::from_str(text).unwrap();
    hcp["spec"]["infraID"] = json!("dev-x7k2p");
    hcp["spec"]["networking"]["machineNetwork"] =
        json!([{ "cidr": "10.0.0.0/16" }, { "cidr": "fd00::/48" }]);
    hcp["spec"]["platform"]["aws"]["resourceTags"] = json!([{ "key": "team", "value": "red" }]);
    hcp["status"] = json!({
        "ready": true,
        "initialized": true,
        "externalManagedControlPlane": true,
    });
    change(&mut hcp);
    serde_json::from_value(hcp).unwrap()
}

fn group(it: &mut Value) {
    it["status"]["platform"] = json!({ "aws": { "defaultWorkerSecurityGroupID": "sg-1" } });
}

#[test]
fn nodes_reach_one_another_and_are_reached_from_their_networks() {
    let rules = rules(&hcp(|_| {}), "sg-1");
    let found: Vec<_> = rules
        .iter()
        .map(|rule| {
            let (from, to) = rule.ports;
            let source = match &rule.source {
                Source::Group(source) | Source::Range(source) => source,
            };
            format!("{} {from}-{to} {source}", rule.protocol)
        })
        .collect();
    assert_eq!(
        found,
        [
            "udp 4789-4789 sg-1",
            "udp 6081-6081 sg-1",
            "udp 500-500 sg-1",
            "udp 4500-4500 sg-1",
            "50 -1--1 sg-1",
            "tcp 9000-9999 sg-1",
            "udp 9000-9999 sg-1",
            "tcp 10250-10250 sg-1",
            "tcp 30000-32767 sg-1",
            "udp 30000-32767 sg-1",
            "icmp -1--1 10.0.0.0/16",
            "tcp 22-22 10.0.0.0/16",
            "icmp -1--1 fd00::/48",
            "tcp 22-22 fd00::/48",
        ]
    );
}

#[test]
fn tags_are_those_of_the_cluster_and_of_its_group() {
    let tags = tags(&hcp(|_| {}));
    let expected = [
        ("Name", "dev-x7k2p-default-sg"),
        ("kubernetes.io/cluster/dev-x7k2p", "owned"),
        ("team", "red"),
    ];
    let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
    assert_eq!(tags, BTreeMap::from(expected));
}

#[test]
fn tags_of_others_stay() {
    let map = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        let pairs = pairs.iter();
        pairs
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    };
    let live = map(&[("a", "1"), ("b", "1"), ("other", "1")]);
    let desired = map(&[("a", "2"), ("c", "1")]);
    let set = map(&[("a", "2"), ("c", "1")]);
    let applied = map(&[("a", "1"), ("b", "1"), ("gone", "1")]);
    assert_eq!(
        changes(Some(&applied), &live, &desired),
        (set.clone(), vec!["b".to_owned()])
    );
    // What was applied is not known.
    assert_eq!(changes(None, &live, &desired), (set, Vec::new()));
    assert_eq!(
        changes(Some(&desired), &desired, &desired),
        (BTreeMap::new(), Vec::new())
    );
}

#[test]
fn only_new_clusters_get_a_group() {
    let rolled_out = |it: &mut Value| {
        it["status"]["versionStatus"] = json!({
            "desired": { "version": "4.22.0", "image": "a" },
            "observedGeneration": 1,
            "availableUpdates": null,
            "history": [{
                "state": "Completed", "startedTime": "2030-01-01T00:00:00Z",
                "completionTime": "2030-01-01T01:00:00Z", "version": "4.22.0", "image": "a", "verified": false,
            }],
        });
    };
    let deleted = |it: &mut Value, reason: &str| {
        it["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z");
        it["metadata"]["annotations"] = json!({ CLEANUP_CLOUD_RESOURCES.key(): "true" });
        it["status"]["conditions"] = json!([{
            "type": "CloudResourcesDestroyed", "status": "False", "reason": reason, "message": "",
            "lastTransitionTime": "2030-01-01T00:00:00Z",
        }]);
    };
    let ended = "CloudResourcesCleanupSkipped";
    for (name, hcp, creates, expected) in vec![
        ("a new cluster", hcp(|_| {}), true, Due::Keep),
        ("no pool waits", hcp(|_| {}), false, Due::Nothing),
        ("a cluster with nodes", hcp(rolled_out), true, Due::Nothing),
        ("a group", hcp(group), false, Due::Keep),
        (
            "a group that nodes have",
            hcp(|it| {
                group(it);
                rolled_out(it);
            }),
            true,
            Due::Keep,
        ),
        (
            "resources are left",
            hcp(|it| {
                group(it);
                deleted(it, "RemainingCloudResources");
            }),
            true,
            Due::Nothing,
        ),
        (
            "it is the last one",
            hcp(|it| {
                group(it);
                deleted(it, ended);
            }),
            true,
            Due::Delete,
        ),
        (
            "nothing is cleaned up",
            hcp(|it| {
                group(it);
                deleted(it, ended);
                it["metadata"]["annotations"] = json!({});
            }),
            true,
            Due::Nothing,
        ),
        (
            "there is none",
            hcp(|it| deleted(it, ended)),
            true,
            Due::Nothing,
        ),
    ] {
        assert_eq!(due(&hcp, creates), expected, "{name}");
    }
}

const RESPONSE: &str = "<DescribeSecurityGroupsResponse><securityGroupInfo><item>\
    <ownerId>123456789012</ownerId><groupId>sg-1</groupId><groupName>dev</groupName>\
    <ipPermissions>\
    <item><ipProtocol>tcp</ipProtocol><fromPort>10250</fromPort><toPort>10250</toPort>\
    <groups><item><userId>123456789012</userId><groupId>sg-1</groupId></item></groups><ipRanges/></item>\
    <item><ipProtocol>50</ipProtocol><groups><item><groupId>sg-1</groupId></item></groups></item>\
    <item><ipProtocol>tcp</ipProtocol><fromPort>22</fromPort><toPort>22</toPort><groups/>\
    <ipRanges><item><cidrIp>10.0.0.0/16</cidrIp></item><item><cidrIp>192.0.2.0/24</cidrIp></item></ipRanges>\
    <ipv6Ranges><item><cidrIpv6>fd00::/48</cidrIpv6></item></ipv6Ranges></item>\
    </ipPermissions>\
    <tagSet><item><key>team</key><value>red</value></item></tagSet>\
    </item></securityGroupInfo></DescribeSecurityGroupsResponse>";

#[test]
fn only_rules_that_a_group_lacks_are_added() {
    let read = |text: &str| Element::parse(text).as_ref().and_then(read);
    let group = read(RESPONSE).unwrap();
    assert_eq!(
        (group.id.as_str(), group.account.as_str()),
        ("sg-1", "123456789012")
    );
    assert_eq!(group.tags["team"], "red");
    assert_eq!(group.rules.len(), 5);
    let desired = rules(&hcp(|_| {}), "sg-1");
    let missing = missing(&desired, &group.rules);
    // It has those of the kubelet, of ESP, and of SSH from both networks.
    assert_eq!(missing.len(), desired.len() - 4);
    assert_eq!(
        super::missing(&desired, &desired.iter().cloned().collect()),
        []
    );
    assert_eq!(
        read(
            "<DescribeSecurityGroupsResponse><securityGroupInfo/></DescribeSecurityGroupsResponse>"
        ),
        None
    );
    assert_eq!(read("no XML"), None);
}

#[test]
fn rules_are_parameters_by_number() {
    let rule = |protocol: &str, ports, source| Rule {
        protocol: protocol.to_owned(),
        ports,
        source,
    };
    let rules = [
        rule("50", (-1, -1), Source::Group("sg-1".to_owned())),
        rule("tcp", (22, 22), Source::Range("10.0.0.0/16".to_owned())),
        rule("tcp", (22, 22), Source::Range("fd00::/48".to_owned())),
    ];
    let call = with_rules(Call::new("AuthorizeSecurityGroupIngress"), &rules, "1");
    let found: Vec<_> = call
        .parameters
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    assert_eq!(
        found,
        [
            "IpPermissions.1.IpProtocol=50",
            "IpPermissions.1.FromPort=-1",
            "IpPermissions.1.ToPort=-1",
            "IpPermissions.1.Groups.1.GroupId=sg-1",
            "IpPermissions.1.Groups.1.UserId=1",
            "IpPermissions.2.IpProtocol=tcp",
            "IpPermissions.2.FromPort=22",
            "IpPermissions.2.ToPort=22",
            "IpPermissions.2.IpRanges.1.CidrIp=10.0.0.0/16",
            "IpPermissions.3.IpProtocol=tcp",
            "IpPermissions.3.FromPort=22",
            "IpPermissions.3.ToPort=22",
            "IpPermissions.3.Ipv6Ranges.1.CidrIpv6=fd00::/48",
        ]
    );
}

#[test]
fn messages_have_codes_and_no_identifiers_of_requests() {
    let refused = |code: &str, message: &str| aws::Error::Refused {
        what: "DeleteSecurityGroup to ec2".to_owned(),
        status: 400,
        code: code.to_owned(),
        message: message.to_owned(),
    };
    let (created, deleted) = (
        Type::AwsDefaultSecurityGroupCreated,
        Type::AwsDefaultSecurityGroupDeleted,
    );
    for (about, error, expected) in [
        (
            created,
            refused("UnauthorizedOperation", "request 4711"),
            "failed to create or update the default security group of nodes (UnauthorizedOperation): check",
        ),
        (
            deleted,
            refused("DependencyViolation", "sg-1 has a dependent object"),
            "failed to delete the default security group of nodes: sg-1 has a dependent object",
        ),
        (
            created,
            vpc(&hcp(|_| {})).unwrap_err(),
            "spec.platform.aws.cloudProviderConfig.vpc is not set",
        ),
    ] {
        let message = message(about, &error);
        assert!(message.contains(expected), "{message}");
        assert!(!message.contains("4711"), "{message}");
        let failed = Err(Failed { about, message });
        let evaluation = evaluation(&failed);
        assert_eq!(evaluation.status, "False");
        assert_eq!(evaluation.reason, "AWSError");
        assert_eq!(evaluation.type_, about);
    }
}
