//! The cluster autoscaler adds machines for pods that find no node, and removes them when no pod needs them: to a pool that
//! has a machine, whose node it sees, and to one without any, of which it knows what the operators write down.
//!
//! The autoscaler is a stand-in; its flags, its permissions and the annotations that it reads are the real ones.

use anyhow::{Context, Result, ensure};
use api::conditions::PoolCondition;
use serde_json::{Value, json};
use testbed::client::Patch;
use testbed::fixtures;
use testbed::hosted::{Cluster, DEPLOYMENTS, Fixture, Guest, NAMESPACE, NODE_POOLS};
use testbed::node::condition;
use testbed::registry;

use crate::hosted_cluster::pools;

/// The Deployment of the autoscaler.
const AUTOSCALER: &str = "cluster-autoscaler";
/// The workload that needs two nodes.
pub(crate) const HUNGRY: &str = "hungry";
/// One node has room for one of its pods.
const SHARE_PERCENT: u64 = 60;
/// The pool that has no machine while no pod needs it, and the label of its nodes.
const BURST: &str = "demo-burst";
const LABEL: (&str, &str) = ("testbed.example.com/pool", "burst");
/// What the autoscaler is to know of `scaleDown`.
const FLAGS: [&str; 3] = [
    "--scale-down-enabled=true",
    "--scale-down-delay-after-add=10s",
    "--scale-down-unneeded-time=10s",
];

/// Has the autoscaler choose the size of the pool, which has one machine, and ends with one machine.
pub(crate) async fn follows_its_pods(
    fixture: &Fixture,
    cluster: &Cluster<'_>,
    guest: &Guest,
) -> Result<()> {
    let admin = &fixture.testbed.admin;
    let quick = json!({ "spec": { "autoscaling": {
        "scaleDown": { "delayAfterAddSeconds": 10, "unneededDurationSeconds": 10 },
    } } });
    admin.patch(&cluster.path(), Patch::Merge, &quick).await?;
    bounds(
        fixture,
        cluster,
        &json!({ "replicas": null, "autoScaling": { "min": 1, "max": 2 } }),
    )
    .await?;
    has_flags(fixture, cluster).await?;
    cluster.available(&DEPLOYMENTS, AUTOSCALER).await?;
    fixture
        .stage("the pool says that it is autoscaled", async || {
            let pool = admin.get(&cluster.pool_path()).await?;
            condition(&pool, PoolCondition::AutoscalingEnabled.as_str())
        })
        .await?;

    let hungry = Hungry::begin(fixture, guest, &json!({})).await?;
    cluster.has_workers(guest, 2).await?;
    hungry.runs().await?;
    hungry.ends().await?;
    cluster.has_workers(guest, 1).await?;
    bounds(
        fixture,
        cluster,
        &json!({ "replicas": 1, "autoScaling": null }),
    )
    .await
}

/// The flags of the installation for pools without machines: the operator asks the fake EC2 what instance types have.
pub(crate) fn from_zero_flags(fixture: &Fixture) -> Result<Vec<String>> {
    let credentials = fixture.testbed.path().join("scale-from-zero");
    let profile = "[default]\naws_access_key_id = a\naws_secret_access_key = s\n";
    std::fs::write(&credentials, profile)
        .with_context(|| format!("cannot write {}", credentials.display()))?;
    Ok(vec![
        "--scale-from-zero-provider=aws".to_owned(),
        format!("--scale-from-zero-creds={}", credentials.display()),
        format!(
            "--additional-operator-env-vars=INSECURE_REGISTRIES={},AWS_ENDPOINT_URL={}",
            registry::NAME,
            fixture.cloud.url_for_pods()
        ),
    ])
}

