//! The request path: [`Proxy::respond`] handles every request.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use support::shutdown::Drain;

use crate::body::Body;
use crate::exchange::Exchange;
use crate::failure::Failure;
use crate::gate;
use crate::layer::authorization::{self, SharedSecret};
use crate::layer::connection::Wants;
use crate::layer::host::Hosts;
use crate::layer::impersonation::Impersonation;
use crate::layer::path::PrivateNames;
use crate::layer::request_body::{Outcome, Prepared, Unread};
use crate::layer::{
    RequestContext, connection, headers, impersonation, path, request_body, response_body,
};
use crate::metrics::Metrics;
use crate::readiness::Readiness;
use crate::upgrade;
use crate::upstream::{
    Authorization, Class, Outbound, Outgoing, ResponseBody, SendError, Upstream,
};
use capi_translate::Rules;
use capi_translate::target::Target;

/// The permissions of clients.
#[derive(Debug)]
pub(crate) struct Policy {
    pub(crate) hosts: Hosts,
    pub(crate) impersonation: Impersonation,
    pub(crate) private_names: PrivateNames,
    pub(crate) shared_secret: Option<SharedSecret>,
    /// Maximum size of a request body.
    pub(crate) max_request_body: u64,
}

/// The state of a worker thread.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) rules: Rules,
    pub(crate) policy: Arc<Policy>,
    pub(crate) upstream: Upstream,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) readiness: Arc<Readiness>,
    pub(crate) drain: Drain,
}

/// A validated request.
struct Admitted {
    authorization: Authorization,
    target: Target,
    /// The client side of an upgrade, if the request is one.
    upgrade: Option<upgrade::Client>,
    /// The headers for the API server.
    headers: HeaderMap,
}

// === impl Proxy ===

impl Proxy {
    /// Handles a request that passed the gate of `connection`.
    pub(crate) async fn handle(
        self: Arc<Self>,
        request: Request<Incoming>,
        connection: Arc<gate::Connection>,
    ) -> Result<Response<Body>, Infallible> {
        let busy = connection.busy();
        let mut exchange = Exchange::begin(Arc::clone(&self.metrics));
        let (parts, body) = request.into_parts();
        let mut body = Unread::new(body);
        let responded = self
            .respond(parts, &mut body, &connection, &mut exchange)
            .await;
        let response = match responded {
            Ok(response) => response,
            Err(failure) => {
                let failure = body.settle(failure).await;
                exchange.failed(&failure);
                exchange.responded(failure.code.as_u16());
                failure.to_response()
            }
        };
        Ok(response.map(|body| body.carrying(exchange, busy)))
    }

    async fn respond(
        &self,
        mut parts: Parts,
        body: &mut Unread,
        connection: &Arc<gate::Connection>,
        exchange: &mut Exchange,
    ) -> Result<Response<Body>, Failure> {
        // The request was replaced by the gate: only the violation matters.
        if let Some(violation) = connection.refusal(&parts.method) {
            return Err(Failure::client(violation.status, violation.message.clone()).closing());
        }
        // First, so that a web page learns nothing from later responses.
        self.policy.hosts.check(&parts.headers)?;
        if is_health_check(&parts) {
            return Ok(Response::new(Body::full(Bytes::from_static(b"ok"))));
        }
        let admitted = self.admit(&mut parts)?;
        exchange.set_target(&admitted.target, &parts.method);
        self.forward(&parts.method, admitted, body, connection, exchange)
            .await
    }

    /// Decides from a request's head whether it may be sent, and as what.
    fn admit(&self, parts: &mut Parts) -> Result<Admitted, Failure> {
        // Before other headers are used: Connection names headers that would not reach the API server.
        connection::check(&parts.headers)?;
        // Before the proxy adds its credentials.
        impersonation::check(self.policy.impersonation, &parts.headers)?;
        let authorization =
            authorization::decide(self.policy.shared_secret.as_ref(), &mut parts.headers)?;
        // The canonical URL is used for all decisions and is what is sent.
        let target = path::parse(&self.rules, self.policy.private_names, &parts.uri)?;
        let wants = connection::wants(&parts.headers, &target)?;
        let upgrade = (wants == Wants::Upgrade).then(|| upgrade::Client::of(parts));
        let headers = headers::forward(&self.rules, &target, std::mem::take(&mut parts.headers))?;
        Ok(Admitted {
            authorization,
            target,
            upgrade,
            headers,
        })
    }

