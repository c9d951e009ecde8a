//! Secrets and the garbage collector: none may go that is still owned, and none may stay that is not.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::audit::Event;
use testbed::client::{ApiClient, Resource};
use testbed::cluster::{CORE, MACHINES};
use testbed::testbed::Testbed;
use testbed::wait;

const SECRETS: Resource<'_> = Resource::new("v1", "secrets");
const CONFIG_MAPS: Resource<'_> = Resource::new("v1", "configmaps");

/// Who deletes what is no longer owned.
const COLLECTOR: &str = "system:serviceaccount:kube-system:generic-garbage-collector";
/// What kubeadm's managers keep for a cluster, behind its name.
const PARTS: [&str; 5] = ["ca", "etcd", "kubeconfig", "proxy", "sa"];
/// The collector looks for new kinds every 30 seconds, and waits for them to be listed.
const COLLECTED_WITHIN: Duration = Duration::from_secs(90);

/// The uids of the Secrets that the clusters cannot live without.
pub(crate) async fn of_clusters(
    view: &ApiClient,
    namespace: &str,
    clusters: &[&str],
) -> Result<BTreeMap<String, String>> {
    let mut uids = BTreeMap::new();
    for cluster in clusters {
        for part in PARTS {
            let name = format!("{cluster}-{part}");
            let secret = view.get(&SECRETS.named(namespace, &name)).await?;
            let uid = secret["metadata"]["uid"].as_str().unwrap_or_default();
            uids.insert(name, uid.to_owned());
        }
    }
    Ok(uids)
}

/// Waits until the garbage collector has removed something of ours: an object whose only owner, of a private kind,
/// does not exist. It has then seen every kind, and whatever it meant to remove wrongly, it has had its chance.
pub(crate) async fn collector_is_awake(view: &ApiClient, namespace: &str) -> Result<()> {
    let orphan = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "generateName": "orphan-",
            "namespace": namespace,
            "ownerReferences": [{
                "apiVersion": CORE,
                "kind": "Cluster",
                "name": "never-was",
                "uid": "11111111-2222-3333-4444-555555555555",
            }],
        },
    });
    let created = view.create(&CONFIG_MAPS.within(namespace), &orphan).await?;
    let name = created["metadata"]["name"]
        .as_str()
        .context("the ConfigMap was given no name")?;
    let path = CONFIG_MAPS.named(namespace, name);
    wait::until(
        "the garbage collector to remove an orphan",
        COLLECTED_WITHIN,
        async || {
            ensure!(view.find(&path).await?.is_none(), "{name} is still there");
            Ok(())
        },
    )
    .await
}

/// Checks every Secret that the garbage collector has removed so far: only bootstrap data of machines that are gone.
pub(crate) async fn none_wrongly_collected(
    testbed: &Testbed,
    view: &ApiClient,
    namespace: &str,
) -> Result<()> {
    let machines = view.list(&MACHINES.within(namespace)).await?;
    let machines: BTreeSet<&str> = machines.iter().filter_map(name_of).collect();
    let events = testbed.control_plane.audit.all()?;
    let collected: BTreeSet<&str> = events
        .iter()
        .filter(|event| is_collection(event, namespace))
        .map(|event| event.object_ref.name.as_str())
        .collect();
    ensure!(
        !collected.is_empty(),
        "the garbage collector has removed no Secret, although machines were replaced"
    );
    let cluster_wide = |name: &str| PARTS.iter().any(|part| name.ends_with(&format!("-{part}")));
    let wrong: Vec<_> = collected
        .iter()
        .filter(|name| machines.contains(**name) || cluster_wide(name))
        .collect();
    ensure!(
        wrong.is_empty(),
        "Secrets were garbage-collected by mistake: {wrong:?}"
    );
    for machine in machines {
        view.get(&SECRETS.named(namespace, machine))
            .await
            .with_context(|| format!("the bootstrap data of {machine} is gone"))?;
    }
    Ok(())
}

fn is_collection(event: &Event, namespace: &str) -> bool {
    event.user.username == COLLECTOR
        && event.verb == "delete"
        && event.response_status.code == 200
        && event.object_ref.resource == "secrets"
        && event.object_ref.namespace == namespace
}

/// Waits until no Secret of a cluster is left.
pub(crate) async fn all_gone(view: &ApiClient, namespace: &str) -> Result<()> {
    wait::until(
        "the clusters' Secrets to be collected",
        COLLECTED_WITHIN,
        async || {
            let left = view.list(&SECRETS.within(namespace)).await?;
            let left: Vec<_> = left.iter().filter_map(name_of).collect();
            ensure!(left.is_empty(), "{left:?} are left");
            Ok(())
        },
    )
    .await
}

fn name_of(object: &Value) -> Option<&str> {
    object["metadata"]["name"].as_str()
}
