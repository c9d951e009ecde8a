//! `testbed release`: the images of this tree as files, the same bytes from the same sources wherever they are built.
//!
//! What would differ from machine to machine is kept out: paths of the sources, the home of crates and the target
//! directory are mapped to fixed names, layers have no times and no owners, and the files are written in a fixed order.

mod layout;
mod sbom;

use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};
use testbed::images::{FLAGS, Image, TARGET};
use testbed::progress::Progress;
use tokio::process::Command;

/// What is released.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The directory that is written
    #[arg(long, value_name = "DIRECTORY", default_value = "dist")]
    output: PathBuf,
    /// Release only this image; may be given several times
    #[arg(long = "image", value_name = "NAME")]
    images: Vec<String>,
    /// The bundle of certificate authorities that images with TLS clients get
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/etc/ssl/certs/ca-certificates.crt"
    )]
    ca_certificates: PathBuf,
    /// The cargo profile: `dev` is quicker, to try the command
    #[arg(long, default_value = "release")]
    profile: String,
    /// The checkout to build [default: that of this program]
    #[arg(long, value_name = "DIRECTORY")]
    source: Option<PathBuf>,
    /// The commit that the programs report [default: the checkout's]
    #[arg(long, value_name = "HASH", env = "HYPERSHIFT_COMMIT")]
    commit: Option<String>,
}

/// Builds, packs, and writes checksums.
pub(super) async fn run(args: &Args) -> Result<ExitCode> {
    let progress = Progress::detect();
    std::fs::create_dir_all(&args.output)
        .with_context(|| format!("failed to create {}", args.output.display()))?;
    ensure!(
        args.ca_certificates.is_file(),
        "{} does not exist: name a bundle by --ca-certificates",
        args.ca_certificates.display()
    );
    let source = source(args.source.as_deref())?;
    let commit = commit(args.commit.as_deref(), &source).await?;
    let target = target_directory(&source);
    let mut sums = String::new();
    for image in selected(&args.images)? {
        let step = progress.step(format!("building {}", image.name()));
        let program = build(image, &args.profile, &commit, [&source, &target]).await?;
        let archive = image.pack(program, &args.ca_certificates)?;
        let tar = layout::tar(&archive)?;
        let bill = sbom::of(image, &archive, &source).await?;
        step.done();
        for (ending, bytes) in [("cdx.json", bill), ("oci.tar", tar)] {
            let name = format!("{}.{ending}", image.name());
            sums.push_str(&checksum(&name, &bytes));
            write(&args.output.join(name), &bytes)?;
        }
    }
    write(&args.output.join("SHA256SUMS"), sums.as_bytes())?;
    print!("{sums}");
    Ok(ExitCode::SUCCESS)
}

fn selected(names: &[String]) -> Result<Vec<Image>> {
    let known = Image::ALL.map(Image::name);
    for name in names {
        ensure!(
            known.contains(&name.as_str()),
            "there is no image {name}: there are {}",
            known.join(", ")
        );
    }
    let all = Image::ALL.into_iter();
    let chosen =
        all.filter(|image| names.is_empty() || names.iter().any(|name| name == image.name()));
    Ok(chosen.collect())
}

/// A line of `SHA256SUMS`, for `sha256sum -c`.
fn checksum(name: &str, bytes: &[u8]) -> String {
    format!("{:x}  {name}\n", Sha256::digest(bytes))
}

