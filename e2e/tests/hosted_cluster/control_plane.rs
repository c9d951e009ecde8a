//! The control plane gets another release: etcd first, then the API server, then the others, and nothing is lost.

use std::cell::RefCell;
use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use testbed::client::{Patch, Resource};
use testbed::hosted::{Cluster, Fixture, Guest, PODS};
use testbed::node::condition;
use testbed::payload::Release;
use testbed::wait::seconds;

use crate::hosted_cluster::observe::{Outages, meanwhile};
use crate::hosted_cluster::timeline;

const CONFIG_MAPS: Resource<'_> = Resource::new("v1", "configmaps");
/// An object of the user's.
const KEPT: &str = "kept";
/// Components that connect to the API server, and so come after it.
const AFTER: [&str; 4] = [
    "kube-controller-manager",
    "kube-scheduler",
    "cluster-version-operator",
    "hosted-cluster-config-operator",
];

/// What was seen of an upgrade.
#[derive(Debug, Default)]
struct Seen {
    outages: Outages,
    /// The states of the newest entry of the history, and what `ClusterVersionProgressing` said.
    states: BTreeSet<(String, String)>,
}

/// Upgrades it.
pub(crate) async fn upgrades(
    fixture: &Fixture,
    cluster: &Cluster<'_>,
    guest: &Guest,
    release: &Release,
) -> Result<()> {
    let kept = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "namespace": "default", "name": KEPT },
        "data": { "written": "before the upgrade" },
    });
    guest.client.apply(&[kept]).await?;
    let before = guest
        .client
        .get(&CONFIG_MAPS.named("default", KEPT))
        .await?;
    let images = Images::read(fixture, cluster).await?;
    let begin = std::time::Instant::now();
    let desired = json!({ "spec": { "release": { "image": release.image } } });
    fixture
        .testbed
        .admin
        .patch(&cluster.path(), Patch::Merge, &desired)
        .await?;
    let seen = RefCell::new(Seen::default());
    meanwhile(completes(fixture, cluster, release), async || {
        let now = cluster.seen().await?;
        let mut outages = std::mem::take(&mut seen.borrow_mut().outages);
        outages.ask(&guest.client).await;
        let mut seen = seen.borrow_mut();
        seen.outages = outages;
        seen.look(&now, release);
        Ok(())
    })
    .await?;
    let seen = seen.into_inner();
    fixture.testbed.progress.note(&format!(
        "the control plane has {} after {}; its API server was not there {} times, {} at the longest",
        release.version,
        seconds(begin.elapsed()),
        seen.outages.count,
        seconds(seen.outages.longest),
    ));
    seen.was_partial_while_progressing()?;
    images.all_differ(&Images::read(fixture, cluster).await?)?;
    came_in_order(fixture, cluster).await?;
    let after = guest
        .client
        .get(&CONFIG_MAPS.named("default", KEPT))
        .await?;
    ensure!(
        after["metadata"]["uid"] == before["metadata"]["uid"],
        "it is another object"
    );
    ensure!(after["data"] == before["data"], "{}", after["data"]);
    Ok(())
}

async fn completes(fixture: &Fixture, cluster: &Cluster<'_>, release: &Release) -> Result<()> {
    fixture
        .stage(
            "the cluster's history says that the release is complete",
            async || {
                let seen = cluster.seen().await?;
                let newest = &seen["status"]["version"]["history"][0];
                ensure!(newest["version"] == release.version.as_str(), "{newest}");
                ensure!(newest["state"] == "Completed", "{newest}");
                let progressing = timeline::condition(&seen, "ClusterVersionProgressing");
                ensure!(progressing["status"] == "False", "{progressing}");
                let progressing = timeline::condition(&seen, "Progressing");
                ensure!(progressing["status"] == "False", "{progressing}");
                condition(&seen, "Available")
            },
        )
        .await?;
    cluster.rolled_out().await
}

// === impl Seen ===

impl Seen {
    fn look(&mut self, cluster: &Value, release: &Release) {
        let newest = &cluster["status"]["version"]["history"][0];
        if newest["version"] != release.version.as_str() {
            return;
        }
        let progressing = timeline::condition(cluster, "ClusterVersionProgressing");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        self.states
            .insert((text(&newest["state"]), text(&progressing["status"])));
    }

    /// Partial while it progresses.
    fn was_partial_while_progressing(&self) -> Result<()> {
        let partial = ("Partial".to_owned(), "True".to_owned());
        ensure!(
            self.states.contains(&partial),
            "it was never on its way: {:?}",
            self.states
        );
        Ok(())
    }
}

/// The images of etcd and of the Kubernetes programs, which each release has of its own.
struct Images(Vec<(&'static str, String)>);

// === impl Images ===

impl Images {
    async fn read(fixture: &Fixture, cluster: &Cluster<'_>) -> Result<Self> {
        let pods = pods(fixture, cluster).await?;
        let names = ["etcd", "kube-apiserver"].into_iter().chain(AFTER);
        let each = names.map(|name| {
            let pod = newest(&pods, name)?;
            let image = pod["spec"]["containers"][0]["image"].as_str();
            Ok((name, image.unwrap_or_default().to_owned()))
        });
        each.collect::<Result<_>>().map(Self)
    }

    fn all_differ(&self, other: &Self) -> Result<()> {
        for ((name, before), (_, after)) in self.0.iter().zip(&other.0) {
            ensure!(before != after, "{name} still runs {before}");
        }
        Ok(())
    }
}

/// No pod was made before what it depends on was ready.
async fn came_in_order(fixture: &Fixture, cluster: &Cluster<'_>) -> Result<()> {
    let pods = pods(fixture, cluster).await?;
    let follows = |later: &str, earlier: &str| -> Result<()> {
        let (made, ready) = (
            made(newest(&pods, later)?)?,
            ready(newest(&pods, earlier)?)?,
        );
        ensure!(
            made >= ready,
            "{later} is of {made}, and {earlier} was ready at {ready}"
        );
        Ok(())
    };
    follows("kube-apiserver", "etcd")?;
    AFTER
        .iter()
        .try_for_each(|later| follows(later, "kube-apiserver"))
}

async fn pods(fixture: &Fixture, cluster: &Cluster<'_>) -> Result<Vec<Value>> {
    let path = PODS.within(&cluster.namespace());
    fixture.testbed.admin.list(&path).await
}

/// The newest pod of a component.
fn newest<'a>(pods: &'a [Value], component: &str) -> Result<&'a Value> {
    let own = pods.iter().filter(|pod| {
        pod["metadata"]["labels"]["app"] == component
            && pod["metadata"]["deletionTimestamp"].is_null()
    });
    let newest = own.max_by_key(|pod| timeline::time(&pod["metadata"]["creationTimestamp"]));
    newest.with_context(|| format!("{component} has no pod"))
}

fn made(pod: &Value) -> Result<Timestamp> {
    timeline::time(&pod["metadata"]["creationTimestamp"]).context("it has no age")
}

fn ready(pod: &Value) -> Result<Timestamp> {
    let ready = &timeline::condition(pod, "Ready")["lastTransitionTime"];
    timeline::time(ready).context("it is not ready")
}
