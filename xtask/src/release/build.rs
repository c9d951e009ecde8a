//! Builds that are the same wherever they are run, as the testbed's program builds those of images.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::plan::{Check, Step};
use super::targets::Os;

/// What all builds of a release have in common.
#[derive(Debug)]
pub(super) struct Builds {
    /// The checkout, by its real path.
    root: PathBuf,
    /// The target directory: not that of tests, which are built with other flags.
    directory: PathBuf,
    /// Directories of this machine, and the names that take their places.
    prefixes: Vec<(String, &'static str)>,
    profile: String,
    commit: String,
}

// === impl Builds ===

impl Builds {
    pub(super) fn new(root: &Path, profile: &str, commit: Option<&str>) -> Result<Self> {
        let root = root.canonicalize().context("failed to find the checkout")?;
        let directory = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
        let directory = directory.unwrap_or_else(|| root.join("target"));
        let directory = std::path::absolute(directory.join("release-cli"))
            .context("failed to find the target directory")?;
        Ok(Self {
            commit: commit.map_or_else(|| commit_of(&root), |commit| Ok(commit.to_owned()))?,
            prefixes: prefixes(&root, &directory)?,
            profile: profile.to_owned(),
            root,
            directory,
        })
    }

    /// Builds the program for a target, with the features of its package only, and checks that it runs. Gives the file.
    pub(super) fn build(&self, step: &Step) -> Result<PathBuf> {
        let target = step.target;
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
        let status = Command::new(cargo)
            .args(["build", "--locked", "--package", "cli", "--bin", "hcp"])
            .args(["--target", target.triple, "--profile", &self.profile])
            .arg("--target-dir")
            .arg(&self.directory)
            .current_dir(&self.root)
            .envs(self.environment(step, |name| std::env::var_os(name).is_some()))
            // The first takes precedence over RUSTFLAGS, the others change the code of the same sources.
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .env_remove("CARGO_RESOLVER_FEATURE_UNIFICATION")
            .env_remove("RUSTC_WORKSPACE_WRAPPER")
            .stdin(Stdio::null())
            .status()
            .context("failed to run cargo")?;
        ensure!(
            status.success(),
            "failed to build hcp for {}",
            target.triple
        );
        let profile = match self.profile.as_str() {
            "dev" => "debug",
            other => other,
        };
        let built = self.directory.join(target.triple).join(profile);
        let program = built.join(target.program());
        self.check(step, &program)?;
        Ok(program)
    }

    /// Variables of a build. C compilers that a variable names already are kept.
    fn environment(&self, step: &Step, is_set: impl Fn(&str) -> bool) -> Vec<(String, String)> {
        let target = step.target;
        let mut variables = vec![
            ("RUSTFLAGS".to_owned(), self.rust_flags(target.os)),
            (format!("CFLAGS_{}", target.underscored()), self.c_flags()),
            ("SOURCE_DATE_EPOCH".to_owned(), "0".to_owned()),
            ("HYPERSHIFT_COMMIT".to_owned(), self.commit.clone()),
            ("CARGO_INCREMENTAL".to_owned(), "0".to_owned()),
        ];
        if let Some(compiler) = &step.compiler {
            variables.push((target.variable("LINKER"), compiler.clone()));
            let for_c = format!("CC_{}", target.underscored());
            if !is_set(&for_c) {
                variables.push((for_c, compiler.clone()));
            }
        }
        variables
    }

    fn rust_flags(&self, os: Os) -> String {
        let mapped = self.prefixes.iter();
        let mapped = mapped.map(|(from, to)| format!(" --remap-path-prefix={from}={to}"));
        own_flags(os).to_owned() + &mapped.collect::<String>()
    }

    fn c_flags(&self) -> String {
        let mapped = self.prefixes.iter();
        let mapped = mapped.map(|(from, to)| format!("-ffile-prefix-map={from}={to}"));
        mapped.collect::<Vec<_>>().join(" ")
    }

