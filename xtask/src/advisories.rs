//! Advisories: crates of the lock file that have a known vulnerability, by the RustSec database.
//!
//! The database is a git repository of small files, which this reads by itself: no tool has to be built. Where it cannot be
//! fetched, a copy is taken, and where there is none the check is reported as skipped and never as passed.

mod advisory;
mod database;

use anyhow::{Context, Result};
use semver::Version;

use crate::sources;
use advisory::Advisory;
use database::Source;

/// What was checked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// This many crates have no advisory.
    Clean(usize),
    /// Crates that have one, a line each.
    Found(Vec<String>),
    /// There is no database, for this cause.
    NotChecked(String),
}

/// A crate of the lock file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Locked {
    name: String,
    version: Version,
}

/// Compares the lock file with the database.
pub(crate) fn check() -> Result<Outcome> {
    let directory = match database::find()? {
        Source::Ready(directory) => directory,
        Source::Stale { directory, cause } => {
            println!("warning: using an older copy of the advisories: {cause}");
            directory
        }
        Source::Missing { cause } => return Ok(Outcome::NotChecked(cause)),
    };
    let locked = locked(&sources::read("Cargo.lock")?);
    let mut found = Vec::new();
    for one in &locked {
        for advisory in database::advisories(&directory, &one.name)? {
            if advisory.affects(&one.version) && !IGNORED.contains(&advisory.id.as_str()) {
                found.push(line(one, &advisory));
            }
        }
    }
    Ok(if found.is_empty() {
        Outcome::Clean(locked.len())
    } else {
        Outcome::Found(found)
    })
}

/// Advisories that do not apply, each with a comment that says why. `deny.toml` has the same list.
const IGNORED: [&str; 0] = [];

fn line(locked: &Locked, advisory: &Advisory) -> String {
    let Locked { name, version } = locked;
    let fixed = match advisory.patched.as_slice() {
        [] => "there is no fixed version".to_owned(),
        versions => format!("fixed in {}", versions.join(" or ")),
    };
    format!(
        "Cargo.lock: {name} {version} has {}: {}; {fixed} (cargo update -p {name})",
        advisory.id, advisory.title
    )
}

/// The crates of a lock file that come from a registry.
fn locked(text: &str) -> Vec<Locked> {
    text.split("[[package]]")
        .skip(1)
        .filter(|package| package.contains("\nsource = \"registry+"))
        .filter_map(|package| Locked::read(package).ok())
        .collect()
}

// === impl Locked ===

impl Locked {
    fn read(package: &str) -> Result<Self> {
        let value = |key: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(key))?;
            line.split('"').nth(1)
        };
        let version = value("version = ").context("a package without a version")?;
        Ok(Self {
            name: value("name = ")
                .context("a package without a name")?
                .to_owned(),
            version: Version::parse(version).context("a version that is none")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_of_registries_are_read_from_the_lock_file() {
        let text = r#"version = 4

[[package]]
name = "api"
version = "0.0.0"

[[package]]
name = "bytes"
version = "1.12.1"
source = "registry+https://github.com/rust-lang/crates.io-index"
checksum = "00"
"#;
        let expected = Locked {
            name: "bytes".to_owned(),
            version: Version::new(1, 12, 1),
        };
        assert_eq!(locked(text), [expected]);
    }

    #[test]
    fn the_own_lock_file_is_read_whole() {
        let text = sources::read("Cargo.lock").unwrap();
        let registry = text.matches("\nsource = \"registry+").count();
        assert!(registry > 100);
        assert_eq!(locked(&text).len(), registry);
    }

    #[test]
    fn a_finding_names_the_crate_and_the_way_out() {
        let one = Locked {
            name: "bytes".to_owned(),
            version: Version::new(1, 0, 0),
        };
        let advisory = Advisory {
            id: "RUSTSEC-2026-0001".to_owned(),
            title: "Overflow".to_owned(),
            patched: vec![">= 1.0.1".to_owned()],
            ..Advisory::default()
        };
        let line = line(&one, &advisory);
        for part in [
            "bytes 1.0.0",
            "RUSTSEC-2026-0001",
            "Overflow",
            ">= 1.0.1",
            "cargo update -p bytes",
        ] {
            assert!(line.contains(part), "{line}");
        }
    }
}
