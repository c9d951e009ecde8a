//! What a pass writes, and what becomes of what it cannot write.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::Path;
use std::sync::{Arc, Mutex};

use api::group::{self, Side};
use bytes::Bytes;
use control_plane_component::settings::Settings;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use support::testing::{Answer, Expect, Scenario};
use tokio::net::TcpListener;

use super::*;

const NAMESPACE: &str = "clusters-one";
const DATA: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../control-plane-component/tests/data/base"
);

/// Paths of writes.
type Writes = Arc<Mutex<Vec<String>>>;

fn operator(client: kube::Client, settings: Settings) -> Operator {
    Operator {
        settings,
        namespace: NAMESPACE.to_owned(),
        operate_on: String::new(),
        client,
        releases: payload::Releases::new(payload::Options::default()).unwrap(),
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

/// An API server that has nothing, takes all that is written, and keeps where it was written.
async fn recorder() -> (kube::Client, Writes) {
    drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let writes = Writes::default();
    let kept = Arc::clone(&writes);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let kept = Arc::clone(&kept);
            let service = service_fn(move |request| answer(request, Arc::clone(&kept)));
            tokio::spawn(Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    let url = format!("http://{address}").parse().unwrap();
    let client = kube::Client::try_from(kube::Config::new(url)).unwrap();
    (client, writes)
}

async fn answer(
    request: Request<Incoming>,
    writes: Writes,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    if head.method == Method::GET {
        let missing =
            json!({ "kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404 });
        let mut response = Response::new(Full::new(Bytes::from(missing.to_string())));
        *response.status_mut() = StatusCode::NOT_FOUND;
        return Ok(response);
    }
    writes.lock().unwrap().push(head.uri.path().to_owned());
    let body = body.collect().await.unwrap().to_bytes();
    Ok(Response::new(Full::new(body)))
}

/// Finding T20: held on the path of writes, and not on a table of decisions.
#[tokio::test]
async fn a_pass_writes_into_its_namespace_and_into_no_cluster_api_group() {
    let (client, writes) = recorder().await;
    let settings = Settings {
        capi: Side::Private,
        capi_proxy_image: Some("proxy".to_owned()),
        served_groups: ["monitoring.coreos.com", "route.openshift.io"]
            .map(str::to_owned)
            .into(),
        ..Settings::new("own")
    };
    let operator = operator(client, settings);
    let cache = Cache::new(&operator.client, NAMESPACE, &[]);
    let mut pass = pass(&operator, &cache);
    let mut world = complete_world();
    pass.infrastructure(&mut world).await.unwrap();
    for component in components::all() {
        complete(&mut world);
        pass.component(component, &mut world).await.unwrap();
    }
    let writes = writes.lock().unwrap();
    for kind in ["deployments", "statefulsets", "roles", "services", "routes"] {
        let is_written = |path: &String| path.contains(&format!("/{kind}/"));
        assert!(writes.iter().any(is_written), "no {kind} in {writes:#?}");
    }
    let capi = [Side::Private, Side::Standard]
        .map(|side| [group::core(side), group::infrastructure(side)])
        .concat();
    for path in &*writes {
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
    let cache = Cache::new(&operator.client, NAMESPACE, &[]);
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
