//! A client that rejects writes once this process no longer leads.
//!
//! All requests of a leader pass this layer, so that no caller can forget the check. A write is rejected when the claim
//! to the lease has ended, and aborted when it ends while the write is in flight. The lease itself is valid for longer,
//! which covers the time in which the server may still process such a write. Each request carries the fencing epoch in
//! its `User-Agent`, so that the audit log has it.
//!
//! A process can be frozen between this check and the server. For that case writes also carry a precondition
//! ([`crate::apply`]): a late write fails with a conflict.
//!
//! Requests have deadlines ([`crate::deadline`]): a write whose answer is lost does not block a leader, which would renew
//! its lease on another connection for ever.

use std::pin::Pin;
use std::task::{Context, Poll};

use http::header::USER_AGENT;
use http::{HeaderValue, Method, Request};
use kube::client::Body;
use tower::{BoxError, Layer, Service};

use crate::deadline::Timeouts;
use crate::lease::Claim;

/// A write was rejected: this process does not lead, or its term ended while the write was in flight.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("write rejected: this process does not hold the lease")]
pub struct Refused;

/// Adds a fence to a client.
#[derive(Debug, Clone)]
pub struct Fence {
    claim: Claim,
    agent: HeaderValue,
}

/// A service behind a [`Fence`].
#[derive(Debug, Clone)]
pub struct Fenced<S> {
    inner: S,
    fence: Fence,
}

/// A client for the leader: it can write while the claim is held.
pub fn client(config: &kube::Config, claim: &Claim, program: &str) -> kube::Result<kube::Client> {
    client_with(config, claim, program, Timeouts::default())
}

pub(crate) fn client_with(
    config: &kube::Config,
    claim: &Claim,
    program: &str,
    timeouts: Timeouts,
) -> kube::Result<kube::Client> {
    let fence = Fence::new(claim.clone(), program);
    let builder = crate::client::builder(config, timeouts)?;
    Ok(builder.with_layer(&fence).build())
}

// === impl Fence ===

impl Fence {
    /// A fence for the holder of a claim.
    pub fn new(claim: Claim, program: &str) -> Self {
        let agent = format!(
            "{program} ({}; {}; epoch={})",
            claim.lease(),
            claim.identity(),
            claim.epoch()
        );
        let agent = HeaderValue::from_str(&agent).unwrap_or(HeaderValue::from_static("unnamed"));
        Self { claim, agent }
    }
}

impl<S> Layer<S> for Fence {
    type Service = Fenced<S>;

    fn layer(&self, inner: S) -> Fenced<S> {
        Fenced {
            inner,
            fence: self.clone(),
        }
    }
}

// === impl Fenced ===

impl<S> Service<Request<Body>> for Fenced<S>
where
    S: Service<Request<Body>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        request
            .headers_mut()
            .insert(USER_AGENT, self.fence.agent.clone());
        if is_read(request.method()) {
            let answer = self.inner.call(request);
            return Box::pin(async move { answer.await.map_err(Into::into) });
        }
        let mut claim = self.fence.claim.clone();
        if !claim.is_held() {
            return Box::pin(async { Err(Refused.into()) });
        }
        let answer = self.inner.call(request);
        Box::pin(async move {
            tokio::select! {
                biased;
                answer = answer => answer.map_err(Into::into),
                () = claim.ended() => Err(Refused.into()),
            }
        })
    }
}

fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::Response;
    use tower::ServiceExt;

    use super::*;

    fn request(method: Method) -> Request<Body> {
        let mut request = Request::new(Body::empty());
        *request.method_mut() = method;
        request
    }

    /// A server that answers with the User-Agent.
    async fn echo(request: Request<Body>) -> Result<Response<String>, Infallible> {
        let agent = request.headers()[USER_AGENT].to_str().unwrap().to_owned();
        Ok(Response::new(agent))
    }

    /// Check O02.
    #[tokio::test]
    async fn requests_carry_the_epoch() {
        let (_term, claim) = Claim::for_tests("operator", "pod-a", 7);
        let service = Fence::new(claim, "program/1").layer(tower::service_fn(echo));
        let answer = service.oneshot(request(Method::PATCH)).await.unwrap();
        assert_eq!(answer.body(), "program/1 (operator; pod-a; epoch=7)");
    }

    /// Check O02.
    #[tokio::test]
    async fn writes_after_the_term_are_rejected() {
        let (term, claim) = Claim::for_tests("operator", "pod-a", 1);
        let service = Fence::new(claim, "program/1").layer(tower::service_fn(echo));
        term.end();
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            let refused = service.clone().oneshot(request(method)).await.unwrap_err();
            assert!(refused.is::<Refused>(), "{refused}");
        }
        service.oneshot(request(Method::GET)).await.unwrap();
    }

    /// Check O02.
    #[tokio::test]
    async fn a_write_in_flight_is_aborted_at_the_end_of_the_term() {
        let (term, claim) = Claim::for_tests("operator", "pod-a", 1);
        let never = |_| std::future::pending::<Result<Response<String>, Infallible>>();
        let service = Fence::new(claim, "program/1").layer(tower::service_fn(never));
        let write = tokio::spawn(service.oneshot(request(Method::PUT)));
        tokio::task::yield_now().await;
        term.end();
        let refused = write.await.unwrap().unwrap_err();
        assert!(refused.is::<Refused>(), "{refused}");
    }
}
