//! A cluster with Karpenter, and what there is of it: machines, their class, the pods that need them.

use anyhow::{Result, bail, ensure};
use serde_json::{Value, json};
use testbed::client::{Patch, Resource};
use testbed::conditions;
use testbed::fixtures;
use testbed::hosted::{Cluster, DEPLOYMENTS, Fixture, Guest};
use testbed::node::condition;

use crate::hosted_cluster::autoscaled::HUNGRY;

const CLAIMS: Resource<'_> = Resource::new("karpenter.sh/v1", "nodeclaims");
const CLASSES: Resource<'_> = Resource::new(
    "karpenter.hypershift.openshift.io/v1",
    "openshiftec2nodeclasses",
);
const EC2_CLASSES: Resource<'_> = Resource::new("karpenter.k8s.aws/v1", "ec2nodeclasses");
/// The class that each cluster has.
const CLASS: &str = "default";
/// The only pool.
const POOL: &str = "on-demand";
/// Label of its nodes.
const OF_POOL: &str = "karpenter.sh/nodepool";
/// Label of nodes that Karpenter has taken up, and the taint that they have before.
const REGISTERED: &str = "karpenter.sh/registered";
const UNREGISTERED: &str = "karpenter.sh/unregistered";

/// A cluster with Karpenter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AutoNode<'a> {
    pub(crate) fixture: &'a Fixture,
    pub(crate) cluster: &'a Cluster<'a>,
    pub(crate) guest: &'a Guest,
}

/// A machine of Karpenter that is a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Machine {
    /// The UID of its NodeClaim.
    pub(crate) uid: String,
    /// The name of its node.
    pub(crate) node: String,
    /// Its instance.
    pub(crate) instance: String,
}

// === impl Machine ===

impl Machine {
    /// What a NodeClaim says, once its machine is a node.
    fn read(claim: &Value) -> Result<Self> {
        for kind in ["Launched", "Registered", "Initialized", "Ready"] {
            condition(claim, kind)?;
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let provider_id = text(&claim["status"]["providerID"]);
        Ok(Self {
            uid: text(&claim["metadata"]["uid"]),
            node: text(&claim["status"]["nodeName"]),
            instance: provider_id
                .rsplit('/')
                .next()
                .unwrap_or_default()
                .to_owned(),
        })
    }
}

// === impl AutoNode ===

impl AutoNode<'_> {
    /// Waits until it is reported as rolled out, and its class can have machines.
    pub(crate) async fn is_enabled(&self) -> Result<()> {
        self.fixture
            .stage("the cluster says that AutoNode is enabled", async || {
                condition(&self.cluster.seen().await?, "AutoNodeEnabled")
            })
            .await?;
        self.class_is_ready().await
    }

    /// Waits until machines of the class can be made.
    pub(crate) async fn class_is_ready(&self) -> Result<()> {
        self.fixture
            .stage("the class default is ready", async || {
                let class = self.class().await?;
                let has = condition(&class, "Ready");
                has.map_err(|error| error.context(conditions::untrue(&class)))
            })
            .await
    }

    /// Makes the pool.
    pub(crate) async fn makes_pool(&self) -> Result<()> {
        let pool = fixtures::render("hosted_cluster/karpenter", &[("NAME", POOL)])?;
        self.guest.client.apply(&pool).await
    }

    /// The class.
    pub(crate) async fn class(&self) -> Result<Value> {
        let path = format!("{}/{CLASS}", CLASSES.all());
        self.guest.client.get(&path).await
    }

    /// Changes the class.
    pub(crate) async fn changes_class(&self, change: &Value) -> Result<()> {
        let path = format!("{}/{CLASS}", CLASSES.all());
        let client = &self.guest.client;
        client.patch(&path, Patch::Merge, change).await.map(drop)
    }

    /// What Karpenter reads in place of the class.
    pub(crate) async fn ec2_class(&self) -> Result<Value> {
        self.guest.client.get(&ec2_class_path()).await
    }

    /// Tries to change that without the class.
    pub(crate) async fn tries_ec2_class(&self, change: &Value) -> Result<()> {
        let path = format!("{}?dryRun=All", ec2_class_path());
        let client = &self.guest.client;
        client.patch(&path, Patch::Merge, change).await.map(drop)
    }