/// Adds a pool that may have no machine beside the one that has one; two machines come with the pods that only its nodes
/// may have, and go with them.
pub(crate) async fn from_zero(
    fixture: &Fixture,
    cluster: &Cluster<'_>,
    guest: &Guest,
) -> Result<()> {
    pools::create(fixture, cluster, BURST, &["--replicas=0".to_owned()]).await?;
    let (key, value) = LABEL;
    let desired = json!({ "spec": {
        "replicas": null,
        "autoScaling": { "min": 0, "max": 2 },
        "nodeLabels": { key: value },
    } });
    let path = NODE_POOLS.named(NAMESPACE, BURST);
    let admin = &fixture.testbed.admin;
    admin.patch(&path, Patch::Merge, &desired).await?;
    fixture
        .stage("the empty pool says that it is autoscaled", async || {
            let pool = admin.get(&path).await?;
            condition(&pool, PoolCondition::AutoscalingEnabled.as_str())?;
            let replicas = &pool["status"]["replicas"];
            ensure!(
                replicas.as_i64().unwrap_or_default() == 0,
                "it has {replicas} replicas"
            );
            Ok(())
        })
        .await?;
    cluster.has_workers(guest, 1).await?;

    let hungry = Hungry::begin(fixture, guest, &json!({ key: value })).await?;
    cluster.has_workers(guest, 3).await?;
    hungry.runs().await?;
    let labelled = format!(
        "/api/v1/nodes?labelSelector={}%3D{value}",
        key.replace('/', "%2F")
    );
    let count = guest.client.list(&labelled).await?.len();
    ensure!(count == 2, "{count} nodes have the label of the pool");
    hungry.ends().await?;
    cluster.has_workers(guest, 1).await?;
    // Otherwise it would take the pods of the next scenario.
    let before = json!({ "spec": { "replicas": 0, "autoScaling": null } });
    admin.patch(&path, Patch::Merge, &before).await.map(drop)
}

/// Requests two pods, of which a node has room for one.
pub(crate) async fn two_pods_are_hungry(fixture: &Fixture, guest: &Guest) -> Result<()> {
    Hungry::begin(fixture, guest, &json!({})).await.map(drop)
}

/// Pods of the user's, each of which needs more than half of a node.
struct Hungry<'a> {
    fixture: &'a Fixture,
    guest: &'a Guest,
}

// === impl Hungry ===

impl<'a> Hungry<'a> {
    /// Creates them, for nodes with these labels.
    async fn begin(fixture: &'a Fixture, guest: &'a Guest, selector: &Value) -> Result<Self> {
        let nodes = guest.nodes().await?;
        let node = nodes.first().context("there is no node")?;
        let request = format!("{}m", thousandths(node)? * SHARE_PERCENT / 100);
        let (image, selector) = (fixture.testbed.pause_image(), selector.to_string());
        let values = [
            ("IMAGE", image.as_str()),
            ("CPU", request.as_str()),
            ("SELECTOR", selector.as_str()),
        ];
        let hungry = fixtures::render("hosted_cluster/hungry", &values)?;
        guest.client.apply(&hungry).await?;
        Ok(Self { fixture, guest })
    }

    async fn runs(&self) -> Result<()> {
        let path = DEPLOYMENTS.named("default", HUNGRY);
        self.fixture
            .stage("pods run that no node had room for", async || {
                let found = self.guest.client.get(&path).await?;
                let available = &found["status"]["availableReplicas"];
                ensure!(*available == 2, "{}", found["status"]);
                Ok(())
            })
            .await
    }

    async fn ends(&self) -> Result<()> {
        let path = DEPLOYMENTS.named("default", HUNGRY);
        self.guest.client.delete(&path).await
    }
}

async fn bounds(fixture: &Fixture, cluster: &Cluster<'_>, spec: &Value) -> Result<()> {
    let desired = json!({ "spec": spec });
    let (admin, path) = (&fixture.testbed.admin, cluster.pool_path());
    admin.patch(&path, Patch::Merge, &desired).await.map(drop)
}

/// The settings of the HostedCluster reach the autoscaler.
async fn has_flags(fixture: &Fixture, cluster: &Cluster<'_>) -> Result<()> {
    let path = DEPLOYMENTS.named(&cluster.namespace(), AUTOSCALER);
    fixture
        .stage("the autoscaler has the delays of the cluster", async || {
            let found = fixture.testbed.admin.get(&path).await?;
            let containers = found["spec"]["template"]["spec"]["containers"].as_array();
            let mut containers = containers.into_iter().flatten();
            let own = containers.find(|it| it["name"] == AUTOSCALER);
            let arguments = own.and_then(|it| it["args"].as_array());
            let arguments = arguments.context("it has no arguments")?;
            let missing = FLAGS.iter().find(|flag| !arguments.contains(&json!(flag)));
            ensure!(missing.is_none(), "{missing:?} is missing in {arguments:?}");
            let replicas = &found["spec"]["replicas"];
            ensure!(*replicas == 1, "it has {replicas} replicas");
            Ok(())
        })
        .await
}

/// The processors of a node, in thousandths.
fn thousandths(node: &Value) -> Result<u64> {
    let amount = node["status"]["allocatable"]["cpu"].as_str();
    let amount = amount.context("it has no processors")?;
    let number = |text: &str| text.parse::<u64>().with_context(|| amount.to_owned());
    match amount.strip_suffix('m') {
        Some(amount) => number(amount),
        None => Ok(number(amount)? * 1000),
    }
}
