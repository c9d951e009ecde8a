use super::*;

const MACHINES: &str = "/apis/cluster.x-k8s.io/v1beta2/namespaces/n/machines/m";
const SECRETS: &str = "/api/v1/namespaces/n/secrets";

fn target(url: &str) -> Target {
    Target::parse(&Rules::default(), url).unwrap()
}

fn plan_request(url: &str, method: &str, content_type: &str) -> Result<Plan, Refusal> {
    request(
        &Rules::default(),
        &target(url),
        &method.parse().unwrap(),
        Some(content_type),
    )
}

fn plan_response(url: &str, status: u16, content_type: &str) -> Result<Plan, Refusal> {
    response(
        &Rules::default(),
        &target(url),
        StatusCode::from_u16(status).unwrap(),
        Some(content_type),
    )
}

fn run(plan: Result<Plan, Refusal>, body: &[u8]) -> Vec<u8> {
    let Plan::Translate(mut translator) = plan.unwrap() else {
        panic!("the plan is to pass")
    };
    translator
        .whole(body)
        .unwrap()
        .unwrap_or_else(|| body.to_vec())
}

/// Check R23.
#[test]
fn request_content_types_are_translated_or_rejected() {
    let rows = [
        (MACHINES, "POST", "application/json", None),
        (MACHINES, "PUT", "application/json; charset=utf-8", None),
        (MACHINES, "PATCH", "application/merge-patch+json", None),
        (
            MACHINES,
            "PATCH",
            "application/strategic-merge-patch+json",
            None,
        ),
        (MACHINES, "PATCH", "application/json-patch+json", None),
        (MACHINES, "PATCH", "application/apply-patch+yaml", None),
        (MACHINES, "POST", "application/yaml", None),
        (MACHINES, "PATCH", "application/json", Some(415)),
        (MACHINES, "PATCH", "application/apply-patch+cbor", Some(415)),
        (MACHINES, "POST", "application/cbor", Some(415)),
        (
            MACHINES,
            "POST",
            "application/vnd.kubernetes.protobuf",
            Some(415),
        ),
        (MACHINES, "POST", "text/plain", Some(415)),
        (SECRETS, "POST", "application/vnd.kubernetes.protobuf", None),
        (
            SECRETS,
            "POST",
            "application/x-www-form-urlencoded",
            Some(415),
        ),
    ];
    for (url, method, content_type, refused) in rows {
        let code = plan_request(url, method, content_type)
            .err()
            .map(|refusal| refusal.code);
        assert_eq!(code, refused, "{method} {content_type}");
    }
}

#[test]
fn webhook_configurations_are_read_only() {
    let url = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    assert_eq!(
        plan_request(url, "POST", "application/json")
            .unwrap_err()
            .code,
        403
    );
    assert_eq!(
        plan_request(url, "PATCH", "application/merge-patch+json")
            .unwrap_err()
            .code,
        403
    );
    assert!(plan_request(url, "DELETE", "application/json").is_ok());
    assert!(plan_response(url, 200, "application/json").is_ok());
}

/// Check R22.
#[test]
fn responses_that_are_not_json_are_rejected() {
    for content_type in [
        "application/vnd.kubernetes.protobuf",
        "application/yaml",
        "application/cbor",
        "",
    ] {
        assert!(
            plan_response(MACHINES, 200, content_type).is_err(),
            "{content_type}"
        );
    }
    assert!(matches!(
        plan_response("/api/v1/namespaces/n/pods/p/log", 200, "text/plain"),
        Ok(Plan::Pass)
    ));
    assert!(matches!(
        plan_response(MACHINES, 304, "application/cbor"),
        Ok(Plan::Pass)
    ));
}

#[test]
fn plain_text_errors_are_translated() {
    let text = b"machines.cluster.hypershift.openshift.io not found\n";
    assert_eq!(
        run(
            plan_response(MACHINES, 404, "text/plain; charset=utf-8"),
            text
        ),
        b"machines.cluster.x-k8s.io not found\n"
    );
}

#[test]
fn the_openapi_index_is_json_with_any_content_type() {
    let body = br#"{"paths":{"apis/cluster.hypershift.openshift.io/v1beta2":{}}}"#;
    let out = run(
        plan_response("/openapi/v3", 200, "text/plain; charset=utf-8"),
        body,
    );
    assert_eq!(out, br#"{"paths":{"apis/cluster.x-k8s.io/v1beta2":{}}}"#);
}

/// Check R18.
#[test]
fn apply_bodies_may_be_json_or_yaml() {
    let plan = || plan_request(MACHINES, "PATCH", "application/apply-patch+yaml");
    assert_eq!(
        run(plan(), br#"{"apiVersion":"cluster.x-k8s.io/v1beta2"}"#),
        br#"{"apiVersion":"cluster.hypershift.openshift.io/v1beta2"}"#
    );
    assert_eq!(
        run(
            plan(),
            b"apiVersion: cluster.x-k8s.io/v1beta2 # a\nkind: Machine\n"
        ),
        b"apiVersion: cluster.hypershift.openshift.io/v1beta2 # a\nkind: Machine\n"
    );
}

#[test]
fn bodies_without_group_names_are_not_parsed_or_copied() {
    let Ok(Plan::Translate(mut translator)) =
        plan_request(MACHINES, "PATCH", "application/merge-patch+json")
    else {
        panic!("expected a translator")
    };
    assert_eq!(
        translator.whole(br#"{"spec":{"replicas":3}}"#).unwrap(),
        None
    );
    assert_eq!(translator.counts(), Counts::default());
}

#[test]
fn the_group_search_finds_escaped_names() {
    let body = br#"{"apiVersion":"cluster.x\u002dk8s.io/v1beta2"}"#;
    let out = run(plan_request(MACHINES, "POST", "application/json"), body);
    assert_eq!(
        out,
        br#"{"apiVersion":"cluster.hypershift.openshift.io/v1beta2"}"#
    );
}

#[test]
fn translated_names_are_counted_by_direction() {
    let Ok(Plan::Translate(mut translator)) = plan_response(MACHINES, 200, "application/json")
    else {
        panic!("expected a translator")
    };
    let body = br#"{"apiVersion":"cluster.hypershift.openshift.io/v1","metadata":{"ownerReferences":[{"apiVersion":"cluster.x-k8s.io/v1"}]}}"#;
    translator.whole(body).unwrap();
    assert_eq!(
        translator.counts(),
        Counts {
            to_standard: 1,
            to_private: 1,
            leaks: 0
        }
    );
}
