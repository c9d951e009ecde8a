//! A snapshot of etcd returns as three members of one cluster, by the script that their pods run.
//!
//! etcd and its tools are real. Only places and addresses differ from those in pods: the script's are replaced.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use testbed::binaries::{Binaries, Binary};
use testbed::client::ApiClient;
use testbed::ports::allocate;
use testbed::process::Launch;
use testbed::progress::Progress;
use testbed::service::{Service, plain_health_at};
use testbed::wait;
use testbed::work_dir::WorkDir;
use tokio::process::Command;

const SCRIPT: &str = include_str!("../../../control-plane-operator/src/components/etcd/restore.sh");
const PEER: &str = "https://${HOSTNAME}.etcd-discovery.${NAMESPACE}.svc:2380";
const WITHIN: Duration = Duration::from_secs(30);
/// Takes a file for what is downloaded.
const CURL: &str = "#!/bin/sh\n\
                    while [ $# -gt 1 ]; do [ \"$1\" = --output ] && out=$2; shift; done\n\
                    exec cp \"$1\" \"$out\"\n";

/// Check O08.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_etcd_snapshot_is_restored_to_one_cluster() -> Result<()> {
    let progress = Progress::detect();
    let needed = [Binary::Etcd, Binary::Etcdctl, Binary::Etcdutl];
    let binaries = Binaries::ensure(&needed, &progress).await?;
    let work_dir = Arc::new(WorkDir::open("etcd-restored")?);
    let scene = Scene::prepare(&work_dir, &binaries)?;
    let snapshot = scene.snapshot().await?;
    let mut members = scene.members(3)?;
    for member in &members {
        member.restore(&scene, &snapshot, "new").await?;
    }
    for member in &mut members {
        member.service.spawn()?;
    }
    for member in &mut members {
        member.service.ready().await?;
    }
    for member in &members {
        ensure!(member.read("kept").await? == "before", "{}", member.name);
        ensure!(member.members().await? == 3, "{}", member.name);
    }
    // Written by one, read by another: they are one cluster, and its revisions are higher than all that any client has seen.
    let revision = members[0].write("new", "after").await?;
    ensure!(revision > 1_000_000_000, "{revision}");
    wait::until("the others to have it", WITHIN, async || {
        let found = members[2].read("new").await?;
        ensure!(found == "after", "{found:?}");
        Ok(())
    })
    .await?;
    // What is there already stays as it is.
    members[0].service.kill();
    members[0]
        .restore(&scene, Path::new("nowhere"), "new")
        .await?;
    let joins = scene.members(1)?.remove(0);
    joins
        .restore(&scene, Path::new("nowhere"), "existing")
        .await?;
    ensure!(!joins.directory.join("data").exists());
    Ok(())
}

/// Where it happens.
#[derive(Debug)]
struct Scene {
    work_dir: Arc<WorkDir>,
    etcd: PathBuf,
    etcdctl: PathBuf,
    /// What the script finds: etcdutl, and what downloads.
    path: PathBuf,
}

/// A member to be.
#[derive(Debug)]
struct Member {
    name: String,
    peer: String,
    cluster: String,
    directory: PathBuf,
    client: ApiClient,
    service: Service,
}

// === impl Scene ===

impl Scene {
    fn prepare(work_dir: &Arc<WorkDir>, binaries: &Binaries) -> Result<Self> {
        let path = work_dir.join("path");
        std::fs::create_dir_all(&path)?;
        let curl = path.join("curl");
        std::fs::write(&curl, CURL)?;
        std::fs::set_permissions(&curl, PermissionsExt::from_mode(0o755))?;
        std::os::unix::fs::symlink(binaries.path(Binary::Etcdutl)?, path.join("etcdutl"))?;
        Ok(Self {
            work_dir: Arc::clone(work_dir),
            etcd: binaries.path(Binary::Etcd)?.to_owned(),
            etcdctl: binaries.path(Binary::Etcdctl)?.to_owned(),
            path,
        })
    }

