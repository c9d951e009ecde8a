//! Certificates of the programs in pods: given in files, or made on the spot.

use std::io::{Error, Result};
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, pem::PemObject};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

/// A server with a certificate that no client trusts, which probes do not request.
pub fn self_made(names: Vec<String>) -> Result<Arc<ServerConfig>> {
    let made = rcgen::generate_simple_self_signed(names).map_err(Error::other)?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    server(vec![made.cert.der().clone()], key.into())
}

/// A server with the certificate of two files.
pub fn from_files(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>> {
    let (chain, key) = read(certificate, key)?;
    server(chain, key)
}

/// A client that trusts the authorities of one file, and shows the certificate of two others.
pub fn client(authority: &Path, certificate: &Path, key: &Path) -> Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    for root in certificates(authority)? {
        roots.add(root).map_err(Error::other)?;
    }
    let (chain, key) = read(certificate, key)?;
    let config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)
        .map_err(Error::other)?;
    Ok(Arc::new(config))
}

/// Has the process use one crypto library: before anything else here.
pub fn install_provider() {
    // A second call finds the first one's.
    drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
}

fn server(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<Arc<ServerConfig>> {
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(Error::other)?;
    Ok(Arc::new(config))
}

/// Reads a certificate chain and its key.
pub fn read(
    certificate: &Path,
    key: &Path,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
    let key = PrivateKeyDer::from_pem_file(key).map_err(named(key))?;
    Ok((certificates(certificate)?, key))
}

/// Reads the certificates of a file.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(named(path))
}

fn named(path: &Path) -> impl Fn(rustls::pki_types::pem::Error) -> Error {
    move |error| Error::other(format!("{}: {error}", path.display()))
}
