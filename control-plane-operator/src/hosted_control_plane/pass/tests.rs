//! What a pass writes, and what becomes of what it cannot write.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::Path;
use std::sync::{Arc, Mutex};

use api::group::{self, Side};
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
        told: None,
    }
}

fn read(name: &str) -> String {
    std::fs::read_to_string(Path::new(DATA).join(name)).unwrap()
}

/// A control plane of a release with these images.
fn world(images: &BTreeMap<String, String>) -> World {
    let mut hcp: HostedControlPlane =
        serde_saphyr::from_str(&read("hosted-control-plane.yaml")).unwrap();
    hcp.metadata.namespace = Some(NAMESPACE.to_owned());
    let release = Release::default().with_overrides("own", images);
    World {
        hcp,
        releases: Pair {
            control_plane: release.clone(),
            user: release,
        },
        infra: Infra::default(),
        objects: Objects::default(),
    }
}

/// A control plane with all that components are made from.
fn complete_world() -> World {
    let images = read("images.txt");
    let images = images
        .lines()
        .map(|name| (name.to_owned(), name.to_owned()));
    let mut world = world(&images.collect());
    let files = std::fs::read_dir(Path::new(DATA).join("objects")).unwrap();
    for file in files {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        world.objects.insert(serde_saphyr::from_str(&text).unwrap());
    }
    world
}

/// Makes all components available in the release, so that none has to wait for another one.
fn complete(world: &mut World) {
    for component in components::all() {
        let condition = |type_: &str| {
            json!({
                "type": type_, "status": "True", "reason": "AsExpected", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            })
        };
        world.objects.insert(json!({
            "apiVersion": "hypershift.openshift.io/v1beta1",
            "kind": "ControlPlaneComponent",
            "metadata": { "name": component.name },
            "status": {
                "version": world.releases.control_plane.version,
                "conditions": [condition("Available"), condition("RolloutComplete")],
            },
        }));
    }
}

/// An API server that has nothing, accepts all that is written, and keeps all requests.
async fn recorder() -> (kube::Client, Requests) {
    drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let requests = Requests::default();
    let kept = Arc::clone(&requests);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let kept = Arc::clone(&kept);
            let service = service_fn(move |request| answer(request, Arc::clone(&kept)));
            tokio::spawn(Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    let url = format!("http://{address}").parse().unwrap();
    let client = kube::Client::try_from(kube::Config::new(url)).unwrap();
    (client, requests)
}

async fn answer(
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
        capi: Side::Private,
        capi_proxy_image: Some("proxy".to_owned()),
        served_groups: ["monitoring.coreos.com", "route.openshift.io"]
            .map(str::to_owned)
            .into(),
        metrics_set: Some(MetricsSet::Telemetry),
        ..Settings::new("own")
    }
}

/// The paths that were written to.
fn written(requests: &Requests) -> Vec<String> {
    let requests = requests.lock().unwrap();
    let writes = requests.iter().filter(|seen| seen.method != Method::GET);
    writes.map(|seen| seen.path.clone()).collect()
}

/// What was written last to an object, by the end of its path.
fn last_body(requests: &Requests, end: &str) -> Option<Value> {
    let requests = requests.lock().unwrap();
    let mut writes = requests.iter().filter(|seen| seen.method != Method::GET);
    let last = writes.rfind(|seen| seen.path.ends_with(end));
    last.map(|seen| seen.body.clone())
}

