//! A replacement of KubeVirt and of its importer on a testbed, as far as their clients see them.
//!
//! Platform KubeVirt needs two operators besides Cluster API, which are not available here. This module has their kinds
//! and does what they would do: it has volumes filled, virtual machines started and ended, and reports all of it in
//! their status.
//!
//! ```text
//! provider: VirtualMachine ──> its DataVolumes ──> filled ──> its VirtualMachineInstance ──> its pod, which runs ──> machine
//!           <── ready, live-migratable, address  <────────────────────────────────────────── address
//! provider: VirtualMachine deleted ──> its VirtualMachineInstance, its pod, its machine and its DataVolumes are gone
//! ```
//!
//! On a testbed with nodes, a machine is real as far as machines of a testbed are ([`crate::guest`]): it has the network
//! and the address of its pod, so that NetworkPolicies that select the pod concern it. Without nodes there are objects
//! only: no pod, and an address that leads nowhere.

mod external;
mod images;
mod importer;
pub mod kinds;
mod machines;
mod plan;
mod subresources;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::client::{ApiClient, Patch, Resource, status_code};
use crate::crds;
use crate::node::NodeTestbed;
use images::Imports;
use importer::Importer;
use machines::Machines;
use plan::{Objects, Pods, Step};

pub use external::ExternalInfra;
pub use images::provider as provider_image;

/// Virtual machines, as their owners describe them.
pub const MACHINES: Resource<'_> = Resource::new("kubevirt.io/v1", "virtualmachines");
/// Virtual machines that run.
pub const INSTANCES: Resource<'_> = Resource::new("kubevirt.io/v1", "virtualmachineinstances");
/// Volumes that are filled from an image.
pub const DATA_VOLUMES: Resource<'_> = Resource::new("cdi.kubevirt.io/v1beta1", "datavolumes");
/// The node that a virtual machine is evicted from.
const EVACUATED: &str = "infra-node";
/// Pods.
const PODS: Resource<'_> = Resource::new("v1", "pods");
/// How often the objects are read.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The stand-in, at work. Dropped, its machines are gone.
#[derive(Debug)]
pub struct VirtualMachines {
    stand_in: Arc<StandIn>,
    watcher: JoinHandle<()>,
}

#[derive(Debug)]
struct StandIn {
    admin: ApiClient,
    imports: Imports,
    real: Option<Real>,
    /// The namespaces in which no machine boots.
    held: Mutex<BTreeSet<String>>,
}

/// What there is on a testbed with nodes.
#[derive(Debug)]
struct Real {
    machines: Machines,
    importer: Importer,
    /// The image of the pods.
    pause: String,
    /// An image that disks can be filled from.
    disk: String,
    /// The image of a program that serves TLS.
    extension: String,
}

// === impl VirtualMachines ===

impl VirtualMachines {
    /// Installs the kinds, and starts to act on their objects in all namespaces. There are no machines.
    pub async fn start(admin: &ApiClient) -> Result<Self> {
        crds::install(admin, &kinds::definitions()).await?;
        Ok(Self::watching(admin, None))
    }

    /// The same with machines, and with the API that reports the version. Nodes get the networks of their pods in their
    /// spec, as other clusters have them there: it is where the operator reads what machines may not reach.
    pub async fn start_on(testbed: &NodeTestbed) -> Result<Self> {
        let admin = &testbed.admin;
        crds::install(admin, &kinds::definitions()).await?;
        let extension = subresources::install(testbed).await?;
        declare_pod_networks(testbed).await?;
        let real = Real {
            machines: Machines::new(testbed).await?,
            importer: Importer::new(&testbed.registry)?,
            pause: testbed.pause_image(),
            disk: images::disk(testbed).await?,
            extension,
        };
        Ok(Self::watching(admin, Some(real)))
    }

    fn watching(admin: &ApiClient, real: Option<Real>) -> Self {
        let stand_in = Arc::new(StandIn {
            admin: admin.clone(),
            imports: Imports::default(),
            real,
            held: Mutex::default(),
        });
        Self {
            watcher: tokio::spawn(watch(Arc::clone(&stand_in))),
            stand_in,
        }
    }

    /// How often volumes were filled from each image, by its URL. A clone of a volume is not counted.
    pub fn imports(&self) -> BTreeMap<String, usize> {
        self.stand_in.imports.by_image()
    }

    /// The image that disks of machines can be filled from: its content does not matter.
    pub fn disk(&self) -> Result<&str> {
        Ok(&self.real()?.disk)
    }

    /// The image of the aggregated API's program, `extension CERTIFICATE KEY PORT`, for any cluster.
    pub fn extension(&self) -> Result<&str> {
        Ok(&self.real()?.extension)
    }

    /// From now on no machine boots in a namespace: its virtual machines have pods and a status only.
    pub fn hold(&self, namespace: &str) {
        self.stand_in.held().insert(namespace.to_owned());
    }

