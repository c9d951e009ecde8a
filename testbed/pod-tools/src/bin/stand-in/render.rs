//! `authentication-operator render`: leaves the manifests that its image has where the real program would leave its own.
//!
//! They are the CRDs that the cluster-version-operator would apply later, which is a stand-in as well.

use std::fs;
use std::io::{Error, Result};
use std::path::Path;
use std::process::ExitCode;

/// The program.
pub(crate) const PROGRAM: &str = "authentication-operator";
/// Its command.
pub(crate) const COMMAND: &str = "render";
/// What its image has for it.
const MANIFESTS: &str = "/usr/share/render";
/// The flag that says where to.
const OUTPUT: &str = "--asset-output-dir";

/// Copies, and ends.
pub(crate) fn run(args: &[String]) -> ExitCode {
    match output(args).and_then(|to| copy(Path::new(MANIFESTS), Path::new(to))) {
        Ok(count) => {
            println!("{PROGRAM}: this is a stand-in; it has written {count} manifests");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: the stand-in of {PROGRAM}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The flag's value: `--flag value` or `--flag=value`.
fn output(args: &[String]) -> Result<&str> {
    let found = args.iter().enumerate().find_map(|(at, arg)| {
        let rest = arg.strip_prefix(OUTPUT)?;
        match rest.strip_prefix('=') {
            Some(value) => Some(value),
            None => args.get(at + 1).map(String::as_str),
        }
    });
    found.ok_or_else(|| Error::other(format!("{OUTPUT} is missing")))
}

/// Copies files and directories; returns the number of files.
fn copy(from: &Path, to: &Path) -> Result<usize> {
    fs::create_dir_all(to)?;
    let mut count = 0;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            count += copy(&entry.path(), &target)?;
            continue;
        }
        fs::copy(entry.path(), target)?;
        count += 1;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_the_flag_are_read() {
        for line in ["--asset-output-dir /a --x y", "--x=y --asset-output-dir=/a"] {
            let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(output(&args).unwrap(), "/a");
        }
        assert!(output(&[]).is_err());
    }
}
