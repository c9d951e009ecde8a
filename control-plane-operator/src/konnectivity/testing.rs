//! What the proxies connect to, on loopback: konnectivity-server with mutual TLS, the API and DNS of the hosted cluster,
//! and servers behind the tunnel.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use hickory_proto::op::{Message, OpCode, ResponseCode};
use hickory_proto::rr::{RData, Record};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::credentials::Files;

/// Address of DNS of the hosted cluster.
pub(crate) const DNS: &str = "172.31.0.10";

/// An authority.
pub(crate) struct Pki(CertifiedIssuer<'static, KeyPair>);

/// What a server of CONNECT does for a target.
#[derive(Debug, Clone)]
pub(crate) enum Behavior {
    /// Connects to this address.
    Connect(SocketAddr),
    /// Responds with this text, and closes the connection.
    Respond(&'static str),
    /// Never responds.
    Silent,
}

/// A server of CONNECT: konnectivity-server, or a proxy.
pub(crate) struct ConnectServer {
    pub(crate) address: SocketAddr,
    requests: watch::Receiver<Vec<String>>,
}

/// A hosted cluster, as the proxies see it.
pub(crate) struct Fixture {
    pub(crate) dir: TempDir,
    pub(crate) pki: Pki,
    pub(crate) konnectivity: ConnectServer,
    api: SocketAddr,
}

/// What a hosted cluster has.
#[derive(Default)]
pub(crate) struct Guest<'a> {
    /// Targets behind the tunnel.
    pub(crate) targets: &'a [(&'a str, Behavior)],
    /// Services, `NAMESPACE/NAME`, and their cluster IPs.
    pub(crate) services: &'a [(&'a str, &'a str)],
    /// DNS names and their addresses.
    pub(crate) names: &'a [(&'a str, &'a [&'a str])],
}

/// The log of a test, at all levels of this crate.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

// === impl Pki ===

impl Pki {
    pub(crate) fn new() -> Self {
        drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// Writes the files of a client.
    pub(crate) fn client_files(&self, dir: &Path) -> Files {
        let files = Files {
            authorities: dir.join("ca.crt"),
            certificate: dir.join("tls.crt"),
            key: dir.join("tls.key"),
        };
        let (certificate, key) = self.leaf("client");
        fs::write(&files.authorities, self.0.pem()).unwrap();
        fs::write(&files.certificate, certificate).unwrap();
        fs::write(&files.key, key).unwrap();
        files
    }

    /// The authority, PEM.
    pub(crate) fn authority(&self) -> String {
        self.0.pem()
    }

    /// The authority, to be trusted.
    pub(crate) fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        roots
    }

