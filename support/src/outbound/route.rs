//! Connections out of the cluster: direct, or through the proxy of the environment (`HTTPS_PROXY`, `NO_PROXY`).
//!
//! Servers without TLS and servers on localhost are reached directly.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::Uri;
use http::uri::Scheme;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::Service;

use crate::loopback::is_here;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Connects to registries and to the APIs of clouds.
#[derive(Debug, Clone)]
pub struct Route {
    tcp: HttpConnector,
    proxies: Arc<Matcher>,
}

// === impl Route ===

impl Route {
    /// Connects with `tcp`, and through `proxies` where they apply.
    pub fn new(tcp: HttpConnector, proxies: Matcher) -> Self {
        Self {
            tcp,
            proxies: Arc::new(proxies),
        }
    }

    fn proxy(&self, to: &Uri) -> Option<Intercept> {
        let direct = to.scheme() != Some(&Scheme::HTTPS) || is_here(to);
        self.proxies.intercept(to).filter(|_| !direct)
    }
}

impl Service<Uri> for Route {
    type Response = TokioIo<TcpStream>;
    type Error = Error;
    type Future = BoxFuture<'static, Result<Self::Response, Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.tcp.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let Some(proxy) = self.proxy(&to) else {
            let connecting = self.tcp.call(to);
            return Box::pin(async { connecting.await.map_err(Into::into) });
        };
        let mut tunnel = Tunnel::new(proxy.uri().clone(), self.tcp.clone());
        if let Some(credential) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(credential.clone());
        }
        let connecting = tunnel.call(to);
        Box::pin(async { connecting.await.map_err(Into::into) })
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    fn route(proxy: &str) -> Route {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        let proxies = Matcher::builder().all(proxy).no("direct.example.com");
        Route::new(tcp, proxies.build())
    }

    #[test]
    fn only_tls_to_other_machines_goes_through_a_proxy() {
        let route = route("http://proxy.example.com:3128");
        for (to, through) in [
            ("https://registry.example.com/v2/", true),
            ("https://registry.example.com:5000/v2/", true),
            ("http://registry.example.com/v2/", false),
            ("https://direct.example.com/v2/", false),
            ("https://127.0.0.1:5000/v2/", false),
            ("https://[::1]:5000/v2/", false),
            ("https://localhost:5000/v2/", false),
        ] {
            let proxy = route.proxy(&to.parse().unwrap());
            assert_eq!(proxy.is_some(), through, "{to}");
        }
    }

    #[tokio::test]
    async fn the_proxy_gets_connect_with_credentials() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut route = route(&format!("http://someone:secret@{address}"));
        let to = "https://registry.example.com/v2/".parse().unwrap();
        let proxy = async {
            let (mut client, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                request.push(client.read_u8().await.unwrap());
            }
            client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
            String::from_utf8(request).unwrap()
        };
        let (connection, request) = tokio::join!(route.call(to), proxy);
        connection.unwrap();
        let request = request.to_lowercase();
        assert!(
            request.starts_with("connect registry.example.com:443 "),
            "{request}"
        );
        assert!(request.contains("proxy-authorization: basic "), "{request}");
    }
}
