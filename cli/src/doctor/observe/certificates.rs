//! The certificates that webhooks of ours serve with.

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::jiff::Timestamp;
use kube::{Api, Client};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::doctor::observation::CertificateFacts;

/// Secrets with certificates in the operators' namespace.
const SECRETS: [&str; 1] = ["capi-conversion-webhook-shim-serving"];
const CERTIFICATE: &str = "tls.crt";

/// Those that are there.
pub(super) async fn observe(
    client: &Client,
    namespace: &str,
) -> kube::Result<Vec<CertificateFacts>> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let mut facts = Vec::new();
    for name in SECRETS {
        if let Some(secret) = secrets.get_opt(name).await? {
            facts.push(CertificateFacts {
                secret: format!("{namespace}/{name}"),
                seconds_left: expiry(&secret).map(|expiry| expiry - Timestamp::now().as_second()),
            });
        }
    }
    Ok(facts)
}

/// When the certificate expires that is shown first, in seconds since 1970.
fn expiry(secret: &Secret) -> Option<i64> {
    let pem = &secret.data.as_ref()?.get(CERTIFICATE)?.0;
    let certificate = CertificateDer::pem_slice_iter(pem).next()?.ok()?;
    let (_, parsed) = X509Certificate::from_der(&certificate).ok()?;
    Some(parsed.validity().not_after.timestamp())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use k8s_openapi::ByteString;
    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    fn secret(pem: &str) -> Secret {
        let data = BTreeMap::from([(CERTIFICATE.to_owned(), ByteString(pem.into()))]);
        Secret {
            data: Some(data),
            ..Secret::default()
        }
    }

    #[test]
    fn the_end_is_that_of_the_certificate_itself() {
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(2030, 1, 31);
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let expected: Timestamp = "2030-01-31T00:00:00Z".parse().unwrap();
        assert_eq!(
            expiry(&secret(&certificate.pem())),
            Some(expected.as_second())
        );
        assert_eq!(expiry(&secret("damaged")), None);
        assert_eq!(expiry(&Secret::default()), None);
    }
}
