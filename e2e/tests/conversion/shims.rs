//! Replicas of the webhook behind one address, as a Service has them.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use testbed::client::ApiClient;
use testbed::ports;
use testbed::process::Launch;
use testbed::service::{Health, Service};
use testbed::work_dir::WorkDir;
use tokio::net::{TcpListener, TcpStream};

/// How many there are.
pub(crate) const REPLICAS: usize = 2;

/// The replicas.
#[derive(Debug)]
pub(crate) struct Shims {
    pub(crate) replicas: Vec<Shim>,
    pub(crate) balancer: Balancer,
}

/// One replica.
#[derive(Debug)]
pub(crate) struct Shim {
    pub(crate) service: Service,
    pub(crate) admin: ApiClient,
    address: SocketAddr,
}

/// Distributes connections over the replicas that it knows.
#[derive(Debug)]
pub(crate) struct Balancer {
    address: SocketAddr,
    ready: Arc<Mutex<Vec<SocketAddr>>>,
    dealing: tokio::task::JoinHandle<()>,
}

// === impl Shims ===

impl Shims {
    pub(crate) async fn start(
        program: &Path,
        work_dir: &Arc<WorkDir>,
        certificates: &Path,
        routes: &[String],
    ) -> Result<Self> {
        let balancer = Balancer::start().await?;
        let mut replicas = Vec::new();
        for number in 0..REPLICAS {
            let mut shim = Shim::new(number, program, work_dir, certificates, routes)?;
            shim.service.start().await?;
            balancer.add(shim.address);
            replicas.push(shim);
        }
        Ok(Self { replicas, balancer })
    }

    /// What CRDs name.
    pub(crate) fn url(&self) -> String {
        format!("https://{}/convert", self.balancer.address)
    }

    /// The port of its address.
    pub(crate) fn port(&self) -> u16 {
        self.balancer.address.port()
    }

    /// Ends a replica as a pod ends: it gets no more connections, and then SIGTERM.
    pub(crate) async fn end(&mut self, number: usize) -> Result<()> {
        self.balancer.remove(self.replicas[number].address);
        self.replicas[number].service.stop().await
    }

    /// Kills a replica; the balancer learns of it at once.
    pub(crate) fn kill(&mut self, number: usize) {
        self.replicas[number].service.kill();
        self.balancer.remove(self.replicas[number].address);
    }

    /// The metrics of the first replica and the second.
    pub(crate) async fn metrics(&self) -> Result<String> {
        let mut all = String::new();
        for replica in &self.replicas {
            all += &replica.admin.text("/metrics").await?;
        }
        Ok(all)
    }

    /// Starts it again; it is dealt to once it is ready.
    pub(crate) async fn begin(&mut self, number: usize) -> Result<()> {
        self.replicas[number].service.start().await?;
        self.balancer.add(self.replicas[number].address);
        Ok(())
    }
}

// === impl Shim ===

impl Shim {
    fn new(
        number: usize,
        program: &Path,
        work_dir: &Arc<WorkDir>,
        certificates: &Path,
        routes: &[String],
    ) -> Result<Self> {
        let (port, admin_port) = (ports::allocate()?, ports::allocate()?);
        let address: SocketAddr = ([127, 0, 0, 1], port).into();
        let file = |name: &str| -> PathBuf { certificates.join(name) };
        let mut launch = Launch::new(format!("shim-{number}"), program)
            .arg("conversion-webhook")
            .flag("listen", address)
            .flag("admin-listen", format!("127.0.0.1:{admin_port}"))
            .path_flag("tls-cert-file", &file("tls.crt"))
            .path_flag("tls-key-file", &file("tls.key"))
            .path_flag("backend-ca", &file("ca.crt"))
            .flag("shutdown-delay", "1s")
            .flag("log-level", "debug");
        for route in routes {
            launch = launch.arg(route);
        }
        let admin = ApiClient::plain(admin_port)?;
        let health = Health {
            client: admin.clone(),
            path: "/readyz",
        };
        Ok(Self {
            service: Service::new(launch, work_dir, health),
            admin,
            address,
        })
    }

    /// Its own address, with a name that is in every certificate.
    pub(crate) fn server(&self) -> String {
        format!("https://localhost:{}", self.address.port())
    }
}

// === impl Balancer ===

impl Balancer {
    async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.context("no port for the balancer")?;
        let address = listener.local_addr()?;
        let ready: Arc<Mutex<Vec<SocketAddr>>> = Arc::default();
        let dealing = tokio::spawn(deal(listener, Arc::clone(&ready)));
        Ok(Self {
            address,
            ready,
            dealing,
        })
    }

    pub(crate) fn add(&self, address: SocketAddr) {
        self.ready().push(address);
    }

    pub(crate) fn remove(&self, address: SocketAddr) {
        self.ready().retain(|one| *one != address);
    }

    fn ready(&self) -> std::sync::MutexGuard<'_, Vec<SocketAddr>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.dealing.abort();
    }
}

async fn deal(listener: TcpListener, ready: Arc<Mutex<Vec<SocketAddr>>>) {
    let turn = AtomicUsize::new(0);
    while let Ok((mut client, _)) = listener.accept().await {
        let target = {
            let ready = ready.lock().unwrap_or_else(PoisonError::into_inner);
            let turn = turn.fetch_add(1, Ordering::Relaxed);
            (!ready.is_empty()).then(|| ready[turn % ready.len()])
        };
        // Without a replica the connection is closed, as a Service without endpoints refuses it.
        let Some(target) = target else { continue };
        tokio::spawn(async move {
            if let Ok(mut server) = TcpStream::connect(target).await {
                let _ = client.set_nodelay(true);
                let _ = server.set_nodelay(true);
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            }
        });
    }
}
