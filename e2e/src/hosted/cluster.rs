//! A hosted cluster's life: made, waited for, scaled.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use api::group::{self, Side};
use serde_json::{Value, json};

use super::{
    COMPONENTS, DEPLOYMENTS, Ground, Guest, HOSTED_CLUSTERS, NAMESPACE, NODE_POOLS, STATEFUL_SETS,
};
use crate::certs::write;
use crate::client::{ApiClient, Patch, Resource};
use crate::cloud::{Instance, ZONE};
use crate::node::condition;
use crate::{registry, sides};

/// The account that roles belong to.
const ROLES: &str = "arn:aws:iam::123456789012:role";
/// What must be found valid before anything is made.
const VALID: [&str; 3] = [
    "ValidConfiguration",
    "ValidReleaseImage",
    "SupportedHostedCluster",
];

/// A cluster on the fake cloud with a pool of workers. Nothing is asked of anybody before one of its calls.
#[derive(Debug, Clone)]
pub struct Cluster<'a> {
    pub(super) ground: &'a Ground,
    name: String,
    side: Side,
}

// === impl Cluster ===

impl<'a> Cluster<'a> {
    /// The cluster of a name, whose Cluster API objects are on a side.
    pub fn new(ground: &'a Ground, name: &str, side: Side) -> Self {
        Self {
            ground,
            name: name.to_owned(),
            side,
        }
    }

    /// What it stands on.
    pub fn ground(&self) -> &'a Ground {
        self.ground
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The groups that its Cluster API objects are in.
    pub fn side(&self) -> Side {
        self.side
    }

    /// The namespace of its control plane.
    pub fn namespace(&self) -> String {
        format!("{NAMESPACE}-{}", self.name)
    }

    /// Its name in the cloud, and of its Cluster API object.
    pub fn infra(&self) -> String {
        format!("{}-x7k2p", self.name)
    }

    /// The name of its pool of workers.
    pub fn pool(&self) -> String {
        format!("{}-{ZONE}", self.name)
    }

    /// The path of its HostedCluster.
    pub fn path(&self) -> String {
        HOSTED_CLUSTERS.named(NAMESPACE, &self.name)
    }

    /// The path of its pool of workers.
    pub fn pool_path(&self) -> String {
        NODE_POOLS.named(NAMESPACE, &self.pool())
    }

    /// Fails unless its Cluster API objects are in the groups of its side, and in no others.
    pub async fn is_on_its_side(&self) -> Result<()> {
        let within = format!("/{}/", self.namespace());
        let etcd = &self.ground.testbed.control_plane.etcd;
        for side in [Side::Standard, Side::Private] {
            let mut keys = sides::objects(etcd, side).await?;
            keys.retain(|key| key.contains(&within));
            ensure!(
                keys.is_empty() == (side != self.side),
                "{}: on the {side:?} side there are {keys:?}",
                self.name
            );
        }
        Ok(())
    }

    /// Creates it by the command that users have, with a pool of no workers. A flag (`--name=value`) comes in place of
    /// the usual one.
    pub async fn create(&self, flags: &[&str]) -> Result<String> {
        self.has_profile().await?;
        self.ground.hcp(&self.words()?, flags).await
    }

    /// Makes in the cloud what must be there before the command.
    pub async fn has_profile(&self) -> Result<()> {
        let cloud = &self.ground.cloud.client;
        cloud.create_instance_profile(&self.profile()).await
    }

    /// The words of that command; writes the files that they name.
    pub fn words(&self) -> Result<Vec<String>> {
        let pull_secret =
            json!({ "auths": { registry::NAME: { "auth": "bm9ib2R5Om5vdGhpbmc=" } } });
        let mut words = ["create", "cluster", "aws"].map(str::to_owned).to_vec();
        words.extend([
            format!("--name={}", self.name),
            format!("--infra-json={}", self.file("infra", &self.network())?),
            format!("--iam-json={}", self.file("iam", &self.identity())?),
            format!("--pull-secret={}", self.file("pull-secret", &pull_secret)?),
            format!("--release-image={}", self.ground.release.image),
            "--network-type=Other".to_owned(),
            "--etcd-storage-size=1Gi".to_owned(),
            "--control-plane-availability-policy=SingleReplica".to_owned(),
            "--node-pool-replicas=0".to_owned(),
            "--auto-repair".to_owned(),
        ]);
        Ok(words)
    }

    fn network(&self) -> Value {
        let network = &self.ground.cloud.network;
        json!({
            "region": "us-east-1",
            "infraID": self.infra(),
            "vpcID": network.vpc,
            "zones": [{ "name": ZONE, "subnetID": network.subnet }],
            "securityGroupID": network.security_group,
            "machineCIDR": self.ground.testbed.namespaces().subnets().machines(),
            "baseDomain": "testbed",
        })
    }

    fn identity(&self) -> Value {
        let role = |name: &str| format!("{ROLES}/{}-{name}", self.infra());
        json!({
            "profileName": self.profile(),
            "roles": {
                "ingressARN": role("ingress"),
                "imageRegistryARN": role("image-registry"),
                "storageARN": role("storage"),
                "networkARN": role("network"),
                "kubeCloudControllerARN": role("cloud-controller"),
                "nodePoolManagementARN": role("node-pool"),
                "controlPlaneOperatorARN": role("control-plane-operator"),
            },
        })
    }

