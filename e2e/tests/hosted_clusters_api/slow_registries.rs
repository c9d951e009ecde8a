//! Registries of one tenant that keep their clients waiting: another tenant's cluster takes as long as without them, and
//! the condition of each cluster of the tenant, on AWS, Agent and KubeVirt, names the limit that its registry broke (check
//! T02).

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::client::ApiClient;
use testbed::conditions::find;
use testbed::operator::SOON;
use testbed::service_account::ensure_namespace;
use testbed::{simulation, wait};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::hosted_clusters_api::cluster::{Cluster, HOSTED_CLUSTERS, gone};
use crate::hosted_clusters_api::fixture::NAMESPACE;

/// The limit that operators are started with, in place of 30 s. Those of registries that drip are shortened alike.
pub(crate) const REQUEST_TIMEOUT: &str = "3s";
/// Between two bytes.
const DRIP: Duration = Duration::from_millis(2900);
/// The namespace of the tenant with these registries.
const SLOW: &str = "slow-tenant";
/// Clusters for each registry: together more than an operator reconciles at once.
const CLUSTERS: usize = 5;
/// How much longer another tenant's cluster may take.
const MOST: f64 = 2.0;
/// What a busy machine may add. A tenant that had to wait for these registries would wait for minutes.
const NOISE: Duration = Duration::from_secs(20);

/// How a registry keeps its clients waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Drips,
    IsSilent,
    DripsLayers,
}

/// Registries that are slow, in front of one that is not.
pub(crate) struct SlowRegistries {
    origin: String,
    registries: Vec<(Fault, SocketAddr, JoinHandle<()>)>,
}

// === impl Fault ===

impl Fault {
    const ALL: [Self; 3] = [Self::Drips, Self::IsSilent, Self::DripsLayers];

    fn name(self) -> &'static str {
        match self {
            Self::Drips => "drips",
            Self::IsSilent => "silent",
            Self::DripsLayers => "layers",
        }
    }

    /// The flag of the limit that it breaks.
    fn limit(self) -> &'static str {
        match self {
            Self::Drips | Self::IsSilent => "--registry-request-timeout",
            Self::DripsLayers => "--registry-min-rate",
        }
    }
}

// === impl SlowRegistries ===

impl SlowRegistries {
    /// Starts them in front of `origin`.
    pub(crate) async fn start(origin: &str) -> Result<Self> {
        let mut registries = Vec::new();
        for fault in Fault::ALL {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let address = listener.local_addr()?;
            let serving = tokio::spawn(serve(listener, fault, origin.to_owned()));
            registries.push((fault, address, serving));
        }
        let origin = origin.to_owned();
        Ok(Self { origin, registries })
    }

    /// Their addresses, for `--insecure-registries`.
    pub(crate) fn addresses(&self) -> Vec<String> {
        let addresses = self.registries.iter();
        addresses
            .map(|(_, address, _)| address.to_string())
            .collect()
    }

    /// Measures a cluster of another tenant without and with clusters that use these registries.
    pub(crate) async fn delay_no_other(
        &self,
        admin: &ApiClient,
        releases: [&str; 3],
    ) -> Result<String> {
        let [alone, beside, slow] = releases;
        let alone = reconciled(admin, "quick-alone", alone).await?;
        ensure_namespace(admin, SLOW).await?;
        let clusters = self.create(admin, slow).await?;
        for (name, _, _) in &clusters {
            waits(admin, name).await?;
        }
        let beside = reconciled(admin, "quick-beside", beside).await?;
        let ratio = beside.as_secs_f64() / alone.as_secs_f64();
        let figures = format!("{alone:?} alone, {beside:?} beside them, ratio {ratio:.2}");
        ensure!(ratio <= MOST || beside <= NOISE, "{figures}");
        for (name, fault, address) in &clusters {
            fails(admin, name, *fault, *address).await?;
        }
        let paths = clusters.iter();
        for path in paths.map(|(name, _, _)| HOSTED_CLUSTERS.named(SLOW, name)) {
            admin.delete(&path).await?;
            gone(admin, [path]).await?;
        }
        Ok(figures)
    }

    async fn create(
        &self,
        admin: &ApiClient,
        release: &str,
    ) -> Result<Vec<(String, Fault, SocketAddr)>> {
        let mut clusters = Vec::new();
        let platforms = platforms();
        for (number, platform) in (0..CLUSTERS).zip(platforms.iter().cycle()) {
            for (fault, address, _) in &self.registries {
                let name = format!("{}-{number}", fault.name());
                let image = release.replace(&self.origin, &address.to_string());
                let mut objects = simulation::desired(&name, &image)?;
                objects.retain(|it| it["kind"] != "NodePool" && it["kind"] != "Namespace");
                for object in &mut objects {
                    object["metadata"]["namespace"] = SLOW.into();
                    if let Some(platform) = platform
                        && object["kind"] == "HostedCluster"
                    {
                        object["spec"]["platform"] = platform.clone();
                    }
                }
                admin.apply(&objects).await?;
                clusters.push((name, *fault, *address));
            }
        }
        Ok(clusters)
    }
}

