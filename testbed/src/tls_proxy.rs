//! An HTTP proxy on loopback that does not connect to the hosts that its clients ask for: it terminates TLS with a certificate for
//! them, and a fake answers in their place.
//!
//! So programs that know a cloud by its public hosts only run unchanged, as behind the proxy of a company that inspects
//! connections.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::{Context, Result};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::certs::{Authority, Certificate};

/// The longest head of a CONNECT, in bytes.
const LONGEST_HEAD: usize = 4096;

/// The proxy. Dropped, it ends, and with it all its connections.
#[derive(Debug)]
pub struct TlsProxy {
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

/// What connections share.
struct Tunnels<S> {
    hosts: Vec<String>,
    acceptor: TlsAcceptor,
    serve: S,
}

// === impl TlsProxy ===

impl TlsProxy {
    /// Starts it in place of `hosts`, with a certificate of `authority` called `name`. Connections to other hosts are refused.
    /// `serve` gets the others, each with its host.
    pub async fn start<S, F>(
        authority: &Authority,
        name: &str,
        hosts: &[&str],
        serve: S,
    ) -> Result<Self>
    where
        S: Fn(String, TlsStream<TcpStream>) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let hosts: Vec<_> = hosts.iter().map(|&host| host.to_owned()).collect();
        let acceptor = acceptor(&authority.server_at(name, &hosts)?)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .context("cannot listen on loopback")?;
        let address = listener.local_addr()?;
        let tunnels = Tunnels {
            hosts,
            acceptor,
            serve,
        };
        Ok(Self {
            address,
            accepting: tokio::spawn(accept(listener, Arc::new(tunnels))),
        })
    }

    /// Without a slash at its end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for TlsProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

fn acceptor(certificate: &Certificate) -> Result<TlsAcceptor> {
    let path = &certificate.certificate;
    let chain = CertificateDer::from_pem_file(path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let key = PrivateKeyDer::from_pem_file(&certificate.key)
        .with_context(|| format!("cannot read {}", certificate.key.display()))?;
    let config = ServerConfig::builder_with_provider(default_provider().into())
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![chain], key)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

async fn accept<S, F>(listener: TcpListener, tunnels: Arc<Tunnels<S>>)
where
    S: Fn(String, TlsStream<TcpStream>) -> F + Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let tunnels = Arc::clone(&tunnels);
        // A client that disconnects is not an error.
        connections.spawn(async move { drop(tunnels.open(stream).await) });
        while connections.try_join_next().is_some() {}
    }
}

/// Reads the head of a request, byte by byte: what follows it is TLS.
async fn head(stream: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= LONGEST_HEAD {
            return Err(io::Error::other("the head of a CONNECT is longer"));
        }
        head.push(stream.read_u8().await?);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// The host of a tunnel with TLS.
fn host(head: &str) -> Option<&str> {
    let target = head.strip_prefix("CONNECT ")?.split(' ').next()?;
    target.strip_suffix(":443")
}

// === impl Tunnels ===

impl<S, F> Tunnels<S>
where
    S: Fn(String, TlsStream<TcpStream>) -> F,
    F: Future<Output = ()>,
{
    async fn open(&self, mut stream: TcpStream) -> io::Result<()> {
        let head = head(&mut stream).await?;
        let host = host(&head).filter(|host| self.hosts.iter().any(|it| it == host));
        let Some(host) = host else {
            let request = head.lines().next().unwrap_or_default();
            eprintln!("the proxy of a fake cloud does not accept {request:?}");
            let response = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";
            return stream.write_all(response).await;
        };
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
        let stream = self.acceptor.accept(stream).await?;
        (self.serve)(host.to_owned(), stream).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::ServerName;
    use rustls::{ClientConfig, RootCertStore};
    use tokio_rustls::TlsConnector;

    use super::*;

    const HOST: &str = "cloud.example.com";

    /// A proxy whose fake says its host, and a client that trusts it.
    async fn start() -> (TlsProxy, TlsConnector) {
        let directory = tempfile::tempdir().unwrap();
        let authority = Authority::create(directory.path()).unwrap();
        let mut roots = RootCertStore::empty();
        let trusted = CertificateDer::from_pem_file(authority.certificate()).unwrap();
        roots.add(trusted).unwrap();
        let client = ClientConfig::builder_with_provider(default_provider().into())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let serve = |host: String, mut stream: TlsStream<TcpStream>| async move {
            stream.write_all(host.as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
        };
        let proxy = TlsProxy::start(&authority, "cloud", &[HOST], serve).await;
        (proxy.unwrap(), TlsConnector::from(Arc::new(client)))
    }

    /// Asks the proxy for a tunnel, and returns the first line of the response.
    async fn connect(proxy: &TlsProxy, target: &str) -> (TcpStream, String) {
        let mut stream = TcpStream::connect(proxy.address).await.unwrap();
        let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let response = head(&mut stream).await.unwrap();
        (stream, response.lines().next().unwrap().to_owned())
    }

    #[tokio::test]
    async fn a_fake_answers_in_place_of_a_host() {
        let (proxy, connector) = start().await;
        let (stream, response) = connect(&proxy, "cloud.example.com:443").await;
        assert_eq!(response, "HTTP/1.1 200 OK");
        let name = ServerName::try_from(HOST).unwrap();
        let mut stream = connector.connect(name, stream).await.unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        assert_eq!(response, HOST);
    }

    #[tokio::test]
    async fn other_hosts_and_ports_are_refused() {
        let (proxy, _) = start().await;
        for target in ["other.example.com:443", "cloud.example.com:80"] {
            let (_, response) = connect(&proxy, target).await;
            assert_eq!(response, "HTTP/1.1 403 Forbidden", "{target}");
        }
    }
}
