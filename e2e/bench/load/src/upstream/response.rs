//! Responses of the fake API server.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;

use super::watch::WatchBody;
use crate::body::PatternBody;
use crate::fixture::Fixture;
use crate::wire::Spelling;

/// How often the events of a watch come when the client does not say.
const INTERVAL_MICROS: u64 = 1_000_000;

/// The state that responses need.
#[derive(Debug)]
pub(super) struct Server {
    fixture: Fixture,
    collection: String,
    item: String,
    machine: Bytes,
    authorization: HeaderValue,
}

/// The body of a response.
pub(super) enum FakeResponse {
    /// Known as a whole.
    Whole(Full<Bytes>),
    /// A long list.
    List(PatternBody),
    /// A watch.
    Watch(WatchBody),
}

// === impl Server ===

impl Server {
    /// A server that accepts this token.
    pub(super) fn new(token: &str) -> Self {
        let fixture = Fixture::new(Spelling::Private);
        let authorization = HeaderValue::from_str(&format!("Bearer {token}"))
            .unwrap_or(HeaderValue::from_static("Bearer"));
        Self {
            collection: fixture.machines(),
            item: fixture.machine_path(),
            machine: fixture.machine().to_bytes(),
            fixture,
            authorization,
        }
    }

    /// Responds to one request.
    pub(super) async fn response(&self, request: Request<Incoming>) -> Response<FakeResponse> {
        let path = request.uri().path();
        if matches!(path, "/readyz" | "/livez" | "/healthz") {
            return with_headers(StatusCode::OK, "text/plain; charset=utf-8", whole("ok"));
        }
        if path == "/version" {
            return json(
                StatusCode::OK,
                whole(r#"{"major":"1","minor":"35","gitVersion":"v1.35.4"}"#),
            );
        }
        if request.headers().get(AUTHORIZATION) != Some(&self.authorization) {
            return refusal(StatusCode::UNAUTHORIZED, "the token is missing or wrong");
        }
        match (request.method(), path) {
            (&Method::GET, path) if path == self.item => {
                json(StatusCode::OK, whole(self.machine.clone()))
            }
            (&Method::PATCH, path) if path == self.item => self.patch(request).await,
            (&Method::GET, path) if path == self.collection => {
                self.collection(request.uri().query().unwrap_or_default())
            }
            _ => refusal(StatusCode::NOT_FOUND, "there is only one Machine here"),
        }
    }

    /// Checks that the patch arrives with stored names.
    async fn patch(&self, request: Request<Incoming>) -> Response<FakeResponse> {
        let Ok(body) = request.into_body().collect().await else {
            return refusal(StatusCode::BAD_REQUEST, "the patch did not arrive whole");
        };
        if body.to_bytes() != self.fixture.patch() {
            return refusal(
                StatusCode::UNPROCESSABLE_ENTITY,
                "this is not the expected patch with stored names",
            );
        }
        json(StatusCode::OK, whole(self.machine.clone()))
    }

    fn collection(&self, query: &str) -> Response<FakeResponse> {
        if parameter(query, "watch") == Some("true") {
            let events = number(query, "events").unwrap_or(0);
            let interval = Duration::from_micros(
                number(query, "intervalMicros")
                    .unwrap_or(INTERVAL_MICROS)
                    .max(1),
            );
            return json(
                StatusCode::OK,
                FakeResponse::Watch(WatchBody::new(&self.fixture, events, interval)),
            );
        }
        let items = number(query, "limit").unwrap_or(1);
        json(
            StatusCode::OK,
            FakeResponse::List(self.fixture.list(items).to_body()),
        )
    }
}

fn parameter<'q>(query: &'q str, name: &str) -> Option<&'q str> {
    query.split('&').find_map(|pair| {
        pair.split_once('=')
            .filter(|(key, _)| *key == name)
            .map(|(_, value)| value)
    })
}

fn number(query: &str, name: &str) -> Option<u64> {
    parameter(query, name)?.parse().ok()
}

fn whole(body: impl Into<Bytes>) -> FakeResponse {
    FakeResponse::Whole(Full::new(body.into()))
}

fn json(status: StatusCode, body: FakeResponse) -> Response<FakeResponse> {
    with_headers(status, "application/json", body)
}

fn refusal(status: StatusCode, message: &str) -> Response<FakeResponse> {
    let code = status.as_u16();
    let body = format!(
        "{{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{{}},\"status\":\"Failure\",\"message\":\"{message}\",\
         \"code\":{code}}}\n"
    );
    json(status, whole(body))
}

/// A response with the headers of the API server.
fn with_headers(
    status: StatusCode,
    content_type: &'static str,
    body: FakeResponse,
) -> Response<FakeResponse> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        "audit-id",
        HeaderValue::from_static("4f7c1d0e-66a5-4c0f-9d6e-0a8f5b3c2d19"),
    );
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    let flow = HeaderValue::from_static("b7a5c3f1-0d2e-4a69-8c1b-5e7f9a3d6c20");
    headers.insert("x-kubernetes-pf-flowschema-uid", flow.clone());
    headers.insert("x-kubernetes-pf-prioritylevel-uid", flow);
    response
}

// === impl FakeResponse ===

impl Body for FakeResponse {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.get_mut() {
            Self::Whole(body) => Pin::new(body).poll_frame(cx),
            Self::List(body) => Pin::new(body).poll_frame(cx),
            Self::Watch(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(body) => body.is_end_stream(),
            Self::List(body) => body.is_end_stream(),
            Self::Watch(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(body) => body.size_hint(),
            Self::List(body) => body.size_hint(),
            Self::Watch(body) => body.size_hint(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_read_by_name() {
        let query = "watch=true&events=12&intervalMicros=2000";
        assert_eq!(parameter(query, "watch"), Some("true"));
        assert_eq!(number(query, "events"), Some(12));
        assert_eq!(number(query, "event"), None);
    }
}
