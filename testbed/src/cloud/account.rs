//! What there is in an account: to prove that nothing is left in it.

use anyhow::{Result, ensure};
use http::Request;

use super::load_balancers::{CLASSIC, CURRENT};
use super::{Cloud, EC2};

/// What accounts are compared by: service, version and action. A fake remembers NAT gateways, instances and VPC endpoints that
/// are gone, as AWS does.
const LISTS: [(&str, &str, &str); 16] = [
    ("ec2", "2016-11-15", "DescribeVpcs"),
    ("ec2", "2016-11-15", "DescribeSubnets"),
    ("ec2", "2016-11-15", "DescribeInternetGateways"),
    ("ec2", "2016-11-15", "DescribeRouteTables"),
    ("ec2", "2016-11-15", "DescribeAddresses"),
    ("ec2", "2016-11-15", "DescribeDhcpOptions"),
    ("ec2", "2016-11-15", "DescribeSecurityGroups"),
    ("ec2", "2016-11-15", "DescribeVolumes"),
    ("ec2", "2016-11-15", "DescribeNetworkInterfaces"),
    ("ec2", "2016-11-15", "DescribeLaunchTemplates"),
    (CLASSIC.0, CLASSIC.1, "DescribeLoadBalancers"),
    (CURRENT.0, CURRENT.1, "DescribeLoadBalancers"),
    (CURRENT.0, CURRENT.1, "DescribeTargetGroups"),
    ("iam", "2010-05-08", "ListRoles"),
    ("iam", "2010-05-08", "ListInstanceProfiles"),
    ("iam", "2010-05-08", "ListOpenIDConnectProviders"),
];
/// VPC endpoints that are not gone.
const ENDPOINTS: [(&str, &str); 3] = [
    ("Filter.1.Name", "vpc-endpoint-state"),
    ("Filter.1.Value.1", "available"),
    ("Filter.1.Value.2", "pending"),
];

// === impl Cloud ===

impl Cloud {
    /// Makes the public hosted zone that a base domain needs.
    pub async fn create_public_zone(&self, domain: &str) -> Result<()> {
        let body = format!(
            "<CreateHostedZoneRequest xmlns=\"https://route53.amazonaws.com/doc/2013-04-01/\"><Name>{domain}</Name>\
             <CallerReference>test</CallerReference></CreateHostedZoneRequest>"
        );
        let request = Request::post("/2013-04-01/hostedzone");
        self.send("route53", request, &body).await.map(drop)
    }

    /// What there is in the account.
    pub async fn account(&self) -> Result<Vec<String>> {
        let mut account = Vec::new();
        for (service, version, action) in LISTS {
            account.push(self.ask((service, version), action, &[]).await?);
        }
        account.push(self.ask(EC2, "DescribeVpcEndpoints", &ENDPOINTS).await?);
        account.push(self.send("s3", Request::get("/"), "").await?);
        let zones = Request::get("/2013-04-01/hostedzone");
        account.push(self.send("route53", zones, "").await?);
        let texts = account.iter().map(|text| without_ids_of_requests(text));
        Ok(texts.collect())
    }

    /// Fails if the account has anything that it had not before.
    pub async fn has_only(&self, before: &[String]) -> Result<()> {
        let after = self.account().await?;
        for (before, after) in before.iter().zip(&after) {
            ensure!(before == after, "something is left: {after}");
        }
        Ok(())
    }
}

/// Each response has another one.
fn without_ids_of_requests(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let Some(start) = lower.find("<requestid>") else {
        return text.to_owned();
    };
    let end = lower.find("</requestid>").unwrap_or(text.len());
    format!("{}{}", &text[..start], &text[end..])
}
