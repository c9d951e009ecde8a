//! Headers as real clients send them.

use proptest::prelude::*;

use super::*;
use crate::Rules;

fn rewritten(path: &str, accept: Option<&str>) -> Result<Option<String>, Refusal> {
    rewrite(&Target::parse(&Rules::default(), path).unwrap(), accept)
}

#[test]
fn clients_without_accept_header_get_json() {
    for accept in [None, Some(""), Some("  ")] {
        assert_eq!(
            rewritten("/api/v1/secrets", accept),
            Ok(Some("application/json".to_owned()))
        );
    }
}

#[test]
fn accept_header_is_unchanged_for_untranslated_bodies() {
    for path in ["/version", "/api/v1/namespaces/n/pods/p/log"] {
        for accept in [
            None,
            Some(""),
            Some("text/plain"),
            Some("application/vnd.kubernetes.protobuf"),
        ] {
            assert_eq!(
                rewritten(path, accept),
                Ok(accept.map(str::to_owned)),
                "{path}"
            );
        }
    }
}

/// Check R23.
#[test]
fn a_rejected_accept_header_lists_the_supported_types() {
    let protobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    for (path, accept) in [
        ("/openapi/v2", "application/yaml"),
        ("/openapi/v3", protobuf),
        ("/api/v1/secrets", protobuf),
        ("/api/v1/secrets", "application/yaml"),
    ] {
        let refusal = rewritten(path, Some(accept)).unwrap_err();
        assert_eq!(refusal.code, 406, "{path}");
        assert!(
            refusal.message.contains("application/json"),
            "{}",
            refusal.message
        );
    }
    for accept in OPENAPI_PROTOBUF {
        let requested = rewritten("/openapi/v2", Some(accept));
        assert_eq!(requested, Ok(Some(accept.to_owned())));
    }
    let accept = format!("{protobuf},application/json");
    assert_eq!(
        rewritten("/openapi/v2", Some(&accept)),
        Ok(Some("application/json".to_owned()))
    );
}

/// Check R22.
#[test]
fn accept_header_keeps_json_alternatives() {
    for (accept, want) in [
        ("application/json", "application/json"),
        ("application/json, */*", "application/json"),
        ("*/*", "application/json"),
        ("*", "application/json"),
        ("application/*", "application/json"),
        ("Application/JSON", "application/json"),
        ("application/vnd.kubernetes.protobuf", "application/json"),
        (
            "application/vnd.kubernetes.protobuf, */*",
            "application/json",
        ),
        (
            "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
        ),
        (
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json",
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json",
        ),
        (
            "application/json;as=Table;v=v1;g=meta.k8s.io, application/json",
            "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
        ),
        (
            "application/json;stream=watch",
            "application/json;stream=watch",
        ),
        (
            "application/vnd.kubernetes.protobuf;stream=watch,application/json;stream=watch",
            "application/json;stream=watch",
        ),
        (
            "application/json;q=0.9,application/cbor;q=1",
            "application/json;q=0.9",
        ),
        (
            "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
            "application/json;q=0.8",
        ),
        ("application/yaml, application/json", "application/json"),
        (
            "application/json;q=0.5, application/vnd.kubernetes.protobuf",
            "application/json",
        ),
        (
            "application/vnd.kubernetes.protobuf;q=0.2, application/json;q=0.7",
            "application/json;q=0.7",
        ),
        ("application/json, */*;q=0", "application/json"),
        (
            "application/json ; as=Table ; q=0.5",
            "application/json;as=Table;q=0.5",
        ),
        ("application/json;q=high", "application/json;q=high"),
        ("nonsense, application/json,,", "application/json"),
    ] {
        assert_eq!(narrow(accept).as_deref(), Some(want), "{accept}");
    }
}

/// Check R23.
#[test]
fn clients_that_accept_no_json_are_rejected() {
    for accept in [
        "application/yaml",
        "application/cbor",
        "text/plain, text/*",
        "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
        "application/json;q=0",
        "application/json;q=0.000, application/vnd.kubernetes.protobuf, */*",
        "*/*;q=0",
        "json",
        ",",
    ] {
        assert_eq!(narrow(accept), None, "{accept}");
    }
}

#[test]
fn json_variants_are_kept_when_plain_json_is_excluded() {
    let accept = "application/json;q=0,application/json;as=Table;v=v1;g=meta.k8s.io,*/*";
    assert_eq!(
        narrow(accept).as_deref(),
        Some("application/json;as=Table;v=v1;g=meta.k8s.io")
    );
}

proptest! {
    #[test]
    fn all_remaining_accept_alternatives_are_json(accept in "[a-z*/;,=.0-9 \"]{0,60}") {
        for alternative in narrow(&accept).iter().flat_map(|header| header.split(',')) {
            prop_assert_eq!(alternative.split(';').next(), Some("application/json"));
        }
    }

    #[test]
    fn narrowing_an_accept_header_is_idempotent(
        kinds in prop::collection::vec((0..4_usize, prop::option::of(0..3_u8), any::<bool>()), 1..6)
    ) {
        let types = ["application/json", "application/vnd.kubernetes.protobuf", "*/*", "text/plain"];
        let text = |&(kind, weight, table): &(usize, Option<u8>, bool)| {
            let form = if table { ";as=Table" } else { "" };
            let weight = weight.map_or(String::new(), |weight| format!(";q=0.{weight}"));
            format!("{}{form}{weight}", types[kind])
        };
        let accept = kinds.iter().map(text).collect::<Vec<_>>().join(", ");
        if let Some(once) = narrow(&accept) {
            prop_assert_eq!(narrow(&once), Some(once));
        }
    }
}
