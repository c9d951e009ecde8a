//! Networks with a proxy in place of NAT gateways.

use super::super::fake::Account;
use super::super::proxy::{PrivateKey, Proxy, Software};
use super::*;
use crate::create::ssh_key::SshKey;

fn key(name: &str) -> SshKey {
    SshKey {
        public: format!("ssh-rsa {name}\n"),
        private: format!("private {name}"),
    }
}

fn machine(software: Software, name: &str) -> Proxy {
    Proxy::Machine {
        software,
        key: key(name),
    }
}

fn proxies() -> [Proxy; 3] {
    [
        machine(Software::Squid, "AAAA"),
        machine(Software::Mitmproxy, "AAAA"),
        Proxy::Service("com.amazonaws.vpce.us-east-1.vpce-svc-1".to_owned()),
    ]
}

fn request(proxy: Proxy) -> NetworkRequest {
    NetworkRequest {
        proxy: Some(proxy),
        ..network(&["1a", "1b"], false)
    }
}

async fn create(fake: &Fake, proxy: Proxy) -> anyhow::Result<NetworkOutput> {
    let scope = scope();
    let request = request(proxy);
    executor(fake, &scope).create_network(&request).await
}

async fn destroy(fake: &Fake) -> anyhow::Result<()> {
    let scope = scope();
    let request = DestroyRequest::new(Some(domain()), Duration::from_mins(1));
    executor(fake, &scope).destroy_network(&request).await
}

#[tokio::test]
async fn a_proxy_replaces_nat_gateways() {
    let ca = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let own = "http://10.0.0.9:3128";
    let service = "http://vpce-1.example.com:3128";
    let expected = [
        [own, "", "", "t3.micro"],
        ["", own, ca, "t3.medium"],
        [service, "", "", ""],
    ];
    for (proxy, expected) in proxies().into_iter().zip(expected) {
        let [address, secure, ca, instance_type] = expected;
        let is_machine = !instance_type.is_empty();
        let fake = Fake::with_zone(BASE);
        let made = create(&fake, proxy).await.unwrap();
        assert_eq!(made.proxy_addr, address);
        assert_eq!(made.secure_proxy_addr, secure);
        assert_eq!(made.proxy_ca, ca);
        let private = if is_machine {
            PrivateKey::new(&key("AAAA"))
        } else {
            PrivateKey::default()
        };
        assert!(made.proxy_private_ssh_key == private, "{made:?}");
        assert!(!format!("{made:?}").contains(private.in_base64()) || !is_machine);
        let writes = writes(&fake);
        let made_by = |action: &str| writes.iter().filter(|it| it.starts_with(action)).count();
        assert_eq!(made_by("CreateNatGateway") + made_by("AllocateAddress"), 0);
        // Private route tables have no route to the internet.
        assert_eq!(made_by("CreateRoute "), 1);
        assert_eq!(made_by("AssociateRouteTable"), 4);
        let run = format!("RunInstances ImageId=ami-1 InstanceType={instance_type} ");
        assert_eq!(made_by(&run), usize::from(is_machine));
        // The VPC reaches SSH and the proxy, and no other network.
        let rules = writes.iter().filter(|it| it.starts_with("Authorize"));
        let rules: Vec<_> = rules.collect();
        assert_eq!(rules.len(), 2);
        for (rule, port) in rules.iter().zip(["22", "3128"]) {
            assert!(rule.contains(&format!("FromPort={port} ")), "{rule}");
            assert!(rule.ends_with("CidrIp=10.0.0.0/16"), "{rule}");
        }
    }
}

#[tokio::test]
async fn a_second_run_finds_the_proxy_and_destruction_leaves_nothing() {
    for proxy in proxies() {
        let fake = Fake::with_zone(BASE);
        let first = create(&fake, proxy.clone()).await.unwrap();
        let snapshot = fake.state().snapshot();
        fake.set_fault(None);
        assert_eq!(create(&fake, proxy).await.unwrap(), first);
        assert_eq!(fake.state().snapshot(), snapshot);
        let creates = ["Create", "Run", "Authorize"];
        let made = writes(&fake).into_iter();
        let made: Vec<_> = made
            .filter(|it| creates.iter().any(|verb| it.starts_with(verb)))
            .collect();
        assert_eq!(made, [""; 0]);
        destroy(&fake).await.unwrap();
        assert_eq!(left(&fake), [""; 0]);
    }
}

/// The private key of an earlier run, which may have been killed, is not that of a proxy that exists.
#[tokio::test]
async fn keys_of_other_runs_are_not_reported_as_those_of_the_proxy() {
    let fake = Fake::with_zone(BASE);
    create(&fake, machine(Software::Squid, "AAAA"))
        .await
        .unwrap();
    let made = create(&fake, machine(Software::Squid, "BBBB"))
        .await
        .unwrap();
    assert!(made.proxy_private_ssh_key.is_empty());
    assert_eq!(made.proxy_addr, "http://10.0.0.9:3128");
    let made = create(&fake, machine(Software::Squid, "AAAA"))
        .await
        .unwrap();
    assert!(made.proxy_private_ssh_key == PrivateKey::new(&key("AAAA")));
}

#[tokio::test]
async fn an_endpoint_of_another_service_is_refused() {
    let fake = Fake::with_zone(BASE);
    let service = |name: &str| Proxy::Service(name.to_owned());
    create(&fake, service("a")).await.unwrap();
    let error = create(&fake, service("b")).await.unwrap_err().to_string();
    assert!(error.contains("is for service a, not b"), "{error}");
}

/// Killed before or after any call, or with a lost response, and run again: the same state, and nothing twice.
#[tokio::test]
async fn creation_with_a_proxy_continues_where_it_was_interrupted() {
    for proxy in proxies() {
        let what = format!("{proxy:?}");
        let account = async || Fake::with_zone(BASE);
        let create = async |fake: &Fake| create(fake, proxy.clone()).await;
        interruptions::is_continued(&what, account, create, |fake, fault| {
            assert!(fake.state().instances.len() <= 1, "{what} {fault:?}");
        })
        .await;
    }
}

/// The same of a destruction, and of one that follows an interrupted creation.
#[tokio::test]
async fn destruction_with_a_proxy_leaves_nothing_however_it_was_interrupted() {
    for proxy in proxies() {
        let what = format!("{proxy:?}");
        let account = async || Fake::with_zone(BASE);
        let create = async |fake: &Fake| create(fake, proxy.clone()).await;
        interruptions::is_destroyed(&what, account, create, destroy, left, &[]).await;
    }
}

/// In a shared VPC, the proxy belongs to the owner of the VPC.
#[tokio::test]
async fn the_proxy_is_in_the_account_of_the_vpc() {
    let fake = Fake::with_zone(BASE);
    let (scope, other) = (scope(), fake.owner());
    let (cluster, owner) = (executor(&fake, &scope), executor(&other, &scope));
    let accounts = Accounts::new(&cluster, Some(&owner), PrivateZones::OfVpc);
    let request = request(machine(Software::Squid, "AAAA"));
    accounts.create_network(&request).await.unwrap();
    let proxies: Vec<_> = {
        let state = fake.state();
        state.instances.values().map(|it| it.account).collect()
    };
    assert_eq!(proxies, [Account::Owner]);
    let request = DestroyRequest::new(Some(domain()), Duration::from_mins(1));
    accounts.destroy_network(&request).await.unwrap();
    assert_eq!(left(&fake), [""; 0]);
}
