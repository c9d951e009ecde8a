//! The requests: two small custom resources, and everything around them that names their groups.

use api::group::{CapiTypes, GroupTable};

/// One request.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) name: &'static str,
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
}

/// What each row says of a request. `{core}` and `{infra}` are the two groups.
type Row = (&'static str, &'static str, &'static str, Kind, &'static str);

/// How a request is sent and what it requests.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// A body of this content type, and a JSON response.
    Body(&'static str),
    /// No body, and a response in one of these forms.
    Accept(&'static str),
    /// As a user without any permissions.
    Unprivileged,
}

const JSON: Kind = Kind::Accept("application/json");
const TABLE: Kind = Kind::Accept("application/json;as=Table;v=v1;g=meta.k8s.io,application/json");
const METADATA: Kind =
    Kind::Accept("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json");
const METADATA_LIST: Kind = Kind::Accept(
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
);
const AGGREGATED: Kind = Kind::Accept(
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json",
);
const OBJECT: Kind = Kind::Body("application/json");
const MERGE: Kind = Kind::Body("application/merge-patch+json");
const PATCH: Kind = Kind::Body("application/json-patch+json");
const APPLY: Kind = Kind::Body("application/apply-patch+yaml");

const ROWS: &[Row] = &[
    ("discovery-groups", "GET", "/apis", JSON, ""),
    ("discovery-aggregated", "GET", "/apis", AGGREGATED, ""),
    ("discovery-group", "GET", "/apis/{core}", JSON, ""),
    (
        "discovery-resources",
        "GET",
        "/apis/{core}/v1beta2",
        JSON,
        "",
    ),
    ("openapi-index", "GET", "/openapi/v3", JSON, ""),
    (
        "openapi-group",
        "GET",
        "/openapi/v3/apis/{core}/v1beta2",
        JSON,
        "",
    ),
    (
        "crd-get",
        "GET",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/machines.{core}",
        JSON,
        "",
    ),
    (
        "crd-list",
        "GET",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        JSON,
        "",
    ),
    (
        "crd-table",
        "GET",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        TABLE,
        "",
    ),
    (
        "crd-metadata",
        "GET",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        METADATA_LIST,
        "",
    ),
    (
        "crd-watch",
        "GET",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?allowWatchBookmarks=true&fieldSelector=metadata.name%3Dmachines.{core}&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&timeoutSeconds=1&watch=true",
        METADATA,
        "",
    ),
    (
        "crd-annotate",
        "PATCH",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/machines.{core}?fieldManager=recorder",
        MERGE,
        r#"{"metadata":{"annotations":{"crd-migration.cluster.x-k8s.io/observed-generation":"1"}}}"#,
    ),
    (
        "crd-missing",
        "GET",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clusters.{core}",
        JSON,
        "",
    ),
    (
        "api-service",
        "GET",
        "/apis/apiregistration.k8s.io/v1/apiservices/v1beta2.{core}",
        JSON,
        "",
    ),
    (
        "machine-create",
        "POST",
        "/apis/{core}/v1beta2/namespaces/default/machines?fieldManager=recorder",
        OBJECT,
        r#"{"apiVersion":"{core}/v1beta2","kind":"Machine","metadata":{"name":"m","labels":{"cluster.x-k8s.io/cluster-name":"c"},"annotations":{"cluster.x-k8s.io/cloned-from-groupkind":"DevMachineTemplate.infrastructure.cluster.x-k8s.io"},"finalizers":["machine.cluster.x-k8s.io"],"ownerReferences":[{"apiVersion":"{core}/v1beta2","kind":"MachineSet","name":"ms","uid":"aaaaaaaa-0000-4000-8000-000000000000","controller":true}]},"spec":{"clusterName":"c","replicas":1,"infrastructureRef":{"apiGroup":"{infra}","kind":"DevMachine","name":"d"}}}"#,
    ),
    (
        "machine-create-again",
        "POST",
        "/apis/{core}/v1beta2/namespaces/default/machines",
        OBJECT,
        r#"{"apiVersion":"{core}/v1beta2","kind":"Machine","metadata":{"name":"m"},"spec":{"clusterName":"c"}}"#,
    ),
    (
        "machine-invalid",
        "POST",
        "/apis/{core}/v1beta2/namespaces/default/machines",
        OBJECT,
        r#"{"apiVersion":"{core}/v1beta2","kind":"Machine","metadata":{"name":"i","labels":{"cluster.x-k8s.io/b d":"c"}},"spec":{"infrastructureRef":{"apiGroup":"{infra}","kind":1}}}"#,
    ),
    (
        "machine-wrong-version",
        "POST",
        "/apis/{core}/v1beta2/namespaces/default/machines",
        OBJECT,
        r#"{"apiVersion":"{core}/v1","kind":"Machine","metadata":{"name":"w"},"spec":{"clusterName":"c"}}"#,
    ),
    (
        "machine-apply",
        "PATCH",
        "/apis/{core}/v1beta2/namespaces/default/machines/a?fieldManager=capi-machineset&force=true",
        APPLY,
        r#"{"apiVersion":"{core}/v1beta2","kind":"Machine","metadata":{"name":"a","namespace":"default"},"spec":{"clusterName":"c"}}"#,
    ),
    (
        "machine-apply-conflict",
        "PATCH",
        "/apis/{core}/v1beta2/namespaces/default/machines/m?fieldManager=capi-machineset",
        APPLY,
        "# A comment that names cluster.x-k8s.io\napiVersion: '{core}/v1beta2'\nkind: Machine\nmetadata: {name: m, namespace: \"default\"}\nspec:\n  clusterName: other\n  infrastructureRef: {apiGroup: {infra}, kind: DevMachine, name: d}",
    ),
    (
        "machine-patch",
        "PATCH",
        "/apis/{core}/v1beta2/namespaces/default/machines/m?fieldManager=recorder",
        MERGE,
        r#"{"spec":{"infrastructureRef":{"apiGroup":"{infra}","name":"e"}}}"#,
    ),
    (
        "machine-json-patch",
        "PATCH",
        "/apis/{core}/v1beta2/namespaces/default/machines/m?fieldManager=recorder",
        PATCH,
        r#"[{"op":"test","path":"/metadata/ownerReferences/0/apiVersion","value":"{core}/v1beta2"},{"op":"add","path":"/metadata/annotations/cluster.x-k8s.io~1paused","value":""},{"op":"replace","path":"/spec/infrastructureRef","value":{"apiGroup":"{infra}","kind":"DevMachine","name":"f"}}]"#,
    ),
    (
        "machine-conflict",
        "PUT",
        "/apis/{core}/v1beta2/namespaces/default/machines/m",
        OBJECT,
        r#"{"apiVersion":"{core}/v1beta2","kind":"Machine","metadata":{"name":"m","resourceVersion":"1"},"spec":{"clusterName":"c"}}"#,
    ),
    (
        "machine-status",
        "PATCH",
        "/apis/{core}/v1beta2/namespaces/default/machines/m/status?fieldManager=recorder",
        MERGE,
        r#"{"status":{"replicas":1,"selector":"cluster.x-k8s.io/cluster-name=c","message":"waits for hook pre-terminate.delete.hook.machine.cluster.x-k8s.io/x"}}"#,
    ),
    (
        "machine-scale",
        "GET",
        "/apis/{core}/v1beta2/namespaces/default/machines/m/scale",
        JSON,
        "",
    ),
    (
        "machine-list",
        "GET",
        "/apis/{core}/v1beta2/machines",
        JSON,
        "",
    ),
    (
        "machine-page",
        "GET",
        "/apis/{core}/v1beta2/machines?limit=1",
        JSON,
        "",
    ),
    (
        "machine-table",
        "GET",
        "/apis/{core}/v1beta2/namespaces/default/machines",
        TABLE,
        "",
    ),
    (
        "machine-watch",
        "GET",
        "/apis/{core}/v1beta2/machines?allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&timeoutSeconds=1&watch=true",
        JSON,
        "",
    ),
    (
        "machine-watch-expired",
        "GET",
        "/apis/{core}/v1beta2/machines?resourceVersion=1&timeoutSeconds=1&watch=true",
        JSON,
        "",
    ),
    (
        "machine-missing",
        "GET",
        "/apis/{core}/v1beta2/namespaces/default/machines/none",
        JSON,
        "",
    ),
    (
        "machine-forbidden",
        "GET",
        "/apis/{core}/v1beta2/namespaces/default/machines/m",
        Kind::Unprivileged,
        "",
    ),
    (
        "deprecated-list",
        "GET",
        "/apis/{infra}/v1beta2/devmachines",
        JSON,
        "",
    ),
    (
        "secret-owned",
        "POST",
        "/api/v1/namespaces/default/secrets?fieldManager=recorder",
        OBJECT,
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","ownerReferences":[{"apiVersion":"{core}/v1beta2","kind":"Cluster","name":"c","uid":"aaaaaaaa-0000-4000-8000-000000000000"}]},"type":"cluster.x-k8s.io/secret","data":{"value":"Y2x1c3Rlci54LWs4cy5pby92MWJldGEy"}}"#,
    ),
    (
        "secret-immutable",
        "PATCH",
        "/api/v1/namespaces/default/secrets/s",
        MERGE,
        r#"{"type":"cluster.x-k8s.io/other"}"#,
    ),
    (
        "event",
        "POST",
        "/api/v1/namespaces/default/events?fieldManager=recorder",
        OBJECT,
        r#"{"apiVersion":"v1","kind":"Event","metadata":{"name":"e","namespace":"default"},"involvedObject":{"apiVersion":"{core}/v1beta2","kind":"Machine","name":"m","namespace":"default"},"reason":"Recorded","message":"cluster.x-k8s.io/v1beta2 is text","type":"Normal","source":{"component":"cluster.x-k8s.io"}}"#,
    ),
    (
        "event-list",
        "GET",
        "/api/v1/namespaces/default/events?fieldSelector=involvedObject.apiVersion%3D{core}%2Fv1beta2",
        JSON,
        "",
    ),
    (
        "access-review",
        "POST",
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        OBJECT,
        r#"{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{"resourceAttributes":{"group":"{core}","resource":"machines","verb":"get"}}}"#,
    ),
    (
        "cluster-role",
        "POST",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles?fieldManager=recorder",
        OBJECT,
        r#"{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"recorder","labels":{"cluster.x-k8s.io/aggregate-to-manager":"true"}},"rules":[{"apiGroups":["{core}","","{infra}"],"resources":["*"],"verbs":["get"]},{"apiGroups":["apiextensions.k8s.io"],"resources":["customresourcedefinitions"],"resourceNames":["machines.{core}","other"],"verbs":["get"]}]}"#,
    ),
    (
        "cluster-role-list",
        "GET",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles?labelSelector=cluster.x-k8s.io%2Faggregate-to-manager%3Dtrue",
        JSON,
        "",
    ),
    (
        "quota",
        "POST",
        "/api/v1/namespaces/default/resourcequotas?fieldManager=recorder",
        OBJECT,
        r#"{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"q"},"spec":{"hard":{"count/machines.{core}":"10","pods":"3"}}}"#,
    ),
    (
        "autoscaler",
        "POST",
        "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers?fieldManager=recorder",
        OBJECT,
        r#"{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{"name":"h"},"spec":{"maxReplicas":3,"scaleTargetRef":{"apiVersion":"{core}/v1beta2","kind":"Machine","name":"m"}}}"#,
    ),
    (
        "machine-delete",
        "DELETE",
        "/apis/{core}/v1beta2/namespaces/default/machines/a",
        OBJECT,
        r#"{"apiVersion":"{core}/v1beta2","kind":"DeleteOptions","propagationPolicy":"Background"}"#,
    ),
    (
        "machine-delete-held",
        "DELETE",
        "/apis/{core}/v1beta2/namespaces/default/machines/m",
        JSON,
        "",
    ),
];

/// All requests of one side, in order.
pub(crate) fn all(capi_types: CapiTypes) -> Vec<Exchange> {
    let exchange = |&(name, method, path, kind, body): &Row| Exchange {
        name,
        method,
        path: on_side(capi_types, path),
        headers: headers(kind),
        body: on_side(capi_types, body),
    };
    ROWS.iter().map(exchange).collect()
}

fn headers(kind: Kind) -> Vec<(&'static str, String)> {
    let json = ("accept", "application/json".to_owned());
    match kind {
        Kind::Body(content_type) => vec![json, ("content-type", content_type.to_owned())],
        Kind::Accept(accept) => vec![("accept", accept.to_owned())],
        Kind::Unprivileged => vec![json, ("impersonate-user", "unprivileged".to_owned())],
    }
}

/// `text` with the two groups' names on `capi_types`.
pub(crate) fn on_side(capi_types: CapiTypes, text: &str) -> String {
    let table = GroupTable::default();
    let name = |standard: &str| match (capi_types, table.swap(standard.as_bytes())) {
        (CapiTypes::Private, Some(private)) => private.to_owned(),
        _ => standard.to_owned(),
    };
    text.replace("{core}", &name("cluster.x-k8s.io"))
        .replace("{infra}", &name("infrastructure.cluster.x-k8s.io"))
}

/// The `OpenAPI` documents of the two groups.
pub(crate) fn documents(capi_types: CapiTypes) -> [String; 2] {
    ["{core}", "{infra}"]
        .map(|group| on_side(capi_types, &format!("/openapi/v3/apis/{group}/v1beta2")))
}
