//! Where the database is: named by a variable, or a clone in the cache that is brought up to date.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::Advisory;
use crate::sources::cache;

/// Environment variable that names a copy of the database, for machines without a network.
pub(crate) const VARIABLE: &str = "RUSTSEC_DB";
/// Where the database is published.
const URL: &str = "https://github.com/rustsec/advisory-db";
/// Seconds after which a transfer that does not move is given up.
const STALLED: &str = "20";

/// What was found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// As it is published, or as the variable names it.
    Ready(PathBuf),
    /// An earlier clone, which could not be brought up to date.
    Stale { directory: PathBuf, cause: String },
    /// Nothing.
    Missing { cause: String },
}

/// Finds the database, and brings it up to date if it is a clone of ours.
pub(super) fn find() -> Result<Source> {
    if let Some(directory) = std::env::var_os(VARIABLE) {
        return named(PathBuf::from(directory));
    }
    let directory = cache()?.join("advisory-db");
    Ok(after(fetch(&directory), directory))
}

/// An explicit directory has to be a copy: the check is not skipped for a wrong path.
fn named(directory: PathBuf) -> Result<Source> {
    ensure!(
        directory.join("crates").is_dir(),
        "{VARIABLE}={} is not a copy of {URL}: it has no directory crates",
        directory.display()
    );
    Ok(Source::Ready(directory))
}

fn after(fetched: Result<()>, directory: PathBuf) -> Source {
    match fetched {
        Ok(()) => Source::Ready(directory),
        Err(error) => {
            let cause = format!("{error:#}");
            if directory.join("crates").is_dir() {
                return Source::Stale { directory, cause };
            }
            Source::Missing { cause }
        }
    }
}

fn fetch(directory: &Path) -> Result<()> {
    let path = directory
        .to_str()
        .context("the cache's path is not UTF-8")?;
    if directory.join(".git").is_dir() {
        git(&[
            "-C",
            path,
            "fetch",
            "--quiet",
            "--depth=1",
            "origin",
            "HEAD",
        ])?;
        return git(&["-C", path, "reset", "--quiet", "--hard", "FETCH_HEAD"]);
    }
    git(&["clone", "--quiet", "--depth=1", URL, path])
}

fn git(arguments: &[&str]) -> Result<()> {
    let output = Command::new("git")
        .args(arguments)
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_HTTP_LOW_SPEED_LIMIT", "1000")
        .env("GIT_HTTP_LOW_SPEED_TIME", STALLED)
        .stdin(Stdio::null())
        .output()
        .context("failed to run git")?;
    let words = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "failed to fetch {URL}: {}",
        words.trim()
    );
    Ok(())
}

/// The advisories of a crate.
pub(super) fn advisories(directory: &Path, name: &str) -> Result<Vec<Advisory>> {
    let Ok(entries) = fs::read_dir(directory.join("crates").join(name)) else {
        return Ok(Vec::new());
    };
    let mut advisories = Vec::new();
    for entry in entries {
        let path = entry.context("failed to list advisories")?.path();
        let text = fs::read_to_string(&path)
            .with_context(|| format!("failed to read {}", path.display()))?;
        advisories.extend(Advisory::parse(&text));
    }
    Ok(advisories)
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Self {
            let name = format!("advisories-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir_all(path.join("crates/bytes")).unwrap();
            let advisory = "```toml\nid = \"X-1\"\n```\n# Title\n";
            fs::write(path.join("crates/bytes/X-1.md"), advisory).unwrap();
            Self(path)
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            drop(fs::remove_dir_all(&self.0));
        }
    }

    #[test]
    fn advisories_are_found_by_crate() {
        let directory = Directory::new("found");
        let found = advisories(&directory.0, "bytes").unwrap();
        assert_eq!(found[0].id, "X-1");
        assert!(advisories(&directory.0, "http").unwrap().is_empty());
    }

    #[test]
    fn an_invalid_explicit_copy_is_an_error() {
        let directory = Directory::new("named");
        assert!(named(directory.0.clone()).is_ok());
        let error = named(directory.0.join("crates")).unwrap_err();
        assert!(error.to_string().contains(VARIABLE), "{error}");
    }

    #[test]
    fn without_the_network_an_earlier_copy_is_used_and_reported() {
        let directory = Directory::new("stale");
        let refused = || Err(anyhow!("no network"));
        assert!(matches!(
            after(refused(), directory.0.clone()),
            Source::Stale { .. }
        ));
        let nothing = after(refused(), directory.0.join("missing"));
        let cause = "no network".to_owned();
        assert_eq!(nothing, Source::Missing { cause });
    }
}
