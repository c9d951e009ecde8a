//! The services of AWS: where they are, and how their requests are signed. Pure.

use std::time::Duration;

use super::retry::Retry;
use super::{Variable, domain, endpoint, partition};

/// A service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Service {
    /// Its name in variables of the environment such as `AWS_ENDPOINT_URL_EC2`.
    pub id: &'static str,
    /// The first label of its host name.
    pub host: &'static str,
    /// Its name in signatures.
    pub signing: &'static str,
    /// The version of its API.
    pub version: &'static str,
    /// How often a request is sent.
    pub retry: Retry,
    /// Whether there is one for all regions of a partition.
    pub is_global: bool,
}

const RETRY: Retry = Retry {
    attempts: 11,
    longest: Duration::from_secs(5),
};

const fn regional(
    id: &'static str,
    host: &'static str,
    signing: &'static str,
    version: &'static str,
) -> Service {
    Service {
        id,
        host,
        signing,
        version,
        retry: RETRY,
        is_global: false,
    }
}

/// Networks and instances.
pub const EC2: Service = regional("ec2", "ec2", "ec2", "2016-11-15");
/// Classic load balancers.
pub const ELB: Service = regional(
    "elastic_load_balancing",
    "elasticloadbalancing",
    "elasticloadbalancing",
    "2012-06-01",
);
/// Network and application load balancers.
pub const ELB_V2: Service = regional(
    "elastic_load_balancing_v2",
    "elasticloadbalancing",
    "elasticloadbalancing",
    "2015-12-01",
);
/// Shares of resources with other accounts.
pub const RAM: Service = regional("ram", "ram", "ram", "2018-01-04");
/// Object stores.
pub const S3: Service = regional("s3", "s3", "s3", "2006-03-01");
/// Tokens.
pub const STS: Service = regional("sts", "sts", "sts", "2011-06-15");
/// Roles, policies and identity providers.
pub const IAM: Service = Service {
    is_global: true,
    ..regional("iam", "iam", "iam", "2010-05-08")
};
/// Domain names. It permits five requests a second.
pub const ROUTE53: Service = Service {
    is_global: true,
    retry: Retry {
        attempts: 21,
        longest: Duration::from_secs(30),
    },
    ..regional("route_53", "route53", "route53", "2013-04-01")
};

// === impl Service ===

impl Service {
    /// The region that signs requests of a region.
    pub fn signing_region<'a>(&self, region: &'a str) -> &'a str {
        if !self.is_global {
            return region;
        }
        match partition(region) {
            "aws-cn" if self.signing == "route53" => "cn-northwest-1",
            "aws-cn" => "cn-north-1",
            "aws-us-gov" => "us-gov-west-1",
            "aws-iso" => "us-iso-east-1",
            "aws-iso-b" => "us-isob-east-1",
            _ => "us-east-1",
        }
    }

    /// Its URL, without a slash at the end: that of the environment, or that of AWS.
    pub fn url(&self, region: &str, variable: Variable<'_>) -> String {
        endpoint(self.id, variable).unwrap_or_else(|| {
            let domain = domain(region);
            if !self.is_global {
                return format!("https://{}.{region}.{domain}", self.host);
            }
            match partition(region) {
                "aws-cn" if self.host == "iam" => format!("https://iam.cn-north-1.{domain}"),
                "aws-us-gov" => format!("https://{}.us-gov.{domain}", self.host),
                _ => format!("https://{}.{domain}", self.host),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_have_a_url_and_a_region_in_each_partition() {
        for (service, region, url, signing) in [
            (
                EC2,
                "eu-west-1",
                "https://ec2.eu-west-1.amazonaws.com",
                "eu-west-1",
            ),
            (IAM, "eu-west-1", "https://iam.amazonaws.com", "us-east-1"),
            (
                IAM,
                "us-gov-east-1",
                "https://iam.us-gov.amazonaws.com",
                "us-gov-west-1",
            ),
            (
                ROUTE53,
                "cn-north-1",
                "https://route53.amazonaws.com.cn",
                "cn-northwest-1",
            ),
            (
                ELB_V2,
                "cn-north-1",
                "https://elasticloadbalancing.cn-north-1.amazonaws.com.cn",
                "cn-north-1",
            ),
        ] {
            assert_eq!(service.url(region, &|_| None), url);
            assert_eq!(service.signing_region(region), signing);
        }
        let local = |name: &str| {
            (name == "AWS_ENDPOINT_URL_ROUTE_53").then(|| "http://127.0.0.1:1/".to_owned())
        };
        assert_eq!(ROUTE53.url("eu-west-1", &local), "http://127.0.0.1:1");
    }
}
