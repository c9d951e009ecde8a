//! Writes of a reconcile, and handling of failed writes.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::Path;
use std::sync::{Arc, Mutex};

use api::group::{self, CapiTypes};
use api::hypershift::v1beta1::monitoring::MetricsSet;
use bytes::Bytes;
use control_plane_component::settings::Settings;
use control_plane_component::{CapiUse, sidecar};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use support::testing::{Answer, Expect, Scenario};
use tokio::net::TcpListener;

use super::super::machines::CONFIG_MAPS;
use super::*;
use crate::components;

const NAMESPACE: &str = "clusters-one";
const DATA: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../control-plane-component/tests/data/base"
);

/// Requests, in their order.
type Requests = Arc<Mutex<Vec<Seen>>>;

/// A request: its method, path and body.
struct Seen {
    method: Method,
    path: String,
    body: Value,
}

fn operator(client: kube::Client, settings: Settings) -> Operator {
    Operator {
        settings,
        namespace: NAMESPACE.to_owned(),
        operate_on: String::new(),
        creates_security_group: false,
        client,
        releases: payload::Releases::new(payload::Options::default()).unwrap(),
        components: components::declared(),
    }
}

fn pass<'a>(operator: &'a Operator, cache: &'a Cache) -> Pass<'a> {
    Pass {
        operator,
        cache,
        writer: ObjectWriter::new(operator.client.clone(), "test", NAMESPACE),
        reader: Reader::new(operator.releases.clone()),
        discovery: Box::leak(Box::default()),
        network: Box::leak(Box::default()),
        settled: Settled::default(),
        skip_reason: None,
    }
}

fn read(name: &str) -> String {
    std::fs::read_to_string(Path::new(DATA).join(name)).unwrap()
}

/// A control plane of a release with these images.
fn scope(images: &BTreeMap<String, String>) -> ReconcileScope {
    let mut hcp: HostedControlPlane =
        serde_saphyr::from_str(&read("hosted-control-plane.yaml")).unwrap();
    hcp.metadata.namespace = Some(NAMESPACE.to_owned());
    let release = Release::default().with_overrides("own", images);
    ReconcileScope {
        hcp,
        releases: ReleasePair {
            control_plane: release.clone(),
            user: release,
        },
        infra: Infra::default(),
        objects: Objects::default(),
    }
}

/// A control plane with all inputs of its components.
fn complete_scope() -> ReconcileScope {
    let images = read("images.txt");
    let images = images
        .lines()
        .map(|name| (name.to_owned(), name.to_owned()));
    let mut scope = scope(&images.collect());
    let files = std::fs::read_dir(Path::new(DATA).join("objects")).unwrap();
    for file in files {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        scope.objects.insert(serde_saphyr::from_str(&text).unwrap());
    }
    scope
}

/// Marks all components as rolled out, so that none waits for dependencies.
fn complete(scope: &mut ReconcileScope) {
    for component in components::declared() {
        let condition = |type_: &str| {
            json!({
                "type": type_, "status": "True", "reason": "AsExpected", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            })
        };
        scope.objects.insert(json!({
            "apiVersion": "hypershift.openshift.io/v1beta1",
            "kind": "ControlPlaneComponent",
            "metadata": { "name": component.name },
            "status": {
                "version": scope.releases.control_plane.version,
                "conditions": [condition("Available"), condition("RolloutComplete")],
            },
        }));
    }
}

