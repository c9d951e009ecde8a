//! The testbed's certificate authority and what it issues.

use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};

/// A certificate authority whose certificates lie in one directory.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    directory: PathBuf,
}

/// A certificate and its key, in files.
#[derive(Debug, Clone)]
pub struct Certificate {
    /// The certificate, PEM.
    pub certificate: PathBuf,
    /// Its private key, PEM.
    pub key: PathBuf,
}

/// A key pair, in files.
#[derive(Debug, Clone)]
pub struct SigningKey {
    /// The private key, PEM.
    pub private: PathBuf,
    /// The public key, PEM.
    pub public: PathBuf,
}

// === impl Authority ===

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the key.
        f.debug_struct("Authority")
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

impl Authority {
    /// A new authority that keeps its files in `directory`.
    pub fn create(directory: &Path) -> Result<Self> {
        fs::create_dir_all(directory)
            .with_context(|| format!("cannot create {}", directory.display()))?;
        let mut params = CertificateParams::default();
        params
            .distinguished_name
            .push(DnType::CommonName, "testbed");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let key = KeyPair::generate().context("cannot make the authority's key")?;
        let issuer = CertifiedIssuer::self_signed(params, key)
            .context("cannot sign the authority's certificate")?;
        let authority = Self {
            issuer,
            directory: directory.to_owned(),
        };
        write(&authority.certificate(), &authority.issuer.pem())?;
        write(
            &authority.private_key(),
            &authority.issuer.key().serialize_pem(),
        )?;
        Ok(authority)
    }

    /// The authority's own certificate.
    pub fn certificate(&self) -> PathBuf {
        self.directory.join("ca.crt")
    }

    /// The authority's private key, for a component that issues certificates itself.
    pub fn private_key(&self) -> PathBuf {
        self.directory.join("ca.key")
    }

    /// A server certificate for this machine's loopback addresses.
    pub fn server(&self, name: &str) -> Result<Certificate> {
        self.server_at(name, &[])
    }

    /// A server certificate for this machine's loopback addresses and for `hosts`: names or addresses.
    pub fn server_at(&self, name: &str, hosts: &[String]) -> Result<Certificate> {
        let local = ["127.0.0.1", "::1", "localhost", "kubernetes.default.svc"];
        let hosts: Vec<String> = local
            .into_iter()
            .map(str::to_owned)
            .chain(hosts.iter().cloned())
            .collect();
        let mut params =
            CertificateParams::new(hosts).context("cannot name the server in its certificate")?;
        params.distinguished_name.push(DnType::CommonName, name);
        self.issue(name, params, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// A client certificate: the user `user`, in `group` if one is given.
    pub fn client(&self, name: &str, user: &str, group: Option<&str>) -> Result<Certificate> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, user);
        if let Some(group) = group {
            params
                .distinguished_name
                .push(DnType::OrganizationName, group);
        }
        self.issue(name, params, ExtendedKeyUsagePurpose::ClientAuth)
    }

    /// A key pair without certificate, with which the API server signs service account tokens.
    pub fn signing_key(&self, name: &str) -> Result<SigningKey> {
        let pair = KeyPair::generate().with_context(|| format!("cannot make the key {name}"))?;
        let key = SigningKey {
            private: self.directory.join(format!("{name}.key")),
            public: self.directory.join(format!("{name}.pub")),
        };
        write(&key.private, &pair.serialize_pem())?;
        write(&key.public, &pair.public_key_pem())?;
        Ok(key)
    }

    fn issue(
        &self,
        name: &str,
        mut params: CertificateParams,
        usage: ExtendedKeyUsagePurpose,
    ) -> Result<Certificate> {
        params.key_usages = vec![
            KeyUsagePurpose::DigitalSignature,
            KeyUsagePurpose::KeyEncipherment,
        ];
        params.extended_key_usages = vec![usage];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().with_context(|| format!("cannot make the key of {name}"))?;
        let signed = params
            .signed_by(&key, &self.issuer)
            .with_context(|| format!("cannot sign the certificate of {name}"))?;
        let certificate = Certificate {
            certificate: self.directory.join(format!("{name}.crt")),
            key: self.directory.join(format!("{name}.key")),
        };
        write(&certificate.certificate, &signed.pem())?;
        write(&certificate.key, &key.serialize_pem())?;
        Ok(certificate)
    }
}

/// The contents of a file in base64, as objects have bytes.
pub fn encoded(path: &Path) -> Result<String> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(STANDARD.encode(bytes))
}

/// Writes a file that only its owner may read.
pub fn write(path: &Path, text: &str) -> Result<()> {
    use std::io::Write;
    fs::OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("cannot write {}", path.display()))
}
