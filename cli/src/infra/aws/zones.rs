//! Hosted zones of Route 53: the public one, which must exist, and the private ones of a cluster.

use std::time::Duration;

use anyhow::{Context as _, bail};
use support::aws::{Element, Error};

use super::call::{Call, Calls, Tags};
use super::executor::{Executor, is_worth_it};
use super::scope::tags;
use crate::Usage;
use crate::create::text;

/// Attempts at what depends on a new VPC.
const ATTEMPTS: u32 = 10;
const INTERVAL: Duration = Duration::from_secs(1);
/// What is new is not known everywhere at once.
const NEW_VPC: [&str; 2] = ["InvalidVPCId", "HostedZoneAlreadyExists"];
/// How long resolvers remember that a name does not exist, in seconds.
const NEGATIVE_TTL: &str = "60";
/// Its place in the record of a zone's authority.
const NEGATIVE_TTL_FIELD: usize = 6;
/// The value of `--base-domain-prefix` for no prefix.
const NONE: &str = "none";

/// The domain of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Domain {
    pub(crate) base: String,
    /// The label before the base domain.
    pub(crate) prefix: Option<String>,
}

// === impl Domain ===

impl Domain {
    /// The domain of flags.
    pub(crate) fn new(base: &str, prefix: Option<&str>, name: &str) -> Result<Self, Usage> {
        let base = base.trim_end_matches('.');
        let prefix = match prefix {
            Some(NONE) => None,
            None | Some("") => Some(name),
            Some(prefix) => Some(prefix),
        };
        if !base.split('.').all(text::is_plain) {
            return Err(Usage::new(&format!(
                "--base-domain {base:?} is not a valid domain (for example example.com)"
            )));
        }
        if let Some(prefix) = prefix.filter(|prefix| !prefix.split('.').all(text::is_plain)) {
            return Err(Usage::new(&format!(
                "--base-domain-prefix {prefix:?} is not a valid label"
            )));
        }
        Ok(Self {
            base: base.to_owned(),
            prefix: prefix.map(str::to_owned),
        })
    }

    /// The domain of the cluster.
    pub(crate) fn cluster(&self) -> String {
        match &self.prefix {
            Some(prefix) => format!("{prefix}.{}", self.base),
            None => self.base.clone(),
        }
    }

    /// The domain of endpoints in the network of a cluster.
    pub(crate) fn local(name: &str) -> String {
        format!("{name}.hypershift.local")
    }

    /// The prefix as a flag has it.
    pub(crate) fn flag(&self) -> &str {
        self.prefix.as_deref().unwrap_or(NONE)
    }
}

impl<C: Calls> Executor<'_, C> {
    /// The identifier of the public zone of the base domain.
    pub(crate) async fn public_zone(&self, domain: &Domain) -> anyhow::Result<String> {
        let found = self.find_public_zone(domain).await?;
        found.with_context(|| {
            format!(
                "there is no public hosted zone {} in the account: create it, and delegate the domain to it",
                domain.base
            )
        })
    }

    pub(crate) async fn find_public_zone(&self, domain: &Domain) -> Result<Option<String>, Error> {
        let mut call = Call::route53("ListHostedZones");
        loop {
            let page = self.calls.call(&call).await?;
            let mut zones = page.items("HostedZones").iter();
            let found = zones.find(|zone| {
                has_name(zone, &domain.base) && zone.text_at("Config/PrivateZone") != "true"
            });
            if let Some(found) = found {
                return Ok(Some(plain(found.text_at("Id"))));
            }
            match page.text_at("NextMarker") {
                "" => return Ok(None),
                marker => call = Call::route53("ListHostedZones").with("marker", marker),
            }
        }
    }

    /// The private zones that a VPC uses: identifier and name.
    pub(crate) async fn zones_of_vpc(&self, vpc: &str) -> Result<Vec<(String, String)>, Error> {
        let call = Call::route53("ListHostedZonesByVPC")
            .with("vpcid", vpc)
            .with("vpcregion", &self.scope.region);
        let response = self.calls.call(&call).await?;
        let zones = response.items("HostedZoneSummaries").iter();
        let zones = zones.map(|zone| {
            let name = zone.text_at("Name").trim_end_matches('.');
            (plain(zone.text_at("HostedZoneId")), name.to_owned())
        });
        Ok(zones.collect())
    }

    pub(crate) async fn zone_of_vpc(&self, vpc: &str, name: &str) -> Result<Option<String>, Error> {
        let zones = self.zones_of_vpc(vpc).await?;
        let found = zones.into_iter().find(|(_, zone)| zone == name);
        Ok(found.map(|(id, _)| id))
    }

    pub(super) async fn zone_tags(&self, id: &str) -> Result<Tags, Error> {
        let call = Call::route53("ListTagsForResource").with("Id", id);
        let response = self.calls.call(&call).await?;
        Ok(tags(response.items("ResourceTagSet/Tags")))
    }

    /// Finds a private zone of the VPC or creates it; returns its identifier.
    pub(crate) async fn private_zone(&self, vpc: &str, name: &str) -> anyhow::Result<String> {
        let what = || format!("failed to create private hosted zone {name}");
        let mut attempt = 1;
        let id = loop {
            if let Some(id) = self.zone_of_vpc(vpc, name).await.with_context(what)? {
                let tags = self.zone_tags(&id).await.with_context(what)?;
                if !self.scope.may_change(&tags) {
                    bail!(
                        "private hosted zone {name} ({id}) of {vpc} belongs to another cluster: choose another --name or \
                         --base-domain-prefix"
                    );
                }
                self.say(&format!("private hosted zone {name}: exists ({id})"));
                break id;
            }
            let call = Call::route53("CreateHostedZone")
                .with("Name", name)
                .with("VPCId", vpc)
                .with("VPCRegion", &self.scope.region)
                .with("CallerReference", format!("{vpc}-{name}"));
            match self.calls.call(&call).await {
                Ok(response) => {
                    let id = plain(response.text_at("HostedZone/Id"));
                    self.say(&format!("private hosted zone {name}: created ({id})"));
                    break id;
                }
                Err(error) if is_worth_it(&error, &NEW_VPC) && attempt < ATTEMPTS => attempt += 1,
                Err(error) => return Err(error).with_context(what),
            }
            self.calls.pause(INTERVAL).await;
        };
        let tags = self.scope.tags(name);
        let call = Call::route53("ChangeTagsForResource")
            .with("Id", &id)
            .tags("Tag", &tags);
        self.settle(&call, &[], &[]).await.with_context(what)?;
        self.shorten_negative_ttl(&id, name)
            .await
            .with_context(what)?;
        Ok(id)
    }

    async fn shorten_negative_ttl(&self, id: &str, name: &str) -> anyhow::Result<()> {
        let call = Call::route53("ListResourceRecordSets").with("Id", id);
        let response = self.call(&call).await?;
        let mut records = response.items("ResourceRecordSets").iter();
        let authority = records.find(|it| it.text_at("Type") == "SOA" && has_name(it, name));
        let Some(record) = authority.and_then(with_short_ttl) else {
            return Ok(());
        };
        let call = Call::route53("ChangeResourceRecordSets")
            .with("Id", id)
            .with("Action", "UPSERT")
            .with("Record", record.to_string());
        self.settle(&call, &[], &[]).await
    }
}