/// An empty API server that accepts all writes, and records all requests.
async fn recorder() -> (kube::Client, Requests) {
    drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let requests = Requests::default();
    let kept = Arc::clone(&requests);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let kept = Arc::clone(&kept);
            let service = service_fn(move |request| respond(request, Arc::clone(&kept)));
            tokio::spawn(Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    let url = format!("http://{address}").parse().unwrap();
    let client = kube::Client::try_from(kube::Config::new(url)).unwrap();
    (client, requests)
}

async fn respond(
    request: Request<Incoming>,
    requests: Requests,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let path = head.uri.path().to_owned();
    let is_list = path.ends_with("/secrets");
    requests.lock().unwrap().push(Seen {
        method: head.method.clone(),
        path,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    });
    if is_list {
        let empty = json!({ "metadata": {}, "items": [] }).to_string();
        return Ok(Response::new(Full::new(Bytes::from(empty))));
    }
    if head.method == Method::GET {
        let missing =
            json!({ "kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404 });
        let mut response = Response::new(Full::new(Bytes::from(missing.to_string())));
        *response.status_mut() = StatusCode::NOT_FOUND;
        return Ok(response);
    }
    Ok(Response::new(Full::new(body)))
}

/// A management cluster with all kinds, and private types.
fn private() -> Settings {
    Settings {
        capi_types: CapiTypes::Private,
        capi_proxy_image: Some("proxy".to_owned()),
        served_groups: ["monitoring.coreos.com", "route.openshift.io"]
            .map(str::to_owned)
            .into(),
        metrics_set: Some(MetricsSet::Telemetry),
        ..Settings::new("own")
    }
}

/// Returns the paths of writes.
fn written(requests: &Requests) -> Vec<String> {
    let requests = requests.lock().unwrap();
    let writes = requests.iter().filter(|seen| seen.method != Method::GET);
    writes.map(|seen| seen.path.clone()).collect()
}

/// Returns the body of the last write to a path with this suffix.
fn last_body(requests: &Requests, end: &str) -> Option<Value> {
    let requests = requests.lock().unwrap();
    let mut writes = requests.iter().filter(|seen| seen.method != Method::GET);
    let last = writes.rfind(|seen| seen.path.ends_with(end));
    last.map(|seen| seen.body.clone())
}

/// The component is declared only in the directory `components/example`.
#[tokio::test]
async fn components_declared_in_one_directory_are_complete() {
    let (client, requests) = recorder().await;
    let operator = Operator {
        components: Box::leak(Box::new([components::example::component()])),
        ..operator(client, private())
    };
    let cache = Cache::new(
        &operator.client,
        NAMESPACE,
        &Settings::new("own"),
        operator.components,
    );
    let mut pass = pass(&operator, &cache);
    let mut scope = complete_scope();
    pass.infrastructure(&mut scope).await.unwrap();
    pass.certificates(&mut scope, CertificateSet::All)
        .await
        .unwrap();
    // Its dependencies are not rolled out yet.
    let outcome = pass.components(&mut scope).await;
    assert!(outcome.problems.is_empty() && outcome.failed.is_none());
    let body = |end: &str| last_body(&requests, end);
    assert_eq!(body("/deployments/example"), None);
    let reported = body("/controlplanecomponents/example/status").unwrap();
    assert!(reported.to_string().contains("etcd"), "{reported}");
    complete(&mut scope);
    pass.components(&mut scope).await;
    for end in [
        "/services/example",
        "/routes/example",
        "/secrets/example-serving",
        "/secrets/example-signer",
        "/configmaps/example-ca",
        "/networkpolicies/example",
    ] {
        assert!(
            body(end).is_some(),
            "{end} is not in {:#?}",
            written(&requests)
        );
    }
    let monitor = body("/servicemonitors/example").unwrap();
    let rule = &monitor["spec"]["endpoints"][0]["metricRelabelings"][0];
    assert_eq!(rule["regex"], "example_total");
    let budget = body("/poddisruptionbudgets/example").unwrap();
    assert!(budget["spec"]["minAvailable"] == 1 || budget["spec"]["maxUnavailable"] == 1);
    let deployment = body("/deployments/example").unwrap();
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["initContainers"][0]["name"], sidecar::NAME);
    let labels = serde_json::from_value(deployment["metadata"]["labels"].clone()).unwrap();
    let handed_over = CapiUse::from_labels(Some(&labels));
    assert_eq!(handed_over, Ok(Some(CapiUse::Proxied)));
}

/// Reconciles a control plane once, and returns its requests.
async fn reconcile(
    pass: &mut Pass<'_>,
    scope: &mut ReconcileScope,
    requests: &Requests,
) -> Vec<String> {
    let before = requests.lock().unwrap().len();
    pass.infrastructure(scope).await.unwrap();
    pass.default_account(scope).await.unwrap();
    let outcome = pass.components(scope).await;
    assert!(outcome.failed.is_none(), "{:?}", outcome.failed);
    let evaluations = vec![Evaluation::yes(Type::ValidReleaseInfo)];
    let written = pass.write_status(scope, evaluations, true, false).await;
    written.unwrap();
    // As the watch would deliver it.
    let end = format!(
        "/hostedcontrolplanes/{}/status",
        scope.hcp.metadata.name.clone().unwrap()
    );
    let written = last_body(requests, &end).unwrap();
    scope.hcp.status = serde_json::from_value(written["status"].clone()).unwrap();
    let requests = requests.lock().unwrap();
    let made = requests.iter().skip(before);
    made.map(|seen| format!("{} {}", seen.method, seen.path))
        .collect()
}

#[tokio::test]
async fn unchanged_reconcile_makes_no_request() {
    let (client, requests) = recorder().await;
    let operator = operator(client, private());
    let cache = Cache::new(
        &operator.client,
        NAMESPACE,
        &Settings::new("own"),
        operator.components,
    );
    let mut pass = pass(&operator, &cache);
    let mut scope = complete_scope();
    complete(&mut scope);
    let first = reconcile(&mut pass, &mut scope, &requests).await;
    assert!(!first.is_empty());
    // Component conditions settle in the following reconciles.
    for _ in 0..2 {
        reconcile(&mut pass, &mut scope, &requests).await;
    }
    assert_eq!(reconcile(&mut pass, &mut scope, &requests).await, [""; 0]);
    // A status that differs is written.
    scope.hcp.metadata.generation = Some(7);
    let status = scope.hcp.status.take();
    let again = reconcile(&mut pass, &mut scope, &requests).await;
    assert!(
        again.iter().any(|request| request.ends_with("/hcp/status")),
        "{again:?}"
    );
    assert!(status.is_some());
}

/// Finding T20: verified on actual writes.
#[tokio::test]
async fn writes_stay_in_the_namespace_outside_cluster_api() {
    let (client, requests) = recorder().await;
    let operator = operator(client, private());
    let cache = Cache::new(
        &operator.client,
        NAMESPACE,
        &Settings::new("own"),
        operator.components,
    );
    let mut pass = pass(&operator, &cache);
    let mut scope = complete_scope();
    pass.infrastructure(&mut scope).await.unwrap();
    for component in components::all() {
        complete(&mut scope);
        pass.component(component, &mut scope).await.unwrap();
    }
    let writes = written(&requests);
    for kind in ["deployments", "statefulsets", "roles", "services", "routes"] {
        let is_written = |path: &String| path.contains(&format!("/{kind}/"));
        assert!(writes.iter().any(is_written), "no {kind} in {writes:#?}");
    }
    let capi = [CapiTypes::Private, CapiTypes::Standard]
        .map(|capi_types| [group::core(capi_types), group::infrastructure(capi_types)])
        .concat();
    for path in &writes {
        assert!(
            path.contains(&format!("/namespaces/{NAMESPACE}/")),
            "{path}"
        );
        let foreign = capi
            .iter()
            .any(|group| path.contains(&format!("/{group}/")));
        assert!(!foreign, "{path}");
    }
}

/// Returns the reason of condition `RolloutComplete` in the last status of a component.
fn rollout(requests: &Requests, name: &str) -> String {
    let body = last_body(requests, &format!("/controlplanecomponents/{name}/status")).unwrap();
    let mut conditions = body["status"]["conditions"].as_array().unwrap().iter();
    let condition = conditions.find(|condition| condition["type"] == "RolloutComplete");
    condition.unwrap()["reason"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn operands_are_part_of_the_rollout() {
    let (client, requests) = recorder().await;
    let operator = operator(client, private());
    let cache = Cache::new(
        &operator.client,
        NAMESPACE,
        &Settings::new("own"),
        operator.components,
    );
    let mut pass = pass(&operator, &cache);
    let mut scope = complete_scope();
    complete(&mut scope);
    let name = "csi-snapshot-controller-operator";
    let mut all = components::all().iter();
    let component = all.find(|component| component.name == name).unwrap();
    pass.component(component, &mut scope).await.unwrap();
    assert_eq!(rollout(&requests, name), "WaitingForRolloutComplete");
    let ready = json!({
        "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
    });
    let mut live = scope
        .objects
        .get("apps", "Deployment", name)
        .unwrap()
        .clone();
    live["status"] = ready.clone();
    scope.objects.insert(live);
    pass.component(component, &mut scope).await.unwrap();
    assert_eq!(rollout(&requests, name), "WaitingForOperands");
    let operand = "csi-snapshot-controller";
    let container = json!({ "name": "snapshot-controller", "image": operand });
    scope.objects.insert(json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": operand },
        "spec": { "selector": {}, "template": { "spec": { "containers": [container] } } },
        "status": ready,
    }));
    pass.component(component, &mut scope).await.unwrap();
    assert_eq!(rollout(&requests, name), "AsExpected");
}

/// Finding F01: a render error of one component hid an apply error of another one.
#[tokio::test]
async fn render_errors_do_not_hide_apply_errors() {
    // Only requests for the ControlPlaneComponent of etcd succeed.
    let path = format!(
        "/apis/hypershift.openshift.io/v1beta1/namespaces/{NAMESPACE}/controlplanecomponents/etcd"
    );
    let live =
        json!({ "metadata": { "name": "etcd", "namespace": NAMESPACE, "resourceVersion": "1" } });
    let scenario = Scenario::new([]).always([
        Expect::get(&path).answer(Answer::ok(&live)),
        Expect::patch(&path).answer(Answer::ok(&live)),
        Expect::patch(&format!("{path}/status")).answer(Answer::ok(&live)),
    ]);
    let operator = operator(scenario.client(), Settings::new("own"));
    let cache = Cache::new(
        &operator.client,
        NAMESPACE,
        &Settings::new("own"),
        operator.components,
    );
    // The release has no images of etcd, but those of the featuregate-generator.
    let images = BTreeMap::from([("cluster-config-api".to_owned(), "a".to_owned())]);
    let outcome = pass(&operator, &cache)
        .components(&mut scope(&images))
        .await;
    let problems: Vec<_> = outcome.problems.iter().map(|(name, _)| *name).collect();
    assert_eq!(problems, ["etcd"]);
    let failed = outcome.failed.unwrap().to_string();
    for component in ["featuregate-generator", "kube-apiserver"] {
        assert!(
            failed.contains(&format!("component {component}: ")),
            "{failed}"
        );
    }
}

#[tokio::test]
async fn identity_providers_are_reported_while_oauth_is_enabled() {
    let scenario = Scenario::new([]);
    let operator = operator(scenario.client(), Settings::new("own"));
    let provider = json!({ "name": "file", "type": "HTPasswd" });
    let type_ = Type::ValidIdpConfiguration.as_str();
    for (configuration, expected) in [
        (json!({}), Some(("True", "IDPConfigurationValid"))),
        (
            json!({ "oauth": { "identityProviders": [provider] } }),
            Some(("False", "IDPConfigurationError")),
        ),
        (json!({ "authentication": { "type": "OIDC" } }), None),
    ] {
        let mut scope = complete_scope();
        scope.hcp.spec.configuration = serde_json::from_value(configuration).unwrap();
        let now = Time(Timestamp::UNIX_EPOCH);
        let context = scope.context(&operator);
        let all = status::conditions(&context, Vec::new(), false, &now);
        let found = all.iter().find(|condition| condition.type_ == type_);
        let found = found.map(|found| (found.status.as_str(), found.reason.as_str()));
        assert_eq!(found, expected);
    }
}

/// New keys would end all sessions, so valid ones stay.
#[tokio::test]
async fn session_keys_are_created_once() {
    let (client, requests) = recorder().await;
    let operator = operator(client.clone(), Settings::new("own"));
    let cache = Cache::new(
        &client,
        NAMESPACE,
        &Settings::new("own"),
        operator.components,
    );
    let mut pass = pass(&operator, &cache);
    let mut scope = complete_scope();
    pass.session_keys(&mut scope).await.unwrap();
    let writes = || written(&requests);
    assert_eq!(writes().len(), 1, "{:?}", writes());
    assert!(writes()[0].ends_with("/secrets/oauth-openshift-session"));
    pass.session_keys(&mut scope).await.unwrap();
    assert_eq!(writes().len(), 1, "{:?}", writes());
}

/// A pass after another change does not build it again.
#[tokio::test]
async fn the_configuration_of_machines_is_built_when_it_changes() {
    let (client, requests) = recorder().await;
    let operator = operator(client, Settings::new("own"));
    let cache = Cache::new(
        &operator.client,
        NAMESPACE,
        &Settings::new("own"),
        operator.components,
    );
    let mut pass = pass(&operator, &cache);
    let mut scope = complete_scope();
    scope.hcp.spec.networking = serde_json::from_value(json!({
        "networkType": "OVNKubernetes",
        "clusterNetwork": [{ "cidr": "10.132.0.0/14" }],
        "serviceNetwork": [{ "cidr": "172.31.0.0/16" }],
        "machineNetwork": [{ "cidr": "10.0.0.0/16" }],
    }))
    .unwrap();
    scope.infra.api.host = "api.example.com".to_owned();
    let config_map = |name: &str, text: &str| json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "ca.crt": text } });
    scope.objects.insert(config_map("root-ca", "root"));
    // Another authority is missing: it is reported each time.
    for _ in 0..2 {
        let problem = pass.machine_config(&mut scope).await.unwrap();
        assert!(problem.is_some());
    }
    scope
        .objects
        .insert(config_map("kubelet-client-ca", "kubelet"));
    for (name, change, is_built) in [
        ("all is there", None, true),
        ("written by the last pass", None, true),
        ("nothing", None, false),
        ("something else", Some(("other", "1")), false),
        ("an authority", Some(("root-ca", "changed")), true),
    ] {
        if let Some((name, text)) = change {
            scope.objects.insert(config_map(name, text));
        }
        let is_settled = pass.settled.is_settled(CONFIG_MAPS, &scope.objects);
        assert_eq!(!is_settled, is_built, "{name}");
        let problem = pass.machine_config(&mut scope).await.unwrap();
        assert!(problem.is_none(), "{name}: {problem:?}");
    }
    let body = last_body(&requests, "/configmaps/machine-config-server").unwrap();
    assert_eq!(body["data"]["root-ca.crt"], "changed");
}
