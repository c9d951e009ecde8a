//! The conversion webhook as API servers and attackers meet it: the real binary, TLS, and a backend that converts.

use std::convert::Infallible;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::harness::{Client, Leaf, Pki, TIMEOUT, eventually};

const MIB: u64 = 1024 * 1024;
const NAME: &str = "localhost";
const GROUP: &str = "cluster.hypershift.openshift.io";

/// The webhook, with one backend.
struct Webhook {
    child: Child,
    directory: TempDir,
    listen: SocketAddr,
    admin: String,
    pki: Pki,
}

// === impl Webhook ===

impl Webhook {
    async fn start(args: &[&str]) -> Self {
        let pki = Pki::new();
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).display().to_string();
        fs::write(path("ca.crt"), pki.authority()).unwrap();
        let leaf = pki.server(NAME);
        write(directory.path(), &leaf);
        let backend = backend(&pki, &leaf).await;
        let log = fs::File::create(path("log")).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_capi-proxy"))
            .args([
                "conversion-webhook",
                "--listen=127.0.0.1:0",
                "--admin-listen=127.0.0.1:0",
            ])
            .arg(format!("--address-file={}", path("addresses")))
            .arg(format!("--tls-cert-file={}", path("tls.crt")))
            .arg(format!("--tls-key-file={}", path("tls.key")))
            .arg(format!("--backend-ca={}", path("ca.crt")))
            .arg(format!("--backend-server-name={NAME}"))
            .arg(format!("--backend={GROUP}=https://{backend}"))
            .args(args)
            // As installed: memory of large reviews is returned to the system.
            .env("MALLOC_ARENA_MAX", "2")
            .env("MALLOC_MMAP_THRESHOLD_", "131072")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut webhook = Self {
            child,
            directory,
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            admin: String::new(),
            pki,
        };
        webhook.find_addresses().await;
        webhook
    }

    async fn find_addresses(&mut self) {
        let file = self.directory.path().join("addresses");
        eventually("the webhook is served", async || file.exists()).await;
        let addresses: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        self.listen = addresses["listen"].as_str().unwrap().parse().unwrap();
        addresses["admin"]
            .as_str()
            .unwrap()
            .clone_into(&mut self.admin);
        eventually("the webhook is ready", async || {
            self.ask_admin("/readyz").await.0 == 200
        })
        .await;
    }

    async fn ask_admin(&self, path: &str) -> (u16, String) {
        let response = Client::connect(&self.admin).await.get(path).await;
        (response.status, response.text())
    }

    async fn metric(&self, name: &str) -> f64 {
        let (_, text) = self.ask_admin("/metrics").await;
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in\n{text}"))
            .parse()
            .unwrap()
    }

    /// Waits until a counter is above zero.
    async fn counts(&self, name: &str) {
        eventually(name, async || self.metric(name).await > 0.0).await;
    }

    /// Converts a review of each size, one after another.
    async fn converts(&self, sizes: impl IntoIterator<Item = usize>, tls: &Arc<ClientConfig>) {
        for size in sizes {
            let review = review(size);
            let exchange = ask(self.listen, Ipv4Addr::LOCALHOST, Arc::clone(tls), &review);
            let response = tokio::time::timeout(TIMEOUT, exchange).await;
            let (status, body) = response.expect("a response").unwrap();
            assert_eq!(status, 200, "{size}: {body}");
            assert!(body.contains(&format!("{GROUP}/v1beta1")), "{body:.300}");
        }
    }

    /// The most memory that it ever had resident, in bytes.
    fn peak(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let mut lines = status.lines();
        let line = lines.find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    /// Sends SIGTERM.
    fn signal(&self) {
        let pid = rustix::process::Pid::from_raw(self.child.id().cast_signed()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    }

    async fn listen_is_closed(&self) -> bool {
        TcpStream::connect(self.listen).await.is_err()
    }

    fn tls(&self, client: Option<&Leaf>) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        let authority = self.pki.authority();
        roots
            .add(CertificateDer::from_pem_slice(authority.as_bytes()).unwrap())
            .unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        Arc::new(match client {
            None => config.with_no_client_auth(),
            Some(leaf) => {
                let chain = CertificateDer::from_pem_slice(leaf.certificate.as_bytes()).unwrap();
                let key = PrivateKeyDer::from_pem_slice(leaf.key.as_bytes()).unwrap();
                config.with_client_auth_cert(vec![chain], key).unwrap()
            }
        })
    }
}

