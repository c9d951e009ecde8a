//! Testbed of level node: the control plane, and nodes that run pods from images of this tree.
//!
//! ```no_run
//! # async fn example() -> anyhow::Result<()> {
//! use testbed::images::Image;
//! use testbed::node::NodeTestbed;
//!
//! let testbed = NodeTestbed::builder("example").nodes(2).images(&[Image::CapiProxy]).start().await?;
//! let image = testbed.image(Image::CapiProxy)?;
//! let nodes = testbed.admin.list("/api/v1/nodes").await?;
//! # Ok(())
//! # }
//! ```
//!
//! Everything runs in one set of Linux namespaces and is reached from outside by its own addresses; see
//! [`crate::namespaces`]. It needs root.

mod config;
mod contents;
mod loss;
mod machine;
pub mod packages;
mod patience;
mod support;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::binaries::{Binaries, Binary};
use crate::client::{ApiClient, Resource};
use crate::conditions;
use crate::control_plane::{ControlPlane, Endpoint, KUBELET_CLIENT};
use crate::fixtures;
use crate::guest::Programs;
use crate::images::{Image, StaticProgram, build_static};
use crate::kubeconfig::{Credentials, write_kubeconfig};
use crate::namespaces::{self, MOST_NODES, Namespaces};
use crate::process::{self, Launch};
use crate::progress::Progress;
use crate::registry::{self, Registry};
use crate::service::{Service, secure_health};
use crate::site::Site;
use crate::wait;
use crate::work_dir::{self, WorkDir};

use contents::{Built, Pushed};
use machine::Fixture;
pub use machine::{Node, ZONE};
use packages::Tools;
pub use patience::Patience;
pub use support::{Unsupported, supported};

/// How long nodes may take to be ready, and the name service after them.
const READY_WITHIN: Duration = Duration::from_mins(2);
/// How much of each log a failed test shows.
const TAIL_LINES: usize = 12;

/// What a testbed is to have.
#[derive(Debug)]
pub struct Builder {
    name: String,
    nodes: u8,
    images: Vec<Image>,
    patience: Option<Patience>,
    progress: Progress,
}

/// A running testbed with nodes. Everything in it ends when it is dropped.
#[derive(Debug)]
pub struct NodeTestbed {
    // First, because its end is the end of all the others.
    namespaces: Namespaces,
    /// The nodes.
    pub nodes: Vec<Node>,
    /// Decides which node a pod runs on.
    pub scheduler: Service,
    /// Where images are pulled from.
    pub registry: Registry,
    /// etcd, API server, controller manager.
    pub control_plane: ControlPlane,
    /// The administrator's client.
    pub admin: ApiClient,
    /// The progress output.
    pub progress: Progress,
    images: HashMap<Image, String>,
    machine: Programs,
    kubectl: PathBuf,
    work_dir: Arc<WorkDir>,
}

// === impl Builder ===

impl Builder {
    /// How many nodes it has: one, unless this says otherwise.
    #[must_use]
    pub fn nodes(mut self, nodes: u8) -> Self {
        self.nodes = nodes;
        self
    }

    /// Which of our images are built and pushed.
    #[must_use]
    pub fn images(mut self, images: &[Image]) -> Self {
        self.images = images.to_vec();
        self
    }

    /// How soon a node that says nothing is given up.
    #[must_use]
    pub fn patience(mut self, patience: Patience) -> Self {
        self.patience = Some(patience);
        self
    }

    /// Its progress output.
    #[must_use]
    pub fn progress(mut self, progress: &Progress) -> Self {
        self.progress = progress.clone();
        self
    }

