//! A fake of AWS in memory: what commands use of it, with the refusals that matter for the order of calls. It has two accounts:
//! resources of one cannot be seen in the other one, except for what is shared.

mod ec2;
mod global;
mod instances;
mod shares;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use support::aws::{Element, Error};

use super::call::{Call, Calls, Service, Tags};
pub(super) use ec2::Item;
pub(super) use global::{Bucket, Profile, Provider, Role, Zone};
pub(super) use instances::Instance;
use shares::Share;

/// What happens at one call, by its number from zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The command is killed before it.
    KilledBefore(usize),
    /// The command is killed after it had its effect.
    KilledAfter(usize),
    /// It has its effect, and its response is lost.
    Lost(usize),
}

/// Whose credentials make a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Account {
    #[default]
    Cluster,
    Owner,
}

/// AWS, with the credentials of one account.
#[derive(Debug, Default)]
pub(super) struct Fake {
    state: Arc<Mutex<State>>,
    account: Account,
}

/// What there is.
#[derive(Debug, Default)]
pub(super) struct State {
    next: u32,
    /// Whose credentials the present call has.
    caller: Account,
    pub(super) items: BTreeMap<String, Item>,
    pub(super) instances: BTreeMap<String, Instance>,
    /// The tags of launch templates, by identifier.
    pub(super) templates: BTreeMap<String, Tags>,
    pub(super) zones: BTreeMap<String, Zone>,
    pub(super) roles: BTreeMap<String, Role>,
    pub(super) profiles: BTreeMap<String, Profile>,
    pub(super) providers: BTreeMap<String, Provider>,
    pub(super) buckets: BTreeMap<String, Bucket>,
    /// The ARN of who makes the calls, if it is not a user.
    pub(super) caller_arn: Option<String>,
    pub(super) shares: BTreeMap<String, Share>,
    /// Roles and shares that are not known everywhere yet.
    new: BTreeSet<String>,
    /// All calls so far.
    pub(super) calls: Vec<Call>,
    /// Whose credentials made them.
    pub(super) callers: Vec<Account>,
    fault: Option<Fault>,
}

// === impl Account ===

impl Account {
    pub(super) fn id(self) -> &'static str {
        match self {
            Self::Cluster => "111111111111",
            Self::Owner => "222222222222",
        }
    }
}

// === impl Fake ===

impl Fake {
    /// An account that has nothing but a public hosted zone.
    pub(super) fn with_zone(name: &str) -> Self {
        let fake = Self::default();
        let zone = Zone {
            name: name.to_owned(),
            ..Zone::default()
        };
        fake.state().zones.insert("Z0".to_owned(), zone);
        fake
    }

    /// The same with the credentials of the account that owns the VPC.
    pub(super) fn owner(&self) -> Self {
        Self {
            state: Arc::clone(&self.state),
            account: Account::Owner,
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets the calls, and has a fault at one of the next.
    pub(super) fn set_fault(&self, fault: Option<Fault>) {
        let mut state = self.state();
        state.calls.clear();
        state.callers.clear();
        state.fault = fault;
    }

    /// How many calls there were.
    pub(super) fn count(&self) -> usize {
        self.state().calls.len()
    }
}

impl Calls for Fake {
    async fn call(&self, call: &Call) -> Result<Element, Error> {
        let mut state = self.state();
        let number = state.calls.len();
        state.calls.push(call.clone());
        state.callers.push(self.account);
        let killed = || refused(call, 403, "Killed");
        match state.fault {
            Some(Fault::KilledBefore(at)) if number >= at => return Err(killed()),
            Some(Fault::KilledAfter(at)) if number > at => return Err(killed()),
            _ => {}
        }
        state.caller = self.account;
        let response = state.answer(call);
        match state.fault {
            Some(Fault::KilledAfter(at)) if number == at => return Err(killed()),
            Some(Fault::Lost(at)) if number == at => return Err(refused(call, 500, "Lost")),
            _ => {}
        }
        let text = response?;
        Ok(Element::parse(&format!("<Response>{text}</Response>")).unwrap())
    }

    async fn pause(&self, _: Duration) {
        self.state().pass_time();
    }
}

// === impl State ===

impl State {
    fn id(&mut self, prefix: &str) -> String {
        self.next += 1;
        format!("{prefix}-{:04}", self.next)
    }

    /// The content of the response.
    fn answer(&mut self, call: &Call) -> Result<String, Error> {
        match call.service {
            Service::Ec2 => self.ec2(call),
            // No test has load balancers.
            Service::Elb | Service::ElbV2 => Ok(String::new()),
            Service::Iam => self.iam(call),
            Service::Ram => self.ram(call),
            Service::Route53 => self.route53(call),
            Service::S3 => self.s3(call),
            Service::Sts => Ok(self.sts()),
        }
    }

    /// All that there is, with names in place of identifiers, which differ from run to run.
    pub(super) fn snapshot(&self) -> Vec<String> {
        let mut names: Vec<(String, String)> = self
            .items
            .iter()
            .map(|(id, item)| (id.clone(), item.label()))
            .collect();
        let zones = self.zones.iter();
        names.extend(zones.map(|(id, zone)| (id.clone(), zone.name.clone())));
        let instances = self.instances.iter();
        names.extend(instances.map(|(id, _)| (id.clone(), "instance".to_owned())));
        let mut lines: Vec<_> = self.items.values().map(|it| format!("{it:?}")).collect();
        // AWS shows those that are terminated for an hour.
        let instances = self.instances.values().filter(|it| it.is_there());
        lines.extend(instances.map(|it| format!("{it:?}")));
        lines.extend(self.zones.values().map(|it| format!("{it:?}")));
        lines.extend(self.roles.iter().map(|it| format!("{it:?}")));
        lines.extend(self.profiles.iter().map(|it| format!("{it:?}")));
        lines.extend(self.providers.iter().map(|it| format!("{it:?}")));
        lines.extend(self.buckets.iter().map(|it| format!("{it:?}")));
        // AWS shows those that are deleted for some hours.
        let shares = self.shares.values().filter(|it| it.is_there());
        lines.extend(shares.map(|it| format!("{it:?}")));
        for line in &mut lines {
            for (id, name) in &names {
                *line = line.replace(id, name);
            }
        }
        lines.sort();
        lines
    }
}

pub(super) fn refused(call: &Call, status: u16, code: &str) -> Error {
    Error::Refused {
        what: call.action.to_owned(),
        status,
        code: code.to_owned(),
        message: "for the test".to_owned(),
    }
}

/// An element.
fn xml(name: &str, text: &str) -> String {
    format!("<{name}>{text}</{name}>")
}

/// Tags with names of elements in lower or upper case.
fn tags_xml(tags: &Tags, element: &str, key: &str, value: &str) -> String {
    let tags = tags.iter();
    tags.map(|(k, v)| xml(element, &format!("{}{}", xml(key, k), xml(value, v))))
        .collect()
}
