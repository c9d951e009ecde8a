//! `hcp create cluster --release-stream`: the server of release streams is replaced by a fake, which an HTTP proxy leads to.

use std::convert::Infallible;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use testbed::cargo::Program;
use testbed::certs::Authority;
use testbed::client::{Patch, Resource};
use testbed::terminal;
use testbed::testbed::Testbed;
use testbed::tls_proxy::TlsProxy;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::process::Command;

use crate::hosted_clusters_api::cluster::HOSTED_CLUSTERS;
use crate::hosted_clusters_api::command::{BINARY_VARIABLE, done};
use crate::hosted_clusters_api::fixture::{Fixture, NAMESPACE};

const NAME: &str = "streamed";
/// The only host that the proxy leads to.
const HOST: &str = "multi.ocp.releases.ci.openshift.org";
const PATH: &str = "/api/v1/releasestream/4-stable-multi/tags";
const CONFIG_MAPS: Resource<'_> = Resource::new("v1", "configmaps");
/// What the operator reports of itself. Here it is in the namespace of HostedClusters, where no operator writes it.
const SUPPORTED: &str = "supported-versions";

/// The program behind the proxy.
struct Scene<'a> {
    testbed: &'a Testbed,
    program: PathBuf,
    kubeconfig: &'a Path,
    proxy: TlsProxy,
    authority: PathBuf,
    pull_secret: PathBuf,
}

/// Creates a cluster with the newest release of a stream that the operator supports; streams that cannot be read are refused.
pub(crate) async fn is_chosen(
    testbed: &Testbed,
    fixture: &Fixture,
    kubeconfig: &Path,
) -> Result<()> {
    let directory = testbed.path().join("release-stream");
    let authority = Authority::create(&directory)?;
    let tags = tags(&fixture.release).to_string();
    let proxy = TlsProxy::start(&authority, "releases", &[HOST], move |_, stream| {
        serve(stream, tags.clone())
    })
    .await?;
    let pull_secret = directory.join("pull-secret.json");
    std::fs::write(
        &pull_secret,
        r#"{"auths": {"r.example.com": {"auth": "bm86Ym9keQ=="}}}"#,
    )?;
    let program = Program::dev("cli", "hcp");
    let scene = Scene {
        testbed,
        program: program.find(BINARY_VARIABLE, &testbed.progress).await?,
        kubeconfig,
        proxy,
        authority: authority.certificate(),
        pull_secret,
    };
    let path = CONFIG_MAPS.named(NAMESPACE, SUPPORTED);
    let supported = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "namespace": NAMESPACE, "name": SUPPORTED },
        "data": { SUPPORTED: r#"{"versions":["4.22","4.21"]}"# },
    });
    testbed.admin.patch(&path, Patch::Apply, &supported).await?;
    scene.refuses().await?;
    scene.chooses(&fixture.release).await?;
    testbed.admin.delete(&path).await
}

/// The tags of a stream, from the newest. Only one of them can be chosen: it is accepted, supported, and no candidate.
fn tags(release: &str) -> Value {
    let tag = |name: &str, phase: &str, image: &str| json!({ "name": name, "phase": phase, "pullSpec": image });
    let other = "r.example.com/release:other";
    json!({ "name": "4-stable-multi", "tags": [
        tag("4.23.0", "Accepted", other),
        tag("4.22.2-rc.1", "Accepted", other),
        tag("4.22.1-ec.0", "Accepted", other),
        tag("4.22.1", "Rejected", other),
        tag("4.22.0", "Accepted", release),
        tag("4.21.9", "Accepted", other),
    ] })
}

/// Answers requests for the stream.
async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin + Send, tags: String) {
    let service = service_fn(|request: Request<Incoming>| {
        let is_it = request.uri().path() == PATH;
        let body = if is_it { tags.clone() } else { String::new() };
        let mut response = Response::new(Full::new(Bytes::from(body)));
        if !is_it {
            *response.status_mut() = StatusCode::NOT_FOUND;
        }
        async move { Ok::<_, Infallible>(response) }
    });
    let connection = hyper::server::conn::http1::Builder::new();
    // A client that disconnects is not an error.
    drop(
        connection
            .serve_connection(TokioIo::new(stream), service)
            .await,
    );
}

// === impl Scene ===

impl Scene<'_> {
    /// A host that cannot be reached, and a stream that does not exist. Nothing is created.
    async fn refuses(&self) -> Result<()> {
        for (stream, parts) in [
            (
                "4-stable",
                [
                    "failed to get https://amd64.ocp.releases.ci.openshift.org/",
                    "pass --release-image instead",
                ],
            ),
            (
                "4-other-multi",
                [
                    "the server responds 404 Not Found: check the name of the stream",
                    "pass --release-image instead",
                ],
            ),
        ] {
            let (code, said) = terminal::run(&mut self.create(stream), self.kubeconfig).await?;
            ensure!(code == 1, "{stream}: hcp ended with {code}: {said}");
            for part in parts {
                ensure!(said.contains(part), "{stream}: {said}");
            }
            let found = self.testbed.admin.find(&path()).await?;
            ensure!(found.is_none(), "{stream}: there is a HostedCluster");
        }
        Ok(())
    }

    async fn chooses(&self, release: &str) -> Result<()> {
        done(&mut self.create("4-stable-multi"), self.kubeconfig).await?;
        let created = self.testbed.admin.get(&path()).await?;
        let found = &created["spec"]["release"]["image"];
        ensure!(found == release, "{found} is not {release}");
        let mut destroy = Command::new(&self.program);
        destroy.args(["destroy", "cluster", "none", "--name", NAME]);
        done(&mut destroy, self.kubeconfig).await?;
        let left = self.testbed.admin.find(&path()).await?;
        ensure!(left.is_none(), "it is still there");
        Ok(())
    }

    /// Requests to other machines go through the proxy; the API server is on this one.
    fn create(&self, stream: &str) -> Command {
        let mut create = Command::new(&self.program);
        create
            .args(["create", "cluster", "none", "--name", NAME])
            .args(["--release-stream", stream])
            .args(["--operator-namespace", NAMESPACE])
            .args(["--base-domain", "example.com"])
            .args(["--external-api-server-address", "192.0.2.10"])
            .arg("--pull-secret")
            .arg(&self.pull_secret)
            .env("HTTPS_PROXY", self.proxy.url())
            .env("NO_PROXY", "127.0.0.1,localhost")
            .env_remove("https_proxy")
            .env_remove("no_proxy")
            .env_remove("ALL_PROXY")
            .env_remove("all_proxy")
            .env_remove("SSL_CERT_DIR")
            .env("SSL_CERT_FILE", &self.authority);
        create
    }
}

fn path() -> String {
    HOSTED_CLUSTERS.named(NAMESPACE, NAME)
}
