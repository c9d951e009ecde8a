//! haproxy with the configuration of the generator, on loopback.
//!
//! Debian's haproxy (2.6) is older than the one that the generator needs (2.9), so two things are replaced, and nothing else
//! but addresses: `fc_pp_tlv(0x20)` by `fc_pp_unique_id`, which reads a field of the same kind of the PROXY protocol, and the
//! socket of the master process, whose `reload` has no answer before version 2.7. A newer haproxy reads the field itself.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use testbed::ports::allocate;
use testbed::process::{Launch, Process};
use testbed::work_dir::WorkDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixListener};
use tokio::process::Command;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use super::super::etcd::said;

/// Where haproxy listens in place of the ports of its pod.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ports {
    pub(super) nodes: SocketAddr,
    pub(super) clients: SocketAddr,
    pub(super) health: SocketAddr,
}

/// Runs haproxy, and reloads it when the generator says so.
#[derive(Debug, Clone)]
pub(super) struct Haproxy {
    program: PathBuf,
    has_tlv: bool,
    work_dir: Arc<WorkDir>,
    pub(super) ports: Ports,
    /// Addresses of Services, and of what stands for them here.
    pub(super) services: Vec<(String, SocketAddr)>,
    process: Arc<Mutex<Option<Process>>>,
}

// === impl Haproxy ===

impl Haproxy {
    pub(super) async fn new(
        program: PathBuf,
        work_dir: &Arc<WorkDir>,
        services: Vec<(String, SocketAddr)>,
    ) -> Result<Self> {
        let version = Command::new(&program).arg("-v").output().await?;
        let loopback = || Ok::<_, anyhow::Error>(SocketAddr::from(([127, 0, 0, 1], allocate()?)));
        Ok(Self {
            program,
            has_tlv: has_tlv(&said(&version))?,
            work_dir: Arc::clone(work_dir),
            ports: Ports {
                nodes: loopback()?,
                clients: loopback()?,
                health: loopback()?,
            },
            services,
            process: Arc::default(),
        })
    }

    /// Type of the field with the cluster's ID.
    pub(super) fn field(&self) -> u8 {
        if self.has_tlv { 0x20 } else { 0x05 }
    }

    /// Serves the socket of the master process. The generator has written this file before it connects.
    pub(super) fn serve(&self, socket: &Path, file: &Path) -> Result<JoinHandle<()>> {
        let listener = UnixListener::bind(socket)?;
        let (haproxy, file) = (self.clone(), file.to_owned());
        Ok(tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = [0; 7];
                let read = stream.read_exact(&mut request).await;
                if read.is_err() || &request != b"reload\n" {
                    continue;
                }
                let answer = match haproxy.reload(&file).await {
                    Ok(()) => "Success=1\n".to_owned(),
                    Err(error) => format!("Success=0\n--\n{error:#}\n"),
                };
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        }))
    }

    /// Checks the file, and starts a process with it in place of the previous one.
    async fn reload(&self, file: &Path) -> Result<()> {
        let text = self.adapted(&std::fs::read_to_string(file)?);
        let file = self.work_dir.join("haproxy-adapted.cfg");
        std::fs::write(&file, &text)?;
        let mut check = Command::new(&self.program);
        let checked = check.arg("-c").arg("-f").arg(&file).output().await?;
        let said = said(&checked);
        ensure!(checked.status.success(), "{said}");
        ensure!(!said.contains("WARNING"), "{said}");
        // So many connections need more files than processes of this machine may open.
        std::fs::write(&file, text.replace("maxconn 20000", "maxconn 1000"))?;
        let mut process = self.process.lock().await;
        drop(process.take());
        let launch = Launch::new("haproxy", &self.program).arg("-db").arg("-f");
        *process = Some(launch.arg(file).spawn(&self.work_dir)?);
        Ok(())
    }

    fn adapted(&self, text: &str) -> String {
        let Ports {
            nodes,
            clients,
            health,
        } = self.ports;
        let mut text = text
            .replace("bind :::6443 v4v6", &format!("bind {nodes}"))
            .replace("bind :::8443 v4v6", &format!("bind {clients}"))
            .replace("bind :::9444 v4v6", &format!("bind {health}"));
        for (service, address) in &self.services {
            text = text.replace(&format!(" {service}\n"), &format!(" {address}\n"));
        }
        if self.has_tlv {
            return text;
        }
        text.replace("fc_pp_tlv(0x20)", "fc_pp_unique_id")
    }
}

/// Whether the version is 2.9 or newer.
fn has_tlv(version: &str) -> Result<bool> {
    let number = version.split("version ").nth(1);
    let number = number.with_context(|| format!("no version in {version}"))?;
    let mut parts = number.split('.').map(str::parse::<u32>);
    match (parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => Ok((major, minor) >= (2, 9)),
        _ => anyhow::bail!("no version in {version}"),
    }
}

/// Sends bytes, and returns what comes back until the connection is closed.
pub(super) async fn exchange(address: SocketAddr, bytes: &[u8]) -> Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let mut received = Vec::new();
    // A rejected connection may be closed, or reset, before everything is sent.
    let _ = stream.write_all(bytes).await;
    let _ = stream.read_to_end(&mut received).await;
    Ok(String::from_utf8(received)?)
}

/// A header of the PROXY protocol from this address with a field, and a byte of the client.
pub(super) fn proxied(source: [u8; 4], field: u8, value: &str) -> Result<Vec<u8>> {
    let mut bytes = b"\r\n\r\n\0\r\nQUIT\n".to_vec();
    // Version 2, command PROXY; TCP over IPv4.
    bytes.extend([0x21, 0x11]);
    let mut rest = source.to_vec();
    rest.extend([192, 0, 2, 1]);
    rest.extend([0x30, 0x39, 0x19, 0x2b]);
    rest.push(field);
    rest.extend(u16::try_from(value.len())?.to_be_bytes());
    rest.extend(value.as_bytes());
    bytes.extend(u16::try_from(rest.len())?.to_be_bytes());
    bytes.extend(rest);
    bytes.push(b'x');
    Ok(bytes)
}

/// What a TLS client that wants this host sends first.
pub(super) fn hello(host: &str) -> Result<Vec<u8>> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    let name = rustls::pki_types::ServerName::try_from(host.to_owned())?;
    let mut connection = rustls::ClientConnection::new(Arc::new(config), name)?;
    let mut bytes = Vec::new();
    connection.write_tls(&mut bytes)?;
    Ok(bytes)
}
