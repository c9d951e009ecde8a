//! Requests of Route 53 and S3, which have paths and documents in XML. Pure.

use http::Method;
use support::aws::s3::encoded_path;
use support::aws::{Element, Rest, encoded};
use support::xml::escaped;

use super::call::{Call, Service, Tags};
use super::ram;

const ZONES: &str = "/2013-04-01/hostedzone";
const ROUTE53_NAMESPACE: &str = "https://route53.amazonaws.com/doc/2013-04-01/";
const S3_NAMESPACE: &str = "http://s3.amazonaws.com/doc/2006-03-01/";
const XML: &str = "application/xml";
const JSON: &str = "application/json";

/// The request of a call; `None` if its service takes forms.
pub(crate) fn request(call: &Call) -> Option<Rest> {
    match call.service {
        Service::Ram => Some(ram::request(call)),
        Service::Route53 => Some(route53(call)),
        Service::S3 => Some(s3(call)),
        _ => None,
    }
}

fn route53(call: &Call) -> Rest {
    let id = call.get("Id").trim_start_matches("/hostedzone/");
    let zone = format!("{ZONES}/{id}");
    let records = format!("{zone}/rrset");
    let tags = format!("/2013-04-01/tags/hostedzone/{id}");
    match call.action {
        "ListHostedZonesByVPC" => get("/2013-04-01/hostedzonesbyvpc".to_owned(), &call.parameters),
        "CreateHostedZone" => document(Method::POST, ZONES.to_owned(), "", &new_zone(call)),
        "DeleteHostedZone" => bare(Method::DELETE, zone, ""),
        "ListResourceRecordSets" => get(records, call.parameters.get(1..).unwrap_or_default()),
        "ChangeResourceRecordSets" => {
            document(Method::POST, format!("{records}/"), "", &change(call))
        }
        "ListTagsForResource" => bare(Method::GET, tags, ""),
        "ChangeTagsForResource" => {
            let body = format!(
                "<ChangeTagsForResourceRequest xmlns=\"{ROUTE53_NAMESPACE}\"><AddTags>{}</AddTags>\
                 </ChangeTagsForResourceRequest>",
                tag_set(&call.tags_of("Tag"))
            );
            document(Method::POST, tags, "", &body)
        }
        "AssociateVPCWithHostedZone" => {
            let body = vpc_of_zone("AssociateVPCWithHostedZoneRequest", call);
            document(Method::POST, format!("{zone}/associatevpc"), "", &body)
        }
        "DisassociateVPCFromHostedZone" => {
            let body = vpc_of_zone("DisassociateVPCFromHostedZoneRequest", call);
            document(Method::POST, format!("{zone}/disassociatevpc"), "", &body)
        }
        "CreateVPCAssociationAuthorization" => {
            let body = vpc_of_zone("CreateVPCAssociationAuthorizationRequest", call);
            document(
                Method::POST,
                format!("{zone}/authorizevpcassociation"),
                "",
                &body,
            )
        }
        // ListHostedZones.
        _ => get(ZONES.to_owned(), &call.parameters),
    }
}

fn new_zone(call: &Call) -> String {
    let text = |name| escaped(call.get(name));
    format!(
        "<CreateHostedZoneRequest xmlns=\"{ROUTE53_NAMESPACE}\"><Name>{}</Name><VPC><VPCRegion>{}</VPCRegion>\
         <VPCId>{}</VPCId></VPC><CallerReference>{}</CallerReference><HostedZoneConfig><PrivateZone>true</PrivateZone>\
         </HostedZoneConfig></CreateHostedZoneRequest>",
        text("Name"),
        text("VPCRegion"),
        text("VPCId"),
        text("CallerReference")
    )
}

/// A request about the VPC of a zone.
fn vpc_of_zone(name: &str, call: &Call) -> String {
    let text = |name| escaped(call.get(name));
    format!(
        "<{name} xmlns=\"{ROUTE53_NAMESPACE}\"><VPC><VPCRegion>{}</VPCRegion><VPCId>{}</VPCId></VPC></{name}>",
        text("VPCRegion"),
        text("VPCId")
    )
}

