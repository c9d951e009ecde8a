//! Against a fake of AWS: a process that ends at any call, and another tenant beside.

mod tables;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use support::aws::Error;
use support::ec2::Tags;

use super::cloud::{By, Cloud, Connection, Deleted, EndpointService, LoadBalancer};
use super::endpoint_service::{Removal, ensure, remove};
use super::plan::{self, Desired, OWNER, Target};

const ROLE: &str = "arn:aws:iam::123456789012:role/one";

#[derive(Debug, Clone, Default, PartialEq)]
struct State {
    balancers: BTreeMap<String, LoadBalancer>,
    services: Vec<EndpointService>,
    principals: BTreeMap<String, BTreeSet<String>>,
    connections: BTreeMap<String, Vec<Connection>>,
    created: usize,
    writes: usize,
}

/// AWS that fails at one call, before or after its effect.
#[derive(Default)]
struct Fake {
    state: RefCell<State>,
    calls: Cell<usize>,
    fails: Cell<Option<(usize, bool)>>,
    /// Whether it returns only what is looked for. Not all fakes of AWS do, so the caller looks again.
    filters: Cell<bool>,
}

fn refused(code: &str) -> Error {
    Error::Refused {
        what: "a call".to_owned(),
        status: 400,
        code: code.to_owned(),
        message: String::new(),
    }
}

impl Fake {
    fn call<T>(&self, effect: impl FnOnce(&mut State) -> Result<T, Error>) -> Result<T, Error> {
        let call = self.calls.replace(self.calls.get() + 1);
        if self.fails.get() == Some((call, false)) {
            return Err(refused("InternalError"));
        }
        let result = effect(&mut self.state.borrow_mut());
        if self.fails.get() == Some((call, true)) {
            return Err(refused("InternalError"));
        }
        result
    }

    fn write<T>(&self, effect: impl FnOnce(&mut State) -> Result<T, Error>) -> Result<T, Error> {
        self.call(|state| {
            state.writes += 1;
            effect(state)
        })
    }

    /// The next pass begins; it fails at this call.
    fn begin(&self, fails: Option<(usize, bool)>) {
        self.calls.set(0);
        self.fails.set(fails);
    }

    fn service(&self, id: &str) -> Option<EndpointService> {
        let state = self.state.borrow();
        state.services.iter().find(|it| it.id == id).cloned()
    }
}

impl Cloud for Fake {
    async fn load_balancer(&self, name: &str) -> Result<Option<LoadBalancer>, Error> {
        self.call(|state| Ok(state.balancers.get(name).cloned()))
    }

    async fn services(&self, by: By<'_>) -> Result<Vec<EndpointService>, Error> {
        let filters = self.filters.get();
        self.call(|state| {
            let services = state.services.iter().filter(|it| match by {
                By::Name(name) => !filters || it.name == name,
                By::Tag(key, value) => {
                    !filters || it.tags.get(key).is_some_and(|found| found == value)
                }
                By::Any => true,
            });
            Ok(services.cloned().collect())
        })
    }

    async fn create(&self, balancer: &str, tags: &Tags) -> Result<EndpointService, Error> {
        self.write(|state| {
            if state.services.iter().any(|it| it.balancers == [balancer]) {
                return Err(refused("InvalidParameter"));
            }
            state.created += 1;
            let id = format!("vpce-svc-{}", state.created);
            let made = service(&id, balancer, tags);
            state.services.push(made.clone());
            Ok(made)
        })
    }

    async fn tag(&self, id: &str, tags: &Tags) -> Result<(), Error> {
        self.write(|state| {
            let mut services = state.services.iter_mut();
            let found = services.find(|it| it.id == id);
            found.unwrap().tags.extend(tags.clone());
            Ok(())
        })
    }

    async fn principals(&self, id: &str) -> Result<BTreeSet<String>, Error> {
        self.call(|state| Ok(state.principals.get(id).cloned().unwrap_or_default()))
    }

    async fn permit(&self, id: &str, added: &[String], removed: &[String]) -> Result<(), Error> {
        self.write(|state| {
            let principals = state.principals.entry(id.to_owned()).or_default();
            principals.extend(added.iter().cloned());
            principals.retain(|it| !removed.contains(it));
            Ok(())
        })
    }

    async fn connections(&self, id: &str) -> Result<Vec<Connection>, Error> {
        self.call(|state| Ok(state.connections.get(id).cloned().unwrap_or_default()))
    }

    async fn reject(&self, id: &str, endpoints: &[String]) -> Result<(), Error> {
        self.write(|state| {
            let found = state.connections.entry(id.to_owned()).or_default();
            for connection in found {
                if endpoints.contains(&connection.endpoint) {
                    "rejected".clone_into(&mut connection.state);
                }
            }
            Ok(())
        })
    }

