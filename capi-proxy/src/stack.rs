//! The request path: every request goes through [`Proxy::respond`], top to bottom.

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
use crate::layer::{Asked, connection, headers, impersonation, path, request_body, response_body};
use crate::metrics::Metrics;
use crate::readiness::Readiness;
use crate::upgrade;
use crate::upstream::{Answer, Authorization, Class, Outbound, Outgoing, SendError, Upstream};
use capi_translate::Rules;
use capi_translate::target::Target;

/// What clients may do.
#[derive(Debug)]
pub(crate) struct Policy {
    pub(crate) hosts: Hosts,
    pub(crate) impersonation: Impersonation,
    pub(crate) private_names: PrivateNames,
    pub(crate) shared_secret: Option<SharedSecret>,
    /// Largest request body.
    pub(crate) max_request_body: u64,
}

/// What one thread answers requests with.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) rules: Rules,
    pub(crate) policy: Arc<Policy>,
    pub(crate) upstream: Upstream,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) readiness: Arc<Readiness>,
    pub(crate) drain: Drain,
}

/// A request that may be sent.
struct Admitted {
    authorization: Authorization,
    target: Target,
    /// The client's side, if it asks for another protocol.
    upgrade: Option<upgrade::Client>,
    /// As the API server gets them.
    headers: HeaderMap,
}

// === impl Proxy ===

impl Proxy {
    /// Answers a request that came through the gate of `connection`.
    pub(crate) async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        connection: Arc<gate::Connection>,
    ) -> Result<Response<Body>, Infallible> {
        let busy = connection.busy();
        let mut exchange = Exchange::begin(Arc::clone(&self.metrics));
        let (parts, body) = request.into_parts();
        let mut body = Unread::new(body);
        let answered = self
            .respond(parts, &mut body, &connection, &mut exchange)
            .await;
        let response = match answered {
            Ok(response) => response,
            Err(failure) => {
                let failure = body.settle(failure).await;
                exchange.failed(&failure);
                exchange.answered(failure.code.as_u16());
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
        // A request that did not pass the gate is only answered here; there is nothing of it to be looked at.
        if let Some(violation) = connection.refusal(&parts.method) {
            return Err(Failure::client(violation.status, violation.message.clone()).closing());
        }
        // First, so that a web page learns nothing from the answers that follow.
        self.policy.hosts.check(&parts.headers)?;
        if is_own_health(&parts) {
            return Ok(Response::new(Body::full(Bytes::from_static(b"ok"))));
        }
        let admitted = self.admit(&mut parts)?;
        exchange.understood(&admitted.target, &parts.method);
        self.forward(&parts.method, admitted, body, connection, exchange)
            .await
    }

    /// Decides from a request's head whether it may be sent, and as what.
    fn admit(&self, parts: &mut Parts) -> Result<Admitted, Failure> {
        // Before any header is read for its meaning: it says which of them would not reach the API server.
        connection::check(&parts.headers)?;
        // Before our rights are lent: whose rights are asked for.
        impersonation::check(self.policy.impersonation, &parts.headers)?;
        let authorization =
            authorization::decide(self.policy.shared_secret.as_ref(), &mut parts.headers)?;
        // From here on the URL has one reading, which decides and is sent.
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

    /// Sends a request and translates its answer.
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
        let asked = Asked {
            rules: &self.rules,
            target: &target,
            method,
        };
        let reading = request_body::Request {
            asked,
            headers: &headers,
            limit: self.policy.max_request_body,
            connection,
        };
        // The last thing before the API server hears of the request: all that can be refused has been by now, except
        // what only the end of a large body shows.
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
            exchange.answered(response.status().as_u16());
            return Ok(response);
        }
        let sent = self.upstream.send(outbound).await;
        self.learn(&sent);
        let answer = sent.map_err(|error| failure(error, outcome.as_ref()))?;
        if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
            // What comes behind it is of a protocol that the client does not know of.
            return Err(Failure::bad_gateway(
                "the API server switched to a protocol that was not asked for",
            )
            .closing());
        }
        let response = response_body::translate(asked, answer, exchange).await?;
        Ok(self.finish(&target, response, exchange))
    }

    /// The outcome of a request shows whether the API server can be reached.
    fn learn(&self, sent: &Result<Response<Answer>, SendError>) {
        match sent {
            Ok(_) => self.readiness.heard(),
            Err(_) => self.readiness.doubted(),
        }
    }

    /// Counts the answer, and lets a watch end with the proxy.
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
        exchange.answered(code.as_u16());
        response
    }
}

/// The proxy's own health, on the port that clients use. The API server's is at `/livez` and `/readyz`.
fn is_own_health(parts: &Parts) -> bool {
    parts.uri.path() == "/healthz" && matches!(parts.method, Method::GET | Method::HEAD)
}

fn class(target: &Target, method: &Method, body: &Outgoing) -> Class {
    // A watch with a body exists in theory only.
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
            "the URL holds bytes that must be percent-encoded",
        )
    })
}

/// Why there is no answer: the client's doing goes before what it led to.
fn failure(error: SendError, outcome: Option<&Outcome>) -> Failure {
    outcome
        .and_then(|outcome| outcome.get().cloned())
        .unwrap_or_else(|| error.into())
}
