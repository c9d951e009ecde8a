//! Metrics on their way from pods to the guest's Prometheus, on loopback: all connections have TLS, and each server that
//! requires a certificate of its client verifies it.
//!
//! ```text
//! Prometheus ──> haproxy of the guest ──> metrics-proxy ──> endpoint-resolver
//!                                               └──> pods
//! ```

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use k8s_openapi::api::core::v1::Pod;
use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::json;
use support::shutdown::{self, Signal};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;

use super::*;
use crate::endpoint_resolver;
use crate::hosted_cluster_config::resources::desired::forwarder_configuration;
use crate::konnectivity::testing::{Pki, head};

const HOST: &str = "metrics-proxy.apps.example.com";
const METRICS: &str =
    "# TYPE a_total counter\na_total 1\napiserver_request_total{code=\"200\"} 2\n";

/// The servers, while this exists.
struct Control {
    directory: TempDir,
    /// Signs servers and clients within the control plane.
    inner: Pki,
    /// Signs the serving certificate of metrics-proxy.
    serving: Pki,
    /// Signs clients of the guest.
    clients: Pki,
    address: SocketAddr,
    signal: Signal,
}

fn write(directory: &Path, name: &str, content: &str) -> PathBuf {
    let path = directory.join(name);
    fs::write(&path, content).unwrap();
    path
}

/// A certificate and its key in files.
fn files(pki: &Pki, name: &str, directory: &Path) -> (PathBuf, PathBuf) {
    let (certificate, key) = pki.leaf(name);
    let file = |kind: &str, content: &str| write(directory, &format!("{name}.{kind}"), content);
    (file("crt", &certificate), file("key", &key))
}

/// A pod that serves metrics to clients of the control plane.
fn serve_pod(listener: TcpListener, pki: &Pki) {
    let tls = pki.server("etcd", Some(pki));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = tls.accept(stream).await else {
                continue;
            };
            if head(&mut stream).await.is_some() {
                let length = METRICS.len();
                let response =
                    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{METRICS}");
                let _ = stream.write_all(response.as_bytes()).await;
            }
        }
    });
}

fn pod(name: &str, ip: &str) -> Pod {
    let pod = json!({
        "metadata": { "name": name, "namespace": "clusters-dev", "labels": { "app": "etcd" } },
        "status": {
            "phase": "Running", "podIP": ip, "conditions": [{ "type": "Ready", "status": "True" }],
        },
    });
    serde_json::from_value(pod).unwrap()
}

// === impl Control ===

impl Control {
    /// Starts two pods, one that does not respond, and the programs.
    async fn start(set: CollectedMetrics) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (inner, serving, clients) = (Pki::new(), Pki::new(), Pki::new());
        let (path, (signal, drain)) = (directory.path(), shutdown::channel());
        let ca = inner.client_files(path).authorities;
        let first = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = first.local_addr().unwrap().port();
        let second = TcpListener::bind(("127.0.0.2", port)).await.unwrap();
        serve_pod(first, &inner);
        serve_pod(second, &inner);

        let (certificate, key) = files(&inner, "127.0.0.1", path);
        let resolver = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}", resolver.local_addr().unwrap());
        let pods = vec![
            pod("etcd-0", "127.0.0.1"),
            pod("etcd-1", "127.0.0.2"),
            pod("etcd-2", "127.0.0.3"),
        ];
        let pods = Arc::new(endpoint_resolver::of_pods(pods));
        let tls = https::tls(&certificate, &key, None).unwrap();
        tokio::spawn(https::serve(resolver, tls, pods, drain.clone()));

        let config = json!({
            "endpointResolver": { "url": url, "caFile": ca },
            "components": [{
                "name": "kube-apiserver", "selector": { "app": "etcd" }, "metricsPort": port,
                "tlsServerName": "etcd", "caFile": ca, "certFile": path.join("tls.crt"),
                "keyFile": path.join("tls.key"), "metricsJob": "apiserver",
            }],
        });
        let config = write(path, "config.yaml", &config.to_string());
        let config = Config::read(&config).unwrap();
        let (certificate, key) = files(&serving, HOST, path);
        let authority = write(path, "clients.crt", &clients.authority());
        let tls = https::tls(&certificate, &key, Some(&authority)).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let proxy = Proxy {
            resolver: Resolver::new(&config.endpoint_resolver).unwrap(),
            config,
            namespace: "clusters-dev".to_owned(),
            set,
        };
        tokio::spawn(https::serve(listener, tls, Arc::new(proxy), drain));
        Self {
            directory,
            inner,
            serving,
            clients,
            address,
            signal,
        }
    }

    /// Scrapes as Prometheus does, with a certificate of an authority. None if the connection is refused.
    async fn scrape(&self, at: SocketAddr, client: Option<&Pki>, path: &str) -> Option<String> {
        let config = ClientConfig::builder().with_root_certificates(self.serving.roots());
        let config = match client {
            None => config.with_no_client_auth(),
            Some(pki) => {
                let (certificate, key) = pki.leaf("prometheus");
                let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
                config
                    .with_client_auth_cert(vec![certificate], key)
                    .unwrap()
            }
        };
        let stream = TcpStream::connect(at).await.ok()?;
        let name = ServerName::try_from(HOST).unwrap();
        let connecting = TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await;
        let mut stream = connecting.ok()?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut response = String::new();
        stream.read_to_string(&mut response).await.ok()?;
        Some(response)
    }
}

