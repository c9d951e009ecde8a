//! A client that refuses to write for a leader whose time is up.
//!
//! Every request of a leader passes here, so that no caller can forget to ask. A write is refused once the claim to the
//! lease is no longer safely ours, and is given up when that moment comes while it is under way; the lease itself lives
//! on for as long as it takes to be sure that the server is done with it. Each request carries the fencing epoch in its
//! `User-Agent`, where the server's audit log keeps it.
//!
//! Between this check and the server is a gap that no client can close: a process may be frozen there. So writes also
//! carry a precondition ([`crate::apply`]); a late one finds that its object has changed.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::USER_AGENT;
use http::{HeaderValue, Method, Request};
use kube::client::{Body, ClientBuilder};
use tower::{BoxError, Layer, Service};

use crate::lease::Claim;

/// How long the head of an answer to a read may take. Watches and lists send it at once.
const READ_TIME: Duration = Duration::from_secs(30);

/// A write was refused: this process does not lead, or not for long enough.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("this process does not lead (any more): nothing was written")]
pub struct Refused;

/// Puts a fence before a client.
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

/// A client for the leader: it writes for as long as the claim is held.
pub fn client(config: kube::Config, claim: &Claim, program: &str) -> kube::Result<kube::Client> {
    let fence = Fence::new(claim.clone(), program);
    Ok(ClientBuilder::try_from(config)?.with_layer(&fence).build())
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
            return Box::pin(async move {
                match tokio::time::timeout(READ_TIME, answer).await {
                    Ok(answer) => answer.map_err(Into::into),
                    Err(late) => Err(late.into()),
                }
            });
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

    /// A server that tells who asked.
    async fn echo(request: Request<Body>) -> Result<Response<String>, Infallible> {
        let agent = request.headers()[USER_AGENT].to_str().unwrap().to_owned();
        Ok(Response::new(agent))
    }

    #[tokio::test]
    async fn o02_requests_carry_the_epoch() {
        let (_term, claim) = Claim::for_tests("operator", "pod-a", 7);
        let service = Fence::new(claim, "program/1").layer(tower::service_fn(echo));
        let answer = service.oneshot(request(Method::PATCH)).await.unwrap();
        assert_eq!(answer.body(), "program/1 (operator; pod-a; epoch=7)");
    }

    #[tokio::test]
    async fn o02_nothing_is_written_after_the_term() {
        let (term, claim) = Claim::for_tests("operator", "pod-a", 1);
        let service = Fence::new(claim, "program/1").layer(tower::service_fn(echo));
        term.end();
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            let refused = service.clone().oneshot(request(method)).await.unwrap_err();
            assert!(refused.is::<Refused>(), "{refused}");
        }
        service.oneshot(request(Method::GET)).await.unwrap();
    }

    #[tokio::test]
    async fn o02_a_write_under_way_is_given_up_at_the_end_of_the_term() {
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
