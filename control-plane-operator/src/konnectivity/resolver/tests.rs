//! The order of lookups, and the fallback to DNS of the management cluster.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use super::super::health::RETRY_INTERVAL;
use super::*;

/// Lookups with fixed results, which records what is asked.
#[derive(Default)]
struct Fake {
    services: BTreeMap<&'static str, &'static str>,
    guest: Mutex<Vec<&'static str>>,
    management: Vec<&'static str>,
    asked: Mutex<Vec<String>>,
}

impl Fake {
    fn ask(&self, what: String) {
        self.asked.lock().unwrap().push(what);
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

fn addresses(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn found(texts: &[&str]) -> Found {
    if texts.is_empty() {
        return Err("no such name".into());
    }
    Ok(addresses(texts))
}

impl Lookups for Fake {
    async fn service(&self, service: &ServiceName) -> Option<IpAddr> {
        let id = format!("{}/{}", service.namespace, service.name);
        let address = self.services.get(id.as_str()).copied();
        self.ask(format!("service {id}"));
        address.map(|address| address.parse().unwrap())
    }

    async fn guest_dns(&self, name: &str) -> Found {
        self.ask(format!("guest {name}"));
        let known = self.guest.lock().unwrap().clone();
        found(&known)
    }

    async fn management_dns(&self, name: &str) -> Found {
        self.ask(format!("management {name}"));
        found(&self.management)
    }
}

struct Row {
    name: &'static str,
    host: &'static str,
    settings: (Dns, Unresolved, Family),
    guest: &'static [&'static str],
    management: &'static [&'static str],
    asked: &'static [&'static str],
    /// The answer; none for an error.
    expected: Option<Answer>,
}

const V4: &[&str] = &["192.0.2.1"];
const BOTH: &[&str] = &["2001:db8::1", "192.0.2.1"];

fn some_addresses(texts: &[&str]) -> Answer {
    Answer::Addresses(addresses(texts))
}

fn resolver(row: &Row) -> Resolver<Fake> {
    let (dns, unresolved, family) = row.settings;
    let settings = Settings {
        dns,
        unresolved,
        family,
    };
    let fake = Fake {
        services: BTreeMap::from([("b/a", "172.31.0.5")]),
        guest: Mutex::new(row.guest.to_vec()),
        management: row.management.to_vec(),
        ..Fake::default()
    };
    Resolver::new(settings, fake)
}

#[tokio::test]
async fn lookups_have_an_order() {
    let guest = (Dns::Guest, Unresolved::Resolve, Family::Any);
    let both = (Dns::GuestThenManagement, Unresolved::Keep, Family::Any);
    let must = (Dns::GuestThenManagement, Unresolved::Resolve, Family::Any);
    let rows = [
        Row {
            name: "Service",
            host: "a.b.svc.cluster.local",
            settings: guest,
            guest: V4,
            management: V4,
            asked: &["service b/a"],
            expected: Some(Answer::Service("172.31.0.5".parse().unwrap())),
        },
        Row {
            name: "Service without a suffix",
            host: "a.b",
            settings: (Dns::Management, Unresolved::Keep, Family::Any),
            guest: &[],
            management: &[],
            asked: &["service b/a"],
            expected: Some(Answer::Service("172.31.0.5".parse().unwrap())),
        },
        Row {
            name: "one label is no Service",
            host: "localhost",
            settings: (Dns::Management, Unresolved::Keep, Family::Any),
            guest: &[],
            management: V4,
            asked: &["management localhost"],
            expected: Some(some_addresses(V4)),
        },
        Row {
            name: "labels that no object can have are not looked up",
            host: "_ldap._tcp.example.com",
            settings: guest,
            guest: V4,
            management: &[],
            asked: &["guest _ldap._tcp.example.com"],
            expected: Some(some_addresses(V4)),
        },
        Row {
            name: "management DNS only, unknown name",
            host: "quay.io",
            settings: (Dns::Management, Unresolved::Keep, Family::Any),
            guest: V4,
            management: &[],
            asked: &["service io/quay", "management quay.io"],
            expected: None,
        },
        Row {
            name: "guest DNS",
            host: "quay.io",
            settings: guest,
            guest: BOTH,
            management: &[],
            asked: &["service io/quay", "guest quay.io"],
            expected: Some(some_addresses(BOTH)),
        },
        Row {
            name: "guest DNS, IPv4",
            host: "quay.io",
            settings: (Dns::Guest, Unresolved::Resolve, Family::Ipv4),
            guest: BOTH,
            management: &[],
            asked: &["service io/quay", "guest quay.io"],
            expected: Some(some_addresses(V4)),
        },
        Row {
            name: "guest DNS without an IPv4 address",
            host: "quay.io",
            settings: (Dns::Guest, Unresolved::Resolve, Family::Ipv4),
            guest: &["2001:db8::1"],
            management: V4,
            asked: &["service io/quay", "guest quay.io"],
            expected: None,
        },
        Row {
            name: "guest DNS fails without a fallback",
            host: "quay.io",
            settings: guest,
            guest: &[],
            management: V4,
            asked: &["service io/quay", "guest quay.io"],
            expected: None,
        },
        Row {
            name: "both fail, the agent resolves",
            host: "quay.io",
            settings: both,
            guest: &[],
            management: &[],
            asked: &["service io/quay", "guest quay.io", "management quay.io"],
            expected: Some(Answer::Unresolved),
        },
        Row {
            name: "both fail, an address is needed",
            host: "quay.io",
            settings: must,
            guest: &[],
            management: &[],
            asked: &["service io/quay", "guest quay.io", "management quay.io"],
            expected: None,
        },
        Row {
            name: "management DNS knows the name, an address is needed",
            host: "quay.io",
            settings: (Dns::GuestThenManagement, Unresolved::Resolve, Family::Ipv4),
            guest: &[],
            management: BOTH,
            asked: &["service io/quay", "guest quay.io", "management quay.io"],
            expected: Some(some_addresses(&["192.0.2.1", "2001:db8::1"])),
        },
        Row {
            name: "the first addresses of each family are tried",
            host: "quay.io",
            settings: guest,
            guest: &[
                "192.0.2.1",
                "192.0.2.1",
                "192.0.2.2",
                "192.0.2.3",
                "2001:db8::1",
                "2001:db8::2",
                "2001:db8::3",
            ],
            management: &[],
            asked: &["service io/quay", "guest quay.io"],
            expected: Some(some_addresses(&[
                "192.0.2.1",
                "192.0.2.2",
                "2001:db8::1",
                "2001:db8::2",
            ])),
        },
    ];
    for row in rows {
        let resolver = resolver(&row);
        let answer = resolver.resolve(row.host).await;
        assert_eq!(answer.ok(), row.expected, "{}", row.name);
        assert_eq!(resolver.lookups.asked(), row.asked, "{}", row.name);
    }
}