/// The commit of the sources. It is part of the programs, so a copy of the sources without git has to be given it.
async fn commit(given: Option<&str>, source: &Path) -> Result<String> {
    if let Some(commit) = given {
        return Ok(commit.to_owned());
    }
    let output = Command::new("git")
        // Changes of tracked files are reported by the suffix `-dirty`.
        .args([
            "describe",
            "--always",
            "--abbrev=40",
            "--exclude=*",
            "--dirty",
        ])
        .current_dir(source)
        .stdin(Stdio::null())
        .output()
        .await
        .context("failed to run git: name the commit by --commit")?;
    ensure!(
        output.status.success(),
        "failed to read the commit of {}: name it by --commit: {}",
        source.display(),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    std::fs::write(path, bytes).with_context(|| format!("failed to write {}", path.display()))
}

/// Builds the program of an image, with the features of its package only, as the Dockerfile does.
async fn build(
    image: Image,
    profile: &str,
    commit: &str,
    [source, target]: [&Path; 2],
) -> Result<PathBuf> {
    let recipe = image.recipe();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let prefixes = prefixes(source, target)?;
    let status = Command::new(cargo)
        .args([
            "build",
            "--locked",
            "--target",
            TARGET,
            "--profile",
            profile,
        ])
        .args(["--package", recipe.package, "--bin", recipe.program])
        .arg("--target-dir")
        .arg(target)
        .current_dir(source)
        .env("RUSTFLAGS", rust_flags(&prefixes))
        .env("CFLAGS_x86_64_unknown_linux_gnu", c_flags(&prefixes))
        .env("SOURCE_DATE_EPOCH", "0")
        .env("HYPERSHIFT_COMMIT", commit)
        // The first takes precedence over RUSTFLAGS, the others change the code of the same sources.
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("CARGO_RESOLVER_FEATURE_UNIFICATION")
        .env("CARGO_INCREMENTAL", "0")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .status()
        .await
        .context("failed to run cargo")?;
    ensure!(status.success(), "failed to build {}", recipe.program);
    let directory = if profile == "dev" { "debug" } else { profile };
    Ok(target.join(TARGET).join(directory).join(recipe.program))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The checkout, by its real path: it is replaced in what the compiler writes.
fn source(given: Option<&Path>) -> Result<PathBuf> {
    let path = given.map_or_else(root, Path::to_owned);
    path.canonicalize()
        .with_context(|| format!("failed to find the checkout {}", path.display()))
}

/// A directory of its own: other flags than those of tests would have cargo build everything again there.
fn target_directory(root: &Path) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR");
    let target = target.map_or_else(|| root.join("target"), PathBuf::from);
    target.join("release-images")
}

/// Directories of this machine, and the names that take their places. The longest first, since the target directory may
/// be below the root.
fn prefixes(root: &Path, target: &Path) -> Result<Vec<(String, &'static str)>> {
    let work_dir = match std::env::var_os("CARGO_HOME") {
        Some(work_dir) => PathBuf::from(work_dir),
        None => std::env::home_dir()
            .context("there is no home directory: set CARGO_HOME")?
            .join(".cargo"),
    };
    let text = |path: &Path| path.display().to_string();
    // The compiler takes the last prefix that fits.
    Ok(vec![
        (text(&work_dir), "/cargo"),
        (text(root), "/source"),
        (text(target), "/target"),
    ])
}

fn rust_flags(prefixes: &[(String, &str)]) -> String {
    let mapped = prefixes
        .iter()
        .map(|(from, to)| format!(" --remap-path-prefix={from}={to}"));
    FLAGS.to_owned() + &mapped.collect::<String>()
}

fn c_flags(prefixes: &[(String, &str)]) -> String {
    let mapped = prefixes
        .iter()
        .map(|(from, to)| format!("-ffile-prefix-map={from}={to}"));
    mapped.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_directory_of_the_machine_is_left_out() {
        let prefixes = prefixes(Path::new("/work/tree"), Path::new("/work/tree/target")).unwrap();
        let rust = rust_flags(&prefixes);
        assert!(rust.starts_with(FLAGS), "{rust}");
        for flag in [
            "=/work/tree=/source",
            "=/work/tree/target=/target",
            "=/cargo",
        ] {
            assert!(
                rust.contains(flag) && c_flags(&prefixes).contains(flag),
                "{rust}"
            );
        }
        let at = |text: &str| rust.find(text).unwrap();
        assert!(
            at("=/source") < at("=/target"),
            "the last one that fits is taken: {rust}"
        );
    }

    #[tokio::test]
    async fn checksums_are_verified_by_sha256sum() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let mut sums = String::new();
        for (name, bytes) in [("a.oci.tar", "one"), ("b.cdx.json", "two")] {
            sums += &checksum(name, bytes.as_bytes());
            write(&path(name), bytes.as_bytes()).unwrap();
        }
        write(&path("SHA256SUMS"), sums.as_bytes()).unwrap();
        let verify = || {
            std::process::Command::new("sha256sum")
                .args(["--check", "--strict", "--quiet", "SHA256SUMS"])
                .current_dir(directory.path())
                .stderr(Stdio::null())
                .stdout(Stdio::null())
                .status()
                .unwrap()
        };
        assert!(verify().success());
        write(&path("a.oci.tar"), b"other").unwrap();
        assert!(!verify().success());
    }

    #[tokio::test]
    async fn programs_report_the_commit_of_the_checkout() {
        assert_eq!(commit(Some("abc"), Path::new("/")).await.unwrap(), "abc");
        let own = commit(None, &root()).await;
        assert!(
            own.as_ref().is_ok_and(|it| it.len() >= 40)
                || own.is_err_and(|it| it.to_string().contains("--commit"))
        );
    }

    #[test]
    fn images_are_chosen_by_name() {
        assert_eq!(selected(&[]).unwrap(), Image::ALL);
        let one = selected(&["capi-proxy".to_owned()]).unwrap();
        assert_eq!(one, [Image::CapiProxy]);
        let error = selected(&["proxy".to_owned()]).unwrap_err();
        assert!(error.to_string().contains("capi-proxy"), "{error}");
    }
}
