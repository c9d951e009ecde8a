//! `machine-config-server bootstrap`: serves the Ignition document of a pool at `/config/POOL`, over HTTPS and over HTTP.
//!
//! It adds two files to the rendered MachineConfig: the kubeconfig with which a node requests its certificate, and what of
//! the MachineConfig is not Ignition, for the daemon of the node.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use pod_tools::tls;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::Result;
use crate::flags::{Flag, Flags, optional, required};
use crate::ignition::{VERSION, file};
use crate::manifests::{document, object, read, text};
use crate::merge::merge;

const FLAGS: [Flag; 7] = [
    required("bootstrap-kubeconfig"),
    required("cert"),
    required("insecure-port"),
    required("key"),
    optional("payload-version"),
    required("secure-port"),
    required("server-basedir"),
];
/// The kubeconfig of a node.
const KUBECONFIG: &str = "/etc/kubernetes/kubeconfig";
/// What of a MachineConfig is not Ignition.
const ENCAPSULATED: &str = "/etc/ignition-machine-config-encapsulated.json";
/// What clients of Ignition ask for.
const MEDIA_TYPE: &str = "application/vnd.coreos.ignition+json";
/// The lowest minor version of Ignition 3 that is served.
const MINOR: u32 = 2;
/// For the start of a connection.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is served.
#[derive(Debug)]
pub(crate) struct Server {
    /// The destination of the controller.
    directory: PathBuf,
    kubeconfig: String,
}

/// Runs the command until SIGTERM.
pub(crate) async fn bootstrap(args: impl IntoIterator<Item = String>) -> Result<()> {
    let flags = parse(args)?;
    let server = Arc::new(Server::new(&flags)?);
    tls::install_provider();
    let certificate = tls::from_files(&flags.path("cert")?, &flags.path("key")?)
        .map_err(|error| error.to_string())?;
    let insecure = listen(flags.text("insecure-port")?).await?;
    let secure = listen(flags.text("secure-port")?).await?;
    let mut terminate = signal(SignalKind::terminate()).map_err(|error| error.to_string())?;
    println!(
        "machine-config-server: serving {}",
        server.directory.display()
    );
    let outcome = tokio::select! {
        outcome = Arc::clone(&server).plain(insecure) => outcome,
        outcome = server.encrypted(secure, TlsAcceptor::from(certificate)) => outcome,
        _ = terminate.recv() => Ok(()),
    };
    outcome.map_err(|error| format!("failed to accept a connection: {error}"))
}

/// Reads the command line.
pub(crate) fn parse(args: impl IntoIterator<Item = String>) -> Result<Flags> {
    Flags::parse(&FLAGS, args)
}

async fn listen(port: &str) -> Result<TcpListener> {
    let number: u16 = port
        .parse()
        .map_err(|_| format!("{port:?} is not a port: use a number up to 65535"))?;
    let listener = TcpListener::bind(("0.0.0.0", number)).await;
    listener.map_err(|error| format!("failed to listen at port {port}: {error}"))
}

// === impl Server ===

impl Server {
    pub(crate) fn new(flags: &Flags) -> Result<Self> {
        let path = flags.path("bootstrap-kubeconfig")?;
        object(&path, "Config")?;
        let directory = flags.path("server-basedir")?;
        if !directory.is_dir() {
            return Err(format!("{}: not a directory", directory.display()));
        }
        Ok(Self {
            kubeconfig: read(&path)?,
            directory,
        })
    }

    async fn plain(self: Arc<Self>, listener: TcpListener) -> std::io::Result<()> {
        loop {
            let (stream, _) = listener.accept().await?;
            tokio::spawn(Arc::clone(&self).connection(stream));
        }
    }

    async fn encrypted(
        self: Arc<Self>,
        listener: TcpListener,
        acceptor: TlsAcceptor,
    ) -> std::io::Result<()> {
        loop {
            let (stream, _) = listener.accept().await?;
            let (server, acceptor) = (Arc::clone(&self), acceptor.clone());
            tokio::spawn(async move {
                // A client that does not trust the certificate concerns no other one.
                if let Ok(Ok(stream)) = timeout(PATIENCE, acceptor.accept(stream)).await {
                    server.connection(stream).await;
                }
            });
        }
    }