/// A process that is killed when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn status(response: Option<&String>) -> Option<&str> {
    response?.split(' ').nth(1)
}

#[tokio::test]
async fn authenticated_clients_get_the_metrics_of_all_pods() {
    let control = Control::start(CollectedMetrics::Telemetry).await;
    let scrape = async |client, path| control.scrape(control.address, client, path).await;
    let path = "/metrics/kube-apiserver";
    let response = scrape(Some(&control.clients), path).await.unwrap();
    for (pod, ip) in [("etcd-0", "127.0.0.1"), ("etcd-1", "127.0.0.2")] {
        let sample = format!(
            "apiserver_request_total{{code=\"200\",pod=\"{pod}\",namespace=\"clusters-dev\",job=\"apiserver\",\
             service=\"kube-apiserver\",endpoint=\"metrics\",instance=\"{ip}:"
        );
        assert!(response.contains(&sample), "{sample}\n{response}");
    }
    let failed =
        "metrics_aggregator_pod_scrape_errors_total{component=\"kube-apiserver\",pod=\"etcd-2\"} 1";
    assert!(response.contains(failed), "{response}");
    // It is not in the metrics set Telemetry.
    assert!(!response.contains("a_total{"), "{response}");

    for (name, client, path, expected) in [
        ("no certificate", None, path, Some("401")),
        ("probes", None, "/healthz", Some("200")),
        (
            "unknown",
            Some(&control.clients),
            "/metrics/other",
            Some("404"),
        ),
        // An authority of the control plane does not authenticate clients of the guest.
        ("another authority", Some(&control.inner), path, None),
        ("the serving authority", Some(&control.serving), path, None),
    ] {
        let response = scrape(client, path).await;
        assert_eq!(status(response.as_ref()), expected, "{name}");
    }
}

#[tokio::test]
async fn requests_are_answered_while_the_server_drains() {
    let control = Control::start(CollectedMetrics::All).await;
    let response = control.scrape(
        control.address,
        Some(&control.clients),
        "/metrics/kube-apiserver",
    );
    let all = response.await.unwrap();
    assert!(all.contains("a_total{pod=\"etcd-0\""), "{all}");
    // A connection that is open and idle does not delay the shutdown.
    let idle = TcpStream::connect(control.address).await.unwrap();
    control.signal.begin();
    drop(idle);
    control.signal.all_ended().await;
    assert!(TcpStream::connect(control.address).await.is_err());
}

/// The guest's haproxy passes TLS through, so that the client authenticates to metrics-proxy.
#[tokio::test]
async fn haproxy_of_the_guest_passes_client_certificates_through() {
    let control = Control::start(CollectedMetrics::All).await;
    // At 127.0.0.1, an attempt to connect before haproxy listens could be connected to itself.
    let port = free_port(IpAddr::from([127, 0, 0, 2])).await;
    let config = forwarder_configuration(HOST);
    // Only the addresses differ from those in the cluster.
    let config = config
        .replace("bind *:9443", &format!("bind 127.0.0.2:{port}"))
        .replace(&format!("{HOST}:443"), &control.address.to_string());
    assert!(config.contains(&control.address.to_string()), "{config}");
    let file = write(control.directory.path(), "haproxy.cfg", &config);
    let process = Command::new("haproxy")
        .args(["-db", "-f"])
        .arg(file)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(process) = process else {
        eprintln!("skipped: haproxy is not installed");
        return;
    };
    let mut process = Running(process);
    let forwarder = SocketAddr::from(([127, 0, 0, 2], port));
    while TcpStream::connect(forwarder).await.is_err() {
        assert_eq!(process.0.try_wait().unwrap(), None, "haproxy has ended");
        tokio::task::yield_now().await;
    }
    let scrape = async |client| {
        control
            .scrape(forwarder, client, "/metrics/kube-apiserver")
            .await
    };
    let response = scrape(Some(&control.clients)).await.unwrap();
    assert!(response.contains("a_total{pod=\"etcd-1\""), "{response}");
    assert_eq!(status(scrape(None).await.as_ref()), Some("401"));
}

/// A port that no process listens on.
async fn free_port(ip: IpAddr) -> u16 {
    let listener = TcpListener::bind((ip, 0)).await.unwrap();
    listener.local_addr().unwrap().port()
}