impl Drop for Webhook {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn write(directory: &Path, leaf: &Leaf) {
    fs::write(directory.join("tls.key"), &leaf.key).unwrap();
    fs::write(directory.join("tls.crt"), &leaf.certificate).unwrap();
}

// === the backend ===

/// A stock manager's webhook server: it converts by writing the version.
async fn backend(pki: &Pki, leaf: &Leaf) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let acceptor = TlsAcceptor::from(pki.tls(leaf, &["h2"]));
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let stream = acceptor.accept(stream).await.unwrap();
                let serving = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                    .initial_stream_window_size(4 * 1024 * 1024)
                    .initial_connection_window_size(4 * 1024 * 1024)
                    .serve_connection(TokioIo::new(stream), service_fn(convert));
                let _ = serving.await;
            });
        }
    });
    address
}

async fn convert(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request
        .into_body()
        .collect()
        .await
        .map(http_body_util::Collected::to_bytes);
    let review: Value = serde_json::from_slice(&body.unwrap_or_default()).unwrap_or_default();
    let mut objects = review["request"]["objects"].clone();
    for object in objects.as_array_mut().into_iter().flatten() {
        object["apiVersion"] = review["request"]["desiredAPIVersion"].clone();
    }
    let response = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "response": {
            "uid": review["request"]["uid"], "convertedObjects": objects,
            "result": {"status": "Success"},
        },
    });
    Ok(Response::new(Full::new(response.to_string().into())))
}

// === clients ===

/// A review of one object of about `size` bytes.
fn review(size: usize) -> String {
    let object = json!({
        "apiVersion": format!("{GROUP}/v1beta2"), "kind": "Machine",
        "metadata": {"namespace": "n", "name": "m", "uid": "u"},
        "spec": {"filler": "x".repeat(size)},
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": {"uid": "u", "desiredAPIVersion": format!("{GROUP}/v1beta1"), "objects": [object]},
    })
    .to_string()
}

async fn connect(
    to: SocketAddr,
    from: Ipv4Addr,
    tls: Arc<ClientConfig>,
) -> std::io::Result<TlsStream<TcpStream>> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from((from, 0)))?;
    let stream = socket.connect(to).await?;
    let name = ServerName::try_from(NAME).unwrap();
    TlsConnector::from(tls).connect(name, stream).await
}

async fn send_head(stream: &mut TlsStream<TcpStream>, length: usize) -> std::io::Result<()> {
    let head =
        format!("POST /convert HTTP/1.1\r\nhost: {NAME}\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).await
}

/// Sends a review on a connection of its own; the status and the text of the response.
async fn ask(
    to: SocketAddr,
    from: Ipv4Addr,
    tls: Arc<ClientConfig>,
    review: &str,
) -> std::io::Result<(u16, String)> {
    let mut stream = connect(to, from, tls).await?;
    let (head, body) = exchange(&mut stream, review).await?;
    Ok((head[9..12].parse().unwrap(), body))
}

/// Sends a review on an open connection; the head and the text of the response.
async fn exchange(
    stream: &mut TlsStream<TcpStream>,
    review: &str,
) -> std::io::Result<(String, String)> {
    send_head(stream, review.len()).await?;
    stream.write_all(review.as_bytes()).await?;
    let mut response = Vec::new();
    let mut piece = vec![0; 16 * 1024];
    loop {
        let read = stream.read(&mut piece).await?;
        response.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&response).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            if read == 0 {
                return Err(std::io::Error::other(format!("no response, but {text:?}")));
            }
            continue;
        };
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.unwrap().parse().unwrap();
        if body.len() >= length {
            return Ok((head.to_owned(), body.to_owned()));
        }
        assert_ne!(read, 0, "the response is truncated: {text:?}");
    }
}

