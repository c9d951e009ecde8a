//! A hosted cluster's life: made, waited for, scaled.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use api::group::{self, CapiTypes};
use serde_json::{Value, json};

use super::{
    COMPONENTS, DEPLOYMENTS, Fixture, Guest, HOSTED_CLUSTERS, NAMESPACE, NODE_POOLS, Platform,
    STATEFUL_SETS,
};
use crate::capi_storage::{self, Within};
use crate::certs::write;
use crate::client::{ApiClient, Resource};
use crate::node::condition;
use crate::registry;

/// Annotation: what a container requests, by workload and container.
const REQUESTS: &str = "resource-request-override.hypershift.openshift.io";
/// Processor time that large components request here, in thousandths. Two control planes have to fit on a node with two
/// processors, which those programs leave idle.
const REQUESTED: [(&str, u32); 10] = [
    ("aws-cloud-controller-manager.cloud-controller-manager", 10),
    ("etcd.etcd", 50),
    (
        "hosted-cluster-config-operator.hosted-cluster-config-operator",
        20,
    ),
    ("konnectivity-agent.konnectivity-agent", 10),
    ("kube-apiserver.kube-apiserver", 100),
    ("kube-controller-manager.kube-controller-manager", 20),
    ("openshift-apiserver.openshift-apiserver", 10),
    (
        "openshift-controller-manager.openshift-controller-manager",
        10,
    ),
    ("openshift-oauth-apiserver.openshift-oauth-apiserver", 10),
    ("router.router", 10),
];
/// The flag for the size of the pool.
const REPLICAS: &str = "--node-pool-replicas=";
/// What must be found valid before anything is made.
const VALID: [&str; 3] = [
    "ValidConfiguration",
    "ValidReleaseImage",
    "SupportedHostedCluster",
];

/// A cluster with a pool of workers. No request is sent before one of its calls.
#[derive(Debug, Clone)]
pub struct Cluster<'a> {
    pub(super) fixture: &'a Fixture,
    name: String,
    capi_types: CapiTypes,
    platform: Platform<'a>,
}

// === impl Cluster ===

impl<'a> Cluster<'a> {
    /// The cluster of a name, with Cluster API objects of given types, and with machines in the fake cloud.
    pub fn new(fixture: &'a Fixture, name: &str, capi_types: CapiTypes) -> Self {
        Self::on(fixture, name, capi_types, Platform::Aws)
    }

    /// The same on any platform.
    pub fn on(
        fixture: &'a Fixture,
        name: &str,
        capi_types: CapiTypes,
        platform: Platform<'a>,
    ) -> Self {
        Self {
            fixture,
            name: name.to_owned(),
            capi_types,
            platform,
        }
    }

    /// Its fixture.
    pub fn fixture(&self) -> &'a Fixture {
        self.fixture
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The groups that its Cluster API objects are in.
    pub fn capi_types(&self) -> CapiTypes {
        self.capi_types
    }

    /// The namespace of its control plane.
    pub fn namespace(&self) -> String {
        format!("{NAMESPACE}-{}", self.name)
    }