    /// What its instances may do.
    fn profile(&self) -> String {
        format!("{}-worker-profile", self.infra())
    }

    fn file(&self, what: &str, content: &Value) -> Result<String> {
        let name = format!("{}-{what}.json", self.name);
        let path = self.ground.testbed.path().join(name);
        write(&path, &content.to_string())?;
        Ok(path.display().to_string())
    }

    /// Waits until its control plane is available, and gives its API.
    pub async fn comes_up(&self) -> Result<Guest> {
        self.stage("it is found valid", async || {
            let cluster = self.seen().await?;
            VALID.iter().try_for_each(|kind| condition(&cluster, kind))
        })
        .await?;
        self.can_ask_the_cloud().await?;
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
        for name in ["cluster-api", "capi-provider"] {
            self.available(&DEPLOYMENTS, name).await?;
        }
        Ok(guest)
    }

    /// Its API, by the kubeconfig that its user gets, which has been answered.
    pub async fn guest(&self) -> Result<Guest> {
        let kubeconfig = self.kubeconfig();
        let words = ["create", "kubeconfig", "--name", &self.name, "--output"].map(str::to_owned);
        let mut words = words.to_vec();
        words.push(kubeconfig.display().to_string());
        self.ground.hcp(&words, &[]).await?;
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
        self.ground.testbed.path().join(name)
    }

    /// Asks for so many workers, by the command that users have.
    pub async fn scale(&self, count: usize) -> Result<()> {
        let words = ["scale", "nodepool", "--name", &self.pool(), "--replicas"].map(str::to_owned);
        let mut words = words.to_vec();
        words.push(count.to_string());
        self.ground.hcp(&words, &[]).await.map(drop)
    }

    /// Waits until there are so many instances, nodes and machines, all of them well.
    pub async fn has_workers(&self, guest: &Guest, count: usize) -> Result<()> {
        self.stage(&format!("the cloud runs {count} instances"), async || {
            let running = self.instances().await?.len();
            ensure!(running == count, "{running} run");
            Ok(())
        })
        .await?;
        guest.has_nodes(self.ground, count).await?;
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

    /// Its instances that run.
    pub async fn instances(&self) -> Result<Vec<Instance>> {
        let infra = self.infra();
        let mut instances = self.ground.cloud.client.instances_of(&infra).await?;
        instances.retain(Instance::runs);
        Ok(instances)
    }

    /// Its Machines.
    pub async fn machines(&self) -> Result<Vec<Value>> {
        let version = format!("{}/v1beta2", group::core(self.side));
        let machines = Resource::new(&version, "machines").within(&self.namespace());
        self.ground.testbed.admin.list(&machines).await
    }

    /// Its HostedCluster now.
    pub async fn seen(&self) -> Result<Value> {
        self.ground.testbed.admin.get(&self.path()).await
    }

    /// The provider asks AWS unless its SDK is told otherwise, which variables do: one for all services, and one for the
    /// service that credentials come from, which is asked before the first is read.
    pub async fn can_ask_the_cloud(&self) -> Result<()> {
        self.stage("the provider is told where the cloud is", async || {
            self.tell_where_the_cloud_is().await
        })
        .await
    }

    /// The same, at once.
    pub async fn tell_where_the_cloud_is(&self) -> Result<()> {
        let (admin, url) = (&self.ground.testbed.admin, self.ground.cloud.url());
        let path = DEPLOYMENTS.named(&self.namespace(), "capi-provider");
        let found = admin.get(&path).await?;
        let containers = found["spec"]["template"]["spec"]["containers"].as_array();
        let manager = containers
            .and_then(|containers| containers.first())
            .context("there is no container")?;
        let wanted = json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": { "namespace": self.namespace(), "name": "capi-provider" },
            "spec": { "template": { "spec": { "containers": [{
                "name": manager["name"],
                "env": [
                    { "name": "AWS_ENDPOINT_URL", "value": url },
                    { "name": "AWS_ENDPOINT_URL_STS", "value": url },
                ],
            }] } } },
        });
        admin.patch(&path, Patch::Apply, &wanted).await.map(drop)
    }

    /// Waits until all replicas of a workload of the control plane are ready, and of its newest template.
    pub async fn available(&self, of: &Resource<'_>, name: &str) -> Result<()> {
        let path = of.named(&self.namespace(), name);
        self.stage(&format!("{name} is ready"), async || {
            let workload = self.ground.testbed.admin.get(&path).await?;
            is_rolled_out(&workload)
        })
        .await
    }

    /// Waits until each component of the control plane is.
    pub async fn rolled_out(&self) -> Result<()> {
        let path = COMPONENTS.within(&self.namespace());
        self.stage("all components are rolled out", async || {
            let components = self.ground.testbed.admin.list(&path).await?;
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
        self.ground.stage(&what, probe).await
    }
}

fn is_rolled_out(workload: &Value) -> Result<()> {
    let wanted = workload["spec"]["replicas"].as_i64().unwrap_or(1);
    let status = &workload["status"];
    let count = |field: &str| status[field].as_i64().unwrap_or(0);
    let (ready, updated) = (count("readyReplicas"), count("updatedReplicas"));
    let seen = status["observedGeneration"] == workload["metadata"]["generation"];
    ensure!(
        seen && ready == wanted && updated == wanted,
        "{ready} of {wanted} are ready, {updated} are up to date"
    );
    Ok(())
}