    /// The authority, PEM.
    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate for a name and its key, PEM.
    pub(crate) fn leaf(&self, name: &str) -> (String, String) {
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    /// TLS of a server that requires a certificate of `clients`, if there is such an authority.
    pub(crate) fn server(&self, name: &str, clients: Option<&Self>) -> TlsAcceptor {
        let (certificate, key) = self.leaf(name);
        let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
        let builder = ServerConfig::builder();
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(clients) => {
                let verifier = WebPkiClientVerifier::builder(Arc::new(clients.roots()));
                builder.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        let config = builder.with_single_cert(vec![certificate], key).unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}

// === impl ConnectServer ===

impl ConnectServer {
    /// Starts a server; without TLS, it is a plain proxy. Other targets are answered with 502.
    pub(crate) async fn start(tls: Option<TlsAcceptor>, targets: &[(&str, Behavior)]) -> Self {
        let targets: BTreeMap<String, Behavior> = targets
            .iter()
            .map(|(target, behavior)| ((*target).to_owned(), behavior.clone()))
            .collect();
        let targets = Arc::new(targets);
        let (sender, requests) = watch::channel(Vec::new());
        let sender = Arc::new(sender);
        let address = listen(move |stream| {
            let (tls, targets, sender) = (tls.clone(), Arc::clone(&targets), Arc::clone(&sender));
            async move {
                match tls {
                    None => serve_connect(stream, &targets, &sender).await,
                    Some(tls) => {
                        if let Ok(stream) = tls.accept(stream).await {
                            serve_connect(stream, &targets, &sender).await;
                        }
                    }
                }
            }
        })
        .await;
        Self { address, requests }
    }

    /// The heads of the requests so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.borrow().clone()
    }

    /// Waits for a request.
    pub(crate) async fn requested(&self) {
        let mut requests = self.requests.clone();
        let _ = requests
            .wait_for(|requests| !requests.is_empty())
            .await
            .unwrap();
    }
}

async fn serve_connect<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    targets: &BTreeMap<String, Behavior>,
    requests: &watch::Sender<Vec<String>>,
) {
    let Some(head) = head(&mut stream).await else {
        return;
    };
    let target = head.split(' ').nth(1).unwrap_or_default();
    let behavior = targets.get(target).cloned();
    requests.send_modify(|requests| requests.push(head.clone()));
    let bad = "HTTP/1.1 502 Bad Gateway\r\n\r\nno such target";
    match behavior.unwrap_or(Behavior::Respond(bad)) {
        Behavior::Connect(address) => {
            let mut to = TcpStream::connect(address).await.unwrap();
            let connected = b"HTTP/1.1 200 Connection Established\r\n\r\n";
            stream.write_all(connected).await.unwrap();
            join(&mut stream, &mut to).await;
            let _ = stream.shutdown().await;
        }
        Behavior::Respond(text) => {
            let _ = stream.write_all(text.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
        Behavior::Silent => std::future::pending().await,
    }
}

/// Copies until either side ends: konnectivity-server does not forward a half-closed connection.
async fn join<S: AsyncRead + AsyncWrite + Unpin>(client: &mut S, to: &mut TcpStream) {
    let (mut client_reader, mut client_writer) = tokio::io::split(client);
    let (mut reader, mut writer) = to.split();
    tokio::select! {
        _ = tokio::io::copy(&mut client_reader, &mut writer) => {}
        _ = tokio::io::copy(&mut reader, &mut client_writer) => {}
    }
}

/// Reads the head of a request; none if it does not arrive.
pub(crate) async fn head<S: AsyncRead + Unpin>(stream: &mut S) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    String::from_utf8(head).ok()
}

// === impl Fixture ===

impl Fixture {
    /// Starts a hosted cluster.
    pub(crate) async fn start(guest: &Guest<'_>) -> Self {
        let pki = Pki::new();
        let tls = pki.server("127.0.0.1", Some(&pki));
        Self::with(pki, tls, guest).await
    }

    /// Starts a hosted cluster whose konnectivity-server uses this TLS.
    pub(crate) async fn with(pki: Pki, tls: TlsAcceptor, guest: &Guest<'_>) -> Self {
        let dns_server = dns(guest.names).await;
        let mut targets = guest.targets.to_vec();
        let dns_target = format!("{DNS}:53");
        targets.push((dns_target.as_str(), Behavior::Connect(dns_server)));
        let mut services = guest.services.to_vec();
        services.push(("openshift-dns/dns-default", DNS));
        let fixture = Self {
            dir: tempfile::tempdir().unwrap(),
            pki,
            konnectivity: ConnectServer::start(Some(tls), &targets).await,
            api: api(&services).await,
        };
        fixture.pki.client_files(fixture.dir.path());
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "a",
            "contexts": [{ "name": "a", "context": { "cluster": "a", "user": "a" } }],
            "clusters": [{ "name": "a", "cluster": { "server": format!("http://{}", fixture.api) } }],
            "users": [{ "name": "a", "user": {} }],
        });
        let file = fixture.dir.path().join("kubeconfig");
        fs::write(file, kubeconfig.to_string()).unwrap();
        fixture
    }

    /// The command line of a proxy in this cluster.
    pub(crate) fn command_line(&self, subcommand: &str, flags: &[&str]) -> Vec<String> {
        let dir = self.dir.path().display();
        let mut args = vec![
            "control-plane-operator".to_owned(),
            subcommand.to_owned(),
            "run".to_owned(),
            "--konnectivity-hostname=127.0.0.1".to_owned(),
            format!("--konnectivity-port={}", self.konnectivity.address.port()),
            format!("--ca-cert-path={dir}/ca.crt"),
            format!("--tls-cert-path={dir}/tls.crt"),
            format!("--tls-key-path={dir}/tls.key"),
            format!("--kubeconfig={dir}/kubeconfig"),
        ];
        args.extend(flags.iter().map(|flag| (*flag).to_owned()));
        args
    }

