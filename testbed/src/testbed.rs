//! The whole testbed: a control plane, and as many Cluster APIs as a test needs.
//!
//! ```no_run
//! # async fn example() -> anyhow::Result<()> {
//! use testbed::cluster_api::Plan;
//! use testbed::testbed::Testbed;
//!
//! let mut testbed = Testbed::start("example", testbed::progress::Progress::detect()).await?;
//! testbed.add(&Plan::hosted("clusters-one")).await?;
//! testbed.start_controller_manager().await?;
//! let machines = testbed.standard_view().await?.list("/apis/cluster.x-k8s.io/v1beta2/machines").await?;
//! # Ok(())
//! # }
//! ```

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use api::group::CapiTypes;
use serde_json::json;

use crate::binaries::{Binaries, Binary};
use crate::client::ApiClient;
use crate::cluster_api::lasting::LastingProvider;
use crate::cluster_api::{ClusterApi, Fixture, Plan};
use crate::control_plane::{ControlPlane, Endpoint};
use crate::crds;
use crate::kubeconfig::{Credentials, write_kubeconfig};
use crate::managers::Manager;
use crate::process;
use crate::progress::Progress;
use crate::proxy::{self, Upstream};
use crate::service_account::ServiceAccount;
use crate::site::Site;
use crate::view::View;
use crate::work_dir::WorkDir;

/// How much of each log a failed test shows.
const TAIL_LINES: usize = 12;

/// A running testbed. Everything in it ends when it is dropped.
#[derive(Debug)]
pub struct Testbed {
    // In the order in which they are to end.
    cluster_apis: Vec<ClusterApi>,
    user: Option<View>,
    /// etcd, API server, controller manager.
    pub control_plane: ControlPlane,
    /// The administrator's client, straight to the API server.
    pub admin: ApiClient,
    /// The progress output.
    pub progress: Progress,
    proxy_program: Option<PathBuf>,
    installed: Vec<CapiTypes>,
    work_dir: Arc<WorkDir>,
}

// === impl Testbed ===

impl Testbed {
    /// Starts etcd and the API server; builds them first when that was never done.
    pub async fn start(name: &str, progress: Progress) -> Result<Self> {
        let work_dir = Arc::new(WorkDir::open(name)?);
        let binaries = Binaries::ensure(&Binary::CONTROL_PLANE, &progress).await?;
        let mut control_plane = ControlPlane::new(&binaries, Site::Loopback, &work_dir)?;
        let step = progress.step("starting etcd and kube-apiserver");
        control_plane.start().await?;
        step.done();
        let admin = control_plane.admin().await?;
        Ok(Self {
            cluster_apis: Vec::new(),
            user: None,
            control_plane,
            admin,
            progress,
            proxy_program: None,
            installed: Vec::new(),
            work_dir,
        })
    }

    /// Has proxies run this program, instead of having it built when the first one is needed.
    pub fn use_proxy(&mut self, program: PathBuf) {
        self.proxy_program = Some(program);
    }

    /// The testbed's directory.
    pub fn path(&self) -> &Path {
        self.work_dir.path()
    }

    /// Makes a user, in a group if one is named, and gives the kubeconfig.
    pub fn kubeconfig_of(&self, user: &str, group: Option<&str>) -> Result<PathBuf> {
        let certificate = self.control_plane.authority.client(user, user, group)?;
        let endpoint = self.control_plane.endpoint();
        let path = self.path().join(format!("{user}.kubeconfig"));
        write_kubeconfig(
            &path,
            &endpoint.server,
            Some(&endpoint.authority),
            Credentials::Certificate(&certificate),
        )?;
        Ok(path)
    }

