//! A cluster of stock Cluster API through its life: the same steps for a plain one and for one of a `ClusterClass`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::client::{ApiClient, Patch, Resource};
use crate::cluster::{CONTROL_PLANES, Cluster, MACHINE_DEPLOYMENTS, Machine, Shape};
use crate::fixtures;
use crate::progress::Progress;
use crate::wait;

/// Generous: a busy machine is no failure.
const WITHIN: Duration = Duration::from_mins(4);
const NEW_VERSION: &str = "v1.34.1";
const SECRETS: Resource<'_> = Resource::new("v1", "secrets");

/// Who decides on the machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The user, on `MachineDeployment` and `KubeadmControlPlane`.
    Plain,
    /// The topology controller, by what the Cluster says.
    Managed,
}

/// A cluster, and the way to request changes.
#[derive(Debug)]
pub struct Life {
    cluster: Cluster,
    kind: Kind,
    progress: Progress,
}

impl Life {
    /// A cluster whose parts are written out.
    pub fn plain(cluster: Cluster, progress: &Progress) -> Self {
        Self {
            cluster,
            kind: Kind::Plain,
            progress: progress.clone(),
        }
    }

    /// A cluster of a `ClusterClass`.
    pub fn managed(cluster: Cluster, progress: &Progress) -> Self {
        Self {
            cluster,
            kind: Kind::Managed,
            progress: progress.clone(),
        }
    }

    /// Waits for the first machines: one of the control plane, three workers.
    pub async fn comes_up(&self) -> Result<()> {
        self.settles(1, 3).await?;
        Ok(())
    }

    /// Scales, rolls out, and replaces a broken node.
    pub async fn run_lifecycle(&self) -> Result<()> {
        let step = |what: &str| {
            self.progress
                .step(format!("cluster {}: {what}", self.cluster.name))
        };
        let scaling = step("5 workers, then 2");
        self.scales().await?;
        scaling.done();
        let rollout = step("rollouts of workers and control plane");
        self.rolls_out().await?;
        rollout.done();
        let repair = step("a broken node is replaced");
        self.replaces_a_broken_node().await?;
        repair.done();
        Ok(())
    }

    /// Scales up, and down again.
    async fn scales(&self) -> Result<()> {
        for workers in [5, 2] {
            self.scale(1, workers).await?;
        }
        Ok(())
    }

    /// Requests so many workers, and waits until they exist besides the control plane, and no others.
    pub async fn scale(&self, control_plane: usize, workers: usize) -> Result<()> {
        self.set_workers(workers).await?;
        self.settles(control_plane, workers).await?;
        Ok(())
    }

    /// Replaces all workers and grows the control plane to three, then replaces the control plane.
    async fn rolls_out(&self) -> Result<()> {
        let before = self.cluster.machines().await?;
        match self.kind {
            Kind::Plain => {
                self.point_to_second_template().await?;
                self.set_control_plane(&json!({ "replicas": 3 })).await?;
                let grown = self.settles(3, 2).await?;
                self.set_control_plane(&json!({ "version": NEW_VERSION }))
                    .await?;
                let rolled = self.rolled(3, 2).await?;
                let kept = survivors(&grown, &rolled, true);
                ensure!(
                    kept.is_empty(),
                    "control plane machines were not replaced: {kept:?}"
                );
            }
            Kind::Managed => {
                self.set_topology(&json!({
                    "version": NEW_VERSION,
                    "controlPlane": { "replicas": 3 },
                }))
                .await?;
                self.rolled(3, 2).await?;
            }
        }
        let after = self.settles(3, 2).await?;
        let kept = survivors(&before, &after, false);
        ensure!(kept.is_empty(), "workers were not replaced: {kept:?}");
        Ok(())
    }

    /// Breaks a worker's node inside the cluster and waits until the health check has had it replaced.
    async fn replaces_a_broken_node(&self) -> Result<()> {
        if self.kind == Kind::Plain {
            let values = [
                ("NAMESPACE", self.cluster.namespace.as_str()),
                ("NAME", self.cluster.name.as_str()),
            ];
            let check = fixtures::render("health-check", &values)?;
            self.cluster.client().apply(&check).await?;
        }
        let machines = self.cluster.machines().await?;
        let broken = machines
            .iter()
            .find(|machine| !machine.control_plane)
            .context("there is no worker to break")?;
        self.break_node(&broken.node).await?;
        let what = format!("machine {} to be replaced", broken.name);
        wait::until(&what, WITHIN, async || {
            let machines = self.cluster.machines().await?;
            ensure!(
                machines.iter().all(|machine| machine.uid != broken.uid),
                "it is still there"
            );
            Ok(())
        })
        .await?;
        self.settles(3, 2).await?;
        Ok(())
    }

