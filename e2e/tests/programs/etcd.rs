//! Members of etcd that serve clients with mutual TLS, as those of hosted clusters do.

use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use testbed::binaries::{Binaries, Binary};
use testbed::ports::allocate;
use testbed::process::Launch;
use testbed::service::{Service, plain_health_at};
use testbed::work_dir::WorkDir;
use tokio::process::Command;

/// Certificates: one for servers and clients, because etcd's JSON gateway is a client of its own server.
#[derive(Debug, Clone)]
pub(super) struct Files {
    pub(super) ca: PathBuf,
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
}

/// Members of one cluster.
#[derive(Debug)]
pub(super) struct Etcd {
    work_dir: Arc<WorkDir>,
    program: PathBuf,
    etcdctl: PathBuf,
    pub(super) files: Files,
    pub(super) members: Vec<Member>,
}

/// A member.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) url: String,
    pub(super) peer: String,
    pub(super) service: Service,
}

impl Files {
    pub(super) fn create(directory: &Path) -> Result<Self> {
        std::fs::create_dir_all(directory)?;
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()])?;
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &issuer)?;
        let write = |name: &str, content: &str| -> Result<PathBuf> {
            let path = directory.join(name);
            std::fs::write(&path, content)?;
            Ok(path)
        };
        Ok(Self {
            ca: write("ca.crt", &issuer.pem())?,
            certificate: write("etcd-client.crt", &certificate.pem())?,
            key: write("etcd-client.key", &key.serialize_pem())?,
        })
    }
}

impl Etcd {
    /// Prepares a new cluster of so many members.
    pub(super) fn new(
        work_dir: &Arc<WorkDir>,
        binaries: &Binaries,
        files: &Files,
        count: usize,
    ) -> Result<Self> {
        let mut etcd = Self {
            work_dir: Arc::clone(work_dir),
            program: binaries.path(Binary::Etcd)?.to_owned(),
            etcdctl: binaries.path(Binary::Etcdctl)?.to_owned(),
            files: files.clone(),
            members: Vec::new(),
        };
        let mut peers = Vec::new();
        for number in 0..count {
            let peer = format!("http://127.0.0.1:{}", allocate()?);
            peers.push((format!("etcd-{number}"), peer));
        }
        let cluster = cluster(&peers);
        for (name, peer) in peers {
            let member = etcd.member(&name, &peer, &cluster, "new")?;
            etcd.members.push(member);
        }
        Ok(etcd)
    }

    pub(super) async fn start(&mut self) -> Result<()> {
        for member in &mut self.members {
            member.service.spawn()?;
        }
        for member in &mut self.members {
            member.service.ready().await?;
        }
        Ok(())
    }

    /// A member without data.
    pub(super) fn member(
        &self,
        name: &str,
        peer: &str,
        cluster: &str,
        state: &str,
    ) -> Result<Member> {
        let (client, metrics) = (allocate()?, allocate()?);
        let url = format!("https://127.0.0.1:{client}");
        let health = ([127, 0, 0, 1], metrics).into();
        let Files {
            ca,
            certificate,
            key,
        } = &self.files;
        let launch = Launch::new(format!("{name}-{client}"), &self.program)
            .flag("name", name)
            .path_flag(
                "data-dir",
                &self.work_dir.join(format!("data-{name}-{client}")),
            )
            .flag("listen-client-urls", &url)
            .flag("advertise-client-urls", &url)
            .flag("listen-metrics-urls", format!("http://127.0.0.1:{metrics}"))
            .flag("listen-peer-urls", peer)
            .flag("initial-advertise-peer-urls", peer)
            .flag("initial-cluster", cluster)
            .flag("initial-cluster-state", state)
            .path_flag("cert-file", certificate)
            .path_flag("key-file", key)
            .path_flag("trusted-ca-file", ca)
            .arg("--client-cert-auth")
            .arg("--unsafe-no-fsync")
            .flag("log-level", "warn");
        Ok(Member {
            name: name.to_owned(),
            url,
            peer: peer.to_owned(),
            service: Service::new(launch, &self.work_dir, plain_health_at(health, "/health")?),
        })
    }

    /// Runs etcdctl on a member and returns its output.
    pub(super) async fn ctl(&self, member: usize, args: &[&str]) -> Result<String> {
        let output = Command::new(&self.etcdctl)
            .arg(format!("--endpoints={}", self.members[member].url))
            .arg(format!("--cacert={}", self.files.ca.display()))
            .arg(format!("--cert={}", self.files.certificate.display()))
            .arg(format!("--key={}", self.files.key.display()))
            .args(args)
            .output()
            .await
            .context("cannot run etcdctl")?;
        ensure!(output.status.success(), "{args:?}: {}", said(&output));
        Ok(String::from_utf8(output.stdout)?)
    }
}

/// The flag `initial-cluster` of these members.
pub(super) fn cluster(peers: &[(String, String)]) -> String {
    let all: Vec<_> = peers
        .iter()
        .map(|(name, peer)| format!("{name}={peer}"))
        .collect();
    all.join(",")
}

/// All output of a program.
pub(super) fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}
