//! Requests to providers, through the network of the hosted cluster: its tunnel, its DNS and its proxy.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use control_plane_component::facts::OpenIdEndpoints;
use control_plane_component::proxy::guest_exemptions;
use control_plane_component::{Context, Objects};
use form_urlencoded::Serializer;
use http::header::{ACCEPT, CONTENT_TYPE, HOST};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use kube::config::{KubeConfigOptions, Kubeconfig};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

use super::discovery::Ask;
use super::error::Error;
use super::inquiry::{Inquiry, Source};
use super::url::{HttpsUrl, is_allowed};
use super::{document, exchange};
use crate::konnectivity::bypass::CloudApis;
use crate::konnectivity::credentials::{Contents, Credentials};
use crate::konnectivity::dialer::{Connection, Dialer, Network as Lookups};
use crate::konnectivity::guest::GuestApi;
use crate::konnectivity::http_proxy::ProxyTls;
use crate::konnectivity::no_proxy::NoProxy;
use crate::konnectivity::proxies::{Proxies, ProxyUrl, Scheme};
use crate::konnectivity::resolver::{Dns, Family, Resolver, Settings, Unresolved};
use crate::konnectivity::stream::{BoxedIo, server_name};
use crate::konnectivity::target::{Host, Target};
use crate::konnectivity::tunnel::Tunnel;

/// Timeout of a request, from the connection to the end of the response.
pub(super) const TIMEOUT: Duration = Duration::from_secs(30);
/// Name and port of konnectivity-server for clients in the control plane namespace.
const SERVER: (&str, u16) = ("konnectivity-server-local", 8090);
/// Objects with what a connection needs.
const CLIENT: &str = "konnectivity-client";
const AUTHORITY: &str = "konnectivity-ca-bundle";
const KUBECONFIG: &str = "service-network-admin-kubeconfig";

/// The network of a hosted cluster.
#[derive(Clone)]
pub(crate) struct Network(pub(super) Arc<Materials>);

/// What a connection needs.
pub(super) struct Materials {
    pub(super) server: Target,
    /// Authorities of konnectivity-server, client certificate and key, PEM.
    pub(super) authorities: Vec<u8>,
    pub(super) certificate: Vec<u8>,
    pub(super) key: Vec<u8>,
    /// Kubeconfig of the hosted cluster.
    pub(super) kubeconfig: Vec<u8>,
    pub(super) proxies: Proxies,
    /// Authorities of the proxy, which may replace certificates of providers, PEM.
    pub(super) trusted: Vec<u8>,
    pub(super) family: Family,
}

/// Collects what a connection needs. Early in an installation, some of it does not exist.
pub(crate) fn materials(context: &Context<'_>) -> Result<Network, Error> {
    let objects = context.objects;
    let (host, port) = SERVER;
    let proxy = context.spec().configuration.as_ref();
    let proxy = proxy.and_then(|configuration| configuration.proxy.as_ref());
    let https = proxy.and_then(|proxy| proxy.https_proxy.as_deref());
    let https = ProxyUrl::read(https.unwrap_or_default()).map_err(Error::ProxyUrl)?;
    let trusted = proxy.and_then(|proxy| proxy.trusted_ca.as_ref());
    let trusted = match trusted.filter(|reference| !reference.name.is_empty()) {
        None => Vec::new(),
        Some(reference) => config_value(objects, &reference.name, "ca-bundle.crt")?,
    };
    let services = context.service_cidrs();
    let has_only_ipv4 = !services.is_empty() && services.iter().all(|cidr| !cidr.contains(':'));
    Ok(Network(Arc::new(Materials {
        server: Target::new(Host::Name(host.to_owned()), port),
        authorities: config_value(objects, AUTHORITY, "ca.crt")?,
        certificate: secret_value(objects, CLIENT, "tls.crt")?,
        key: secret_value(objects, CLIENT, "tls.key")?,
        kubeconfig: secret_value(objects, KUBECONFIG, "kubeconfig")?,
        proxies: Proxies {
            http: None,
            https,
            no_proxy: NoProxy::new(&guest_exemptions(context)),
        },
        trusted,
        family: if has_only_ipv4 {
            Family::Ipv4
        } else {
            Family::Any
        },
    })))
}

fn config_value(objects: &Objects, name: &str, key: &'static str) -> Result<Vec<u8>, Error> {
    let found = objects.config_value(name, key).map(String::into_bytes);
    found.ok_or_else(|| missing("ConfigMap", name, key))
}

fn secret_value(objects: &Objects, name: &str, key: &'static str) -> Result<Vec<u8>, Error> {
    let found = objects.secret_value(name, key);
    found.ok_or_else(|| missing("Secret", name, key))
}

fn missing(kind: &'static str, name: &str, key: &'static str) -> Error {
    let name = name.to_owned();
    Error::Missing { kind, name, key }
}

// === impl Network ===

impl Ask for Network {
    async fn endpoints(&self, inquiry: &Inquiry) -> Result<OpenIdEndpoints, Error> {
        let issuer = match &inquiry.source {
            Source::Issuer(issuer) => issuer,
            Source::Annotation(token) => {
                return Ok(OpenIdEndpoints {
                    token: token.clone(),
                    ..OpenIdEndpoints::default()
                });
            }
        };
        let url = HttpsUrl::discovery(issuer).map_err(|problem| Error::Url {
            field: "issuer",
            problem,
        })?;
        let response = self.send(inquiry, &url, &Method::GET, Bytes::new()).await?;
        let status = response.status();
        let url = url.to_string();
        match status {
            StatusCode::OK => document::endpoints(response.body()),
            status if status.is_redirection() => Err(Error::Redirect { url, status }),
            status => Err(Error::Status { url, status }),
        }
    }

