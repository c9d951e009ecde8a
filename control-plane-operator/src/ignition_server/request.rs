//! Handles requests of machines. Pure.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};

use super::cache::{Cache, Entry};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
/// Ignition retries after this status; most other statuses are final.
const RETRY_LATER: StatusCode = StatusCode::NETWORK_AUTHENTICATION_REQUIRED;

/// A response, and what was served.
#[derive(Debug)]
pub(super) struct PayloadResponse {
    pub(super) response: Response<Bytes>,
    pub(super) served: Served,
}

/// What was served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Served {
    /// A payload.
    Payload(Entry),
    /// No payload: the token is unknown.
    Missed,
    /// Another response.
    Other,
}

/// Handles a request.
pub(super) fn handle<B>(request: &Request<B>, cache: &Cache) -> PayloadResponse {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return plain_text(
            StatusCode::METHOD_NOT_ALLOWED,
            "only GET and HEAD are supported\n",
        );
    }
    match request.uri().path() {
        "/healthz" => plain_text(StatusCode::OK, "ok\n"),
        "/ignition" => payload(request.headers(), cache),
        _ => plain_text(
            StatusCode::NOT_FOUND,
            "not found: use /ignition or /healthz\n",
        ),
    }
}

fn payload(headers: &HeaderMap, cache: &Cache) -> PayloadResponse {
    let Some(token) = token(headers) else {
        let text = "missing or invalid header: Authorization: Bearer BASE64_TOKEN\n";
        return plain_text(StatusCode::UNAUTHORIZED, text);
    };
    match cache.get(&token) {
        Some(entry) => PayloadResponse {
            response: response(StatusCode::OK, JSON, entry.payload.clone()),
            served: Served::Payload(entry),
        },
        None => PayloadResponse {
            served: Served::Missed,
            ..plain_text(RETRY_LATER, "no payload for this token yet\n")
        },
    }
}

fn token(headers: &HeaderMap) -> Option<String> {
    let header = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, encoded) = header.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let token = STANDARD.decode(encoded.trim()).ok()?;
    String::from_utf8(token)
        .ok()
        .filter(|token| !token.is_empty())
}

fn plain_text(status: StatusCode, text: &'static str) -> PayloadResponse {
    PayloadResponse {
        response: response(status, TEXT, Bytes::from_static(text.as_bytes())),
        served: Served::Other,
    }
}

fn response(status: StatusCode, content_type: HeaderValue, body: Bytes) -> Response<Bytes> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache() -> Cache {
        let cache = Cache::default();
        let entry = Entry {
            secret: "token-a".to_owned(),
            pool: "clusters/workers".to_owned(),
            payload: Bytes::from_static(b"{\"ignition\":{}}"),
        };
        cache.put(&["0b7c", "old"], &entry);
        cache
    }

    fn send(method: Method, path: &str, authorization: Option<&str>) -> PayloadResponse {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(value) = authorization {
            request = request.header(AUTHORIZATION, value);
        }
        handle(&request.body(()).unwrap(), &cache())
    }

    #[test]
    fn payload_requests_are_authorized_by_token() {
        let bearer = |token: &str| format!("Bearer {}", STANDARD.encode(token));
        for (authorization, expected) in [
            (Some(bearer("0b7c")), 200),
            (Some(bearer("old")), 200),
            (Some(bearer("0b7c").replace("Bearer", "bearer")), 200),
            (Some(bearer("other")), 511),
            (Some(bearer("")), 401),
            (Some("Bearer 0b7c!".to_owned()), 401),
            (Some("Basic MGI3Yw==".to_owned()), 401),
            (Some("MGI3Yw==".to_owned()), 401),
            (None, 401),
        ] {
            let response = send(Method::GET, "/ignition", authorization.as_deref());
            assert_eq!(response.response.status(), expected, "{authorization:?}");
            let is_payload = matches!(response.served, Served::Payload(_));
            assert_eq!(is_payload, expected == 200);
        }
    }

    #[test]
    fn other_paths_and_methods_are_rejected() {
        for (method, path, expected) in [
            (Method::GET, "/healthz", 200),
            (Method::GET, "/", 404),
            (Method::GET, "/ignition/", 404),
            (Method::GET, "/config/worker", 404),
            (Method::POST, "/ignition", 405),
        ] {
            let response = send(method, path, None);
            assert_eq!(response.response.status(), expected, "{path}");
            assert_eq!(response.served, Served::Other);
        }
    }
}