    async fn connection<S>(self: Arc<Self>, stream: S)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let service = service_fn(|request: Request<Incoming>| {
            let server = Arc::clone(&self);
            async move { Ok::<_, Infallible>(server.respond(&request)) }
        });
        let serving = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(PATIENCE)
            .serve_connection(TokioIo::new(stream), service);
        // The client has disconnected.
        drop(serving.await);
    }

    fn respond<B>(&self, request: &Request<B>) -> Response<Full<Bytes>> {
        let path = request.uri().path();
        let (status, body) = self.answer(request.method(), path, request.headers());
        println!(
            "machine-config-server: {} {path} {}",
            request.method(),
            status.as_u16()
        );
        let mut response = Response::new(Full::new(Bytes::from(body)));
        *response.status_mut() = status;
        let kind = if status.is_success() {
            "application/json"
        } else {
            "text/plain"
        };
        let kind = HeaderValue::from_static(kind);
        response.headers_mut().insert(CONTENT_TYPE, kind);
        response
    }

    fn answer(&self, method: &Method, path: &str, headers: &HeaderMap) -> (StatusCode, String) {
        if !matches!(*method, Method::GET | Method::HEAD) {
            return (StatusCode::METHOD_NOT_ALLOWED, String::new());
        }
        if path == "/healthz" {
            return (StatusCode::NO_CONTENT, String::new());
        }
        let pool = path.strip_prefix("/config/").unwrap_or_default();
        if pool.is_empty() || pool.contains('/') {
            return (StatusCode::NOT_FOUND, format!("{path}: use /config/POOL\n"));
        }
        let accepted = headers.get(ACCEPT).and_then(|it| it.to_str().ok());
        if !accepts(accepted.unwrap_or_default()) {
            let problem = format!("use Accept: {MEDIA_TYPE};version={VERSION}\n");
            return (StatusCode::BAD_REQUEST, problem);
        }
        match self.config(pool) {
            Ok(config) => (StatusCode::OK, config.to_string()),
            Err(error) => (StatusCode::NOT_FOUND, format!("{error}\n")),
        }
    }

    /// The Ignition document of a pool.
    pub(crate) fn config(&self, pool: &str) -> Result<Value> {
        let path = |kind: &str, name: &str| self.directory.join(kind).join(format!("{name}.yaml"));
        let pool = document(&path("machine-pools", pool))?;
        let name = text(&pool, "/status/configuration/name");
        let mut rendered = document(&path("machine-configs", name))?;
        let mut config = rendered["spec"]["config"].take();
        // The daemon finds the same document in the files that Ignition has written.
        rendered["spec"]["config"] = json!({ "ignition": { "version": VERSION } });
        let files = [
            file(KUBECONFIG, 0o600, &self.kubeconfig),
            file(ENCAPSULATED, 0o644, &rendered.to_string()),
        ];
        merge(&mut config, json!({ "storage": { "files": files } }));
        Ok(config)
    }
}

