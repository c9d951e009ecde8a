//! A client of a real API server behind `kubernetes-default-proxy` and a real HTTP proxy (Debian's tinyproxy).

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use serde_json::json;
use testbed::cargo::Program;
use testbed::client::ApiClient;
use testbed::kubeconfig::{Credentials, write_kubeconfig};
use testbed::node::packages;
use testbed::ports::allocate;
use testbed::process::{Launch, Process};
use testbed::progress::Progress;
use testbed::testbed::Testbed;
use testbed::wait;
use testbed::work_dir::WorkDir;
use tokio::net::{TcpListener, TcpStream};

use super::running::{Running, WITHIN, fails};

const NAMESPACES: &str = "/api/v1/namespaces";

/// The HTTP proxy of a hosted cluster.
struct Proxy {
    launch: Launch,
    address: SocketAddr,
    work_dir: Arc<WorkDir>,
}

/// What the node runs.
struct Node {
    program: PathBuf,
    proxy: Proxy,
    api_server: SocketAddr,
    work_dir: Arc<WorkDir>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_reach_the_api_server_through_a_proxy() -> Result<()> {
    let testbed = Testbed::start("default-proxy", Progress::detect()).await?;
    let outcome = scenario(&testbed).await;
    testbed.finish(outcome)
}

async fn scenario(testbed: &Testbed) -> Result<()> {
    let progress = Progress::detect();
    let program = Program::dev("control-plane-operator", "control-plane-operator");
    let endpoint = testbed.control_plane.endpoint();
    let api_server = endpoint.server.strip_prefix("https://");
    let api_server = api_server.context("no TLS")?.parse()?;
    let node = Node {
        program: program.build(&progress).await?,
        proxy: Proxy::new(testbed, api_server, &progress).await?,
        api_server,
        work_dir: Arc::clone(testbed.work_dir()),
    };
    let mut proxy = Some(node.proxy.start().await?);
    let (running, address) = node.start("kubernetes-default-proxy", node.api_server)?;
    let client = client(testbed, address).await?;
    serves(testbed, &client).await?;
    ensure!(
        node.proxy.log().contains(&format!("CONNECT {api_server}")),
        "not through the proxy"
    );

    // Without the proxy, connections fail, and the program continues.
    drop(proxy.take());
    let refused = format!("failed to connect to proxy {}", node.proxy.address);
    // The first failure may be that of a connection that was open.
    wait::until("a new connection to fail", WITHIN, async || {
        ensure!(client.get(NAMESPACES).await.is_err(), "it has another way");
        ensure!(running.log().contains(&refused), "{}", running.log());
        Ok(())
    })
    .await?;
    proxy = Some(node.proxy.start().await?);
    client.get(NAMESPACES).await?;
    node.refuses_another_port().await?;
    running.terminates().await?;
    drop(proxy);
    node.rejects_bad_input().await
}

/// A client of the API server whose connections go to this address.
async fn client(testbed: &Testbed, address: SocketAddr) -> Result<ApiClient> {
    let authority = &testbed.control_plane.authority;
    let certificate = authority.client("node", "node", Some("system:masters"))?;
    let path = testbed.path().join("node.kubeconfig");
    let ca = testbed.control_plane.endpoint().authority;
    let credentials = Credentials::Certificate(&certificate);
    write_kubeconfig(&path, &format!("https://{address}"), Some(&ca), credentials)?;
    ApiClient::from_kubeconfig(&path).await
}

/// Writes and reads, also with many connections at once: TLS is between the client and the API server.
async fn serves(testbed: &Testbed, client: &ApiClient) -> Result<()> {
    let ready = wait::until("the proxy to listen", WITHIN, async || {
        client.text("/readyz").await
    });
    ready.await?;
    let namespace = json!({ "metadata": { "name": "through-the-proxy" } });
    client.create(NAMESPACES, &namespace).await?;
    let path = format!("{NAMESPACES}/through-the-proxy");
    testbed.admin.get(&path).await?;
    let clients = (0..20).map(async |_| client.get(&path).await);
    try_join_all(clients).await.map(drop)
}

// === impl Proxy ===

impl Proxy {
    /// Prepares a proxy that connects to the port of the API server only.
    async fn new(testbed: &Testbed, target: SocketAddr, progress: &Progress) -> Result<Self> {
        let program = packages::program("tinyproxy", "tinyproxy", progress).await?;
        let address = SocketAddr::from(([127, 0, 0, 1], allocate()?));
        let file = testbed.path().join("tinyproxy.conf");
        let (port, allowed) = (address.port(), target.port());
        let config = format!(
            "Listen 127.0.0.1\nPort {port}\nAllow 127.0.0.1\nConnectPort {allowed}\nTimeout 600\nLogLevel Connect\n"
        );
        std::fs::write(&file, config)?;
        let launch = Launch::new("tinyproxy", &program).arg("-d").arg("-c");
        Ok(Self {
            launch: launch.arg(file),
            address,
            work_dir: Arc::clone(testbed.work_dir()),
        })
    }

    async fn start(&self) -> Result<Process> {
        let mut process = self.launch.spawn(&self.work_dir)?;
        wait::until("tinyproxy to listen", WITHIN, async || {
            ensure!(process.exited()?.is_none(), "{}", process.tail());
            Ok(TcpStream::connect(self.address).await?)
        })
        .await?;
        Ok(process)
    }

    fn log(&self) -> String {
        testbed::process::tail(&self.work_dir.log("tinyproxy"), usize::MAX)
    }
}

// === impl Node ===

impl Node {
    fn args(&self, listen: SocketAddr, target: SocketAddr) -> [String; 4] {
        [
            "kubernetes-default-proxy".to_owned(),
            format!("--listen-addr={listen}"),
            format!("--proxy-addr={}", self.proxy.address),
            format!("--apiserver-addr={target}"),
        ]
    }

    fn start(&self, name: &str, target: SocketAddr) -> Result<(Running, SocketAddr)> {
        let address = SocketAddr::from(([127, 0, 0, 1], allocate()?));
        let mut launch = Launch::new(name, &self.program);
        for arg in self.args(address, target) {
            launch = launch.arg(arg);
        }
        Ok((Running::start(&launch, &self.work_dir)?, address))
    }

    /// The proxy refuses another port, which is logged with its status; the client's connection is closed.
    async fn refuses_another_port(&self) -> Result<()> {
        use tokio::io::AsyncReadExt as _;

        let target = SocketAddr::from(([127, 0, 0, 1], allocate()?));
        let (mut running, address) = self.start("refused", target)?;
        let connected = wait::until("it to listen", WITHIN, async || {
            Ok(TcpStream::connect(address).await?)
        });
        let mut received = Vec::new();
        connected.await?.read_to_end(&mut received).await?;
        ensure!(received.is_empty(), "{received:?}");
        let text = format!(
            "failed to connect to API server {target} through proxy {}: it responded with status 403",
            self.proxy.address
        );
        running.logs(&text).await?;
        running.terminates().await
    }

    async fn rejects_bad_input(&self) -> Result<()> {
        let taken = TcpListener::bind("127.0.0.1:0").await?;
        let args = self.args(taken.local_addr()?, self.api_server);
        let in_use = format!("failed to listen on {}", taken.local_addr()?);
        fails(&self.program, &args, &[], 1, &in_use).await?;
        fails(&self.program, &args[..3], &[], 64, "--apiserver-addr").await?;
        let mut scheme = args.clone();
        "--proxy-addr=http://proxy.example.com:3128".clone_into(&mut scheme[2]);
        fails(&self.program, &scheme, &[], 64, "expected HOST:PORT").await
    }
}
