//! Calls of HTTP APIs with JSON documents and bearer tokens, which all clouds but AWS have.
//!
//! [`Calls`] is the border: code that decides which calls to make takes anything that implements it, a [`Client`] or a fake.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, Method, StatusCode};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use crate::outbound::{self, Http};

/// The pauses between attempts after transient failures.
const PAUSES: [Duration; 4] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
];
/// A token that is valid for less than this is replaced.
const LEAST_VALIDITY: Duration = Duration::from_mins(5);

/// A call.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The URL, encoded, with its query.
    pub url: String,
    /// Headers beside those for the token and the type of the body.
    pub headers: BTreeMap<&'static str, String>,
    /// The document; null without one.
    pub body: Value,
}

/// The response of a call that succeeded.
#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    /// The status, below 300.
    pub status: u16,
    /// Its headers, with names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The document; its text if it is XML, and null without one.
    pub body: Value,
}

/// Who answers calls: a cloud, or a fake of it.
pub trait Calls {
    /// Sends a call. A status of 300 and above is an error.
    fn call(&self, request: &Request) -> impl Future<Output = Result<Response, Error>> + Send;

    /// Waits, for what takes time in the cloud.
    fn pause(&self, time: Duration) -> impl Future<Output = ()> + Send;
}

/// Where tokens come from.
pub trait TokenSource: fmt::Debug + Send + Sync {
    /// Requests a token.
    fn load(&self, http: &Http) -> impl Future<Output = Result<Token, Error>> + Send;
}

/// A bearer token. It never appears in a log.
#[derive(Clone)]
pub struct Token {
    /// The value.
    pub value: String,
    /// How long it is valid.
    pub valid_for: Duration,
}

/// A client of one cloud.
#[derive(Debug)]
pub struct Client<T> {
    http: Http,
    source: T,
    /// The largest response, in bytes.
    largest: usize,
    loaded: Mutex<Option<(Instant, Token)>>,
}

/// A call failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No response.
    #[error("failed to send {what}")]
    Http {
        /// The method and the URL without its query.
        what: String,
        /// Why.
        #[source]
        source: outbound::Error,
    },
    /// The cloud refused the call.
    #[error("failed to send {what}: {status} {code}: {message}")]
    Refused {
        /// The method and the URL without its query.
        what: String,
        /// The status.
        status: u16,
        /// The code of the error, if the response has one.
        code: String,
        /// What the cloud says.
        message: String,
    },
    /// The response has no use.
    #[error("failed to read the response of {what}: {problem}")]
    Response {
        /// The method and the URL without its query.
        what: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The credentials cannot be used.
    #[error("failed to get a token: {0}")]
    Credentials(String),
}

// === impl Request ===

impl Request {
    /// A call without a document.
    pub fn new(method: Method, url: impl Into<String>) -> Self {
        Self {
            method,
            url: url.into(),
            headers: BTreeMap::new(),
            body: Value::Null,
        }
    }

    /// A GET.
    pub fn get(url: impl Into<String>) -> Self {
        Self::new(Method::GET, url)
    }

    /// A PUT of a document.
    pub fn put(url: impl Into<String>, body: Value) -> Self {
        Self::new(Method::PUT, url).with_body(body)
    }

    /// A POST of a document.
    pub fn post(url: impl Into<String>, body: Value) -> Self {
        Self::new(Method::POST, url).with_body(body)
    }

    /// A PATCH with a document.
    pub fn patch(url: impl Into<String>, body: Value) -> Self {
        Self::new(Method::PATCH, url).with_body(body)
    }

    /// A DELETE.
    pub fn delete(url: impl Into<String>) -> Self {
        Self::new(Method::DELETE, url)
    }

    /// With a document.
    pub fn with_body(mut self, body: Value) -> Self {
        self.body = body;
        self
    }

    /// With a header.
    pub fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.insert(name, value.into());
        self
    }

    /// The path, without host and query.
    pub fn path(&self) -> &str {
        let rest = self.url.split_once("://").map_or("", |(_, rest)| rest);
        let path = rest.find('/').map_or("", |at| &rest[at..]);
        path.split('?').next().unwrap_or_default()
    }

    /// The host, with its port.
    pub fn host(&self) -> &str {
        let rest = self.url.split_once("://").map_or("", |(_, rest)| rest);
        rest.split(['/', '?']).next().unwrap_or_default()
    }

    /// A parameter of the query, decoded.
    pub fn parameter(&self, name: &str) -> Option<String> {
        let query = self.url.split_once('?')?.1;
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        let found = pairs.find(|(key, _)| key == name)?;
        Some(found.1.into_owned())
    }

    /// For errors: a query may have secrets.
    pub fn what(&self) -> String {
        let url = self.url.split('?').next().unwrap_or_default();
        format!("{} {url}", self.method)
    }

    /// Whether a second call has the effect of one.
    fn is_repeatable(&self) -> bool {
        [Method::GET, Method::PUT, Method::DELETE, Method::HEAD].contains(&self.method)
    }

    fn build(&self, token: &Token) -> http::Result<http::Request<Bytes>> {
        let mut request = http::Request::builder()
            .method(self.method.clone())
            .uri(&self.url)
            .header(AUTHORIZATION, format!("Bearer {}", token.value));
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        if self.body.is_null() {
            if self.method == Method::POST {
                // Clients send no length of what is empty, and servers refuse a POST without one.
                request = request.header(CONTENT_LENGTH, "0");
            }
            return request.body(Bytes::new());
        }
        if !self.headers.contains_key(CONTENT_TYPE.as_str()) {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        request.body(Bytes::from(self.body.to_string()))
    }
}