    async fn delete(&self, id: &str) -> Result<Deleted, Error> {
        self.write(|state| {
            let mut connections = state.connections.get(id).into_iter().flatten();
            if connections.any(|it| it.state == "available") {
                return Ok(Deleted::Connected);
            }
            state.services.retain(|it| it.id != id);
            Ok(Deleted::Gone)
        })
    }
}

fn service(id: &str, balancer: &str, tags: &Tags) -> EndpointService {
    EndpointService {
        id: id.to_owned(),
        name: format!("com.amazonaws.vpce.us-east-1.{id}"),
        balancers: vec![balancer.to_owned()],
        tags: tags.clone(),
    }
}

fn balancer(name: &str) -> LoadBalancer {
    LoadBalancer {
        arn: format!("arn:{name}"),
        host: format!("{name}-1.elb.us-east-1.amazonaws.com"),
        is_active: true,
    }
}

fn target(name: &str, recorded: Option<&str>) -> Target {
    Target {
        uid: format!("uid-{name}"),
        recorded: recorded.map(|id| format!("com.amazonaws.vpce.us-east-1.{id}")),
        balancer: Some((name.to_owned(), balancer(name).host)),
        successor: None,
    }
}

fn desired(name: &str, recorded: Option<&str>) -> Desired {
    let target = target(name, recorded);
    Desired {
        tags: plan::tags([("team", "red")].into_iter(), Some("mgmt"), &target.uid),
        principals: [ROLE.to_owned()].into(),
        target,
    }
}

/// Two load balancers; the second one has an endpoint service, which is another tenant's.
fn two_tenants(is_tagged: bool) -> Fake {
    let fake = Fake::default();
    let mut state = fake.state.borrow_mut();
    for name in ["one", "two"] {
        state.balancers.insert(name.to_owned(), balancer(name));
    }
    let tags = if is_tagged {
        desired("two", None).tags
    } else {
        Tags::new()
    };
    state
        .services
        .push(service("vpce-svc-two", "arn:two", &tags));
    let permitted = ["arn:aws:iam::2:role/two".to_owned()];
    state
        .principals
        .insert("vpce-svc-two".to_owned(), permitted.into());
    let connected = Connection {
        endpoint: "vpce-two".to_owned(),
        state: "available".to_owned(),
    };
    state
        .connections
        .insert("vpce-svc-two".to_owned(), vec![connected]);
    drop(state);
    fake
}

/// What another tenant has.
fn others(fake: &Fake) -> Value {
    let state = fake.state.borrow();
    let service = fake
        .service("vpce-svc-two")
        .map(|it| (it.balancers, it.tags));
    let connections = &state.connections["vpce-svc-two"];
    let connections: Vec<_> = connections.iter().map(|it| it.state.as_str()).collect();
    json!([service, state.principals["vpce-svc-two"], connections])
}

#[tokio::test]
async fn a_pass_that_ends_at_any_call_is_completed_by_the_next() {
    let mut completed = 0;
    for call in 0..12 {
        for after in [false, true] {
            let fake = two_tenants(true);
            let before = others(&fake);
            fake.begin(Some((call, after)));
            completed += usize::from(ensure(&fake, &desired("one", None)).await.is_ok());
            fake.begin(None);
            // The status was not written.
            let name = ensure(&fake, &desired("one", None)).await.unwrap();
            let id = name.rsplit('.').next().unwrap();
            let made = fake.service(id).unwrap();
            assert_eq!(
                (made.balancers, made.tags),
                (vec!["arn:one".to_owned()], desired("one", None).tags)
            );
            assert_eq!(fake.state.borrow().services.len(), 2, "{call} {after}");
            let permitted = BTreeSet::from([ROLE.to_owned()]);
            assert_eq!(fake.state.borrow().principals[id], permitted);
            let writes = fake.state.borrow().writes;
            ensure(&fake, &desired("one", Some(id))).await.unwrap();
            assert_eq!(fake.state.borrow().writes, writes, "at rest");

            let connected = Connection {
                endpoint: "vpce-1".to_owned(),
                state: "available".to_owned(),
            };
            let id = id.to_owned();
            fake.state
                .borrow_mut()
                .connections
                .insert(id.clone(), vec![connected]);
            fake.begin(Some((call, after)));
            // Nothing was recorded, and the Service may be gone.
            let gone = Target {
                balancer: None,
                ..target("one", None)
            };
            let _ = remove(&fake, &gone).await;
            fake.begin(None);
            let mut passes = 0;
            while remove(&fake, &gone).await.unwrap() == Removal::Waiting {
                passes += 1;
                assert!(passes < 3, "{call} {after}");
            }
            assert_eq!(fake.service(&id), None);
            assert_eq!(others(&fake), before, "{call} {after}");
        }
    }
    assert!(completed > 0, "a pass has fewer calls than are tried");
}

