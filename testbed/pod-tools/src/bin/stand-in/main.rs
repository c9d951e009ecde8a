//! Replaces a program of OpenShift that is not available: it serves the program's ports and probes, and does
//! nothing else, but for operators whose operands the control plane waits for: it creates those.
//!
//! It has the name under which it is started. Its ports are those that the flags of its command line name; programs
//! that have theirs in a configuration file are in a table. A program that others wait for, and that would only look
//! something up, ends at once; `authentication-operator render` also leaves what its image has for it.

mod operator;
mod ports;
mod render;

use std::collections::BTreeSet;
use std::io::Result;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use pod_tools::operands::has_operands;
use pod_tools::serve::{self, Response};
use pod_tools::tls;
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// Programs that are run to their end.
const ENDING: [&str; 1] = ["collect-profiles"];

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let mut args = std::env::args();
    let called = args.next().unwrap_or_default();
    let name = Path::new(&called)
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let args: Vec<String> = args.collect();
    if name == render::PROGRAM && args.first().is_some_and(|arg| arg == render::COMMAND) {
        return render::run(&args);
    }
    if ENDING.contains(&name.as_str()) {
        println!("{name}: this is a stand-in, and there is nothing to do");
        return ExitCode::SUCCESS;
    }
    let ports = ports::of(&name, &args);
    println!("{name}: this is a stand-in; it serves ports {ports:?}");
    match serve::local(run(&name, &args, ports)).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: the stand-in of {name}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Serves until SIGTERM.
async fn run(name: &str, args: &[String], ports: BTreeSet<u16>) -> Result<()> {
    tls::install_provider();
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let tls = tls::self_made(vec!["localhost".to_owned()])?;
    for port in ports {
        let listener = TcpListener::bind(("0.0.0.0", port)).await?;
        tokio::task::spawn_local(response(listener, Arc::clone(&tls)));
    }
    let operator = async {
        if has_operands(name) {
            operator::run(name, args).await;
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = operator => {}
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

async fn response(listener: TcpListener, tls: Arc<ServerConfig>) {
    let outcome = serve::forever(listener, tls, async |_: &str| Response::ok()).await;
    if let Err(error) = outcome {
        eprintln!("error: {error}");
    }
}
