//! Running cargo, always with the same flags and features, so that nothing is compiled twice.
//!
//! Programs of images have to be static, so everything is: tests, the testbed, and what is put into images come from one
//! set of artifacts. `--target` keeps the flags away from build scripts and procedural macros.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, IsTerminal};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// What is compiled for; the testbed's images need it, too (`testbed/src/images.rs`).
pub(crate) const TARGET: &str = "x86_64-unknown-linux-gnu";
/// The compiler's flags for [`TARGET`], by the variables that cargo and rustdoc read.
const FLAGS: [(&str, &str); 2] = [
    ("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS", STATIC),
    ("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTDOCFLAGS", STATIC),
];
const STATIC: &str = "-C target-feature=+crt-static";
/// Has programs built with the features that tests have: cargo unifies them as soon as a test is built, too. This one is
/// small.
const SAME_FEATURES: [&str; 3] = ["--workspace", "--test", "up_to_date"];

/// Variable of cargo with the compiler of the workspace's crates; dependencies have the usual one.
const WORKSPACE_COMPILER: &str = "RUSTC_WORKSPACE_WRAPPER";

/// What cargo has built, and what it said about this tree.
#[derive(Debug, Default)]
pub(crate) struct Build {
    pub(crate) executables: Vec<Executable>,
    /// Each warning as the compiler renders it. Those of crates that were built before are repeated by cargo.
    pub(crate) warnings: Vec<String>,
}

/// Something that cargo has built and that can be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Executable {
    /// Its package's directory, which tests run in.
    pub(crate) directory: PathBuf,
    /// The package.
    pub(crate) package: String,
    /// The target: of the library, of a program, or of a test.
    pub(crate) name: String,
    /// `lib`, `bin`, `test`, `example`.
    pub(crate) kind: String,
    /// Whether it is a test harness.
    pub(crate) is_test: bool,
    /// The file.
    pub(crate) path: PathBuf,
}

/// A cargo command that never waits for input.
pub(crate) fn cargo() -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(program);
    command
        .current_dir(crate::sources::root())
        .envs(FLAGS)
        .stdin(Stdio::null());
    if let Some(compiler) = compiler_with_lints() {
        command.env(WORKSPACE_COMPILER, compiler);
    }
    if std::io::stderr().is_terminal() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    command
}

/// Clippy's compiler, which runs all lints while it compiles: the workspace is not compiled twice. It leaves out some
/// optimizations, which is why nothing that is released is built here. `None` if the component is not installed.
pub(crate) fn compiler_with_lints() -> Option<PathBuf> {
    static FOUND: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
        let output = Command::new("rustc")
            .args(["--print", "sysroot"])
            .current_dir(crate::sources::root())
            .output()
            .ok()?;
        let sysroot = String::from_utf8(output.stdout).ok()?;
        let path = PathBuf::from(sysroot.trim()).join("bin/clippy-driver");
        path.exists().then_some(path)
    });
    FOUND.clone()
}

/// Runs cargo with its progress on standard error; fails if cargo does.
pub(crate) fn run(arguments: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    let status = cargo()
        .args(arguments)
        .envs(environment.iter().copied())
        .status()
        .context("failed to run cargo")?;
    if !status.success() {
        bail!("cargo {} failed ({status})", arguments.join(" "));
    }
    Ok(())
}

/// Builds programs, all in one invocation; gives what was built.
pub(crate) fn build(programs: &[&str]) -> Result<Vec<Executable>> {
    let mut arguments = vec!["build"];
    arguments.extend(SAME_FEATURES);
    for program in programs {
        arguments.extend(["--bin", program]);
    }
    Ok(built(&arguments)?.executables)
}

/// Builds every target of the workspace with its tests; gives what was built, and all warnings.
pub(crate) fn build_tests() -> Result<Build> {
    built(&["test", "--workspace", "--all-targets", "--no-run"])
}

/// Builds one test program of the end-to-end tests, with the features that all have.
pub(crate) fn build_test(name: &str) -> Result<Executable> {
    let built = built(&["test", "--workspace", "--no-run", "--test", name])?;
    let mut executables = built.executables.into_iter();
    executables
        .find(|one| one.package == "e2e" && one.name == name)
        .with_context(|| format!("failed to find the tests {name} that cargo built"))
}

