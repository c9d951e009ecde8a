//! All components of a control plane on one node: they roll out in the order of their dependencies, with a cluster and
//! with each upgrade.
//!
//! It needs root; without it, it says so and does nothing.

pub(crate) mod expected;
mod history;

use std::ops::AsyncFnMut;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use api::group::CapiTypes;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use testbed::client::Patch;
use testbed::conditions;
use testbed::hosted::{self, COMPONENTS, Cluster, Fixture};
use testbed::node::{NodeTestbed, condition};
use testbed::payload::{Release, catalog};
use testbed::wait::{self, seconds};

use crate::rollout::history::History;

/// Catalogs whose images annotations name.
const CATALOGS: [&str; 3] = [
    "certified-operators",
    "community-operators",
    "redhat-operators",
];

/// On a quiet machine, a new cluster is available within so many seconds.
const TARGET: i64 = 120;
/// For all components, one after another. Generous: a busy machine is no failure.
const ROLLED_OUT_WITHIN: Duration = Duration::from_mins(15);
/// For events that are still on their way.
const RECORDED_WITHIN: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: cargo xtask soak rollout"]
async fn all_components_roll_out_in_order() -> Result<()> {
    hosted::play(NodeTestbed::builder("rollout"), scenario).await
}

async fn scenario(fixture: &Fixture) -> Result<()> {
    fixture.install(CapiTypes::Private, &[]).await?;
    let cluster = Cluster::new(fixture, "whole", CapiTypes::Private);
    let history = History::start(&fixture.testbed.admin, &cluster.namespace());
    create(&cluster, &[]).await?;
    cluster.comes_up().await?;
    shows_its_start(&cluster).await?;
    let all = expected::by_default();
    has_rolled_out(&cluster, &fixture.release, &all).await?;
    is_in_order(fixture, &history, &fixture.release, &all).await?;

    with_optional_components(&cluster).await?;
    let all = expected::with_options();
    has_rolled_out(&cluster, &fixture.release, &all).await?;
    is_in_order(fixture, &history, &fixture.release, &all).await?;

    let newer = fixture.pushed.release(&fixture.testbed.registry, "4.22.1");
    upgrades(fixture, &cluster, &newer.await?, &all, &history).await?;
    cluster.destroy().await
}

/// As a user does by default, but for images of catalogs, which would come from a registry that cannot be reached. `flags`
/// are added.
pub(crate) async fn create(cluster: &Cluster<'_>, flags: &[&str]) -> Result<()> {
    let fixture = cluster.fixture();
    let catalog = catalog::push(&fixture.testbed, "4.22").await?;
    let annotations = CATALOGS.map(|name| {
        format!("--annotations=hypershift.openshift.io/{name}-catalog-image={catalog}")
    });
    let mut all = vec![
        "--network-type=OVNKubernetes",
        "--olm-catalog-placement=management",
    ];
    all.extend(flags);
    all.extend(annotations.iter().map(String::as_str));
    cluster.create(&all).await.map(drop)
}

/// Asks for what needs a setting: metrics in the hosted cluster, and a queue of events of spot instances.
pub(crate) async fn with_optional_components(cluster: &Cluster<'_>) -> Result<()> {
    let queue = "https://sqs.us-east-1.amazonaws.com/123456789012/whole";
    let spec = json!({ "spec": {
        "monitoring": { "metricsForwarding": { "mode": "Forward" } },
        "platform": { "aws": { "terminationHandlerQueueURL": queue } },
    } });
    let admin = &cluster.fixture().testbed.admin;
    admin.patch(&cluster.path(), Patch::Merge, &spec).await?;
    Ok(())
}

/// Shows how long it took from the creation of the HostedCluster until it was available, as its status says.
async fn shows_its_start(cluster: &Cluster<'_>) -> Result<()> {
    let seen = cluster.seen().await?;
    let time = |value: &Value| value.as_str()?.parse::<Timestamp>().ok();
    let created = time(&seen["metadata"]["creationTimestamp"]).context("it has no age")?;
    let available = conditions::find(&seen, "Available").context("it has no condition")?;
    let available = time(&available["lastTransitionTime"]).context("it has no time")?;
    let took = available.duration_since(created).as_secs();
    let text = format!("it was available after {took} s, target {TARGET} s");
    cluster.fixture().testbed.progress.note(&text);
    Ok(())
}

/// Workloads were requested in the order of their dependencies.
async fn is_in_order(
    fixture: &Fixture,
    history: &History,
    release: &Release,
    expected: &[&str],
) -> Result<()> {
    let what = format!("{} came in the order of dependencies", release.version);
    stage(fixture, &what, RECORDED_WITHIN, async || {
        history.is_in_order(release, expected)
    })
    .await
}

/// A stage with a time limit of its own.
async fn stage(
    fixture: &Fixture,
    what: &str,
    within: Duration,
    probe: impl AsyncFnMut() -> Result<()>,
) -> Result<()> {
    let step = fixture.testbed.progress.step(what);
    wait::until(what, within, probe)
        .await
        .with_context(|| format!("stage {what:?}"))?;
    step.done();
    Ok(())
}

async fn upgrades(
    fixture: &Fixture,
    cluster: &Cluster<'_>,
    release: &Release,
    expected: &[&str],
    history: &History,
) -> Result<()> {
    let begin = Instant::now();
    let admin = &fixture.testbed.admin;
    let spec = json!({ "spec": { "release": { "image": release.image } } });
    admin.patch(&cluster.path(), Patch::Merge, &spec).await?;
    let what = "the control plane has the newer release";
    stage(fixture, what, ROLLED_OUT_WITHIN, async || {
        let seen = cluster.seen().await?;
        let newest = &seen["status"]["controlPlaneVersion"]["history"][0];
        ensure!(newest["version"] == release.version.as_str(), "{newest}");
        ensure!(newest["state"] == "Completed", "{newest}");
        condition(&seen, "Available")
    })
    .await?;
    note(fixture, "all components have the newer release", begin);
    has_rolled_out(cluster, release, expected).await?;
    is_in_order(fixture, history, release, expected).await
}

fn note(fixture: &Fixture, what: &str, begin: Instant) {
    let text = format!("{what} after {}", seconds(begin.elapsed()));
    fixture.testbed.progress.note(&text);
}

/// There are exactly the expected components, and each is available and has the release.
pub(crate) async fn has_rolled_out(
    cluster: &Cluster<'_>,
    release: &Release,
    expected: &[&str],
) -> Result<()> {
    let fixture = cluster.fixture();
    let path = COMPONENTS.within(&cluster.namespace());
    let what = format!("{} components have {}", expected.len(), release.version);
    stage(fixture, &what, ROLLED_OUT_WITHIN, async || {
        let found = fixture.testbed.admin.list(&path).await?;
        let mut names: Vec<_> = found.iter().map(name).collect();
        names.sort_unstable();
        ensure!(names == expected, "there are {names:?}");
        found.iter().try_for_each(|one| has(one, release))
    })
    .await
}

fn has(component: &Value, release: &Release) -> Result<()> {
    let name = name(component);
    for kind in ["Available", "RolloutComplete"] {
        let found = conditions::find(component, kind).unwrap_or(&Value::Null);
        ensure!(found["status"] == "True", "{name}: {found}");
    }
    let version = &component["status"]["version"];
    ensure!(*version == release.version.as_str(), "{name}: {version}");
    Ok(())
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}
