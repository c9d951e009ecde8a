//! Which processes are in a testbed's namespaces, seen from outside.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use testbed::wait;

/// Generous: a busy machine is no failure.
const WITHIN: Duration = Duration::from_secs(30);

/// One set of namespaces, recognised by its number for processes.
#[derive(Debug)]
pub(crate) struct Inside {
    namespace: PathBuf,
}

impl Inside {
    /// The namespaces whose first process is the only child of the process `outer`.
    pub(crate) fn of(outer: u32) -> Result<Self> {
        let children = fs::read_to_string(format!("/proc/{outer}/task/{outer}/children"))?;
        let first = children.trim().to_owned();
        let namespace = namespace(&Path::new("/proc").join(&first))
            .with_context(|| format!("{outer} has no child with namespaces: {first:?}"))?;
        Ok(Self { namespace })
    }

    /// The processes in them, without those of containers, which have namespaces of their own.
    pub(crate) fn processes(&self) -> Result<Vec<PathBuf>> {
        let entries = fs::read_dir("/proc").context("cannot read /proc")?;
        let each = entries.flatten().map(|entry| entry.path());
        Ok(each
            .filter(|path| namespace(path).is_some_and(|found| found == self.namespace))
            .collect())
    }

    /// Waits until nothing runs in them.
    pub(crate) async fn empty(&self) -> Result<()> {
        wait::until("the testbed's processes to end", WITHIN, async || {
            let left = self.processes()?;
            ensure!(left.is_empty(), "{left:?} still run");
            Ok(())
        })
        .await
    }
}

/// Processes whose command line names `text`: also those that entered other namespaces.
pub(crate) fn naming(text: &str) -> Result<Vec<String>> {
    let entries = fs::read_dir("/proc").context("cannot read /proc")?;
    let own = std::process::id().to_string();
    let others = entries
        .flatten()
        .filter(|entry| entry.file_name() != own.as_str());
    let lines = others.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    Ok(lines.filter(|line| line.contains(text)).collect())
}

fn namespace(process: &Path) -> Option<PathBuf> {
    fs::read_link(process.join("ns/pid")).ok()
}

/// The process in a pod whose program is `program`, by the pod's control group.
pub(crate) fn in_pod(uid: &str, program: &str) -> Result<rustix::process::Pid> {
    let entries = fs::read_dir("/proc").context("cannot read /proc")?;
    let found = entries.flatten().map(|entry| entry.path()).find(|path| {
        let line = fs::read(path.join("cmdline")).unwrap_or_default();
        let groups = fs::read_to_string(path.join("cgroup")).unwrap_or_default();
        line.split(|&byte| byte == 0).next() == Some(program.as_bytes()) && groups.contains(uid)
    });
    let found = found.with_context(|| format!("pod {uid} runs no {program}"))?;
    let pid = found
        .file_name()
        .and_then(|name| name.to_str()?.parse().ok());
    pid.and_then(rustix::process::Pid::from_raw)
        .context("not a process id")
}
