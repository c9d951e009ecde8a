//! What is created and destroyed, call by call, and what there is when a command is killed at any of them.

mod creation;
mod destruction;
mod refusals;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use fake_clouds::azure as fake;
use fake_clouds::{Fake, Fault};
use http::Method;
use serde_json::{Value, json};
use support::azure::Cloud;
use support::rest::Request;
use uuid::Uuid;

use super::identity_files::Registry;
use super::roles::{NODE_POOL_MANAGEMENT, RoleSet};
use super::*;
use crate::infra::aws::Domain;
use crate::install::display::Display;

const SUBSCRIPTION: &str = "00000000-0000-0000-0000-000000000001";
const BASE: &str = "example.com";
const ISSUER: &str = "https://issuer.example.com/a";
/// A resource group that exists.
const GIVEN: &str = "given";

fn scope_of(infra_id: &str, name: &str) -> Scope {
    let account = Account::of(SUBSCRIPTION);
    let tags = BTreeMap::new();
    Scope::new(infra_id, name, "westeurope", &account, Cloud::Public, tags).unwrap()
}

fn scope() -> Scope {
    scope_of("a-x1", "a")
}

fn executor<'a>(fake: &'a Fake<fake::Azure>, scope: &'a Scope) -> Executor<'a, Fake<fake::Azure>> {
    static QUIET: LazyLock<Display> = LazyLock::new(|| Display::new(true));
    Executor {
        calls: fake,
        scope,
        display: &QUIET,
    }
}

fn group(name: &str) -> String {
    format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/{name}")
}

fn in_network(group_name: &str, kind_and_name: &str) -> String {
    format!(
        "{}/providers/Microsoft.Network/{kind_and_name}",
        group(group_name)
    )
}

fn id_of_client(number: u32) -> String {
    format!("00000000-0000-0000-0000-0000000000{number}")
}

/// A subscription with DNS zones, a network that exists, and the identities of the file.
fn azure() -> fake::Azure {
    let here = json!({ "location": "westeurope" });
    let network = json!({
        "location": "westeurope",
        "properties": { "subnets": [{ "name": "nodes" }] },
    });
    let mut azure = fake::Azure::default()
        .with(&group("zones"), here.clone())
        .with(&group(GIVEN), here.clone())
        .with(&in_network(GIVEN, "virtualNetworks/n"), network)
        .with(&in_network(GIVEN, "networkSecurityGroups/n"), here)
        .with_role(NODE_POOL_MANAGEMENT, "/the/narrow/role");
    // The zone is not on the first page.
    for name in ["a.org", "b.org", BASE, "sub.example.com"] {
        let zone = in_network("zones", &format!("dnszones/{name}"));
        azure = azure.with(&zone, json!({ "location": "global" }));
    }
    for number in 11..=18 {
        azure = azure.with_principal(&id_of_client(number), &format!("object-{number}"));
    }
    azure
}

fn fake() -> Fake<fake::Azure> {
    Fake::new(azure())
}

fn data(name: &str) -> std::path::PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.join("tests/data/create").join(name)
}

fn files() -> IdentityFiles {
    let path = data("azure-identities.json");
    IdentityFiles::read(Some(&path), None).unwrap().unwrap()
}

fn network(args: &AzureNetworkArgs, name: &str) -> NetworkRequest {
    let domain = Domain::new(BASE, None, name).unwrap();
    NetworkRequest::new(domain, args).unwrap()
}

/// A network of which all exists but the egress.
fn given() -> AzureNetworkArgs {
    AzureNetworkArgs {
        resource_group_name: Some(GIVEN.to_owned()),
        vnet_id: Some(in_network(GIVEN, "virtualNetworks/n")),
        network_security_group_id: Some(in_network(GIVEN, "networkSecurityGroups/n")),
        ..AzureNetworkArgs::default()
    }
}

/// With identities of a file.
fn described(args: &AzureNetworkArgs, roles: Option<RoleSet>, registry: Registry) -> CreateRequest {
    let identities = Identities::Existing(files());
    CreateRequest::new(network(args, "a"), identities, roles, registry).unwrap()
}

/// With identities that are created.
fn from_nothing(scope: &Scope) -> CreateRequest {
    let network = network(&AzureNetworkArgs::default(), &scope.name);
    let group = network.main_group(scope);
    let identities = IdentityRequest::new(&group, ISSUER).unwrap().with_kms();
    let identities = Identities::Created(identities);
    let (roles, registry) = (Some(RoleSet::Usual), Registry::Enabled);
    CreateRequest::new(network, identities, roles, registry).unwrap()
}

/// Creates all, as `create cluster azure` does.
async fn create(fake: &Fake<fake::Azure>) -> anyhow::Result<NetworkOutput> {
    let scope = scope();
    executor(fake, &scope).create(&from_nothing(&scope)).await
}

/// The paths of calls that write, below the subscription.
fn writes(fake: &Fake<fake::Azure>) -> Vec<String> {
    let groups = format!("management.azure.com{}", group(""));
    let lines = fake.writes().into_iter();
    lines.map(|line| line.replace(&groups, "")).collect()
}

fn puts(fake: &Fake<fake::Azure>) -> Vec<Request> {
    let state = fake.state();
    let puts = state.calls.iter().filter(|it| it.method == Method::PUT);
    puts.cloned().collect()
}

fn body_of(fake: &Fake<fake::Azure>, end: &str) -> Value {
    let puts = puts(fake);
    let mut found = puts.iter().filter(|it| it.path().ends_with(end));
    let body = found.next().unwrap().body.clone();
    assert!(found.next().is_none(), "{end}");
    body
}
