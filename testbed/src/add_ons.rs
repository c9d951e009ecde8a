//! Add-ons of a testbed with nodes: small replacements for parts of a platform that are not available here.
//!
//! Volumes are made by the real local-path provisioner. Addresses for Services of type `LoadBalancer` and the names of
//! Routes are handed out by loops in this process, and so are the rules that NetworkPolicies make; each ends when it is
//! dropped.

mod load_balancers;
mod network_policies;
mod routes;
mod storage;

pub use load_balancers::LoadBalancers;
pub use network_policies::NetworkPolicies;
pub use routes::{DOMAIN, Routes};
pub use storage::install as install_storage;

use anyhow::Result;
use tokio::task::JoinHandle;

use crate::node::NodeTestbed;

/// All add-ons. They end when this is dropped.
#[derive(Debug)]
pub struct AddOns {
    _balancers: LoadBalancers,
    _policies: NetworkPolicies,
    _routes: Routes,
}

// === impl AddOns ===

impl AddOns {
    /// Installs and starts them.
    pub async fn start(testbed: &NodeTestbed) -> Result<Self> {
        install_storage(testbed).await?;
        Ok(Self {
            _balancers: LoadBalancers::start(testbed),
            _policies: NetworkPolicies::start(testbed),
            _routes: Routes::start(testbed).await?,
        })
    }
}

/// A loop that ends when it is dropped.
#[derive(Debug)]
struct Loop(JoinHandle<()>);

impl Drop for Loop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
