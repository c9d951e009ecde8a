//! Stand-ins for the programs that make the configuration of a node: `machine-config-operator`, `machine-config-controller`
//! and `machine-config-server`, each with its command `bootstrap`.
//!
//! ```text
//! operator    configuration of the cluster ──> ControllerConfig, pull secret, pools
//! controller  these, the pool's manifests and the image's templates ──> a rendered MachineConfig for each pool
//! server      the rendered MachineConfig of a pool ──> Ignition at /config/POOL
//! ```
//!
//! The program is named as one of them, and has its command line. It refuses flags that the real one does not have, and the
//! absence of those that it needs, and of files: so what starts the real ones is tested with these.

mod container_runtime;
mod controller;
mod controller_config;
mod flags;
mod ignition;
mod kubelet;
mod manifests;
mod merge;
mod operator;
mod registries;
mod rendered;
mod selector;
mod server;
mod templates;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::process::ExitCode;

/// What went wrong: the object, the cause, and what to do.
type Result<T> = std::result::Result<T, String>;

/// A program that this one stands in for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Program {
    Operator,
    Controller,
    Server,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let mut args = std::env::args();
    let called = args.next().unwrap_or_default();
    let Some(program) = Program::named(&called) else {
        eprintln!(
            "error: {called}: name the program machine-config-operator, machine-config-controller or machine-config-server"
        );
        return ExitCode::from(64);
    };
    let outcome = match program {
        Program::Operator => operator::bootstrap(args),
        Program::Controller => controller::bootstrap(args),
        Program::Server => server::bootstrap(args).await,
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}: {error}", program.name());
            ExitCode::FAILURE
        }
    }
}

// === impl Program ===

impl Program {
    const ALL: [Self; 3] = [Self::Operator, Self::Controller, Self::Server];

    fn name(self) -> &'static str {
        match self {
            Self::Operator => "machine-config-operator",
            Self::Controller => "machine-config-controller",
            Self::Server => "machine-config-server",
        }
    }

    /// Finds the program by the path that it is started with. An image may have builds of it for several releases of the
    /// operating system, with the release as a suffix.
    fn named(called: &str) -> Option<Self> {
        let name = Path::new(called).file_name()?.to_str()?;
        let (name, _) = name.split_once('.').unwrap_or((name, ""));
        Self::ALL
            .into_iter()
            .find(|program| name.ends_with(program.name()))
    }
}