/// The record is a document already.
fn change(call: &Call) -> String {
    format!(
        "<ChangeResourceRecordSetsRequest xmlns=\"{ROUTE53_NAMESPACE}\"><ChangeBatch><Changes><Change>\
         <Action>{}</Action>{}</Change></Changes></ChangeBatch></ChangeResourceRecordSetsRequest>",
        call.get("Action"),
        call.get("Record")
    )
}

fn s3(call: &Call) -> Rest {
    let bucket = format!("/{}", encoded(call.get("Bucket")));
    let object = format!("{bucket}/{}", encoded_path(call.get("Key")));
    match call.action {
        "HeadBucket" => bare(Method::HEAD, bucket, ""),
        "CreateBucket" => match call.get("LocationConstraint") {
            "" => bare(Method::PUT, bucket, ""),
            region => {
                let body = format!(
                    "<CreateBucketConfiguration xmlns=\"{S3_NAMESPACE}\"><LocationConstraint>{}</LocationConstraint>\
                     </CreateBucketConfiguration>",
                    escaped(region)
                );
                document(Method::PUT, bucket, "", &body)
            }
        },
        "DeleteBucket" => bare(Method::DELETE, bucket, ""),
        "GetBucketTagging" => bare(Method::GET, bucket, "tagging="),
        "PutBucketTagging" => {
            let body = format!(
                "<Tagging xmlns=\"{S3_NAMESPACE}\"><TagSet>{}</TagSet></Tagging>",
                tag_set(&call.tags_of("Tag"))
            );
            document(Method::PUT, bucket, "tagging=", &body)
        }
        "DeletePublicAccessBlock" => bare(Method::DELETE, bucket, "publicAccessBlock="),
        "PutBucketPolicy" => Rest {
            content_type: Some(JSON),
            ..document(Method::PUT, bucket, "policy=", call.get("Policy"))
        },
        "PutObject" => Rest {
            content_type: Some(JSON),
            ..document(Method::PUT, object, "", call.get("Body"))
        },
        "GetObject" => bare(Method::GET, object, ""),
        "ListObjectsV2" => {
            let parameters = call.parameters.get(1..).unwrap_or_default();
            let mut listed = get(bucket, parameters);
            let separator = if listed.query.is_empty() { "" } else { "&" };
            listed.query = format!("list-type=2{separator}{}", listed.query);
            listed
        }
        "DeleteObjects" => {
            let keys = call.values("Key");
            let objects = keys
                .iter()
                .map(|key| format!("<Object><Key>{}</Key></Object>", escaped(key)));
            let body = format!(
                "<Delete xmlns=\"{S3_NAMESPACE}\">{}<Quiet>true</Quiet></Delete>",
                objects.collect::<String>()
            );
            document(Method::POST, bucket, "delete=", &body)
        }
        // ListBuckets.
        _ => bare(Method::GET, "/".to_owned(), ""),
    }
}

fn tag_set(tags: &Tags) -> String {
    let tags = tags.iter().map(|(key, value)| {
        let parts = vec![Element::leaf("Key", key), Element::leaf("Value", value)];
        Element::around("Tag", parts).to_string()
    });
    tags.collect()
}

fn bare(method: Method, path: String, query: &str) -> Rest {
    Rest {
        method,
        path,
        query: query.to_owned(),
        content_type: None,
        body: String::new(),
    }
}

fn document(method: Method, path: String, query: &str, body: &str) -> Rest {
    Rest {
        content_type: Some(XML),
        body: body.to_owned(),
        ..bare(method, path, query)
    }
}

