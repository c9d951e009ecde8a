//! The domain of a hosted cluster.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::{immutable, rule};

/// The domain of a hosted cluster and the zones that hold its records.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DnsSpec {
    /// Domain under which the cluster gets its own, for example `example.com`.
    /// It can be set once: from the empty string to a value.
    #[schemars(
        length(max = 253),
        transform = rule(
            "self == '' || self.matches('^(([a-zA-Z0-9-]+[.])+[a-zA-Z]{2,}|[a-zA-Z0-9-]+)$')",
            "baseDomain must be a DNS name such as example.com, or empty"
        ),
        transform = rule(
            "oldSelf in ['', self]",
            "the base domain cannot be changed once it is set; create a new cluster to use another \
             one"
        ),
    )]
    pub base_domain: String,
    /// Prefix of the base domain in names of the cluster; without a value it is the
    /// cluster's name.
    /// An empty string means no prefix.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 253),
        transform = rule(
            "self == '' || self.matches('^(([a-zA-Z0-9-]+[.])+[a-zA-Z]{2,}|[a-zA-Z0-9-]+)$')",
            "baseDomainPrefix must be a DNS name or label such as prod, or empty for no prefix"
        ),
        transform = immutable(
            "the prefix of the base domain is fixed when the cluster is created; leave it as it is"
        ),
    )]
    pub base_domain_prefix: Option<String>,
    /// ID of the DNS zone for names that resolve on the internet.
    /// On Azure it is the zone's resource ID. It can be set once.
    #[serde(rename = "publicZoneID", skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 258),
        transform = rule(
            "oldSelf in ['', self]",
            "the public zone cannot be changed once it is set; leave it as it is"
        ),
    )]
    pub public_zone_id: Option<String>,
    /// ID of the DNS zone for names that resolve inside the cluster's network only.
    /// On Azure it is the zone's resource ID. It can be set once.
    #[serde(rename = "privateZoneID", skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 265),
        transform = rule(
            "oldSelf in ['', self]",
            "the private zone cannot be changed once it is set; leave it as it is"
        ),
    )]
    pub private_zone_id: Option<String>,
}
