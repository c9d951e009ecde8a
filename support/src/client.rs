//! Clients of an API server: configuration, connections that notice a dead peer, and deadlines for requests.
//!
//! A program uses [`connect`], or [`crate::fence::client`] if it leads. Both have the same limits: the kernel closes a
//! connection whose peer has gone, and each request ends after a fixed time ([`deadline`](crate::deadline)).
//!
//! Both connect through the proxy that the configuration has. [`config`], [`from_kubeconfig`] and [`infer`] set it as
//! kubectl does: `proxy-url` of the kubeconfig, or `HTTPS_PROXY`, unless `NO_PROXY` exempts the server.
//! Pods reach the API server of their own cluster directly.

pub(crate) mod proxy;

use std::time::Duration;

use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ClientBuilder, ConfigExt as _};
use kube::config::{InferConfigError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use tower::util::{BoxService, MapFuture};
use tower::{BoxError, ServiceBuilder, ServiceExt as _};

use crate::args::ApiServerArgs;
use crate::deadline::{Deadlines, Timeouts};
use proxy::{Connector, Environment, Unreached};

/// Limit for a new connection, including TLS.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Silence after which the kernel probes a connection.
const KEEPALIVE_TIME: Duration = Duration::from_secs(10);
/// Time between two probes.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
/// Probes without an answer that close a connection.
const KEEPALIVE_RETRIES: u32 = 3;
/// How long sent bytes may stay unacknowledged. Without it, the kernel retransmits for a quarter of an hour. Only Linux has
/// this setting.
#[cfg(target_os = "linux")]
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(20);

/// The service of a client before layers are added.
pub type HttpService =
    BoxService<Request<Body>, Response<UnsyncBoxBody<bytes::Bytes, BoxError>>, BoxError>;

/// Failures to create a client.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kubeconfig is not usable.
    #[error("failed to load kubeconfig {path}: pass --kubeconfig a file with a cluster and a user")]
    Kubeconfig {
        /// The file.
        path: String,
        /// The cause.
        source: KubeconfigError,
    },
    /// No kubeconfig is given, and none is found.
    #[error("failed to find a kubeconfig or a service account: pass --kubeconfig")]
    Nowhere(#[source] InferConfigError),
}

/// Loads the client configuration that the flags select.
pub async fn config(args: &ApiServerArgs) -> Result<kube::Config, Error> {
    let options = KubeConfigOptions {
        context: args.context.clone(),
        ..KubeConfigOptions::default()
    };
    let mut config = match &args.kubeconfig {
        Some(path) => {
            let failed = |source| Error::Kubeconfig {
                path: path.display().to_string(),
                source,
            };
            let kubeconfig = Kubeconfig::read_from(path).map_err(failed)?;
            from_kubeconfig(kubeconfig, &options)
                .await
                .map_err(failed)?
        }
        None if args.context.is_some() => {
            from_environment(&options)
                .await
                .map_err(|source| Error::Kubeconfig {
                    path: "$KUBECONFIG".to_owned(),
                    source,
                })?
        }
        None => infer().await.map_err(Error::Nowhere)?,
    };
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    // Callers retry themselves: they have deadlines, and report the failure meanwhile.
    config.default_retry = false;
    Ok(config)
}

/// The configuration by a trusted kubeconfig, which may name a proxy. For those of others, there is
/// [`crate::kubeconfig::untrusted`].
pub async fn from_kubeconfig(
    kubeconfig: Kubeconfig,
    options: &KubeConfigOptions,
) -> Result<kube::Config, KubeconfigError> {
    let has_proxy = proxy::has_own(&kubeconfig, options);
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, options).await?;
    if !has_proxy {
        // The client library takes HTTPS_PROXY, and ignores NO_PROXY.
        let https = config.proxy_url.take();
        config.proxy_url = Environment::read().proxy(https, &config.cluster_url);
    }
    Ok(config)
}

/// The configuration by the files in `$KUBECONFIG`, or by the default file.
pub async fn from_environment(
    options: &KubeConfigOptions,
) -> Result<kube::Config, KubeconfigError> {
    from_kubeconfig(Kubeconfig::read()?, options).await
}

/// The configuration by these files, or that of the pod's service account if they are not usable.
pub async fn infer() -> Result<kube::Config, InferConfigError> {
    match from_environment(&KubeConfigOptions::default()).await {
        Ok(mut config) => {
            config.apply_debug_overrides();
            Ok(config)
        }
        // Uses the service account, or describes both failures.
        Err(_) => kube::Config::infer().await,
    }
}

/// A client whose requests have deadlines.
pub fn connect(config: &kube::Config) -> kube::Result<kube::Client> {
    connect_with(config, Timeouts::default())
}

pub(crate) fn connect_with(
    config: &kube::Config,
    timeouts: Timeouts,
) -> kube::Result<kube::Client> {
    Ok(builder(config, timeouts)?.build())
}

/// A client builder whose requests have deadlines; callers add layers.
pub(crate) fn builder(
    config: &kube::Config,
    timeouts: Timeouts,
) -> kube::Result<ClientBuilder<HttpService>> {
    let namespace = config.default_namespace.clone();
    let service = ServiceBuilder::new()
        .layer(Deadlines::new(timeouts))
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(http_client(config)?)
        .map_response(|response| response.map(BodyExt::boxed_unsync));
    Ok(ClientBuilder::new(service.boxed(), namespace))
}

fn http_client(
    config: &kube::Config,
) -> kube::Result<HttpClient<impl Connect + Clone + Send + Sync + 'static, Body>> {
    let limit = config.connect_timeout.unwrap_or(CONNECT_TIMEOUT);
    let connector = Connector::new(tcp_connector(), config.proxy_url.as_ref())
        .map_err(|error| kube::Error::Service(error.into()))?;
    let proxy = connector.proxy();
    let connector = config.rustls_https_connector_with_connector(connector)?;
    let connector = MapFuture::new(connector, move |connecting| {
        let proxy = proxy.clone();
        Box::pin(async move {
            match (tokio::time::timeout(limit, connecting).await, proxy) {
                (Ok(connected), _) => connected,
                (Err(late), None) => Err(late.into()),
                (Err(late), Some(proxy)) => Err(Unreached::new(proxy, late).into()),
            }
        }) as BoxFuture<'static, Result<_, BoxError>>
    });
    Ok(HttpClient::builder(TokioExecutor::new()).build(connector))
}

/// Connects over TCP, with socket options that close a connection whose peer has gone.
fn tcp_connector() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_keepalive(Some(KEEPALIVE_TIME));
    connector.set_keepalive_interval(Some(KEEPALIVE_INTERVAL));
    connector.set_keepalive_retries(Some(KEEPALIVE_RETRIES));
    #[cfg(target_os = "linux")]
    connector.set_tcp_user_timeout(Some(TCP_USER_TIMEOUT));
    connector
}

#[cfg(test)]
mod tests;
