//! All replicas away, and garbage to collect that cannot be read without them (C07).

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testbed::client::{Patch, Resource};
use testbed::wait;

use crate::conversion::fixture::{Fixture, NAMESPACE};
use crate::conversion::replicas::old_cluster;
use crate::conversion::stored::{NEW, OLD};

const CRD: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clusters.cluster.hypershift.openshift.io";
const OWNERS: Resource<'_> = Resource::new("v1", "configmaps");
const DEPENDENT: &str = "dependent";
/// How long they are away.
const AWAY: Duration = Duration::from_secs(3);
const SOON: Duration = Duration::from_mins(1);

/// A Cluster is stored at the older version, so that the garbage collector, which reads the newer one, needs the
/// webhook. Its owner is deleted while there is no webhook. Gives how long collection took from the webhook's return on.
/// Check C07.
pub(crate) async fn garbage_collection_recovers_after_an_outage(
    fixture: &mut Fixture,
) -> Result<Duration> {
    let admin = fixture.testbed.admin.clone();
    let owner = json!({
        "apiVersion": OWNERS.api_version, "kind": "ConfigMap",
        "metadata": {"namespace": NAMESPACE, "name": "owner"},
    });
    let owner = admin.create(&OWNERS.within(NAMESPACE), &owner).await?;
    store_at(fixture, "v1beta1").await?;
    admin
        .create(&OLD.within(NAMESPACE), &dependent(&owner))
        .await?;
    store_at(fixture, "v1beta2").await?;
    fixture.testbed.control_plane.controller_manager.spawn()?;

    for number in 0..fixture.shims.replicas.len() {
        fixture.shims.end(number).await?;
    }
    fixture
        .testbed
        .control_plane
        .controller_manager
        .ready()
        .await?;
    admin.delete(&OWNERS.named(NAMESPACE, "owner")).await?;
    wait::throughout("the outage", AWAY, async || is_stored(fixture).await).await?;
    ensure!(
        admin.get(&NEW.named(NAMESPACE, DEPENDENT)).await.is_err(),
        "an old object can be read without the webhook"
    );

    for number in 0..fixture.shims.replicas.len() {
        fixture.shims.begin(number).await?;
    }
    let back = Instant::now();
    wait::until("the dependent to be collected", SOON, async || match admin
        .find(&NEW.named(NAMESPACE, DEPENDENT))
        .await?
    {
        None => Ok(()),
        Some(_) => wait::not_yet("it is still there"),
    })
    .await?;
    Ok(back.elapsed())
}

fn dependent(owner: &Value) -> Value {
    let mut cluster = old_cluster(DEPENDENT);
    cluster["metadata"]["finalizers"] = json!([]);
    cluster["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"],
    }]);
    cluster
}

/// Has the API server store Clusters at this version from now on.
async fn store_at(fixture: &Fixture, version: &str) -> Result<()> {
    let admin = &fixture.testbed.admin;
    let mut versions = admin.get(CRD).await?["spec"]["versions"].take();
    for one in versions.as_array_mut().into_iter().flatten() {
        one["storage"] = json!(one["name"] == version);
    }
    let change = json!({"spec": {"versions": versions}});
    admin.patch(CRD, Patch::Merge, &change).await?;
    // Its handlers change a moment later: a new object shows it.
    let probe = format!("probe-{version}");
    wait::until(&format!("{version} to be stored"), SOON, async || {
        let path = OLD.named(NAMESPACE, &probe);
        let mut cluster = old_cluster(&probe);
        cluster["metadata"]["finalizers"] = json!([]);
        admin.create(&OLD.within(NAMESPACE), &cluster).await?;
        let found = stored_version(fixture, &probe).await;
        admin.delete(&path).await?;
        match found? {
            found if found.ends_with(version) => Ok(()),
            found => wait::not_yet(format!("{found} is")),
        }
    })
    .await
}

async fn stored_version(fixture: &Fixture, name: &str) -> Result<String> {
    let prefix = format!("/registry/cluster.hypershift.openshift.io/clusters/{NAMESPACE}/{name}");
    let stored = fixture.testbed.control_plane.etcd.stored(&prefix).await?;
    let object: Option<Value> = stored
        .first()
        .and_then(|stored| serde_json::from_slice(&stored.value).ok());
    let version = object.and_then(|object| object["apiVersion"].as_str().map(str::to_owned));
    Ok(version.unwrap_or_default())
}

async fn is_stored(fixture: &Fixture) -> Result<()> {
    let version = stored_version(fixture, DEPENDENT).await?;
    ensure!(version.ends_with("v1beta1"), "it is stored as {version:?}");
    Ok(())
}