    /// Deletes the cluster and waits until nothing of it is left.
    pub async fn ends(&self) -> Result<()> {
        self.cluster.delete().await?;
        self.cluster.gone(WITHIN).await
    }

    async fn settles(&self, control_plane: usize, workers: usize) -> Result<Vec<Machine>> {
        let shape = Shape {
            control_plane,
            workers,
        };
        self.cluster.settled(shape, WITHIN).await
    }

    /// Waits until the control plane (and, where the topology says so, each worker) has the new version.
    async fn rolled(&self, control_plane: usize, workers: usize) -> Result<Vec<Machine>> {
        let what = format!(
            "cluster {} to have version {NEW_VERSION}",
            self.cluster.name
        );
        wait::until(&what, WITHIN, async || {
            let machines = self.cluster.machines().await?;
            let concerned = |m: &&Machine| m.control_plane || self.kind == Kind::Managed;
            let old: Vec<_> = machines
                .iter()
                .filter(concerned)
                .filter(|machine| machine.version != NEW_VERSION)
                .map(|machine| machine.name.as_str())
                .collect();
            ensure!(old.is_empty(), "{old:?} have the old one");
            Ok(())
        })
        .await?;
        self.settles(control_plane, workers).await
    }

    async fn set_workers(&self, workers: usize) -> Result<()> {
        match self.kind {
            Kind::Plain => {
                let name = format!("{}-workers", self.cluster.name);
                self.cluster.scale_workers(&name, workers).await
            }
            Kind::Managed => {
                let workers =
                    json!([{ "class": "workers", "name": "workers", "replicas": workers }]);
                self.set_topology(&json!({ "workers": { "machineDeployments": workers } }))
                    .await
            }
        }
    }

    async fn set_topology(&self, topology: &Value) -> Result<()> {
        let patch = json!({ "spec": { "topology": topology } });
        self.cluster.patch(&patch).await
    }

    async fn set_control_plane(&self, spec: &Value) -> Result<()> {
        let patch = json!({ "spec": spec });
        self.cluster
            .patch_part(&CONTROL_PLANES, &self.cluster.name, &patch)
            .await
    }

    /// Gives the workers another machine template: a rollout by nothing but a reference.
    async fn point_to_second_template(&self) -> Result<()> {
        let (namespace, name) = (&self.cluster.namespace, &self.cluster.name);
        let values = [("NAMESPACE", namespace.as_str()), ("NAME", name.as_str())];
        let template = fixtures::render("second-template", &values)?;
        self.cluster.client().apply(&template).await?;
        let reference = json!({ "infrastructureRef": { "name": format!("{name}-second") } });
        let patch = json!({ "spec": { "template": { "spec": reference } } });
        self.cluster
            .patch_part(&MACHINE_DEPLOYMENTS, &format!("{name}-workers"), &patch)
            .await
    }

    /// The cluster's own API server, with the kubeconfig that its users are given.
    async fn inside(&self) -> Result<ApiClient> {
        let name = format!("{}-kubeconfig", self.cluster.name);
        let path = SECRETS.named(&self.cluster.namespace, &name);
        let kubeconfig = self.cluster.client().secret_value(&path, "value").await?;
        ApiClient::from_text(&String::from_utf8_lossy(&kubeconfig)).await
    }

    /// The UIDs of its nodes, by name.
    pub async fn nodes(&self) -> Result<BTreeMap<String, String>> {
        let nodes = self.inside().await?.list("/api/v1/nodes").await?;
        let text = |node: &Value, field: &str| {
            let text = node["metadata"][field].as_str();
            text.unwrap_or_default().to_owned()
        };
        let each = nodes
            .iter()
            .map(|node| (text(node, "name"), text(node, "uid")));
        Ok(each.collect())
    }

    /// Sets a condition on a node of the cluster itself.
    async fn break_node(&self, node: &str) -> Result<()> {
        let inside = self.inside().await?;
        let path = format!("/api/v1/nodes/{node}");
        let mut conditions = inside.get(&path).await?["status"]["conditions"].take();
        let broken = json!({
            "type": "Broken",
            "status": "True",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        match conditions.as_array_mut() {
            Some(conditions) => conditions.push(broken),
            None => conditions = json!([broken]),
        }
        let change = json!({ "status": { "conditions": conditions } });
        inside.patch(&path, Patch::Merge, &change).await?;
        Ok(())
    }
}

/// The names of machines of one role that are in both lists.
fn survivors(before: &[Machine], after: &[Machine], control_plane: bool) -> BTreeSet<String> {
    let names = |machines: &[Machine]| -> BTreeSet<String> {
        let each = machines.iter().filter(|m| m.control_plane == control_plane);
        each.map(|machine| machine.name.clone()).collect()
    };
    names(before).intersection(&names(after)).cloned().collect()
}
