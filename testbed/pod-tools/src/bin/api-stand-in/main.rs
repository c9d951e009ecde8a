//! Stands in for OpenShift's aggregated API servers, which are not available: `openshift-apiserver` and
//! `oauth-apiserver`, by the name under which it is started.
//!
//! It reads the flags and the configuration file of the real servers, authenticates the API server's front proxy by the
//! requestheader client CA, and serves the real groups with discovery, so that clients, garbage collection and the
//! deletion of namespaces work. Objects are kept in memory, in each replica its own: a restart is like an empty etcd.
//! Schemas, defaults, admission and strategic merge patches of the real servers are not there.
//!
//! ```text
//!  options ──> identity ──┐
//!  request ──> groups ────┼──> server ──> store (objects, versions, history)
//!              selector ──┘          └──> watch, tokens
//! ```

mod failure;
mod groups;
mod identity;
mod options;
mod request;
mod selector;
mod server;
mod store;
#[cfg(test)]
mod testing;
mod tokens;
mod view;
mod watch;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use pod_tools::tls;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use groups::Program;
use identity::Authenticator;
use options::Options;
use server::Server;

const USAGE: &str = "usage: openshift-apiserver|oauth-apiserver start FLAG...";

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    tls::install_provider();
    let mut args = std::env::args();
    let called = args.next().unwrap_or_default();
    let name = Path::new(&called).file_name().unwrap_or_default();
    let Some(program) = Program::of(&name.to_string_lossy()) else {
        eprintln!("{USAGE}");
        return ExitCode::from(64);
    };
    match run(program, args.collect()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: the stand-in of {}: {error}", program.name());
            ExitCode::FAILURE
        }
    }
}

/// Serves until SIGTERM.
async fn run(program: Program, args: Vec<String>) -> std::io::Result<()> {
    let options = Options::parse(args, |path| std::fs::read_to_string(path))?;
    let authenticator = Authenticator::new(&options)?;
    let listener = TcpListener::bind(("0.0.0.0", options.port)).await?;
    println!(
        "{}: this is a stand-in; it serves port {} and keeps objects in memory",
        program.name(),
        options.port
    );
    let server = Arc::new(Server::new(program, authenticator));
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        outcome = server.serve(listener) => outcome,
        _ = terminate.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
    }
}
