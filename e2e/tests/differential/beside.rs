//! The platform's own types arrive on the private server: each name is still seen once, and means what it meant before.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::group::{CapiTypes as Names, GroupTable};
use http::{Request, header};
use serde_json::{Value, json};
use testbed::client::ApiClient;
use testbed::cluster::{CORE, api_version};
use testbed::raw::RawClient;
use testbed::wait;

use crate::differential::leaks::LeakCheck;
use crate::differential::side::Side;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const MACHINES: &str = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
/// Discovery is published in the background.
const PUBLISHED_WITHIN: Duration = Duration::from_mins(1);
/// How long an event may take.
const SEEN_WITHIN: Duration = Duration::from_secs(20);

/// Installs the standard CRDs beside the private ones and looks again through the proxy.
pub(crate) async fn platform_types_arrive(side: &mut Side) -> Result<()> {
    side.testbed.install_crds(Names::Standard).await?;
    let view = ApiClient::from_kubeconfig(&side.kubeconfig).await?;
    let client = RawClient::new(&side.server, None)?;
    types_are_listed_once_and_crosswise(&side.testbed.admin, &view)
        .await
        .context("R13, lists")?;
    types_are_watched_once_and_crosswise(&side.testbed.admin, &client)
        .await
        .context("R13, watches")?;
    groups_are_discovered_once(&client).await.context("R14")?;
    watches_do_not_cross(&side.testbed.admin, &view, &client)
        .await
        .context("R34")?;
    owners_stay_two(&side.testbed.admin, &view)
        .await
        .context("R06")
}

/// The uid of each CRD of the table's groups, by name.
fn uids(table: &GroupTable, crds: &[Value]) -> Result<BTreeMap<String, String>> {
    let mut uids = BTreeMap::new();
    for crd in crds {
        let text = |at: &str| crd.pointer(at).and_then(Value::as_str).unwrap_or_default();
        let name = text("/metadata/name");
        let group = name.split_once('.').map_or("", |(_, group)| group);
        if table.find(group.as_bytes()).is_some() {
            let earlier = uids.insert(name.to_owned(), text("/metadata/uid").to_owned());
            ensure!(earlier.is_none(), "{name} is there twice");
        }
    }
    Ok(uids)
}

fn swapped(table: &GroupTable, name: &str) -> Result<String> {
    let (head, group) = name.split_once('.').context("no group")?;
    let (pair, side) = table.find(group.as_bytes()).context("not in the table")?;
    Ok(format!("{head}.{}", pair.name(side.other())))
}

/// Checks that `seen` is `stored` with the names of each pair exchanged.
fn are_crosswise(
    table: &GroupTable,
    stored: &BTreeMap<String, String>,
    seen: &BTreeMap<String, String>,
) -> Result<()> {
    ensure!(
        stored.len() == seen.len() && stored.len() > 50,
        "{} are stored and {} seen",
        stored.len(),
        seen.len()
    );
    for (name, uid) in stored {
        let name = swapped(table, name)?;
        ensure!(
            seen.get(&name) == Some(uid),
            "{name} is another one than expected"
        );
    }
    Ok(())
}

async fn types_are_listed_once_and_crosswise(admin: &ApiClient, view: &ApiClient) -> Result<()> {
    let table = GroupTable::default();
    let stored = uids(&table, &admin.list(CRDS).await?)?;
    let seen = uids(&table, &view.list(CRDS).await?)?;
    are_crosswise(&table, &stored, &seen)
}

async fn types_are_watched_once_and_crosswise(admin: &ApiClient, client: &RawClient) -> Result<()> {
    let table = GroupTable::default();
    let stored = uids(&table, &admin.list(CRDS).await?)?;
    let question = "watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan";
    let mut events = client.get(&format!("{CRDS}?{question}")).await?.lines();
    let read = async {
        let mut crds = Vec::new();
        while let Some(line) = events.next().await? {
            let mut event: Value = serde_json::from_slice(&line)?;
            if event["type"] == "BOOKMARK" {
                break;
            }
            crds.push(event["object"].take());
        }
        anyhow::Ok(crds)
    };
    let crds = tokio::time::timeout(SEEN_WITHIN, read)
        .await
        .context("no bookmark")??;
    are_crosswise(&table, &stored, &uids(&table, &crds)?)
}