/// An identifier without what is before it in some responses.
fn plain(id: &str) -> String {
    id.trim_start_matches("/hostedzone/").to_owned()
}

/// Whether a zone or a record has a name. Stars are escaped in responses.
pub(crate) fn has_name(element: &Element, name: &str) -> bool {
    let there = element.text_at("Name").replace("\\052", "*");
    there.trim_end_matches('.') == name
}

/// The record of an authority with a short time for names that do not exist; `None` if it has one.
fn with_short_ttl(record: &Element) -> Option<Element> {
    let value = record.text_at("ResourceRecords/ResourceRecord/Value");
    let mut fields: Vec<_> = value.split_whitespace().collect();
    let field = fields.get_mut(NEGATIVE_TTL_FIELD)?;
    if *field == NEGATIVE_TTL {
        return None;
    }
    *field = NEGATIVE_TTL;
    let value = Element::leaf("Value", &fields.join(" "));
    let changed = Element::around("ResourceRecord", vec![value]);
    let records = Element::around("ResourceRecords", vec![changed]);
    let mut record = record.clone();
    let old = record
        .children
        .iter_mut()
        .find(|it| it.name == records.name)?;
    *old = records;
    Some(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_have_a_prefix_unless_there_is_none() {
        for (prefix, cluster, flag) in [
            (None, "a.example.com", "a"),
            (Some(""), "a.example.com", "a"),
            (Some("b"), "b.example.com", "b"),
            (Some("none"), "example.com", "none"),
        ] {
            let domain = Domain::new("example.com.", prefix, "a").unwrap();
            assert_eq!((domain.cluster().as_str(), domain.flag()), (cluster, flag));
        }
        for (base, prefix) in [
            ("", None),
            ("a..b", None),
            ("a b", None),
            ("a.b", Some("*")),
        ] {
            Domain::new(base, prefix, "a").unwrap_err();
        }
    }

    #[test]
    fn the_negative_ttl_becomes_a_minute() {
        let record = |ttl: &str| {
            let text = format!(
                "<ResourceRecordSet><Name>a.local.</Name><Type>SOA</Type><TTL>900</TTL><ResourceRecords><ResourceRecord>\
                 <Value>ns. host. 1 7200 900 1209600 {ttl}</Value></ResourceRecord></ResourceRecords></ResourceRecordSet>"
            );
            Element::parse(&text).unwrap()
        };
        assert_eq!(with_short_ttl(&record("86400")), Some(record("60")));
        assert_eq!(with_short_ttl(&record("60")), None);
    }

    #[test]
    fn names_are_compared_without_dots_and_escapes() {
        let record = Element::parse("<R><Name>\\052.apps.a.b.</Name></R>").unwrap();
        assert!(has_name(&record, "*.apps.a.b"));
        assert!(!has_name(&record, "apps.a.b"));
    }
}
