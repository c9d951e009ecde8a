//! Debian packages that nodes need on the machine, installed when they are missing.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};

use crate::binaries;
use crate::lock::Lock;
use crate::progress::Progress;

/// Where distributions keep the CNI plugins.
const CNI_DIRECTORIES: [&str; 3] = ["/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"];
/// Where programs are that an ordinary user does not call.
const SYSTEM_DIRECTORIES: [&str; 3] = ["/usr/sbin", "/sbin", "/usr/local/sbin"];

/// A program of the machine.
#[derive(Debug, Clone, Copy)]
struct Needed {
    name: &'static str,
    package: &'static str,
    place: Place,
}

#[derive(Debug, Clone, Copy)]
enum Place {
    Path,
    CniDirectory,
}

const NEEDED: [Needed; 10] = [
    in_path("unshare", "util-linux"),
    in_path("nsenter", "util-linux"),
    in_path("bash", "bash"),
    in_path("ip", "iproute2"),
    in_path("iptables", "iptables"),
    in_path("runc", "runc"),
    in_path("busybox", "busybox-static"),
    in_path("haproxy", "haproxy"),
    in_path("nft", "nftables"),
    Needed {
        name: "bridge",
        package: "containernetworking-plugins",
        place: Place::CniDirectory,
    },
];

/// Where the programs are that configuration files name.
#[derive(Debug, Clone)]
pub(super) struct Tools {
    /// Starts containers.
    pub(super) runc: PathBuf,
    /// The directory of the CNI plugins.
    pub(super) cni: PathBuf,
}

const fn in_path(name: &'static str, package: &'static str) -> Needed {
    Needed {
        name,
        package,
        place: Place::Path,
    }
}

/// Finds what nodes need, and installs what is missing.
pub(super) async fn ensure(progress: &Progress) -> Result<Tools> {
    let missing = missing_packages();
    if !missing.is_empty() {
        install(&missing, progress).await?;
    }
    let still = missing_packages();
    if !still.is_empty() {
        bail!(
            "the packages {} are installed, but their programs are not where they are looked for (PATH, {})",
            still.join(" "),
            CNI_DIRECTORIES.join(", ")
        );
    }
    let bridge = find("bridge", Place::CniDirectory);
    Ok(Tools {
        runc: find("runc", Place::Path).context("runc has gone")?,
        cni: bridge
            .as_deref()
            .and_then(Path::parent)
            .context("the CNI plugins have gone")?
            .to_owned(),
    })
}

/// Finds a program of a Debian package, and installs the package if it is missing.
pub async fn program(name: &str, package: &str, progress: &Progress) -> Result<PathBuf> {
    if let Some(found) = find(name, Place::Path) {
        return Ok(found);
    }
    install(&[package], progress).await?;
    find(name, Place::Path)
        .with_context(|| format!("the package {package} is installed, but {name} is not in PATH"))
}

fn missing_packages() -> Vec<&'static str> {
    let mut packages: Vec<_> = NEEDED
        .iter()
        .filter(|needed| find(needed.name, needed.place).is_none())
        .map(|needed| needed.package)
        .collect();
    packages.dedup();
    packages
}

fn find(name: &str, place: Place) -> Option<PathBuf> {
    let directories: Vec<PathBuf> = match place {
        Place::Path => {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let system = SYSTEM_DIRECTORIES.map(PathBuf::from);
            std::env::split_paths(&path).chain(system).collect()
        }
        Place::CniDirectory => CNI_DIRECTORIES.map(PathBuf::from).into(),
    };
    let each = directories.iter().map(|directory| directory.join(name));
    each.into_iter().find(|path| path.is_file())
}

async fn install(packages: &[&str], progress: &Progress) -> Result<()> {
    let how = format!(
        "apt-get install --no-install-recommends {}",
        packages.join(" ")
    );
    if find("apt-get", Place::Path).is_none() {
        bail!(
            "nodes need {}: install them with this machine's package manager (in Debian: {how})",
            packages.join(", ")
        );
    }
    let directory = binaries::cache()?;
    std::fs::create_dir_all(&directory)
        .with_context(|| format!("cannot create {}", directory.display()))?;
    let _lock = Lock::take(&directory.join("packages.lock")).await?;
    let step = progress.step(format!(
        "installing the Debian packages {}",
        packages.join(" ")
    ));
    let mut install = vec!["install", "--yes", "--no-install-recommends"];
    install.extend(packages);
    if apt_get(&install).await.is_err() {
        // The lists may be old, or not there at all.
        let updated = apt_get(&["update"]).await;
        apt_get(&install).await.with_context(|| match updated {
            Ok(()) => format!("nodes need packages that cannot be installed; try: {how}"),
            Err(error) => format!(
                "nodes need packages that cannot be installed ({error:#}); try: apt-get update && {how}"
            ),
        })?;
    }
    step.done();
    Ok(())
}

async fn apt_get(args: &[&str]) -> Result<()> {
    let output = tokio::process::Command::new("apt-get")
        .args(args)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .output()
        .await
        .context("cannot run apt-get")?;
    if !output.status.success() {
        bail!(
            "apt-get {} failed: {}",
            args.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_where_they_are() {
        assert!(find("sh", Place::Path).is_some());
        assert!(find("no-such-program", Place::Path).is_none());
        assert!(find("sh", Place::CniDirectory).is_none());
    }
}
