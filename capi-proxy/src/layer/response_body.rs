//! The response body: small ones are buffered, so that damage becomes an error and not half a response; large ones and
//! watches are streamed.

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::response::Parts;
use http::{HeaderMap, Method, Response, StatusCode};

use super::request_body::Collected;
use super::{RequestContext, response_headers};
use crate::body::{Body, Stream};
use crate::exchange::Exchange;
use crate::failure::Failure;
use crate::upstream::{ResponseBody, ResponseBodyError};
use capi_translate::Refusal;
use capi_translate::body::{self, Plan, Translator};

/// Responses up to this size are translated before the first byte is sent.
const SMALL: u64 = 64 * 1024;
/// Maximum size of a response that must be buffered for translation.
const MAX_WHOLE: u64 = 8 * 1024 * 1024;

/// Translates a response.
pub(crate) async fn translate(
    request_context: RequestContext<'_>,
    response: Response<ResponseBody>,
    exchange: &mut Exchange,
) -> Result<Response<Body>, Failure> {
    let RequestContext {
        rules,
        target,
        method,
    } = request_context;
    let (mut parts, body) = response.into_parts();
    response_headers::rewrite(rules, target, &mut parts.headers);
    if !target.is_translated() || !has_body(method, parts.status) {
        if target.is_translated() {
            // The length of a body that is not sent would differ.
            parts.headers.remove(CONTENT_LENGTH);
        }
        return Ok(Response::from_parts(
            parts,
            Body::stream(Stream::pass(body)),
        ));
    }
    refuse_encoded(&parts.headers)?;
    let content_type = parts
        .headers
        .get(CONTENT_TYPE)
        .map(|value| value.to_str().unwrap_or("?"));
    let plan = body::response(rules, target, parts.status, content_type);
    match plan.map_err(|refusal| Failure::refused_response(&refusal))? {
        Plan::Pass => Ok(Response::from_parts(
            parts,
            Body::stream(Stream::pass(body)),
        )),
        Plan::Translate(translator) => {
            parts.headers.remove(CONTENT_LENGTH);
            if target.is_watch() && parts.status.is_success() {
                let stream = Stream::translate(body, translator, Bytes::new());
                return Ok(Response::from_parts(parts, Body::stream(stream)));
            }
            gather(parts, body, translator, exchange).await
        }
    }
}

fn has_body(method: &Method, status: StatusCode) -> bool {
    method != Method::HEAD && !matches!(status.as_u16(), 100..=199 | 204 | 304)
}

/// Rejects a content encoding, because none was requested.
fn refuse_encoded(headers: &HeaderMap) -> Result<(), Failure> {
    if headers
        .get_all(CONTENT_ENCODING)
        .iter()
        .all(|encoding| encoding == "identity")
    {
        return Ok(());
    }
    let refusal =
        Refusal::unsupported_media_type("it has a Content-Encoding that was not requested");
    Err(Failure::refused_response(&refusal))
}

/// Buffers a body until it ends or exceeds the limit.
async fn gather(
    parts: Parts,
    mut body: ResponseBody,
    mut translator: Box<Translator>,
    exchange: &mut Exchange,
) -> Result<Response<Body>, Failure> {
    let limit = if translator.is_buffering() {
        MAX_WHOLE
    } else {
        SMALL
    };
    let mut collected = Collected::default();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|error| broken_off(&error))?.into_data() else {
            continue;
        };
        collected.push(data);
        if collected.len() > limit {
            return stream(parts, body, translator, &collected.into_bytes(), exchange);
        }
    }
    let bytes = collected.into_bytes();
    let translated = exchange.time(|| translator.whole(&bytes));
    let translated = translated.map_err(|refusal| Failure::refused_response(&refusal))?;
    exchange.count_names(translator.counts());
    Ok(Response::from_parts(
        parts,
        Body::full(translated.map_or(bytes, Bytes::from)),
    ))
}

fn stream(
    parts: Parts,
    body: ResponseBody,
    mut translator: Box<Translator>,
    begun: &[u8],
    exchange: &mut Exchange,
) -> Result<Response<Body>, Failure> {
    if translator.is_buffering() {
        let refusal = Refusal::too_large(format!(
            "it exceeds {MAX_WHOLE} bytes and is not JSON: request JSON"
        ));
        return Err(Failure::refused_response(&refusal));
    }
    let mut out = Vec::with_capacity(begun.len() + begun.len() / 8);
    exchange
        .time(|| translator.push(begun, &mut out))
        .map_err(|refusal| Failure::refused_response(&refusal))?;
    let stream = Stream::translate(body, translator, Bytes::from(out));
    Ok(Response::from_parts(parts, Body::stream(stream)))
}

fn broken_off(error: &ResponseBodyError) -> Failure {
    Failure::bad_gateway(support::error::chain(error))
}
