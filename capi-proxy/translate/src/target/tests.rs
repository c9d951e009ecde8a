use super::*;
use crate::cache;

fn parse(url: &str) -> Result<Target, Refusal> {
    Target::parse(&Rules::default(), url)
}

fn upstream(url: &str) -> String {
    parse(url)
        .unwrap_or_else(|refusal| panic!("{url}: {refusal}"))
        .upstream()
        .to_owned()
}

/// Checks R01, R12.
#[test]
fn groups_and_crd_names_in_paths_are_translated() {
    let rows = [
        (
            "/apis/cluster.x-k8s.io/v1beta2/namespaces/n/machines/m",
            "/apis/cluster.hypershift.openshift.io/v1beta2/namespaces/n/machines/m",
        ),
        (
            "/apis/ipam.cluster.x-k8s.io",
            "/apis/ipam.cluster.hypershift.openshift.io",
        ),
        (
            "/apis/ipam.cluster.x-k8s.io/v1beta2/",
            "/apis/ipam.cluster.hypershift.openshift.io/v1beta2/",
        ),
        (
            "/openapi/v3/apis/cluster.x-k8s.io/v1beta2",
            "/openapi/v3/apis/cluster.hypershift.openshift.io/v1beta2",
        ),
        (
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/machines.cluster.x-k8s.io/status",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/machines.cluster.hypershift.openshift.io/status",
        ),
        (
            "/apis/apiregistration.k8s.io/v1/apiservices/v1beta2.cluster.x-k8s.io",
            "/apis/apiregistration.k8s.io/v1/apiservices/v1beta2.cluster.hypershift.openshift.io",
        ),
        (
            "/apis/cluster.x-k8s.io/v1beta2/namespaces/cluster.x-k8s.io/machines/machines.cluster.x-k8s.io",
            "/apis/cluster.hypershift.openshift.io/v1beta2/namespaces/cluster.x-k8s.io/machines/machines.cluster.x-k8s.io",
        ),
    ];
    for (standard, private) in rows {
        assert_eq!(upstream(standard), private);
        assert_eq!(
            upstream(private),
            standard,
            "r31: a private name reaches the standard group"
        );
        assert!(!parse(standard).unwrap().names_private());
        assert!(parse(private).unwrap().names_private());
    }
}

/// Checks R26, R27.
#[test]
fn paths_of_other_groups_are_unchanged() {
    for path in [
        "/apis/xcluster.x-k8s.io/v1/x",
        "/apis/clusterctl.cluster.x-k8s.io/v1alpha3/providers",
        "/apis/CLUSTER.x-k8s.io/v1",
        "/api/v1/namespaces/n/configmaps/machines.cluster.x-k8s.io",
        "/version",
        "/",
    ] {
        assert_eq!(upstream(path), path);
    }
}

/// Check R25.
#[test]
fn only_three_field_selectors_are_translated() {
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(
        upstream(&format!(
            "{crds}?fieldSelector=metadata.name%3Dmachines.cluster.x-k8s.io&limit=1"
        )),
        format!(
            "{crds}?fieldSelector=metadata.name%3Dmachines.cluster.hypershift.openshift.io&limit=1"
        )
    );
    assert_eq!(
        upstream(
            "/api/v1/events?fieldSelector=involvedObject.kind=M,involvedObject.apiVersion!=cluster.x-k8s.io/v1beta2"
        ),
        "/api/v1/events?fieldSelector=involvedObject.kind%3DM%2CinvolvedObject.apiVersion%21%3Dcluster.hypershift.openshift.io%2Fv1beta2"
    );
    assert_eq!(
        upstream(
            "/apis/events.k8s.io/v1/events?fieldSelector=regarding.apiVersion==cluster.x-k8s.io/v1"
        ),
        "/apis/events.k8s.io/v1/events?fieldSelector=regarding.apiVersion%3D%3Dcluster.hypershift.openshift.io%2Fv1"
    );
    for same in [
        "/api/v1/secrets?fieldSelector=type%3Dcluster.x-k8s.io%2Fsecret&labelSelector=cluster.x-k8s.io%2Fcluster-name",
        "/apis/cluster.x-k8s.io/v1beta2/machines?fieldSelector=metadata.name%3Dmachines.cluster.x-k8s.io",
        "/api/v1/pods?fieldManager=cluster.x-k8s.io&continue=cluster.x-k8s.io%2Fv1",
    ] {
        let query = |url: &str| url.split_once('?').map(|(_, query)| query.to_owned());
        assert_eq!(query(&upstream(same)), query(same), "{same}");
    }
}

