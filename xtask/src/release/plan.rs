//! What can be built on this machine, and what is missing for the rest. Nothing is built here.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::targets::{Os, TARGETS, Target};

/// What a machine has for builds.
#[derive(Debug, Clone, Default)]
pub(super) struct Machine {
    /// The platform of the machine.
    host: String,
    /// The targets whose standard library is installed.
    standard_libraries: BTreeSet<String>,
    /// The programs that were found.
    programs: BTreeSet<String>,
    /// The variables of cargo with linkers and runners.
    variables: BTreeMap<String, String>,
}

/// A build that can be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) target: Target,
    /// Compiles C and links; nothing if the compiler's default does.
    pub(super) compiler: Option<String>,
    pub(super) check: Check,
}

/// How the program is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Check {
    /// It is run.
    Run,
    /// It is run by an emulator: the words of the variable with the runner.
    RunBy(Vec<String>),
    /// It cannot be run on this machine.
    Skip,
}

/// What a build lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Missing {
    StandardLibrary(&'static str),
    Program {
        name: String,
        install: String,
    },
    /// The variable that may name a linker with the SDK.
    AppleSdk(String),
}

// === impl Machine ===

impl Machine {
    /// Looks for what the targets need.
    pub(super) fn detect(root: &Path) -> Result<Self> {
        let settings = ["LINKER", "RUNNER"];
        let names = TARGETS
            .iter()
            .flat_map(|it| settings.map(|of| it.variable(of)));
        let variables = names.filter_map(|name| Some((name.clone(), std::env::var(name).ok()?)));
        let variables: BTreeMap<_, _> = variables.collect();
        let tools = TARGETS
            .iter()
            .flat_map(|it| it.cross_compiler.iter().chain(it.tools));
        let tools = tools.map(|tool| tool.name.to_owned());
        let of_variables = variables
            .values()
            .filter_map(|it| it.split_whitespace().next());
        let programs = tools.chain(of_variables.map(str::to_owned));
        Ok(Self {
            host: host(&rustc(root, &["-vV"])?)?,
            standard_libraries: standard_libraries(&rustc(root, &["--print", "sysroot"])?),
            programs: programs.filter(|name| is_program(name)).collect(),
            variables,
        })
    }

    /// The build of a target, or what it lacks.
    pub(super) fn plan(&self, target: Target) -> Result<Step, Vec<Missing>> {
        let mut missing = Vec::new();
        if !self.standard_libraries.contains(target.triple) {
            missing.push(Missing::StandardLibrary(target.triple));
        }
        let compiler = self.compiler(target).unwrap_or_else(|lacks| {
            missing.push(lacks);
            None
        });
        for tool in target.tools {
            missing.extend(self.lacks(tool.name, tool.install));
        }
        let check = self.check(target);
        if let Check::RunBy(words) = &check
            && let Some(runner) = words.first()
        {
            missing.extend(self.lacks(runner, &format!("correct {}", target.variable("RUNNER"))));
        }
        if missing.is_empty() {
            return Ok(Step {
                target,
                compiler,
                check,
            });
        }
        Err(missing)
    }

    /// The C compiler that links: that of the variable, or the default one, or the one for this target.
    fn compiler(&self, target: Target) -> Result<Option<String>, Missing> {
        let variable = target.variable("LINKER");
        if let Some(named) = self.variables.get(&variable) {
            let lacks = self.lacks(named, &format!("correct {variable}"));
            return lacks.map_or_else(|| Ok(Some(named.clone())), Err);
        }
        let has_sdk = target.os == Os::Darwin && self.host.ends_with("-apple-darwin");
        if target.triple == self.host || has_sdk {
            return Ok(None);
        }
        let Some(compiler) = target.cross_compiler else {
            return Err(Missing::AppleSdk(variable));
        };
        let lacks = self.lacks(compiler.name, compiler.install);
        lacks.map_or_else(|| Ok(Some(compiler.name.to_owned())), Err)
    }

    fn lacks(&self, name: &str, install: &str) -> Option<Missing> {
        let is_missing = !self.programs.contains(name);
        is_missing.then(|| Missing::Program {
            name: name.to_owned(),
            install: install.to_owned(),
        })
    }

    fn check(&self, target: Target) -> Check {
        let runner = self.variables.get(&target.variable("RUNNER"));
        if let Some(runner) = runner {
            return Check::RunBy(runner.split_whitespace().map(str::to_owned).collect());
        }
        if target.triple == self.host {
            return Check::Run;
        }
        Check::Skip
    }
}

/// Runs the compiler of the checkout; gives what it prints.
fn rustc(root: &Path, arguments: &[&str]) -> Result<String> {
    let output = Command::new("rustc")
        .args(arguments)
        .current_dir(root)
        .stdin(Stdio::null())
        .output()
        .context("failed to run rustc")?;
    ensure!(
        output.status.success(),
        "rustc {} failed: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn host(version: &str) -> Result<String> {
    let mut hosts = version
        .lines()
        .filter_map(|line| line.strip_prefix("host: "));
    let host = hosts
        .next()
        .context("failed to read the host of rustc -vV")?;
    Ok(host.to_owned())
}

/// The targets whose standard library is below the compiler's directory.
fn standard_libraries(sysroot: &str) -> BTreeSet<String> {
    let libraries = Path::new(sysroot).join("lib").join("rustlib");
    let triples = TARGETS.iter().map(|target| target.triple);
    let installed = triples.filter(|triple| libraries.join(triple).join("lib").is_dir());
    installed.map(str::to_owned).collect()
}

/// Whether a file has this path, or a directory of `PATH` has a file of this name.
fn is_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut directories = std::env::split_paths(&path);
    let is_path = Path::new(name).components().nth(1).is_some();
    (is_path && Path::new(name).is_file())
        || (!is_path && directories.any(|directory| directory.join(name).is_file()))
}

