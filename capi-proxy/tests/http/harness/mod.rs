//! What the tests are made with.

mod client;
mod http1;
mod http2;
mod pki;
mod proxy;
mod relay;

pub(crate) use client::{Client, Response, get};
pub(crate) use http1::{Conn, Http1, Request};
pub(crate) use http2::{Http2, Watch};
pub(crate) use pki::{Leaf, Pki};
pub(crate) use proxy::{Builder, Proxy};
pub(crate) use relay::Relay;

use std::time::{Duration, Instant};

/// Limit after which a test that hangs gives up. It is far above what a busy machine needs, and no passing test waits for
/// it.
pub(crate) const TIMEOUT: Duration = Duration::from_mins(3);

/// The standard name of an object's group, and how the API server stores it.
pub(crate) const STANDARD: &str =
    r#"{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Machine","metadata":{"name":"m"}}"#;
pub(crate) const PRIVATE: &str = r#"{"apiVersion":"cluster.hypershift.openshift.io/v1beta2","kind":"Machine","metadata":{"name":"m"}}"#;
/// Where that object is.
pub(crate) const MACHINE: &str = "/apis/cluster.x-k8s.io/v1beta2/namespaces/n/machines/m";
pub(crate) const MACHINES: &str = "/apis/cluster.x-k8s.io/v1beta2/namespaces/n/machines";
pub(crate) const WATCH: &str = "/apis/cluster.x-k8s.io/v1beta2/machines?watch=true";

/// Waits until `condition` holds.
pub(crate) async fn eventually(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !condition().await {
        assert!(Instant::now() < deadline, "still not true: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A watch event as the API server sends it, of about `size` bytes.
pub(crate) fn event(number: usize, size: usize) -> String {
    let filler = "x".repeat(size);
    format!(
        "{{\"type\":\"MODIFIED\",\"object\":{{\"apiVersion\":\"cluster.hypershift.openshift.io/v1beta2\",\
         \"kind\":\"Machine\",\"metadata\":{{\"name\":\"m\",\"resourceVersion\":\"{number}\"}},\"spec\":\"{filler}\"}}}}\n"
    )
}

/// The same event as the client sees it.
pub(crate) fn translated(event: &str) -> String {
    event.replace("cluster.hypershift.openshift.io", "cluster.x-k8s.io")
}