/// Checks S01, S02.
#[test]
fn paths_without_a_canonical_form_are_rejected() {
    for path in [
        "/apis/cluster.x-k8s.io/v1beta1/../../../api/v1/secrets",
        "/apis/cluster.x-k8s.io/v1beta1/%2e%2e/%2E./api/v1/secrets",
        "//apis//cluster.x-k8s.io",
        "/apis/cluster.x-k8s.io%2Fv1beta1",
        "/apis/./cluster.x-k8s.io",
        "/apis/cluster.x-k8s.io;a=b/v1",
        "/apis/cluster.x-k8s.io%3Ba=b/v1",
        "/apis\\cluster.x-k8s.io",
        "/apis/%5ccluster.x-k8s.io",
        "/apis/cluster.x-k8s.io%00",
        "/apis/%25%32%65",
        "/apis/%2",
        "/apis/%zz",
        "/apis/%ff",
        "/apis/a b",
        "/apis/a#b",
        "apis",
        "",
        "/api/v1/namespaces/n/pods/p/proxy/a/../../../secrets",
        "/api/v1/namespaces/n/pods/p/proxy/a/%2e%2e%2f%2e%2e",
        "/api/v1/nodes/n/proxy/%00",
    ] {
        assert_eq!(
            parse(path)
                .map(|t| t.upstream().to_owned())
                .unwrap_err()
                .code,
            400,
            "{path:?}"
        );
    }
}

/// Check S02.
#[test]
fn unneeded_percent_encoding_is_decoded_first() {
    assert_eq!(
        upstream("/apis/cluster%2ex-k8s%2Eio/v1beta2/%6dachines"),
        "/apis/cluster.hypershift.openshift.io/v1beta2/machines"
    );
    assert_eq!(
        upstream("/api/v1/nodes/system:a%3Ab%20c"),
        "/api/v1/nodes/system:a:b%20c"
    );
    assert_eq!(
        upstream("/api/v1/namespaces/n/services/https:s:1/proxy/a%2Fb//c;d?x=%2F"),
        "/api/v1/namespaces/n/services/https:s:1/proxy/a%2Fb//c;d?x=%2F",
        "what is behind proxy belongs to the workload"
    );
}

/// Check S18.
#[test]
fn the_watch_parameter_follows_the_api_server() {
    for (query, watch) in [
        ("watch=true", true),
        ("watch=1", true),
        ("watch", true),
        ("watch=", true),
        ("watch=true&watch=false", true),
        ("watch=false&watch=true", false),
        ("watch=False", false),
        ("watch=0", false),
        ("w%61tch=true", true),
        ("watch=true;x", false),
        ("Watch=true", false),
        ("limit=1%26watch=true", false),
        ("", false),
    ] {
        let url = format!("/apis/cluster.x-k8s.io/v1beta2/machines?{query}");
        let target = parse(&url).unwrap();
        assert_eq!(target.is_watch(), watch, "{query}");
        assert!(
            target.upstream().ends_with(&format!("?{query}")),
            "the query is forwarded unchanged: {query}"
        );
    }
    assert!(parse("/api/v1/watch/namespaces/n/pods").unwrap().is_watch());
    assert!(!parse("/version?watch=true").unwrap().is_watch());
}

/// Check W11.
#[test]
fn list_and_watch_parameters_are_unchanged() {
    let query = "allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&timeoutSeconds=562&watch=true";
    assert!(upstream(&format!("/api/v1/pods?{query}")).ends_with(query));
}

