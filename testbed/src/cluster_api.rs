//! A Cluster API installation: stock managers with one set of types of the group table.
//!
//! With private types, each manager has its own proxy and its own service account, whose roles name private groups
//! only. With standard types, the managers connect to the API server themselves, with upstream's own roles: this is the
//! platform's Cluster API, the one that must never notice us.

pub mod lasting;
pub mod pods;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use api::group::CapiTypes;

use crate::binaries::{Binaries, Binary};
use crate::certs::Authority;
use crate::client::ApiClient;
use crate::control_plane::Endpoint;
use crate::kubeconfig::{Credentials, write_kubeconfig};
use crate::lock::Lock;
use crate::managers::{Manager, ManagerPorts, Settings};
use crate::ports;
use crate::progress::Progress;
use crate::proxy::{Proxy, Upstream};
use crate::service::{Service, plain_health};
use crate::service_account::{Reach, ServiceAccount};
use crate::work_dir::{self, WorkDir};

/// Namespace of the platform's managers.
const PLATFORM_NAMESPACE: &str = "capi-system";

/// Which managers run where.
#[derive(Debug, Clone)]
pub struct Plan {
    capi_types: CapiTypes,
    managers: Vec<Manager>,
    /// Where the service accounts are.
    namespace: String,
    /// What they look after.
    reach: Reach,
    /// Where their roles are bound.
    rights: Reach,
}

/// A running Cluster API.
#[derive(Debug)]
pub struct ClusterApi {
    managers: Vec<RunningManager>,
    capi_types: CapiTypes,
    namespace: String,
    /// Held while the development provider runs.
    _only_provider: Option<Lock>,
}

/// One manager, with its proxy.
#[derive(Debug)]
pub struct RunningManager {
    /// Which one.
    pub manager: Manager,
    /// Its process.
    pub service: Service,
    /// Its proxy, with private types.
    pub proxy: Option<Proxy>,
    /// Its identity.
    pub account: ServiceAccount,
}

/// What a testbed provides for its Cluster APIs.
#[derive(Debug)]
pub(crate) struct Fixture<'a> {
    pub work_dir: &'a Arc<WorkDir>,
    pub admin: &'a ApiClient,
    pub binaries: &'a Binaries,
    pub authority: &'a Authority,
    pub endpoint: &'a Endpoint,
    /// For the private types, which needs proxies.
    pub proxies: Option<&'a Upstream>,
    pub progress: &'a Progress,
}

// === impl Plan ===

impl Plan {
    /// All four managers on private types, serving one namespace, as for a hosted control plane.
    #[must_use]
    pub fn hosted(namespace: &str) -> Self {
        Self {
            capi_types: CapiTypes::Private,
            managers: Manager::ALL.to_vec(),
            namespace: namespace.to_owned(),
            reach: Reach::Namespace(namespace.to_owned()),
            rights: Reach::Namespace(namespace.to_owned()),
        }
    }

    /// The same, less one of them.
    #[must_use]
    pub fn without(mut self, manager: Manager) -> Self {
        self.managers.retain(|other| *other != manager);
        self
    }

    /// Managers on standard types that look after one namespace, as for a hosted control plane before its migration:
    /// without a proxy, with upstream's own roles, and with service accounts in a namespace of their own.
    #[must_use]
    pub fn legacy(namespace: &str, managers: &[Manager]) -> Self {
        Self {
            capi_types: CapiTypes::Standard,
            managers: managers.to_vec(),
            namespace: format!("{namespace}-legacy"),
            reach: Reach::Namespace(namespace.to_owned()),
            rights: Reach::Cluster,
        }
    }

    /// The platform's own Cluster API: the given managers on standard types, serving all namespaces, without a proxy.
    #[must_use]
    pub fn platform(managers: &[Manager]) -> Self {
        Self {
            capi_types: CapiTypes::Standard,
            managers: managers.to_vec(),
            namespace: PLATFORM_NAMESPACE.to_owned(),
            reach: Reach::Cluster,
            rights: Reach::Cluster,
        }
    }

    /// The types that its managers use.
    pub fn capi_types(&self) -> CapiTypes {
        self.capi_types
    }

    /// Where its service accounts are.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The programs that it needs.
    pub fn programs(&self) -> Vec<Binary> {
        self.managers
            .iter()
            .map(|manager| manager.binary())
            .collect()
    }
}

// === impl ClusterApi ===

impl ClusterApi {
    /// Starts the managers of a plan and waits until all are ready.
    pub(crate) async fn start(plan: &Plan, fixture: &Fixture<'_>) -> Result<Self> {
        let only_provider = if plan.managers.contains(&Manager::DevProvider) {
            Some(wait_for_dev_provider(fixture.progress).await?)
        } else {
            None
        };
        let mut managers = Vec::new();
        for &manager in &plan.managers {
            managers.push(RunningManager::spawn(manager, plan, fixture).await?);
        }
        for running in &mut managers {
            running.service.ready().await?;
        }
        Ok(Self {
            managers,
            capi_types: plan.capi_types,
            namespace: plan.namespace.clone(),
            _only_provider: only_provider,
        })
    }

    /// The types that it uses.
    pub fn capi_types(&self) -> CapiTypes {
        self.capi_types
    }

