//! A fake of IBM Cloud: the services that create and destroy infrastructure of Power VS.
//!
//! Objects are documents as the services respond with them, by kind and identifier. What takes time in IBM Cloud takes a few
//! steps of [`Cloud::pass_time`].

mod identity;
mod internet;
mod power;
mod resources;
mod storage;
mod transit;
mod vpc;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use support::rest::Request;

use crate::{Answer, Cloud};

/// The account.
pub const ACCOUNT: &str = "account-1";
/// How long changes take, in steps.
const STEPS: u32 = 2;

/// A kind of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A resource group.
    Group,
    /// An instance of a service: Power VS, Internet Services, Cloud Object Storage.
    Instance,
    /// Credentials for an instance.
    ResourceKey,
    /// A zone of DNS, in an instance of Internet Services.
    Zone,
    /// A record of a zone.
    Record,
    /// A VPC.
    Vpc,
    /// A rule of the default security group of a VPC.
    Rule,
    /// An address prefix of a VPC.
    Prefix,
    /// A subnet of a VPC.
    Subnet,
    /// A load balancer on subnets.
    LoadBalancer,
    /// A transit gateway.
    Gateway,
    /// A connection of a transit gateway.
    Connection,
    /// A DHCP server of a workspace of Power VS.
    DhcpServer,
    /// A service ID.
    ServiceId,
    /// An access policy.
    Policy,
    /// An API key of a service ID.
    ApiKey,
    /// A bucket of an instance of Cloud Object Storage.
    Bucket,
    /// An object in a bucket.
    Object,
}

/// IBM Cloud.
#[derive(Debug, Default)]
pub struct IbmCloud {
    next: u32,
    objects: BTreeMap<(Kind, String), Object>,
    tags: BTreeMap<String, BTreeSet<String>>,
    refusals: Vec<(String, u16)>,
    /// How many calls of the DHCP service are still answered with a timeout.
    pub timeouts: u32,
    /// How many connections are created with a failure.
    pub failures: u32,
}

#[derive(Debug)]
struct Object {
    value: Value,
    /// What happens to it after some steps.
    change: Option<(u32, Change)>,
}

#[derive(Debug, Clone, Copy)]
enum Change {
    Set(&'static str, &'static str),
    Remove,
}

// === impl Kind ===

impl Kind {
    /// The first part of identifiers.
    fn prefix(self) -> &'static str {
        match self {
            Self::Group => "group",
            Self::Instance => "instance",
            Self::ResourceKey => "resource-key",
            Self::Zone => "zone",
            Self::Record => "record",
            Self::Vpc => "vpc",
            Self::Rule => "rule",
            Self::Prefix => "prefix",
            Self::Subnet => "subnet",
            Self::LoadBalancer => "lb",
            Self::Gateway => "gateway",
            Self::Connection => "connection",
            Self::DhcpServer => "dhcp",
            Self::ServiceId => "ServiceId",
            Self::Policy => "policy",
            Self::ApiKey => "ApiKey",
            Self::Bucket => "bucket",
            Self::Object => "object",
        }
    }
}

// === impl IbmCloud ===

impl IbmCloud {
    /// An account with a resource group, and an instance of Internet Services that has a zone.
    pub fn with_zone(group: &str, zone: &str) -> Self {
        let mut cloud = Self::default();
        cloud.add(
            Kind::Group,
            json!({ "name": group, "account_id": ACCOUNT, "state": "ACTIVE" }),
        );
        let crn = cloud.add_internet_services("dns");
        cloud.add(Kind::Zone, json!({ "name": zone, "instance": crn }));
        cloud
    }

    /// Adds an object, and returns its identifier.
    pub fn add(&mut self, kind: Kind, mut value: Value) -> String {
        self.next += 1;
        let id = format!("{}-{:04}", kind.prefix(), self.next);
        value["id"] = json!(id);
        self.put(kind, &id, value);
        id
    }

    /// The objects of a kind.
    pub fn all(&self, kind: Kind) -> impl Iterator<Item = &Value> {
        let objects = self.objects.iter();
        let objects = objects.filter(move |((of, _), _)| *of == kind);
        objects.map(|(_, object)| &object.value)
    }

    /// The object of a kind with a name.
    pub fn named(&self, kind: Kind, name: &str) -> Option<&Value> {
        self.all(kind).find(|value| value["name"] == name)
    }

    /// Changes a field of an object.
    pub fn set(&mut self, kind: Kind, id: &str, field: &str, value: Value) {
        if let Some(object) = self.objects.get_mut(&(kind, id.to_owned())) {
            object.value[field] = value;
        }
    }

    /// Tags of a resource, by its CRN.
    pub fn tags(&self, crn: &str) -> Vec<&str> {
        let tags = self.tags.get(crn).into_iter().flatten();
        tags.map(String::as_str).collect()
    }

    /// Attaches a tag to a resource.
    pub fn tag(&mut self, crn: &str, tag: &str) {
        self.tags
            .entry(crn.to_owned())
            .or_default()
            .insert(tag.to_owned());
    }

    /// Detaches all tags of a resource.
    pub fn untag(&mut self, crn: &str) {
        self.tags.remove(crn);
    }

    /// Has all calls refused whose `METHOD path` contains a text.
    pub fn refuse(&mut self, text: &str, status: u16) {
        self.refusals.push((text.to_owned(), status));
    }

    /// Refuses nothing any more.
    pub fn refuse_nothing(&mut self) {
        self.refusals.clear();
    }

    fn put(&mut self, kind: Kind, id: &str, value: Value) {
        let object = Object {
            value,
            change: None,
        };
        self.objects.insert((kind, id.to_owned()), object);
    }

    fn get(&self, kind: Kind, id: &str) -> Option<&Value> {
        let object = self.objects.get(&(kind, id.to_owned()))?;
        Some(&object.value)
    }

