//! Stock managers that do nothing but convert, as the product runs them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use testbed::binaries::Binaries;
use testbed::client::ApiClient;
use testbed::fixtures;
use testbed::managers::Manager;
use testbed::ports;
use testbed::process::Launch;
use testbed::proxy::{Proxy, Upstream};
use testbed::service::{Health, Service};
use testbed::service_account::{Reach, ServiceAccount};
use testbed::testbed::Testbed;
use testbed::work_dir::WorkDir;

/// Where the webhook is installed.
pub(crate) const NAMESPACE: &str = "hypershift";
/// Those that run beside each other. The development provider cannot: it listens on a port of its own choice.
const MANAGERS: [Manager; 3] = [
    Manager::Core,
    Manager::KubeadmBootstrap,
    Manager::KubeadmControlPlane,
];
/// Says to a manager that it is in a pod of that namespace: without this file it does not even try to be a leader.
const IN_A_POD: &str = "mount -t tmpfs none /run && mkdir -p /run/secrets/kubernetes.io/serviceaccount && \
                        printf hypershift > /run/secrets/kubernetes.io/serviceaccount/namespace && exec \"$@\"";

/// The managers of one pod.
#[derive(Debug)]
pub(crate) struct Backends {
    pub(crate) core: Backend,
    pub(crate) rest: Vec<Backend>,
    _proxy: Proxy,
    pub(crate) account: ServiceAccount,
}

/// One manager.
#[derive(Debug)]
pub(crate) struct Backend {
    pub(crate) manager: Manager,
    pub(crate) service: Service,
    webhook: u16,
}

// === impl Backends ===

impl Backends {
    /// Starts them, with the certificate in `certificates`.
    pub(crate) async fn start(
        testbed: &mut Testbed,
        work_dir: &Arc<WorkDir>,
        certificates: &Path,
    ) -> Result<Self> {
        let programs = MANAGERS.map(Manager::binary);
        let binaries = Binaries::ensure(&programs, &testbed.progress).await?;
        let upstream = testbed.upstream().await?;
        let account = account(&testbed.admin, work_dir).await?;
        let mut proxy = proxy(&upstream, &account, work_dir)?;
        proxy.service.start().await?;
        let start = |manager| Backend::new(manager, &binaries, &proxy, work_dir, certificates);
        let mut core = start(Manager::Core)?;
        core.service.spawn()?;
        let mut rest = Vec::new();
        for manager in &MANAGERS[1..] {
            let mut backend = start(*manager)?;
            backend.service.spawn()?;
            rest.push(backend);
        }
        core.service.ready().await?;
        for backend in &mut rest {
            backend.service.ready().await?;
        }
        Ok(Self {
            core,
            rest,
            _proxy: proxy,
            account,
        })
    }

    /// The flags of a shim that uses these backends.
    pub(crate) fn routes(&self) -> Vec<String> {
        let all = self.rest.iter().chain([&self.core]);
        all.flat_map(|backend| {
            let url = backend.url();
            let groups = backend.groups();
            groups.map(move |group| format!("--backend={group}.hypershift.openshift.io={url}"))
        })
        .collect()
    }

    /// The manager that converts a standard group.
    pub(crate) fn of(&self, group: &str) -> Result<&Backend> {
        let mut all = self.rest.iter().chain([&self.core]);
        let found = all.find(|backend| {
            backend
                .groups()
                .any(|one| format!("{one}.x-k8s.io") == group)
        });
        found.with_context(|| format!("no backend converts {group}"))
    }

    pub(crate) fn check(&mut self) -> Result<()> {
        self.core.service.check()?;
        self.rest
            .iter_mut()
            .try_for_each(|backend| backend.service.check())
    }
}

async fn account(admin: &ApiClient, work_dir: &WorkDir) -> Result<ServiceAccount> {
    let account = ServiceAccount::create(admin, work_dir, NAMESPACE, "conversion").await?;
    let roles = fixtures::load(&roles())?;
    let reach = Reach::Namespace(NAMESPACE.to_owned());
    account.grant(admin, &roles, &reach).await?;
    Ok(account)
}

/// The roles that are installed.
fn roles() -> PathBuf {
    fixtures::install_manifests().join("cluster-api/conversion.yaml")
}

fn proxy(upstream: &Upstream, account: &ServiceAccount, work_dir: &Arc<WorkDir>) -> Result<Proxy> {
    Proxy::new("conversion-proxy", upstream, account, work_dir)
}

// === impl Backend ===

impl Backend {
    fn new(
        manager: Manager,
        binaries: &Binaries,
        proxy: &Proxy,
        work_dir: &Arc<WorkDir>,
        certificates: &Path,
    ) -> Result<Self> {
        let (health, webhook) = (ports::allocate()?, ports::allocate()?);
        let diagnostics = ports::allocate()?;
        let entry = [
            "unshare",
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            IN_A_POD,
            "sh",
        ];
        let mut launch = Launch::new(
            format!("conversion-{}", manager.name()),
            binaries.path(manager.binary())?,
        )
        .path_flag("kubeconfig", proxy.kubeconfig())
        .flag("health-addr", format!("127.0.0.1:{health}"))
        .flag("diagnostics-address", format!("127.0.0.1:{diagnostics}"))
        .flag("webhook-port", webhook)
        .path_flag("webhook-cert-dir", certificates);
        for flag in cli::install::conversion::FLAGS {
            launch = launch.arg(*flag);
        }
        let launch = launch
            .flag("namespace", NAMESPACE)
            .through(&entry.map(OsString::from));
        let health = Health {
            client: ApiClient::plain(health)?,
            path: "/readyz",
        };
        Ok(Self {
            manager,
            service: Service::new(launch, work_dir, health),
            webhook,
        })
    }

    pub(crate) fn url(&self) -> String {
        format!("https://localhost:{}", self.webhook)
    }

    /// What it converts, less the suffix by which the sides differ.
    fn groups(&self) -> impl Iterator<Item = &'static str> {
        let groups: &[&str] = match self.manager {
            Manager::KubeadmBootstrap => &["bootstrap.cluster"],
            Manager::KubeadmControlPlane => &["controlplane.cluster"],
            _ => &[
                "cluster",
                "addons.cluster",
                "ipam.cluster",
                "runtime.cluster",
            ],
        };
        groups.iter().copied()
    }
}
