//! Against a fake of AWS: a process that ends at any call, and another tenant beside.

mod tables;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use api::hypershift::v1beta1::AwsEndpointServiceStatus;
use support::aws::Error;
use support::ec2::Tags;

use super::cloud::{
    Action, Change, Cloud, Endpoint, Group, NewEndpoint, Record, Rule, Subnet, Zone,
};
use super::endpoint::{Progress, Removal, ensure, remove};
use super::plan::{Cluster, Link, Problem};

const SERVICE: &str = "com.amazonaws.vpce.us-east-1.vpce-svc-1";

/// A security group with its name and its VPC.
type NamedGroup = (String, String, Group);

#[derive(Debug, Clone, Default, PartialEq)]
struct State {
    groups: Vec<NamedGroup>,
    endpoints: Vec<Endpoint>,
    /// Zones with their VPCs.
    zones: Vec<(Zone, String)>,
    /// Records by zone and name.
    records: BTreeMap<(String, String), Record>,
    created: usize,
    writes: usize,
}

/// AWS that fails at one call, before or after its effect.
#[derive(Default)]
struct Fake {
    state: RefCell<State>,
    calls: Cell<usize>,
    fails: Cell<Option<(usize, bool)>>,
    /// Whether the role may not ask for the zones of a VPC.
    lists_all_zones: Cell<bool>,
}

fn refused(status: u16, code: &str) -> Error {
    Error::Refused {
        what: "a call".to_owned(),
        status,
        code: code.to_owned(),
        message: String::new(),
    }
}

impl Fake {
    fn call<T>(&self, effect: impl FnOnce(&mut State) -> Result<T, Error>) -> Result<T, Error> {
        let call = self.calls.replace(self.calls.get() + 1);
        if self.fails.get() == Some((call, false)) {
            return Err(refused(500, "InternalError"));
        }
        let result = effect(&mut self.state.borrow_mut());
        if self.fails.get() == Some((call, true)) {
            return Err(refused(500, "InternalError"));
        }
        result
    }

    fn write<T>(&self, effect: impl FnOnce(&mut State) -> Result<T, Error>) -> Result<T, Error> {
        self.call(|state| {
            state.writes += 1;
            state.created += 1;
            effect(state)
        })
    }

    fn begin(&self, fails: Option<(usize, bool)>) {
        self.calls.set(0);
        self.fails.set(fails);
    }

    fn records(&self) -> Vec<(String, String)> {
        let state = self.state.borrow();
        let records = state.records.iter();
        records
            .map(|((zone, name), record)| (format!("{zone}/{name}"), record.value.clone()))
            .collect()
    }
}

impl Cloud for Fake {
    async fn subnets(&self, ids: &[String]) -> Result<Vec<Subnet>, Error> {
        let zone = |id: &String| Subnet {
            id: id.clone(),
            zone: format!("zone-{}", id.chars().next_back().unwrap_or_default()),
        };
        self.call(|_| Ok(ids.iter().map(zone).collect()))
    }

    async fn group(&self, name: &str, vpc: &str) -> Result<Option<Group>, Error> {
        self.call(|state| {
            let mut groups = state.groups.iter();
            let found = groups.find(|it| it.0 == name && it.1 == vpc);
            Ok(found.map(|it| it.2.clone()))
        })
    }

    async fn create_group(&self, name: &str, vpc: &str, tags: &Tags) -> Result<String, Error> {
        self.write(|state| {
            let group = Group {
                id: format!("sg-{}", state.created),
                tags: tags.clone(),
                ..Group::default()
            };
            let id = group.id.clone();
            state.groups.push((name.to_owned(), vpc.to_owned(), group));
            Ok(id)
        })
    }

    async fn allow(&self, group: &str, rules: &[Rule]) -> Result<(), Error> {
        self.write(|state| {
            for (_, _, found) in &mut state.groups {
                if found.id == group {
                    found.ingress.extend(rules.iter().cloned());
                }
            }
            Ok(())
        })
    }

    async fn delete_group(&self, id: &str) -> Result<bool, Error> {
        self.write(|state| {
            let mut endpoints = state.endpoints.iter();
            if endpoints.any(|it| it.groups.contains(id)) {
                return Ok(false);
            }
            state.groups.retain(|it| it.2.id != id);
            Ok(true)
        })
    }

    async fn endpoint(&self, id: &str) -> Result<Option<Endpoint>, Error> {
        self.call(|state| Ok(state.endpoints.iter().find(|it| it.id == id).cloned()))
    }

    /// Filters are ignored: the caller looks again.
    async fn endpoints(&self, _: &str, _: &Tags) -> Result<Vec<Endpoint>, Error> {
        self.call(|state| Ok(state.endpoints.clone()))
    }

    async fn create_endpoint(&self, new: &NewEndpoint<'_>) -> Result<Endpoint, Error> {
        self.write(|state| {
            let made = endpoint(&format!("vpce-{}", state.created), new);
            state.endpoints.push(made.clone());
            Ok(made)
        })
    }

