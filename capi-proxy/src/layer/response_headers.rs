//! The response headers for the client.

use http::HeaderMap;
use http::header::{ETAG, HeaderValue, LOCATION, WARNING};

use super::headers::strip_hop_by_hop;
use capi_translate::target::{self, Target};
use capi_translate::{Rules, cache, text};

/// Removes hop-by-hop headers, and translates names in headers.
pub(crate) fn rewrite(rules: &Rules, target: &Target, headers: &mut HeaderMap) {
    strip_hop_by_hop(headers);
    if !target.is_translated() {
        return;
    }
    for (name, swap) in [
        (
            ETAG,
            (|rules, etag| cache::etag_down(rules, etag)) as fn(&Rules, &str) -> String,
        ),
        (LOCATION, target::location),
        (WARNING, |rules, warning| {
            text::swap(rules, warning).into_owned()
        }),
    ] {
        if let http::header::Entry::Occupied(mut values) = headers.entry(name) {
            values
                .iter_mut()
                .for_each(|value| swap_value(rules, value, swap));
        }
    }
}

fn swap_value(rules: &Rules, value: &mut HeaderValue, swap: fn(&Rules, &str) -> String) {
    let swapped = value.to_str().ok().map(|text| swap(rules, text));
    if let Some(swapped) = swapped.and_then(|swapped| HeaderValue::try_from(swapped).ok()) {
        *value = swapped;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_headers_are_translated_and_etags_salted() {
        let rules = Rules::default();
        let mut headers = HeaderMap::new();
        headers.append(ETAG, HeaderValue::from_static("\"3F\""));
        headers.append(
            WARNING,
            HeaderValue::from_static("299 - \"cluster.hypershift.openshift.io/v1beta1 is old\""),
        );
        headers.append(WARNING, HeaderValue::from_static("299 - \"unknown field\""));
        headers.append(
            LOCATION,
            HeaderValue::from_static("/apis/cluster.hypershift.openshift.io/v1beta2/clusters/a"),
        );
        headers.append("connection", HeaderValue::from_static("close"));
        headers.append("transfer-encoding", HeaderValue::from_static("chunked"));
        headers.append("audit-id", HeaderValue::from_static("1"));
        let target = Target::parse(&rules, "/apis/cluster.x-k8s.io/v1beta2/clusters").unwrap();
        rewrite(&rules, &target, &mut headers);
        assert_eq!(headers[ETAG], cache::etag_down(&rules, "\"3F\""));
        let warnings: Vec<_> = headers.get_all(WARNING).iter().collect();
        assert_eq!(
            warnings,
            [
                "299 - \"cluster.x-k8s.io/v1beta1 is old\"",
                "299 - \"unknown field\""
            ]
        );
        assert_eq!(
            headers[LOCATION],
            "/apis/cluster.x-k8s.io/v1beta2/clusters/a"
        );
        assert!(!headers.contains_key("connection") && !headers.contains_key("transfer-encoding"));
        assert_eq!(headers["audit-id"], "1");
    }
}
