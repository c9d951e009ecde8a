//! Many HostedClusters on an API server, and a simulation of what other controllers write for them.

use std::ops::Range;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use serde_json::{Value, json};

use crate::usage::Group;
use testbed::cargo::{Linking, Profile, Program};
use testbed::client::{ApiClient, Patch, Resource};
use testbed::conditions;
use testbed::operator::{self, BINARY_VARIABLE, Identity, Operator, Replica};
use testbed::service_account::ensure_namespace;
use testbed::simulation::{self, Releases, Simulation, install_kinds};
use testbed::testbed::Testbed;
use testbed::wait;

/// The namespace of the HostedClusters.
pub(super) const NAMESPACE: &str = "clusters";
/// HostedClusters that are written at the same time.
const AT_ONCE: usize = 8;
/// How long there must be no write to conclude that the operator is idle.
const QUIESCENCE_PERIOD: Duration = Duration::from_secs(5);
/// The timeout of each wait.
pub(super) const TIMEOUT: Duration = Duration::from_mins(20);
const HYPERSHIFT: &str = "hypershift.openshift.io/v1beta1";
const CAPI: &str = "cluster.hypershift.openshift.io/v1beta2";
const HOSTED_CLUSTERS: Resource<'_> = Resource::new(HYPERSHIFT, "hostedclusters");
const CONTROL_PLANES: Resource<'_> = Resource::new(HYPERSHIFT, "hostedcontrolplanes");
const DEPLOYMENTS: Resource<'_> = Resource::new(CAPI, "machinedeployments");
const MACHINES: Resource<'_> = Resource::new(CAPI, "machines");

/// The fixture of the benchmark.
pub(super) struct Stage<'a> {
    pub(super) testbed: &'a Testbed,
    _releases: Releases,
    release: String,
    identity: Identity,
    replica: Option<Replica>,
    _simulation: Simulation,
}

/// The number in a cluster's name.
pub(super) fn index(name: &str) -> usize {
    let digits = name.rsplit('-').next().unwrap_or_default();
    digits.parse().unwrap_or(usize::MAX)
}

// === impl Stage ===

impl<'a> Stage<'a> {
    pub(super) async fn open(testbed: &'a mut Testbed) -> Result<Self> {
        install_kinds(testbed).await?;
        ensure_namespace(&testbed.admin, NAMESPACE).await?;
        let releases = Releases::start(testbed).await?;
        let release = releases.push("4.22.0").await?;
        let program = Program {
            package: "hypershift-operator",
            name: "hypershift-operator",
            profile: Profile::Release,
            linking: Linking::Dynamic,
        };
        let program = program.find(BINARY_VARIABLE, &testbed.progress).await?;
        let identity = Identity::create(testbed, Operator::Private, &program)
            .await?
            .with_flag("resync-period", "30s")
            .with_flag("insecure-registries", releases.address())
            .with_flag("capi-proxy-image", "images.example.com/capi-proxy:v1");
        Ok(Self {
            _simulation: Simulation::start(&testbed.admin),
            testbed,
            _releases: releases,
            release,
            identity,
            replica: None,
        })
    }

    pub(super) fn username(&self) -> String {
        self.identity.username()
    }

    /// Starts the operator; returns its process.
    pub(super) async fn start_operator(&mut self) -> Result<Group> {
        let mut replica = self.identity.replica(self.testbed, "operator-1")?;
        replica.service.start().await?;
        wait::until("the operator to be ready", operator::SOON, async || {
            replica.is_ready().await
        })
        .await?;
        let pid = replica.service.pid().context("the operator has ended")?;
        self.replica = Some(replica);
        Ok(Group(pid))
    }

    /// Creates HostedClusters.
    pub(super) async fn create(&self, clusters: Range<usize>) -> Result<()> {
        let desired = clusters.map(|it| simulation::desired(&name(it), &self.release));
        let desired: Vec<Vec<Value>> = desired.collect::<Result<_>>()?;
        let admin = &self.testbed.admin;
        each(desired, async |objects| admin.apply(&objects).await).await
    }

