//! The development provider, with a cloud in its memory: it has to keep running while its cluster migrates.
//!
//! A cloud does not end when a provider is stopped, and this one would. So it is not stopped but cut off: it connects
//! through a [`SwitchableProxy`], which leads to the API server, to a proxy before it, or nowhere. Like every client of the
//! proxy it sees standard types either way.

use std::sync::Arc;

use anyhow::{Context, Result};
use api::group::CapiTypes;

use super::{Fixture, Plan, Reach, admit, direct_kubeconfig, spawn_manager, wait_for_dev_provider};
use crate::client::ApiClient;
use crate::kubeconfig::{Credentials, write_kubeconfig};
use crate::lock::Lock;
use crate::managers::Manager;
use crate::proxy::{Proxy, Upstream};
use crate::relay::{Disposition, Relay};
use crate::service::Service;
use crate::service_account::ServiceAccount;
use crate::switchable_proxy::SwitchableProxy;
use crate::work_dir::WorkDir;

const MANAGER: Manager = Manager::DevProvider;

/// The provider, with its proxy.
#[derive(Debug)]
pub struct LastingProvider {
    /// Its process.
    pub service: Service,
    account: ServiceAccount,
    switchable_proxy: SwitchableProxy,
    /// Before the API server, with the account's token: a manager that uses plain HTTP has none.
    relay: Relay,
    proxy: Option<Proxy>,
    namespace: String,
    name: String,
    upstream: Upstream,
    work_dir: Arc<WorkDir>,
    _only: Lock,
}

// === impl LastingProvider ===

impl LastingProvider {
    /// Starts it on standard types, for one namespace.
    pub(crate) async fn start(namespace: &str, fixture: &Fixture<'_>) -> Result<Self> {
        let only = wait_for_dev_provider(fixture.progress).await?;
        let plan = Plan::legacy(namespace, &[MANAGER]);
        let account = admit(MANAGER, &plan, fixture).await?;
        let name = format!("{}-{}", plan.namespace, MANAGER.name());
        let direct = direct_kubeconfig(&name, fixture, &account)?;
        let relay = Relay::as_user_of(&direct, |_: &_, _| Disposition::Pass).await?;
        let switchable_proxy = SwitchableProxy::open().await?;
        switchable_proxy.switch_to(Some(relay.port()));
        let kubeconfig = fixture
            .work_dir
            .join(format!("{name}.switchable_proxy.kubeconfig"));
        let server = format!("http://127.0.0.1:{}", switchable_proxy.port());
        write_kubeconfig(&kubeconfig, &server, None, Credentials::None)?;
        let mut service = spawn_manager(MANAGER, &name, &kubeconfig, &plan, fixture)?;
        service.ready().await?;
        let upstream = fixture.proxies.context("invariant: it is given one")?;
        Ok(Self {
            service,
            account,
            switchable_proxy,
            relay,
            proxy: None,
            namespace: namespace.to_owned(),
            name,
            upstream: upstream.clone(),
            work_dir: Arc::clone(fixture.work_dir),
            _only: only,
        })
    }

    /// Cuts it off: it reaches no API server, and nothing that it had begun continues there.
    pub fn cut_off(&mut self) {
        self.switchable_proxy.switch_to(None);
        self.proxy = None;
    }

    /// Switches it to given types.
    pub async fn work_on(&mut self, capi_types: CapiTypes, admin: &ApiClient) -> Result<()> {
        let port = match capi_types {
            CapiTypes::Standard => self.relay.port(),
            CapiTypes::Private => self.start_proxy(admin).await?,
        };
        self.switchable_proxy.switch_to(Some(port));
        self.service.ready().await
    }

    async fn start_proxy(&mut self, admin: &ApiClient) -> Result<u16> {
        let roles = MANAGER.roles(CapiTypes::Private).await?;
        let reach = Reach::Namespace(self.namespace.clone());
        self.account.grant(admin, &roles, &reach).await?;
        let name = format!("{}-proxy", self.name);
        let mut proxy = Proxy::new(&name, &self.upstream, &self.account, &self.work_dir)?;
        proxy.service.start().await?;
        Ok(self.proxy.insert(proxy).port())
    }
}