    /// Requests a token with a wrong password. The response shows whether the provider supports passwords, whatever its
    /// status is.
    async fn supports_passwords(&self, inquiry: &Inquiry, token: &str) -> Result<bool, Error> {
        let field = match inquiry.source {
            Source::Issuer(_) => "token_endpoint",
            Source::Annotation(_) => "URL of the token endpoint in the annotation",
        };
        let url = HttpsUrl::parse(token).map_err(|problem| Error::Url { field, problem })?;
        let secret = String::from_utf8_lossy(&inquiry.client_secret);
        let form = Serializer::new(String::new())
            .append_pair("client_id", &inquiry.client_id)
            .append_pair("client_secret", &secret)
            .append_pair("grant_type", "password")
            .append_pair("scope", "openid")
            .append_pair("username", "test")
            .append_pair("password", "test")
            .finish();
        let response = self.send(inquiry, &url, &Method::POST, form.into()).await?;
        Ok(document::supports_passwords(response.body()))
    }
}

impl Network {
    async fn send(
        &self,
        inquiry: &Inquiry,
        url: &HttpsUrl,
        method: &Method,
        form: Bytes,
    ) -> Result<Response<Bytes>, Error> {
        let exchange = async {
            let io = self.connect(&url.target).await?;
            let roots = self.0.roots(&inquiry.authorities);
            let tls = async {
                let name = server_name(&url.target.host)?;
                TlsConnector::from(client_config(roots))
                    .connect(name, io)
                    .await
            };
            let io = tls.await.map_err(|source| Error::Tls {
                target: url.target.clone(),
                source,
            })?;
            exchange::send(io, &url.target, request(url, method, form)?).await
        };
        let exchange = tokio::time::timeout(TIMEOUT, exchange).await;
        exchange.unwrap_or_else(|_| Err(Error::TimedOut(url.target.clone())))
    }

    /// Connects to the target, through the proxy of the hosted cluster if there is one for it.
    async fn connect(&self, target: &Target) -> Result<BoxedIo, Error> {
        let dialer = self.0.dialer().await?;
        let Some(proxy) = self.0.proxies.find(Scheme::Https, target) else {
            return Ok(dialer.dial_inside(target, is_allowed).await?.io);
        };
        let Connection { io, .. } = dialer.dial_inside(&proxy.target, is_allowed).await?;
        Ok(dialer.proxy_tls.connect(io, proxy, target).await?)
    }
}

fn request(url: &HttpsUrl, method: &Method, form: Bytes) -> Result<Request<Full<Bytes>>, Error> {
    let mut request = Request::builder()
        .method(method)
        .uri(url.path())
        .header(HOST, url.host())
        .header(ACCEPT, "application/json");
    if *method == Method::POST {
        request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
    }
    let problem = super::url::InvalidUrl::Form;
    request.body(Full::new(form)).map_err(|_| Error::Url {
        field: "URL",
        problem,
    })
}

// === impl Materials ===

impl Materials {
    /// A dialer for one connection: what it needs may change until the next one.
    async fn dialer(&self) -> Result<Dialer, Error> {
        let contents = Contents {
            authorities: self.authorities.clone(),
            certificate: self.certificate.clone(),
            key: self.key.clone(),
        };
        let credentials = Credentials::fixed(contents).map_err(|expected| Error::Object {
            object: format!("Secret {CLIENT} or ConfigMap {AUTHORITY}"),
            expected,
        })?;
        let tunnel = Arc::new(Tunnel::new(self.server.clone(), credentials));
        let settings = Settings {
            // Whether a name exists in the management cluster must not be visible in a condition.
            dns: Dns::Guest,
            unresolved: Unresolved::Resolve,
            family: self.family,
        };
        let guest = GuestApi::of(self.guest().await?);
        let lookups = Lookups::new(guest, Arc::clone(&tunnel), self.family);
        Ok(Dialer {
            // Users choose the targets: none is reached from the management cluster.
            cloud_apis: CloudApis::Tunnel,
            management: Proxies::default(),
            proxy_tls: ProxyTls::trusting(self.roots(&[])),
            resolver: Some(Resolver::new(settings, lookups)),
            tunnel,
        })
    }

    async fn guest(&self) -> Result<kube::Client, Error> {
        let invalid = || Error::Object {
            object: format!("Secret {KUBECONFIG}"),
            expected: "a kubeconfig",
        };
        let text = std::str::from_utf8(&self.kubeconfig).map_err(|_| invalid())?;
        let kubeconfig = Kubeconfig::from_yaml(text).map_err(|_| invalid())?;
        let options = KubeConfigOptions::default();
        let config = support::client::from_kubeconfig(kubeconfig, &options).await;
        let config = config.map_err(|_| invalid())?;
        support::client::connect(&config).map_err(|error| Error::Guest(error.into()))
    }

    /// The system's authorities, those of the proxy, and `others`.
    fn roots(&self, others: &[u8]) -> RootCertStore {
        static SYSTEM: OnceLock<RootCertStore> = OnceLock::new();
        let system = SYSTEM.get_or_init(|| {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            roots
        });
        let mut roots = system.clone();
        for bundle in [&self.trusted, others] {
            let certificates = CertificateDer::pem_slice_iter(bundle).filter_map(Result::ok);
            roots.add_parsable_certificates(certificates);
        }
        roots
    }
}

fn client_config(roots: RootCertStore) -> Arc<ClientConfig> {
    let builder = ClientConfig::builder().with_root_certificates(roots);
    Arc::new(builder.with_no_client_auth())
}

#[cfg(test)]
mod tests;
