//! A pool that may have no machine: the operators ask a fake EC2 what its instance type has, and annotate it for the autoscaler.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::client::{ApiClient, Patch, Resource};
use testbed::cloud::FakeStore;
use testbed::operator::SOON;
use testbed::testbed::Testbed;
use testbed::{conditions, wait};

use crate::hosted_clusters_api::cluster::{Cluster, NODE_POOLS};
use crate::hosted_clusters_api::fixture::NAMESPACE;

const MIN: &str = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size";
const LABELS: &str = "capacity.cluster-autoscaler.kubernetes.io/labels";
const PROCESSORS: &str = "machine.openshift.io/vCPU";
const MEMORY: &str = "machine.openshift.io/memoryMb";
/// What the instance type has that the pool has by now, and one that does not exist.
const KNOWN: [&str; 3] = ["m5.xlarge", "4", "16384"];
const UNKNOWN: &str = "m9.none";

/// The fake cloud, and the file with credentials for it.
pub(crate) struct Ec2 {
    store: FakeStore,
    /// The file with credentials, which are not checked.
    credentials: String,
}

// === impl Ec2 ===

impl Ec2 {
    pub(crate) async fn start(testbed: &Testbed) -> Result<Self> {
        let store = FakeStore::start(testbed.work_dir(), &testbed.progress).await?;
        let credentials = testbed.path().join("scale-from-zero");
        let profile = "[default]\naws_access_key_id = a\naws_secret_access_key = s\n";
        write(&credentials, profile)?;
        Ok(Self {
            store,
            credentials: credentials.display().to_string(),
        })
    }

    /// The flags of an operator: for capacities, and for VPC endpoint services in a region.
    pub(crate) fn flags<'a>(&'a self, region: &'a str) -> [(&'static str, &'a str); 4] {
        [
            ("scale-from-zero-provider", "aws"),
            ("scale-from-zero-creds", &self.credentials),
            ("aws-region", region),
            ("aws-shared-credentials-file", &self.credentials),
        ]
    }

    /// The URL that replaces the one of AWS.
    pub(crate) fn url(&self) -> String {
        self.store.url()
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// The pool of a cluster is scaled automatically, gets an instance type that does not exist, and is scaled by hand again.
pub(crate) async fn is_annotated(cluster: &Cluster, admin: &ApiClient) -> Result<()> {
    let [instance_type, processors, memory] = KNOWN;
    change(
        cluster,
        admin,
        json!({ "replicas": null, "autoScaling": { "min": 0, "max": 3 } }),
    )
    .await?;
    let expected = [
        (MIN, "0"),
        (PROCESSORS, processors),
        (MEMORY, memory),
        (LABELS, "kubernetes.io/arch=amd64"),
    ];
    has(cluster, admin, &expected).await?;
    let unknown = json!({ "platform": { "aws": { "instanceType": UNKNOWN } } });
    change(cluster, admin, unknown).await?;
    let path = NODE_POOLS.named(NAMESPACE, &cluster.pool());
    wait::until("the pool to name the instance type", SOON, async || {
        let pool = admin.get(&path).await?;
        let found = conditions::find(&pool, "AutoscalingEnabled").context("no condition")?;
        let message = found["message"].as_str().unwrap_or_default();
        ensure!(message.contains(UNKNOWN), "{message}");
        Ok(())
    })
    .await?;
    // What the autoscaler knew stays.
    has(cluster, admin, &expected).await?;
    let before = json!({
        "replicas": 3,
        "autoScaling": null,
        "platform": { "aws": { "instanceType": instance_type } },
    });
    change(cluster, admin, before).await?;
    let deployment = has(cluster, admin, &[(MIN, "0")]).await?;
    let replicas = &deployment["spec"]["replicas"];
    ensure!(*replicas == 3, "it has {replicas} replicas");
    Ok(())
}

async fn change(cluster: &Cluster, admin: &ApiClient, spec: Value) -> Result<()> {
    let path = NODE_POOLS.named(NAMESPACE, &cluster.pool());
    let desired = json!({ "spec": spec });
    admin.patch(&path, Patch::Merge, &desired).await.map(drop)
}

/// Waits for annotations of the MachineDeployment.
async fn has(cluster: &Cluster, admin: &ApiClient, expected: &[(&str, &str)]) -> Result<Value> {
    let deployments = Resource::new(cluster.version(false), "machinedeployments");
    let path = deployments.named(&cluster.namespace(), &cluster.pool());
    wait::until("annotations for the autoscaler", SOON, async || {
        let found = admin.get(&path).await?;
        let annotations = &found["metadata"]["annotations"];
        for (key, value) in expected {
            ensure!(annotations[key] == *value, "{annotations}");
        }
        Ok(found)
    })
    .await
}
