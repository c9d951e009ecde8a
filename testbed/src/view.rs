//! A user who works through a proxy: private types under their standard names.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;

use crate::client::ApiClient;
use crate::fixtures;
use crate::proxy::{Proxy, Upstream};
use crate::service_account::{Reach, ServiceAccount};
use crate::work_dir::WorkDir;

/// Namespace of the testbed's own service accounts.
const NAMESPACE: &str = "testbed";

/// An API server as a client of Cluster API sees it through a proxy.
#[derive(Debug)]
pub struct View {
    proxy: Proxy,
    _account: ServiceAccount,
}

// === impl View ===

impl View {
    /// Starts a proxy for a user who may do everything on private types.
    pub async fn open(
        admin: &ApiClient,
        work_dir: &Arc<WorkDir>,
        upstream: &Upstream,
    ) -> Result<Self> {
        let account = ServiceAccount::create(admin, work_dir, NAMESPACE, "user").await?;
        let roles = fixtures::load(&fixtures::directory().join("rbac/user.yaml"))?;
        account.grant(admin, &roles, &Reach::Cluster).await?;
        let mut proxy = Proxy::new("user-proxy", upstream, &account, work_dir)?;
        proxy.service.start().await?;
        Ok(Self {
            proxy,
            _account: account,
        })
    }

    /// A client.
    pub fn client(&self) -> Result<ApiClient> {
        self.proxy.client()
    }

    /// A kubeconfig, for users.
    pub fn kubeconfig(&self) -> &Path {
        self.proxy.kubeconfig()
    }
}
