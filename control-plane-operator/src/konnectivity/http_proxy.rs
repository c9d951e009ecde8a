//! Connections through an HTTP proxy, over a stream to the proxy that is open already.

use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

use super::connect::{self, Request};
use super::proxies::{ProxyUrl, Scheme};
use super::stream::{BoxedIo, server_name, within};
use super::target::Target;

/// Timeout of the TLS handshake, and of the answer to CONNECT.
const TIMEOUT: Duration = Duration::from_mins(1);
/// Where authorities of the hosted cluster are mounted, in addition to those of the image: `additionalTrustBundle`, and
/// `trustedCA` of Proxy `cluster`.
const MOUNTED: [&str; 2] = [
    "/etc/pki/tls/certs/additional-ca-bundle.pem",
    "/etc/pki/tls/certs/proxy-trusted-ca.pem",
];

/// TLS with proxies. Authorities are read once, when they are first needed.
#[derive(Debug, Default)]
pub(crate) struct ProxyTls(OnceLock<Arc<ClientConfig>>);

/// A connection through a proxy failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// TLS with the proxy.
    #[error(
        "failed to establish TLS with proxy {proxy}: check its certificate, and add its authority to the trusted CA of \
         the proxy configuration"
    )]
    Tls { proxy: String, source: io::Error },
    /// From the proxy to the target.
    #[error("failed to connect to {target} through proxy {proxy}: {}", hint(.source))]
    Request {
        target: Target,
        proxy: String,
        source: connect::Error,
    },
}

fn hint(error: &connect::Error) -> &'static str {
    match error.status() {
        Some(407) => "check the user name and the password in its URL",
        Some(403) => "check that the proxy allows the target, or exclude it with NO_PROXY",
        Some(_) => "check that the target is reachable from the proxy",
        None => "check that the URL is that of an HTTP proxy",
    }
}

// === impl ProxyTls ===

impl ProxyTls {
    /// Establishes TLS, if the proxy uses it.
    pub(crate) async fn wrap(&self, stream: BoxedIo, proxy: &ProxyUrl) -> Result<BoxedIo, Error> {
        if proxy.scheme == Scheme::Http {
            return Ok(stream);
        }
        let handshake = async {
            let name = server_name(&proxy.target.host)?;
            TlsConnector::from(self.config())
                .connect(name, stream)
                .await
        };
        match within(TIMEOUT, handshake).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(source) => Err(Error::Tls {
                proxy: proxy.to_string(),
                source,
            }),
        }
    }

    /// Connects to the target with CONNECT.
    pub(crate) async fn connect(
        &self,
        stream: BoxedIo,
        proxy: &ProxyUrl,
        target: &Target,
    ) -> Result<BoxedIo, Error> {
        let mut stream = self.wrap(stream, proxy).await?;
        let request = Request {
            target: target.to_string(),
            host: target.to_string(),
            authorization: proxy.authorization.clone(),
        };
        let connecting = connect::connect(&mut stream, &request);
        match within(TIMEOUT, connecting).await {
            Ok(()) => Ok(stream),
            Err(source) => Err(Error::Request {
                target: target.clone(),
                proxy: proxy.to_string(),
                source,
            }),
        }
    }

    fn config(&self) -> Arc<ClientConfig> {
        Arc::clone(self.0.get_or_init(|| config(roots())))
    }

    /// TLS that trusts these authorities.
    pub(crate) fn trusting(roots: RootCertStore) -> Self {
        Self(OnceLock::from(config(roots)))
    }
}

fn config(roots: RootCertStore) -> Arc<ClientConfig> {
    Arc::new(
        ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth(),
    )
}

fn roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    for path in MOUNTED {
        roots.add_parsable_certificates(certificates(Path::new(path)));
    }
    roots
}

/// The certificates of a file that may be missing.
fn certificates(path: &Path) -> Vec<CertificateDer<'static>> {
    let found = CertificateDer::pem_file_iter(path);
    found.into_iter().flatten().filter_map(Result::ok).collect()
}
