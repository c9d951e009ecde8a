//! Authorities of one control plane, for tests.

use std::path::PathBuf;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};
use rustls::pki_types::CertificateDer;

use crate::options::{FrontProxy, Options};

type Issuer = CertifiedIssuer<'static, KeyPair>;

/// Two authorities, and a server's certificate, in a directory of their own.
pub(crate) struct Pki {
    proxies: Issuer,
    clients: Issuer,
    directory: PathBuf,
}

// === impl Pki ===

impl Pki {
    pub(crate) fn new() -> Self {
        pod_tools::tls::install_provider();
        let name = format!("api-stand-in-{}", uuid::Uuid::new_v4());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        let pki = Self {
            proxies: issuer(),
            clients: issuer(),
            directory,
        };
        let server = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        for (file, text) in [
            ("proxies.crt", pki.proxies.pem()),
            ("clients.crt", pki.clients.pem()),
            ("tls.crt", server.cert.pem()),
            ("tls.key", server.signing_key.serialize_pem()),
        ] {
            std::fs::write(pki.directory.join(file), text).unwrap();
        }
        pki
    }

    /// A server that one front proxy may call.
    pub(crate) fn options(&self) -> Options {
        let file = |name: &str| self.directory.join(name);
        Options {
            port: 0,
            certificate: file("tls.crt"),
            key: file("tls.key"),
            client_authority: file("clients.crt"),
            front_proxy: FrontProxy {
                authority: file("proxies.crt"),
                names: vec!["front-proxy".to_owned()],
                user_headers: vec!["X-Remote-User".to_owned()],
                group_headers: vec!["X-Remote-Group".to_owned()],
            },
        }
    }

    pub(crate) fn proxy(&self, name: &str, group: Option<&str>) -> CertificateDer<'static> {
        leaf(&self.proxies, name, group)
    }

    pub(crate) fn client(&self, name: &str, group: Option<&str>) -> CertificateDer<'static> {
        leaf(&self.clients, name, group)
    }
}

impl Drop for Pki {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.directory));
    }
}

fn issuer() -> Issuer {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let name = uuid::Uuid::new_v4().to_string();
    params.distinguished_name.push(DnType::CommonName, name);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn leaf(issuer: &Issuer, name: &str, group: Option<&str>) -> CertificateDer<'static> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    if let Some(group) = group {
        params
            .distinguished_name
            .push(DnType::OrganizationName, group);
    }
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate().unwrap();
    params.signed_by(&key, issuer).unwrap().der().clone()
}