#[test]
fn the_path_determines_the_type_of_the_body() {
    let rows: &[(&str, Node)] = &[
        ("/apis", Node::Discovery),
        ("/api/v1", Node::Discovery),
        ("/apis/cluster.x-k8s.io/v1beta2", Node::Discovery),
        ("/openapi/v3", Node::OpenApiIndex),
        ("/openapi/v2", Node::OpenApi),
        ("/openapi/v3/api/v1", Node::OpenApi),
        ("/healthz", Node::Opaque),
        (
            "/apis/cluster.x-k8s.io/v1beta2/clusters",
            Node::Document(Shape::Topology),
        ),
        (
            "/apis/cluster.x-k8s.io/v1beta2/namespaces/n/clusterclasses/c/status",
            Node::Document(Shape::Topology),
        ),
        (
            "/apis/example.com/v1/clusters",
            Node::Document(Shape::Plain),
        ),
        (
            "/api/v1/namespaces/n/secrets?watch=1",
            Node::WatchEvent(Shape::Data),
        ),
        ("/api/v1/namespaces/n", Node::Document(Shape::Plain)),
        (
            "/api/v1/namespaces/n/finalize",
            Node::Document(Shape::Plain),
        ),
        (
            "/api/v1/namespaces/n/resourcequotas/q/status",
            Node::Document(Shape::Quota),
        ),
        (
            "/apis/rbac.authorization.k8s.io/v1/clusterroles",
            Node::Document(Shape::Rbac),
        ),
        (
            "/apis/rbac.authorization.k8s.io/v1/rolebindings",
            Node::Document(Shape::Plain),
        ),
        (
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            Node::Document(Shape::AccessReview),
        ),
        (
            "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
            Node::Document(Shape::RulesReview),
        ),
        (
            "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
            Node::Document(Shape::AdmissionPolicy),
        ),
        (
            "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
            Node::Document(Shape::FlowSchema),
        ),
    ];
    for (url, root) in rows {
        assert_eq!(parse(url).unwrap().response_root(), *root, "{url}");
    }
}

/// Check R33.
#[test]
fn subresources_are_translated_and_pod_streams_are_not() {
    for (url, translated, upgrade) in [
        (
            "/apis/cluster.x-k8s.io/v1beta2/namespaces/n/machinedeployments/m/scale",
            true,
            false,
        ),
        ("/api/v1/namespaces/n/pods/p/log", false, false),
        ("/api/v1/namespaces/n/pods/p/exec?command=a", false, true),
        ("/api/v1/namespaces/n/services/s/proxy/x", false, true),
        (
            "/apis/example.com/v1/namespaces/n/things/t/proxy",
            true,
            false,
        ),
        ("/version", false, false),
    ] {
        let target = parse(url).unwrap();
        assert_eq!(
            (target.is_translated(), target.is_upgrade()),
            (translated, upgrade),
            "{url}"
        );
    }
}

/// Check S17.
#[test]
fn metric_labels_and_verbs_are_bounded() {
    let rows = [
        (
            "GET",
            "/apis/cluster.x-k8s.io/v1beta2/machines",
            "list",
            "machines",
        ),
        (
            "GET",
            "/apis/cluster.x-k8s.io/v1beta2/machines?watch=1",
            "watch",
            "machines",
        ),
        (
            "GET",
            "/apis/cluster.x-k8s.io/v1beta2/namespaces/n/machines/m",
            "get",
            "machines",
        ),
        (
            "DELETE",
            "/api/v1/namespaces/n/pods",
            "deletecollection",
            "pods",
        ),
        ("DELETE", "/api/v1/namespaces/n/pods/p", "delete", "pods"),
        ("BREW", "/apis/example.com/v1/coffees", "other", "other"),
        ("GET", "/apis", "get", "discovery"),
        ("GET", "/anything/else", "get", "nonresource"),
    ];
    for (method, url, verb, label) in rows {
        let target = parse(url).unwrap();
        assert_eq!(
            target.verb(&method.parse().unwrap()),
            verb,
            "{method} {url}"
        );
        assert_eq!(target.resource_label(), label, "{url}");
    }
}

/// Check R15.
#[test]
fn openapi_hashes_are_unsalted_for_the_server() {
    let rules = Rules::default();
    let salted = cache::hash_down(&rules, "ABC");
    assert_eq!(
        upstream(&format!(
            "/openapi/v3/apis/cluster.x-k8s.io/v1beta2?hash={salted}"
        )),
        "/openapi/v3/apis/cluster.hypershift.openshift.io/v1beta2?hash=ABC"
    );
    assert_eq!(
        location(
            &rules,
            "/openapi/v3/apis/cluster.hypershift.openshift.io/v1beta2?hash=ABC"
        ),
        format!("/openapi/v3/apis/cluster.x-k8s.io/v1beta2?hash={salted}")
    );
}

#[test]
fn location_headers_with_paths_are_translated() {
    let rules = Rules::default();
    assert_eq!(
        location(
            &rules,
            "https://h:1/apis/cluster.hypershift.openshift.io/v1beta2/namespaces/n/machines/m"
        ),
        "https://h:1/apis/cluster.x-k8s.io/v1beta2/namespaces/n/machines/m"
    );
    for same in ["https://h", "http://evil/%2e%2e/x", "nonsense", ""] {
        assert_eq!(location(&rules, same), same);
    }
}
