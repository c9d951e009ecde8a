//! Reading from an API server that answers two pages.

use std::{convert::Infallible, fs, net::SocketAddr, time::Duration};

use http::Response;
use http_body_util::Full;
use hyper::{
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::json;
use support::error::chain;
use support::testing::{Reply, TcpServer};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

use super::*;

fn crd(group: &str) -> Value {
    json!({"metadata": {"name": format!("machines.{group}")}, "spec": {"group": group}})
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let query = request.uri().query().unwrap_or_default().to_owned();
    let (status, body) = match (request.uri().path(), query.as_str()) {
        (CRDS, "limit=50") => (
            200,
            json!({"metadata": {"continue": "a/b="}, "items": [crd("cluster.x-k8s.io")]}),
        ),
        (CRDS, "limit=50&continue=a%2Fb%3D") => (
            200,
            json!({"metadata": {}, "items": [crd("cluster.hypershift.openshift.io"), crd("example.com")]}),
        ),
        _ => (
            403,
            json!({"kind": "Status", "status": "Failure", "code": 403, "message": "no"}),
        ),
    };
    let response = Response::builder()
        .status(status)
        .body(Full::from(body.to_string()));
    Ok(response.unwrap())
}

async fn serve() -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let connection =
                http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer));
            tokio::spawn(async move { drop(connection.await) });
        }
    });
    address
}

fn kubeconfig(directory: &std::path::Path, address: SocketAddr) -> PathBuf {
    let path = directory.join("kubeconfig");
    let text = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "good", "cluster": {"server": format!("http://{address}")}},
            {"name": "bad", "cluster": {"server": format!("http://{address}/elsewhere")}},
        ],
        "users": [{"name": "u", "user": {}}],
        "contexts": [
            {"name": "good", "context": {"cluster": "good", "user": "u"}},
            {"name": "bad", "context": {"cluster": "bad", "user": "u"}},
        ],
        "current-context": "good",
    });
    fs::write(&path, text.to_string()).unwrap();
    path
}

#[tokio::test]
async fn reads_all_pages_and_leaves_private_crds_out() {
    let directory = tempfile::tempdir().unwrap();
    let access = Access {
        kubeconfig: Some(kubeconfig(directory.path(), serve().await)),
        context: None,
    };
    let batch = read(&access, &GroupTable::default()).await.unwrap();
    let objects: Vec<_> = batch
        .documents
        .iter()
        .map(|document| document.value.to_string())
        .collect();
    assert_eq!(objects.len(), 2);
    let head =
        r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"#;
    assert!(
        objects.iter().all(|object| object.starts_with(head)),
        "{objects:?}"
    );
    assert!(
        objects[0].contains("machines.cluster.x-k8s.io"),
        "{objects:?}"
    );
    assert!(objects[1].contains("machines.example.com"), "{objects:?}");
}

#[tokio::test]
async fn says_what_is_wrong_with_access() {
    let directory = tempfile::tempdir().unwrap();
    let path = kubeconfig(directory.path(), serve().await);
    let access = |kubeconfig: PathBuf, context: Option<&str>| Access {
        kubeconfig: Some(kubeconfig),
        context: context.map(str::to_owned),
    };
    for (access, expected) in [
        (
            access(directory.path().join("missing"), None),
            "the kubeconfig cannot be used",
        ),
        (
            access(path.clone(), Some("missing")),
            "the kubeconfig cannot be used",
        ),
        (access(path, Some("bad")), "must be reachable"),
    ] {
        let error = read(&access, &GroupTable::default()).await.unwrap_err();
        let SourceError::Cluster(source) = error else {
            panic!("{error}");
        };
        assert!(source.to_string().contains(expected), "{source}");
    }
}

#[tokio::test]
async fn a_request_to_a_silent_api_server_ends() {
    let server = TcpServer::start([Reply::Never]).await;
    let address = server.url().trim_start_matches("http://").parse().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = kubeconfig(directory.path(), address);
    let access = Access {
        kubeconfig: Some(path),
        context: None,
    };
    let client = connect(&access).await.unwrap();
    let listing = tokio::spawn(async move { list(&client).await });
    while server.connections() == 0 {
        tokio::task::yield_now().await;
    }
    // From here on, time passes as soon as everything waits.
    tokio::time::pause();
    let ended = tokio::time::timeout(Duration::from_mins(3), listing).await;
    let error = ended.expect("the request has a deadline").unwrap();
    let error = chain(&error.unwrap_err());
    assert!(error.contains("timed out"), "{error}");
}

#[tokio::test]
async fn another_user_is_impersonated() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let access = Access {
        kubeconfig: Some(kubeconfig(directory.path(), listener.local_addr().unwrap())),
        context: None,
    };
    let client = connect_as(&access, Some("reader")).await.unwrap();
    let listing = tokio::spawn(async move { list(&client).await });
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    listing.abort();
    let head = String::from_utf8(head).unwrap();
    assert!(head.contains("impersonate-user: reader\r\n"), "{head}");
}
