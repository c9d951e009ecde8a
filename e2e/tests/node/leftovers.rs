//! Whatever is killed, nothing of a testbed is left: no process, mount, control group, link, route or directory.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use testbed::node::{self, NodeTestbed};
use testbed::{wait, work_dir};

use crate::node::can_run;
use crate::node::processes::{Inside, naming};

/// Name of the testbed with a killed owner.
const OWNED: &str = "node-owner";
/// Environment variable that makes a process of this program that owner.
const OWNER_VARIABLE: &str = "NODE_TEST_OWNER";
/// The owner may have to build what is missing.
const UP_WITHIN: Duration = Duration::from_hours(1);
/// Generous: a busy machine is no failure.
const GONE_WITHIN: Duration = Duration::from_secs(30);

/// Settings of the machine that kubelets would change.
const TUNABLES: [&str; 4] = [
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/kernel/panic",
    "/proc/sys/kernel/panic_on_oops",
    "/proc/sys/kernel/keys/root_maxkeys",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_testbed_leaves_nothing() -> Result<()> {
    if !can_run() {
        return Ok(());
    }
    let before = machine()?;
    let testbed = NodeTestbed::builder("node-killed").start().await?;
    let directory = testbed.path().to_owned();
    let outer = testbed.namespaces().pid();
    let inside = Inside::of(outer)?;
    ensure!(inside.processes()?.len() > 8, "{:?}", inside.processes()?);
    ensure!(!testbed.namespaces().traces()?.is_empty());
    ensure!(machine()? == before, "the testbed has changed the machine");
    kill(outer)?;
    inside.empty().await?;
    let traces = testbed.namespaces().traces()?;
    drop(testbed);
    none_of(&traces)?;
    nothing_names(&directory)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_testbed_whose_owner_is_killed_ends_by_itself() -> Result<()> {
    if std::env::var_os(OWNER_VARIABLE).is_some() {
        return own().await;
    }
    if !can_run() {
        return Ok(());
    }
    let before = machine()?;
    let directory = work_dir::directory_of(OWNED);
    let mut owner = Owner::start()?;
    let report = directory.join("up");
    let report = wait::until("the owner's testbed", UP_WITHIN, async || {
        if let Some(status) = owner.0.try_wait()? {
            return Ok(Err(status));
        }
        let text = std::fs::read_to_string(&report).context("it is not up yet")?;
        ensure!(text.ends_with('\n'), "it is just coming up");
        Ok(Ok(text))
    })
    .await?
    .map_err(|status| anyhow::anyhow!("the owner has ended: {status}"))?;
    let mut lines = report.lines();
    let outer = lines.next().unwrap_or_default().parse()?;
    let traces: Vec<PathBuf> = lines.map(PathBuf::from).collect();
    ensure!(!traces.is_empty(), "the testbed has nothing of the machine");
    let inside = Inside::of(outer)?;
    owner.0.kill()?;
    owner.0.wait()?;
    inside.empty().await?;
    wait::until("links and control groups to go", GONE_WITHIN, async || {
        none_of(&traces)
    })
    .await?;
    // The directory stays for a look, until `testbed down` or the start of a testbed of the name.
    ensure!(directory.exists());
    ensure!(node::clean_up(OWNED)?.contains(&directory));
    nothing_names(&directory)?;
    ensure!(machine()? == before, "the testbed has changed the machine");
    Ok(())
}

/// What the owner does: starts a testbed, says so, and waits to be killed.
async fn own() -> Result<()> {
    let testbed = NodeTestbed::builder(OWNED).start().await?;
    let mut lines = vec![testbed.namespaces().pid().to_string()];
    let traces = testbed.namespaces().traces()?;
    lines.extend(traces.iter().map(|trace| trace.display().to_string()));
    lines.push(String::new());
    std::fs::write(testbed.path().join("up"), lines.join("\n"))?;
    std::future::pending().await
}

/// A process of this program that owns a testbed.
struct Owner(Child);

impl Owner {
    fn start() -> Result<Self> {
        let name = "node::leftovers::a_testbed_whose_owner_is_killed_ends_by_itself";
        let program = std::env::current_exe().context("cannot find this program")?;
        let child = Command::new(program)
            .args(["--exact", name, "--nocapture"])
            .env(OWNER_VARIABLE, "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .context("cannot start this program again")?;
        Ok(Self(child))
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn kill(pid: u32) -> Result<()> {
    let pid = i32::try_from(pid)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    let pid = pid.context("not a process id")?;
    rustix::process::kill_process(pid, rustix::process::Signal::KILL)?;
    Ok(())
}

fn none_of(traces: &[PathBuf]) -> Result<()> {
    let left: Vec<_> = traces.iter().filter(|path| path.exists()).collect();
    ensure!(left.is_empty(), "{left:?} are left");
    Ok(())
}

/// Neither a file, nor a mount, nor a process has to do with the testbed's directory.
fn nothing_names(directory: &Path) -> Result<()> {
    ensure!(!directory.exists(), "{} is left", directory.display());
    let text = directory.display().to_string();
    let mounts = std::fs::read_to_string("/proc/self/mounts")?;
    ensure!(!mounts.contains(&text), "a mount is left:\n{mounts}");
    let processes = naming(&format!("{text}/"))?;
    ensure!(processes.is_empty(), "processes are left: {processes:#?}");
    Ok(())
}

/// What a testbed must not change: mounts, routes of others, settings.
fn machine() -> Result<(Vec<String>, Vec<String>)> {
    let mounts = std::fs::read_to_string("/proc/self/mounts")?;
    let settings = TUNABLES.map(std::fs::read_to_string);
    Ok((
        mounts.lines().map(str::to_owned).collect(),
        settings.into_iter().collect::<Result<_, _>>()?,
    ))
}
