//! Proxies between a client and its API server: which one is used, and connections through it.
//!
//! As for kubectl, `proxy-url` of a kubeconfig has precedence over the environment, to which `NO_PROXY` belongs. Once a
//! configuration is loaded, its `proxy_url` is the proxy that is used; without it, connections are direct.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::Uri;
use http::uri::Scheme;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioIo;
use kube::config::{Cluster, KubeConfigOptions, Kubeconfig};
use tokio::net::TcpStream;
use tower::{BoxError, Service};

use crate::loopback::is_here;

/// What the environment says of proxies, except for `HTTPS_PROXY`, which the client library reads. `ALL_PROXY` has no
/// effect, as for kubectl.
pub(crate) struct Environment {
    /// `NO_PROXY`.
    exempt: String,
}

/// Connects to an API server, direct or through a proxy.
#[derive(Debug, Clone)]
pub(super) struct Connector {
    tcp: HttpConnector,
    proxy: Option<Proxy>,
}

#[derive(Debug, Clone)]
struct Proxy {
    tunnel: Tunnel<HttpConnector>,
    /// Its URL without credentials.
    name: Arc<str>,
}

/// A proxy does not lead to the API server.
#[derive(Debug, thiserror::Error)]
#[error(
    "failed to connect through the proxy {proxy}: check proxy-url of the kubeconfig; if it has none, check HTTPS_PROXY, or add the server to NO_PROXY"
)]
pub(super) struct Unreached {
    proxy: Arc<str>,
    source: BoxError,
}

/// A proxy of a kind that is not supported.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the proxy {proxy} is not supported: set proxy-url of the kubeconfig, or HTTPS_PROXY, to the URL of an HTTP proxy (http://HOST:PORT), or add the server to NO_PROXY"
)]
pub(super) struct Unsupported {
    proxy: String,
}

/// Whether the selected cluster of a kubeconfig has a proxy of its own.
pub(crate) fn has_own(kubeconfig: &Kubeconfig, options: &KubeConfigOptions) -> bool {
    let cluster = selected_cluster(kubeconfig, options);
    let url = cluster.and_then(|it| it.proxy_url.as_deref());
    url.is_some_and(|url| !url.is_empty())
}

/// The cluster of a kubeconfig that these options select.
pub(crate) fn selected_cluster<'a>(
    kubeconfig: &'a Kubeconfig,
    options: &KubeConfigOptions,
) -> Option<&'a Cluster> {
    let context = options.context.as_ref();
    let context = context.or(kubeconfig.current_context.as_ref())?;
    let mut contexts = kubeconfig.contexts.iter();
    let context = contexts.find(|it| it.name == *context)?.context.as_ref()?;
    let name = options.cluster.as_ref().unwrap_or(&context.cluster);
    let mut clusters = kubeconfig.clusters.iter();
    clusters.find(|it| it.name == *name)?.cluster.as_ref()
}

/// The scheme, host and port of a URL: without credentials and a path.
pub(crate) fn origin(url: &Uri) -> String {
    let scheme = url.scheme_str().unwrap_or("http");
    let host = url.host().unwrap_or_default();
    let port = url.port_u16().map(|port| format!(":{port}"));
    format!("{scheme}://{host}{}", port.unwrap_or_default())
}

/// The same URL with its port: a tunnel takes that of TLS for a missing one.
fn with_port(to: Uri) -> Uri {
    let Some(host) = to.host().filter(|_| to.port().is_none()) else {
        return to;
    };
    if to.scheme() != Some(&Scheme::HTTP) {
        return to;
    }
    let explicit = Uri::builder()
        .scheme(Scheme::HTTP)
        .authority(format!("{host}:80"))
        .path_and_query("/")
        .build();
    explicit.unwrap_or(to)
}

// === impl Environment ===

impl Environment {
    /// The variables of this process.
    pub(crate) fn read() -> Self {
        Self::of(|name| std::env::var(name).ok())
    }

    fn of(read: impl Fn(&str) -> Option<String>) -> Self {
        let mut values = ["NO_PROXY", "no_proxy"].into_iter().filter_map(read);
        let exempt = values.find(|value| !value.is_empty());
        Self {
            exempt: exempt.unwrap_or_default(),
        }
    }

    /// The proxy of this environment for a server, where `https` is its `HTTPS_PROXY`.
    pub(super) fn proxy(&self, https: Option<Uri>, server: &Uri) -> Option<Uri> {
        https.filter(|_| !self.exempts(server))
    }

    /// Whether a server is reached directly: it is exempt, has no TLS, or is on this machine.
    pub(crate) fn exempts(&self, server: &Uri) -> bool {
        if server.scheme() != Some(&Scheme::HTTPS) || is_here(server) {
            return true;
        }
        // Only the exemptions matter here; a matcher without a proxy does not report them.
        let any = Matcher::builder().all("http://proxy").no(&self.exempt);
        any.build().intercept(server).is_none()
    }
}

// === impl Connector ===

impl Connector {
    /// Connects with `tcp`, through `proxy` if there is one.
    pub(super) fn new(tcp: HttpConnector, proxy: Option<&Uri>) -> Result<Self, Unsupported> {
        let proxy = proxy.map(|url| Proxy::new(&tcp, url)).transpose()?;
        Ok(Self { tcp, proxy })
    }

    /// The proxy as errors name it.
    pub(super) fn proxy(&self) -> Option<Arc<str>> {
        self.proxy.as_ref().map(|proxy| Arc::clone(&proxy.name))
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<TcpStream>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.tcp.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let Some(proxy) = &mut self.proxy else {
            let connecting = self.tcp.call(to);
            return Box::pin(async { connecting.await.map_err(Into::into) });
        };
        let connecting = proxy.tunnel.call(with_port(to));
        let name = Arc::clone(&proxy.name);
        Box::pin(async move {
            let connected = connecting.await;
            connected.map_err(|error| Unreached::new(name, error).into())
        })
    }
}

// === impl Proxy ===

impl Proxy {
    fn new(tcp: &HttpConnector, url: &Uri) -> Result<Self, Unsupported> {
        let name = origin(url);
        let is_http = url.scheme().is_none_or(|scheme| *scheme == Scheme::HTTP);
        // The matcher separates the credentials from the URL.
        let matcher = Matcher::builder().all(url.to_string()).build();
        let found = matcher.intercept(&Uri::from_static("https://server"));
        let Some(found) = found.filter(|_| is_http) else {
            return Err(Unsupported { proxy: name });
        };
        let mut tunnel = Tunnel::new(found.uri().clone(), tcp.clone());
        if let Some(credentials) = found.basic_auth() {
            tunnel = tunnel.with_auth(credentials.clone());
        }
        let name = name.into();
        Ok(Self { tunnel, name })
    }
}

// === impl Unreached ===

impl Unreached {
    pub(super) fn new(proxy: Arc<str>, source: impl Into<BoxError>) -> Self {
        let source = source.into();
        Self { proxy, source }
    }
}

#[cfg(test)]
mod tests;
