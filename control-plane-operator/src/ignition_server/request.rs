//! What a machine asks, and what it is answered. Pure.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};

use super::cache::{Cache, Entry};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
/// Ignition waits and asks again when it hears this, and gives up on most other answers.
const NOT_YET: StatusCode = StatusCode::NETWORK_AUTHENTICATION_REQUIRED;

/// An answer, and whom it was for.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) response: Response<Bytes>,
    pub(super) served: Served,
}

/// What was served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Served {
    /// A payload.
    Payload(Entry),
    /// Nothing: the token is not known, or not yet.
    Missed,
    /// Something else.
    Other,
}

/// Answers a request.
pub(super) fn answer<B>(request: &Request<B>, cache: &Cache) -> Answer {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return other(StatusCode::METHOD_NOT_ALLOWED, "only GET is served\n");
    }
    match request.uri().path() {
        "/healthz" => other(StatusCode::OK, "ok\n"),
        "/ignition" => payload(request.headers(), cache),
        _ => other(StatusCode::NOT_FOUND, "there is /ignition and /healthz\n"),
    }
}

fn payload(headers: &HeaderMap, cache: &Cache) -> Answer {
    let Some(token) = token(headers) else {
        let text = "show the token as: Authorization: Bearer BASE64\n";
        return other(StatusCode::UNAUTHORIZED, text);
    };
    match cache.get(&token) {
        Some(entry) => Answer {
            response: response(StatusCode::OK, JSON, entry.payload.clone()),
            served: Served::Payload(entry),
        },
        None => Answer {
            served: Served::Missed,
            ..other(NOT_YET, "there is no payload for this token, or not yet\n")
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

fn other(status: StatusCode, text: &'static str) -> Answer {
    Answer {
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

    fn ask(method: Method, path: &str, authorization: Option<&str>) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(value) = authorization {
            request = request.header(AUTHORIZATION, value);
        }
        answer(&request.body(()).unwrap(), &cache())
    }

    #[test]
    fn machines_are_told_apart_by_their_token() {
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
            let answer = ask(Method::GET, "/ignition", authorization.as_deref());
            assert_eq!(answer.response.status(), expected, "{authorization:?}");
            let is_payload = matches!(answer.served, Served::Payload(_));
            assert_eq!(is_payload, expected == 200);
        }
    }

    #[test]
    fn nothing_else_is_served() {
        for (method, path, expected) in [
            (Method::GET, "/healthz", 200),
            (Method::GET, "/", 404),
            (Method::GET, "/ignition/", 404),
            (Method::GET, "/config/worker", 404),
            (Method::POST, "/ignition", 405),
        ] {
            let answer = ask(method, path, None);
            assert_eq!(answer.response.status(), expected, "{path}");
            assert_eq!(answer.served, Served::Other);
        }
    }
}
