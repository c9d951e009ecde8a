//! From what a command came to, to what its user sees and its exit status.

use std::process::ExitCode;

use clap::Parser;

use crate::Usage;
use crate::doctor::command::Unwell;
use crate::migrate::RolledBack;

/// `EX_USAGE` of sysexits.h.
const BAD_USAGE: u8 = 64;
/// What was examined is not as it should be.
const UNWELL: u8 = 2;
/// What was begun has been undone.
const UNDONE: u8 = 3;

/// Parses the arguments, runs the command, and turns errors into messages and exit statuses.
pub fn outcome<C: Parser>(run: impl FnOnce(C) -> anyhow::Result<()>) -> ExitCode {
    // An error means that a provider is installed already, which is as good.
    drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
    let cli = match C::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

/// Help and version are no errors, although the parser reports them as such.
fn refuse(error: &clap::Error) -> ExitCode {
    // Nothing can be said when standard error is closed.
    drop(error.print());
    if error.use_stderr() {
        return ExitCode::from(BAD_USAGE);
    }
    ExitCode::SUCCESS
}

fn fail(error: &anyhow::Error) -> ExitCode {
    if error.is::<Unwell>() {
        // The report has said it all.
        return ExitCode::from(UNWELL);
    }
    let mut last = error.to_string();
    eprintln!("error: {last}");
    for cause in error.chain().skip(1).map(ToString::to_string) {
        // Wrappers often repeat their cause.
        if !last.contains(&cause) {
            eprintln!("  because {cause}");
            last = cause;
        }
    }
    if error.is::<Usage>() {
        return ExitCode::from(BAD_USAGE);
    }
    if error.is::<RolledBack>() {
        return ExitCode::from(UNDONE);
    }
    ExitCode::FAILURE
}
