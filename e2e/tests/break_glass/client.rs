//! Clients with certificates, among them some that never stop asking.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use kube::config::AuthInfo;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use testbed::client::{ApiClient, Resource};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::break_glass::fixture::{Fixture, NAMESPACE};
use crate::break_glass::hosted::Hosted;

const SECRETS: Resource<'_> = Resource::new("v1", "secrets");
const PAUSE: Duration = Duration::from_millis(50);
/// Fewer would prove little: a revocation takes more than the slower node's delay twice.
const AT_LEAST: usize = 60;

/// A client certificate and its key, PEM.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(crate) certificate: Vec<u8>,
    pub(crate) key: Vec<u8>,
}

/// Clients that ask every replica again and again; each failure is noted.
pub(crate) struct Watcher {
    stop: watch::Sender<bool>,
    clients: Vec<JoinHandle<Result<usize>>>,
}

// === impl Credentials ===

impl Credentials {
    /// A client of a server, on connections of its own.
    pub(crate) fn client(&self, server: SocketAddr, authority: &Path) -> Result<kube::Client> {
        let mut config = kube::Config::new(format!("https://{server}").parse()?);
        let root = CertificateDer::from_pem_file(authority)?;
        config.root_cert = Some(vec![root.to_vec()]);
        config.auth_info = AuthInfo {
            client_certificate_data: Some(STANDARD.encode(&self.certificate)),
            client_key_data: Some(STANDARD.encode(&self.key).into()),
            ..AuthInfo::default()
        };
        Ok(kube::Client::try_from(config)?)
    }
}

// === impl Watcher ===

impl Watcher {
    /// Asks with each of these, and with the certificate that the Secret of customers has at the moment.
    pub(crate) fn start(fixture: &Fixture, all: Vec<Credentials>) -> Self {
        let (stop, stopped) = watch::channel(false);
        let mut clients: Vec<_> = all
            .into_iter()
            .map(|one| tokio::spawn(ask(Arc::clone(&fixture.hosted), one, stopped.clone())))
            .collect();
        let follows = follow(Arc::clone(&fixture.hosted), fixture.admin.clone(), stopped);
        clients.push(tokio::spawn(follows));
        Self { stop, clients }
    }

    /// Stops all; gives the number of requests, of which none has failed.
    pub(crate) async fn finish(self) -> Result<usize> {
        let _ = self.stop.send(true);
        let mut all = 0;
        for client in self.clients {
            let count = client.await??;
            ensure!(count >= AT_LEAST, "only {count} requests");
            all += count;
        }
        Ok(all)
    }
}

async fn ask(
    hosted: Arc<Hosted>,
    credentials: Credentials,
    stopped: watch::Receiver<bool>,
) -> Result<usize> {
    let mut count = 0;
    while !*stopped.borrow() {
        let codes = hosted.answers(&credentials).await?;
        if codes.iter().any(|code| *code != 201) {
            bail!("request {count}: {codes:?}");
        }
        count += codes.len();
        tokio::time::sleep(PAUSE).await;
    }
    Ok(count)
}

async fn follow(
    hosted: Arc<Hosted>,
    admin: ApiClient,
    stopped: watch::Receiver<bool>,
) -> Result<usize> {
    let path = SECRETS.named(NAMESPACE, "customer-system-admin-client-cert-key");
    let mut count = 0;
    while !*stopped.borrow() {
        let secret = admin.get(&path).await?;
        let value = |key: &str| -> Result<Vec<u8>> {
            let encoded = secret["data"][key].as_str().context("no data")?;
            Ok(STANDARD.decode(encoded)?)
        };
        let credentials = Credentials {
            certificate: value("tls.crt")?,
            key: value("tls.key")?,
        };
        let codes = hosted.answers(&credentials).await?;
        if codes.iter().any(|code| *code != 201) {
            bail!("request {count} with the Secret's certificate: {codes:?}");
        }
        count += codes.len();
        tokio::time::sleep(PAUSE).await;
    }
    Ok(count)
}