    /// The NodeClaims.
    pub(crate) async fn claims(&self) -> Result<Vec<Value>> {
        self.guest.client.list(&CLAIMS.all()).await
    }

    /// Requests so many pods, of which a node has room for one.
    pub(crate) async fn scales_pods(&self, count: usize) -> Result<()> {
        let path = DEPLOYMENTS.named("default", HUNGRY);
        let desired = json!({ "spec": { "replicas": count } });
        let client = &self.guest.client;
        client.patch(&path, Patch::Merge, &desired).await.map(drop)
    }

    /// Waits until so many pods run.
    pub(crate) async fn runs_pods(&self, count: usize) -> Result<()> {
        let path = DEPLOYMENTS.named("default", HUNGRY);
        let what = format!("{count} pods run, of which a node has room for one");
        self.fixture
            .stage(&what, async || {
                let found = self.guest.client.get(&path).await?;
                let available = &found["status"]["availableReplicas"];
                ensure!(*available == count, "{}", found["status"]);
                Ok(())
            })
            .await
    }

    /// Waits until Karpenter has one machine, which is a node that it has taken up; another one than `before`.
    pub(crate) async fn has_a_node(&self, what: &str, before: Option<&Machine>) -> Result<Machine> {
        self.fixture
            .stage(what, async || {
                let claims = self.claims().await?;
                let [claim] = claims.as_slice() else {
                    let states = claims.iter().map(state);
                    bail!(
                        "{} NodeClaims: {:?}",
                        claims.len(),
                        states.collect::<Vec<_>>()
                    );
                };
                let machine = Machine::read(claim)?;
                let is_new = before.is_none_or(|before| before.uid != machine.uid);
                ensure!(is_new, "{} is still there", machine.node);
                let path = format!("/api/v1/nodes/{}", machine.node);
                is_taken_up(&self.guest.client.get(&path).await?)?;
                let running = self.cluster.instances_of_karpenter().await?;
                let ids: Vec<_> = running.iter().map(|it| it.id.as_str()).collect();
                ensure!(ids == [machine.instance.as_str()], "{ids:?} run");
                Ok(machine)
            })
            .await
    }

    /// Waits until Karpenter has no machine.
    pub(crate) async fn has_no_node(&self, what: &str) -> Result<()> {
        self.fixture
            .stage(what, async || {
                let claims = self.claims().await?;
                let states: Vec<_> = claims.iter().map(state).collect();
                ensure!(states.is_empty(), "{states:?}");
                let running = self.cluster.instances_of_karpenter().await?;
                ensure!(running.is_empty(), "{running:?} run");
                Ok(())
            })
            .await
    }

    /// Waits until the HostedCluster counts so many nodes of Karpenter.
    pub(crate) async fn counts(&self, count: usize) -> Result<()> {
        let what = format!("the cluster counts {count} nodes of Karpenter");
        self.fixture
            .stage(&what, async || {
                let seen = self.cluster.seen().await?;
                let status = &seen["status"]["autoNode"];
                for field in ["nodeCount", "nodeClaimCount"] {
                    ensure!(status[field] == count, "{status}");
                }
                let has_processors = status["vcpus"].as_u64().unwrap_or_default() > 0;
                ensure!(has_processors == (count > 0), "{status}");
                Ok(())
            })
            .await
    }
}

fn ec2_class_path() -> String {
    format!("{}/{CLASS}", EC2_CLASSES.all())
}

/// A NodeClaim, for messages.
fn state(claim: &Value) -> String {
    format!(
        "{}: {}",
        claim["metadata"]["name"],
        conditions::untrue(claim)
    )
}

/// That a node is ready, and that Karpenter has taken it up.
fn is_taken_up(node: &Value) -> Result<()> {
    condition(node, "Ready")?;
    let labels = &node["metadata"]["labels"];
    ensure!(
        labels[REGISTERED] == "true" && labels[OF_POOL] == POOL,
        "its labels are {labels}"
    );
    let taints = &node["spec"]["taints"];
    let mut all = taints.as_array().into_iter().flatten();
    ensure!(
        all.all(|taint| taint["key"] != UNREGISTERED),
        "its taints are {taints}"
    );
    Ok(())
}
