//! The `hypershift-operator` binary: reads the command line, runs it, prints what went wrong.

use std::process::ExitCode;

use clap::Parser;
use hypershift_operator::args::Cli;
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
    match hypershift_operator::run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hypershift-operator: {}", chain(&error));
            error.exit_code()
        }
    }
}