    /// Builds what is missing, starts everything, and waits until pods can run and find each other by name.
    pub async fn start(self) -> Result<NodeTestbed> {
        supported()?;
        ensure!(
            (1..=MOST_NODES).contains(&self.nodes),
            "a testbed has between 1 and {MOST_NODES} nodes, not {}",
            self.nodes
        );
        let work_dir = Arc::new(WorkDir::open(&self.name)?);
        let tools = packages::ensure(&self.progress).await?;
        let binaries = Binaries::ensure(&Binary::LEVEL_NODE, &self.progress).await?;
        let machine = programs(&binaries, &tools)?;
        // Images take longest when nothing is built yet; the control plane does not need them.
        let images = Built::new(&self.images, &binaries, &self.progress);
        let cluster = self.start_control_plane(&binaries, machine, work_dir);
        let (built, mut testbed) = tokio::try_join!(images, cluster)?;
        let step = self
            .progress
            .step(format!("starting {}", counted(self.nodes)));
        let pushed = built.push(&testbed.registry).await?;
        testbed.images.clone_from(&pushed.ours);
        testbed
            .start_nodes(&self, &binaries, &tools, &pushed)
            .await?;
        step.done();
        Ok(testbed)
    }

    async fn start_control_plane(
        &self,
        binaries: &Binaries,
        machine: Programs,
        work_dir: Arc<WorkDir>,
    ) -> Result<NodeTestbed> {
        let step = self
            .progress
            .step("starting the control plane and the registry");
        let mut testbed = NodeTestbed::prepare(self, binaries, machine, work_dir).await?;
        testbed.start_control_plane().await?;
        step.done();
        Ok(testbed)
    }
}

fn counted(nodes: u8) -> String {
    match nodes {
        1 => "a node".to_owned(),
        more => format!("{more} nodes"),
    }
}

// === impl NodeTestbed ===

impl NodeTestbed {
    /// Describes the testbed called `name`.
    pub fn builder(name: &str) -> Builder {
        Builder {
            name: name.to_owned(),
            nodes: 1,
            images: Vec::new(),
            patience: None,
            progress: Progress::detect(),
        }
    }

    /// The reference of one of our images, for pods.
    pub fn image(&self, image: Image) -> Result<&str> {
        let reference = self.images.get(&image).map(String::as_str);
        reference.with_context(|| {
            format!(
                "the testbed was started without the image {}: add it in the builder",
                image.name()
            )
        })
    }

    /// The image of the testbed's own program `resolve`, which looks up a name in its pod.
    pub fn resolve_image(&self) -> String {
        Registry::reference(contents::RESOLVE)
    }

    /// The image of the process that a pod's network belongs to.
    pub fn pause_image(&self) -> String {
        Registry::reference(contents::PAUSE)
    }

    /// The image of the name service.
    pub fn name_service_image(&self) -> String {
        Registry::reference(contents::COREDNS)
    }

    /// What machines of a fake cloud have of programs, `ignite` among them.
    pub(crate) async fn machine_programs(&self) -> Result<Programs> {
        let (package, name) = ("pod-tools", "ignite");
        let ignite = build_static(&StaticProgram { package, name }, &self.progress).await?;
        Ok(Programs {
            ignite,
            ..self.machine.clone()
        })
    }

    /// The namespaces in which everything runs.
    pub fn namespaces(&self) -> &Namespaces {
        &self.namespaces
    }

    /// The testbed's directory.
    pub fn path(&self) -> &Path {
        self.work_dir.path()
    }

    /// The testbed's directory, for what is run beside it.
    pub fn work_dir(&self) -> &Arc<WorkDir> {
        &self.work_dir
    }

    /// The kubectl that fits.
    pub fn kubectl(&self) -> &Path {
        &self.kubectl
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        self.control_plane.admin_kubeconfig()
    }