/// Both forms of discovery name each group once, ours before the platform's: a short name such as `machines` then means
/// ours.
async fn groups_are_discovered_once(client: &RawClient) -> Result<()> {
    for (accept, groups, name) in [
        ("application/json", "/groups", "/name"),
        (AGGREGATED, "/items", "/metadata/name"),
    ] {
        wait::until("all groups to be published", PUBLISHED_WITHIN, async || {
            let request = Request::get("/apis")
                .header(header::ACCEPT, accept)
                .body(Vec::new())?;
            let response = client.send(request).await?.bytes().await?;
            let response: Value = serde_json::from_slice(&response)?;
            let groups = response
                .pointer(groups)
                .and_then(Value::as_array)
                .context("no groups")?;
            let names = groups
                .iter()
                .filter_map(|group| group.pointer(name)?.as_str());
            are_there_once(&names.collect::<Vec<_>>())
        })
        .await?;
    }
    Ok(())
}

fn are_there_once(names: &[&str]) -> Result<()> {
    let once: BTreeSet<&str> = names.iter().copied().collect();
    ensure!(
        once.len() == names.len(),
        "a group is there twice: {names:?}"
    );
    for pair in GroupTable::default().pairs() {
        let place = |side| names.iter().position(|name| *name == pair.name(side));
        let ours = place(Names::Standard).with_context(|| format!("{pair} is not there"))?;
        let platform = place(Names::Private).with_context(|| format!("{pair} is not there"))?;
        ensure!(ours < platform, "{pair}: the platform's is first");
    }
    Ok(())
}

/// A Secret that two Machines own, one of the platform and one of ours: through the proxy they are still two, crosswise.
async fn owners_stay_two(admin: &ApiClient, view: &ApiClient) -> Result<()> {
    const SECRETS: &str = "/api/v1/namespaces/default/secrets";
    let owner = async |client: &ApiClient, name: &str| {
        let machine = client.get(&format!("{MACHINES}/{name}")).await?;
        anyhow::Ok(json!({
            "apiVersion": machine["apiVersion"],
            "kind": "Machine",
            "name": name,
            "uid": machine["metadata"]["uid"],
        }))
    };
    let (platform, ours) = (owner(admin, "platform").await?, owner(view, "ours").await?);
    let mut crossed = platform.clone();
    crossed["apiVersion"] = json!(api_version(CORE, Names::Private));
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "name": "owned", "ownerReferences": [crossed, ours] },
    });
    view.create(SECRETS, &secret).await?;
    let path = format!("{SECRETS}/owned");
    let seen = view.get(&path).await?["metadata"]["ownerReferences"].take();
    ensure!(
        seen == json!([crossed, ours]),
        "through the proxy the owners are {seen}"
    );
    let mut stored_ours = ours.clone();
    stored_ours["apiVersion"] = json!(api_version(CORE, Names::Private));
    let stored = admin.get(&path).await?["metadata"]["ownerReferences"].take();
    ensure!(
        stored == json!([platform, stored_ours]),
        "the owners are stored as {stored}"
    );
    Ok(())
}

/// A Machine of the platform and one of ours, of the same name: each watch sees its own, whatever the other's is called.
async fn watches_do_not_cross(
    admin: &ApiClient,
    view: &ApiClient,
    client: &RawClient,
) -> Result<()> {
    let leaks = LeakCheck::new();
    let version = view.get(MACHINES).await?["metadata"]["resourceVersion"].clone();
    let version = version.as_str().context("the list has no version")?;
    let mut watch = client
        .get(&format!("{MACHINES}?watch=true&resourceVersion={version}"))
        .await?
        .lines();
    for (client, owner) in [
        (admin, "platform"),
        (view, "ours"),
        (admin, "platform-again"),
        (view, "ours-again"),
    ] {
        client.create(MACHINES, &machine(owner)).await?;
    }
    let mut seen = Vec::new();
    for _ in 0..2 {
        let line = tokio::time::timeout(SEEN_WITHIN, watch.next())
            .await
            .context("no event")??;
        let line = line.context("the watch has ended")?;
        ensure!(
            leaks.find(&String::from_utf8_lossy(&line)).is_none(),
            "an event names a private group"
        );
        let event: Value = serde_json::from_slice(&line)?;
        seen.push(
            event["object"]["metadata"]["name"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        );
    }
    ensure!(seen == ["ours", "ours-again"], "the watch saw {seen:?}");
    let names = async |client: &ApiClient| {
        let machines = client.list(MACHINES).await?;
        let names = machines.iter().map(|machine| {
            machine["metadata"]["name"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        });
        anyhow::Ok(names.collect::<Vec<_>>())
    };
    ensure!(
        names(view).await? == ["ours", "ours-again"],
        "the list through the proxy has others"
    );
    ensure!(
        names(admin).await? == ["platform", "platform-again"],
        "the platform's list has others"
    );
    Ok(())
}

fn machine(name: &str) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "metadata": { "name": name },
        "spec": {
            "clusterName": "c",
            "bootstrap": { "dataSecretName": "s" },
            "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachine", "name": name },
        },
    })
}