/// Runs a cargo command that builds; its progress is shown, and its messages are read.
fn built(arguments: &[&str]) -> Result<Build> {
    let format = if std::io::stderr().is_terminal() {
        "--message-format=json,json-diagnostic-rendered-ansi"
    } else {
        "--message-format=json"
    };
    let mut child = cargo()
        .args(arguments)
        .args(["--target", TARGET, format])
        .stdout(Stdio::piped())
        .spawn()
        .context("failed to run cargo")?;
    let output = child
        .stdout
        .take()
        .expect("invariant: standard output is a pipe");
    let mut built = Build::default();
    for line in BufReader::new(output).lines() {
        let line = line.context("failed to read cargo's messages")?;
        built.read(&line);
    }
    let status = child.wait().context("failed to wait for cargo")?;
    if !status.success() {
        bail!("cargo {} failed ({status})", arguments.join(" "));
    }
    Ok(built)
}

// === impl Build ===

impl Build {
    /// Reads a message of cargo. What the compiler says is shown at once.
    fn read(&mut self, line: &str) {
        let Ok(message) = serde_json::from_str::<Value>(line) else {
            return;
        };
        self.executables.extend(Executable::of_message(&message));
        let said = &message["message"];
        let Some(rendered) = said["rendered"].as_str() else {
            return;
        };
        eprint!("{rendered}");
        // How many warnings a crate has is said in a warning without a place.
        let has_place = said["spans"].as_array().is_some_and(|all| !all.is_empty());
        if said["level"] == "warning" && has_place {
            self.warnings.push(rendered.to_owned());
        }
    }
}

// === impl Executable ===

impl Executable {
    /// The executable that a message of cargo names, if it names one.
    fn of_message(message: &Value) -> Option<Self> {
        let target = &message["target"];
        let manifest = PathBuf::from(message["manifest_path"].as_str()?);
        Some(Self {
            path: PathBuf::from(message["executable"].as_str()?),
            package: package(message["package_id"].as_str()?),
            directory: manifest.parent()?.to_owned(),
            name: target["name"].as_str()?.to_owned(),
            kind: target["kind"][0].as_str()?.to_owned(),
            is_test: message["profile"]["test"].as_bool()?,
        })
    }
}

/// The package's name in an identifier: `path+file:///a/api#0.0.0`, or `path+file:///a/b#api@0.0.0`.
fn package(id: &str) -> String {
    let (place, version) = id.rsplit_once('#').unwrap_or(("", id));
    let name = match version.split_once('@') {
        Some((name, _)) => name,
        None => place.rsplit('/').next().unwrap_or_default(),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executables_are_read_from_cargo_messages() {
        let line = r#"{"reason":"compiler-artifact","package_id":"path+file:///w/e2e#0.0.0",
            "manifest_path":"/w/e2e/Cargo.toml","target":{"kind":["test"],"name":"node"},
            "profile":{"test":true},"executable":"/w/target/node-1"}"#;
        let mut build = Build::default();
        build.read(line);
        let library = line.replace("\"/w/target/node-1\"", "null");
        build.read(&library);
        build.read("not JSON");
        let [read] = &build.executables[..] else {
            panic!("{build:?}");
        };
        assert_eq!((read.package.as_str(), read.name.as_str()), ("e2e", "node"));
        assert_eq!(read.directory, PathBuf::from("/w/e2e"));
        assert!(read.is_test);
    }

    #[test]
    fn warnings_with_a_place_are_kept() {
        let message = |level: &str, spans: &str| {
            format!(
                r#"{{"reason":"compiler-message","message":{{"level":"{level}","spans":{spans},"rendered":"{level}\n"}}}}"#
            )
        };
        let mut build = Build::default();
        for (level, spans) in [("warning", "[{}]"), ("warning", "[]"), ("note", "[{}]")] {
            build.read(&message(level, spans));
        }
        assert_eq!(build.warnings, ["warning\n"]);
    }

    #[test]
    fn packages_are_named_by_both_forms_of_identifiers() {
        assert_eq!(package("path+file:///w/api#0.0.0"), "api");
        assert_eq!(package("path+file:///w/e2e/bench#bench@0.0.0"), "bench");
    }
}
