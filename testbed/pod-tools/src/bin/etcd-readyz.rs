//! `cluster-etcd-operator readyz`: reports to the kubelet whether the etcd beside it responds.
//!
//! OpenShift's program of that name is not available. This one has the behavior that a pod of etcd needs: it serves /healthz
//! and /readyz, and says there what etcd itself says under /livez and /readyz.

use std::collections::HashMap;
use std::io::{Error, Result};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use pod_tools::serve::{self, Response};
use pod_tools::tls;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio_rustls::TlsConnector;

const USAGE: &str = "usage: cluster-etcd-operator readyz --target=URL --listen-port=PORT --serving-cert-file=F \
                     --serving-key-file=F --client-cert-file=F --client-key-file=F --client-cacert-file=F";

/// The etcd to query.
#[derive(Clone)]
struct Target {
    host: String,
    port: u16,
    client: Arc<ClientConfig>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    tls::install_provider();
    let flags = flags(std::env::args().skip(1));
    match serve::local(run(&flags)).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}\n{USAGE}");
            ExitCode::FAILURE
        }
    }
}

/// Flags of the form `--name=value`.
fn flags(args: impl Iterator<Item = String>) -> HashMap<String, String> {
    args.filter_map(|arg| {
        let (name, value) = arg.strip_prefix("--")?.split_once('=')?;
        Some((name.to_owned(), value.to_owned()))
    })
    .collect()
}

async fn run(flags: &HashMap<String, String>) -> Result<()> {
    let flag = |name: &str| {
        let value = flags.get(name).map(String::as_str);
        value.ok_or_else(|| Error::other(format!("--{name} is missing")))
    };
    let file = |name: &str| flag(name).map(Path::new);
    let (host, port) = authority(flag("target")?)?;
    let target = Target {
        host,
        port,
        client: tls::client(
            file("client-cacert-file")?,
            file("client-cert-file")?,
            file("client-key-file")?,
        )?,
    };
    let serving = tls::from_files(file("serving-cert-file")?, file("serving-key-file")?)?;
    let port: u16 = flag("listen-port")?.parse().map_err(Error::other)?;
    let listener = TcpListener::bind(("0.0.0.0", port)).await?;
    let mut terminate = signal(SignalKind::terminate())?;
    let response = async move |path: &str| judge(&target, path).await;
    tokio::select! {
        outcome = serve::forever(listener, serving, response) => outcome,
        _ = terminate.recv() => Ok(()),
    }
}

/// The host and port of an https URL.
fn authority(url: &str) -> Result<(String, u16)> {
    let parsed = url
        .strip_prefix("https://")
        .map(|rest| rest.trim_end_matches('/'))
        .and_then(|rest| rest.rsplit_once(':'))
        .and_then(|(host, port)| Some((host.to_owned(), port.parse().ok()?)));
    parsed.ok_or_else(|| Error::other(format!("{url:?} is not https://HOST:PORT")))
}

async fn judge(target: &Target, path: &str) -> Response {
    // Liveness requires any response; readiness requires a quorum.
    let question = match path.trim_start_matches('/') {
        "healthz" | "livez" => "/livez",
        _ => "/readyz",
    };
    match ask(target, question).await {
        Ok(said) if said.starts_with("HTTP/1.1 200 ") => Response::ok(),
        Ok(said) => Response::unavailable(format!(
            "etcd says {}",
            said.lines().next().unwrap_or_default()
        )),
        Err(error) => Response::unavailable(format!("etcd does not respond: {error}")),
    }
}

async fn ask(target: &Target, path: &str) -> Result<String> {
    let Target { host, port, client } = target;
    let stream = TcpStream::connect((host.as_str(), *port)).await?;
    let name = ServerName::try_from(host.clone()).map_err(Error::other)?;
    let connector = TlsConnector::from(Arc::clone(client));
    let mut stream = connector.connect(name, stream).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut said = String::new();
    stream.read_to_string(&mut said).await?;
    Ok(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_is_a_url_with_a_port() {
        let parsed = authority("https://localhost:2379").unwrap();
        assert_eq!(parsed, ("localhost".to_owned(), 2379));
        for wrong in ["http://localhost:2379", "https://localhost", "localhost:1"] {
            assert!(authority(wrong).is_err(), "{wrong}");
        }
    }
}
