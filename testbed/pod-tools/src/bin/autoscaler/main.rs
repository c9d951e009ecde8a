//! Replaces cluster-autoscaler, which cannot be built from public modules. It takes the same flags, reads what the real
//! program reads, and writes what it writes to Cluster API: the subresource `scale` of MachineDeployments and MachineSets,
//! and the annotation of the machine that is to go. It does not taint nodes, and evicts no pods: Cluster API drains them.
//!
//! It adds a machine when a pod finds no node, and removes one whose node has no pods of users.

mod cluster;
mod flags;
mod model;
mod plan;
mod quantity;

use std::io::Result;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use pod_tools::serve::{self, Response};
use pod_tools::tls;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use cluster::Failure;
use flags::Flags;
use plan::Memory;

/// The default of the real program.
const SCAN_INTERVAL: Duration = Duration::from_secs(10);
/// Where its probes are.
const PORT: u16 = 8085;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let flags = match Flags::parse(&args) {
        Ok(flags) => flags,
        Err(problem) => {
            eprintln!("error: {problem}");
            return ExitCode::from(64);
        }
    };
    println!("cluster-autoscaler: this is a stand-in; {flags:?}");
    match serve::local(run(&flags)).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Scales until SIGTERM.
async fn run(flags: &Flags) -> Result<()> {
    tls::install_provider();
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let certificate = tls::self_made(vec!["localhost".to_owned()])?;
    let listener = TcpListener::bind(("0.0.0.0", PORT)).await?;
    let probes = serve::forever(listener, certificate, async |_: &str| Response::ok());
    tokio::select! {
        () = scan(flags) => {}
        served = probes => served?,
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

/// Scans again and again. A failure, such as an API server that is not there yet, is tried again.
async fn scan(flags: &Flags) {
    let mut memory = Memory::default();
    loop {
        if let Err(error) = once(flags, &mut memory).await {
            eprintln!("error: {error}");
        }
        tokio::time::sleep(SCAN_INTERVAL).await;
    }
}

async fn once(flags: &Flags, memory: &mut Memory) -> std::result::Result<(), Failure> {
    let cluster = cluster::Cluster::connect(flags).await?;
    let seen = cluster.see().await?;
    let growth = seen.growth(flags);
    for it in &growth {
        let (name, replicas) = (&it.group.name, it.replicas);
        println!("scaling {name} up to {replicas}: pods wait for nodes");
        cluster.scale(it.group, replicas).await?;
        memory.grew(Instant::now());
    }
    if !growth.is_empty() {
        return Ok(());
    }
    let Some(removal) = seen.removal(flags, memory, Instant::now()) else {
        println!("{}", seen.summary(flags));
        return Ok(());
    };
    let (group, machine) = (removal.group, removal.machine);
    let replicas = group.replicas - 1;
    println!(
        "scaling {} down to {replicas}: no pod needs {machine}",
        group.name
    );
    if !removal.is_marked {
        cluster.mark(machine).await?;
    }
    cluster.scale(group, replicas).await
}