impl Drop for SlowRegistries {
    fn drop(&mut self) {
        for (_, _, serving) in &self.registries {
            serving.abort();
        }
    }
}

/// The platforms of the tenant's clusters, one after the other; none for AWS.
fn platforms() -> [Option<Value>; 3] {
    [
        None,
        Some(json!({ "type": "Agent", "agent": { "agentNamespace": SLOW } })),
        Some(json!({ "type": "KubeVirt", "kubevirt": {} })),
    ]
}

/// How long it takes until all objects of a new cluster are there.
async fn reconciled(admin: &ApiClient, name: &'static str, release: &str) -> Result<Duration> {
    let cluster = Cluster::private(name);
    let mut objects = simulation::desired(name, release)?;
    objects.retain(|object| object["kind"] != "NodePool");
    let begun = Instant::now();
    admin.apply(&objects).await?;
    cluster.is_made(admin).await.context(name)?;
    let took = begun.elapsed();
    admin.delete(&cluster.path()).await?;
    let namespace = format!("/api/v1/namespaces/{NAMESPACE}-{name}");
    gone(admin, [cluster.path(), namespace]).await?;
    Ok(took)
}

/// It waits for its registry: all that its creation takes beside that is done.
async fn waits(admin: &ApiClient, name: &str) -> Result<()> {
    let path = HOSTED_CLUSTERS.named(SLOW, name);
    wait::until(&format!("{name} to wait"), SOON, async || {
        let cluster = admin.get(&path).await?;
        find(&cluster, "ValidReleaseImage").context("no condition yet")?;
        Ok(())
    })
    .await
}

/// Its condition names the image, the registry, the limit and the way out.
async fn fails(admin: &ApiClient, name: &str, fault: Fault, address: SocketAddr) -> Result<()> {
    let path = HOSTED_CLUSTERS.named(SLOW, name);
    wait::until(&format!("{name} to fail"), SOON, async || {
        let cluster = admin.get(&path).await?;
        let condition = find(&cluster, "ValidReleaseImage").context("no condition yet")?;
        let message = condition["message"].as_str().unwrap_or_default();
        ensure!(condition["status"] == "False", "{condition}");
        let (address, limit) = (address.to_string(), fault.limit());
        for part in [address.as_str(), limit, "spec.imageContentSources"] {
            ensure!(message.contains(part), "{part} is not in {message}");
        }
        Ok(())
    })
    .await
}

async fn serve(listener: TcpListener, fault: Fault, origin: String) {
    let mut connections = tokio::task::JoinSet::new();
    let configurations = Arc::new(Mutex::new(BTreeSet::new()));
    while let Ok((client, _)) = listener.accept().await {
        let (origin, configurations) = (origin.clone(), configurations.clone());
        // A client that gives up breaks the connection.
        connections
            .spawn(async move { drop(forward(client, fault, &origin, &configurations).await) });
    }
}

/// One request a connection.
async fn forward(
    mut client: TcpStream,
    fault: Fault,
    origin: &str,
    configurations: &Mutex<BTreeSet<String>>,
) -> Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await?);
    }
    let head = String::from_utf8(head)?;
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut upstream = TcpStream::connect(origin).await?;
    let request = format!("{}\r\nConnection: close\r\n\r\n", head.trim_end());
    upstream.write_all(request.as_bytes()).await?;
    let mut response = Vec::new();
    upstream.read_to_end(&mut response).await?;
    if is_slow(fault, &path, configurations) {
        return delay(client, fault, &response).await;
    }
    if path.contains("/manifests/") {
        remember_configuration(&response, configurations);
    }
    client.write_all(&response).await?;
    Ok(())
}

/// An image is tried again after a failure, and fails by the same limit only if its configuration is always fast.
fn is_slow(fault: Fault, path: &str, configurations: &Mutex<BTreeSet<String>>) -> bool {
    if fault != Fault::DripsLayers {
        return true;
    }
    let Some((_, digest)) = path.split_once("/blobs/") else {
        return false;
    };
    !lock(configurations).contains(digest)
}

/// Takes the digest of the configuration from the response to a request for a manifest.
fn remember_configuration(response: &[u8], configurations: &Mutex<BTreeSet<String>>) {
    let Some(body) = response.windows(4).position(|it| it == b"\r\n\r\n") else {
        return;
    };
    let manifest: Value = serde_json::from_slice(&response[body + 4..]).unwrap_or_default();
    if let Some(digest) = manifest["config"]["digest"].as_str() {
        lock(configurations).insert(digest.to_owned());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn delay(mut client: TcpStream, fault: Fault, response: &[u8]) -> Result<()> {
    if fault == Fault::IsSilent {
        return std::future::pending().await;
    }
    let end = response.windows(4).position(|it| it == b"\r\n\r\n");
    let (head, body) = response.split_at(end.context("no head")? + 4);
    client.write_all(head).await?;
    for byte in body {
        client.write_u8(*byte).await?;
        tokio::time::sleep(DRIP).await;
    }
    Ok(())
}