    /// Runs kubectl as the administrator; gives what it prints.
    pub async fn kubectl_says<A: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = A>,
    ) -> Result<String> {
        let mut command = tokio::process::Command::new(&self.kubectl);
        command.arg("--kubeconfig").arg(self.kubeconfig());
        let output = command.args(args).kill_on_drop(true).output().await?;
        ensure!(
            output.status.success(),
            "{command:?} failed ({}): {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Ends the testbed. If `outcome` is an error, shows the ends of the logs and leaves the directory.
    pub fn finish<T>(self, outcome: Result<T>) -> Result<T> {
        if outcome.is_err() {
            self.explain();
        }
        outcome
    }

    /// Leaves the directory, with its logs, when the testbed ends.
    pub fn keep(&self) {
        self.work_dir.keep();
    }

    fn explain(&self) {
        self.keep();
        let logs = std::fs::read_dir(self.path().join("logs"));
        for log in logs
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
        {
            if log.ends_with("audit.log") {
                continue;
            }
            self.progress.note(&format!(
                "--- the end of {}\n{}",
                log.display(),
                process::tail(&log, TAIL_LINES)
            ));
        }
    }

    /// Creates the namespaces, and prepares what runs in them beside the nodes.
    async fn prepare(
        builder: &Builder,
        binaries: &Binaries,
        machine: Programs,
        work_dir: Arc<WorkDir>,
    ) -> Result<Self> {
        let namespaces = Namespaces::start(&work_dir)?;
        let site = Site::Namespaces(&namespaces);
        let mut control_plane = ControlPlane::new(binaries, site, &work_dir)?;
        if let Some(patience) = builder.patience {
            patience.apply_to(&mut control_plane);
        }
        Ok(Self {
            scheduler: scheduler(binaries, site, &control_plane, &work_dir)?,
            registry: Registry::new(binaries.path(Binary::Registry)?, site, &work_dir)?,
            admin: control_plane.admin().await?,
            nodes: Vec::new(),
            progress: builder.progress.clone(),
            images: HashMap::new(),
            machine,
            kubectl: binaries.path(Binary::Kubectl)?.to_owned(),
            control_plane,
            namespaces,
            work_dir,
        })
    }

    async fn start_control_plane(&mut self) -> Result<()> {
        tokio::try_join!(self.control_plane.start(), self.registry.service.start())?;
        self.control_plane.controller_manager.spawn()?;
        self.scheduler.spawn()
    }

    async fn start_nodes(
        &mut self,
        builder: &Builder,
        binaries: &Binaries,
        tools: &Tools,
        pushed: &Pushed,
    ) -> Result<()> {
        let fixture = Fixture {
            work_dir: &self.work_dir,
            namespaces: &self.namespaces,
            binaries,
            tools,
            authority: &self.control_plane.authority,
            endpoint: &self.control_plane.endpoint(),
            registry: self.registry.address(),
            pause: &pushed.pause,
            patience: builder.patience,
        };
        for number in 1..=builder.nodes {
            self.nodes.push(Node::new(number, &fixture)?);
        }
        let objects = fixtures::render(
            "node/cluster",
            &[
                ("KUBELET_CLIENT", KUBELET_CLIENT),
                ("COREDNS_IMAGE", &pushed.name_service),
                // Names are to be found when a node is lost.
                ("COREDNS_REPLICAS", &builder.nodes.min(2).to_string()),
                (
                    "NAME_SERVICE",
                    &self.namespaces.subnets().name_service().to_string(),
                ),
                ("REGISTRY", registry::HOST),
                (
                    "REGISTRY_ADDRESS",
                    &self.registry.address().ip().to_string(),
                ),
                ("ROUTER", &self.namespaces.subnets().router().to_string()),
            ],
        )?;
        // Each waits for something else, so that all start at once.
        for node in &mut self.nodes {
            node.runtime.spawn()?;
        }
        tokio::try_join!(
            self.admin.apply(&objects),
            self.control_plane.controller_manager.ready(),
            self.scheduler.ready(),
        )?;
        for node in &mut self.nodes {
            node.runtime.ready().await?;
            node.kubelet.spawn()?;
            node.proxy.spawn()?;
        }
        for node in &mut self.nodes {
            tokio::try_join!(node.kubelet.ready(), node.proxy.ready())?;
        }
        self.ready().await
    }

    /// Waits until each node takes pods, and names are resolved.
    async fn ready(&self) -> Result<()> {
        for node in &self.nodes {
            let path = format!("/api/v1/nodes/{}", node.name);
            let what = format!("{} to be ready", node.name);
            wait::until(&what, READY_WITHIN, async || {
                condition(&self.admin.get(&path).await?, "Ready")
            })
            .await?;
        }
        let path = Resource::new("apps/v1", "deployments").named("kube-system", "coredns");
        wait::until(
            "the name service to be available",
            READY_WITHIN,
            async || condition(&self.admin.get(&path).await?, "Available"),
        )
        .await?;
        let name_service = (self.namespaces.subnets().name_service(), 53).into();
        for node in &self.nodes {
            let what = format!("the name service's Service on {}", node.name);
            wait::until(&what, READY_WITHIN, async || node.reaches(name_service)).await?;
        }
        Ok(())
    }
}

/// Installs what nodes need on the machine, so that a start does not fail because of a missing package.
pub async fn furnish(progress: &Progress) -> Result<()> {
    packages::ensure(progress).await.map(drop)
}

/// Removes what a killed testbed called `name`, or any other that was killed, left on the machine; gives what there was.
pub fn clean_up(name: &str) -> Result<Vec<PathBuf>> {
    supported()?;
    let directory = work_dir::directory_of(name);
    let mut left: Vec<_> = [directory]
        .into_iter()
        .filter(|path| path.exists())
        .collect();
    // Taking the directory ends what is recorded in it, and giving it up removes it.
    drop(WorkDir::open(name)?);
    left.extend(namespaces::sweep()?);
    Ok(left)
}

/// That an object has a condition; else why not.
pub fn condition(object: &serde_json::Value, kind: &str) -> Result<()> {
    match conditions::find(object, kind) {
        Some(condition) if condition["status"] == "True" => Ok(()),
        Some(condition) => wait::not_yet(format!(
            "{kind} is {}: {}",
            condition["status"], condition["message"]
        )),
        None => wait::not_yet(format!("there is no condition {kind} yet")),
    }
}

/// What a machine of a fake cloud is given. The program that carries out user data is built only when there is a cloud.
fn programs(binaries: &Binaries, tools: &Tools) -> Result<Programs> {
    let path = |binary: Binary| binaries.path(binary).map(Path::to_owned);
    Ok(Programs {
        containerd: path(Binary::Containerd)?,
        shim: path(Binary::ContainerdShim)?,
        kubelet: path(Binary::Kubelet)?,
        kube_proxy: path(Binary::KubeProxy)?,
        ignite: PathBuf::new(),
        runc: tools.runc.clone(),
        cni: tools.cni.clone(),
    })
}

fn scheduler(
    binaries: &Binaries,
    site: Site<'_>,
    control_plane: &ControlPlane,
    work_dir: &Arc<WorkDir>,
) -> Result<Service> {
    let Endpoint { server, authority } = control_plane.endpoint();
    let name = "kube-scheduler";
    let address = site.address(10259)?;
    let own = &control_plane.authority;
    let client = own.client(name, "system:kube-scheduler", None)?;
    let serving = own.server_at("kube-scheduler-serving", &[address.ip().to_string()])?;
    let kubeconfig = work_dir.join("kube-scheduler.kubeconfig");
    let credentials = Credentials::Certificate(&client);
    write_kubeconfig(&kubeconfig, &server, Some(&authority), credentials)?;
    let launch = Launch::new(name, binaries.path(Binary::KubeScheduler)?)
        .path_flag("kubeconfig", &kubeconfig)
        .path_flag("authentication-kubeconfig", &kubeconfig)
        .path_flag("authorization-kubeconfig", &kubeconfig)
        .flag("bind-address", address.ip())
        .flag("secure-port", address.port())
        .path_flag("tls-cert-file", &serving.certificate)
        .path_flag("tls-private-key-file", &serving.key)
        .flag("leader-elect", false)
        .flag("profiling", false);
    let health = secure_health(address, &authority, "/healthz")?;
    Ok(Service::new(site.place(launch), work_dir, health))
}