#[tokio::test(start_paused = true)]
async fn failed_guest_dns_is_retried_after_the_interval() {
    let row = Row {
        name: "fallback",
        host: "quay.io",
        settings: (Dns::GuestThenManagement, Unresolved::Keep, Family::Any),
        guest: &[],
        management: V4,
        asked: &[],
        expected: None,
    };
    let resolver = resolver(&row);
    let asks = async |expected: &[&str]| {
        let answer = resolver.resolve("quay.io").await.unwrap();
        let mut asked = resolver.lookups.asked();
        asked.retain(|asked| !asked.starts_with("service"));
        assert_eq!(asked, expected);
        answer
    };
    let first = asks(&["guest quay.io", "management quay.io"]).await;
    assert_eq!(first, Answer::Unresolved);
    assert_eq!(resolver.guest_dns(), State::Failed);

    let early = Duration::from_millis(1);
    tokio::time::advance(RETRY_INTERVAL.saturating_sub(early)).await;
    assert_eq!(asks(&[]).await, Answer::Unresolved);

    tokio::time::advance(early).await;
    asks(&["guest quay.io", "management quay.io"]).await;
    assert_eq!(asks(&[]).await, Answer::Unresolved);

    *resolver.lookups.guest.lock().unwrap() = V4.to_vec();
    tokio::time::advance(RETRY_INTERVAL).await;
    let found = asks(&["guest quay.io"]).await;
    assert_eq!(found, some_addresses(V4));
    assert_eq!(resolver.guest_dns(), State::Healthy);
}

#[tokio::test]
async fn a_name_that_no_dns_knows_is_no_failure_of_guest_dns() {
    let row = Row {
        name: "unknown",
        host: "quay.io",
        settings: (Dns::GuestThenManagement, Unresolved::Keep, Family::Any),
        guest: &[],
        management: &[],
        asked: &[],
        expected: None,
    };
    let resolver = resolver(&row);
    resolver.resolve("quay.io").await.unwrap();
    assert_eq!(resolver.guest_dns(), State::Healthy);
}

#[test]
fn services_are_the_first_two_labels() {
    for (host, expected) in [
        ("a.b", Some(("a", "b"))),
        ("a.b.svc", Some(("a", "b"))),
        ("a-1.b.svc.cluster.local.", Some(("a-1", "b"))),
        ("a", None),
        ("a.", None),
        ("a_b.c", None),
        ("A.b", None),
        ("-a.b", None),
    ] {
        let service = ServiceName::of(host);
        let service = service
            .as_ref()
            .map(|service| (service.name.as_str(), service.namespace.as_str()));
        assert_eq!(service, expected, "{host}");
    }
}
