//! Identities, domain names and buckets of the fake.

use std::collections::{BTreeMap, BTreeSet};

use support::aws::{Element, Error};
use support::xml::escaped;

use super::{Account, State, refused, tags_xml, xml};
use crate::infra::aws::call::{Call, Tags};

const AUTHORITY: &str = "<ResourceRecordSet><Name>NAME.</Name><Type>SOA</Type><TTL>900</TTL><ResourceRecords><ResourceRecord>\
                         <Value>ns. host. 1 7200 900 1209600 86400</Value></ResourceRecord></ResourceRecords>\
                         </ResourceRecordSet>";

/// A hosted zone.
#[derive(Debug, Clone, Default)]
pub(in crate::infra::aws) struct Zone {
    pub(in crate::infra::aws) name: String,
    pub(in crate::infra::aws) account: Account,
    /// The VPC of a private one.
    pub(in crate::infra::aws) vpc: Option<String>,
    /// VPCs of the other account that may use it, and whether they do.
    pub(in crate::infra::aws) others: BTreeMap<String, bool>,
    pub(in crate::infra::aws) tags: Tags,
    /// Documents.
    pub(in crate::infra::aws) records: BTreeSet<String>,
}

/// A role.
#[derive(Debug, Clone, Default)]
pub(in crate::infra::aws) struct Role {
    pub(in crate::infra::aws) account: Account,
    pub(in crate::infra::aws) tags: Tags,
    pub(in crate::infra::aws) trust: String,
    pub(in crate::infra::aws) policies: BTreeMap<String, String>,
    /// ARNs of managed policies.
    pub(in crate::infra::aws) attached: BTreeSet<String>,
}

/// An instance profile.
#[derive(Debug, Clone, Default)]
pub(in crate::infra::aws) struct Profile {
    tags: Tags,
    roles: Vec<String>,
}

/// An identity provider.
#[derive(Debug, Clone, Default)]
pub(in crate::infra::aws) struct Provider {
    pub(in crate::infra::aws) tags: Tags,
    pub(in crate::infra::aws) clients: Vec<String>,
    pub(in crate::infra::aws) thumbprints: Vec<String>,
}

/// A bucket.
#[derive(Debug, Clone, Default)]
pub(in crate::infra::aws) struct Bucket {
    pub(in crate::infra::aws) tags: Tags,
    pub(in crate::infra::aws) policy: String,
    pub(in crate::infra::aws) objects: BTreeMap<String, String>,
}

fn owned(texts: Vec<&str>) -> Vec<String> {
    texts.into_iter().map(str::to_owned).collect()
}