    /// Sends a request and translates the response.
    async fn forward(
        &self,
        method: &Method,
        admitted: Admitted,
        body: &mut Unread,
        connection: &Arc<gate::Connection>,
        exchange: &mut Exchange,
    ) -> Result<Response<Body>, Failure> {
        let Admitted {
            authorization,
            target,
            upgrade,
            headers,
        } = admitted;
        let request_context = RequestContext {
            rules: &self.rules,
            target: &target,
            method,
        };
        let reading = request_body::Request {
            context: request_context,
            headers: &headers,
            limit: self.policy.max_request_body,
            connection,
        };
        // The last step before the request is sent: everything is validated, except the rest of a large body.
        let Prepared { body, outcome } = request_body::prepare(&reading, body, exchange).await?;
        let outbound = Outbound {
            class: class(&target, method, &body),
            method: method.clone(),
            path: upstream_path(&target)?,
            headers,
            body,
            authorization,
        };
        if let Some(client) = upgrade {
            let response = client
                .forward(&self.upstream, outbound, &self.drain)
                .await?;
            exchange.responded(response.status().as_u16());
            return Ok(response);
        }
        let sent = self.upstream.send(outbound).await;
        self.record_outcome(&sent);
        let response = sent.map_err(|error| failure(error, outcome.as_ref()))?;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            // The bytes that follow are of a protocol that the client did not request.
            return Err(Failure::bad_gateway(
                "the API server switched to a protocol that was not requested",
            )
            .closing());
        }
        let response = response_body::translate(request_context, response, exchange).await?;
        Ok(self.finish(&target, response, exchange))
    }

    /// The outcome of a request shows whether the API server is reachable.
    fn record_outcome(&self, sent: &Result<Response<ResponseBody>, SendError>) {
        match sent {
            Ok(_) => self.readiness.record_response(),
            Err(_) => self.readiness.record_failure(),
        }
    }

    /// Counts the response, and ends a watch when the proxy shuts down.
    fn finish(
        &self,
        target: &Target,
        response: Response<Body>,
        exchange: &mut Exchange,
    ) -> Response<Body> {
        let code = response.status();
        if target.is_watch() && code.is_success() {
            exchange.watching(code.as_u16());
            return response.map(|body| body.until(self.drain.draining()));
        }
        exchange.responded(code.as_u16());
        response
    }
}

/// Whether the request is for the health of the proxy itself. That of the API server is at `/livez` and `/readyz`.
fn is_health_check(parts: &Parts) -> bool {
    parts.uri.path() == "/healthz" && matches!(parts.method, Method::GET | Method::HEAD)
}

fn class(target: &Target, method: &Method, body: &Outgoing) -> Class {
    // Clients send no watch with a body, but it is possible.
    let plain = method == Method::GET && matches!(body, Outgoing::Empty);
    if target.is_watch() && plain {
        Class::Watch
    } else {
        Class::Unary
    }
}

fn upstream_path(target: &Target) -> Result<PathAndQuery, Failure> {
    PathAndQuery::try_from(target.upstream()).map_err(|_| {
        Failure::client(
            StatusCode::BAD_REQUEST,
            "the URL contains bytes that must be percent-encoded",
        )
    })
}

/// The failure to report: an error of the request body takes precedence, because it causes the other.
fn failure(error: SendError, outcome: Option<&Outcome>) -> Failure {
    outcome
        .and_then(|outcome| outcome.get().cloned())
        .unwrap_or_else(|| error.into())
}
