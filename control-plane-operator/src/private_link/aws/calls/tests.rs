//! Responses of AWS.

use super::*;

#[test]
fn responses_are_read() {
    let item = "<item><vpcEndpointId>vpce-1</vpcEndpointId><vpcId>vpc-1</vpcId><serviceName>s</serviceName>\
                <state>available</state><subnetIdSet><item>subnet-1</item></subnetIdSet><groupSet><item><groupId>sg-1\
                </groupId></item></groupSet><dnsEntrySet><item><dnsName>a</dnsName></item><item><dnsName>b</dnsName>\
                </item></dnsEntrySet></item>";
    let found = endpoint(&Element::parse(item).unwrap());
    assert_eq!(
        found,
        Endpoint {
            id: "vpce-1".to_owned(),
            vpc: "vpc-1".to_owned(),
            service: "s".to_owned(),
            state: "available".to_owned(),
            subnets: ["subnet-1".to_owned()].into(),
            groups: ["sg-1".to_owned()].into(),
            tags: Tags::new(),
            hosts: vec!["a".to_owned(), "b".to_owned()],
        }
    );
    let permission = |protocol: &str, from: u16, to: u16, cidr: &str| {
        format!(
            "<item><ipProtocol>{protocol}</ipProtocol><fromPort>{from}</fromPort><toPort>{to}</toPort><ipRanges><item>\
             <cidrIp>{cidr}</cidrIp></item></ipRanges></item>"
        )
    };
    let all = [
        permission("tcp", 443, 443, "10.0.0.0/16"),
        permission("tcp", 443, 444, "10.1.0.0/16"),
        permission("udp", 443, 443, "10.2.0.0/16"),
    ];
    let item = format!(
        "<item><groupId>sg-1</groupId><ipPermissions>{}</ipPermissions></item>",
        all.concat()
    );
    let found = group(&Element::parse(&item).unwrap());
    let rule = Rule {
        port: 443,
        cidr: "10.0.0.0/16".to_owned(),
    };
    assert_eq!((found.id.as_str(), found.ingress), ("sg-1", [rule].into()));
}

#[test]
fn names_of_route_53_are_read() {
    assert_eq!(
        bare("\\052.apps.one.hypershift.local."),
        "*.apps.one.hypershift.local"
    );
    assert_eq!(records("/hostedzone/Z1"), "/2013-04-01/hostedzone/Z1/rrset");
}