    /// Makes a service account that may do everything; gives it with its kubeconfig.
    pub async fn superuser(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<(ServiceAccount, PathBuf)> {
        let account = ServiceAccount::create(&self.admin, &self.work_dir, namespace, name).await?;
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": { "name": name },
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "cluster-admin",
            },
            "subjects": [{ "kind": "ServiceAccount", "namespace": namespace, "name": name }],
        });
        self.admin.apply(&[binding]).await?;
        let path = self.path().join(format!("{name}.kubeconfig"));
        let endpoint = self.control_plane.endpoint();
        write_kubeconfig(
            &path,
            &endpoint.server,
            Some(&endpoint.authority),
            Credentials::TokenFile(account.token_file()),
        )?;
        Ok((account, path))
    }

    /// The testbed's directory, for what a test runs in it.
    pub fn work_dir(&self) -> &Arc<WorkDir> {
        &self.work_dir
    }

    /// Leaves the directory, with its logs, when the testbed ends.
    pub fn keep(&self) {
        self.work_dir.keep();
    }

    /// Records that the test has installed the CRDs of these types.
    pub fn has_crds(&mut self, capi_types: CapiTypes) {
        self.installed.push(capi_types);
    }

    /// Starts kube-controller-manager, which is best done once the CRDs are installed.
    pub async fn start_controller_manager(&mut self) -> Result<()> {
        let step = self.progress.step("starting kube-controller-manager");
        self.control_plane.controller_manager.start().await?;
        step.done();
        Ok(())
    }

    /// Installs Cluster API's CRDs of given types, unless they exist.
    pub async fn install_crds(&mut self, capi_types: CapiTypes) -> Result<()> {
        if self.installed.contains(&capi_types) {
            return Ok(());
        }
        let which = match capi_types {
            CapiTypes::Standard => "standard",
            CapiTypes::Private => "private",
        };
        let step = self.progress.step(format!("installing {which} CRDs"));
        let crds = crds::cluster_api(capi_types).await?;
        crds::install(&self.admin, &crds).await?;
        self.installed.push(capi_types);
        step.done_with(&format!("{} CRDs", crds.len()));
        Ok(())
    }

    /// Installs the CRDs that a plan needs, and starts its managers; returns the new Cluster API.
    pub async fn add(&mut self, plan: &Plan) -> Result<&mut ClusterApi> {
        let binaries = Binaries::ensure(&plan.programs(), &self.progress).await?;
        let proxies = match plan.capi_types() {
            CapiTypes::Standard => None,
            CapiTypes::Private => Some(self.upstream().await?),
        };
        self.install_crds(plan.capi_types()).await?;
        let step = self.progress.step(match plan.capi_types() {
            CapiTypes::Standard => "starting stock managers, straight to the API server",
            CapiTypes::Private => "starting stock managers, each behind its own proxy",
        });
        let endpoint = self.control_plane.endpoint();
        let fixture = self.fixture(&binaries, &endpoint, proxies.as_ref());
        let cluster_api = ClusterApi::start(plan, &fixture).await?;
        step.done_with(&format!("{} managers", cluster_api.managers().len()));
        self.cluster_apis.push(cluster_api);
        Ok(self
            .cluster_apis
            .last_mut()
            .expect("invariant: one was just pushed"))
    }

    /// Starts a provider on standard types that keeps running while its cluster migrates.
    pub async fn lasting_provider(&mut self, namespace: &str) -> Result<LastingProvider> {
        let manager = [Manager::DevProvider.binary()];
        let binaries = Binaries::ensure(&manager, &self.progress).await?;
        let upstream = self.upstream().await?;
        self.install_crds(CapiTypes::Standard).await?;
        let endpoint = self.control_plane.endpoint();
        let fixture = self.fixture(&binaries, &endpoint, Some(&upstream));
        LastingProvider::start(namespace, &fixture).await
    }

    fn fixture<'a>(
        &'a self,
        binaries: &'a Binaries,
        endpoint: &'a Endpoint,
        proxies: Option<&'a Upstream>,
    ) -> Fixture<'a> {
        Fixture {
            work_dir: &self.work_dir,
            admin: &self.admin,
            binaries,
            authority: &self.control_plane.authority,
            endpoint,
            proxies,
            progress: &self.progress,
        }
    }

    /// The Cluster API with given types.
    pub fn cluster_api(&mut self, capi_types: CapiTypes) -> Result<&mut ClusterApi> {
        self.cluster_apis
            .iter_mut()
            .find(|cluster_api| cluster_api.capi_types() == capi_types)
            .with_context(|| format!("there is no Cluster API with {capi_types:?} types"))
    }

    /// Ends the Cluster API with service accounts in a namespace. Its objects stay.
    pub fn end_in(&mut self, namespace: &str) {
        self.cluster_apis
            .retain(|cluster_api| cluster_api.namespace() != namespace);
    }

    /// Ends the Cluster API with given types. Its objects and its CRDs stay.
    pub fn end(&mut self, capi_types: CapiTypes) {
        self.cluster_apis
            .retain(|cluster_api| cluster_api.capi_types() != capi_types);
    }

    /// The API server as a client of Cluster API sees it through a proxy: private types under their standard names.
    pub async fn standard_view(&mut self) -> Result<ApiClient> {
        self.user().await?.client()
    }

    /// A client with standard names for given types: directly to the API server, or through a proxy.
    pub async fn view_of(&mut self, capi_types: CapiTypes) -> Result<ApiClient> {
        match capi_types {
            CapiTypes::Standard => Ok(self.admin.clone()),
            CapiTypes::Private => self.standard_view().await,
        }
    }

    /// A kubeconfig of the proxy's view.
    pub async fn standard_kubeconfig(&mut self) -> Result<PathBuf> {
        Ok(self.user().await?.kubeconfig().to_owned())
    }

    async fn user(&mut self) -> Result<&View> {
        if self.user.is_none() {
            let upstream = self.upstream().await?;
            self.user = Some(View::open(&self.admin, &self.work_dir, &upstream).await?);
        }
        Ok(self.user.as_ref().expect("invariant: it was just set"))
    }

    /// What proxies need to reach the API server; builds their program at the first call.
    pub async fn upstream(&mut self) -> Result<Upstream> {
        let program = match &self.proxy_program {
            Some(program) => program.clone(),
            None => proxy::build(&self.progress).await?,
        };
        self.proxy_program = Some(program.clone());
        Ok(Upstream {
            program,
            endpoint: self.control_plane.endpoint(),
        })
    }

    /// Ends the testbed. If `outcome` is an error, shows the ends of the logs and leaves the directory.
    pub fn finish<T>(self, outcome: Result<T>) -> Result<T> {
        if outcome.is_err() {
            self.explain();
        }
        outcome
    }

    fn explain(&self) {
        self.keep();
        let logs = self.path().join("logs");
        for entry in std::fs::read_dir(&logs).into_iter().flatten().flatten() {
            let log = entry.path();
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
}
