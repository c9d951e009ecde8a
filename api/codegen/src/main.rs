//! Writes what is made from the types of the `api` crate: `cargo xtask codegen`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

/// Write the custom resource definitions and the API reference from the types of the api crate.
#[derive(Debug, Parser)]
#[command(name = "codegen", bin_name = "cargo xtask codegen")]
struct Args {
    /// Write nothing: fail if a file is not what would be written.
    #[arg(long)]
    check: bool,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<()> {
    if args.check {
        let checked = codegen::check()?;
        println!("{checked} generated files are up to date");
    } else {
        let (written, all) = codegen::write()?;
        println!("{written} of {all} generated files written");
    }
    Ok(())
}