/// Whether a header of accepted types names a version of Ignition that the document has.
///
/// The real server also converts to earlier versions, for machines that hosted clusters do not have.
fn accepts(header: &str) -> bool {
    header.split(',').any(|entry| {
        let mut parts = entry.split(';').map(str::trim);
        let is_ignition = parts.next() == Some(MEDIA_TYPE);
        let mut versions = parts.filter_map(|part| part.strip_prefix("version=3."));
        let minor = versions.next().and_then(|rest| rest.split('.').next());
        let minor = minor.and_then(|minor| minor.parse::<u32>().ok());
        is_ignition && minor.is_some_and(|minor| minor >= MINOR)
    })
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;
    use crate::ignition::content;
    use crate::manifests::write;

    const IGNITION: &str = "application/vnd.coreos.ignition+json;version=3.2.0, */*;q=0.1";

    fn server(directory: &std::path::Path) -> Server {
        let rendered = json!({
            "kind": "MachineConfig",
            "metadata": { "name": "rendered-master-1" },
            "spec": {
                "config": { "ignition": { "version": VERSION } },
                "kernelArguments": ["nosmt"],
            },
        });
        let pool = json!({ "status": { "configuration": { "name": "rendered-master-1" } } });
        for (path, object) in [
            ("machine-configs/rendered-master-1.yaml", rendered),
            ("machine-pools/master.yaml", pool),
        ] {
            write(&directory.join(path), &object.to_string()).unwrap();
        }
        Server {
            directory: directory.to_owned(),
            kubeconfig: "kind: Config\n".to_owned(),
        }
    }

    #[test]
    fn versions_from_3_2_are_served() {
        for (header, expected) in [
            (IGNITION, true),
            (
                "*/*;q=0.1, application/vnd.coreos.ignition+json; version=3.5.0",
                true,
            ),
            ("application/vnd.coreos.ignition+json;version=3.1.0", false),
            ("application/vnd.coreos.ignition+json;version=2.2.0", false),
            ("application/vnd.coreos.ignition+json", false),
            ("application/json;version=3.2.0", false),
            ("*/*", false),
            ("", false),
        ] {
            assert_eq!(accepts(header), expected, "{header}");
        }
    }

    #[test]
    fn requests_have_their_status() {
        let directory = tempfile::tempdir().unwrap();
        let server = server(directory.path());
        for (method, path, accept, expected) in [
            (Method::GET, "/config/master", IGNITION, 200_u16),
            (Method::HEAD, "/config/master", IGNITION, 200),
            (Method::GET, "/config/master", "*/*", 400),
            (Method::POST, "/config/master", IGNITION, 405),
            (Method::GET, "/config/worker", IGNITION, 404),
            (Method::GET, "/config/a/master", IGNITION, 404),
            (Method::GET, "/config/", IGNITION, 404),
            (Method::GET, "/", IGNITION, 404),
            (Method::GET, "/healthz", "", 204),
        ] {
            let request = Request::builder().method(&method).uri(path);
            let request = request.header(ACCEPT, accept).body(()).unwrap();
            let response = server.respond(&request);
            assert_eq!(response.status(), expected, "{method} {path} {accept}");
        }
    }

    #[test]
    fn the_node_gets_its_kubeconfig_and_what_is_not_ignition() {
        let directory = tempfile::tempdir().unwrap();
        let config = server(directory.path()).config("master").unwrap();
        let files = config["storage"]["files"].as_array().unwrap();
        let [kubeconfig, encapsulated] = &**files else {
            panic!("{files:?}");
        };
        assert_eq!(kubeconfig["path"], KUBECONFIG);
        assert_eq!(kubeconfig["mode"], 0o600);
        assert_eq!(content(kubeconfig).unwrap(), "kind: Config\n");
        assert_eq!(encapsulated["path"], ENCAPSULATED);
        let content = content(encapsulated).unwrap();
        let content: Value = serde_json::from_str(&content).unwrap();
        let spec = json!({
            "config": { "ignition": { "version": VERSION } },
            "kernelArguments": ["nosmt"],
        });
        assert_eq!(content["spec"], spec);
        assert_eq!(content["metadata"]["name"], "rendered-master-1");
    }

    #[tokio::test]
    async fn a_client_without_tls_is_answered() {
        let directory = tempfile::tempdir().unwrap();
        let server = Arc::new(server(directory.path()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(server.plain(listener));
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!(
            "GET /config/master HTTP/1.1\r\nHost: a\r\nAccept: {IGNITION}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        serving.abort();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        let body: Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["ignition"]["version"], VERSION);
    }

    #[tokio::test]
    async fn ports_are_numbers() {
        let error = listen("70000").await.unwrap_err();
        assert!(error.starts_with("\"70000\" is not a port"), "{error}");
    }
}