/// Sends bodies of 100 MB, one after another, until dropped.
///
/// It acts only with a permit of `turns`. So few clients act at once, and the webhook serves what it has accepted before
/// its own deadlines: on a busy machine the flood is slower, and not different.
async fn flood(to: SocketAddr, from: Ipv4Addr, tls: Arc<ClientConfig>, turns: Arc<Semaphore>) {
    const LENGTH: usize = 100_000_000;
    /// Bytes in one turn.
    const TURN: usize = 1024 * 1024;
    let piece = vec![b'['; 64 * 1024];
    loop {
        let turn = turns.acquire().await.unwrap();
        let Ok(mut stream) = connect(to, from, Arc::clone(&tls)).await else {
            continue;
        };
        if send_head(&mut stream, LENGTH).await.is_err() {
            continue;
        }
        drop(turn);
        // A rejected or displaced client connects again.
        while send_some(&mut stream, &piece, TURN, &turns).await.is_ok() {}
    }
}

/// Sends at least `bytes`.
async fn send_some(
    stream: &mut TlsStream<TcpStream>,
    piece: &[u8],
    bytes: usize,
    turns: &Semaphore,
) -> std::io::Result<()> {
    let _turn = turns.acquire().await.unwrap();
    let mut sent = 0;
    while sent < bytes {
        sent += stream.write(piece).await?;
    }
    Ok(())
}

// === tests ===

/// Check T06: 1,000 connections of 100 MB each from a few pods. Others are served, and memory stays below its limit.
///
/// First few connections, which are all kept, exhaust the memory; then a thousand exhaust the connections, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_large_reviews_does_not_block_other_clients() {
    const MEMORY: u64 = 96 * MIB;
    /// What the program, its connections and its allocator take beside the reviews.
    const REST: u64 = 128 * MIB;
    /// Clients of the flood that act at once.
    const TURNS: usize = 16;
    let budget = format!("--max-memory={MEMORY}");
    // How long a body may take is not what this is about.
    let webhook = Webhook::start(&[&budget, "--read-timeout=1h"]).await;
    let tls = webhook.tls(None);
    let turns = Arc::new(Semaphore::new(TURNS));
    let mut clients = JoinSet::new();
    let mut add = |count: u16| {
        for number in 0..count {
            let from = Ipv4Addr::new(127, 0, 1, u8::try_from(number % 8).unwrap() + 1);
            clients.spawn(flood(
                webhook.listen,
                from,
                Arc::clone(&tls),
                Arc::clone(&turns),
            ));
        }
    };
    add(32);
    webhook
        .counts("hypershift_capi_conversion_reviews_total{result=\"busy\"}")
        .await;
    webhook.converts([10, 100_000, 1_000_000], &tls).await;
    add(968);
    webhook
        .counts("hypershift_capi_conversion_connections_displaced_total")
        .await;
    webhook
        .converts([10, 100_000, 1_000_000].repeat(3), &tls)
        .await;
    let connections = webhook
        .metric("hypershift_capi_conversion_connections")
        .await;
    clients.shutdown().await;
    let peak = webhook.peak();
    println!("peak {} MiB, {connections} connections", peak / MIB);
    assert!(peak < MEMORY + REST, "{} MiB", peak / MIB);
    assert!(connections <= 600.0, "{connections}");
}

/// Check T06: with `--client-ca-file` only clients of that authority are served.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_need_a_certificate_when_a_client_ca_is_set() {
    let clients = Pki::new();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("clients.crt");
    fs::write(&path, clients.authority()).unwrap();
    let flag = format!("--client-ca-file={}", path.display());
    let webhook = Webhook::start(&[&flag]).await;
    let review = review(10);
    for (client, served) in [
        (None, false),
        (Some(webhook.pki.client()), false),
        (Some(clients.client()), true),
    ] {
        let tls = webhook.tls(client.as_ref());
        let response = ask(webhook.listen, Ipv4Addr::LOCALHOST, tls, &review).await;
        let status = response.map(|(status, _)| status).ok();
        assert_eq!(status, served.then_some(200));
    }
}

/// Check T06: a client that stalls loses its connection, and what is too large is refused by its length.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_and_oversized_reviews_are_rejected() {
    let webhook = Webhook::start(&["--read-timeout=500ms", "--max-review=1000"]).await;
    let tls = webhook.tls(None);
    for (length, expected) in [(100, "408"), (1001, "413")] {
        let from = Ipv4Addr::LOCALHOST;
        let mut stream = connect(webhook.listen, from, Arc::clone(&tls))
            .await
            .unwrap();
        send_head(&mut stream, length).await.unwrap();
        let mut response = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut response));
        // A peer that closes without ceremony is fine here.
        let _ = read.await.expect("the connection is closed");
        let response = String::from_utf8_lossy(&response);
        assert!(
            response.starts_with(&format!("HTTP/1.1 {expected}")),
            "{response}"
        );
    }
}