// === impl Client ===

impl<T: TokenSource> Client<T> {
    /// A client with tokens of a source.
    pub fn new(source: T) -> Self {
        Self {
            http: Http::new(),
            source,
            largest: outbound::LARGEST_RESPONSE,
            loaded: Mutex::default(),
        }
    }

    /// With another limit of responses, in bytes.
    pub fn with_largest_response(mut self, largest: usize) -> Self {
        self.largest = largest;
        self
    }

    async fn token(&self) -> Result<Token, Error> {
        let mut loaded = self.loaded.lock().await;
        if let Some((at, token)) = &*loaded
            && at.elapsed() + LEAST_VALIDITY < token.valid_for
        {
            return Ok(token.clone());
        }
        let token = self.source.load(&self.http).await?;
        *loaded = Some((Instant::now(), token.clone()));
        Ok(token)
    }

    async fn attempt(&self, request: &Request) -> Result<Response, Error> {
        let cannot = |source| Error::Http {
            what: request.what(),
            source,
        };
        let token = self.token().await?;
        let sent = request
            .build(&token)
            .map_err(|error| cannot(error.into()))?;
        let response = self.http.attempt_within(sent, self.largest).await;
        let response = response.map_err(cannot)?;
        let status = response.status();
        let text = response.body();
        let body = serde_json::from_slice::<Value>(text);
        if !status.is_success() {
            return Err(refused(request, status, &body.unwrap_or_default()));
        }
        let body = match body {
            Ok(body) => body,
            Err(_) if text.trim_ascii().is_empty() => Value::Null,
            Err(_) if is_xml(response.headers()) => {
                Value::String(String::from_utf8_lossy(text).into_owned())
            }
            Err(error) => {
                return Err(Error::Response {
                    what: request.what(),
                    problem: error.to_string(),
                });
            }
        };
        let headers = response.headers().iter().filter_map(|(name, value)| {
            let value = value.to_str().ok()?;
            Some((name.as_str().to_owned(), value.to_owned()))
        });
        Ok(Response {
            status: status.as_u16(),
            headers: headers.collect(),
            body,
        })
    }
}

impl<T: TokenSource> Calls for Client<T> {
    async fn call(&self, request: &Request) -> Result<Response, Error> {
        let mut pauses = PAUSES.iter();
        loop {
            let error = match self.attempt(request).await {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            let is_worth_it =
                error.is_throttled() || request.is_repeatable() && error.is_uncertain();
            let Some(pause) = pauses.next().filter(|_| is_worth_it) else {
                return Err(error);
            };
            tracing::debug!(call = request.what(), "Retrying a request");
            sleep(*pause).await;
        }
    }

    async fn pause(&self, time: Duration) {
        sleep(time).await;
    }
}

// === impl Error ===

impl Error {
    /// The code of a refusal. Empty for other errors.
    pub fn code(&self) -> &str {
        match self {
            Self::Refused { code, .. } => code,
            _ => "",
        }
    }

    /// The status of a refusal.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Whether what the call names is not there.
    pub fn is_absent(&self) -> bool {
        matches!(self.status(), Some(404 | 410))
    }

    /// Whether what the call would create is there, or something changed it at the same time.
    pub fn is_conflict(&self) -> bool {
        self.status() == Some(409)
    }

    /// Whether there were too many requests: this one had no effect.
    pub fn is_throttled(&self) -> bool {
        self.status() == Some(429)
    }

    /// Whether the call may have had its effect although no response says so.
    pub fn is_uncertain(&self) -> bool {
        match self {
            Self::Http { source, .. } => matches!(
                source,
                outbound::Error::Connection(_)
                    | outbound::Error::Body(_)
                    | outbound::Error::Timeout
            ),
            Self::Refused { status, .. } => *status >= 500,
            _ => false,
        }
    }

    /// Whether credentials are invalid or lack a permission, which no repetition changes.
    pub fn is_denied(&self) -> bool {
        matches!(self, Self::Credentials(_)) || matches!(self.status(), Some(401 | 403))
    }