    /// A snapshot of an etcd with something in it.
    async fn snapshot(&self) -> Result<PathBuf> {
        let mut source = self.members(1)?.remove(0);
        source.service.start().await?;
        source.write("kept", "before").await?;
        let path = self.work_dir.join("snapshot.db");
        let output = Command::new(&self.etcdctl)
            .arg(format!("--endpoints={}", source.client.server()))
            .args(["snapshot", "save"])
            .arg(&path)
            .output()
            .await?;
        ensure!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(path)
    }

    /// Members of a cluster of so many.
    fn members(&self, count: usize) -> Result<Vec<Member>> {
        let mut peers = Vec::new();
        for number in 0..count {
            let url = format!("http://127.0.0.1:{}", allocate()?);
            peers.push((format!("etcd-{number}"), url));
        }
        let all: Vec<_> = peers
            .iter()
            .map(|(name, url)| format!("{name}={url}"))
            .collect();
        let cluster = all.join(",");
        let members = peers.into_iter();
        members
            .map(|(name, peer)| self.member(name, peer, &cluster))
            .collect()
    }

    fn member(&self, name: String, peer: String, cluster: &str) -> Result<Member> {
        let port = allocate()?;
        let directory = self.work_dir.join(format!("{name}-{port}"));
        std::fs::create_dir_all(directory.join("clusterstate"))?;
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let url = format!("http://{address}");
        let launch = Launch::new(format!("{name}-{port}"), &self.etcd)
            .flag("name", &name)
            .path_flag("data-dir", &directory.join("data"))
            .flag("listen-client-urls", &url)
            .flag("advertise-client-urls", &url)
            .flag("listen-peer-urls", &peer)
            .flag("initial-advertise-peer-urls", &peer)
            .flag("initial-cluster", cluster)
            .arg("--unsafe-no-fsync")
            .flag("log-level", "warn");
        Ok(Member {
            service: Service::new(launch, &self.work_dir, plain_health_at(address, "/health")?),
            client: ApiClient::plain_at(address)?,
            cluster: cluster.to_owned(),
            directory,
            name,
            peer,
        })
    }
}

// === impl Member ===

impl Member {
    /// Runs the script of its pod, whose variables name a snapshot and say whether its cluster is there already.
    async fn restore(&self, scene: &Scene, snapshot: &Path, state: &str) -> Result<()> {
        let directory = self.directory.display().to_string();
        let places = SCRIPT
            .replace(
                "/etc/etcd/clusterstate",
                &format!("{directory}/clusterstate"),
            )
            .replace("/var/lib/", &format!("{directory}/"))
            .replace(PEER, &self.peer);
        ensure!(places.contains(&self.peer), "the script names no peer");
        std::fs::write(self.directory.join("clusterstate/state"), state)?;
        let path = std::env::var("PATH").unwrap_or_default();
        let output = Command::new("bash")
            .args(["-ce", &places])
            .env("PATH", format!("{}:{path}", scene.path.display()))
            .env("HOSTNAME", &self.name)
            .env("ETCD_INITIAL_CLUSTER", &self.cluster)
            .env("RESTORE_URL_ETCD", snapshot)
            .output()
            .await
            .context("cannot run bash")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{}: {said}", self.name);
        Ok(())
    }

    /// Writes; gives the revision.
    async fn write(&self, key: &str, value: &str) -> Result<u64> {
        let body = json!({ "key": STANDARD.encode(key), "value": STANDARD.encode(value) });
        let response = self.client.create("/v3/kv/put", &body).await?;
        let revision = response["header"]["revision"].as_str();
        Ok(revision.context("no revision")?.parse()?)
    }

    async fn read(&self, key: &str) -> Result<String> {
        let body = json!({ "key": STANDARD.encode(key) });
        let response = self.client.create("/v3/kv/range", &body).await?;
        let value = response["kvs"][0]["value"].as_str().unwrap_or_default();
        Ok(String::from_utf8(STANDARD.decode(value)?)?)
    }

    async fn members(&self) -> Result<usize> {
        let response: Value = self
            .client
            .create("/v3/cluster/member/list", &json!({}))
            .await?;
        Ok(response["members"].as_array().map_or(0, Vec::len))
    }
}
