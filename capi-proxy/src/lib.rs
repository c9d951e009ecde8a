//! The sidecar that translates Kubernetes API traffic between two sets of API groups.
//!
//! - The crate `capi-translate` translates group names in URLs and bodies, without I/O.
//! - [`gate`] validates the framing of HTTP/1.1 requests, without I/O.
//! - `stack` is the request path, and `layer` has its steps.
//! - `upstream` sends requests to the API server, with the credentials that `credentials` keeps up to date.
//! - `serve` runs it all. Flags, log, probes and shutdown are those of all programs (`support`).
//! - `shim` is the conversion webhook of the private CRDs, which is installed as `capi-conversion-webhook-shim`.

pub mod gate;

pub mod args;
mod body;
mod command;
mod config;
mod credentials;
pub mod error;
mod exchange;
mod failure;
mod layer;
mod listen;
mod metrics;
mod readiness;
mod serve;
mod server;
mod shim;
mod stack;
mod upgrade;
mod upstream;

/// Runs a command line.
pub fn run(cli: args::Cli) -> Result<(), error::Error> {
    use args::Command;
    match cli.command {
        Command::Serve(args) => serve::run(&args),
        Command::ConversionWebhook(args) => shim::run(&args),
        Command::Translate(args) => command::translate(&args),
        Command::Completions(args) => {
            command::completions(&args);
            Ok(())
        }
    }
}
