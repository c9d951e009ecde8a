//! Who sends a request: a user whom the API server has authenticated, or the holder of a client certificate.
//!
//! The headers with the user count only on connections with a front proxy's certificate. The API server has authorized
//! the requests that it forwards. Clients that connect directly are authorized here: administrators, and the API
//! server's authenticator for token reviews. The real servers ask the API server about both.

use std::io::{Error, Result};
use std::path::Path;
use std::sync::Arc;

use http::HeaderMap;
use pod_tools::tls;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};
use x509_parser::parse_x509_certificate;

use crate::options::{FrontProxy, Options};

const ADMINISTRATORS: &str = "system:masters";
/// The user as whom the API server asks for token reviews.
const AUTHENTICATOR: &str =
    "system:serviceaccount:openshift-oauth-apiserver:openshift-authenticator";

/// A user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) groups: Vec<String>,
    /// Whether the API server has authorized the request.
    pub(crate) is_forwarded: bool,
}

/// Knows the authorities of clients.
#[derive(Debug)]
pub(crate) struct Authenticator {
    tls: Arc<ServerConfig>,
    proxies: Arc<dyn ClientCertVerifier>,
    clients: Arc<dyn ClientCertVerifier>,
    front_proxy: FrontProxy,
}

// === impl User ===

impl User {
    /// Whether requests of any kind are allowed.
    pub(crate) fn is_allowed(&self) -> bool {
        self.is_forwarded || self.groups.iter().any(|group| group == ADMINISTRATORS)
    }

    /// Whether it may ask who has a token.
    pub(crate) fn may_review_tokens(&self) -> bool {
        self.is_allowed() || self.name == AUTHENTICATOR
    }
}

// === impl Authenticator ===

impl Authenticator {
    pub(crate) fn new(options: &Options) -> Result<Self> {
        let proxies = roots(&[&options.front_proxy.authority])?;
        let clients = roots(&[&options.client_authority])?;
        let either = roots(&[&options.front_proxy.authority, &options.client_authority])?;
        let builder = WebPkiClientVerifier::builder(Arc::new(either));
        // Probes have no certificate.
        let either = builder.allow_unauthenticated().build();
        let (chain, key) = tls::read(&options.certificate, &options.key)?;
        let tls = ServerConfig::builder()
            .with_client_cert_verifier(either.map_err(Error::other)?)
            .with_single_cert(chain, key)
            .map_err(Error::other)?;
        Ok(Self {
            tls: Arc::new(tls),
            proxies: verifier(proxies)?,
            clients: verifier(clients)?,
            front_proxy: options.front_proxy.clone(),
        })
    }

    pub(crate) fn tls(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.tls)
    }

    /// The user of a request, by the certificates of its connection and its headers.
    pub(crate) fn user(
        &self,
        certificates: &[CertificateDer<'_>],
        headers: &HeaderMap,
    ) -> Option<User> {
        let (leaf, intermediates) = certificates.split_first()?;
        let (name, groups) = subject(leaf)?;
        let is_signed = |by: &Arc<dyn ClientCertVerifier>| {
            by.verify_client_cert(leaf, intermediates, UnixTime::now())
                .is_ok()
        };
        let names = &self.front_proxy.names;
        if (names.is_empty() || names.contains(&name)) && is_signed(&self.proxies) {
            return self.forwarded(headers);
        }
        is_signed(&self.clients).then_some(User {
            name,
            groups,
            is_forwarded: false,
        })
    }

    fn forwarded(&self, headers: &HeaderMap) -> Option<User> {
        let values = |names: &[String]| -> Vec<String> {
            let all = names.iter().flat_map(|name| headers.get_all(name.as_str()));
            let texts = all.filter_map(|value| value.to_str().ok());
            texts.map(str::to_owned).collect()
        };
        Some(User {
            name: values(&self.front_proxy.user_headers).into_iter().next()?,
            groups: values(&self.front_proxy.group_headers),
            is_forwarded: true,
        })
    }
}

fn roots(files: &[&Path]) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for file in files {
        for root in tls::certificates(file)? {
            roots.add(root).map_err(Error::other)?;
        }
    }
    Ok(roots)
}

fn verifier(roots: RootCertStore) -> Result<Arc<dyn ClientCertVerifier>> {
    let built = WebPkiClientVerifier::builder(Arc::new(roots)).build();
    built.map_err(Error::other)
}

/// Common name and organizations: the user and its groups.
fn subject(leaf: &CertificateDer<'_>) -> Option<(String, Vec<String>)> {
    let (_, certificate) = parse_x509_certificate(leaf).ok()?;
    let subject = certificate.subject();
    let name = subject.iter_common_name().next()?.as_str().ok()?.to_owned();
    let groups = subject.iter_organization();
    let groups = groups.filter_map(|group| group.as_str().ok().map(str::to_owned));
    Some((name, groups.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Pki;

    fn headers(user: Option<&str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(user) = user {
            headers.insert("x-remote-user", user.parse().unwrap());
            headers.append("x-remote-group", "one".parse().unwrap());
            headers.append("x-remote-group", "two".parse().unwrap());
        }
        headers
    }

    #[test]
    fn user_headers_count_only_from_the_front_proxy() {
        let pki = Pki::new();
        let authenticator = Authenticator::new(&pki.options()).unwrap();
        let proxy = pki.proxy("front-proxy", None);
        let other = pki.proxy("other", None);
        let client = pki.client("ann", Some("team"));
        let impostor = pki.client("front-proxy", None);
        let stranger = Pki::new().proxy("front-proxy", None);
        let users = [
            (
                vec![proxy.clone()],
                Some("eve"),
                Some(("eve", vec!["one", "two"], true)),
            ),
            (vec![proxy], None, None),
            (vec![other], Some("eve"), None),
            (
                vec![client],
                Some("eve"),
                Some(("ann", vec!["team"], false)),
            ),
            (
                vec![impostor],
                Some("eve"),
                Some(("front-proxy", vec![], false)),
            ),
            (vec![stranger], Some("eve"), None),
            (vec![], Some("eve"), None),
        ];
        for (at, (certificates, header, expected)) in users.into_iter().enumerate() {
            let user = authenticator.user(&certificates, &headers(header));
            let expected = expected.map(|(name, groups, is_forwarded)| User {
                name: name.to_owned(),
                groups: groups.into_iter().map(str::to_owned).collect(),
                is_forwarded,
            });
            assert_eq!(user, expected, "case {at}");
        }
    }

    #[test]
    fn direct_clients_are_administrators_or_the_authenticator() {
        let user = |name: &str, group: &str| User {
            name: name.to_owned(),
            groups: vec![group.to_owned()],
            is_forwarded: false,
        };
        for (user, expected) in [
            (user("admin", ADMINISTRATORS), (true, true)),
            (user(AUTHENTICATOR, "openshift"), (false, true)),
            (user("ann", "team"), (false, false)),
        ] {
            let allowed = (user.is_allowed(), user.may_review_tokens());
            assert_eq!(allowed, expected, "{user:?}");
        }
    }
}
