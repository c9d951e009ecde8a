//! Pools get another release: by machines that take the place of others, and by machines that stay.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use api::annotations::node_pool::{NODE_POOL, RELEASE_VERSION};
use serde_json::{Value, json};
use testbed::client::{Patch, Resource};
use testbed::fixtures;
use testbed::hosted::{Cluster, DEPLOYMENTS, Fixture, Guest, NAMESPACE, NODE_POOLS};
use testbed::node::condition;
use testbed::payload::Release;

use crate::hosted_cluster::control_plane;
use crate::hosted_cluster::observe::meanwhile;
use crate::hosted_cluster::timeline;

const BUDGETS: Resource<'_> = Resource::new("policy/v1", "poddisruptionbudgets");
/// The pool that keeps its machines.
const IN_PLACE: &str = "demo-in-place";
/// Something that may never be away altogether.
const GUARDED: &str = "guarded";
/// A file that the machines that stay get with their new release.
const MARKER: &str = "/etc/testbed/marker";
/// What is in it.
const MARKED: &str = "in-place";
/// How long a response may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// Creates a pool of one worker that is upgraded where it is.
pub(crate) async fn create_in_place(
    fixture: &Fixture,
    cluster: &Cluster<'_>,
    release: &Release,
) -> Result<()> {
    let flags = [
        "--replicas=1".to_owned(),
        "--node-upgrade-type=InPlace".to_owned(),
        format!("--release-image={}", release.image),
    ];
    create(fixture, cluster, IN_PLACE, &flags).await
}

/// Creates a pool beside the one that was created with the cluster.
pub(crate) async fn create(
    fixture: &Fixture,
    cluster: &Cluster<'_>,
    name: &str,
    flags: &[String],
) -> Result<()> {
    let network = &fixture.cloud.network;
    let usual = [
        "create".to_owned(),
        "nodepool".to_owned(),
        "aws".to_owned(),
        format!("--name={name}"),
        format!("--cluster-name={}", cluster.name()),
        format!("--subnet-id={}", network.subnet),
        format!("--securitygroup-id={}", network.security_group),
        format!("--instance-profile={}-worker-profile", cluster.infra()),
    ];
    fixture.hcp(&[&usual, flags].concat(), &[]).await.map(drop)
}

/// Requests another release of everything, nodes first. They wait for their control plane; then they get it, and no node
/// who uses them is left without.
pub(crate) async fn upgrade_with_the_control_plane(
    fixture: &Fixture,
    cluster: &Cluster<'_>,
    guest: &Guest,
    release: &Release,
) -> Result<()> {
    let marker = fixtures::render(
        "hosted_cluster/marker",
        &[("PATH", MARKER), ("TEXT", MARKED)],
    )?;
    fixture.testbed.admin.apply(&marker).await?;
    let image = fixture.testbed.pause_image();
    let guarded = fixtures::render("hosted_cluster/guarded", &[("IMAGE", &image)])?;
    guest.client.apply(&guarded).await?;
    let replaced = Replaced::begin(fixture, cluster, guest, release).await?;
    let stays = Stays::begin(fixture, cluster, guest, release).await?;
    replaced.waits().await?;
    let work = async {
        control_plane::upgrades(fixture, cluster, guest, release).await?;
        tokio::try_join!(replaced.comes(), stays.comes()).map(drop)
    };
    meanwhile(work, async || {
        replaced.look().await?;
        stays.look().await
    })
    .await?;
    replaced.is_over().await?;
    stays.is_over().await?;
    // Where there is no other node to go to, it would hold the last one, and with that the end of the cluster.
    let budget = BUDGETS.named("default", GUARDED);
    guest.client.delete(&budget).await
}

/// A pool with machines that are replaced.
struct Replaced<'a> {
    fixture: &'a Fixture,
    cluster: &'a Cluster<'a>,
    guest: &'a Guest,
    release: &'a Release,
    /// The pool's machines before, and the nodes that there were. A new node may have the address, and with it the name, of
    /// one that is gone.
    machines: BTreeSet<String>,
    nodes: BTreeSet<String>,
}

// === impl Replaced ===

