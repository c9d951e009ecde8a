//! The rewriting sidecar: Kubernetes API traffic between two sets of API groups.
//!
//! - [`translate`] swaps group names in URLs and bodies: a library without I/O.
//! - [`gate`] lets only HTTP/1.1 requests through that can be read in one way: without I/O, too.
//! - `stack` is the request path, and `layer` holds its steps.
//! - `upstream` is the way to the API server, with the credentials that `credentials` keeps up to date.
//! - `serve` runs it all; `admin` tells how it goes.
//! - `shim` is the other program in here: the conversion webhook of the private CRDs.
//!
//! Without the default feature `serve` only what does no I/O is built, as the fuzz targets do.

pub mod gate;
pub mod translate;

#[cfg(feature = "serve")]
mod admin;
#[cfg(feature = "serve")]
pub mod args;
#[cfg(feature = "serve")]
mod body;
#[cfg(feature = "serve")]
mod command;
#[cfg(feature = "serve")]
mod config;
#[cfg(feature = "serve")]
mod credentials;
#[cfg(feature = "serve")]
mod drain;
#[cfg(feature = "serve")]
pub mod error;
#[cfg(feature = "serve")]
mod exchange;
#[cfg(feature = "serve")]
mod failure;
#[cfg(feature = "serve")]
mod layer;
#[cfg(feature = "serve")]
mod listen;
#[cfg(feature = "serve")]
mod metrics;
#[cfg(feature = "serve")]
mod readiness;
#[cfg(feature = "serve")]
mod serve;
#[cfg(feature = "serve")]
mod server;
#[cfg(feature = "serve")]
mod shim;
#[cfg(feature = "serve")]
mod stack;
#[cfg(feature = "serve")]
mod telemetry;
#[cfg(feature = "serve")]
mod upgrade;
#[cfg(feature = "serve")]
mod upstream;

/// Runs a command line.
#[cfg(feature = "serve")]
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
