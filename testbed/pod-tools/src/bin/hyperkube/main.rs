//! `hyperkube PROGRAM ARGS`: runs an upstream Kubernetes program as OpenShift's own build of it is run.
//!
//! OpenShift's programs read a configuration file of their own (`--openshift-config`) and know admission plugins,
//! authorizers and feature gates that upstream does not. This program turns the file into flags, queries the real program
//! what it knows, leaves out the rest, says in its log what that was, and becomes the real program.

mod config;
mod flags;
mod known;

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use flags::Flags;
use known::Known;

const USAGE: &str =
    "usage: hyperkube kube-apiserver|kube-controller-manager|kube-scheduler [FLAG...]";
/// The flag that only OpenShift's programs have.
const CONFIG: &str = "openshift-config";

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let Some(program) = args.next() else {
        eprintln!("{USAGE}");
        return ExitCode::from(64);
    };
    let Err(error) = run(&program, Flags::parse(args));
    eprintln!("error: hyperkube {program}: {error}");
    ExitCode::FAILURE
}

/// Becomes the real program; returns only when that fails.
fn run(program: &str, mut flags: Flags) -> Result<std::convert::Infallible, String> {
    let mut notes = Vec::new();
    if let Some(path) = flags.take(CONFIG) {
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        let config = config::parse(&text).map_err(|error| format!("{path}: {error}"))?;
        let directory = std::env::temp_dir();
        let translated = config::flags(&config, &directory, &mut notes)?;
        flags.add_missing(translated);
    }
    let help = Command::new(program)
        .arg("--help")
        .output()
        .map_err(|error| format!("cannot ask {program} for its flags: {error}"))?;
    let known = Known::parse(&String::from_utf8_lossy(&help.stdout));
    flags.keep_known(&known, &mut notes);
    for note in &notes {
        eprintln!("hyperkube: left out {note}");
    }
    let error = Command::new(program).args(flags.line()).exec();
    Err(format!("cannot start {program}: {error}"))
}
