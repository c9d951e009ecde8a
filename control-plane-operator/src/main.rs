//! The `control-plane-operator` binary: reads the command line, runs it, prints what went wrong.

use std::process::ExitCode;

use clap::Parser;
use control_plane_operator::args::Cli;
use control_plane_operator::error::exit_code;
use support::error::{USAGE, chain};

fn main() -> ExitCode {
    // An error means that a provider is installed already, which is as good.
    drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(message) => {
            let code = if message.use_stderr() { USAGE } else { 0 };
            // Without a terminal to print to, the exit code says enough.
            let _ = message.print();
            return ExitCode::from(code);
        }
    };
    match control_plane_operator::run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("control-plane-operator: {}", chain(error.as_ref()));
            exit_code(error.as_ref())
        }
    }
}