/// The component is declared in the directory `components/example`, and no other file names it.
#[tokio::test]
async fn a_component_declared_in_one_directory_gets_all_that_others_get() {
    let (client, requests) = recorder().await;
    let operator = Operator {
        components: Box::leak(Box::new([components::example::component()])),
        ..operator(client, private())
    };
    let cache = Cache::new(&operator.client, NAMESPACE, &[], operator.components);
    let mut pass = pass(&operator, &cache);
    let mut world = complete_world();
    pass.infrastructure(&mut world).await.unwrap();
    pass.certificates(&mut world, Scope::All).await.unwrap();
    // Its dependencies are not there yet.
    let outcome = pass.components(&mut world).await;
    assert!(outcome.problems.is_empty() && outcome.failed.is_none());
    let body = |end: &str| last_body(&requests, end);
    assert_eq!(body("/deployments/example"), None);
    let reported = body("/controlplanecomponents/example/status").unwrap();
    assert!(reported.to_string().contains("etcd"), "{reported}");
    complete(&mut world);
    pass.components(&mut world).await;
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

/// One pass over a control plane whose release is read; gives the paths of its requests.
async fn reconcile(pass: &mut Pass<'_>, world: &mut World, requests: &Requests) -> Vec<String> {
    let before = requests.lock().unwrap().len();
    pass.infrastructure(world).await.unwrap();
    pass.default_account(world).await.unwrap();
    let outcome = pass.components(world).await;
    assert!(outcome.failed.is_none(), "{:?}", outcome.failed);
    let verdicts = vec![Verdict::yes(Type::ValidReleaseInfo)];
    let written = pass.write_status(world, verdicts, true, false).await;
    written.unwrap();
    // The watch brings what was written.
    let end = format!(
        "/hostedcontrolplanes/{}/status",
        world.hcp.metadata.name.clone().unwrap()
    );
    let written = last_body(requests, &end).unwrap();
    world.hcp.status = serde_json::from_value(written["status"].clone()).unwrap();
    let requests = requests.lock().unwrap();
    let made = requests.iter().skip(before);
    made.map(|seen| format!("{} {}", seen.method, seen.path))
        .collect()
}

#[tokio::test]
async fn a_pass_in_which_nothing_changed_makes_no_request() {
    let (client, requests) = recorder().await;
    let operator = operator(client, private());
    let cache = Cache::new(&operator.client, NAMESPACE, &[], operator.components);
    let mut pass = pass(&operator, &cache);
    let mut world = complete_world();
    complete(&mut world);
    let first = reconcile(&mut pass, &mut world, &requests).await;
    assert!(!first.is_empty());
    // What components wait for is reported by the next passes.
    for _ in 0..2 {
        reconcile(&mut pass, &mut world, &requests).await;
    }
    assert_eq!(reconcile(&mut pass, &mut world, &requests).await, [""; 0]);
    // The status is written when it differs, and by itself.
    world.hcp.metadata.generation = Some(7);
    let status = world.hcp.status.take();
    let again = reconcile(&mut pass, &mut world, &requests).await;
    assert!(
        again.iter().any(|request| request.ends_with("/hcp/status")),
        "{again:?}"
    );
    assert!(status.is_some());
}

/// Finding T20: held on the path of writes, and not on a table of decisions.
#[tokio::test]
async fn a_pass_writes_into_its_namespace_and_into_no_cluster_api_group() {
    let (client, requests) = recorder().await;
    let operator = operator(client, private());
    let cache = Cache::new(&operator.client, NAMESPACE, &[], operator.components);
    let mut pass = pass(&operator, &cache);
    let mut world = complete_world();
    pass.infrastructure(&mut world).await.unwrap();
    for component in components::all() {
        complete(&mut world);
        pass.component(component, &mut world).await.unwrap();
    }
    let writes = written(&requests);
    for kind in ["deployments", "statefulsets", "roles", "services", "routes"] {
        let is_written = |path: &String| path.contains(&format!("/{kind}/"));
        assert!(writes.iter().any(is_written), "no {kind} in {writes:#?}");
    }
    let capi = [Side::Private, Side::Standard]
        .map(|side| [group::core(side), group::infrastructure(side)])
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

/// Finding F01: a component that could not be rendered hid that another one could not be written.
#[tokio::test]
async fn a_render_problem_does_not_hide_a_failed_write() {
    // All that is answered is what reports on etcd: all other writes fail.
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
    let cache = Cache::new(&operator.client, NAMESPACE, &[], operator.components);
    // The release lacks the images of etcd and has all of the featuregate-generator.
    let images = BTreeMap::from([("cluster-config-api".to_owned(), "a".to_owned())]);
    let outcome = pass(&operator, &cache)
        .components(&mut world(&images))
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