fn get(path: String, parameters: &[(String, String)]) -> Rest {
    let pairs = parameters
        .iter()
        .map(|(name, value)| format!("{}={}", encoded(name), encoded(value)));
    bare(Method::GET, path, &pairs.collect::<Vec<_>>().join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_the_paths_of_the_references() {
        let tag = Tags::from([("a&b".to_owned(), "c".to_owned())]);
        for (call, method, target, body) in [
            (
                Call::route53("ListHostedZones").with("marker", "Z/2"),
                "GET",
                "/2013-04-01/hostedzone?marker=Z%2F2",
                "",
            ),
            (
                Call::route53("ListHostedZonesByVPC")
                    .with("vpcid", "vpc-1")
                    .with("vpcregion", "eu-west-1"),
                "GET",
                "/2013-04-01/hostedzonesbyvpc?vpcid=vpc-1&vpcregion=eu-west-1",
                "",
            ),
            (
                Call::route53("DeleteHostedZone").with("Id", "/hostedzone/Z1"),
                "DELETE",
                "/2013-04-01/hostedzone/Z1?",
                "",
            ),
            (
                Call::route53("ListResourceRecordSets")
                    .with("Id", "Z1")
                    .with("name", "a.b."),
                "GET",
                "/2013-04-01/hostedzone/Z1/rrset?name=a.b.",
                "",
            ),
            (
                Call::route53("ChangeResourceRecordSets")
                    .with("Id", "Z1")
                    .with("Action", "UPSERT")
                    .with("Record", "<ResourceRecordSet></ResourceRecordSet>"),
                "POST",
                "/2013-04-01/hostedzone/Z1/rrset/?",
                "<Action>UPSERT</Action><ResourceRecordSet></ResourceRecordSet></Change>",
            ),
            (
                Call::route53("ChangeTagsForResource")
                    .with("Id", "Z1")
                    .tags("Tag", &tag),
                "POST",
                "/2013-04-01/tags/hostedzone/Z1?",
                "<AddTags><Tag><Key>a&amp;b</Key><Value>c</Value></Tag></AddTags>",
            ),
            (
                Call::route53("CreateHostedZone")
                    .with("Name", "a.local")
                    .with("VPCId", "vpc-1")
                    .with("VPCRegion", "eu-west-1")
                    .with("CallerReference", "vpc-1-a.local"),
                "POST",
                "/2013-04-01/hostedzone?",
                "<VPCRegion>eu-west-1</VPCRegion><VPCId>vpc-1</VPCId></VPC><CallerReference>vpc-1-a.local",
            ),
            (
                Call::route53("AssociateVPCWithHostedZone")
                    .with("Id", "Z1")
                    .with("VPCId", "vpc-1")
                    .with("VPCRegion", "eu-west-1"),
                "POST",
                "/2013-04-01/hostedzone/Z1/associatevpc?",
                "<VPC><VPCRegion>eu-west-1</VPCRegion><VPCId>vpc-1</VPCId></VPC></AssociateVPCWithHostedZoneRequest>",
            ),
            (
                Call::route53("DisassociateVPCFromHostedZone").with("Id", "/hostedzone/Z1"),
                "POST",
                "/2013-04-01/hostedzone/Z1/disassociatevpc?",
                "<DisassociateVPCFromHostedZoneRequest",
            ),
            (
                Call::route53("CreateVPCAssociationAuthorization").with("Id", "Z1"),
                "POST",
                "/2013-04-01/hostedzone/Z1/authorizevpcassociation?",
                "<CreateVPCAssociationAuthorizationRequest",
            ),
            (
                Call::s3("CreateBucket")
                    .with("Bucket", "b")
                    .with("LocationConstraint", "eu-west-1"),
                "PUT",
                "/b?",
                "<LocationConstraint>eu-west-1</LocationConstraint>",
            ),
            (
                Call::s3("PutObject")
                    .with("Bucket", "b")
                    .with("Key", "a/.well-known/x y")
                    .with("Body", "{}"),
                "PUT",
                "/b/a/.well-known/x%20y?",
                "{}",
            ),
            (
                Call::s3("ListObjectsV2")
                    .with("Bucket", "b")
                    .with("prefix", "a/"),
                "GET",
                "/b?list-type=2&prefix=a%2F",
                "",
            ),
            (
                Call::s3("DeleteObjects")
                    .with("Bucket", "b")
                    .list("Key", ["x", "y"]),
                "POST",
                "/b?delete=",
                "<Object><Key>x</Key></Object><Object><Key>y</Key></Object><Quiet>true</Quiet>",
            ),
            (
                Call::s3("GetObject")
                    .with("Bucket", "b")
                    .with("Key", "a/x y"),
                "GET",
                "/b/a/x%20y?",
                "",
            ),
            (Call::s3("ListBuckets"), "GET", "/?", ""),
        ] {
            let found = request(&call).unwrap();
            assert_eq!(found.method, method, "{call:?}");
            assert_eq!(format!("{}?{}", found.path, found.query), target);
            assert!(found.body.contains(body), "{call:?}: {}", found.body);
            assert_eq!(found.body.is_empty(), body.is_empty(), "{call:?}");
        }
        assert_eq!(request(&Call::ec2("DescribeVpcs")), None);
    }
}
