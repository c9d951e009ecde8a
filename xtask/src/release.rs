//! `cargo xtask release`: what is published of a commit.
//!
//! The testbed's program writes the images, because it has the recipes. The command line program is built here: it is also
//! released for macOS, where the testbed cannot be built.

mod archive;
mod build;
mod cli;
mod plan;
mod targets;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

use crate::programs::Program;

/// What is released: the images, or what a subcommand names.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true, disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<What>,
    /// Arguments of the program that writes images
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Write the program `hcp` for each platform as an archive, with checksums
    Cli(cli::Args),
}

/// Writes the images, or what the subcommand names.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    match &args.what {
        Some(What::Cli(args)) => cli::run(args),
        None => Program::TESTBED.run("release", &args.arguments),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use clap::error::ErrorKind;

    use super::*;

    fn parse(arguments: &[&str]) -> Result<Args, clap::Error> {
        let line = [&["xtask", "release"][..], arguments].concat();
        match crate::Args::try_parse_from(line)?.command {
            crate::Command::Release(args) => Ok(args),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn arguments_of_images_are_forwarded() {
        let none: &[&str] = &[];
        for arguments in [none, &["--output", "cli"], &["--help"]] {
            let args = parse(arguments).unwrap();
            assert!(args.what.is_none(), "{arguments:?}");
            assert_eq!(args.arguments, arguments);
        }
    }

    #[test]
    fn the_command_line_program_is_a_subcommand() {
        let args = parse(&["cli", "--dry-run", "--output", "dist"]).unwrap();
        assert!(matches!(args.what, Some(What::Cli(_))), "{args:?}");
        assert!(args.arguments.is_empty(), "{args:?}");
        let error = parse(&["cli", "--target", "m68k"]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ValueValidation);
        let error = parse(&["cli", "--help"]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DisplayHelp);
    }
}
