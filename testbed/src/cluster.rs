//! A Cluster API cluster as its user sees it: its machines, whether it has settled, requests to it.

use std::time::Duration;

use anyhow::{Result, ensure};
use api::group::{CapiTypes, GroupTable};
use serde_json::{Value, json};

use crate::client::{ApiClient, Patch, Resource};
use crate::wait;

/// `apiVersion` of Cluster API's core kinds, under their standard name.
pub const CORE: &str = "cluster.x-k8s.io/v1beta2";
/// `apiVersion` of the kubeadm control plane, under its standard name.
pub const CONTROL_PLANE: &str = "controlplane.cluster.x-k8s.io/v1beta2";

/// The clusters of Cluster API.
pub const CLUSTERS: Resource<'_> = Resource::new(CORE, "clusters");
/// Their machines.
pub const MACHINES: Resource<'_> = Resource::new(CORE, "machines");
/// Their groups of workers.
pub const MACHINE_DEPLOYMENTS: Resource<'_> = Resource::new(CORE, "machinedeployments");
/// Their control planes.
pub const CONTROL_PLANES: Resource<'_> = Resource::new(CONTROL_PLANE, "kubeadmcontrolplanes");

/// Label that names the cluster of an object.
const CLUSTER_LABEL: &str = "cluster.x-k8s.io/cluster-name";
/// Label of control plane machines.
const CONTROL_PLANE_LABEL: &str = "cluster.x-k8s.io/control-plane";

/// One cluster, seen under standard names through one client.
#[derive(Debug, Clone)]
pub struct Cluster {
    client: ApiClient,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// A machine of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// Its phase: `Running` when all is well.
    pub phase: String,
    /// Its Kubernetes version.
    pub version: String,
    /// The node that it became.
    pub node: String,
    /// The uid of the object.
    pub uid: String,
    /// Whether it is part of the control plane.
    pub control_plane: bool,
}

/// What a settled cluster consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Machines of the control plane.
    pub control_plane: usize,
    /// Workers.
    pub workers: usize,
}

/// The `apiVersion` that a standard one has in the given types.
pub fn api_version(standard: &str, capi_types: CapiTypes) -> String {
    match capi_types {
        CapiTypes::Standard => standard.to_owned(),
        CapiTypes::Private => {
            let table = GroupTable::default();
            let swapped = table.swap_api_version(standard.as_bytes());
            swapped.map_or_else(
                || standard.to_owned(),
                |(group, rest)| format!("{group}{}", String::from_utf8_lossy(rest)),
            )
        }
    }
}

// === impl Machine ===

impl Machine {
    /// Reads a Machine object.
    pub fn read(object: &Value) -> Self {
        let text = |at: &str| object.pointer(at).and_then(Value::as_str).unwrap_or("");
        Self {
            name: text("/metadata/name").to_owned(),
            phase: text("/status/phase").to_owned(),
            version: text("/spec/version").to_owned(),
            node: text("/status/nodeRef/name").to_owned(),
            uid: text("/metadata/uid").to_owned(),
            control_plane: !object["metadata"]["labels"][CONTROL_PLANE_LABEL].is_null(),
        }
    }
}

// === impl Cluster ===

