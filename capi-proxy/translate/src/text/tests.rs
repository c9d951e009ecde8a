//! Messages of a real API server, and texts that only look like groups.

use super::*;
use proptest::prelude::*;

struct Row {
    name: &'static str,
    text: &'static str,
    /// `None`: stays as it is.
    want: Option<&'static str>,
}

fn check(rows: &[Row]) {
    let rules = Rules::default();
    for Row { name, text, want } in rows {
        let got = swap(&rules, text);
        assert_eq!(got, want.unwrap_or(text), "{name}");
        assert_eq!(matches!(got, Cow::Borrowed(_)), want.is_none(), "{name}");
    }
}

/// Check R20.
#[test]
fn server_messages_are_translated() {
    check(&[
        Row {
            name: "not found",
            text: r#"machines.cluster.hypershift.openshift.io "m" not found"#,
            want: Some(r#"machines.cluster.x-k8s.io "m" not found"#),
        },
        Row {
            name: "invalid, by kind",
            text: r#"Machine.cluster.hypershift.openshift.io "m" is invalid: spec.clusterName: Required value"#,
            want: Some(
                r#"Machine.cluster.x-k8s.io "m" is invalid: spec.clusterName: Required value"#,
            ),
        },
        Row {
            name: "conflict of a longer group",
            text: r#"Operation cannot be fulfilled on dockermachines.infrastructure.cluster.hypershift.openshift.io "m": the object has been modified"#,
            want: Some(
                r#"Operation cannot be fulfilled on dockermachines.infrastructure.cluster.x-k8s.io "m": the object has been modified"#,
            ),
        },
        Row {
            name: "forbidden, twice",
            text: r#"clusters.cluster.hypershift.openshift.io "c" is forbidden: User "u" cannot patch resource "clusters/status" in API group "cluster.hypershift.openshift.io" in the namespace "n""#,
            want: Some(
                r#"clusters.cluster.x-k8s.io "c" is forbidden: User "u" cannot patch resource "clusters/status" in API group "cluster.x-k8s.io" in the namespace "n""#,
            ),
        },
        Row {
            name: "API version mismatch",
            text: "the API version in the data (cluster.hypershift.openshift.io/v1beta1) does not match the expected API version (cluster.hypershift.openshift.io/v1beta2)",
            want: Some(
                "the API version in the data (cluster.x-k8s.io/v1beta1) does not match the expected API version (cluster.x-k8s.io/v1beta2)",
            ),
        },
        Row {
            name: "deprecation warning header",
            text: r#"299 - "infrastructure.cluster.hypershift.openshift.io/v1beta2 DockerCluster is deprecated""#,
            want: Some(
                r#"299 - "infrastructure.cluster.x-k8s.io/v1beta2 DockerCluster is deprecated""#,
            ),
        },
        Row {
            name: "CRD name in quotes",
            text: r#"customresourcedefinitions.apiextensions.k8s.io "machines.cluster.hypershift.openshift.io" not found"#,
            want: Some(
                r#"customresourcedefinitions.apiextensions.k8s.io "machines.cluster.x-k8s.io" not found"#,
            ),
        },
        Row {
            name: "APIService name",
            text: r#"apiservices.apiregistration.k8s.io "v1beta2.cluster.hypershift.openshift.io" not found"#,
            want: Some(
                r#"apiservices.apiregistration.k8s.io "v1beta2.cluster.x-k8s.io" not found"#,
            ),
        },
        Row {
            name: "apply conflict",
            text: r#"Apply failed with 1 conflict: conflict with "manager" using cluster.hypershift.openshift.io/v1beta2: .spec.paused"#,
            want: Some(
                r#"Apply failed with 1 conflict: conflict with "manager" using cluster.x-k8s.io/v1beta2: .spec.paused"#,
            ),
        },
        Row {
            name: "kind after a comma",
            text: "failed to create typed patch object (n/m; cluster.hypershift.openshift.io/v1beta2, Kind=Machine): .spec.x: field not declared in schema",
            want: Some(
                "failed to create typed patch object (n/m; cluster.x-k8s.io/v1beta2, Kind=Machine): .spec.x: field not declared in schema",
            ),
        },
        Row {
            name: "path of a refused non-resource request",
            text: r#"forbidden: User "u" cannot get path "/apis/cluster.hypershift.openshift.io/v1beta2""#,
            want: Some(r#"forbidden: User "u" cannot get path "/apis/cluster.x-k8s.io/v1beta2""#),
        },
        Row {
            name: "exceeded quota",
            text: r#"machines.cluster.hypershift.openshift.io "m" is forbidden: exceeded quota: q, requested: count/machines.cluster.hypershift.openshift.io=1"#,
            want: Some(
                r#"machines.cluster.x-k8s.io "m" is forbidden: exceeded quota: q, requested: count/machines.cluster.x-k8s.io=1"#,
            ),
        },
        Row {
            name: "JSON with escaped quotes inside the message",
            text: r#"Invalid value: "{\"apiGroup\":\"ipam.cluster.hypershift.openshift.io\"}": no such pool"#,
            want: Some(
                r#"Invalid value: "{\"apiGroup\":\"ipam.cluster.x-k8s.io\"}": no such pool"#,
            ),
        },
        Row {
            name: "Go map",
            text: "map[apiGroup:cluster.hypershift.openshift.io kind:Cluster]",
            want: Some("map[apiGroup:cluster.x-k8s.io kind:Cluster]"),
        },
        Row {
            name: "end of a sentence",
            text: "No kind in cluster.hypershift.openshift.io. Try again.",
            want: Some("No kind in cluster.x-k8s.io. Try again."),
        },
        Row {
            name: "whole text",
            text: "cluster.hypershift.openshift.io",
            want: Some("cluster.x-k8s.io"),
        },
    ]);
}

#[test]
fn standard_names_and_similar_text_are_unchanged() {
    check(&[
        Row {
            name: "empty",
            text: "",
            want: None,
        },
        Row {
            name: "label key that a client sent",
            text: r#"metadata.labels: Invalid value: "cluster.x-k8s.io/b d": name part must consist of ..."#,
            want: None,
        },
        Row {
            name: "secret type",
            text: r#"type: Invalid value: "cluster.x-k8s.io/other": field is immutable"#,
            want: None,
        },
        Row {
            name: "finalizers",
            text: r#"found new finalizers []string{"cluster.x-k8s.io/foo"}"#,
            want: None,
        },
        Row {
            name: "finalizer warning on ordinary writes",
            text: r#"299 - "metadata.finalizers: \"machine.cluster.x-k8s.io\": prefer a domain-qualified finalizer name""#,
            want: None,
        },
        Row {
            name: "group that is not in the table",
            text: r#"providers.clusterctl.cluster.hypershift.openshift.io is forbidden in API group "clusterctl.cluster.hypershift.openshift.io""#,
            want: None,
        },
        Row {
            name: "standard name, never the other way",
            text: r#"machines.cluster.x-k8s.io "m" not found"#,
            want: None,
        },
        Row {
            name: "hook name in a condition's message",
            text: "pre-terminate.delete.hook.machine.cluster.hypershift.openshift.io/audit",
            want: None,
        },
        Row {
            name: "finalizer with the private name",
            text: r#"found new finalizers []string{"machine.cluster.hypershift.openshift.io"}"#,
            want: None,
        },
        Row {
            name: "label key with the private name",
            text: r#"Invalid value: "cluster.hypershift.openshift.io/b d""#,
            want: None,
        },
        Row {
            name: "label key whose name begins with a v",
            text: "cluster.hypershift.openshift.io/vault",
            want: None,
        },
        Row {
            name: "look-alikes",
            text: "xcluster.hypershift.openshift.io cluster.hypershift.openshift.io.example.com Cluster.hypershift.openshift.io cluster.hypershift.openshift.io_x -cluster.hypershift.openshift.io",
            want: None,
        },
        Row {
            name: "dot that ends no sentence",
            text: "cluster.hypershift.openshift.io./v1 .cluster.hypershift.openshift.io",
            want: None,
        },
        Row {
            name: "user name and mail address",
            text: "user@cluster.hypershift.openshift.io not allowed",
            want: None,
        },
    ]);
}

#[test]
fn names_next_to_multibyte_characters_are_translated() {
    let rules = Rules::default();
    assert_eq!(
        swap(&rules, "é cluster.hypershift.openshift.io é"),
        "é cluster.x-k8s.io é"
    );
    assert_eq!(
        swap(&rules, "écluster.hypershift.openshift.ioé"),
        "écluster.hypershift.openshift.ioé"
    );
}

/// Texts made of names and of what may surround them.
fn texts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("cluster.hypershift.openshift.io".to_owned()),
        Just("ipam.cluster.hypershift.openshift.io".to_owned()),
        Just("cluster.x-k8s.io".to_owned()),
        Just("machines.".to_owned()),
        Just("/v1beta2".to_owned()),
        "[ \"'`(){}\\[\\].,:;/\\\\aZ9é-]{1,3}",
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn translating_text_twice_changes_nothing(text in texts()) {
        let rules = Rules::default();
        let once = swap(&rules, &text).into_owned();
        prop_assert_eq!(swap(&rules, &once).into_owned(), once);
    }

    #[test]
    fn only_private_names_are_changed_in_text(text in texts()) {
        let swapped = swap(&Rules::default(), &text).into_owned();
        let plain = |text: &str| text.replace("cluster.hypershift.openshift.io", "cluster.x-k8s.io");
        prop_assert_eq!(plain(&swapped), plain(&text));
    }
}
