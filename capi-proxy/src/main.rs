//! The `capi-proxy` binary: reads the command line, runs it, prints what went wrong.

use std::process::ExitCode;

use capi_proxy::args::Cli;
use clap::Parser;

/// Exit code for a command line that must be changed.
const USAGE: u8 = 64;

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
            eprintln!("capi-proxy: {}", capi_proxy::error::chain(&error));
            error.exit_code()
        }
    }
}
