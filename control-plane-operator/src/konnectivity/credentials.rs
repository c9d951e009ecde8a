//! TLS with konnectivity-server: the authority and the client certificate, from files that are read again when they
//! change, or from objects.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem};
use rustls::{ClientConfig, RootCertStore};

/// The files.
#[derive(Debug, Clone, Default)]
pub(crate) struct Files {
    pub(crate) authorities: PathBuf,
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

/// The client side of TLS.
pub(crate) struct Credentials {
    /// None if they do not change.
    files: Option<Files>,
    loaded: Mutex<Loaded>,
}

/// What the files had when they were last valid.
struct Loaded {
    contents: Contents,
    config: Arc<ClientConfig>,
}

/// The contents, PEM.
#[derive(PartialEq, Eq)]
pub(crate) struct Contents {
    pub(crate) authorities: Vec<u8>,
    pub(crate) certificate: Vec<u8>,
    pub(crate) key: Vec<u8>,
}

/// The files cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A file cannot be read.
    #[error("failed to read {}: check the volume mounts, or set {flag}", .path.display())]
    Read {
        path: PathBuf,
        flag: &'static str,
        source: io::Error,
    },
    /// A file has not what it should have.
    #[error("failed to use {}: expected {expected}; set {flag}", .path.display())]
    Pem {
        path: PathBuf,
        flag: &'static str,
        expected: &'static str,
        source: Option<pem::Error>,
    },
    /// The certificate and the key do not belong together, or TLS does not support them.
    #[error("failed to use {} and {}: check that the key is that of the certificate", .certificate.display(), .key.display())]
    Pair {
        certificate: PathBuf,
        key: PathBuf,
        source: rustls::Error,
    },
}

const AUTHORITIES: &str = "--ca-cert-path";
const CERTIFICATE: &str = "--tls-cert-path";
const KEY: &str = "--tls-key-path";

// === impl Credentials ===

impl Credentials {
    /// Reads the files.
    pub(crate) fn load(files: Files) -> Result<Self, Error> {
        let loaded = Mutex::new(Loaded::new(&files, files.read()?)?);
        Ok(Self {
            files: Some(files),
            loaded,
        })
    }

    /// Credentials that do not change. The error is what was expected.
    pub(crate) fn fixed(contents: Contents) -> Result<Self, &'static str> {
        let loaded = Loaded::new(&Files::default(), contents).map_err(|error| match error {
            Error::Pem { expected, .. } => expected,
            Error::Read { .. } | Error::Pair { .. } => "a certificate and its private key",
        })?;
        Ok(Self {
            files: None,
            loaded: Mutex::new(loaded),
        })
    }

    /// The configuration for a new connection. Files that are invalid, for instance because they are being replaced,
    /// do not affect it.
    pub(crate) fn config(&self) -> Arc<ClientConfig> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        match self.reload(&loaded) {
            Ok(None) => {}
            Ok(Some(changed)) => {
                tracing::info!("Reloaded the certificate for konnectivity-server");
                *loaded = changed;
            }
            Err(error) => {
                let error = support::error::chain(&error);
                tracing::debug!(error, "Keeping the previous certificate");
            }
        }
        Arc::clone(&loaded.config)
    }

    fn reload(&self, loaded: &Loaded) -> Result<Option<Loaded>, Error> {
        let Some(files) = &self.files else {
            return Ok(None);
        };
        let contents = files.read()?;
        if contents == loaded.contents {
            return Ok(None);
        }
        Loaded::new(files, contents).map(Some)
    }
}

// === impl Loaded ===

impl Loaded {
    fn new(files: &Files, contents: Contents) -> Result<Self, Error> {
        let authorities = files.authorities(&contents)?;
        let (chain, key) = files.pair(&contents)?;
        let config = ClientConfig::builder()
            .with_root_certificates(authorities)
            .with_client_auth_cert(chain, key)
            .map_err(|source| Error::Pair {
                certificate: files.certificate.clone(),
                key: files.key.clone(),
                source,
            })?;
        Ok(Self {
            contents,
            config: Arc::new(config),
        })
    }
}

// === impl Files ===

impl Files {
    fn read(&self) -> Result<Contents, Error> {
        Ok(Contents {
            authorities: read(&self.authorities, AUTHORITIES)?,
            certificate: read(&self.certificate, CERTIFICATE)?,
            key: read(&self.key, KEY)?,
        })
    }