    async fn modify_endpoint(&self, id: &str, change: &Change) -> Result<(), Error> {
        self.write(|state| {
            let mut endpoints = state.endpoints.iter_mut();
            let found = endpoints.find(|it| it.id == id).unwrap();
            found.subnets.extend(change.added_subnets.iter().cloned());
            found.groups.extend(change.added_groups.iter().cloned());
            found
                .subnets
                .retain(|it| !change.removed_subnets.contains(it));
            Ok(())
        })
    }

    async fn delete_endpoint(&self, id: &str) -> Result<(), Error> {
        self.write(|state| {
            state.endpoints.retain(|it| it.id != id);
            Ok(())
        })
    }

    async fn zones_of(&self, vpc: &str) -> Result<Vec<Zone>, Error> {
        let is_denied = self.lists_all_zones.get();
        self.call(|state| {
            if is_denied {
                return Err(refused(403, "AccessDenied"));
            }
            let zones = state.zones.iter().filter(|it| it.1 == vpc);
            Ok(zones.map(|it| it.0.clone()).collect())
        })
    }

    async fn zones(&self) -> Result<Vec<Zone>, Error> {
        self.call(|state| Ok(state.zones.iter().map(|it| it.0.clone()).collect()))
    }

    async fn record(&self, zone: &str, name: &str) -> Result<Option<Record>, Error> {
        let key = (zone.to_owned(), name.to_owned());
        self.call(|state| Ok(state.records.get(&key).cloned()))
    }

    async fn change(&self, zone: &str, action: Action, record: &Record) -> Result<(), Error> {
        let key = (zone.to_owned(), record.name.clone());
        self.write(|state| {
            match action {
                Action::Upsert => state.records.insert(key, record.clone()),
                Action::Delete => state.records.remove(&key),
            };
            Ok(())
        })
    }
}

fn endpoint(id: &str, new: &NewEndpoint<'_>) -> Endpoint {
    Endpoint {
        id: id.to_owned(),
        vpc: new.vpc.to_owned(),
        service: new.service.to_owned(),
        state: "available".to_owned(),
        subnets: new.subnets.iter().cloned().collect(),
        groups: [new.group.to_owned()].into(),
        tags: new.tags.clone(),
        hosts: vec![format!("{id}-x.vpce-svc-1.us-east-1.vpce.amazonaws.com")],
    }
}

/// A cluster of this name and ID in a VPC.
fn cluster(id: &str, vpc: &str) -> Cluster {
    Cluster {
        name: "one".to_owned(),
        infra_id: "one-x".to_owned(),
        id: Some(id.to_owned()),
        vpc: vpc.to_owned(),
        machine_cidrs: vec!["10.0.0.0/16".to_owned()],
        local_zone: None,
        is_api_server_by_route: true,
        tags: Tags::from([("team".to_owned(), "red".to_owned())]),
    }
}

fn link(status: AwsEndpointServiceStatus) -> Link {
    Link {
        name: "private-router".to_owned(),
        service: SERVICE.to_owned(),
        subnets: ["subnet-2a", "subnet-1a", "subnet-1b"]
            .map(str::to_owned)
            .into(),
        status,
    }
}

/// A cloud with the zones of two VPCs.
fn cloud() -> Fake {
    let fake = Fake::default();
    for vpc in ["vpc-1", "vpc-2"] {
        let zone = Zone {
            id: format!("Z-{vpc}"),
            name: "one.hypershift.local".to_owned(),
        };
        fake.state.borrow_mut().zones.push((zone, vpc.to_owned()));
    }
    fake
}

/// Passes until it is done; the status is written after each of them.
async fn settle(
    fake: &Fake,
    cluster: &Cluster,
    mut status: AwsEndpointServiceStatus,
) -> Result<AwsEndpointServiceStatus, Problem> {
    for _ in 0..5 {
        match ensure(fake, cluster, &link(status)).await? {
            Progress::Record(after) => status = after,
            Progress::Done(after) => return Ok(after),
        }
    }
    panic!("it does not end");
}

async fn clean_up(
    fake: &Fake,
    cluster: &Cluster,
    status: &AwsEndpointServiceStatus,
) -> Result<(), Problem> {
    for _ in 0..5 {
        if remove(fake, cluster, &link(status.clone())).await? == Removal::Done {
            return Ok(());
        }
    }
    panic!("it does not end");
}

