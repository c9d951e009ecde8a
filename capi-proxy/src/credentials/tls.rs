//! TLS towards the API server: one pinned set of authorities, never the system's, never none.

use std::fmt;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};

use super::Error;
use super::plan::Plan;

/// Sessions kept for resumption; there is one server.
const SESSIONS: usize = 8;

/// Which client certificate a connection uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Identity {
    /// The client certificate of the proxy, if there is one.
    Ours,
    /// None: the request has credentials of the client, and a certificate would take precedence.
    Bare,
}

/// What is offered to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Alpn {
    Http1,
    /// HTTP/2, or HTTP/1.1 if the server does not have it.
    Http2,
}

/// The bytes that TLS is set up from; compared to find out whether a file that changed has other contents.
#[derive(PartialEq, Eq)]
pub(super) struct Pem {
    authority: Vec<u8>,
    certificate: Option<(Vec<u8>, Vec<u8>)>,
}

/// TLS, set up.
#[derive(Debug)]
pub(crate) struct Tls {
    name: ServerName<'static>,
    ours: Configs,
    /// `None`: the same.
    bare: Option<Configs>,
}

struct Configs {
    http1: Arc<ClientConfig>,
    http2: Arc<ClientConfig>,
}

// === impl Pem ===

impl Pem {
    pub(super) fn read(plan: &Plan) -> Result<Option<Self>, Error> {
        let Some(authority) = plan
            .authority
            .as_ref()
            .filter(|_| plan.endpoint.is_secure())
        else {
            return Ok(None);
        };
        let certificate = match &plan.certificate {
            Some((certificate, key)) => Some((certificate.read()?, key.read()?)),
            None => None,
        };
        Ok(Some(Self {
            authority: authority.read()?,
            certificate,
        }))
    }
}

// === impl Tls ===

impl Tls {
    pub(super) fn new(plan: &Plan, pem: &Pem) -> Result<Self, Error> {
        let host = plan.server_name.as_ref().unwrap_or(&plan.endpoint.host);
        let name = ServerName::try_from(host.clone())
            .map_err(|error| failed("the server's name", error))?;
        let roots = Arc::new(roots(&pem.authority)?);
        let bare = Configs::new(&roots, None)?;
        let Some((certificate, key)) = &pem.certificate else {
            return Ok(Self {
                name,
                ours: bare,
                bare: None,
            });
        };
        Ok(Self {
            name,
            ours: Configs::new(&roots, Some((certificate, key)))?,
            bare: Some(bare),
        })
    }

    /// The name that the server's certificate must be for.
    pub(crate) fn name(&self) -> ServerName<'static> {
        self.name.clone()
    }

    /// How to connect.
    pub(crate) fn config(&self, identity: Identity, alpn: Alpn) -> Arc<ClientConfig> {
        let configs = match (identity, &self.bare) {
            (Identity::Bare, Some(bare)) => bare,
            _ => &self.ours,
        };
        Arc::clone(match alpn {
            Alpn::Http1 => &configs.http1,
            Alpn::Http2 => &configs.http2,
        })
    }

    /// The connection alone authenticates us to the server.
    pub(crate) fn has_certificate(&self) -> bool {
        self.bare.is_some()
    }
}

// === impl Configs ===

impl Configs {
    fn new(roots: &Arc<RootCertStore>, certificate: Option<(&[u8], &[u8])>) -> Result<Self, Error> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| failed("TLS", error))?
            .with_root_certificates(Arc::clone(roots));
        let mut config = match certificate {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain: Result<Vec<_>, _> =
                    CertificateDer::pem_slice_iter(certificate).collect();
                let chain = chain.map_err(|error| failed("the client certificate", error))?;
                let key = PrivateKeyDer::from_pem_slice(key)
                    .map_err(|error| failed("the client key", error))?;
                builder
                    .with_client_auth_cert(chain, key)
                    .map_err(|error| failed("the client certificate", error))?
            }
        };
        config.resumption = Resumption::in_memory_sessions(SESSIONS);
        let mut http2 = config.clone();
        http2.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self {
            http1: Arc::new(config),
            http2: Arc::new(http2),
        })
    }
}

impl fmt::Debug for Configs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Configs").finish_non_exhaustive()
    }
}

fn roots(authority: &[u8]) -> Result<RootCertStore, Error> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(authority).collect();
    let certificates = certificates.map_err(|error| failed("the certificate authority", error))?;
    let mut roots = RootCertStore::empty();
    // Bundles may hold a certificate that is no authority; one that is suffices.
    let (added, _) = roots.add_parsable_certificates(certificates);
    if added == 0 {
        return Err(failed(
            "the certificate authority",
            "the file contains no certificate",
        ));
    }
    Ok(roots)
}

fn failed(what: &'static str, error: impl fmt::Display) -> Error {
    Error::Tls {
        what,
        message: error.to_string(),
    }
}
