//! Our proxy, as a process in front of the testbed's API server.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;

use crate::cargo::Program;
use crate::client::ApiClient;
use crate::control_plane::Endpoint;
use crate::kubeconfig::{Credentials, write_kubeconfig};
use crate::ports;
use crate::process::Launch;
use crate::progress::Progress;
use crate::service::{Service, plain_health};
use crate::service_account::ServiceAccount;
use crate::work_dir::WorkDir;

/// Environment variable that names a ready-built proxy.
pub const BINARY_VARIABLE: &str = "HYPERSHIFT_CAPI_PROXY";

/// A proxy with its own identity.
#[derive(Debug)]
pub struct Proxy {
    /// The program.
    pub service: Service,
    port: u16,
    admin_port: u16,
    kubeconfig: PathBuf,
}

/// What all proxies of a testbed have in common.
#[derive(Debug, Clone)]
pub struct Upstream {
    /// The proxy's program.
    pub program: PathBuf,
    /// The API server.
    pub endpoint: Endpoint,
}

// === impl Proxy ===

impl Proxy {
    /// Prepares the proxy called `name`, which connects to the API server as `account`.
    pub fn new(
        name: &str,
        upstream: &Upstream,
        account: &ServiceAccount,
        work_dir: &Arc<WorkDir>,
    ) -> Result<Self> {
        let (port, admin_port) = (ports::allocate()?, ports::allocate()?);
        let own_kubeconfig = work_dir.join(format!("{name}.upstream.kubeconfig"));
        write_kubeconfig(
            &own_kubeconfig,
            &upstream.endpoint.server,
            Some(&upstream.endpoint.authority),
            Credentials::TokenFile(account.token_file()),
        )?;
        let kubeconfig = work_dir.join(format!("{name}.kubeconfig"));
        write_kubeconfig(
            &kubeconfig,
            &format!("http://127.0.0.1:{port}"),
            None,
            Credentials::None,
        )?;
        let launch = Launch::new(name, &upstream.program)
            .arg("serve")
            .flag("listen", format!("127.0.0.1:{port}"))
            .flag("admin-listen", format!("127.0.0.1:{admin_port}"))
            .path_flag("kubeconfig", &own_kubeconfig);
        Ok(Self {
            service: Service::new(launch, work_dir, plain_health(admin_port, "/readyz")?),
            port,
            admin_port,
            kubeconfig,
        })
    }

    /// The kubeconfig of its clients: plain HTTP on loopback, no credentials.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The port for clients.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The port for metrics and health.
    pub fn admin_port(&self) -> u16 {
        self.admin_port
    }

    /// A client that uses it.
    pub fn client(&self) -> Result<ApiClient> {
        ApiClient::plain(self.port)
    }
}

/// Builds the proxy, or takes the one that the environment names.
pub async fn build(progress: &Progress) -> Result<PathBuf> {
    let program = Program::dev("capi-proxy", "capi-proxy");
    program.find(BINARY_VARIABLE, progress).await
}
