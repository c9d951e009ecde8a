//! Requests to servers that fall silent.

use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;
use socket2::SockRef;
use tokio::net::TcpListener;

use super::*;
use crate::deadline::TimedOut;
use crate::fence;
use crate::lease::Claim;
use crate::reconcile::client_reason;
use crate::testing::{Reply, TcpServer};

const TIMEOUTS: Timeouts = Timeouts {
    write: Duration::from_secs(1),
    head: Duration::from_secs(1),
    body: Duration::from_millis(1),
};

/// A request that has not ended by then has no deadline.
const ENOUGH: Duration = Duration::from_secs(20);

fn config(server: &TcpServer) -> kube::Config {
    kube::Config::new(server.url().parse().unwrap())
}

fn maps(client: kube::Client) -> Api<ConfigMap> {
    Api::namespaced(client, "a")
}

async fn write(maps: &Api<ConfigMap>) -> kube::Result<ConfigMap> {
    let patch = Patch::Apply(json!({ "apiVersion": "v1", "kind": "ConfigMap" }));
    maps.patch("b", &PatchParams::apply("m"), &patch).await
}

async fn assert_times_out<T: Debug>(request: impl Future<Output = kube::Result<T>>) {
    let ended = tokio::time::timeout(ENOUGH, request).await;
    let error = ended.expect("the request has a deadline").unwrap_err();
    assert_eq!(client_reason(&error), "Timeout", "{error:?}");
    let kube::Error::Service(source) = error else {
        panic!("{error}");
    };
    assert!(source.is::<TimedOut>(), "{source}");
}

/// Check T03.
#[tokio::test]
async fn a_write_without_an_answer_ends_and_the_next_one_succeeds() {
    let object = json!({ "metadata": { "name": "b" } });
    let server = TcpServer::start([Reply::Never, Reply::Json(object)]).await;
    let maps = maps(connect_with(&config(&server), TIMEOUTS).unwrap());
    assert_times_out(write(&maps)).await;
    assert_eq!(
        write(&maps).await.unwrap().metadata.name.as_deref(),
        Some("b")
    );
    // The silent connection is not used again.
    assert_eq!(server.connections(), 2);
}

/// Check T03.
#[tokio::test]
async fn a_fenced_write_without_an_answer_ends_while_the_lease_is_held() {
    let object = json!({ "metadata": { "name": "b" } });
    let server = TcpServer::start([Reply::Never, Reply::Json(object)]).await;
    let (_term, claim) = Claim::for_tests("operator", "pod-a", 1);
    let client = fence::client_with(&config(&server), &claim, "program/1", TIMEOUTS);
    let maps = maps(client.unwrap());
    assert_times_out(write(&maps)).await;
    assert!(claim.is_held());
    write(&maps).await.unwrap();
}

/// Check T03.
#[tokio::test]
async fn an_answer_that_stops_in_its_body_ends() {
    let server = TcpServer::start([Reply::Head, Reply::Head]).await;
    let maps = maps(connect_with(&config(&server), TIMEOUTS).unwrap());
    assert_times_out(maps.list(&ListParams::default())).await;
    assert_times_out(write(&maps)).await;
}

/// Check T03.
#[tokio::test]
async fn the_kernel_closes_connections_whose_peer_has_gone() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let stream = tcp_connector().oneshot(url.parse().unwrap()).await.unwrap();
    let socket = SockRef::from(stream.inner());
    assert_eq!(socket.tcp_user_timeout().unwrap(), Some(TCP_USER_TIMEOUT));
    assert!(socket.keepalive().unwrap());
    assert_eq!(socket.tcp_keepalive_time().unwrap(), KEEPALIVE_TIME);
    assert_eq!(socket.tcp_keepalive_interval().unwrap(), KEEPALIVE_INTERVAL);
    assert_eq!(socket.tcp_keepalive_retries().unwrap(), KEEPALIVE_RETRIES);
}
