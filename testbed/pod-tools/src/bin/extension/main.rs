//! `extension CERTIFICATE KEY PORT`: what clusters have of extensions of their API server, in one program.
//!
//! An admission webhook at `/admit`: it refuses objects with the label `refuse`, and says so. The API `metrics.k8s.io`,
//! with which `kubectl top` works: figures of the nodes are those that kubelets have. Of the API
//! `subresources.kubevirt.io`, what says which version it is.

mod admission;
mod metrics;
mod virtualization;

use std::io::{Error, Result};
use std::path::Path;
use std::process::ExitCode;

use pod_tools::serve::{self, Request, Response};
use pod_tools::tls;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// The path of the webhook.
const ADMIT: &str = "/admit";

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    tls::install_provider();
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [certificate, key, port] = words.as_slice() else {
        eprintln!("usage: extension CERTIFICATE KEY PORT");
        return ExitCode::from(64);
    };
    match serve::local(run(Path::new(certificate), Path::new(key), port)).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: extension: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Serves until SIGTERM.
async fn run(certificate: &Path, key: &Path, port: &str) -> Result<()> {
    let port: u16 = port.parse().map_err(Error::other)?;
    let tls = tls::from_files(certificate, key)?;
    let listener = TcpListener::bind(("0.0.0.0", port)).await?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        outcome = serve::requests(listener, tls, respond) => outcome,
        _ = terminate.recv() => Ok(()),
    }
}

async fn respond(request: Request) -> Response {
    let path = request.path.split('?').next().unwrap_or_default();
    println!("{path}");
    if path == ADMIT {
        return admission::review(&request.body);
    }
    if let Some(response) = virtualization::respond(path) {
        return response;
    }
    metrics::respond(path).await
}
