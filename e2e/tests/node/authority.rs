//! Another authority for the API server's certificate (S14), as pods live through it: first both are trusted, then the
//! certificate changes.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use testbed::certs::Authority;
use testbed::client::{ApiClient, Patch, Resource};
use testbed::node::NodeTestbed;
use testbed::raw::RawClient;
use testbed::wait;

/// Generous: the kubelet looks at volumes once a minute.
const WITHIN: Duration = Duration::from_mins(4);
/// Where a pod has the authorities that it trusts.
const IN_POD: &str = "root/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";

/// Gives the API server a certificate of a new authority, once the process `inside` finds that one in its pod.
pub(crate) async fn change(testbed: &mut NodeTestbed, namespace: &str, inside: i32) -> Result<()> {
    let trusted = testbed.control_plane.endpoint().authority;
    let next = Authority::create(&testbed.path().join("pki-next"))?;
    let both = read(&trusted)? + &read(&next.certificate())?;
    // It would put the old one back.
    testbed.control_plane.controller_manager.kill();
    let path = Resource::new("v1", "configmaps").named(namespace, "kube-root-ca.crt");
    let change = json!({ "data": { "ca.crt": both } });
    testbed.admin.patch(&path, Patch::Merge, &change).await?;
    let in_pod = PathBuf::from(format!("/proc/{inside}")).join(IN_POD);
    wait::until("both authorities in the pod", WITHIN, async || {
        ensure!(read(&in_pod)? == both, "the pod has the old one only");
        Ok(())
    })
    .await?;
    serve_with(testbed, &next).await?;
    // For what reads its authorities at its start only: kubectl, this test's client, the programs of the node.
    fs::write(&trusted, both)?;
    testbed.admin = ApiClient::from_kubeconfig(testbed.kubeconfig()).await?;
    let node = &mut testbed.nodes[0];
    // Without kube-proxy no pod would learn that the API server's Service has an end point again.
    node.proxy.restart().await?;
    node.kubelet.restart().await
}

/// Restarts the API server, with a certificate of the authority `next`.
async fn serve_with(testbed: &mut NodeTestbed, next: &Authority) -> Result<()> {
    let subnets = testbed.namespaces().subnets();
    let hosts = [subnets.node(1), subnets.api_service()].map(|address| address.to_string());
    let serving = next.server_at("serving", &hosts)?;
    let current = testbed.path().join("pki/serving.crt");
    fs::copy(&serving.certificate, &current).context("cannot change the certificate")?;
    fs::copy(&serving.key, current.with_extension("key")).context("cannot change the key")?;
    let api_server = &mut testbed.control_plane.api_server;
    api_server.stop().await?;
    api_server.spawn()?;
    let server = testbed.control_plane.endpoint().server;
    let client = RawClient::new(&server, Some(&next.certificate()))?;
    wait::until(
        "the API server with its new certificate",
        WITHIN,
        async || {
            let status = client.get("/readyz").await?.status;
            ensure!(status.is_success(), "{status}");
            Ok(())
        },
    )
    .await
}

fn read(path: &std::path::Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}