    /// Fails unless the program reports the commit, if it can be run.
    fn check(&self, step: &Step, program: &Path) -> Result<()> {
        let mut command = match &step.check {
            Check::Skip => return Ok(()),
            Check::Run => Command::new(program),
            Check::RunBy(words) => {
                let (runner, arguments) = words.split_first().context("the runner is empty")?;
                let mut command = Command::new(runner);
                command.args(arguments).arg(program);
                command
            }
        };
        let output = command
            .args(["version", "--client-only"])
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("failed to run {}", program.display()))?;
        let reported = String::from_utf8_lossy(&output.stdout);
        ensure!(
            output.status.success() && reported.contains(&self.commit),
            "{} does not report commit {} ({}): {reported}{}",
            program.display(),
            self.commit,
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(())
    }
}

/// Flags of the compiler: on Linux, programs need no library; on Windows, they have no time.
fn own_flags(os: Os) -> &'static str {
    match os {
        Os::Linux => "-C target-feature=+crt-static",
        Os::Windows => "-C link-arg=-Wl,--no-insert-timestamp",
        Os::Darwin => "",
    }
}

/// The commit of the checkout, with the suffix `-dirty` if tracked files are changed.
fn commit_of(root: &Path) -> Result<String> {
    let arguments = ["--always", "--abbrev=40", "--exclude=*", "--dirty"];
    let output = Command::new("git")
        .arg("describe")
        .args(arguments)
        .current_dir(root)
        .stdin(Stdio::null())
        .output()
        .context("failed to run git: name the commit by --commit")?;
    ensure!(
        output.status.success(),
        "failed to read the commit of the checkout: name it by --commit: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// What is replaced in compiled files. The compiler takes the last prefix that fits, and the target directory may be below
/// the root.
fn prefixes(root: &Path, directory: &Path) -> Result<Vec<(String, &'static str)>> {
    let home = std::env::home_dir().map(|home| home.join(".cargo"));
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from).or(home);
    let home = home.context("there is no home directory: set CARGO_HOME")?;
    let text = |path: &Path| path.display().to_string();
    Ok(vec![
        (text(&home), "/cargo"),
        (text(root), "/source"),
        (text(directory), "/target"),
    ])
}

#[cfg(test)]
mod tests {
    use super::super::targets::Target;
    use super::*;

    fn builds() -> Builds {
        let root = Path::new("/work/tree");
        let directory = root.join("target");
        Builds {
            prefixes: prefixes(root, &directory).unwrap(),
            root: root.to_owned(),
            directory,
            profile: "release".to_owned(),
            commit: "abc".to_owned(),
        }
    }

    fn environment(triple: &str, compiler: Option<&str>, set: &str) -> Vec<(String, String)> {
        let step = Step {
            target: Target::parse(triple).unwrap(),
            compiler: compiler.map(str::to_owned),
            check: Check::Skip,
        };
        builds().environment(&step, |name| name == set)
    }

    fn value<'v>(variables: &'v [(String, String)], name: &str) -> Option<&'v str> {
        let found = variables.iter().find(|(it, _)| it == name);
        found.map(|(_, value)| value.as_str())
    }

    #[test]
    fn cross_compilers_link_and_compile_c() {
        let gcc = "s390x-linux-gnu-gcc";
        let triple = "s390x-unknown-linux-gnu";
        let linker = "CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_LINKER";
        let for_c = "CC_s390x_unknown_linux_gnu";
        let variables = environment(triple, Some(gcc), "");
        assert_eq!(value(&variables, linker), Some(gcc));
        assert_eq!(value(&variables, for_c), Some(gcc));
        let variables = environment(triple, Some(gcc), for_c);
        assert_eq!(value(&variables, linker), Some(gcc));
        assert_eq!(value(&variables, for_c), None);
        let variables = environment(triple, None, "");
        assert_eq!(value(&variables, linker), None);
        assert_eq!(value(&variables, "HYPERSHIFT_COMMIT"), Some("abc"));
    }

    #[test]
    fn directories_of_the_machine_are_replaced_in_rust_and_c() {
        let variables = environment("x86_64-pc-windows-gnu", None, "");
        let rust = value(&variables, "RUSTFLAGS").unwrap();
        let c = value(&variables, "CFLAGS_x86_64_pc_windows_gnu").unwrap();
        for mapped in [
            "=/work/tree=/source",
            "=/work/tree/target=/target",
            "=/cargo",
        ] {
            assert!(rust.contains(mapped) && c.contains(mapped), "{rust} {c}");
        }
        assert!(rust.contains("--no-insert-timestamp"), "{rust}");
        let at = |text: &str| rust.find(text).unwrap();
        assert!(at("=/source") < at("=/target"), "{rust}");
    }

    #[test]
    fn programs_for_linux_are_static() {
        let variables = environment("powerpc64le-unknown-linux-gnu", None, "");
        let rust = value(&variables, "RUSTFLAGS").unwrap();
        assert!(rust.contains("+crt-static"), "{rust}");
    }
}