    fn remove(&mut self, kind: Kind, id: &str) -> bool {
        let removed = self.objects.remove(&(kind, id.to_owned()));
        if let Some(crn) = removed.as_ref().and_then(|it| it.value["crn"].as_str()) {
            self.tags.remove(crn);
        }
        removed.is_some()
    }

    /// Has an object change after some steps.
    fn later(&mut self, kind: Kind, id: &str, change: Change) {
        if let Some(object) = self.objects.get_mut(&(kind, id.to_owned())) {
            object.change = Some((STEPS, change));
        }
    }

    /// The response for one object.
    fn one(&self, kind: Kind, id: &str) -> Answer {
        match self.get(kind, id) {
            Some(value) => Answer::ok(value.clone()),
            None => absent(),
        }
    }

    /// The response for the objects of a kind that match.
    fn list(&self, kind: Kind, field: &str, matches: impl Fn(&Value) -> bool) -> Answer {
        let found: Vec<_> = self.all(kind).filter(|it| matches(it)).collect();
        Answer::ok(json!({ field: found }))
    }

    /// The identifiers of the objects of a kind that match.
    fn ids(&self, kind: Kind, matches: impl Fn(&Value) -> bool) -> Vec<String> {
        let found = self.all(kind).filter(|it| matches(it));
        found
            .filter_map(|it| Some(it["id"].as_str()?.to_owned()))
            .collect()
    }

    /// The text of an object, with names in place of identifiers, which differ from run to run.
    fn line(&self, kind: Kind, value: &Value, labels: &[(String, String)]) -> String {
        let tags = value["crn"].as_str().map(|crn| self.tags(crn));
        let mut line = format!("{kind:?} {value} {}", tags.unwrap_or_default().join(" "));
        for (id, label) in labels {
            line = line.replace(id, label);
        }
        line
    }
}

impl Cloud for IbmCloud {
    fn answer(&mut self, request: &Request) -> Answer {
        let line = format!("{} {}", request.method, request.path());
        let refusal = self.refusals.iter().find(|(text, _)| line.contains(text));
        if let Some((_, status)) = refusal {
            return refused(*status, "refused_for_the_test");
        }
        let parts: Vec<_> = request.path().split('/').skip(1).map(decoded).collect();
        let parts: Vec<_> = parts.iter().map(String::as_str).collect();
        let host = request.host().to_owned();
        match host.split('.').collect::<Vec<_>>().as_slice() {
            ["iam", "cloud", "ibm", "com"] => self.identity(request, &parts),
            ["resource-controller", "cloud", "ibm", "com"] => self.resources(request, &parts),
            ["api", "cis", "cloud", "ibm", "com"] => self.internet(request, &parts),
            ["tags", "global-search-tagging", "cloud", "ibm", "com"] => {
                self.tagging(request, &parts)
            }
            ["transit", "cloud", "ibm", "com"] => self.transit(request, &parts),
            [region, "iaas", "cloud", "ibm", "com"] => self.vpcs(request, &parts, region),
            [region, "power-iaas", "cloud", "ibm", "com"] => self.power(request, &parts, region),
            ["s3", region, "cloud-object-storage", "appdomain", "cloud"] => {
                self.storage(request, &parts, region)
            }
            _ => unknown(),
        }
    }

    fn pass_time(&mut self) {
        let mut gone = Vec::new();
        for ((kind, id), object) in &mut self.objects {
            let Some((steps, change)) = &mut object.change else {
                continue;
            };
            *steps -= 1;
            if *steps > 0 {
                continue;
            }
            match *change {
                Change::Set(field, text) => object.value[field] = json!(text),
                Change::Remove => gone.push((*kind, id.clone())),
            }
            object.change = None;
        }
        for (kind, id) in gone {
            self.remove(kind, &id);
        }
        self.finish_dhcp();
    }

    fn snapshot(&self) -> Vec<String> {
        let mut labels: Vec<_> = self
            .objects
            .iter()
            .map(|((kind, id), object)| {
                let name = object.value["name"].as_str().unwrap_or("it");
                (id.clone(), format!("<{kind:?} {name}>"))
            })
            .collect();
        // An identifier may be the beginning of another one.
        labels.sort_by_key(|(id, _)| std::cmp::Reverse(id.len()));
        let objects = self.objects.iter();
        let visible = objects.filter(|(_, object)| !is_deleted(&object.value));
        let mut lines: Vec<_> = visible
            .map(|((kind, _), object)| self.line(*kind, &object.value, &labels))
            .collect();
        lines.sort();
        lines
    }
}

/// Whether an instance is only listed because it was deleted not long ago.
fn is_deleted(value: &Value) -> bool {
    let state = value["state"].as_str();
    state.is_some_and(|state| ["removed", "pending_reclamation"].contains(&state))
}

/// A refusal in the form of IBM Cloud.
fn refused(status: u16, code: &str) -> Answer {
    let error = json!({ "code": code, "message": "for the test" });
    Answer::new(status, json!({ "errors": [error] }))
}

fn absent() -> Answer {
    refused(404, "not_found")
}

fn conflict() -> Answer {
    refused(409, "conflict")
}

/// A call that no command makes.
fn unknown() -> Answer {
    refused(400, "unknown_call")
}

/// A part of a path, as it was before it was escaped.
fn decoded(part: &str) -> String {
    let as_parameter = Request::get(format!("https://a?b={part}"));
    as_parameter.parameter("b").unwrap_or_default()
}

/// Whether a field has the value of a parameter, if that is given.
fn is_asked_for(request: &Request, value: &Value, parameter: &str, field: &str) -> bool {
    let asked = request.parameter(parameter);
    asked.is_none_or(|asked| value[field] == asked)
}