impl<'a> Replaced<'a> {
    async fn begin(
        fixture: &'a Fixture,
        cluster: &'a Cluster<'a>,
        guest: &'a Guest,
        release: &'a Release,
    ) -> Result<Self> {
        let path = DEPLOYMENTS.named("default", GUARDED);
        fixture
            .stage(
                "two pods of the user's run, of which one must stay",
                async || {
                    let found = guest.client.get(&path).await?;
                    ensure!(
                        found["status"]["availableReplicas"] == 2,
                        "{}",
                        found["status"]
                    );
                    Ok(())
                },
            )
            .await?;
        let machines = of_pool(cluster, &cluster.pool()).await?;
        let desired = json!({ "spec": { "release": { "image": release.image } } });
        fixture
            .testbed
            .admin
            .patch(&cluster.pool_path(), Patch::Merge, &desired)
            .await?;
        Ok(Self {
            fixture,
            cluster,
            guest,
            release,
            nodes: guest.nodes().await?.iter().map(uid).collect(),
            machines: machines.iter().map(uid).collect(),
        })
    }

    /// While the control plane is older, nothing happens, and the pool says why.
    async fn waits(&self) -> Result<()> {
        let what = "a pool that is ahead of its control plane waits";
        self.fixture
            .stage(what, async || {
                let pool = self
                    .fixture
                    .testbed
                    .admin
                    .get(&self.cluster.pool_path())
                    .await?;
                let valid = timeline::condition(&pool, "ValidReleaseImage");
                ensure!(
                    valid["status"] == "False" && valid["reason"] == "InvalidImage",
                    "{valid}"
                );
                Ok(())
            })
            .await?;
        let machines = of_pool(self.cluster, &self.cluster.pool()).await?;
        let machines: BTreeSet<_> = machines.iter().map(uid).collect();
        ensure!(
            machines == self.machines,
            "machines were replaced too early"
        );
        Ok(())
    }

    async fn comes(&self) -> Result<()> {
        let path = self.cluster.pool_path();
        self.fixture
            .stage("the pool's machines are replaced", async || {
                has(&self.fixture.testbed.admin.get(&path).await?, self.release)
            })
            .await
    }

    /// Never fewer nodes of the pool than it is to have, and always one that serves.
    async fn look(&self) -> Result<()> {
        let requested = async {
            let nodes = self.guest.nodes().await?;
            let path = DEPLOYMENTS.named("default", GUARDED);
            anyhow::Ok((nodes, self.guest.client.get(&path).await?))
        };
        // While the API server is away, nothing can be seen.
        let Ok(Ok((nodes, guarded))) = tokio::time::timeout(PATIENCE, requested).await else {
            return Ok(());
        };
        let own = nodes.iter().filter(|node| !is_in_place(node));
        let ready = own.filter(|node| condition(node, "Ready").is_ok()).count();
        let expected = self.machines.len();
        ensure!(ready >= expected, "{ready} of {expected} workers are ready");
        let serving = guarded["status"]["availableReplicas"].as_i64().unwrap_or(0);
        ensure!(serving >= 1, "none serves: {}", guarded["status"]);
        Ok(())
    }

    async fn is_over(&self) -> Result<()> {
        let machines = of_pool(self.cluster, &self.cluster.pool()).await?;
        ensure!(
            machines.len() == self.machines.len(),
            "{} machines",
            machines.len()
        );
        let nodes = self.guest.nodes().await?;
        for machine in &machines {
            ensure!(
                !self.machines.contains(&uid(machine)),
                "{machine} is an old one"
            );
            let name = node(machine);
            let mut nodes = nodes.iter();
            let node = nodes.find(|it| it["metadata"]["name"] == name);
            let node = node.with_context(|| format!("node {name} does not exist"))?;
            ensure!(!self.nodes.contains(&uid(node)), "{name} is an old node");
        }
        let running = self.cluster.instances().await?.len();
        ensure!(running == machines.len() + 1, "{running} instances run");
        Ok(())
    }
}

/// A pool that keeps its machine.
struct Stays<'a> {
    fixture: &'a Fixture,
    cluster: &'a Cluster<'a>,
    guest: &'a Guest,
    release: &'a Release,
    machine: Value,
    node: Value,
    was_drained: Cell<bool>,
}

// === impl Stays ===