/// Check T07: the end of the certificate that is shown is a metric, also after it was replaced.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificate_expiry_is_a_metric() {
    const METRIC: &str = "hypershift_capi_conversion_certificate_not_after_seconds";
    let webhook = Webhook::start(&[]).await;
    let first = webhook.metric(METRIC).await;
    let year_4096 = 67_090_000_000.0;
    assert!(first > year_4096, "{first}: rcgen's default");
    write(webhook.directory.path(), &webhook.pki.expired_server(NAME));
    eventually("the metric is that of the new certificate", async || {
        (webhook.metric(METRIC).await - 978_307_200.0).abs() < 1.0
    })
    .await;
}

/// An API server does not repeat a review whose connection was closed. So a replica that shuts down is not ready, serves
/// what still arrives, on open connections and on new ones, and closes each connection with a response.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_shuts_down_closes_connections_after_a_response() {
    let mut webhook = Webhook::start(&["--shutdown-delay=1h"]).await;
    let tls = webhook.tls(None);
    let review = review(10);
    let open = async || connect(webhook.listen, Ipv4Addr::LOCALHOST, Arc::clone(&tls)).await;
    let mut used = open().await.unwrap();
    let (head, _) = exchange(&mut used, &review).await.unwrap();
    assert!(!head.contains("connection: close"), "{head}");
    let idle = open().await.unwrap();

    webhook.signal();
    eventually("the webhook is not ready", async || {
        webhook.ask_admin("/readyz").await.0 == 503
    })
    .await;
    for mut stream in [used, idle, open().await.unwrap()] {
        let (head, body) = exchange(&mut stream, &review).await.unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(head.contains("connection: close"), "{head}");
        assert!(body.contains(&format!("{GROUP}/v1beta1")), "{body}");
        let mut rest = Vec::new();
        // A peer that closes without a TLS alert is fine here.
        let _ = stream.read_to_end(&mut rest).await;
        assert!(rest.is_empty(), "the connection is closed");
    }

    // A second signal ends the delay.
    webhook.signal();
    eventually("the webhook ends", async || {
        webhook.listen_is_closed().await
    })
    .await;
    let status = webhook.child.wait().unwrap();
    assert!(status.success(), "{status}");
}

/// Replaces a replica under load on connections that are kept open: no review is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_review_is_lost_while_a_replica_shuts_down() {
    const CLIENTS: usize = 8;
    let webhook = Webhook::start(&["--shutdown-delay=1s"]).await;
    let tls = webhook.tls(None);
    let mut clients = JoinSet::new();
    let served = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    for _ in 0..CLIENTS {
        let (to, tls, served) = (webhook.listen, Arc::clone(&tls), Arc::clone(&served));
        clients.spawn(async move { reviews_until_closed(to, tls, &served).await });
    }
    let load = || served.load(std::sync::atomic::Ordering::Relaxed);
    eventually("reviews are served", async || load() > 10 * CLIENTS).await;
    webhook.signal();
    let lost: Vec<_> = clients.join_all().await.into_iter().flatten().collect();
    assert!(lost.is_empty(), "of {} reviews: {lost:?}", load());
}

/// Sends reviews on a connection, as long as it is kept open; why one was lost.
async fn reviews_until_closed(
    to: SocketAddr,
    tls: Arc<ClientConfig>,
    served: &std::sync::atomic::AtomicUsize,
) -> Option<std::io::Error> {
    let review = review(10);
    let mut stream = match connect(to, Ipv4Addr::LOCALHOST, tls).await {
        Ok(stream) => stream,
        Err(error) => return Some(error),
    };
    loop {
        match exchange(&mut stream, &review).await {
            // The API server opens its next connection to another replica.
            Ok((head, _)) if head.contains("connection: close") => return None,
            Ok(_) => served.fetch_add(1, std::sync::atomic::Ordering::Relaxed),
            Err(error) => return Some(error),
        };
    }
}