    /// The targets that konnectivity-server was asked for, except for DNS.
    pub(crate) fn targets(&self) -> Vec<String> {
        let requests = self.konnectivity.requests();
        let targets = requests.iter().filter_map(|head| head.split(' ').nth(1));
        let targets = targets.filter(|target| !target.ends_with(":53"));
        targets.map(str::to_owned).collect()
    }
}

/// Serves connections in tasks of their own, and returns the address.
pub(crate) async fn listen<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> SocketAddr
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    address
}

/// A server that sends back what it receives.
pub(crate) async fn echo() -> SocketAddr {
    listen(|mut stream| async move {
        let (mut reader, mut writer) = stream.split();
        let _ = tokio::io::copy(&mut reader, &mut writer).await;
    })
    .await
}

/// A server that reads four bytes, and responds with many.
pub(crate) async fn slow_response(response: &'static [u8]) -> SocketAddr {
    listen(move |mut stream| async move {
        if stream.read_u32().await.is_ok() {
            for chunk in response.chunks(1024) {
                tokio::task::yield_now().await;
                let _ = stream.write_all(chunk).await;
            }
        }
    })
    .await
}

/// The API of the hosted cluster: it has Services only.
async fn api(services: &[(&str, &str)]) -> SocketAddr {
    let services: BTreeMap<String, String> = services
        .iter()
        .map(|(id, address)| ((*id).to_owned(), (*address).to_owned()))
        .collect();
    let services = Arc::new(services);
    listen(move |stream| {
        let services = Arc::clone(&services);
        async move {
            let service = service_fn(|request: Request<Incoming>| {
                let response = service(&services, request.uri().path());
                async { Ok::<_, Infallible>(response) }
            });
            let serving = Builder::new().serve_connection(TokioIo::new(stream), service);
            let _ = serving.await;
        }
    })
    .await
}

fn service(services: &BTreeMap<String, String>, path: &str) -> Response<Full<Bytes>> {
    let id = path
        .strip_prefix("/api/v1/namespaces/")
        .unwrap_or_default()
        .replace("/services/", "/");
    let found = services.get(&id);
    let (status, object) = match found {
        Some(address) => (
            StatusCode::OK,
            json!({ "apiVersion": "v1", "kind": "Service", "spec": { "clusterIP": address } }),
        ),
        None => (
            StatusCode::NOT_FOUND,
            json!({ "apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404 }),
        ),
    };
    let mut response = Response::new(Full::new(Bytes::from(object.to_string())));
    *response.status_mut() = status;
    response
}

/// DNS over TCP.
async fn dns(names: &[(&str, &[&str])]) -> SocketAddr {
    let names: BTreeMap<String, Vec<IpAddr>> = names
        .iter()
        .map(|(name, addresses)| {
            let addresses = addresses.iter().map(|address| address.parse().unwrap());
            (format!("{name}."), addresses.collect())
        })
        .collect();
    let names = Arc::new(names);
    listen(move |mut stream| {
        let names = Arc::clone(&names);
        async move {
            while let Ok(length) = stream.read_u16().await {
                let mut query = vec![0; usize::from(length)];
                stream.read_exact(&mut query).await.unwrap();
                let response = answer(&names, &Message::from_vec(&query).unwrap());
                let bytes = response.to_vec().unwrap();
                let length = u16::try_from(bytes.len()).unwrap();
                let _ = stream.write_all(&length.to_be_bytes()).await;
                let _ = stream.write_all(&bytes).await;
            }
        }
    })
    .await
}

fn answer(names: &BTreeMap<String, Vec<IpAddr>>, query: &Message) -> Message {
    let mut response = Message::response(query.metadata.id, OpCode::Query);
    let asked = &query.queries[0];
    let Some(addresses) = names.get(&asked.name().to_string()) else {
        response.metadata.response_code = ResponseCode::NXDomain;
        return response;
    };
    for address in addresses {
        let data = match *address {
            IpAddr::V4(address) => RData::A(address.into()),
            IpAddr::V6(address) => RData::AAAA(address.into()),
        };
        if data.record_type() == asked.query_type() {
            response.add_answer(Record::from_rdata(asked.name().clone(), 30, data));
        }
    }
    response
}

// === impl Log ===

impl Log {
    /// Collects the log of this thread while the guard exists.
    pub(crate) fn collect() -> (Self, tracing::subscriber::DefaultGuard) {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