    /// How long a controller waits before it tries again: longer where only someone else can change the cause.
    pub fn pause(&self) -> Duration {
        if self.is_conflict() {
            return Duration::from_secs(30);
        }
        if self.is_throttled() {
            return Duration::from_mins(5);
        }
        Duration::from_mins(if self.is_denied() { 10 } else { 2 })
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token")
            .field("valid_for", &self.valid_for)
            .finish_non_exhaustive()
    }
}

fn is_xml(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    kind.is_some_and(|kind| kind.contains("/xml"))
}

/// The error of a response. Clouds differ in where its code and its message are: `error.code` and `error.message` of Azure,
/// `error.status` or `error.errors[0].reason` of Google Cloud, `errors[0]` of IBM Cloud.
pub fn refused(request: &Request, status: StatusCode, body: &Value) -> Error {
    let text = |pointers: &[&str]| {
        let found = pointers.iter().find_map(|it| body.pointer(it)?.as_str());
        found.unwrap_or_default().to_owned()
    };
    let code = text(&[
        "/error/status",
        "/error/code",
        "/error/errors/0/reason",
        "/errors/0/code",
        "/code",
        "/error",
    ]);
    let message = text(&[
        "/error/message",
        "/errors/0/message",
        "/message",
        "/description",
        "/error_description",
        "/errorMessage",
    ]);
    Error::Refused {
        what: request.what(),
        status: status.as_u16(),
        code,
        message,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parts_of_a_url() {
        let request = Request::get("https://a.example.com:8/b/c?d=e%20f&g=h");
        assert_eq!(request.host(), "a.example.com:8");
        assert_eq!(request.path(), "/b/c");
        assert_eq!(request.parameter("d").as_deref(), Some("e f"));
        assert_eq!(request.parameter("x"), None);
        assert_eq!(request.what(), "GET https://a.example.com:8/b/c");
        let bare = Request::get("https://a.example.com?b=c");
        assert_eq!((bare.host(), bare.path()), ("a.example.com", ""));
    }

    #[test]
    fn refusals_of_three_clouds() {
        let request = Request::get("https://a.example.com/b");
        for (body, code, message) in [
            (
                json!({"error": {"code": "AuthorizationFailed", "message": "no"}}),
                "AuthorizationFailed",
                "no",
            ),
            (
                json!({"error": {"code": 404, "status": "NOT_FOUND", "message": "no"}}),
                "NOT_FOUND",
                "no",
            ),
            (
                json!({"error": {"code": 404, "errors": [{"reason": "notFound"}], "message": "no"}}),
                "notFound",
                "no",
            ),
            (
                json!({"errors": [{"code": "not_found", "message": "no"}]}),
                "not_found",
                "no",
            ),
            (json!({"description": "no"}), "", "no"),
            (json!(null), "", ""),
        ] {
            let error = refused(&request, StatusCode::NOT_FOUND, &body);
            assert!(error.is_absent());
            assert_eq!(error.code(), code, "{body}");
            let expected =
                format!("failed to send GET https://a.example.com/b: 404 {code}: {message}");
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn refusals_differ_in_what_may_have_happened() {
        let of = |status| Error::Refused {
            what: String::new(),
            status,
            code: String::new(),
            message: String::new(),
        };
        for (status, expected) in [
            (404, [true, false, false, false, false]),
            (409, [false, true, false, false, false]),
            (429, [false, false, true, false, false]),
            (503, [false, false, false, true, false]),
            (403, [false, false, false, false, true]),
        ] {
            let error = of(status);
            let found = [
                error.is_absent(),
                error.is_conflict(),
                error.is_throttled(),
                error.is_uncertain(),
                error.is_denied(),
            ];
            assert_eq!(found, expected, "{status}");
        }
        for (status, expected) in [(429, 300), (403, 600), (409, 30), (400, 120), (503, 120)] {
            assert_eq!(
                of(status).pause(),
                Duration::from_secs(expected),
                "{status}"
            );
        }
    }

    #[test]
    fn documents_of_object_storage_are_xml() {
        for (kind, expected) in [
            ("application/xml", true),
            ("text/xml; charset=utf-8", true),
            ("application/json", false),
        ] {
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, kind.parse().unwrap())]);
            assert_eq!(is_xml(&headers), expected, "{kind}");
        }
        assert!(!is_xml(&HeaderMap::new()));
    }

    #[test]
    fn a_post_without_a_document_says_that_it_is_empty() {
        let token = Token {
            value: String::new(),
            valid_for: Duration::ZERO,
        };
        for (method, expected) in [(Method::POST, true), (Method::GET, false)] {
            let request = Request::new(method, "https://a.example.com/b");
            let built = request.build(&token).unwrap();
            assert_eq!(built.headers().contains_key(CONTENT_LENGTH), expected);
        }
    }

    #[test]
    fn a_token_is_not_shown() {
        let token = Token {
            value: "secret".to_owned(),
            valid_for: Duration::from_secs(1),
        };
        assert!(!format!("{token:?}").contains("secret"));
    }
}