// === impl Step ===

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            target,
            compiler,
            check,
        } = self;
        let compiler = compiler.as_deref().unwrap_or("the default linker");
        let check = match check {
            Check::Run => "run it".to_owned(),
            Check::RunBy(words) => format!("run it by {}", words.join(" ")),
            Check::Skip => "do not run it".to_owned(),
        };
        write!(
            f,
            "{}: build {} with {compiler}, {check}",
            target.archive(),
            target.triple
        )
    }
}

// === impl Missing ===

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StandardLibrary(triple) => {
                write!(f, "the standard library (rustup target add {triple})")
            }
            Self::Program { name, install } => write!(f, "the program {name} ({install})"),
            Self::AppleSdk(variable) => write!(
                f,
                "Apple's SDK (run this command on macOS, or set {variable} to a linker that has the SDK)"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINUX: &str = "x86_64-unknown-linux-gnu";

    fn target(triple: &str) -> Target {
        Target::parse(triple).unwrap()
    }

    /// A machine that has everything but Apple's SDK.
    fn machine(host: &str) -> Machine {
        let tools = TARGETS
            .iter()
            .flat_map(|it| it.cross_compiler.iter().chain(it.tools));
        Machine {
            host: host.to_owned(),
            standard_libraries: TARGETS.iter().map(|it| it.triple.to_owned()).collect(),
            programs: tools.map(|tool| tool.name.to_owned()).collect(),
            variables: BTreeMap::new(),
        }
    }

    fn set(machine: &mut Machine, name: &str, value: &str) {
        machine.variables.insert(name.to_owned(), value.to_owned());
    }

    #[test]
    fn only_macos_is_missing_where_all_tools_are_installed() {
        let machine = machine(LINUX);
        for target in TARGETS {
            let planned = machine.plan(target);
            let expected = target.os != Os::Darwin;
            assert_eq!(planned.is_ok(), expected, "{}: {planned:?}", target.triple);
        }
        let step = machine.plan(target(LINUX)).unwrap();
        assert_eq!((step.compiler, step.check), (None, Check::Run));
        let step = machine.plan(target("s390x-unknown-linux-gnu")).unwrap();
        assert_eq!(step.compiler.as_deref(), Some("s390x-linux-gnu-gcc"));
        assert_eq!(step.check, Check::Skip);
    }

    #[test]
    fn macos_builds_both_of_its_platforms() {
        let machine = machine("aarch64-apple-darwin");
        let step = machine.plan(target("x86_64-apple-darwin")).unwrap();
        assert_eq!((step.compiler, step.check), (None, Check::Skip));
        let step = machine.plan(target("aarch64-apple-darwin")).unwrap();
        assert_eq!(step.check, Check::Run);
        let step = machine.plan(target(LINUX)).unwrap();
        assert_eq!(step.compiler.as_deref(), Some("x86_64-linux-gnu-gcc"));
    }

    #[test]
    fn everything_that_is_missing_is_reported_with_how_to_get_it() {
        let bare = Machine {
            host: LINUX.to_owned(),
            ..Machine::default()
        };
        for (triple, expected) in [
            (LINUX, &["rustup target add x86_64-unknown-linux-gnu"][..]),
            (
                "x86_64-pc-windows-gnu",
                &["rustup target add", "gcc-mingw-w64-x86-64", "nasm"],
            ),
            (
                "aarch64-pc-windows-gnullvm",
                &["rustup target add", "llvm-mingw"],
            ),
            (
                "aarch64-apple-darwin",
                &[
                    "rustup target add",
                    "CARGO_TARGET_AARCH64_APPLE_DARWIN_LINKER",
                ],
            ),
        ] {
            let missing = bare.plan(target(triple)).unwrap_err();
            let texts: Vec<_> = missing.iter().map(Missing::to_string).collect();
            assert_eq!(texts.len(), expected.len(), "{triple}: {texts:?}");
            for (text, part) in texts.iter().zip(expected) {
                assert!(text.contains(part), "{triple}: {text}");
            }
        }
    }

    #[test]
    fn variables_of_cargo_name_linkers_and_runners() {
        let mut machine = machine(LINUX);
        let apple = target("aarch64-apple-darwin");
        set(&mut machine, &apple.variable("LINKER"), "oa64-clang");
        let missing = machine.plan(apple).unwrap_err();
        assert!(missing[0].to_string().contains("oa64-clang"), "{missing:?}");
        machine.programs.insert("oa64-clang".to_owned());
        let step = machine.plan(apple).unwrap();
        assert_eq!(step.compiler.as_deref(), Some("oa64-clang"));

        let s390x = target("s390x-unknown-linux-gnu");
        set(&mut machine, &s390x.variable("RUNNER"), "emulator -cpu max");
        machine.plan(s390x).unwrap_err();
        machine.programs.insert("emulator".to_owned());
        let step = machine.plan(s390x).unwrap();
        assert_eq!(
            step.to_string(),
            "hcp-linux-s390x.tar.gz: build s390x-unknown-linux-gnu with s390x-linux-gnu-gcc, run it by emulator -cpu max"
        );
    }

    #[test]
    fn the_host_is_read_from_the_compilers_version() {
        let version =
            "rustc 1.95.0 (abc 2026-04-14)\nbinary: rustc\nhost: x86_64-unknown-linux-gnu\n";
        assert_eq!(host(version).unwrap(), LINUX);
        host("rustc 1.95.0").unwrap_err();
    }

    #[test]
    fn programs_are_found_by_path_and_name() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        assert!(is_program(&here.display().to_string()));
        assert!(!is_program("no-such-program"));
        assert!(!is_program("/no/such/program"));
    }
}