/// The author of a cluster chooses the program that writes its AWSEndpointServices.
#[tokio::test]
async fn an_endpoint_service_of_another_tenant_is_not_changed() {
    let borrowed = |uid: &str, host: &str| Target {
        uid: uid.to_owned(),
        recorded: target("two", Some("vpce-svc-two")).recorded,
        balancer: Some(("two".to_owned(), host.to_owned())),
        successor: None,
    };
    let own_host = balancer("one").host;
    for is_tagged in [false, true] {
        // The load balancer of the other one in the specification, and its endpoint service in the status.
        let liar = borrowed("uid-one", &own_host);
        let no_service = Target {
            balancer: None,
            ..liar.clone()
        };
        for target in [&liar, &no_service] {
            let fake = two_tenants(is_tagged);
            let before = others(&fake);
            let all = Desired {
                target: target.clone(),
                ..desired("one", None)
            };
            assert!(ensure(&fake, &all).await.is_err());
            assert_eq!(remove(&fake, target).await.unwrap(), Removal::Done);
            assert_eq!(others(&fake), before);
            assert_eq!(fake.state.borrow().writes, 0);
        }
        // A true load balancer, and the endpoint service of the other one in the status.
        let fake = two_tenants(is_tagged);
        let before = others(&fake);
        let name = ensure(&fake, &desired("one", Some("vpce-svc-two")))
            .await
            .unwrap();
        assert!(name.ends_with("vpce-svc-1"), "{name}");
        let target = target("one", Some("vpce-svc-two"));
        assert_eq!(remove(&fake, &target).await.unwrap(), Removal::Done);
        assert_eq!(fake.state.borrow().services.len(), 1);
        assert_eq!(others(&fake), before);
    }
}

#[tokio::test]
async fn endpoint_services_of_other_operators_are_taken_over() {
    let named = Some("vpce-svc-two");
    for (filters, recorded) in [(false, None), (false, named), (true, None), (true, named)] {
        let fake = two_tenants(false);
        fake.filters.set(filters);
        let wanted = desired("two", recorded);
        let name = ensure(&fake, &wanted).await.unwrap();
        assert!(name.ends_with("vpce-svc-two"), "{recorded:?}: {name}");
        let found = fake.service("vpce-svc-two").unwrap();
        assert_eq!(found.tags.get(OWNER), Some(&wanted.target.uid));
        assert_eq!(
            fake.state.borrow().principals["vpce-svc-two"],
            wanted.principals
        );
        assert_eq!(fake.state.borrow().services.len(), 1);
    }
}

#[tokio::test]
async fn another_load_balancer_leads_to_another_endpoint_service() {
    let fake = two_tenants(true);
    ensure(&fake, &desired("one", None)).await.unwrap();
    let mut moved = desired("one", Some("vpce-svc-1"));
    let fresh = balancer("three");
    moved.target.balancer = Some(("three".to_owned(), fresh.host.clone()));
    let waiting = ensure(&fake, &moved).await.unwrap_err();
    assert!(
        waiting
            .message()
            .contains("waiting for load balancer three"),
        "{waiting:?}"
    );
    fake.state
        .borrow_mut()
        .balancers
        .insert("three".to_owned(), fresh);
    let name = ensure(&fake, &moved).await.unwrap();
    assert!(name.ends_with("vpce-svc-2"), "{name}");
    assert_eq!(fake.service("vpce-svc-1"), None);
}

/// An AWSEndpointService of an early version may have the load balancer of its successor, or another one.
#[tokio::test]
async fn the_endpoint_service_of_a_successor_stays() {
    for (name, expected) in [("one", 2), ("three", 1)] {
        let fake = two_tenants(true);
        fake.state
            .borrow_mut()
            .balancers
            .insert("three".to_owned(), balancer("three"));
        let before = others(&fake);
        let legacy = desired(name, None);
        ensure(&fake, &legacy).await.unwrap();
        let successor = target("one", None).balancer;
        // The tag is the one of the AWSEndpointService that goes.
        let target = Target {
            successor,
            ..target(name, Some("vpce-svc-1"))
        };
        assert_eq!(remove(&fake, &target).await.unwrap(), Removal::Done);
        assert_eq!(fake.state.borrow().services.len(), expected, "{name}");
        assert_eq!(others(&fake), before, "{name}");
    }
}