impl Cluster {
    /// The cluster called `name`, through `client`.
    pub fn new(client: &ApiClient, namespace: &str, name: &str) -> Self {
        Self {
            client: client.clone(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// The client that it is seen through.
    pub fn client(&self) -> &ApiClient {
        &self.client
    }

    /// The Cluster object.
    pub async fn object(&self) -> Result<Value> {
        self.client
            .get(&CLUSTERS.named(&self.namespace, &self.name))
            .await
    }

    /// Its objects of one kind.
    pub async fn list(&self, resource: &Resource<'_>) -> Result<Vec<Value>> {
        let path = resource.within(&self.namespace);
        self.client
            .list(&format!(
                "{path}?labelSelector={CLUSTER_LABEL}={}",
                self.name
            ))
            .await
    }

    /// Its machines, ordered by name.
    pub async fn machines(&self) -> Result<Vec<Machine>> {
        let objects = self.list(&MACHINES).await?;
        let mut machines: Vec<_> = objects.iter().map(Machine::read).collect();
        machines.sort();
        Ok(machines)
    }

    /// Changes the Cluster object by a merge patch.
    pub async fn patch(&self, change: &Value) -> Result<()> {
        let path = CLUSTERS.named(&self.namespace, &self.name);
        self.client.patch(&path, Patch::Merge, change).await?;
        Ok(())
    }

    /// Changes one of its objects by a merge patch.
    pub async fn patch_part(
        &self,
        resource: &Resource<'_>,
        name: &str,
        change: &Value,
    ) -> Result<()> {
        let path = resource.named(&self.namespace, name);
        self.client.patch(&path, Patch::Merge, change).await?;
        Ok(())
    }

    /// Sets the number of workers through the scale subresource of its only `MachineDeployment`.
    pub async fn scale_workers(&self, name: &str, replicas: usize) -> Result<()> {
        let path = MACHINE_DEPLOYMENTS.named(&self.namespace, name);
        let change = json!({ "spec": { "replicas": replicas } });
        self.client
            .patch(&format!("{path}/scale"), Patch::Merge, &change)
            .await?;
        Ok(())
    }

    /// Waits until the cluster is provisioned and consists of exactly these machines, all running, all up to date.
    pub async fn settled(&self, shape: Shape, within: Duration) -> Result<Vec<Machine>> {
        let what = format!("cluster {} to settle as {shape:?}", self.name);
        wait::until(&what, within, async || self.check(shape).await).await
    }

    async fn check(&self, shape: Shape) -> Result<Vec<Machine>> {
        let machines = self.machines().await?;
        let control_plane = machines.iter().filter(|m| m.control_plane).count();
        let found = Shape {
            control_plane,
            workers: machines.len() - control_plane,
        };
        let summary = || {
            let each = machines.iter().map(|m| format!("{} {}", m.name, m.phase));
            each.collect::<Vec<_>>().join(", ")
        };
        ensure!(found == shape, "machines are {}", summary());
        ensure!(
            machines.iter().all(|m| m.phase == "Running"),
            "machines are {}",
            summary()
        );
        let object = self.object().await?;
        let phase = &object["status"]["phase"];
        ensure!(phase == "Provisioned", "the Cluster is {phase}");
        check_replicas(&self.list(&CONTROL_PLANES).await?, shape.control_plane)?;
        check_replicas(&self.list(&MACHINE_DEPLOYMENTS).await?, shape.workers)?;
        Ok(machines)
    }

    /// Waits until nothing of it is left.
    pub async fn gone(&self, within: Duration) -> Result<()> {
        let path = CLUSTERS.named(&self.namespace, &self.name);
        wait::until(
            &format!("cluster {} to be gone", self.name),
            within,
            async || {
                let left = self.machines().await?;
                ensure!(left.is_empty(), "{} machines are left", left.len());
                ensure!(
                    self.client.find(&path).await?.is_none(),
                    "the Cluster is left"
                );
                Ok(())
            },
        )
        .await
    }

    /// Requests its deletion.
    pub async fn delete(&self) -> Result<()> {
        self.client
            .delete(&CLUSTERS.named(&self.namespace, &self.name))
            .await
    }
}

/// Whether owners of machines report `desired` replicas between them: there, available and up to date, and have seen
/// their last change.
fn check_replicas(owners: &[Value], desired: usize) -> Result<()> {
    let sum = |field: &str| -> u64 {
        let each = owners.iter().map(|owner| owner["status"][field].as_u64());
        each.map(Option::unwrap_or_default).sum()
    };
    for field in [
        "replicas",
        "readyReplicas",
        "availableReplicas",
        "upToDateReplicas",
    ] {
        let found = sum(field);
        ensure!(found == desired as u64, "{field} is {found} of {desired}");
    }
    for owner in owners {
        let (seen, last) = (
            &owner["status"]["observedGeneration"],
            &owner["metadata"]["generation"],
        );
        ensure!(seen == last, "generation {last} has not been seen yet");
    }
    Ok(())
}