    /// The namespace of its service accounts, which distinguishes Cluster APIs with the same types.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Its managers.
    pub fn managers(&self) -> &[RunningManager] {
        &self.managers
    }

    /// One of its managers.
    pub fn manager_mut(&mut self, manager: Manager) -> Result<&mut RunningManager> {
        self.managers
            .iter_mut()
            .find(|running| running.manager == manager)
            .with_context(|| format!("{} is not part of this Cluster API", manager.name()))
    }

    /// The user names of its managers, as the audit log has them.
    pub fn usernames(&self) -> Vec<String> {
        self.managers
            .iter()
            .map(|running| running.account.username())
            .collect()
    }

    /// Fails when a process of it has ended by itself.
    pub fn check(&mut self) -> Result<()> {
        for running in &mut self.managers {
            running.service.check()?;
            if let Some(proxy) = &mut running.proxy {
                proxy.service.check()?;
            }
        }
        Ok(())
    }
}

// === impl RunningManager ===

impl RunningManager {
    async fn spawn(manager: Manager, plan: &Plan, fixture: &Fixture<'_>) -> Result<Self> {
        let account = admit(manager, plan, fixture).await?;
        let name = format!("{}-{}", plan.namespace, manager.name());
        let proxy = match fixture.proxies {
            Some(upstream) => Some(start_proxy(&name, upstream, fixture, &account).await?),
            None => None,
        };
        let kubeconfig = match &proxy {
            Some(proxy) => proxy.kubeconfig().to_owned(),
            None => direct_kubeconfig(&name, fixture, &account)?,
        };
        let service = spawn_manager(manager, &name, &kubeconfig, plan, fixture)?;
        Ok(Self {
            manager,
            service,
            proxy,
            account,
        })
    }
}

/// Makes the account of a manager, with its roles.
async fn admit(manager: Manager, plan: &Plan, fixture: &Fixture<'_>) -> Result<ServiceAccount> {
    let (namespace, name) = (&plan.namespace, manager.name());
    let account = ServiceAccount::create(fixture.admin, fixture.work_dir, namespace, name).await?;
    let roles = manager.roles(plan.capi_types).await?;
    account.grant(fixture.admin, &roles, &plan.rights).await?;
    Ok(account)
}

/// Starts a manager as the user of a kubeconfig.
fn spawn_manager(
    manager: Manager,
    name: &str,
    kubeconfig: &Path,
    plan: &Plan,
    fixture: &Fixture<'_>,
) -> Result<Service> {
    let ports = ManagerPorts {
        health: ports::allocate()?,
        diagnostics: ports::allocate()?,
        webhook: ports::allocate()?,
    };
    let certificates = webhook_certificates(name, fixture)?;
    let settings = Settings {
        kubeconfig,
        reach: &plan.reach,
        capi_types: plan.capi_types,
        certificates: &certificates,
        ports: &ports,
        namespace: &plan.namespace,
    };
    let launch = manager.launch(name, fixture.binaries, &settings)?;
    let health = plain_health(ports.health, "/readyz")?;
    let mut service = Service::new(launch, fixture.work_dir, health);
    service.spawn()?;
    Ok(service)
}

async fn start_proxy(
    name: &str,
    upstream: &Upstream,
    fixture: &Fixture<'_>,
    account: &ServiceAccount,
) -> Result<Proxy> {
    let name = format!("{name}-proxy");
    let mut proxy = Proxy::new(&name, upstream, account, fixture.work_dir)?;
    proxy.service.start().await?;
    Ok(proxy)
}

fn direct_kubeconfig(
    name: &str,
    fixture: &Fixture<'_>,
    account: &ServiceAccount,
) -> Result<PathBuf> {
    let path = fixture.work_dir.join(format!("{name}.kubeconfig"));
    write_kubeconfig(
        &path,
        &fixture.endpoint.server,
        Some(&fixture.endpoint.authority),
        Credentials::TokenFile(account.token_file()),
    )?;
    Ok(path)
}

/// A directory with the file names that controller-runtime expects.
fn webhook_certificates(name: &str, fixture: &Fixture<'_>) -> Result<PathBuf> {
    let directory = fixture.work_dir.join(format!("{name}-webhook"));
    let issued = fixture.authority.server(&format!("{name}-webhook"))?;
    std::fs::create_dir_all(&directory)
        .and_then(|()| std::fs::copy(&issued.certificate, directory.join("tls.crt")))
        .and_then(|_| std::fs::copy(&issued.key, directory.join("tls.key")))
        .with_context(|| format!("cannot fill {}", directory.display()))?;
    Ok(directory)
}

/// The development provider listens on fixed ports (19000, and 20000 onwards), so there can be one on a machine at a
/// time: the others wait for their turn.
async fn wait_for_dev_provider(progress: &Progress) -> Result<Lock> {
    let path = work_dir::lock_path(work_dir::PROVIDER_LOCK);
    if let Some(lock) = Lock::try_take(&path)? {
        return Ok(lock);
    }
    let waiting = progress.step("waiting for another testbed's development provider to end");
    let lock = Lock::take(&path).await?;
    waiting.done();
    Ok(lock)
}