    /// Simulates their control planes and machines.
    pub(super) async fn simulate(&self, clusters: Range<usize>, nodes: usize) -> Result<()> {
        let admin = &self.testbed.admin;
        each(clusters, async |number| {
            control_plane(admin, number).await?;
            machines(admin, number, nodes).await
        })
        .await
    }

    /// Waits until all HostedClusters are available.
    pub(super) async fn wait_until_available(&self, clusters: usize) -> Result<()> {
        wait::until("all clusters to be available", TIMEOUT, async || {
            let found = self.testbed.admin.list(&HOSTED_CLUSTERS.all()).await?;
            let available = found
                .iter()
                .filter(|it| conditions::is_true(it, "Available"));
            let available = available.count();
            ensure!(available == clusters, "{available} of {clusters} are");
            tokio::time::sleep(QUIESCENCE_PERIOD).await;
            Ok(())
        })
        .await
    }

    /// Waits until the operator is idle.
    pub(super) async fn wait_until_idle(&self) -> Result<()> {
        wait::until("the operator to be idle", TIMEOUT, async || {
            let mark = self.testbed.control_plane.audit.mark()?;
            tokio::time::sleep(QUIESCENCE_PERIOD).await;
            let writes = super::Requests::read(self, mark)?.writes;
            ensure!(writes == 0, "{writes} writes");
            Ok(())
        })
        .await
    }
}

fn name(number: usize) -> String {
    format!("fleet-{number}")
}

/// Runs `work` for each, several at once.
async fn each<T>(
    items: impl IntoIterator<Item = T>,
    work: impl AsyncFn(T) -> Result<()>,
) -> Result<()> {
    let work = &work;
    stream::iter(items)
        .map(|item| work(item))
        .buffer_unordered(AT_ONCE)
        .try_collect::<()>()
        .await
}

/// Simulates the control-plane-operator: its status, and the objects that the operator reads.
async fn control_plane(admin: &ApiClient, number: usize) -> Result<()> {
    let name = name(number);
    let namespace = format!("{NAMESPACE}-{name}");
    let path = CONTROL_PLANES.named(&namespace, &name);
    wait::until("a HostedControlPlane", TIMEOUT, async || {
        admin.get(&path).await.map(drop)
    })
    .await?;
    let labels = json!({ "app": "ignition-server" });
    let container = json!({ "name": "ignition-server", "image": "images.example.com/ignition" });
    // Without it the HostedCluster is not settled, and is reconciled all the time.
    let server = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "namespace": namespace, "name": "ignition-server" },
        "spec": {
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": [container] } },
        },
    });
    admin.apply(&[server]).await?;
    simulation::control_plane_comes_up(admin, NAMESPACE, &name).await
}

/// Simulates Cluster API: machines with their nodes, and their status.
async fn machines(admin: &ApiClient, number: usize, nodes: usize) -> Result<()> {
    let name = name(number);
    let namespace = format!("{NAMESPACE}-{name}");
    let pool = format!("{name}-workers");
    let path = DEPLOYMENTS.named(&namespace, &pool);
    let deployment = wait::until("a MachineDeployment", TIMEOUT, async || {
        admin.get(&path).await
    })
    .await?;
    let template = &deployment["spec"]["template"];
    for node in 0..nodes {
        let machine = format!("{pool}-{node}");
        let mut metadata = template["metadata"].clone();
        metadata["namespace"] = json!(namespace);
        metadata["name"] = json!(machine);
        metadata["labels"]["cluster.x-k8s.io/deployment-name"] = json!(pool);
        let object = json!({
            "apiVersion": CAPI,
            "kind": "Machine",
            "metadata": metadata,
            "spec": template["spec"],
        });
        admin.apply(&[object]).await?;
        let status = json!({ "status": {
            "phase": "Running",
            "nodeRef": { "name": machine },
        } });
        let path = MACHINES.named(&namespace, &machine);
        admin
            .patch(&format!("{path}/status"), Patch::Merge, &status)
            .await?;
    }
    let status = json!({ "status": {
        "observedGeneration": deployment["metadata"]["generation"],
        "replicas": nodes,
        "readyReplicas": nodes,
        "availableReplicas": nodes,
        "upToDateReplicas": nodes,
    } });
    admin
        .patch(&format!("{path}/status"), Patch::Merge, &status)
        .await?;
    Ok(())
}
