//! The `capi-proxy` binary: reads the command line, runs it, prints errors.

use std::process::ExitCode;

use capi_proxy::args::Cli;
use clap::Parser;
use support::error::{USAGE, chain};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(message) => {
            let code = if message.use_stderr() { USAGE } else { 0 };
            // Without a terminal to print to, the exit code says enough.
            let _ = message.print();
            return ExitCode::from(code);
        }
    };
    match capi_proxy::run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("capi-proxy: {}", chain(&error));
            error.exit_code()
        }
    }
}
