//! Certificates for the API server and for the proxy.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, date_time_ymd,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

static COUNT: AtomicUsize = AtomicUsize::new(0);

/// An authority.
pub(crate) struct Pki {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key, in PEM.
pub(crate) struct Leaf {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

// === impl Pki ===

impl Pki {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // Authorities of one name would differ in their signatures only.
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        params
            .distinguished_name
            .push(DnType::CommonName, format!("authority {number}"));
        Self {
            issuer: CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap(),
        }
    }

    /// The authority's certificate, in PEM.
    pub(crate) fn authority(&self) -> String {
        self.issuer.pem()
    }

    /// A certificate for a server of this name.
    pub(crate) fn server(&self, name: &str) -> Leaf {
        self.leaf(&CertificateParams::new(vec![name.to_owned()]).unwrap())
    }

    /// One that is not valid any more.
    pub(crate) fn expired_server(&self, name: &str) -> Leaf {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(2001, 1, 1);
        self.leaf(&params)
    }

    /// A certificate for a client.
    pub(crate) fn client(&self) -> Leaf {
        let mut params = CertificateParams::new(vec!["client".to_owned()]).unwrap();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.leaf(&params)
    }

    fn leaf(&self, params: &CertificateParams) -> Leaf {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Leaf {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }
    }

    /// TLS for a server that looks at certificates of clients, if they show one.
    pub(crate) fn tls(&self, leaf: &Leaf, protocols: &[&str]) -> Arc<ServerConfig> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                .allow_unauthenticated()
                .build()
                .unwrap();
        let chain = CertificateDer::pem_slice_iter(leaf.certificate.as_bytes())
            .collect::<Result<_, _>>()
            .unwrap();
        let key = PrivateKeyDer::from_pem_slice(leaf.key.as_bytes()).unwrap();
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key)
            .unwrap();
        config.alpn_protocols = protocols
            .iter()
            .map(|protocol| protocol.as_bytes().to_vec())
            .collect();
        Arc::new(config)
    }
}