#[tokio::test]
async fn a_pass_that_ends_at_any_call_is_completed_by_the_next() {
    let none = AwsEndpointServiceStatus::default;
    let cluster = cluster("a", "vpc-1");
    let mut completed = 0;
    for call in 0..24 {
        for after in [false, true] {
            let fake = cloud();
            fake.begin(Some((call, after)));
            let mut recorded = none();
            for _ in 0..3 {
                // The status is written only if a pass ends without a failure.
                match ensure(&fake, &cluster, &link(recorded.clone())).await {
                    Ok(Progress::Record(status)) => recorded = status,
                    Ok(Progress::Done(_)) => completed += 1,
                    Err(_) => break,
                }
            }
            fake.begin(None);
            let done = settle(&fake, &cluster, recorded).await.unwrap();
            let state = fake.state.borrow().clone();
            assert_eq!(
                (state.groups.len(), state.endpoints.len()),
                (1, 1),
                "{call} {after}"
            );
            let endpoint = &state.endpoints[0];
            assert_eq!(done.endpoint_id.as_ref(), Some(&endpoint.id));
            assert_eq!(done.dns_zone_id.as_deref(), Some("Z-vpc-1"));
            let subnets: Vec<_> = endpoint.subnets.iter().map(String::as_str).collect();
            assert_eq!(subnets, ["subnet-1a", "subnet-1b"], "one in each zone");
            let host = &endpoint.hosts[0];
            let names = ["*.apps.one.hypershift.local", "api.one.hypershift.local"];
            let expected = names.map(|name| (format!("Z-vpc-1/{name}"), host.clone()));
            assert_eq!(fake.records(), expected);
            settle(&fake, &cluster, done.clone()).await.unwrap();
            assert_eq!(fake.state.borrow().writes, state.writes, "at rest");

            fake.begin(Some((call, after)));
            let _ = clean_up(&fake, &cluster, &done).await;
            fake.begin(None);
            clean_up(&fake, &cluster, &done).await.unwrap();
            let state = fake.state.borrow();
            assert_eq!(
                (state.groups.len(), state.endpoints.len()),
                (0, 0),
                "{call} {after}"
            );
            assert_eq!(state.records.len(), 0, "{call} {after}");
        }
    }
    assert!(completed > 0, "a pass has fewer calls than are tried");
}

/// Two clusters with the same name and infraID: in one VPC, and in two.
#[tokio::test]
async fn things_of_another_cluster_are_not_changed() {
    for (vpc, lists_all_zones) in [("vpc-1", false), ("vpc-2", false), ("vpc-2", true)] {
        let fake = cloud();
        let (other, own) = (cluster("a", "vpc-1"), cluster("b", vpc));
        let known = settle(&fake, &other, AwsEndpointServiceStatus::default())
            .await
            .unwrap();
        let theirs = |fake: &Fake| {
            let state = fake.state.borrow();
            let groups = state.groups.iter().filter(|it| it.1 == "vpc-1").cloned();
            let records = state.records.iter().filter(|(key, _)| key.0 == "Z-vpc-1");
            let records: Vec<_> = records.map(|(_, it)| it.clone()).collect();
            let endpoint = state.endpoints.iter().find(|it| it.vpc == "vpc-1").cloned();
            (groups.collect::<Vec<_>>(), records, endpoint)
        };
        let before = theirs(&fake);
        fake.lists_all_zones.set(lists_all_zones);
        // With nothing in the status, and with the things of the other one.
        for status in [AwsEndpointServiceStatus::default(), known] {
            let stolen = AwsEndpointServiceStatus {
                dns_names: Vec::new(),
                ..status
            };
            let made = settle(&fake, &own, stolen.clone()).await;
            if vpc == "vpc-2" && !lists_all_zones {
                let made = made.unwrap();
                assert_eq!(made.dns_zone_id.as_deref(), Some("Z-vpc-2"));
                assert_ne!(made.endpoint_id, before.2.as_ref().map(|it| it.id.clone()));
                clean_up(&fake, &own, &made).await.unwrap();
            } else {
                let message = made.unwrap_err().message();
                let expected = [
                    "security group one-x-vpce-private-router (sg-1) of VPC vpc-1 is not the one of this cluster",
                    "Route 53 has 2 private zones one.hypershift.local",
                    "record api.one.hypershift.local of zone Z-vpc-1 leads to vpce-",
                ];
                assert!(expected.iter().any(|it| message.contains(it)), "{message}");
            }
            assert_eq!(theirs(&fake), before, "{vpc} {lists_all_zones}");
            if !lists_all_zones {
                clean_up(&fake, &own, &stolen).await.unwrap();
            }
            assert_eq!(theirs(&fake), before, "{vpc} {lists_all_zones}");
        }
    }
}

#[tokio::test]
async fn endpoints_of_another_service_are_replaced() {
    let fake = cloud();
    let cluster = cluster("a", "vpc-1");
    let done = settle(&fake, &cluster, AwsEndpointServiceStatus::default())
        .await
        .unwrap();
    for (state, service) in [("rejected", SERVICE), ("available", "another")] {
        let former = done.endpoint_id.clone();
        {
            let mut cloud = fake.state.borrow_mut();
            state.clone_into(&mut cloud.endpoints[0].state);
            service.clone_into(&mut cloud.endpoints[0].service);
        }
        let waiting = settle(&fake, &cluster, done.clone()).await.unwrap_err();
        assert!(
            waiting.message().contains("waiting for AWS to delete"),
            "{waiting:?}"
        );
        let again = settle(&fake, &cluster, done.clone()).await.unwrap();
        assert_ne!(again.endpoint_id, former);
        let host = fake.state.borrow().endpoints[0].hosts[0].clone();
        assert!(fake.records().iter().all(|(_, value)| *value == host));
    }
}
