//! Error responses of the proxy itself: their origin, and the `metav1.Status` that Kubernetes clients expect.

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use serde::Serialize;

use crate::body::Body;
use capi_translate::{ErrorType, Refusal};

/// The origin of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The request must be changed.
    Client,
    /// The API server, or the connection to it.
    Upstream,
}

/// What happens to the connection after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disposition {
    KeepAlive,
    Close,
}

/// A response that replaces that of the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) origin: Origin,
    pub(crate) code: StatusCode,
    /// `metav1.StatusReason`.
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    /// Set when something was to be translated and could not be.
    pub(crate) translation: Option<ErrorType>,
    /// Nothing has reached the API server, so that any client may try again.
    pub(crate) retry: bool,
    pub(crate) disposition: Disposition,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(
    clippy::struct_field_names,
    reason = "the field is called so in every Status"
)]
struct Status<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: Empty,
    status: &'static str,
    message: &'a str,
    reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Details>,
    code: u16,
}

#[derive(Serialize)]
struct Empty {}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Details {
    retry_after_seconds: u8,
}

// === impl Failure ===

impl Failure {
    /// The client's request is refused.
    pub(crate) fn client(code: StatusCode, message: impl Into<String>) -> Self {
        Self {
            origin: Origin::Client,
            code,
            reason: reason(code),
            message: message.into(),
            translation: None,
            retry: false,
            disposition: Disposition::KeepAlive,
        }
    }

    /// The request did not reach the API server.
    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self {
            origin: Origin::Upstream,
            retry: true,
            ..Self::client(StatusCode::SERVICE_UNAVAILABLE, message)
        }
    }

    /// The API server's response is missing or of no use; what it has done is not known.
    pub(crate) fn bad_gateway(message: impl Into<String>) -> Self {
        Self {
            origin: Origin::Upstream,
            ..Self::client(StatusCode::BAD_GATEWAY, message)
        }
    }

    /// A request that the translator refused.
    pub(crate) fn refused_request(refusal: Refusal) -> Self {
        let code = StatusCode::from_u16(refusal.code).unwrap_or(StatusCode::BAD_REQUEST);
        Self {
            reason: refusal.reason,
            translation: Some(refusal.error_type),
            ..Self::client(code, refusal.message)
        }
    }

    /// A response that the translator rejected: a bad gateway, regardless of its own status code.
    pub(crate) fn refused_response(refusal: &Refusal) -> Self {
        let message = format!(
            "the response of the API server cannot be translated: {}",
            refusal.message
        );
        Self {
            translation: Some(refusal.error_type),
            ..Self::bad_gateway(message)
        }
    }

    /// The same, and closes the connection.
    #[must_use]
    pub(crate) fn closing(mut self) -> Self {
        self.disposition = Disposition::Close;
        self
    }

    /// The response.
    pub(crate) fn to_response(&self) -> Response<Body> {
        let status = Status {
            kind: "Status",
            api_version: "v1",
            metadata: Empty {},
            status: "Failure",
            message: &self.message,
            reason: self.reason,
            details: self.retry.then_some(Details {
                retry_after_seconds: 1,
            }),
            code: self.code.as_u16(),
        };
        let json = serde_json::to_vec(&status).expect("invariant: a Status has only string keys");
        let mut response = Response::new(Body::full(Bytes::from(json)));
        *response.status_mut() = self.code;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self.retry {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if self.disposition == Disposition::Close {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// The `metav1.StatusReason` that the API machinery gives to a status code.
fn reason(code: StatusCode) -> &'static str {
    match code.as_u16() {
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        405 => "MethodNotAllowed",
        406 => "NotAcceptable",
        413 => "RequestEntityTooLarge",
        415 => "UnsupportedMediaType",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        500.. => "InternalError",
        // The API machinery has no other reason for client errors.
        _ => "BadRequest",
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    async fn response(failure: Failure) -> (http::response::Parts, serde_json::Value) {
        let (parts, body) = failure.to_response().into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        (parts, serde_json::from_slice(&bytes).unwrap())
    }

    #[tokio::test]
    async fn failures_are_status_objects() {
        let (parts, status) =
            response(Failure::client(StatusCode::FORBIDDEN, "no \"such\" luck")).await;
        assert_eq!(parts.status, 403);
        assert_eq!(parts.headers["content-type"], "application/json");
        assert_eq!(
            status,
            serde_json::json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "no \"such\" luck", "reason": "Forbidden", "code": 403,
            })
        );
    }

    #[tokio::test]
    async fn only_requests_that_were_not_sent_may_be_retried() {
        let (parts, status) = response(Failure::unavailable("down")).await;
        assert_eq!(parts.headers["retry-after"], "1");
        assert_eq!(status["details"]["retryAfterSeconds"], 1);
        let (parts, status) = response(Failure::bad_gateway("lost")).await;
        assert!(!parts.headers.contains_key("retry-after"));
        assert_eq!(status.get("details"), None);
    }

    /// Check F08.
    #[tokio::test]
    async fn an_untranslatable_response_is_a_bad_gateway() {
        let (parts, status) =
            response(Failure::refused_response(&Refusal::malformed("broken"))).await;
        assert_eq!(parts.status, 502);
        assert_eq!(
            status["message"],
            "the response of the API server cannot be translated: broken"
        );
    }
}
