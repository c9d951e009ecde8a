//! The processes that the benchmark is made of; `cargo xtask bench proxy` starts them.

use std::io::{stdin, stdout};
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Parser;
use load::{relay, upstream, work};

/// What the benchmark of the proxy measures with.
#[derive(Debug, Parser)]
#[command(name = "load")]
enum Command {
    /// Serve as a fake API server.
    Upstream {
        /// Where to listen.
        #[arg(long)]
        listen: SocketAddr,
        /// The server's certificate, PEM.
        #[arg(long)]
        certificate: PathBuf,
        /// The certificate's key, PEM.
        #[arg(long)]
        key: PathBuf,
        /// A file with the token that clients must send.
        #[arg(long)]
        token: PathBuf,
    },
    /// Copy bytes between connections.
    Relay {
        /// Where to listen.
        #[arg(long)]
        listen: SocketAddr,
        /// Where to connect to.
        #[arg(long)]
        to: SocketAddr,
    },
    /// Do the jobs that arrive on standard input, until it ends.
    Work,
}

fn main() -> Result<()> {
    match Command::parse() {
        Command::Upstream {
            listen,
            certificate,
            key,
            token,
        } => runtime()?.block_on(upstream::run(upstream::Settings {
            listen,
            certificate,
            key,
            token,
        })),
        Command::Relay { listen, to } => runtime()?.block_on(relay::run(listen, to)),
        Command::Work => work::run(stdin().lock(), stdout().lock()),
    }
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")
}
