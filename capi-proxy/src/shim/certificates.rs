//! The serving certificate and the trusted CAs, reloaded when their files change. Invalid files are ignored, and the last
//! valid ones stay in use.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::sync::watch;

use super::expiry;
use super::metrics::Metrics;

/// Interval at which files are checked.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The files.
#[derive(Debug, Clone)]
pub(super) struct Files {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
    pub(super) authority: PathBuf,
    /// CAs of clients, if clients need a certificate.
    pub(super) clients: Option<PathBuf>,
}

/// The TLS configurations of both sides.
#[derive(Debug, Clone)]
pub(super) struct Tls {
    pub(super) server: Arc<ServerConfig>,
    pub(super) client: Arc<ClientConfig>,
    /// Expiry of the serving certificate, in Unix time.
    not_after: Option<i64>,
}

/// The latest [`Tls`].
pub(super) type Latest = watch::Receiver<Tls>;

/// A file is not usable. The error contains no part of a key.
#[derive(Debug, thiserror::Error)]
#[error("failed to use {path}: {problem}", path = .path.display())]
pub(super) struct Unusable {
    path: PathBuf,
    problem: String,
}

#[derive(PartialEq, Eq)]
struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
    authority: Vec<u8>,
    clients: Option<Vec<u8>>,
}

/// Loads the files, and reloads them when they change.
pub(super) fn load(files: Files, metrics: Metrics) -> Result<Latest, Unusable> {
    let contents = files.read()?;
    let tls = contents.tls(&files)?;
    metrics.set_certificate_expiry(tls.not_after);
    let (sender, receiver) = watch::channel(tls);
    tokio::spawn(watch_files(files, contents, sender, metrics));
    Ok(receiver)
}

async fn watch_files(
    files: Files,
    mut known: Contents,
    sender: watch::Sender<Tls>,
    metrics: Metrics,
) {
    let mut reported = String::new();
    while !sender.is_closed() {
        tokio::time::sleep(POLL_INTERVAL).await;
        match files.changed(&known) {
            Ok(None) => {}
            Ok(Some((contents, tls))) => {
                known = contents;
                reported.clear();
                metrics.set_certificate_expiry(tls.not_after);
                sender.send_replace(tls);
                tracing::info!("Reloaded certificates");
            }
            Err(error) => {
                let error = error.to_string();
                if error != reported {
                    tracing::warn!(error, "Failed to reload certificates");
                    reported = error;
                }
            }
        }
    }
}

// === impl Files ===

impl Files {
    fn read(&self) -> Result<Contents, Unusable> {
        Ok(Contents {
            certificate: read(&self.certificate)?,
            key: read(&self.key)?,
            authority: read(&self.authority)?,
            clients: self.clients.as_deref().map(read).transpose()?,
        })
    }

    fn changed(&self, known: &Contents) -> Result<Option<(Contents, Tls)>, Unusable> {
        let contents = self.read()?;
        if contents == *known {
            return Ok(None);
        }
        let tls = contents.tls(self)?;
        Ok(Some((contents, tls)))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Unusable> {
    fs::read(path).map_err(|error| unusable(path, error))
}

fn unusable(path: &Path, problem: impl fmt::Display) -> Unusable {
    Unusable {
        path: path.to_owned(),
        problem: problem.to_string(),
    }
}

// === impl Contents ===

impl Contents {
    fn tls(&self, files: &Files) -> Result<Tls, Unusable> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        Ok(Tls {
            server: Arc::new(self.server(files, Arc::clone(&provider))?),
            client: Arc::new(self.client(files, provider)?),
            not_after: certificates(&self.certificate, &files.certificate)?
                .first()
                .and_then(expiry::not_after),
        })
    }

    fn server(
        &self,
        files: &Files,
        provider: Arc<CryptoProvider>,
    ) -> Result<ServerConfig, Unusable> {
        let chain = certificates(&self.certificate, &files.certificate)?;
        let key = PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|_| unusable(&files.key, "the file contains no private key"))?;
        let clients = self.client_verifier(files, &provider)?;
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(&files.certificate, error))?;
        let config = match clients {
            Some(verifier) => config.with_client_cert_verifier(verifier),
            None => config.with_no_client_auth(),
        };
        let mut config = config
            .with_single_cert(chain, key)
            .map_err(|error| unusable(&files.certificate, error))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }

    fn client_verifier(
        &self,
        files: &Files,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Option<Arc<dyn ClientCertVerifier>>, Unusable> {
        let (Some(pem), Some(path)) = (&self.clients, &files.clients) else {
            return Ok(None);
        };
        let roots = Arc::new(roots(pem, path)?);
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(provider));
        verifier
            .build()
            .map(Some)
            .map_err(|error| unusable(path, error))
    }

    fn client(
        &self,
        files: &Files,
        provider: Arc<CryptoProvider>,
    ) -> Result<ClientConfig, Unusable> {
        let roots = roots(&self.authority, &files.authority)?;
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(&files.authority, error))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(config)
    }
}

fn roots(pem: &[u8], path: &Path) -> Result<RootCertStore, Unusable> {
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(certificates(pem, path)?);
    if added == 0 {
        return Err(unusable(path, "the file contains no certificate"));
    }
    Ok(roots)
}

fn certificates(pem: &[u8], path: &Path) -> Result<Vec<CertificateDer<'static>>, Unusable> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match certificates {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) => Err(unusable(path, "the file contains no certificate")),
        Err(error) => Err(unusable(path, error)),
    }
}