    /// Machines boot there again.
    pub fn resume(&self, namespace: &str) {
        self.stand_in.held().remove(namespace);
    }

    /// The names of the machines that run in a namespace.
    pub fn running(&self, namespace: &str) -> Result<Vec<String>> {
        Ok(self.real()?.machines.running(namespace))
    }

    /// Kills a machine. Its instance does not notice, as if the machine had crashed.
    pub fn kill(&self, namespace: &str, name: &str) -> Result<()> {
        self.real()?.machines.kill(namespace, name);
        Ok(())
    }

    /// The output of the machines, for diagnosis.
    pub fn said(&self) -> String {
        let real = self.stand_in.real.as_ref();
        real.map(|real| real.machines.said()).unwrap_or_default()
    }

    fn real(&self) -> Result<&Real> {
        let real = self.stand_in.real.as_ref();
        real.context("there are no machines on a testbed without nodes")
    }
}

impl Drop for VirtualMachines {
    fn drop(&mut self) {
        self.watcher.abort();
    }
}

/// Reports that the node of a virtual machine is being drained, as KubeVirt does where an eviction is left to others.
pub async fn evict(admin: &ApiClient, namespace: &str, name: &str) -> Result<()> {
    let path = format!("{}/status", INSTANCES.named(namespace, name));
    let status = json!({ "status": { "evacuationNodeName": EVACUATED } });
    admin.patch(&path, Patch::Merge, &status).await.map(drop)
}

/// Writes the networks of pods to the nodes.
async fn declare_pod_networks(testbed: &NodeTestbed) -> Result<()> {
    let subnets = testbed.namespaces().subnets();
    for (number, node) in (1..).zip(&testbed.nodes) {
        let pods = subnets.pods_of(number);
        let change = json!({ "spec": { "podCIDR": pods, "podCIDRs": [pods] } });
        let path = format!("/api/v1/nodes/{}", node.name);
        testbed.admin.patch(&path, Patch::Merge, &change).await?;
    }
    Ok(())
}

async fn watch(stand_in: Arc<StandIn>) {
    loop {
        if let Err(error) = stand_in.look().await {
            eprintln!("the stand-in for KubeVirt: {error:#}");
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

// === impl StandIn ===

impl StandIn {
    async fn look(&self) -> Result<()> {
        let objects = self.read().await?;
        // What fails is tried again; others do not wait for it.
        let mut outcome = Ok(());
        for step in plan::steps(&objects) {
            outcome = outcome.and(self.attempt(&step).await);
        }
        let Some(Real { machines, .. }) = &self.real else {
            return outcome;
        };
        let wanted = plan::machines(&objects);
        machines.end_others(&wanted, |uid| is_among(&objects.machines, uid));
        let held = self.held().clone();
        for machine in wanted.iter().filter(|one| !held.contains(&one.namespace)) {
            outcome = outcome.and(machines.start(&self.admin, machine).await);
        }
        outcome
    }

    fn held(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.held
            .lock()
            .expect("invariant: no thread panics while holding it")
    }

    async fn read(&self) -> Result<Objects> {
        let admin = &self.admin;
        let mut objects = Objects {
            machines: admin.list(&MACHINES.all()).await?,
            instances: admin.list(&INSTANCES.all()).await?,
            volumes: admin.list(&DATA_VOLUMES.all()).await?,
            pods: None,
        };
        if let Some(real) = &self.real {
            // After the instances: one that has run has a pod among them, unless it has lost it.
            objects.pods = Some(Pods {
                all: admin.list(&PODS.all()).await?,
                image: real.pause.clone(),
            });
        }
        Ok(objects)
    }

    async fn attempt(&self, step: &Step) -> Result<()> {
        match self.carry_out(step).await {
            // It has been created or deleted since it was read: the next look starts from what is there.
            Err(error) if matches!(status_code(&error), Some(404 | 409)) => Ok(()),
            outcome => outcome,
        }
    }

    async fn carry_out(&self, step: &Step) -> Result<()> {
        let admin = &self.admin;
        match step {
            Step::Create { path, object } => admin.create(path, object).await.map(drop),
            Step::WriteStatus {
                path,
                status,
                imported,
            } => {
                if let (Some(image), Some(real)) = (imported, &self.real) {
                    real.importer.import(image).await?;
                }
                let change = json!({ "status": status });
                let path = format!("{path}/status");
                admin.patch(&path, Patch::Merge, &change).await?;
                if let Some(image) = imported {
                    self.imports.add(image);
                }
                Ok(())
            }
            Step::Delete { path } => admin.delete(path).await,
        }
    }
}

fn is_among(objects: &[Value], uid: &str) -> bool {
    objects.iter().any(|one| one["metadata"]["uid"] == uid)
}
