//! The `control-plane-operator` binary: parses the command line, runs it, and prints errors.

use std::process::ExitCode;

use clap::Parser;
use control_plane_operator::args::{Cli, with_subcommand};
use control_plane_operator::error::exit_code;
use support::error::{USAGE, chain};

fn main() -> ExitCode {
    // An error means that a provider is already installed.
    drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
    let cli = match Cli::try_parse_from(with_subcommand(std::env::args_os())) {
        Ok(cli) => cli,
        Err(message) => {
            let code = if message.use_stderr() { USAGE } else { 0 };
            // If printing fails, the exit code is sufficient.
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
