//! Upgrades: exec, attach, port-forward and the proxy subresources, over SPDY or WebSocket.
//!
//! After the switch, bytes are only copied. A refused upgrade closes the connection, because the bytes that the client
//! sent after the request may be of either protocol.

use std::time::Duration;

use http::header::{CONNECTION, UPGRADE};
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use support::shutdown::Drain;

use crate::body::{Body, Stream};
use crate::failure::Failure;
use crate::layer::headers::strip_hop_by_hop;
use crate::upstream::{Outbound, ResponseBody, Upstream};

/// Timeout for both sides to switch after the 101 response.
const SWITCH_TIME: Duration = Duration::from_secs(10);

/// The client side of an upgrade.
pub(crate) struct Client {
    protocol: HeaderValue,
    upgrade: Option<OnUpgrade>,
}

// === impl Client ===

impl Client {
    /// Takes the client side from an upgrade request.
    pub(crate) fn of(parts: &mut Parts) -> Self {
        let protocol = parts.headers.get(UPGRADE).cloned();
        Self {
            protocol: protocol.unwrap_or(HeaderValue::from_static("")),
            upgrade: parts.extensions.remove(),
        }
    }

    /// Forwards the upgrade, and connects both sides if the API server accepts it.
    pub(crate) async fn forward(
        self,
        upstream: &Upstream,
        mut outbound: Outbound,
        drain: &Drain,
    ) -> Result<Response<Body>, Failure> {
        outbound
            .headers
            .insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        outbound.headers.insert(UPGRADE, self.protocol.clone());
        let mut response = upstream.upgrade(outbound).await?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Ok(refused(response));
        }
        let agreed = response.headers().get(UPGRADE);
        if !agreed.is_some_and(|agreed| {
            agreed
                .as_bytes()
                .eq_ignore_ascii_case(self.protocol.as_bytes())
        }) {
            return Err(Failure::bad_gateway(
                "the API server switched to a protocol that was not requested",
            )
            .closing());
        }
        let server = hyper::upgrade::on(&mut response);
        if let Some(client) = self.upgrade {
            tokio::spawn(join(client, server, drain.clone()));
        }
        Ok(response.map(|_| Body::empty()))
    }
}

/// Forwards a response other than 101, and closes the connection.
fn refused(response: Response<hyper::body::Incoming>) -> Response<Body> {
    let (mut parts, body) = response.into_parts();
    strip_hop_by_hop(&mut parts.headers);
    parts
        .headers
        .insert(CONNECTION, HeaderValue::from_static("close"));
    Response::from_parts(parts, Body::stream(Stream::pass(ResponseBody::lone(body))))
}

/// Copies bytes both ways until both sides have ended, or one has failed.
async fn join(client: OnUpgrade, server: OnUpgrade, drain: Drain) {
    let switched =
        tokio::time::timeout(SWITCH_TIME, async { tokio::try_join!(client, server) }).await;
    let Ok(Ok((client, server))) = switched else {
        return;
    };
    let (mut client, mut server) = (TokioIo::new(client), TokioIo::new(server));
    // An error closes the tunnel with both types. The process waits for everything that holds a drain.
    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
    drop(drain);
}