impl State {
    pub(super) fn iam(&mut self, call: &Call) -> Result<String, Error> {
        let account = self.caller;
        let absent = || refused(call, 404, "NoSuchEntity");
        let there = self.roles.get(call.get("RoleName"));
        if there.is_some_and(|role| role.account != account) {
            assert_ne!(call.action, "CreateRole", "roles have names of their own");
            return Err(absent());
        }
        self.check_principals(call)?;
        let result = |text: &str| xml(&format!("{}Result", call.action), text);
        let (role, profile) = (call.get("RoleName"), call.get("InstanceProfileName"));
        let arn = call.get("OpenIDConnectProviderArn");
        let tags = |tags: &Tags| xml("Tags", &tags_xml(tags, "member", "Key", "Value"));
        let members = |list: &str, texts: &[String]| {
            let texts = texts.iter().map(|text| xml("member", text));
            xml(list, &texts.collect::<String>())
        };
        match call.action {
            "GetRole" => {
                let found = self.roles.get(role).ok_or_else(absent)?;
                let text = format!(
                    "{}{}",
                    xml("Arn", &format!("arn:role/{role}")),
                    tags(&found.tags)
                );
                Ok(result(&xml("Role", &text)))
            }
            "CreateRole" => {
                if self.roles.contains_key(role) {
                    return Err(refused(call, 409, "EntityAlreadyExists"));
                }
                let made = Role {
                    account,
                    tags: call.tags_of("Tags.member"),
                    trust: call.get("AssumeRolePolicyDocument").to_owned(),
                    policies: BTreeMap::new(),
                    attached: BTreeSet::new(),
                };
                self.roles.insert(role.to_owned(), made);
                self.new.insert(role.to_owned());
                Ok(result(&xml(
                    "Role",
                    &xml("Arn", &format!("arn:role/{role}")),
                )))
            }
            "UpdateAssumeRolePolicy" => {
                let found = self.roles.get_mut(role).ok_or_else(absent)?;
                found.trust = call.get("PolicyDocument").to_owned();
                Ok(String::new())
            }
            "PutRolePolicy" => {
                let found = self.roles.get_mut(role).ok_or_else(absent)?;
                let [name, policy] =
                    ["PolicyName", "PolicyDocument"].map(|it| call.get(it).to_owned());
                found.policies.insert(name, policy);
                Ok(String::new())
            }
            "ListRolePolicies" => {
                let found = self.roles.get(role).ok_or_else(absent)?;
                let names: Vec<_> = found.policies.keys().cloned().collect();
                Ok(result(&members("PolicyNames", &names)))
            }
            "DeleteRolePolicy" => {
                let found = self.roles.get_mut(role).ok_or_else(absent)?;
                let removed = found.policies.remove(call.get("PolicyName"));
                removed.map(|_| String::new()).ok_or_else(absent)
            }
            "AttachRolePolicy" => {
                let found = self.roles.get_mut(role).ok_or_else(absent)?;
                found.attached.insert(call.get("PolicyArn").to_owned());
                Ok(String::new())
            }
            "ListAttachedRolePolicies" => {
                let found = self.roles.get(role).ok_or_else(absent)?;
                let arns = found.attached.iter();
                let arns = arns.map(|arn| xml("member", &xml("PolicyArn", arn)));
                Ok(result(&xml("AttachedPolicies", &arns.collect::<String>())))
            }
            "DetachRolePolicy" => {
                let found = self.roles.get_mut(role).ok_or_else(absent)?;
                let removed = found.attached.remove(call.get("PolicyArn"));
                removed.then(String::new).ok_or_else(absent)
            }
            "DeleteRole" => {
                let found = self.roles.get(role).ok_or_else(absent)?;
                let mut profiles = self.profiles.values();
                if !found.policies.is_empty()
                    || !found.attached.is_empty()
                    || profiles.any(|it| it.roles.iter().any(|it| it == role))
                {
                    return Err(refused(call, 409, "DeleteConflict"));
                }
                self.roles.remove(role);
                Ok(String::new())
            }
            "GetInstanceProfile" => {
                let found = self.profiles.get(profile).ok_or_else(absent)?;
                let roles = found
                    .roles
                    .iter()
                    .map(|role| xml("member", &xml("RoleName", role)));
                let roles = xml("Roles", &roles.collect::<String>());
                Ok(result(&xml(
                    "InstanceProfile",
                    &format!("{roles}{}", tags(&found.tags)),
                )))
            }
            "CreateInstanceProfile" => {
                if self.profiles.contains_key(profile) {
                    return Err(refused(call, 409, "EntityAlreadyExists"));
                }
                let made = Profile {
                    tags: call.tags_of("Tags.member"),
                    roles: Vec::new(),
                };
                self.profiles.insert(profile.to_owned(), made);
                Ok(String::new())
            }
            "AddRoleToInstanceProfile" => {
                let found = self.profiles.get_mut(profile).ok_or_else(absent)?;
                if !found.roles.is_empty() {
                    return Err(refused(call, 409, "LimitExceeded"));
                }
                found.roles.push(role.to_owned());
                Ok(String::new())
            }
            "RemoveRoleFromInstanceProfile" => {
                let found = self.profiles.get_mut(profile).ok_or_else(absent)?;
                found.roles.retain(|it| it != role);
                Ok(String::new())
            }
            "DeleteInstanceProfile" => {
                let found = self.profiles.get(profile).ok_or_else(absent)?;
                if !found.roles.is_empty() {
                    return Err(refused(call, 409, "DeleteConflict"));
                }
                self.profiles.remove(profile);
                Ok(String::new())
            }
            "ListOpenIDConnectProviders" => {
                let arns = self
                    .providers
                    .keys()
                    .map(|arn| xml("member", &xml("Arn", arn)));
                Ok(result(&xml(
                    "OpenIDConnectProviderList",
                    &arns.collect::<String>(),
                )))
            }
            "GetOpenIDConnectProvider" => {
                let found = self.providers.get(arn).ok_or_else(absent)?;
                let clients = members("ClientIDList", &found.clients);
                let thumbprints = members("ThumbprintList", &found.thumbprints);
                Ok(result(&format!(
                    "{clients}{thumbprints}{}",
                    tags(&found.tags)
                )))
            }
            "CreateOpenIDConnectProvider" => {
                let host = call.get("Url").trim_start_matches("https://");
                let arn = format!("arn:aws:iam::1:oidc-provider/{host}");
                let made = Provider {
                    tags: call.tags_of("Tags.member"),
                    clients: owned(call.values("ClientIDList.member")),
                    thumbprints: owned(call.values("ThumbprintList.member")),
                };
                if self.providers.insert(arn.clone(), made).is_some() {
                    return Err(refused(call, 409, "EntityAlreadyExists"));
                }
                Ok(result(&xml("OpenIDConnectProviderArn", &arn)))
            }
            "DeleteOpenIDConnectProvider" => {
                let removed = self.providers.remove(arn);
                removed.map(|_| String::new()).ok_or_else(absent)
            }
            _ => Ok(result("")),
        }
    }