impl<'a> Stays<'a> {
    async fn begin(
        fixture: &'a Fixture,
        cluster: &'a Cluster<'a>,
        guest: &'a Guest,
        release: &'a Release,
    ) -> Result<Self> {
        let path = NODE_POOLS.named(NAMESPACE, IN_PLACE);
        let pool = fixture.testbed.admin.get(&path).await?;
        condition(&pool, "SupportedVersionSkew").context("an older pool")?;
        let machine = of_pool(cluster, IN_PLACE)
            .await?
            .pop()
            .context("it has no machine")?;
        let node = guest.client.get(&node_path(node(&machine))).await?;
        let desired = json!({ "spec": {
            "release": { "image": release.image },
            "config": [{ "name": "marker" }],
        } });
        fixture
            .testbed
            .admin
            .patch(&path, Patch::Merge, &desired)
            .await?;
        Ok(Self {
            fixture,
            cluster,
            guest,
            release,
            machine,
            node,
            was_drained: Cell::new(false),
        })
    }

    async fn comes(&self) -> Result<()> {
        let path = NODE_POOLS.named(NAMESPACE, IN_PLACE);
        self.fixture
            .stage("the machine that stays is upgraded", async || {
                has(&self.fixture.testbed.admin.get(&path).await?, self.release)
            })
            .await
    }

    async fn look(&self) -> Result<()> {
        let requested = tokio::time::timeout(PATIENCE, self.now()).await;
        if let Ok(Ok(node)) = requested
            && node["spec"]["unschedulable"] == true
        {
            self.was_drained.set(true);
        }
        Ok(())
    }

    async fn now(&self) -> Result<Value> {
        let name = self.node["metadata"]["name"].as_str().unwrap_or_default();
        self.guest.client.get(&node_path(name)).await
    }

    /// The same machine and the same node, with what the release and the configuration bring.
    async fn is_over(&self) -> Result<()> {
        let machines = of_pool(self.cluster, IN_PLACE).await?;
        let [machine] = machines.as_slice() else {
            bail!("there are {} machines", machines.len());
        };
        ensure!(uid(machine) == uid(&self.machine), "it is another machine");
        let release = &machine["metadata"]["annotations"][RELEASE_VERSION.key()];
        ensure!(
            *release == self.release.version.as_str(),
            "it says {release}"
        );
        let node = self.now().await?;
        ensure!(uid(&node) == uid(&self.node), "it is another node");
        condition(&node, "Ready")?;
        ensure!(node["spec"]["unschedulable"].is_null(), "it takes no pods");
        ensure!(self.was_drained.get(), "it was never drained");
        let state = &node["metadata"]["annotations"]["machineconfiguration.openshift.io/state"];
        ensure!(*state == "Done", "{state}");
        let id = machine["spec"]["providerID"].as_str().unwrap_or_default();
        let instance = id.rsplit('/').next().unwrap_or_default();
        let marker = self.fixture.cloud.file(instance, MARKER);
        ensure!(
            marker.as_deref() == Some(MARKED),
            "{MARKER} holds {marker:?}"
        );
        let daemons = "/api/v1/pods?labelSelector=app%3Dmachine-config-daemon";
        let mut left = self.guest.client.list(daemons).await?;
        left.retain(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        let names: Vec<_> = left.iter().map(|pod| &pod["metadata"]["name"]).collect();
        ensure!(names.is_empty(), "daemons are left: {names:?}");
        Ok(())
    }
}

/// Whether all nodes of a pool have a release.
fn has(pool: &Value, release: &Release) -> Result<()> {
    let version = &pool["status"]["version"];
    ensure!(
        *version == release.version.as_str(),
        "{}",
        pool["status"]["conditions"]
    );
    for kind in ["UpdatingVersion", "UpdatingConfig"] {
        let updating = timeline::condition(pool, kind);
        ensure!(updating["status"] == "False", "{kind} is {updating}");
    }
    condition(pool, "AllNodesHealthy")
}

/// The machines of a pool.
pub(crate) async fn of_pool(cluster: &Cluster<'_>, pool: &str) -> Result<Vec<Value>> {
    let reference = format!("{NAMESPACE}/{pool}");
    let mut machines = cluster.machines().await?;
    machines.retain(|one| one["metadata"]["annotations"][NODE_POOL.key()] == reference.as_str());
    Ok(machines)
}

/// Whether a node is one of those that stay. They have their pool's name.
fn is_in_place(node: &Value) -> bool {
    node["metadata"]["labels"]["hypershift.openshift.io/nodePool"] == IN_PLACE
}

fn node_path(name: &str) -> String {
    format!("/api/v1/nodes/{name}")
}

fn uid(object: &Value) -> String {
    object["metadata"]["uid"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

fn node(machine: &Value) -> &str {
    machine["status"]["nodeRef"]["name"]
        .as_str()
        .unwrap_or_default()
}