    /// The platform of its machines.
    pub fn platform(&self) -> Platform<'a> {
        self.platform
    }

    /// Its name in the cloud, and of its Cluster API object.
    pub fn infra(&self) -> String {
        format!("{}-x7k2p", self.name)
    }

    /// The name of its pool of workers.
    pub fn pool(&self) -> String {
        self.platform.pool(&self.name)
    }

    /// The path of its HostedCluster.
    pub fn path(&self) -> String {
        HOSTED_CLUSTERS.named(NAMESPACE, &self.name)
    }

    /// The path of its pool of workers.
    pub fn pool_path(&self) -> String {
        NODE_POOLS.named(NAMESPACE, &self.pool())
    }

    /// The keys of its Cluster API objects in etcd, by types.
    pub async fn stored(&self) -> Result<Within> {
        let etcd = &self.fixture.testbed.control_plane.etcd;
        capi_storage::within(etcd, &self.namespace()).await
    }

    /// Fails unless its Cluster API objects are in the groups of its types, and in no others.
    pub async fn is_on_its_side(&self) -> Result<()> {
        let is_only_there = self.stored().await?.are_only_on(self.capi_types);
        is_only_there.with_context(|| self.name.clone())
    }

    /// Creates it by the command that users have, with a pool of no workers. A flag (`--name=value`) replaces
    /// the usual one. Workers are requested after the pool has what makes Services work on them.
    pub async fn create(&self, flags: &[&str]) -> Result<String> {
        self.platform.prepare(self).await?;
        let (replicas, flags): (Vec<_>, Vec<_>) = flags
            .iter()
            .copied()
            .partition(|flag| flag.starts_with(REPLICAS));
        let said = self.fixture.hcp(&self.words()?, &flags).await?;
        if self.platform.makes_machines() {
            self.machines_run_kube_proxy().await?;
        }
        if let Some(count) = replicas
            .first()
            .and_then(|flag| flag.strip_prefix(REPLICAS))
        {
            self.scale(count.parse().context(REPLICAS)?).await?;
        }
        Ok(said)
    }

    /// The arguments of that command; writes the files that they name.
    pub fn words(&self) -> Result<Vec<String>> {
        let pull_secret =
            json!({ "auths": { registry::NAME: { "auth": "bm9ib2R5Om5vdGhpbmc=" } } });
        let mut words = ["create", "cluster", self.platform.word()]
            .map(str::to_owned)
            .to_vec();
        words.extend([
            format!("--name={}", self.name),
            format!("--pull-secret={}", self.file("pull-secret", &pull_secret)?),
            format!("--release-image={}", self.fixture.release.image),
            "--network-type=Other".to_owned(),
            "--etcd-storage-size=1Gi".to_owned(),
            "--control-plane-availability-policy=SingleReplica".to_owned(),
            // What users set must be on all pods.
            "--pods-labels=example.com/team=a".to_owned(),
            "--toleration=key=example.com/team,operator=Exists".to_owned(),
            format!("{REPLICAS}0"),
            // In the control plane, their images would be looked up in a registry that cannot be reached.
            "--olm-catalog-placement=guest".to_owned(),
        ]);
        words.extend(REQUESTED.map(|(container, amount)| {
            format!("--annotations={REQUESTS}/{container}=cpu={amount}m")
        }));
        words.extend(self.platform.flags(self)?);
        Ok(words)
    }

    /// Writes a file for a command to read; gives its path.
    pub(super) fn file(&self, what: &str, content: &Value) -> Result<String> {
        let name = format!("{}-{what}.json", self.name);
        let path = self.fixture.testbed.path().join(name);
        write(&path, &content.to_string())?;
        Ok(path.display().to_string())
    }

    /// Waits until its control plane is available and what holds of every cluster holds of it, and gives its API.
    pub async fn comes_up(&self) -> Result<Guest> {
        self.stage("it is found valid", async || {
            let cluster = self.seen().await?;
            VALID.iter().try_for_each(|kind| condition(&cluster, kind))
        })
        .await?;
        self.platform.is_found(self).await?;
        self.available(&DEPLOYMENTS, "control-plane-operator")
            .await?;
        self.available(&STATEFUL_SETS, "etcd").await?;
        for name in [
            "kube-apiserver",
            "kube-controller-manager",
            "kube-scheduler",
        ] {
            self.available(&DEPLOYMENTS, name).await?;
        }
        self.rolled_out().await?;
        self.stage("it is available", async || {
            condition(&self.seen().await?, "Available")
        })
        .await?;
        let guest = self
            .stage("its user has a kubeconfig that works", async || {
                self.guest().await
            })
            .await?;
        guest.gets_a_network(self.fixture).await?;
        self.has_its_controllers().await?;
        self.holds_invariants(&guest, false).await?;
        Ok(guest)
    }

    /// The controllers of machines work where Cluster API makes machines, and are nowhere else.
    async fn has_its_controllers(&self) -> Result<()> {
        for name in ["cluster-api", "capi-provider"] {
            if self.platform.makes_machines() {
                self.available(&DEPLOYMENTS, name).await?;
                continue;
            }
            let path = DEPLOYMENTS.named(&self.namespace(), name);
            let found = self.fixture.testbed.admin.find(&path).await?;
            ensure!(found.is_none(), "{path} is there, and has nothing to do");
        }
        Ok(())
    }

    /// Its API, with the kubeconfig that its user gets, after a first response.
    pub async fn guest(&self) -> Result<Guest> {
        let kubeconfig = self.kubeconfig();
        let words = ["create", "kubeconfig", "--name", &self.name, "--output"].map(str::to_owned);
        let mut words = words.to_vec();
        words.push(kubeconfig.display().to_string());
        self.fixture.hcp(&words, &[]).await?;
        let client = ApiClient::from_kubeconfig(&kubeconfig).await?;
        client.text("/version").await?;
        client.list("/api/v1/namespaces").await?;
        Ok(Guest {
            client,
            kubeconfig,
            of: self.name.clone(),
        })
    }

    /// Where [`Self::guest`] writes its kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        let name = format!("{}.kubeconfig", self.name);
        self.fixture.testbed.path().join(name)
    }

    /// Requests so many workers, with the command that users have.
    pub async fn scale(&self, count: usize) -> Result<()> {
        let words = ["scale", "nodepool", "--name", &self.pool(), "--replicas"].map(str::to_owned);
        let mut words = words.to_vec();
        words.push(count.to_string());
        self.fixture.hcp(&words, &[]).await.map(drop)
    }

    /// Waits until so many machines run on their platform, and there are as many nodes and Machines, all of them well.
    pub async fn has_workers(&self, guest: &Guest, count: usize) -> Result<()> {
        self.stage(&format!("{count} machines run for it"), async || {
            let running = self.platform.running(self).await?;
            ensure!(running.len() == count, "{running:?} run");
            Ok(())
        })
        .await?;
        guest.has_nodes(self.fixture, count).await?;
        if !self.platform.makes_machines() {
            return Ok(());
        }
        self.stage(
            &format!("the pool has {count} machines that run"),
            async || {
                let machines = self.machines().await?;
                ensure!(machines.len() == count, "there are {}", machines.len());
                for machine in &machines {
                    let status = &machine["status"];
                    ensure!(status["phase"] == "Running", "{status}");
                }
                Ok(())
            },
        )
        .await
    }

    /// Its Machines.
    pub async fn machines(&self) -> Result<Vec<Value>> {
        let version = format!("{}/v1beta2", group::core(self.capi_types));
        let machines = Resource::new(&version, "machines").within(&self.namespace());
        self.fixture.testbed.admin.list(&machines).await
    }

    /// Its HostedCluster now.
    pub async fn seen(&self) -> Result<Value> {
        self.fixture.testbed.admin.get(&self.path()).await
    }

    /// Waits until all replicas of a workload of the control plane are ready, and of its newest template.
    pub async fn available(&self, of: &Resource<'_>, name: &str) -> Result<()> {
        let path = of.named(&self.namespace(), name);
        self.stage(&format!("{name} is ready"), async || {
            let workload = self.fixture.testbed.admin.get(&path).await?;
            is_rolled_out(&workload)
        })
        .await
    }

    /// Waits until each component of the control plane is.
    pub async fn rolled_out(&self) -> Result<()> {
        let path = COMPONENTS.within(&self.namespace());
        self.stage("all components are rolled out", async || {
            let components = self.fixture.testbed.admin.list(&path).await?;
            ensure!(!components.is_empty(), "there are no components");
            for component in &components {
                for kind in ["Available", "RolloutComplete"] {
                    condition(component, kind)
                        .with_context(|| component["metadata"]["name"].to_string())?;
                }
            }
            Ok(())
        })
        .await
    }

    /// One stage of this cluster's.
    pub(super) async fn stage<T>(
        &self,
        what: &str,
        probe: impl std::ops::AsyncFnMut() -> Result<T>,
    ) -> Result<T> {
        let what = format!("{}: {what}", self.name);
        self.fixture.stage(&what, probe).await
    }
}

fn is_rolled_out(workload: &Value) -> Result<()> {
    let desired = workload["spec"]["replicas"].as_i64().unwrap_or(1);
    let status = &workload["status"];
    let count = |field: &str| status[field].as_i64().unwrap_or(0);
    let (ready, updated) = (count("readyReplicas"), count("updatedReplicas"));
    let seen = status["observedGeneration"] == workload["metadata"]["generation"];
    ensure!(
        seen && ready == desired && updated == desired,
        "{ready} of {desired} are ready, {updated} are up to date"
    );
    Ok(())
}