    pub(super) fn sts(&self) -> String {
        let arn = self
            .caller_arn
            .as_deref()
            .unwrap_or("arn:aws:iam::1:user/a");
        let account = xml("Account", self.caller.id());
        xml("GetCallerIdentityResult", &(account + &xml("Arn", arn)))
    }

    /// Principals of trust policies must be roles that IAM knows everywhere.
    fn check_principals(&self, call: &Call) -> Result<(), Error> {
        let documents = ["AssumeRolePolicyDocument", "PolicyDocument"];
        let trust = documents.map(|document| call.get(document)).concat();
        let is_trust = ["CreateRole", "UpdateAssumeRolePolicy"].contains(&call.action);
        if !is_trust || !trust.contains("\"AWS\"") {
            return Ok(());
        }
        let mut names = trust.split("arn:role/").skip(1);
        let is_known = names.all(|rest| {
            let name = rest.split('"').next().unwrap_or_default();
            self.roles.contains_key(name) && !self.new.contains(name)
        });
        if is_known {
            return Ok(());
        }
        Err(refused(call, 400, "MalformedPolicyDocument"))
    }

    /// Refuses what an account may not do with a zone.
    fn check_zone(&self, call: &Call) -> Result<(), Error> {
        let Some(zone) = self.zones.get(call.get("Id")) else {
            return Ok(());
        };
        let is_association = call.action == "AssociateVPCWithHostedZone";
        if zone.account == self.caller || is_association {
            return Ok(());
        }
        Err(refused(call, 403, "AccessDenied"))
    }

    /// Refuses a VPC of another account.
    fn check_vpc(&self, call: &Call, vpc: &str) -> Result<(), Error> {
        match self.items.get(vpc) {
            Some(item) if item.account == self.caller => Ok(()),
            Some(_) => Err(refused(call, 403, "AccessDenied")),
            None => Ok(()),
        }
    }

    pub(super) fn route53(&mut self, call: &Call) -> Result<String, Error> {
        let account = self.caller;
        let absent = || refused(call, 404, "NoSuchHostedZone");
        let id = call.get("Id");
        self.check_zone(call)?;
        match call.action {
            "ListHostedZones" => {
                let zones = self
                    .zones
                    .iter()
                    .filter(|(_, zone)| zone.account == account);
                let zones = zones.map(|(id, zone)| {
                    let is_private = zone.vpc.is_some() || !zone.others.is_empty();
                    let private = xml("PrivateZone", &is_private.to_string());
                    let text = format!(
                        "{}{}{}",
                        xml("Id", &format!("/hostedzone/{id}")),
                        xml("Name", &format!("{}.", zone.name)),
                        xml("Config", &private)
                    );
                    xml("HostedZone", &text)
                });
                Ok(xml("HostedZones", &zones.collect::<String>()))
            }
            "ListHostedZonesByVPC" => {
                let vpc = call.get("vpcid");
                self.check_vpc(call, vpc)?;
                let zones = self.zones.iter().filter(|(_, zone)| {
                    let is_other = zone.others.get(vpc) == Some(&true);
                    zone.vpc.as_deref() == Some(vpc) || is_other
                });
                let zones = zones.map(|(id, zone)| {
                    let text = format!(
                        "{}{}",
                        xml("HostedZoneId", id),
                        xml("Name", &format!("{}.", zone.name))
                    );
                    xml("HostedZoneSummary", &text)
                });
                Ok(xml("HostedZoneSummaries", &zones.collect::<String>()))
            }
            "CreateHostedZone" => {
                let name = call.get("Name").to_owned();
                self.check_vpc(call, call.get("VPCId"))?;
                let zone = Zone {
                    account,
                    vpc: Some(call.get("VPCId").to_owned()),
                    others: BTreeMap::new(),
                    tags: Tags::new(),
                    records: BTreeSet::from([AUTHORITY.replace("NAME", &name)]),
                    name,
                };
                let id = self.id("Z");
                self.zones.insert(id.clone(), zone);
                Ok(xml("HostedZone", &xml("Id", &format!("/hostedzone/{id}"))))
            }
            "CreateVPCAssociationAuthorization" => {
                let zone = self.zones.get_mut(id).ok_or_else(absent)?;
                zone.others.entry(call.get("VPCId").to_owned()).or_default();
                Ok(String::new())
            }
            "AssociateVPCWithHostedZone" => {
                self.check_vpc(call, call.get("VPCId"))?;
                let zone = self.zones.get_mut(id).ok_or_else(absent)?;
                let vpc = zone.others.get_mut(call.get("VPCId"));
                let vpc = vpc.ok_or_else(|| refused(call, 401, "NotAuthorizedException"))?;
                if *vpc {
                    return Err(refused(call, 400, "ConflictingDomainExists"));
                }
                *vpc = true;
                Ok(String::new())
            }
            "DisassociateVPCFromHostedZone" => {
                let zone = self.zones.get_mut(id).ok_or_else(absent)?;
                if zone.vpc.as_deref() != Some(call.get("VPCId")) {
                    return Err(refused(call, 404, "VPCAssociationNotFound"));
                }
                if !zone.others.values().any(|is_associated| *is_associated) {
                    return Err(refused(call, 400, "LastVPCAssociation"));
                }
                zone.vpc = None;
                Ok(String::new())
            }
            "ListTagsForResource" => {
                let zone = self.zones.get(id).ok_or_else(absent)?;
                let tags = xml("Tags", &tags_xml(&zone.tags, "Tag", "Key", "Value"));
                Ok(xml("ResourceTagSet", &tags))
            }
            "ChangeTagsForResource" => {
                let zone = self.zones.get_mut(id).ok_or_else(absent)?;
                zone.tags.extend(call.tags_of("Tag"));
                Ok(String::new())
            }
            "ListResourceRecordSets" => {
                let zone = self.zones.get(id).ok_or_else(absent)?;
                let records: String = zone.records.iter().map(String::as_str).collect();
                Ok(xml("ResourceRecordSets", &records))
            }
            "ChangeResourceRecordSets" => {
                let zone = self.zones.get_mut(id).ok_or_else(absent)?;
                let record = Element::parse(call.get("Record")).unwrap();
                let key =
                    |it: &Element| (it.text_at("Name").to_owned(), it.text_at("Type").to_owned());
                let there = zone.records.len();
                zone.records
                    .retain(|it| key(&Element::parse(it).unwrap()) != key(&record));
                if call.get("Action") == "UPSERT" {
                    zone.records.insert(record.to_string());
                } else if zone.records.len() == there {
                    return Err(refused(call, 400, "InvalidChangeBatch"));
                }
                Ok(String::new())
            }
            "DeleteHostedZone" => {
                let zone = self.zones.get(id).ok_or_else(absent)?;
                if zone
                    .records
                    .iter()
                    .any(|it| !it.contains("<Type>SOA</Type>"))
                {
                    return Err(refused(call, 400, "HostedZoneNotEmpty"));
                }
                self.zones.remove(id);
                Ok(String::new())
            }
            _ => Ok(String::new()),
        }
    }

