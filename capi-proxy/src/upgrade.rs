//! Upgrades: exec, attach, port-forward and the proxy subresources, over SPDY or WebSocket.
//!
//! Once both sides have agreed, bytes are copied and nothing else. A request that asked for another protocol and did not
//! get it ends its connection: what the client has sent behind it may be either protocol.

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
use crate::upstream::{Answer, Outbound, Upstream};

/// How long either side may take to switch once both have agreed.
const SWITCH_TIME: Duration = Duration::from_secs(10);

/// The client's side of an upgrade.
pub(crate) struct Client {
    protocol: HeaderValue,
    upgrade: Option<OnUpgrade>,
}

// === impl Client ===

impl Client {
    /// Takes the client's side out of a request that asks for an upgrade.
    pub(crate) fn of(parts: &mut Parts) -> Self {
        let protocol = parts.headers.get(UPGRADE).cloned();
        Self {
            protocol: protocol.unwrap_or(HeaderValue::from_static("")),
            upgrade: parts.extensions.remove(),
        }
    }

    /// Asks the API server, and joins both sides if it agrees.
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
                "the API server switched to a protocol that was not asked for",
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

/// Passes on any answer but an agreement, as the last of its connection.
fn refused(response: Response<hyper::body::Incoming>) -> Response<Body> {
    let (mut parts, body) = response.into_parts();
    strip_hop_by_hop(&mut parts.headers);
    parts
        .headers
        .insert(CONNECTION, HeaderValue::from_static("close"));
    Response::from_parts(parts, Body::stream(Stream::pass(Answer::lone(body))))
}

/// Copies bytes both ways until both sides have ended, or one has failed.
async fn join(client: OnUpgrade, server: OnUpgrade, drain: Drain) {
    let switched =
        tokio::time::timeout(SWITCH_TIME, async { tokio::try_join!(client, server) }).await;
    let Ok(Ok((client, server))) = switched else {
        return;
    };
    let (mut client, mut server) = (TokioIo::new(client), TokioIo::new(server));
    // An error is the end of the tunnel, and both sides see it. The worker waits for what hears the drain.
    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
    drop(drain);
}
