//! The request headers for the API server, in their order and without hop-by-hop headers.

use http::header::{
    ACCEPT, ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, EXPECT, HeaderMap, HeaderName,
    HeaderValue, IF_NONE_MATCH, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};

use crate::failure::Failure;
use capi_translate::target::Target;
use capi_translate::{Rules, accept, cache};

static KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
static PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

/// The headers to send, without `Host`, authorization and length, which are set later.
pub(crate) fn forward(
    rules: &Rules,
    target: &Target,
    headers: HeaderMap,
) -> Result<HeaderMap, Failure> {
    let accept = if target.is_translated() {
        rewritten_accept(target, &headers)?
    } else {
        None
    };
    let mut forwarded = HeaderMap::with_capacity(headers.len() + 3);
    let mut name = None;
    for (next, value) in headers {
        // A repeated header gives its name only once.
        name = next.or(name);
        let Some(name) = &name else { continue };
        if is_hop_by_hop(name) || *name == CONTENT_LENGTH || *name == EXPECT {
            continue;
        }
        if !target.is_translated() {
            forwarded.append(name, value);
        } else if *name == IF_NONE_MATCH {
            forwarded.append(name, unsalted(rules, value));
        } else if *name != ACCEPT && *name != ACCEPT_ENCODING {
            forwarded.append(name, value);
        }
    }
    if target.is_translated() {
        forwarded.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
    if let Some(accept) = accept {
        forwarded.insert(ACCEPT, accept);
    }
    Ok(forwarded)
}

/// Removes hop-by-hop headers.
pub(crate) fn strip_hop_by_hop(headers: &mut HeaderMap) {
    let hop_by_hop = [
        &CONNECTION,
        &KEEP_ALIVE,
        &PROXY_CONNECTION,
        &TE,
        &TRANSFER_ENCODING,
        &UPGRADE,
    ];
    for name in hop_by_hop
        .into_iter()
        .chain([&PROXY_AUTHENTICATE, &PROXY_AUTHORIZATION])
    {
        headers.remove(name);
    }
}

fn is_hop_by_hop(name: &HeaderName) -> bool {
    let known = [
        &CONNECTION,
        &KEEP_ALIVE,
        &PROXY_CONNECTION,
        &TE,
        &TRAILER,
        &TRANSFER_ENCODING,
        &UPGRADE,
    ];
    known.contains(&name) || *name == PROXY_AUTHENTICATE || *name == PROXY_AUTHORIZATION
}

/// Several headers are one list.
fn rewritten_accept(target: &Target, headers: &HeaderMap) -> Result<Option<HeaderValue>, Failure> {
    let values: Vec<_> = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .collect();
    let accept = match values.as_slice() {
        [] => None,
        [one] => Some((*one).to_owned()),
        several => Some(several.join(",")),
    };
    let rewritten = accept::rewrite(target, accept.as_deref()).map_err(Failure::refused_request)?;
    Ok(rewritten.and_then(|accept| HeaderValue::try_from(accept).ok()))
}

fn unsalted(rules: &Rules, value: HeaderValue) -> HeaderValue {
    let salted = value.to_str().map(|etags| cache::etag_up(rules, etags));
    salted
        .ok()
        .and_then(|etags| HeaderValue::try_from(etags).ok())
        .unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forwarded(path: &str, fields: &[(&'static str, &'static str)]) -> Vec<(String, String)> {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            );
        }
        let rules = Rules::default();
        let target = Target::parse(&rules, path).unwrap();
        let headers = forward(&rules, &target, headers).unwrap();
        headers
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect()
    }

    #[test]
    fn hop_by_hop_headers_are_removed_and_order_is_kept() {
        let fields = [
            ("user-agent", "manager/v1 cluster.x-k8s.io/v1beta2"),
            ("connection", "keep-alive"),
            ("keep-alive", "timeout=5"),
            ("te", "trailers"),
            ("x-b", "1"),
            ("transfer-encoding", "chunked"),
            ("proxy-authorization", "secret"),
            ("x-a", "2"),
            ("x-b", "3"),
            ("expect", "100-continue"),
        ];
        let names = forwarded("/healthz/ping", &fields);
        let names: Vec<_> = names
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(
            names,
            [
                ("user-agent", "manager/v1 cluster.x-k8s.io/v1beta2"),
                ("x-b", "1"),
                ("x-b", "3"),
                ("x-a", "2")
            ]
        );
    }

    /// Check R24.
    #[test]
    fn translated_responses_are_requested_without_compression() {
        let fields = [
            ("accept-encoding", "gzip, zstd"),
            ("accept", "application/json"),
        ];
        let headers = forwarded("/api/v1/namespaces/n/secrets", &fields);
        assert!(
            headers.contains(&("accept-encoding".to_owned(), "identity".to_owned())),
            "{headers:?}"
        );
        let headers = forwarded("/api/v1/namespaces/n/pods/p/log", &fields);
        assert_eq!(
            headers[0],
            ("accept-encoding".to_owned(), "gzip, zstd".to_owned()),
            "a log passes as it is"
        );
    }

    #[test]
    fn etags_are_unsalted_for_the_server() {
        let rules = Rules::default();
        let salted = cache::etag_down(&rules, "\"abc\"");
        let fields = [("if-none-match", &*salted.leak())];
        let headers = forwarded("/apis", &fields);
        assert!(
            headers.contains(&("if-none-match".to_owned(), "\"abc\"".to_owned())),
            "{headers:?}"
        );
    }
}