    fn authorities(&self, contents: &Contents) -> Result<RootCertStore, Error> {
        let expected = "certificates of authorities in PEM";
        let invalid = |source| invalid(&self.authorities, AUTHORITIES, expected, source);
        let found = certificates(&contents.authorities).map_err(|source| invalid(Some(source)))?;
        let mut roots = RootCertStore::empty();
        let (added, _) = roots.add_parsable_certificates(found);
        if added == 0 {
            return Err(invalid(None));
        }
        Ok(roots)
    }

    fn pair(
        &self,
        contents: &Contents,
    ) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), Error> {
        let invalid_chain = |source| {
            invalid(
                &self.certificate,
                CERTIFICATE,
                "a certificate in PEM",
                source,
            )
        };
        let chain =
            certificates(&contents.certificate).map_err(|source| invalid_chain(Some(source)))?;
        if chain.is_empty() {
            return Err(invalid_chain(None));
        }
        let key = PrivateKeyDer::from_pem_slice(&contents.key)
            .map_err(|source| invalid(&self.key, KEY, "a private key in PEM", Some(source)))?;
        Ok((chain, key))
    }
}

fn read(path: &Path, flag: &'static str) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(|source| Error::Read {
        path: path.to_owned(),
        flag,
        source,
    })
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, pem::Error> {
    CertificateDer::pem_slice_iter(pem).collect()
}

fn invalid(
    path: &Path,
    flag: &'static str,
    expected: &'static str,
    source: Option<pem::Error>,
) -> Error {
    Error::Pem {
        path: path.to_owned(),
        flag,
        expected,
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Pki;
    use super::*;

    fn refused(files: &Files) -> String {
        match Credentials::load(files.clone()) {
            Ok(_) => panic!("loaded"),
            Err(error) => support::error::chain(&error),
        }
    }

    #[test]
    fn unusable_files_are_named() {
        let pki = Pki::new();
        let dir = tempfile::tempdir().unwrap();
        let files = pki.client_files(dir.path());
        assert!(Credentials::load(files.clone()).is_ok());
        for (file, text, expected) in [
            (
                &files.authorities,
                "",
                "expected certificates of authorities in PEM; set --ca-cert-path",
            ),
            (
                &files.certificate,
                "",
                "expected a certificate in PEM; set --tls-cert-path",
            ),
            (
                &files.key,
                "",
                "expected a private key in PEM; set --tls-key-path",
            ),
        ] {
            let before = fs::read(file).unwrap();
            fs::write(file, text).unwrap();
            let error = refused(&files);
            assert!(error.contains(expected), "{error}");
            assert!(error.contains(&file.display().to_string()), "{error}");
            fs::remove_file(file).unwrap();
            let error = refused(&files);
            assert!(error.contains("failed to read"), "{error}");
            fs::write(file, before).unwrap();
        }
        // The key of another certificate.
        let other = tempfile::tempdir().unwrap();
        let other = pki.client_files(other.path());
        let mixed = Files {
            key: other.key,
            ..files
        };
        let error = refused(&mixed);
        assert!(
            error.contains("check that the key is that of the certificate"),
            "{error}"
        );
    }

    #[test]
    fn fixed_credentials_are_parsed_once() {
        let dir = tempfile::tempdir().unwrap();
        let files = Pki::new().client_files(dir.path());
        let contents = || files.read().unwrap();
        let credentials = Credentials::fixed(contents()).unwrap();
        let first = credentials.config();
        fs::remove_file(&files.certificate).unwrap();
        assert!(Arc::ptr_eq(&first, &credentials.config()));
        fs::write(&files.certificate, "").unwrap();
        let refused = Credentials::fixed(contents()).err();
        assert_eq!(refused, Some("a certificate in PEM"));
    }

    #[test]
    fn changed_files_are_reloaded_when_they_are_valid() {
        let dir = tempfile::tempdir().unwrap();
        let files = Pki::new().client_files(dir.path());
        let credentials = Credentials::load(files.clone()).unwrap();
        let first = credentials.config();
        assert!(Arc::ptr_eq(&first, &credentials.config()));
        fs::write(&files.certificate, "").unwrap();
        assert!(Arc::ptr_eq(&first, &credentials.config()));
        Pki::new().client_files(dir.path());
        let second = credentials.config();
        assert!(!Arc::ptr_eq(&first, &second));
        assert!(Arc::ptr_eq(&second, &credentials.config()));
    }
}
