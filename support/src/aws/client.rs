//! A client of services of AWS in one region: credentials that are renewed, signatures, retries.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Method, Request};
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use super::credentials::{Source, assume};
use super::query::{Signer, form, post};
use super::service::{EC2, ELB, ELB_V2, IAM, RAM, ROUTE53, S3, STS, Service};
use super::signature::{Credentials, Scope, sign};
use super::{Error, Variable, endpoint, refused, refused_in_json};
use crate::outbound::Http;

/// Credentials of roles are used for so long; they are valid for an hour.
const RENEWED_AFTER: Duration = Duration::from_mins(45);

/// A client.
#[derive(Debug)]
pub struct Client {
    http: Http,
    source: Source,
    /// ARN of a role that is assumed with the credentials.
    role: Option<String>,
    region: String,
    session: String,
    /// URLs that replace those of AWS, by service.
    endpoints: BTreeMap<&'static str, String>,
    loaded: Mutex<Option<(Instant, Credentials)>>,
}

/// A request of a service that has paths and documents (REST).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rest {
    /// The method.
    pub method: Method,
    /// The path, encoded, with a slash at the beginning.
    pub path: String,
    /// The query, encoded. Each parameter has a `=`.
    pub query: String,
    /// The type of the body; none without a body.
    pub content_type: Option<&'static str>,
    /// The body.
    pub body: String,
}

// === impl Client ===

impl Client {
    /// A client for a region. Audit logs of AWS show the name of the session; `variable` names endpoints that are not those of
    /// AWS.
    pub fn new(
        source: Source,
        role: Option<String>,
        region: &str,
        session: &str,
        variable: Variable<'_>,
    ) -> Self {
        let services = [EC2, ELB, ELB_V2, IAM, RAM, ROUTE53, S3, STS];
        let endpoints = services
            .iter()
            .filter_map(|service| Some((service.id, endpoint(service.id, variable)?)));
        Self {
            http: Http::new(),
            source,
            role,
            region: region.to_owned(),
            session: session.to_owned(),
            endpoints: endpoints.collect(),
            loaded: Mutex::default(),
        }
    }

    /// The region.
    pub fn region(&self) -> &str {
        &self.region
    }

    /// Sends a form, and returns the document of the response. A request that is not `repeatable` is sent again only if it
    /// certainly had no effect.
    pub async fn query(
        &self,
        service: &Service,
        action: &str,
        parameters: &[(String, String)],
        repeatable: bool,
    ) -> Result<String, Error> {
        let form = form(action, service.version, parameters);
        let build = |url: &str| post(url, &form);
        self.send(service, action, repeatable, build).await
    }

    /// Sends a request with a path, and returns the document of the response.
    pub async fn rest(
        &self,
        service: &Service,
        action: &str,
        rest: &Rest,
        repeatable: bool,
    ) -> Result<String, Error> {
        let build = |url: &str| {
            let separator = if rest.query.is_empty() { "" } else { "?" };
            let url = format!("{url}{}{separator}{}", rest.path, rest.query);
            let mut request = Request::builder().method(rest.method.clone()).uri(url);
            if let Some(content_type) = rest.content_type {
                request = request.header("content-type", content_type);
            }
            if *service == S3 && !rest.body.is_empty() {
                // Some requests need a checksum beside the signature.
                let digest = STANDARD.encode(Sha256::digest(&rest.body));
                request = request.header("x-amz-checksum-sha256", digest);
            }
            request.body(Bytes::from(rest.body.clone()))
        };
        self.send(service, action, repeatable, build).await
    }

    async fn send(
        &self,
        service: &Service,
        action: &str,
        repeatable: bool,
        build: impl Fn(&str) -> http::Result<Request<Bytes>>,
    ) -> Result<String, Error> {
        let mut failed = 0;
        loop {
            let credentials = self.credentials().await?;
            let error = match self.attempt(service, action, &credentials, &build).await {
                Ok(document) => return Ok(document),
                Err(error) => error,
            };
            failed += 1;
            let is_worth_it = error.is_throttled() || repeatable && error.is_uncertain();
            let pause = service.retry.pause(failed, random());
            let Some(pause) = pause.filter(|_| is_worth_it) else {
                return Err(error);
            };
            tracing::debug!(action, code = error.code(), "Retrying a request");
            sleep(pause).await;
        }
    }

    async fn attempt(
        &self,
        service: &Service,
        action: &str,
        credentials: &Credentials,
        build: impl Fn(&str) -> http::Result<Request<Bytes>>,
    ) -> Result<String, Error> {
        let what = || format!("{action} to {}", service.signing);
        let cannot = |source| Error::Http {
            what: what(),
            source,
        };
        let scope = Scope {
            region: service.signing_region(&self.region),
            service: service.signing,
            time: Timestamp::now(),
        };
        let url = self.url(service);
        let request = build(&url).and_then(|mut request| {
            sign(&mut request, credentials, &scope)?;
            Ok(request)
        });
        let request = request.map_err(|error| cannot(error.into()))?;
        let response = self.http.attempt(request).await.map_err(cannot)?;
        let body = String::from_utf8_lossy(response.body()).into_owned();
        if response.status().is_success() {
            return Ok(body);
        }
        if *service == RAM {
            return Err(refused_in_json(what(), &response));
        }
        Err(refused(what(), response.status(), &body))
    }

    fn url(&self, service: &Service) -> String {
        let replaced = self.endpoints.get(service.id).cloned();
        replaced.unwrap_or_else(|| service.url(&self.region, &|_| None))
    }

    async fn credentials(&self) -> Result<Credentials, Error> {
        let mut loaded = self.loaded.lock().await;
        if let Some((at, credentials)) = &*loaded
            && at.elapsed() < RENEWED_AFTER
        {
            return Ok(credentials.clone());
        }
        let sts = self.url(&STS);
        let source = self.source.clone();
        let mut credentials = source.load(&self.http, &sts, &self.session).await?;
        if let Some(role) = &self.role {
            let signer = Signer {
                credentials: &credentials,
                region: &self.region,
                service: STS.signing,
            };
            credentials = assume(&self.http, &sts, &self.session, role, signer).await?;
        }
        *loaded = Some((Instant::now(), credentials.clone()));
        Ok(credentials)
    }
}

/// For jitter: without it, pauses are as long as they may be.
fn random() -> u8 {
    let mut byte = [u8::MAX];
    // An error leaves the byte as it is.
    let _ = aws_lc_rs::rand::fill(&mut byte);
    byte[0]
}