    pub(super) fn s3(&mut self, call: &Call) -> Result<String, Error> {
        let name = call.get("Bucket");
        let absent = || refused(call, 404, "NoSuchBucket");
        match call.action {
            "ListBuckets" => {
                let buckets = self
                    .buckets
                    .keys()
                    .map(|name| xml("Bucket", &xml("Name", name)));
                return Ok(xml("Buckets", &buckets.collect::<String>()));
            }
            "CreateBucket" => {
                self.buckets.entry(name.to_owned()).or_default();
                return Ok(String::new());
            }
            _ => {}
        }
        let bucket = self.buckets.get_mut(name).ok_or_else(absent)?;
        match call.action {
            "GetBucketTagging" if bucket.tags.is_empty() => Err(refused(call, 404, "NoSuchTagSet")),
            "GetBucketTagging" => Ok(xml(
                "TagSet",
                &tags_xml(&bucket.tags, "Tag", "Key", "Value"),
            )),
            "PutBucketTagging" => {
                bucket.tags = call.tags_of("Tag");
                Ok(String::new())
            }
            "PutBucketPolicy" => {
                bucket.policy = call.get("Policy").to_owned();
                Ok(String::new())
            }
            "PutObject" => {
                let [key, body] = ["Key", "Body"].map(|it| call.get(it).to_owned());
                bucket.objects.insert(key, body);
                Ok(String::new())
            }
            "GetObject" => {
                let object = bucket.objects.get(call.get("Key"));
                let object = object.ok_or_else(|| refused(call, 404, "NoSuchKey"))?;
                Ok(escaped(object))
            }
            "ListObjectsV2" => {
                let keys = bucket
                    .objects
                    .keys()
                    .filter(|key| key.starts_with(call.get("prefix")));
                Ok(keys.map(|key| xml("Contents", &xml("Key", key))).collect())
            }
            "DeleteObjects" => {
                for key in call.values("Key") {
                    bucket.objects.remove(key);
                }
                Ok(String::new())
            }
            "DeleteBucket" => {
                if !bucket.objects.is_empty() {
                    return Err(refused(call, 409, "BucketNotEmpty"));
                }
                self.buckets.remove(name);
                Ok(String::new())
            }
            _ => Ok(String::new()),
        }
    }
}
