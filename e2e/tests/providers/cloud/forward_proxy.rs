//! An HTTP proxy on loopback for clients that reach their cloud only at its public hosts. It does not connect to them:
//! it terminates TLS with a certificate for their names, and an API answers.

use std::io;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use testbed::certs::Certificate;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

use super::server::{self, Api};

/// The proxy; dropped, it ends.
#[derive(Debug)]
pub(super) struct ForwardProxy {
    url: String,
    accepting: JoinHandle<()>,
}

/// What is in place of the hosts.
struct Replacement<A> {
    hosts: &'static [&'static str],
    acceptor: TlsAcceptor,
    api: Arc<Mutex<A>>,
}

// === impl ForwardProxy ===

impl ForwardProxy {
    /// Starts it. Connections to other hosts are refused.
    pub(super) async fn start(
        api: impl Api,
        hosts: &'static [&'static str],
        tls: ServerConfig,
    ) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .context("cannot listen on loopback")?;
        let url = format!("http://{}", listener.local_addr()?);
        let replacement = Arc::new(Replacement {
            hosts,
            acceptor: TlsAcceptor::from(Arc::new(tls)),
            api: Arc::new(Mutex::new(api)),
        });
        Ok(Self {
            url,
            accepting: tokio::spawn(accept(listener, replacement)),
        })
    }

    /// Without a slash at its end.
    pub(super) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for ForwardProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// TLS of a server with this certificate.
pub(super) fn tls(certificate: &Certificate) -> Result<ServerConfig> {
    let path = &certificate.certificate;
    let chain: Vec<_> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let key = PrivateKeyDer::from_pem_file(&certificate.key)
        .with_context(|| format!("cannot read {}", certificate.key.display()))?;
    config(chain, key)
}

fn config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ServerConfig> {
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    Ok(config)
}

async fn accept<A: Api>(listener: TcpListener, replacement: Arc<Replacement<A>>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let replacement = Arc::clone(&replacement);
        connections.spawn(async move {
            // A client that disconnects is not an error.
            drop(replacement.tunnel(BufReader::new(stream)).await);
        });
        while connections.try_join_next().is_some() {}
    }
}

// === impl Replacement ===

impl<A: Api> Replacement<A> {
    async fn tunnel(&self, mut stream: BufReader<TcpStream>) -> io::Result<()> {
        let request = request_line(&mut stream).await?;
        let is_replaced = host(&request).is_some_and(|host| self.hosts.contains(&host));
        if !is_replaced {
            eprintln!("the fake cloud does not accept {request:?}");
            let response = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";
            return stream.write_all(response).await;
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
        let stream = self.acceptor.accept(stream).await?;
        server::serve(stream, Arc::clone(&self.api)).await;
        Ok(())
    }
}

/// Reads the head of a request, whose fields are of no interest.
async fn request_line(stream: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    let mut field = String::new();
    while stream.read_line(&mut field).await? > "\r\n".len() {
        field.clear();
    }
    Ok(line)
}

/// The host of a tunnel with TLS.
fn host(request: &str) -> Option<&str> {
    let target = request.strip_prefix("CONNECT ")?.split(' ').next()?;
    target.strip_suffix(":443")
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::{PrivatePkcs8KeyDer, ServerName};
    use rustls::{ClientConfig, RootCertStore};
    use serde_json::{Value, json};
    use tokio::io::AsyncReadExt;
    use tokio_rustls::TlsConnector;

    use super::*;
    use crate::providers::cloud::server::Answer;

    const HOST: &str = "cloud.example.com";

    struct Cloud;

    impl Api for Cloud {
        fn answer(&mut self, method: &str, path: &[&str], _body: &Value) -> Option<Answer> {
            match (method, path) {
                ("GET", ["things", name]) => Some(Answer::ok(json!({ "name": name }))),
                _ => None,
            }
        }
    }

    async fn start() -> (ForwardProxy, TlsConnector) {
        let issued = rcgen::generate_simple_self_signed([HOST.to_owned()]).unwrap();
        let certificate = issued.cert.der().clone();
        let key = PrivatePkcs8KeyDer::from(issued.signing_key.serialize_der());
        let server = config(vec![certificate.clone()], key.into()).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(certificate).unwrap();
        let client = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let proxy = ForwardProxy::start(Cloud, &[HOST], server).await.unwrap();
        (proxy, TlsConnector::from(Arc::new(client)))
    }

    /// Asks the proxy for a tunnel, and returns the first line of the response.
    async fn connect(proxy: &ForwardProxy, target: &str) -> (BufReader<TcpStream>, String) {
        let address = proxy.url().strip_prefix("http://").unwrap();
        let stream = TcpStream::connect(address).await.unwrap();
        let mut stream = BufReader::new(stream);
        let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let response = request_line(&mut stream).await.unwrap();
        (stream, response)
    }

    #[tokio::test]
    async fn an_api_answers_in_place_of_a_host() {
        let (proxy, connector) = start().await;
        let (stream, response) = connect(&proxy, "cloud.example.com:443").await;
        assert_eq!(response, "HTTP/1.1 200 OK\r\n");
        let name = ServerName::try_from(HOST).unwrap();
        let mut stream = connector.connect(name, stream).await.unwrap();
        let request =
            format!("GET /things/a HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut response = Vec::new();
        // How the connection ends does not matter.
        drop(stream.read_to_end(&mut response).await);
        let response = String::from_utf8(response).unwrap();
        assert!(response.starts_with("HTTP/1.1 200 OK"), "{response}");
        assert!(response.ends_with(r#"{"name":"a"}"#), "{response}");
    }

    #[tokio::test]
    async fn other_hosts_and_ports_are_refused() {
        let (proxy, _) = start().await;
        for target in ["other.example.com:443", "cloud.example.com:80"] {
            let (_, response) = connect(&proxy, target).await;
            assert_eq!(response, "HTTP/1.1 403 Forbidden\r\n", "{target}");
        }
    }
}
